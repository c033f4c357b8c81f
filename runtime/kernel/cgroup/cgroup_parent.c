/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/kernel/cgroup/cgroup_parent.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/xattr.h>

#include "runtime/base/files/fd.h"
#include "runtime/base/files/system_file.h"
#include "runtime/base/scope.h"
#include "runtime/base/text.h"
#include "runtime/kernel/cgroup/cgroup_tree.h"
#include "runtime/kernel/cgroup/scope_helper.h"

#define READY_ROUNDS 16 /* others may add processes while we move them out */
#define ON_V1                                                                                      \
	"this host mounts the cgroup v1 controllers (memory, cpu, pids): boot with "               \
	"systemd.unified_cgroup_hierarchy=1"

/*
 * /proc/self/mountinfo costs a run 2 us for each mount of the host.  Since Linux 6.8 statmount(2)
 * tells the same of one mount: it is asked for the two usual places.  Any answer but a plain yes
 * leads to the file.
 */
#define MOUNTINFO_MAX (4u << 20)

/* <linux/mount.h> and <linux/stat.h> of Linux 6.8; the number is that of every architecture. */
#ifndef SYS_statmount
#define SYS_statmount 457
#endif
#define UNIQUE_ID  0x4000u /* STATX_MNT_ID_UNIQUE */
#define TELL_SUPER 0x01u   /* STATMOUNT_SB_BASIC */
#define TELL_ROOT  0x08u   /* STATMOUNT_MNT_ROOT */
#define TELL_POINT 0x10u   /* STATMOUNT_MNT_POINT */
#define TELL_ALL   (TELL_SUPER | TELL_ROOT | TELL_POINT)

struct mount_request { /* struct mnt_id_req, its first version */
	uint32_t size, spare;
	uint64_t id, wanted;
};

struct mount_answer { /* struct statmount */
	uint32_t size, options;
	uint64_t told;
	uint32_t device[2];
	uint64_t magic;
	uint32_t not_wanted[18];
	uint32_t root, point; /* offsets into text */
	uint64_t not_known[50];
	char text[2 * CGROUP_PATH_MAX];
};
_Static_assert(offsetof(struct mount_answer, text) == 512, "the kernel's layout");

static bool copy_path(char out[static CGROUP_PATH_MAX], const char *path)
{
	size_t size = strlen(path);
	if (size >= CGROUP_PATH_MAX || strchr(path, '\\')) /* kernels differ in how they quote */
		return false;
	memcpy(out, path, size + 1);
	return true;
}

/* False: no cgroup2 is mounted right there, or it is not known. */
static bool ask(const char *point, struct cgroup_mount *out)
{
	struct statx st;
	struct mount_answer answer;
	if (statx(AT_FDCWD, point, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, UNIQUE_ID, &st) < 0 ||
	    !(st.stx_mask & UNIQUE_ID))
		return false;
	const struct mount_request request = { .size = sizeof(request),
					       .id = st.stx_mnt_id,
					       .wanted = TELL_ALL };
	if (syscall(SYS_statmount, &request, &answer, sizeof(answer), 0) < 0)
		return false;
	if ((answer.told & TELL_ALL) != TELL_ALL || answer.magic != CGROUP2_SUPER_MAGIC ||
	    strcmp(answer.text + answer.point, point) != 0)
		return false;
	return copy_path(out->point, point) && copy_path(out->root, answer.text + answer.root);
}

/* What cgroup_text_mount() finds in /proc/self/mountinfo, most often without reading that file. */
static void find_mount(struct cgroup_mount *out)
{
	*out = (struct cgroup_mount){ 0 };
	if (ask("/sys/fs/cgroup", out) || ask("/sys/fs/cgroup/unified", out))
		return;

	auto_arena struct arena a = { 0 };
	struct cj_error ignored; /* without the file no mount is known, and the caller reports it */
	char *text;
	size_t size;
	*out = (struct cgroup_mount){ 0 };
	auto_fd int fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
	if (fd >= 0 &&
	    fd_read_sized(fd, 0, MOUNTINFO_MAX, &a, &text, &size, "mountinfo", &ignored) == 0)
		cgroup_text_mount(text, out);
}

int cgroup_self_read(pid_t pid, struct cgroup_self *out)
{
	char path[40] = "/proc/self/cgroup", text[SYSTEM_FILE_SMALL];
	if (pid > 0)
		(void)snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)pid);
	ssize_t size = system_file_read(AT_FDCWD, path, text, sizeof(text));
	if (size < 0)
		text[0] = '\0';
	cgroup_text_self(text, out);
	return size < 0 ? (int)size : 0;
}

static void read_self(struct cgroup_host *out)
{
	(void)cgroup_self_read(0, &out->self); /* unreadable: as on a kernel without cgroups */
	if (!cgroup_text_locate(&out->mount, out->self.path, out->own_path))
		out->own_path[0] = '\0';
}

static bool exists_in(const char *dir_path, const char *name)
{
	char path[CGROUP_PATH_MAX + 64];
	(void)snprintf(path, sizeof(path), "%s/%s", dir_path, name);
	return faccessat(AT_FDCWD, path, F_OK, AT_EACCESS) == 0;
}

void cgroup_host_read(struct cgroup_host *out)
{
	*out = (struct cgroup_host){ .uid = geteuid() };
	find_mount(&out->mount);
	read_self(out);
	/* Every cgroup but the root has it: Documentation/admin-guide/cgroup-v2.rst. */
	out->at_real_root = !exists_in(out->mount.point, "cgroup.events");
}

/* Writes why_not and returns false, for the caller to return. */
__attribute__((format(printf, 2, 3))) static bool decline(struct cgroup_parent *out,
							  const char *fmt, ...)
{
	(void)text_format(out->why_not, fmt);
	return false;
}

static bool put_path(struct cgroup_parent *out, const char *path, const char *tail)
{
	int size = snprintf(out->path, sizeof(out->path), "%s%s", path, tail);
	if (size < 0 || (size_t)size >= sizeof(out->path))
		return decline(out, "the path of cgroup '%.100s...' is too long", path);
	return true;
}

/* PATH as mounted here, or as the cgroup's own name below the mount. */
static bool look_option(const struct cgroup_host *host, const char *option,
			struct cgroup_parent *out)
{
	if (option[0] != '/')
		return decline(out, "it is not an absolute path");
	return text_path_below(option, host->mount.point)
		   ? put_path(out, option, "")
		   : put_path(out, host->mount.point, option);
}

static bool is_marked(const char *path)
{
	static const char *const names[] = { "trusted.delegate", "user.delegate" };
	for (size_t i = 0; i < COUNT_OF(names); i++) {
		char value[4];
		ssize_t size = getxattr(path, names[i], value, sizeof(value));
		if (size == 1 && value[0] == '1')
			return true;
		if (size < 0 && errno == ENOENT) /* no such cgroup; without the mark: ENODATA */
			return false;
	}
	return false;
}

static bool is_writable(const char *path)
{
	static const char *const names[] = { "", "/cgroup.procs", "/cgroup.subtree_control" };
	for (size_t i = 0; i < COUNT_OF(names); i++) {
		char file[CGROUP_PATH_MAX + 64];
		(void)snprintf(file, sizeof(file), "%s%s", path, names[i]);
		if (faccessat(AT_FDCWD, file, W_OK, AT_EACCESS) < 0)
			return false;
	}
	return true;
}

/* A user manager's units belong to the user; only the delegation mark makes one ours. */
static bool is_managed(const struct cgroup_host *host)
{
	char unit[64];
	(void)snprintf(unit, sizeof(unit), "/user@%u.service/", host->uid);
	return strstr(host->own_path, unit) != NULL;
}

/* The cgroup above our own: its processes have moved to a leaf, or were started in one. */
static bool is_delegated_above(const struct cgroup_host *host, const char *above, const char *leaf)
{
	/* The cejail that moved us here has checked it. */
	if (strcmp(leaf, CGROUP_SUPERVISOR_LEAF) == 0)
		return is_marked(above) || (host->uid != 0 && is_writable(above));
	/* A service with DelegateSubgroup= has the mark on the cgroup above its processes.  That of
	 * the user manager is delegated to the manager, not to us. */
	char manager[64];
	(void)snprintf(manager, sizeof(manager), "/user@%u.service", host->uid);
	return is_marked(above) && !text_ends_with(above, manager);
}

/* How to get a cgroup: a system service has a unit, but its user may have no manager. */
static const char *delegation_remedy(const struct cgroup_host *host)
{
	bool is_service = text_begins_with(host->self.path, "/system.slice/");
	return is_service ? "set Delegate=yes in the unit of this service"
			  : "run under 'systemd-run --user --scope -p Delegate=yes'";
}

static bool look_delegated(const struct cgroup_host *host, const char *option,
			   struct cgroup_parent *out)
{
	(void)option;
	if (host->own_path[0] == '\0')
		return decline(out, "our own cgroup can't be seen in '%s'", host->mount.point);

	char above[CGROUP_PATH_MAX];
	(void)snprintf(above, sizeof(above), "%s", host->own_path);
	if (strlen(host->own_path) > strlen(host->mount.point)) {
		char *slash = strrchr(above, '/');
		*slash = '\0';
		if (is_delegated_above(host, above, slash + 1))
			return put_path(out, above, "");
	}
	/* Without a mark the owner decides; root may write everywhere, which proves nothing. */
	if (is_marked(host->own_path) ||
	    (host->uid != 0 && !is_managed(host) && is_writable(host->own_path)))
		return put_path(out, host->own_path, "");
	return decline(out, "our cgroup '%s' is not delegated to us: %s", host->self.path,
		       delegation_remedy(host));
}

static bool look_user_manager(const struct cgroup_host *host, const char *option,
			      struct cgroup_parent *out)
{
	(void)option;
	if (host->uid == 0)
		return decline(out, "root makes a subtree of its own");
	if (!scope_helper_is_there(false))
		return decline(out,
			       "no user manager runs for uid %u: log in with a session, or "
			       "'loginctl enable-linger'",
			       host->uid);

	char unit[96];
	(void)snprintf(unit, sizeof(unit), "/user.slice/user-%u.slice/user@%u.service", host->uid,
		       host->uid);
	return put_path(out, host->mount.point, unit);
}

/* Afterwards this process is in a delegated cgroup of the manager: the scope, or its own unit. */
static bool claim_user_manager(const struct cgroup_host *host, const char *id,
			       struct cgroup_parent *out)
{
	struct cj_error err;
	if (scope_helper_enter(id, &err) < 0)
		return decline(out, "the user manager created no scope: %.180s", err.msg);

	struct cgroup_host moved = *host;
	read_self(&moved);
	if (!is_managed(&moved))
		return decline(out, "the user manager's scope can't be seen in '%s'",
			       host->mount.point);
	cgroup_text_leave_supervisor(moved.own_path); /* another cejail was there first */
	return put_path(out, moved.own_path, "");
}

static bool look_container(const struct cgroup_host *host, const char *option,
			   struct cgroup_parent *out)
{
	(void)option;
	if (host->at_real_root)
		return decline(out, "this is not a container with a cgroup namespace of its own");
	if (host->own_path[0] == '\0')
		return decline(out, "our own cgroup can't be seen in '%s'", host->mount.point);
	return put_path(out, host->mount.point, "");
}

static bool is_limited(const char *path, const char *name)
{
	char file[CGROUP_PATH_MAX + 64], text[64];
	(void)snprintf(file, sizeof(file), "%s/%s", path, name);
	return system_file_read(AT_FDCWD, file, text, sizeof(text)) > 0 &&
	       !text_begins_with(text, "max");
}

static bool look_own(const struct cgroup_host *host, const char *option, struct cgroup_parent *out)
{
	(void)option;
	char above[CGROUP_PATH_MAX];
	if (host->uid != 0)
		return decline(out, "only root may make a subtree of its own");
	/* Its limits can't be read, and no child could move out of our namespace. */
	if (host->own_path[0] == '\0')
		return decline(out,
			       "our own cgroup can't be seen in '%.120s': mount cgroup2 anew in "
			       "this cgroup namespace",
			       host->mount.point);
	if (faccessat(AT_FDCWD, host->mount.point, W_OK, AT_EACCESS) < 0)
		return decline(out, "write to '%.120s': %s", host->mount.point, strerror(errno));
	/* A jail below the root would escape a limit of our cgroup, or of one above it. */
	memcpy(above, host->own_path, sizeof(above));
	for (; strlen(above) > strlen(host->mount.point); *strrchr(above, '/') = '\0')
		if (is_limited(above, "memory.max") || is_limited(above, "cpu.max"))
			return decline(
			    out,
			    "'%.120s' has limits that a subtree of our own would escape: "
			    "set Delegate=yes there, or use --cgroup-parent",
			    above);
	return put_path(out, host->mount.point, "/cejail");
}

static bool claim_own(const struct cgroup_host *host, const char *id, struct cgroup_parent *out)
{
	(void)id;
	auto_fd int root_fd = open(host->mount.point, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root_fd < 0)
		return decline(out, "open '%s': %s", host->mount.point, strerror(errno));

	/* A controller that can't be enabled is missing in the subtree, which is checked later. */
	(void)cgroup_tree_enable(root_fd, NULL);
	int made = system_file_make_dir(root_fd, "cejail");
	if (made < 0 && made != -EEXIST)
		return decline(out, "make '%s': %s", out->path, strerror(-made));
	return true;
}

static const struct way {
	const char *name;
	/* Finds the parent's path and changes nothing.  False: out->why_not says why. */
	bool (*look)(const struct cgroup_host *host, const char *option, struct cgroup_parent *out);
	/* Creates a parent that doesn't exist yet; NULL: it exists. */
	bool (*claim)(const struct cgroup_host *host, const char *id, struct cgroup_parent *out);
} cgroup_parents[] = {
	{ "option", look_option, NULL },
	{ "delegated", look_delegated, NULL },
	{ "user manager", look_user_manager, claim_user_manager },
	{ "container", look_container, NULL },
	{ "own", look_own, claim_own },
};

static bool enable_or_vacate(struct cgroup_parent *out)
{
	for (unsigned round = 0; round < READY_ROUNDS; round++) {
		if (cgroup_tree_enable(out->dir_fd, out->offers) != -EBUSY)
			return true;
		int rc = cgroup_tree_vacate(out->dir_fd);
		if (rc == -EXDEV)
			return decline(out,
				       "'%.120s' also holds processes of another pid namespace",
				       out->path);
		if (rc < 0 && rc != -EBUSY)
			return decline(out, "move the processes of '%.120s' to a leaf: %s",
				       out->path, strerror(-rc));
	}
	return decline(out, "processes keep appearing in '%.120s'", out->path);
}

static void say_missing(const struct cgroup_host *host, struct cgroup_parent *out,
			enum cgroup_controller missing)
{
	const char *name = cgroup_controller_names[missing];
	if (host->self.on_v1[missing])
		(void)decline(out, ON_V1);
	else
		(void)decline(out,
			      "cgroup '%.120s' has no %s controller: enable it above, or name "
			      "it in the unit's Delegate=",
			      out->path, name);
}

static bool open_parent(struct cgroup_parent *out)
{
	auto_fd int dir_fd = open(out->path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir_fd < 0)
		return decline(out, "open '%.120s': %s", out->path, strerror(errno));
	struct statfs fs;
	if (fstatfs(dir_fd, &fs) < 0 || fs.f_type != CGROUP2_SUPER_MAGIC)
		return decline(out, "'%.120s' is not in a cgroup v2 hierarchy", out->path);
	if (faccessat(dir_fd, ".", W_OK | X_OK, AT_EACCESS) < 0)
		return decline(out, "write to '%.120s': %s", out->path, strerror(errno));
	out->dir_fd = take_fd(&dir_fd);
	return true;
}

static bool prepare(const struct cgroup_host *host, const struct way *way, const char *option,
		    const char *id, struct cgroup_parent *out)
{
	*out = (struct cgroup_parent){ .dir_fd = -1, .origin = way->name };
	if (!way->look(host, option, out) || (way->claim && !way->claim(host, id, out)) ||
	    !open_parent(out))
		return false;
	if (!enable_or_vacate(out)) {
		cj_close(&out->dir_fd);
		return false;
	}
	for (size_t i = CGROUP_CONTROLLER_COUNT; i-- > 0;)
		if (!out->offers[i])
			say_missing(host, out, (enum cgroup_controller)i);
	return true;
}

/* The most helpful sentence; else the last row's, which says why root's own subtree failed. */
static void say_none(const struct cgroup_host *host, struct cgroup_parent *out)
{
	bool has_v1 = false;
	for (size_t i = 0; i < CGROUP_CONTROLLER_COUNT; i++)
		has_v1 |= host->self.on_v1[i];
	if (has_v1)
		(void)decline(out, ON_V1);
	else if (host->mount.point[0] == '\0')
		(void)decline(out, "no cgroup v2 hierarchy is mounted here: mount one on "
				   "/sys/fs/cgroup");
	else if (host->uid != 0)
		(void)decline(out, "no delegated cgroup here: %s", delegation_remedy(host));
}

int cgroup_parent_find(const struct cgroup_host *host, const char *option, const char *id,
		       struct cgroup_parent *out, struct cj_error *err)
{
	*out = (struct cgroup_parent){ .dir_fd = -1 };
	bool is_mounted = host->mount.point[0] != '\0';
	if (option && !is_mounted)
		return cj_reject(
		    err, "cgroup parent '%.200s': no cgroup v2 hierarchy is mounted here", option);
	if (option && !prepare(host, &cgroup_parents[0], option, id, out))
		return cj_reject(err, "cgroup parent '%.200s': %s", option, out->why_not);
	if (option)
		return 0;

	char obstacle[sizeof(out->why_not)] = ""; /* of the first that was found: it has a path */
	for (size_t i = 1; i < COUNT_OF(cgroup_parents) && is_mounted && out->dir_fd < 0; i++)
		if (!prepare(host, &cgroup_parents[i], NULL, id, out) && out->path[0] != '\0' &&
		    obstacle[0] == '\0')
			memcpy(obstacle, out->why_not, sizeof(obstacle));
	if (out->dir_fd < 0)
		say_none(host, out);
	/* If a better parent couldn't be used, its sentence is the one to act on. */
	if (obstacle[0] != '\0' && out->why_not[0] != '\0')
		memcpy(out->why_not, obstacle, sizeof(out->why_not));
	return 0;
}

void cgroup_parent_claim(const struct cgroup_host *host, const char *id)
{
	bool is_found = host->mount.point[0] == '\0'; /* nothing to find */
	for (size_t i = 1; i < COUNT_OF(cgroup_parents) && !is_found; i++) {
		auto_cgroup_parent struct cgroup_parent parent = { .dir_fd = -1 };
		if (cgroup_parents[i].claim == claim_user_manager)
			is_found = prepare(host, &cgroup_parents[i], NULL, id, &parent);
		else
			is_found = cgroup_parents[i].look(host, NULL, &parent);
	}
}

void cgroup_parent_fini(struct cgroup_parent *parent)
{
	cj_close(&parent->dir_fd);
}

/* The controllers of a parent at `path`; if it doesn't exist yet, those of the cgroup above. */
static void report_controllers(const char *path, struct cgroup_parent_report *out)
{
	char dir[CGROUP_PATH_MAX], list[SYSTEM_FILE_SMALL];
	(void)snprintf(dir, sizeof(dir), "%s", path);
	if (!exists_in(dir, "cgroup.controllers") && strrchr(dir, '/'))
		*strrchr(dir, '/') = '\0';

	auto_fd int dir_fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir_fd < 0 || !cgroup_tree_read(dir_fd, "cgroup.controllers", list))
		return;
	for (size_t i = 0; i < CGROUP_CONTROLLER_COUNT; i++)
		out->controllers[i] = cgroup_text_has_word(list, cgroup_controller_names[i]);
}

static void report_way(const struct cgroup_host *host, const struct way *way,
		       struct cgroup_parent_report *out)
{
	auto_cgroup_parent struct cgroup_parent parent = { .dir_fd = -1 };
	bool serves = host->mount.point[0] != '\0' && way->look(host, NULL, &parent);
	/* A parent that claim() would create can't be opened yet. */
	if (serves && !way->claim)
		serves = open_parent(&parent);

	*out = (struct cgroup_parent_report){ .name = way->name, .serves = serves };
	if (serves)
		report_controllers(parent.path, out);
	else if (host->mount.point[0] == '\0')
		(void)decline(&parent, "no cgroup v2 hierarchy is mounted here");
	(void)snprintf(out->detail, sizeof(out->detail), "%.255s",
		       serves ? parent.path : parent.why_not);
}

size_t cgroup_parent_reports(struct cgroup_parent_report *out, size_t max)
{
	struct cgroup_host host;
	cgroup_host_read(&host);

	size_t count = 0;
	for (size_t i = 1; i < COUNT_OF(cgroup_parents) && count < max;
	     i++) /* row 0 is the option */
		report_way(&host, &cgroup_parents[i], &out[count++]);
	return count;
}
