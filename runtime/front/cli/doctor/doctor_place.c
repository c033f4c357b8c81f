/* SPDX-License-Identifier: Apache-2.0 */
/* Only place_find() and place_has_apparmor() act; the rest is pure. */
#include "runtime/front/cli/doctor/doctor_place.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "runtime/base/arena.h"
#include "runtime/base/files/fd.h"
#include "runtime/base/files/system_file.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"
#include "runtime/kernel/ids/refusal.h"

#define CGROUP_BYTES_MAX 16384

/* --- the kind of place -------------------------------------------------------------- */

static bool is_running_below(const char *line, const char *slice, char unit[static PLACE_UNIT_MAX])
{
	static const char suffix[] = ".service";
	const char *at = strstr(line, slice), *end = strchr(line, '\n');

	if (!at || (end && at > end))
		return false;
	at += strlen(slice);
	size_t length = strcspn(at, "/\n");
	if (length < sizeof(suffix) || length >= PLACE_UNIT_MAX ||
	    strncmp(at + length - strlen(suffix), suffix, strlen(suffix)) != 0)
		return false;
	memcpy(unit, at, length);
	unit[length] = '\0';
	return true;
}

/* A line of /proc/self/cgroup is "ID:CONTROLLERS:PATH"; a unit of the system is below its slice. */
static bool find_unit(const char *cgroup, char unit[static PLACE_UNIT_MAX])
{
	for (const char *line = cgroup; line && *line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (is_running_below(line, ":/system.slice/", unit))
			return true;
	}
	return false;
}

static bool is_kind(const struct place_facts *facts, const char *name)
{
	return facts->container && strcmp(facts->container, name) == 0;
}

void place_classify(const struct place_facts *facts, struct place *out)
{
	bool is_podman = facts->has_containerenv || is_kind(facts, "podman");

	out->unit[0] = '\0';
	if (facts->has_kubernetes)
		out->kind = PLACE_KUBERNETES;
	else if (is_podman)
		out->kind = PLACE_PODMAN;
	else if (facts->has_dockerenv || is_kind(facts, "docker"))
		out->kind = PLACE_DOCKER;
	else if (facts->has_lxc || is_kind(facts, "lxc") || is_kind(facts, "lxc-libvirt"))
		out->kind = PLACE_LXC;
	else if (facts->release && strcasestr(facts->release, "microsoft"))
		out->kind = PLACE_WSL;
	else if (facts->container && facts->container[0])
		out->kind = PLACE_CONTAINER;
	else if (facts->cgroup && find_unit(facts->cgroup, out->unit))
		out->kind = PLACE_SERVICE;
	else
		out->kind = PLACE_HOST;
}

/* The variable is pid 1's.  systemd writes it to a file for all. */
static const char *find_container(char text[static PLACE_UNIT_MAX])
{
	const char *own = getenv("container");

	if (own || system_file_read(AT_FDCWD, "/run/systemd/container", text, PLACE_UNIT_MAX) <= 0)
		return own;
	text[strcspn(text, "\n")] = '\0';
	return text;
}

void place_find(struct place *out)
{
	auto_arena struct arena a = { 0 };
	struct cj_error ignored; /* without /proc: PLACE_HOST */
	char *cgroup = NULL, manager[64], container[PLACE_UNIT_MAX];
	struct utsname name = { 0 };
	size_t size = 0;

	(void)uname(&name); /* fails only for a bad pointer */
	if (fd_read_file(AT_FDCWD, "/proc/self/cgroup", CGROUP_BYTES_MAX, &a, &cgroup, &size,
			 &ignored) < 0)
		cgroup = NULL;
	const struct place_facts facts = {
		.has_dockerenv = access("/.dockerenv", F_OK) == 0,
		.has_containerenv = access("/run/.containerenv", F_OK) == 0,
		.has_kubernetes = getenv("KUBERNETES_SERVICE_HOST") != NULL,
		.has_lxc = access("/dev/.lxc", F_OK) == 0 || access("/dev/lxd/sock", F_OK) == 0 ||
			   access("/dev/incus/sock", F_OK) == 0,
		.container = find_container(container),
		.cgroup = cgroup,
		.release = name.release,
	};
	place_classify(&facts, out);
	(void)snprintf(manager, sizeof(manager), "/run/user/%u/systemd", geteuid());
	out->is_root = geteuid() == 0;
	out->has_cgroup2 = access("/sys/fs/cgroup/cgroup.controllers", F_OK) == 0;
	out->has_user_manager = access(manager, F_OK) == 0;
}

bool place_is_container(const struct place *p)
{
	return p->kind >= PLACE_DOCKER && p->kind < PLACE_COUNT;
}

bool place_has_apparmor(void)
{
	char answer = 'N';
	auto_fd int fd = open("/sys/module/apparmor/parameters/enabled", O_RDONLY | O_CLOEXEC);
	return fd >= 0 && sys_read(fd, &answer, 1) == 1 && answer == 'Y';
}

/* --- remedies ----------------------------------------------------------------------- */

#define BOOT_CGROUP2 "systemd.unified_cgroup_hierarchy=1 on the kernel command line"
#define RESTART_WSL  "; then, in Windows: wsl --shutdown"
#define WSL_KERNEL   "in %UserProfile%\\.wslconfig, below [wsl2]: kernelCommandLine="
#define LXC_NESTING                                                                                \
	"incus config set NAME security.nesting=true (LXD: lxc config set ...; Proxmox: pct set "  \
	"ID --features nesting=1; LXC: lxc.include = /usr/share/lxc/config/nesting.conf), and "    \
	"restart the container"

static const char *const container_cgroups[PLACE_COUNT] = {
	[PLACE_DOCKER] = ("docker run --cgroupns=private --security-opt writable-cgroups=true ... "
			  "(Docker 28 or later; before, --privileged)"),
	[PLACE_PODMAN] = "podman run --cgroupns=private --security-opt unmask=/sys/fs/cgroup ...",
	[PLACE_KUBERNETES] = ("give the pod a writable cgroup: CRI-O has the annotation "
			      "io.kubernetes.cri-o.cgroup2-mount-hierarchy-rw; elsewhere "
			      "securityContext: privileged: true"),
	[PLACE_CONTAINER] = ("start the container with a cgroup namespace and a writable "
			     "/sys/fs/cgroup"),
};

static void remedy_cgroup_of_host(const struct place *p, char *out, size_t size)
{
	if (p->kind == PLACE_SERVICE)
		(void)snprintf(out, size,
			       "sudo mkdir -p /etc/systemd/system/%s.d && printf "
			       "'[Service]\\nDelegate=yes\\n' | sudo tee "
			       "/etc/systemd/system/%s.d/cejail.conf && sudo systemctl "
			       "daemon-reload && sudo systemctl restart %s",
			       p->unit, p->unit, p->unit);
	else if (p->is_root)
		(void)snprintf(out, size,
			       "run cejail in a service with Delegate=yes: systemd-run --pty "
			       "-p Delegate=yes cejail ...");
	else if (!p->has_user_manager && p->kind == PLACE_WSL)
		(void)snprintf(
		    out, size,
		    "printf '[boot]\\nsystemd=true\\n' | sudo tee -a /etc/wsl.conf" RESTART_WSL);
	else if (!p->has_user_manager)
		(void)snprintf(out, size, "sudo loginctl enable-linger $(id -un)");
	else
		(void)snprintf(out, size,
			       "sudo mkdir -p /etc/systemd/system/user@.service.d && printf "
			       "'[Service]\\nDelegate=cpu memory pids\\n' | sudo tee "
			       "/etc/systemd/system/user@.service.d/cejail.conf && sudo systemctl "
			       "daemon-reload; then log out and in again");
}

void place_remedy_cgroup(const struct place *p, char *out, size_t size)
{
	if (place_is_container(p) && p->has_cgroup2 && p->kind != PLACE_LXC)
		(void)snprintf(out, size, "%s", container_cgroups[p->kind]);
	else if (place_is_container(p) && !p->has_cgroup2)
		(void)snprintf(out, size, "boot the container's host with " BOOT_CGROUP2);
	else if (!p->has_cgroup2 && p->kind == PLACE_WSL)
		(void)snprintf(out, size, "%s", WSL_KERNEL "cgroup_no_v1=all" RESTART_WSL);
	else if (!p->has_cgroup2)
		(void)snprintf(out, size, "boot with " BOOT_CGROUP2);
	else
		remedy_cgroup_of_host(p, out, size);
}

const char *place_remedy_filter(const struct place *p)
{
	static const char *const remedies[PLACE_COUNT] = {
		[PLACE_HOST] = "run cejail outside of the sandbox whose seccomp filter forbids it",
		[PLACE_SERVICE] =
		    ("remove RestrictNamespaces= and SystemCallFilter= from the unit, or "
		     "let them allow namespaces and mounts"),
		[PLACE_DOCKER] =
		    ("docker run --security-opt seccomp=unconfined ..., or seccomp=FILE "
		     "that allows clone, clone3, unshare, mount and the new mount calls"),
		[PLACE_PODMAN] =
		    ("podman run --security-opt seccomp=unconfined ..., or seccomp=FILE "
		     "that allows clone, clone3, unshare, mount and the new mount calls"),
		[PLACE_KUBERNETES] =
		    ("securityContext: seccompProfile: type: Unconfined, or Localhost "
		     "with a profile that allows namespaces and mounts"),
		[PLACE_WSL] = "run cejail outside of the sandbox whose seccomp filter forbids it",
		[PLACE_LXC] = LXC_NESTING,
		[PLACE_CONTAINER] = ("start the container with a seccomp filter that allows clone, "
				     "clone3, unshare, mount and the new mount calls"),
	};
	return remedies[p->kind];
}

const char *place_remedy_proc(const struct place *p)
{
	static const char *const remedies[PLACE_COUNT] = {
		[PLACE_HOST] = "unmount the file systems that are mounted below /proc",
		[PLACE_SERVICE] = ("remove ProtectKernelTunables=, ProtectKernelLogs= and "
				   "ProtectHostname= from the unit"),
		[PLACE_DOCKER] = "docker run --security-opt systempaths=unconfined ...",
		[PLACE_PODMAN] = "podman run --security-opt unmask=ALL ...",
		[PLACE_KUBERNETES] = "securityContext: procMount: Unmasked, with hostUsers: false",
		[PLACE_WSL] = "unmount the file systems that are mounted below /proc",
		[PLACE_LXC] = LXC_NESTING,
		[PLACE_CONTAINER] = "start the container without masked paths below /proc",
	};
	return remedies[p->kind];
}

const char *place_remedy_tun(const struct place *p)
{
	static const char *const remedies[PLACE_COUNT] = {
		[PLACE_HOST] = "sudo modprobe tun",
		[PLACE_SERVICE] = "sudo modprobe tun, and PrivateDevices=no in the unit",
		[PLACE_DOCKER] = "docker run --device /dev/net/tun ...",
		[PLACE_PODMAN] = "podman run --device /dev/net/tun ...",
		[PLACE_KUBERNETES] =
		    ("give the pod /dev/net/tun: a device plugin, or a hostPath volume "
		     "of type CharDevice"),
		[PLACE_WSL] = "sudo modprobe tun",
		[PLACE_LXC] = ("incus config device add NAME tun unix-char path=/dev/net/tun "
			       "mode=0666 (Proxmox: pct set ID --dev0 /dev/net/tun,mode=0666)"),
		[PLACE_CONTAINER] = "start the container with /dev/net/tun",
	};
	return remedies[p->kind];
}

const char *place_remedy_landlock(const struct place *p)
{
	if (p->kind == PLACE_WSL)
		return "in Windows: wsl --update; " WSL_KERNEL "lsm=landlock" RESTART_WSL;
	return place_is_container(p)
		   ? ("on the container's host: boot a kernel with CONFIG_SECURITY_LANDLOCK and "
		      "landlock in its lsm= list; the container's seccomp filter must allow it")
		   : "boot a kernel with CONFIG_SECURITY_LANDLOCK and add landlock to its lsm= list";
}

const char *place_remedy_unknown(const struct place *p)
{
	if (p->kind == PLACE_LXC)
		return LXC_NESTING;
	if (place_is_container(p))
		return "ask the administrator of the container's host to allow them";
	return p->is_root ? "look for the security module that denies them: dmesg | grep -i denied"
			  : "ask the administrator of this host to allow them";
}

void place_remedy_kernel(const struct place *p, char *out, size_t size)
{
	if (p->kind == PLACE_WSL)
		(void)snprintf(out, size,
			       "in Windows: wsl --update, for Linux " KERNEL_MINIMUM
			       " or later" RESTART_WSL);
	else
		(void)snprintf(out, size, "%sboot Linux " KERNEL_MINIMUM " or later",
			       place_where_kernel(p));
}

const char *place_where_kernel(const struct place *p)
{
	return place_is_container(p) ? "on the container's host: " : "";
}
