/* SPDX-License-Identifier: Apache-2.0 */
/* The output of the verb `features`.  Pure. */
#include "runtime/container/config/oci_features.h"

#include "runtime/container/config/oci_config.h"
#include "runtime/container/plan/mount_options.h"

const char *const oci_features_capabilities[] = {
	"CAP_CHOWN",
	"CAP_DAC_OVERRIDE",
	"CAP_DAC_READ_SEARCH",
	"CAP_FOWNER",
	"CAP_FSETID",
	"CAP_KILL",
	"CAP_SETGID",
	"CAP_SETUID",
	"CAP_SETPCAP",
	"CAP_LINUX_IMMUTABLE",
	"CAP_NET_BIND_SERVICE",
	"CAP_NET_BROADCAST",
	"CAP_NET_ADMIN",
	"CAP_NET_RAW",
	"CAP_IPC_LOCK",
	"CAP_IPC_OWNER",
	"CAP_SYS_MODULE",
	"CAP_SYS_RAWIO",
	"CAP_SYS_CHROOT",
	"CAP_SYS_PTRACE",
	"CAP_SYS_PACCT",
	"CAP_SYS_ADMIN",
	"CAP_SYS_BOOT",
	"CAP_SYS_NICE",
	"CAP_SYS_RESOURCE",
	"CAP_SYS_TIME",
	"CAP_SYS_TTY_CONFIG",
	"CAP_MKNOD",
	"CAP_LEASE",
	"CAP_AUDIT_WRITE",
	"CAP_AUDIT_CONTROL",
	"CAP_SETFCAP",
	"CAP_MAC_OVERRIDE",
	"CAP_MAC_ADMIN",
	"CAP_SYSLOG",
	"CAP_WAKE_ALARM",
	"CAP_BLOCK_SUSPEND",
	"CAP_AUDIT_READ",
	"CAP_PERFMON",
	"CAP_BPF",
	"CAP_CHECKPOINT_RESTORE",
	NULL,
};

static void put_names(struct json_writer *w, const char *key, const struct oci_names *names)
{
	json_put_key(w, key);
	json_open_array(w);
	for (size_t i = 0; i < names->count; i++)
		json_put_string(w, names->items[i].name);
	json_close_array(w);
}

/* {"KEY": {"enabled": ...}} */
static void put_enabled(struct json_writer *w, const char *key, bool is_enabled)
{
	json_put_key(w, key);
	json_open_object(w);
	json_member_bool(w, "enabled", is_enabled);
	json_close_object(w);
}

static void put_seccomp(struct json_writer *w)
{
	json_put_key(w, "seccomp");
	json_open_object(w);
	json_member_bool(w, "enabled", true);
	put_names(w, "actions", &oci_seccomp_actions);
	json_member_texts(w, "operators", policy_op_names, POLICY_OP_COUNT);
	put_names(w, "archs", &oci_seccomp_archs);
	put_names(w, "knownFlags", &oci_seccomp_flags);
	put_names(w, "supportedFlags", &oci_seccomp_flags);
	json_close_object(w);
}

/* Controllers of cgroup v1 are never used: cejail-oci(8), CGROUPS. */
static void put_cgroup(struct json_writer *w)
{
	json_put_key(w, "cgroup");
	json_open_object(w);
	json_member_bool(w, "v1", false);
	json_member_bool(w, "v2", true);
	json_member_bool(w, "systemd", true);
	json_member_bool(w, "systemdUser", true);
	json_member_bool(w, "rdma", true);
	json_close_object(w);
}

static void put_memory_policy(struct json_writer *w)
{
	json_put_key(w, "memoryPolicy");
	json_open_object(w);
	put_names(w, "modes", &oci_memory_modes);
	put_names(w, "flags", &oci_memory_flags);
	json_close_object(w);
}

static void put_linux(struct json_writer *w)
{
	json_put_key(w, "linux");
	json_open_object(w);
	json_member_texts(w, "namespaces", oci_namespace_names, OCI_NS_COUNT);
	json_member_texts(w, "capabilities", oci_features_capabilities, SIZE_MAX);
	put_cgroup(w);
	put_seccomp(w);
	put_enabled(w, "apparmor", true);
	put_enabled(w, "selinux", false);
	json_put_key(w, "intelRdt");
	json_open_object(w);
	json_member_bool(w, "enabled", true);
	json_member_bool(w, "schemata", true);
	json_member_bool(w, "monitoring", true);
	json_close_object(w);
	json_put_key(w, "mountExtensions");
	json_open_object(w);
	put_enabled(w, "idmap", true);
	json_close_object(w);
	put_enabled(w, "netDevices", true);
	put_memory_policy(w);
	json_close_object(w);
}

static void put_mount_options(struct json_writer *w)
{
	const char *name;

	json_put_key(w, "mountOptions");
	json_open_array(w);
	for (size_t i = 0; (name = mount_options_name(i)) != NULL; i++)
		json_put_string(w, name);
	json_close_array(w);
}

/* io.cejail.result makes a file, which the author of a container may not be meant to name. */
static void put_annotations(struct json_writer *w)
{
	static const char *const unsafe[] = { "io.cejail." };

	json_put_key(w, "annotations");
	json_open_object(w);
	json_member_text(w, "io.cejail.version", CJ_VERSION);
	json_close_object(w);
	json_member_texts(w, "potentiallyUnsafeConfigAnnotations", unsafe, 1);
}

void oci_features_write(struct json_writer *w)
{
	json_open_object(w);
	json_member_text(w, "ociVersionMin", OCI_VERSION_MIN);
	json_member_text(w, "ociVersionMax", OCI_VERSION_MAX);
	json_member_texts(w, "hooks", oci_hook_names, OCI_HOOK_COUNT);
	put_mount_options(w);
	put_linux(w);
	put_annotations(w);
	json_close_object(w);
}
