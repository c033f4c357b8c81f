/* SPDX-License-Identifier: Apache-2.0 */
/* What the processes of a helper give up: users, capabilities, file system; and the tap device. */
#include "netns/uplink/uplink_parts.h"

#include <fcntl.h>
#include <limits.h>
#include <net/if.h> /* before linux/: the kernel's headers then leave its types out */

#include <linux/capability.h>
#include <linux/if_tun.h>
#include <linux/nsfs.h>
#include <linux/sockios.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "netns/address/addresses.h"
#include "runtime/base/files/system_file.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"
#include "runtime/base/text.h"
#include "runtime/kernel/process/capabilities.h"
#include "runtime/kernel/process/privileges.h"

int uplink_join_owner(int sock_fd, struct cj_error *err)
{
	auto_fd int netns_fd = ioctl(sock_fd, SIOCGSKNS);
	if (netns_fd < 0)
		return cj_fail(err, errno, "open a socket's network namespace");
	auto_fd int user_fd = ioctl(netns_fd, NS_GET_USERNS);
	if (user_fd < 0)
		return cj_fail(err, errno, "open the user namespace of a network namespace");
	if (setns(user_fd, CLONE_NEWUSER) < 0)
		return cj_fail(err, errno, "join the user namespace of a network namespace");
	return take_fd(&netns_fd);
}

/* The first id of a map is the only one: user_namespaces(7), "inside outside count". */
static int read_first_id(const char *path, unsigned long *out, struct cj_error *err)
{
	char text[64], *end = text;
	ssize_t got = system_file_read(AT_FDCWD, path, text, sizeof(text));
	if (got < 0)
		return cj_fail(err, (int)-got, "read '%s'", path);

	errno = 0;
	*out = strtoul(text, &end, 10);
	if (end == text || errno != 0)
		return cj_fail(err, EINVAL, "find an id in '%s'", path);
	return 0;
}

int uplink_become_mapped(struct cj_error *err)
{
	unsigned long uid = 0, gid = 0;
	if (read_first_id("/proc/self/uid_map", &uid, err) < 0 ||
	    read_first_id("/proc/self/gid_map", &gid, err) < 0)
		return -err->code;
	return privileges_become((uid_t)uid, (gid_t)gid, false, err);
}

int uplink_keep_capabilities(bool is_net_admin, struct cj_error *err)
{
	const uint64_t kept = UINT64_C(1) << CAP_SYS_ADMIN | (uint64_t)is_net_admin
								 << CAP_NET_ADMIN;
	const struct capabilities caps = {
		.permitted = kept, .inheritable = kept, .effective = kept, .ambient = kept
	};
	if (capabilities_apply(&caps, 0, err) < 0)
		return -err->code;
	return privileges_no_new(err);
}

#define ROOT "/tmp" /* covered by our tmpfs, in this mount namespace alone */

/* Links stay links; paths that this host does not have are left out. */
static const char *const places[] = {
	"/usr",         "/bin",         "/sbin",
	"/lib",         "/lib32",       "/lib64",
	"/nix/store",   "/gnu/store",   "/etc/ld.so.cache",
	"/dev/null",    "/dev/urandom", /* libslirp's random numbers */
	"/dev/net/tun",
};

static int make_parents(const char *path, struct cj_error *err)
{
	char part[PATH_MAX];
	for (const char *slash = strchr(path + sizeof(ROOT), '/'); slash;
	     slash = strchr(slash + 1, '/')) {
		(void)snprintf(part, sizeof(part), "%.*s", (int)(slash - path), path);
		if (mkdir(part, 0755) < 0 && errno != EEXIST)
			return cj_fail(err, errno, "create '%s'", part);
	}
	return 0;
}

static int make_mount_point(const char *to, mode_t mode, struct cj_error *err)
{
	if (S_ISDIR(mode)) {
		if (mkdir(to, 0755) < 0 && errno != EEXIST)
			return cj_fail(err, errno, "create '%s'", to);
		return 0;
	}
	auto_fd int fd = open(to, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
	if (fd < 0)
		return cj_fail(err, errno, "create '%s'", to);
	return 0;
}

static int show(const char *from, struct cj_error *err)
{
	char to[PATH_MAX];
	struct stat st;
	if (lstat(from, &st) < 0)
		return errno == ENOENT || errno == ENOTDIR
			   ? 0
			   : cj_fail(err, errno, "look at '%s'", from);
	(void)snprintf(to, sizeof(to), ROOT "%s", from);
	if (make_parents(to, err) < 0)
		return -err->code;
	if (S_ISLNK(st.st_mode)) {
		char target[PATH_MAX];
		ssize_t size = readlink(from, target, sizeof(target) - 1);
		if (size < 0)
			return cj_fail(err, errno, "read the link '%s'", from);
		target[size] = '\0';
		if (symlink(target, to) < 0)
			return cj_fail(err, errno, "create the link '%s'", to);
		return 0;
	}
	if (make_mount_point(to, st.st_mode, err) < 0)
		return -err->code;
	/* MS_REC: mounts below came with our namespace and are locked together */
	if (mount(from, to, NULL, MS_BIND | MS_REC, NULL) < 0)
		return cj_fail(err, errno, "bind '%s'", from);
	return 0;
}

/* A procfs of its own pid namespace; in a container that forbids a new one, the one that is
 * there. */
static int show_proc(struct cj_error *err)
{
	const char *to = ROOT "/proc";
	if (mkdir(to, 0755) < 0)
		return cj_fail(err, errno, "create '%s'", to);
	if (mount("proc", to, "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) == 0)
		return 0;
	if (errno != EPERM)
		return cj_fail(err, errno, "mount a proc on '%s'", to);
	if (mount("/proc", to, NULL, MS_BIND | MS_REC, NULL) < 0)
		return cj_fail(err, errno, "bind '/proc'");
	return 0;
}

static bool is_shown(const char *path)
{
	for (size_t i = 0; i < COUNT_OF(places); i++)
		if (text_path_below(path, places[i]))
			return true;
	return false;
}

/* The directory of a helper that is installed elsewhere.  By descriptor: it may lie below ROOT,
 * which is covered by now. */
static int show_own(int own_fd, const char *own, struct cj_error *err)
{
	char from[32], to[PATH_MAX];
	if (is_shown(own))
		return 0;
	(void)snprintf(from, sizeof(from), "/proc/self/fd/%d", own_fd);
	if ((size_t)snprintf(to, sizeof(to), ROOT "%s", own) >= sizeof(to))
		return cj_fail(err, ENAMETOOLONG, "bind '%s'", own);
	if (make_parents(to, err) < 0 || make_mount_point(to, S_IFDIR, err) < 0)
		return -err->code;
	if (mount(from, to, NULL, MS_BIND | MS_REC, NULL) < 0)
		return cj_fail(err, errno, "bind '%s'", own);
	return 0;
}

int uplink_enter_root(const char *path, struct cj_error *err)
{
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return cj_fail(err, errno, "make the mounts of '/' private");
	char own[PATH_MAX];
	(void)snprintf(own, sizeof(own), "%.*s", (int)(strrchr(path, '/') - path), path);
	auto_fd int own_fd = open(own, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (own_fd < 0)
		return cj_fail(err, errno, "open '%s'", own);
	if (mount("tmpfs", ROOT, "tmpfs", MS_NOSUID | MS_NODEV, "size=64k,mode=755") < 0)
		return cj_fail(err, errno, "mount a tmpfs on '" ROOT "'");
	for (size_t i = 0; i < COUNT_OF(places); i++)
		if (show(places[i], err) < 0)
			return -err->code;
	/* pasta mounts its own empty root on /tmp */
	if (show_own(own_fd, own, err) < 0 || show_proc(err) < 0)
		return -err->code;
	if (mkdir(ROOT "/tmp", 0755) < 0 && errno != EEXIST)
		return cj_fail(err, errno, "create '" ROOT "/tmp'");
	struct mount_attr wanted = { .attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID };
	if (sys_mount_setattr(AT_FDCWD, ROOT, AT_RECURSIVE, &wanted) < 0)
		return cj_fail(err, errno, "make the helper's root read-only");
	/* Twice ".": the old root is stacked on the new one, and umount2(2) removes it:
	 * pivot_root(2). */
	if (chdir(ROOT) < 0 || sys_pivot_root(".", ".") < 0 || umount2(".", MNT_DETACH) < 0 ||
	    chdir("/") < 0)
		return cj_fail(err, errno, "enter the helper's root");
	return 0;
}

#define TUN "/dev/net/tun"

int uplink_make_tap(int netns_fd, struct cj_error *err)
{
	/* as pasta and slirp4netns ask for it: with other flags they could not attach */
	struct ifreq request = { .ifr_name = LINK_UPLINK };
	request.ifr_flags = IFF_TAP | IFF_NO_PI;

	if (setns(netns_fd, CLONE_NEWNET) < 0)
		return cj_fail(err, errno, "join the gateway's network namespace");
	/* it belongs to the network namespace that it is opened in */
	auto_fd int fd = open(TUN, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return cj_fail(err, errno, "open '" TUN "'");
	if (ioctl(fd, TUNSETIFF, &request) < 0)
		return cj_fail(err, errno, "create the tap device '" LINK_UPLINK "'");
	/* The owner attaches without a capability, other users only with CAP_NET_ADMIN. */
	if (ioctl(fd, TUNSETOWNER, (unsigned long)geteuid()) < 0)
		return cj_fail(err, errno, "set the owner of '" LINK_UPLINK "'");
	if (ioctl(fd, TUNSETPERSIST, 1UL) < 0)
		return cj_fail(err, errno, "make '" LINK_UPLINK "' persistent");
	return 0;
}
