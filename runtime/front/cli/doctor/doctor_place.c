/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/front/cli/doctor/doctor.h"

#include <fcntl.h>
#include <sys/utsname.h>

#include "runtime/base/arena.h"
#include "runtime/base/files/fd.h"
#include "runtime/base/files/system_file.h"
#include "runtime/kernel/ids/refusal.h"

#define CGROUP_BYTES_MAX 16384

/* A line of /proc/self/cgroup is "ID:CONTROLLERS:PATH"; a unit of the system is below its slice. */
static bool find_unit(const char *cgroup, char unit[static PLACE_UNIT_MAX])
{
	static const char slice[] = ":/system.slice/", suffix[] = ".service";

	for (const char *at = cgroup; (at = strstr(at, slice));) {
		at += strlen(slice);
		size_t length = strcspn(at, "/\n");
		if (length < sizeof(suffix) || length >= PLACE_UNIT_MAX ||
		    strncmp(at + length - strlen(suffix), suffix, strlen(suffix)) != 0)
			continue;
		memcpy(unit, at, length);
		unit[length] = '\0';
		return true;
	}
	return false;
}

static bool is_kind(const struct place_facts *facts, const char *name)
{
	return facts->container && strcmp(facts->container, name) == 0;
}

void place_classify(const struct place_facts *facts, struct doctor_place *out)
{
	out->unit[0] = '\0';
	if (facts->has_kubernetes)
		out->kind = PLACE_KUBERNETES;
	else if (facts->has_containerenv || is_kind(facts, "podman"))
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

void place_find(struct doctor_place *out)
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

static bool is_container(const struct doctor_place *p)
{
	return p->kind >= PLACE_DOCKER;
}

const char *place_where_kernel(const struct doctor_place *p)
{
	return is_container(p) ? "on the container's host: " : "";
}

#define BOOT_CGROUP2 "systemd.unified_cgroup_hierarchy=1 on the kernel command line"
#define RESTART_WSL  "; then, in Windows: wsl --shutdown"
#define WSL_KERNEL   "in %UserProfile%\\.wslconfig, below [wsl2]: kernelCommandLine="
#define LXC_NESTING                                                                                \
	"incus config set NAME security.nesting=true (LXD: lxc config set ...; Proxmox: pct set "  \
	"ID --features nesting=1; LXC: lxc.include = /usr/share/lxc/config/nesting.conf), and "    \
	"restart the container"
#define KEEP_SYSCTL    " | sudo tee /etc/sysctl.d/60-cejail.conf && sudo sysctl --system"
#define FILTER_FILE    "container-seccomp.json, which cejail-recipes(7) describes"
#define ASK_CONTAINERS "ask the administrator of the container's host to allow them"
#define BOOT_LANDLOCK  "boot a kernel with CONFIG_SECURITY_LANDLOCK and "
#define LANDLOCK_THERE                                                                             \
	"on the container's host: " BOOT_LANDLOCK                                                  \
	"landlock in its lsm= list; the container's seccomp filter must allow it"
#define TUN_DEVICE "--device /dev/net/tun ..."
#define MODULES                                                                                    \
	"nf_tables nf_conntrack nft_ct nft_log nft_limit nft_connlimit nft_fib_inet "              \
	"nft_reject_inet nft_chain_nat nft_masq nft_redir nfnetlink_log"

static const struct {
	const char *text;
	bool is_kernels;             /* in a container, place_where_kernel() precedes the text */
	const char *at[PLACE_COUNT]; /* NULL: the text */
} remedies[REMEDY_COUNT] = {
	[REMEDY_NONE] = { "" },
	[REMEDY_USERNS_OFF] = { "echo user.max_user_namespaces=15000" KEEP_SYSCTL, true },
	[REMEDY_USERNS_USERS] = { "echo kernel.unprivileged_userns_clone=1" KEEP_SYSCTL, true },
	[REMEDY_USERNS_MANY] = { "sudo sysctl user.max_user_namespaces=15000", true },
	[REMEDY_SANDBOX] = { "run cejail outside of that sandbox" },
	[REMEDY_CHROOT] = { "run cejail outside of the chroot, or in a container instead" },
	[REMEDY_IDS] = { "run cejail as an ordinary user, or with the capabilities SETUID and SETGID",
	  .at = {
		[PLACE_SERVICE] =
		    ("set User= in the unit, or leave CAP_SETUID and CAP_SETGID in "
		     "CapabilityBoundingSet="),
		[PLACE_DOCKER] = "docker run --user 1000 ..., or --cap-add SETUID --cap-add SETGID",
		[PLACE_PODMAN] = "podman run --user 1000 ..., or --cap-add SETUID --cap-add SETGID",
		[PLACE_KUBERNETES] =
		    "securityContext: runAsUser: 1000, or capabilities: add: [SETUID, SETGID]",
	  } },
	[REMEDY_FILTER] = { "run cejail outside of the sandbox whose seccomp filter forbids it",
	  .at = {
		[PLACE_SERVICE] =
		    ("remove RestrictNamespaces= and SystemCallFilter= from the unit, or "
		     "let them allow namespaces and mounts"),
		[PLACE_DOCKER] = "docker run --security-opt seccomp=FILE ..., with " FILTER_FILE,
		[PLACE_PODMAN] = "podman run --security-opt seccomp=FILE ..., with " FILTER_FILE,
		[PLACE_KUBERNETES] =
		    "securityContext: seccompProfile: type: Localhost, with " FILTER_FILE,
		[PLACE_LXC] = LXC_NESTING,
		[PLACE_CONTAINER] = "start the container with the seccomp filter " FILTER_FILE,
	  } },
	[REMEDY_KERNEL] = { "boot Linux " KERNEL_MINIMUM " or later", true, .at = {
		[PLACE_WSL] =
		    ("in Windows: wsl --update, for Linux " KERNEL_MINIMUM " or later" RESTART_WSL),
	  } },
	[REMEDY_UNKNOWN] = { "ask the administrator of this host to allow them", .at = {
		[PLACE_DOCKER ... PLACE_KUBERNETES] = ASK_CONTAINERS,
		[PLACE_LXC] = LXC_NESTING,
		[PLACE_CONTAINER] = ASK_CONTAINERS,
	  } },
	[REMEDY_PROC] = { "unmount the file systems that are mounted below /proc", .at = {
		[PLACE_SERVICE] = ("remove ProtectKernelTunables=, ProtectKernelLogs= and "
				   "ProtectHostname= from the unit"),
		[PLACE_DOCKER] = "docker run --security-opt systempaths=unconfined ...",
		[PLACE_PODMAN] = "podman run --security-opt unmask=ALL ...",
		[PLACE_KUBERNETES] = "securityContext: procMount: Unmasked, with hostUsers: false",
		[PLACE_LXC] = LXC_NESTING,
		[PLACE_CONTAINER] = "start the container without masked paths below /proc",
	  } },
	[REMEDY_OVERLAY] = { "sudo modprobe overlay", true },
	[REMEDY_SECCOMP] = { "boot a kernel with CONFIG_SECCOMP_FILTER" },
	[REMEDY_LISTENER] = { "run cejail outside of the outer sandbox" },
	[REMEDY_LANDLOCK] = { BOOT_LANDLOCK "add landlock to its lsm= list", .at = {
		[PLACE_WSL] = "in Windows: wsl --update; " WSL_KERNEL "lsm=landlock" RESTART_WSL,
		[PLACE_DOCKER ... PLACE_CONTAINER] = LANDLOCK_THERE,
	  } },
	[REMEDY_RULES] = { "sudo modprobe -a " MODULES, true },
	[REMEDY_VETH] = { "sudo modprobe veth", true },
	[REMEDY_TUN] = { "sudo modprobe tun", .at = {
		[PLACE_SERVICE] = "sudo modprobe tun, and PrivateDevices=no in the unit",
		[PLACE_DOCKER] = "docker run " TUN_DEVICE,
		[PLACE_PODMAN] = "podman run " TUN_DEVICE,
		[PLACE_KUBERNETES] =
		    ("give the pod /dev/net/tun: a device plugin, or a hostPath volume "
		     "of type CharDevice"),
		[PLACE_LXC] = ("incus config device add NAME tun unix-char path=/dev/net/tun "
			       "mode=0666 (Proxmox: pct set ID --dev0 /dev/net/tun,mode=0666)"),
		[PLACE_CONTAINER] = "start the container with /dev/net/tun",
	  } },
};

void place_remedy(const struct doctor_place *p, enum remedy which, struct finding *f)
{
	const char *there = remedies[which].at[p->kind];

	if (which == REMEDY_UNKNOWN && p->is_root && !there)
		there = "look for the security module that denies them: dmesg | grep -i denied";
	finding_remedy(f, "%s%s", !there && remedies[which].is_kernels ? place_where_kernel(p) : "",
		       there ? there : remedies[which].text);
}

void finding_remedy_here(struct finding *f, enum remedy which)
{
	struct doctor_place place;

	place_find(&place);
	place_remedy(&place, which, f);
}

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

/* Where cgroup v2 is mounted. */
static const char *cgroup_text(const struct doctor_place *p)
{
	if (container_cgroups[p->kind])
		return container_cgroups[p->kind];
	if (p->is_root)
		return "run cejail in a service with Delegate=yes: systemd-run --pty "
		       "-p Delegate=yes cejail ...";
	if (p->has_user_manager)
		return "sudo mkdir -p /etc/systemd/system/user@.service.d && printf "
		       "'[Service]\\nDelegate=cpu memory pids\\n' | sudo tee "
		       "/etc/systemd/system/user@.service.d/cejail.conf && sudo systemctl "
		       "daemon-reload; then log out and in again";
	return p->kind == PLACE_WSL ? "printf '[boot]\\nsystemd=true\\n' | sudo tee -a "
				      "/etc/wsl.conf" RESTART_WSL
				    : "sudo loginctl enable-linger $(id -un)";
}

void place_remedy_cgroup(const struct doctor_place *p, struct finding *f)
{
	if (!p->has_cgroup2 && p->kind == PLACE_WSL)
		finding_remedy(f, "%s", WSL_KERNEL "cgroup_no_v1=all" RESTART_WSL);
	else if (!p->has_cgroup2)
		finding_remedy(f, "boot %swith " BOOT_CGROUP2,
			       is_container(p) ? "the container's host " : "");
	else if (p->kind == PLACE_SERVICE)
		finding_remedy(f,
			       "sudo mkdir -p /etc/systemd/system/%s.d && printf "
			       "'[Service]\\nDelegate=yes\\n' | sudo tee "
			       "/etc/systemd/system/%s.d/cejail.conf && sudo systemctl "
			       "daemon-reload && sudo systemctl restart %s",
			       p->unit, p->unit, p->unit);
	else
		finding_remedy(f, "%s", cgroup_text(p));
}
