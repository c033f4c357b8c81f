/* SPDX-License-Identifier: Apache-2.0 */
/* The config.json that the verb `spec` writes.  Pure. */
#include "runtime/container/config/oci_spec.h"

#include "runtime/container/config/oci_features.h"
#include "runtime/container/config/oci_linux.h"

#define OPEN_FILES  1024
#define OPTIONS_MAX 7

static const char *const capability_sets[] = { "bounding", "effective", "permitted" };
static const char *const capabilities[] = { "CAP_AUDIT_WRITE", "CAP_KILL", "CAP_NET_BIND_SERVICE",
					    NULL };
static const char *const arguments[] = { "sh", NULL };
static const char *const environment[] = {
	"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "TERM=xterm", NULL
};

/* Files of procfs and sysfs that tell of the host, or change it. */
static const char *const masked_paths[] = { "/proc/acpi",
					    "/proc/asound",
					    "/proc/interrupts",
					    "/proc/kcore",
					    "/proc/keys",
					    "/proc/latency_stats",
					    "/proc/sched_debug",
					    "/proc/scsi",
					    "/proc/timer_list",
					    "/proc/timer_stats",
					    "/sys/devices/virtual/powercap",
					    "/sys/firmware",
					    NULL };
static const char *const readonly_paths[] = { "/proc/bus",           "/proc/fs",
					      "/proc/irq",           "/proc/sys",
					      "/proc/sysrq-trigger", NULL };

struct mount_row {
	const char *destination, *type;
	const char *options[OPTIONS_MAX + 1];
};
static const struct mount_row mounts[] = {
	{ "/proc", "proc", { "nosuid", "noexec", "nodev" } },
	{ "/dev", "tmpfs", { "nosuid", "strictatime", "mode=755", "size=65536k" } },
	{ "/dev/pts",
	  "devpts",
	  { "nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620" } },
	{ "/dev/shm", "tmpfs", { "nosuid", "noexec", "nodev", "mode=1777", "size=65536k" } },
	{ "/dev/mqueue", "mqueue", { "nosuid", "noexec", "nodev" } },
	{ "/sys", "sysfs", { "nosuid", "noexec", "nodev", "ro" } },
	{ "/sys/fs/cgroup", "cgroup", { "nosuid", "noexec", "nodev", "relatime", "ro" } },
};

static const enum oci_namespace_type namespaces[] = {
	OCI_NS_PID, OCI_NS_NETWORK, OCI_NS_IPC, OCI_NS_UTS, OCI_NS_MOUNT, OCI_NS_CGROUP,
};

static void put_process(struct json_writer *w)
{
	json_put_key(w, "process");
	json_open_object(w);
	json_member_bool(w, "terminal", true);
	json_put_key(w, "user");
	json_open_object(w);
	json_member_u64(w, "uid", 0);
	json_member_u64(w, "gid", 0);
	json_close_object(w);
	json_member_texts(w, "args", arguments, SIZE_MAX);
	json_member_texts(w, "env", environment, SIZE_MAX);
	json_member_text(w, "cwd", "/");
	json_put_key(w, "capabilities");
	json_open_object(w);
	for (size_t i = 0; i < COUNT(capability_sets); i++)
		json_member_texts(w, capability_sets[i], capabilities, SIZE_MAX);
	json_close_object(w);
	json_put_key(w, "rlimits");
	json_open_array(w);
	json_open_object(w);
	json_member_text(w, "type", "RLIMIT_NOFILE");
	json_member_u64(w, "hard", OPEN_FILES);
	json_member_u64(w, "soft", OPEN_FILES);
	json_close_object(w);
	json_close_array(w);
	json_member_bool(w, "noNewPrivileges", true);
	json_close_object(w);
}

static void put_mounts(struct json_writer *w)
{
	json_put_key(w, "mounts");
	json_open_array(w);
	for (size_t i = 0; i < COUNT(mounts); i++) {
		json_open_object(w);
		json_member_text(w, "destination", mounts[i].destination);
		json_member_text(w, "type", mounts[i].type);
		json_member_text(w, "source", mounts[i].type);
		json_member_texts(w, "options", mounts[i].options, SIZE_MAX);
		json_close_object(w);
	}
	json_close_array(w);
}

static void put_namespace(struct json_writer *w, enum oci_namespace_type type)
{
	json_open_object(w);
	json_member_text(w, "type", oci_namespace_names[type]);
	json_close_object(w);
}

static void put_id_map(struct json_writer *w, const char *key, uint32_t host_id)
{
	json_put_key(w, key);
	json_open_array(w);
	json_open_object(w);
	json_member_u64(w, "containerID", 0);
	json_member_u64(w, "hostID", host_id);
	json_member_u64(w, "size", 1);
	json_close_object(w);
	json_close_array(w);
}

/* Every device is refused; what /dev has by default is allowed by the specification. */
static void put_resources(struct json_writer *w)
{
	json_put_key(w, "resources");
	json_open_object(w);
	json_put_key(w, "devices");
	json_open_array(w);
	json_open_object(w);
	json_member_bool(w, "allow", false);
	json_member_text(w, "access", "rwm");
	json_close_object(w);
	json_close_array(w);
	json_close_object(w);
}

static void put_linux(struct json_writer *w, const struct oci_spec_caller *caller)
{
	json_put_key(w, "linux");
	json_open_object(w);
	json_put_key(w, "namespaces");
	json_open_array(w);
	for (size_t i = 0; i < COUNT(namespaces); i++)
		put_namespace(w, namespaces[i]);
	if (caller->is_rootless)
		put_namespace(w, OCI_NS_USER);
	json_close_array(w);
	if (caller->is_rootless) {
		put_id_map(w, "uidMappings", caller->uid);
		put_id_map(w, "gidMappings", caller->gid);
	} else {
		put_resources(w);
	}
	json_member_texts(w, "maskedPaths", masked_paths, SIZE_MAX);
	json_member_texts(w, "readonlyPaths", readonly_paths, SIZE_MAX);
	json_close_object(w);
}

void oci_spec_write(struct json_writer *w, const struct oci_spec_caller *caller)
{
	json_open_object(w);
	json_member_text(w, "ociVersion", OCI_VERSION_MAX);
	put_process(w);
	json_put_key(w, "root");
	json_open_object(w);
	json_member_text(w, "path", "rootfs");
	json_member_bool(w, "readonly", true);
	json_close_object(w);
	json_member_text(w, "hostname", "cejail");
	put_mounts(w);
	put_linux(w, caller);
	json_close_object(w);
}
