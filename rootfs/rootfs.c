/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens, builds and enters the jail's tree.
 *
 * Theory of operation.  Kernels before 6.15 attach mounts only beneath mounts of the
 * caller's namespace, and clone and overlay only such mounts.  So a new tree is first
 * parked: attached on a clone of the old root's /dev, whose nodes are mounted from there.
 * All further mounts go beneath the parked root.  Then pivot_root(2) makes it the root,
 * and the old root is detached with all that is parked.
 *
 * New file systems, and what is open, are mounted by path and mount(2), which is one call where the
 * calls by descriptor are eight, or two: no process but init can reach these places, and a path
 * leads through nothing but directories of the skeleton.
 */
#include "rootfs/rootfs.h"

#include <assert.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>

#include "rootfs/layers.h"
#include "rootfs/mounts.h"
#include "rootfs/rootfs_parts.h"
#include "rootfs/skeleton.h"
#include "runtime/base/files/fd.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"

struct rootfs_sources {
	struct arena arena;
	int park_fd; /* a clone of the old root's /dev, attached on it by build() */
	struct rootfs_entries common; /* devices, and of ROOT_HOST the host's files */
	size_t usr;                   /* of `common`, of ROOT_HOST */
	struct layers layers;         /* ROOT_LAYERS */
	struct rootfs_entries binds;
};

int rootfs_entries_add(struct rootfs_entries *list, const struct rootfs_entry *entry,
		       struct cj_error *err)
{
	if (arena_append(list->arena, list->items, list->count, *entry))
		return 0;
	int fd = entry->fd;
	cj_close(&fd);
	return cj_fail(err, ENOMEM, "list the mounts of the jail");
}

static void entries_close(struct rootfs_entries *list)
{
	for (size_t i = 0; i < list->count; i++)
		fd_bag_add(&list->opened, list->items[i].fd);
	fd_bag_close(&list->opened);
	list->count = 0;
}

/* Links, copies and mount points in the skeleton. */
static int add_places(const struct rootfs_entries *list, struct skeleton *skeleton,
		      struct cj_error *err)
{
	int rc = 0;
	for (size_t i = 0; i < list->count && rc == 0; i++) {
		const struct rootfs_entry *e = &list->items[i];
		if (e->link)
			rc = skeleton_add_link(skeleton->fd, e->path + 1, e->link, err);
		else if (e->is_copied)
			rc = skeleton_add_copy(skeleton, e->path + 1, e->fd, e->size, err);
		else
			rc = skeleton_add_place(skeleton->fd, e->path + 1, e->is_dir, err);
	}
	return rc;
}

static int attach_entries(const struct rootfs_entries *list, size_t first, size_t end,
			  struct cj_error *err)
{
	for (size_t i = first; i < end; i++) {
		const struct rootfs_entry *e = &list->items[i];
		char place[sizeof(ROOTFS_PARK) + PATH_MAX];
		if (e->fd < 0 || e->is_copied)
			continue;
		(void)snprintf(place, sizeof(place), ROOTFS_PARK "%s", e->path);
		int rc = e->is_detached ? mounts_attach_at(e->fd, place, e->path, err)
					: mounts_bind(e->fd, "", place, e->path, err);
		if (rc < 0)
			return rc;
	}
	return 0;
}

static void sources_free(struct rootfs_sources **sources)
{
	struct rootfs_sources *s = *sources;
	if (!s)
		return;
	fd_bag_add(&s->common.opened, take_fd(&s->park_fd));
	entries_close(&s->common);
	layers_close(&s->layers);
	entries_close(&s->binds);
	arena_fini(&s->arena);
	free(s);
	*sources = NULL;
}

#define auto_sources __attribute__((cleanup(sources_free)))

int rootfs_open_sources(const struct rootfs_spec *spec, struct rootfs_sources **out,
			struct cj_error *err)
{
	auto_sources struct rootfs_sources *s = calloc(1, sizeof(*s));
	if (!s)
		return cj_fail(err, ENOMEM, "open the sources of the tree");
	s->park_fd = -1;
	s->common.arena = s->binds.arena = &s->arena;

	/* Before anything is attached: no mount may propagate to the host's namespace. */
	struct mount_attr private = { .propagation = MS_PRIVATE };
	if (sys_mount_setattr(AT_FDCWD, "/", AT_RECURSIVE, &private) < 0)
		return cj_fail(err, errno, "make the mounts of '/' private");

	int rc = devices_open(&s->common, spec->tty, &s->park_fd, err);
	s->usr = s->common.count;
	if (rc == 0 && spec->kind == ROOT_HOST)
		rc = host_open(&s->common, err);
	else if (rc == 0)
		rc = layers_open(&s->layers, &spec->layers, &s->arena, err);
	if (rc < 0 || binds_open(&s->binds, spec, &s->layers, err) < 0)
		return -err->code;
	*out = take_ptr(s);
	return 0;
}

int rootfs_adopt_lowers(struct rootfs_sources *sources, const struct rootfs_spec *spec, int *fds,
			size_t count, struct cj_error *err)
{
	return binds_adopt_lowers(&sources->binds, spec, fds, count, err);
}

static int make_skeleton(const struct rootfs_spec *spec, const struct rootfs_sources *s,
			 struct cj_error *err)
{
	auto_skeleton struct skeleton skeleton = SKELETON_NULL;
	if (skeleton_create(&skeleton, spec, err) < 0 ||
	    add_places(&s->common, &skeleton, err) < 0 || add_places(&s->binds, &skeleton, err) < 0)
		return -err->code;
	return take_fd(&skeleton.fd);
}

/* Read-only if `upper` is NULL, else with `upper` and `work` of the scratch above it. */
static int join(struct overlay *overlay, int scratch_fd, const char *upper, const char *work,
		struct cj_error *err)
{
	const int flags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	auto_fd int upper_fd = upper ? openat(scratch_fd, upper, flags) : -1;
	if (upper && upper_fd < 0)
		return cj_fail(err, errno, "open '%s' of the scratch", upper);
	auto_fd int work_fd = upper ? openat(scratch_fd, work, flags) : -1;
	if (upper && work_fd < 0)
		return cj_fail(err, errno, "open '%s' of the scratch", work);

	overlay->upper_fd = upper_fd;
	overlay->work_fd = work_fd;
	return layers_join(overlay, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, err);
}

/* The skeleton itself, or an overlay with it on top; parked, because mounts go beneath it. */
static int make_root(const struct rootfs_spec *spec, const struct rootfs_sources *s, int scratch_fd,
		     struct cj_error *err)
{
	auto_fd int skeleton_fd = make_skeleton(spec, s, err);
	if (skeleton_fd < 0)
		return skeleton_fd;
	if (spec->kind == ROOT_HOST && !spec->writable)
		return take_fd(&skeleton_fd);

	struct overlay overlay = { .name = "/", .top_fd = skeleton_fd, .below = s->layers };
	const char *upper = spec->writable ? SCRATCH_ROOT_UPPER : NULL;
	auto_fd int root_fd = join(&overlay, scratch_fd, upper, SCRATCH_ROOT_WORK, err);
	if (root_fd < 0)
		return root_fd;
	if (mounts_attach(root_fd, s->park_fd, "root", err) < 0)
		return -err->code;
	return take_fd(&root_fd);
}

/* /usr was opened as a plain directory: put the overlay over it in its place. */
static int overlay_usr(struct rootfs_sources *s, int scratch_fd, struct cj_error *err)
{
	struct rootfs_entry *usr = &s->common.items[s->usr];
	struct overlay overlay = { .name = "/usr", .top_fd = usr->fd };
	int fd = join(&overlay, scratch_fd, SCRATCH_USR_UPPER, SCRATCH_USR_WORK, err);
	if (fd < 0)
		return fd;
	cj_close(&usr->fd);
	usr->fd = fd;
	usr->is_detached = true;
	return 0;
}

#define PROC_ATTRS (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC)

/* A new procfs of this pid namespace.  The kernel compares it with an existing one: it must not
 * show what is masked outside (mount_too_revealing), so this comes before the old root is detached.
 */
static int attach_proc(struct cj_error *err)
{
	if (mounts_add("proc", ROOTFS_PARK "/proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL, err) ==
	    0)
		return 0;
	return cj_hint_for(err, EPERM,
			   "parts of the outer /proc are masked, as in a container, so the kernel "
			   "allows no new one; see 'cejail doctor'");
}

static int attach_all(const struct rootfs_spec *spec, struct rootfs_sources *s, int scratch_fd,
		      int root_fd, struct cj_error *err)
{
	const bool has_usr = spec->kind == ROOT_HOST;
	const size_t public = s->usr + (has_usr && spec->writable ? 1 : 0);
	if (has_usr && spec->writable && overlay_usr(s, scratch_fd, err) < 0)
		return -err->code;
	/* The host's files and the root get their attributes in one call.  What is attached later
	 * has its own. */
	if (attach_entries(&s->common, public, s->common.count, err) < 0 ||
	    mounts_restrict_all(root_fd, HOST_ATTRS, "/", err) < 0 ||
	    (spec->writable && mounts_open_for_writing(root_fd, "/", err) < 0) ||
	    attach_entries(&s->common, 0, public, err) < 0)
		return -err->code;
	if (attach_proc(err) < 0 || devices_attach_terminals(err) < 0 ||
	    scratch_attach(scratch_fd, err) < 0)
		return -err->code;
	/* Last: a bind below /box or /tmp must lie on the scratch, not under it. */
	return binds_attach(&s->binds, spec, scratch_fd, root_fd, err);
}

static int build(const struct rootfs_spec *spec, struct rootfs_sources *s, struct cj_error *err)
{
	/* All sources have been opened: one below /dev must not get the attributes of the clone. */
	if (mounts_attach_at(s->park_fd, ROOTFS_PARK, ROOTFS_PARK, err) < 0)
		return -err->code;
	auto_fd int scratch_fd = scratch_create(spec, err);
	if (scratch_fd < 0)
		return scratch_fd;
	/* Overlays before the root: what is parked after it would lie on top of it. */
	if (binds_mount_overlays(&s->binds, spec, scratch_fd, s->park_fd, err) < 0 ||
	    scratch_make_tmpfs(&s->binds, spec, scratch_fd, err) < 0)
		return -err->code;

	auto_fd int root_fd = make_root(spec, s, scratch_fd, err);
	if (root_fd < 0 || attach_all(spec, s, scratch_fd, root_fd, err) < 0)
		return -err->code;
	fd_bag_add(&s->common.opened, take_fd(&scratch_fd));
	return take_fd(&root_fd);
}

int rootfs_build(const struct rootfs_spec *spec, struct rootfs_sources **sources,
		 struct cj_error *err)
{
	auto_sources struct rootfs_sources *s = take_ptr(*sources);

	(void)umask(0); /* modes here are exact */
	int root_fd = build(spec, s, err);
	(void)umask(022);
	return root_fd;
}

int rootfs_check_entered(struct cj_error *err)
{
	char where[PATH_MAX];
	if (!getcwd(where, sizeof(where)))
		return cj_fail(err, errno, "get the working directory");
	if (strcmp(where, "/") != 0) /* "(unreachable)...": getcwd(2) */
		return cj_reject(err, "the new root is not '/' but '%s'", where);
	return 0;
}

int rootfs_enter(int root_fd, struct cj_error *err)
{
	return mounts_pivot(root_fd, err) < 0 ? -err->code : rootfs_check_entered(err);
}

/* Settings: readable, because programs read some (cap_last_cap, overcommit, pid_max).  Read-only,
 * because some belong to the jail's user, and pid_max is writable inside since Linux 6.14. */
static const char *const read_only_names[] = { "bus", "fs", "irq", "sys" };

enum masked_kind {
	MASKED_FILE,
	/* Looked at first: most kernels do not have it, or let only the host's root open it.  That
	 * user does not exist in the jail. */
	MASKED_RARE_FILE,
	MASKED_DIR,
	MASKED_RARE_DIR,
};

/* meminfo, cpuinfo, stat, uptime, loadavg, version, filesystems, vmstat stay: runtimes choose
 * sizes by them.  A path that this kernel does not have is skipped. */
static const struct masked {
	const char *name;
	enum masked_kind kind;
} masked[] = {
	/* where the kernel lies in memory: the first step of most exploits */
	{ "kallsyms", MASKED_FILE },
	{ "kcore", MASKED_RARE_FILE },
	{ "iomem", MASKED_FILE },
	{ "ioports", MASKED_FILE },
	{ "modules", MASKED_RARE_FILE },
	{ "slabinfo", MASKED_RARE_FILE },
	{ "vmallocinfo", MASKED_RARE_FILE },
	{ "timer_list", MASKED_RARE_FILE },
	{ "latency_stats", MASKED_RARE_FILE },
	/* the kernel's log, build and command line: these have contained passwords */
	{ "kmsg", MASKED_RARE_FILE },
	{ "cmdline", MASKED_FILE },
	{ "bootconfig", MASKED_RARE_FILE },
	{ "config.gz", MASKED_FILE },
	/* other users' keys, by name and number: keyrings(7) */
	{ "keys", MASKED_FILE },
	{ "key-users", MASKED_FILE },
	/* the machine's hardware and its use by others */
	{ "acpi", MASKED_DIR },
	{ "asound", MASKED_RARE_DIR },
	{ "scsi", MASKED_RARE_DIR },
	{ "diskstats", MASKED_FILE },
	{ "partitions", MASKED_FILE },
	{ "interrupts", MASKED_FILE },
	/* pressure stall information; since Linux 6.6 a write makes the kernel monitor it */
	{ "pressure", MASKED_DIR },
	/* commands to the kernel */
	{ "sysrq-trigger", MASKED_RARE_FILE },
};

struct proc_path {
	char text[64];
};

static struct proc_path path_in_proc(const char *name)
{
	struct proc_path path;
	int size = snprintf(path.text, sizeof(path.text), "/proc/%s", name);
	assert(size > 0 && (size_t)size < sizeof(path.text));
	return path;
}

/* Checks that "/proc" is a procfs, and "/dev/null" the real device, which is bound over files. */
static int check_places(int proc_fd, struct cj_error *err)
{
	struct statfs fs;
	struct stat null;
	if (fstatfs(proc_fd, &fs) < 0)
		return cj_fail(err, errno, "look at '/proc'");
	if (fs.f_type != PROC_SUPER_MAGIC)
		return cj_reject(err, "'/proc' is no procfs");
	if (fstatat(AT_FDCWD, "/dev/null", &null, AT_SYMLINK_NOFOLLOW) < 0)
		return cj_fail(err, errno, "look at '/dev/null'");
	return mounts_check_device(&null, "/dev/null", 1, 3, err);
}

/* All in one call: each is a mount of its own, /proc with them becomes read-only, and /proc alone
 * writable again. */
static int make_settings_read_only(int proc_fd, struct cj_error *err)
{
	for (size_t i = 0; i < COUNT_OF(read_only_names); i++) {
		const struct proc_path path = path_in_proc(read_only_names[i]);
		if (mount(path.text, path.text, NULL, MS_BIND, NULL) < 0 && errno != ENOENT)
			return cj_fail(err, errno, "make '%s' read-only", path.text);
	}
	if (mounts_restrict_all(proc_fd, PROC_ATTRS | MOUNT_ATTR_RDONLY, "/proc", err) < 0)
		return -err->code;
	return mounts_open_for_writing(proc_fd, "/proc", err);
}

/* Returns 1 when there is something to mask, 0, or -1 with errno. */
static int is_shown(int proc_fd, const struct masked *m, uid_t uid)
{
	struct stat st;
	if (m->kind != MASKED_RARE_FILE && m->kind != MASKED_RARE_DIR)
		return 1;
	if (fstatat(proc_fd, m->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -1;
	return S_ISDIR(st.st_mode) || (st.st_mode & 0077) != 0 || st.st_uid == uid;
}

static int mask(int proc_fd, const struct masked *m, uid_t uid, struct cj_error *err)
{
	const struct proc_path path = path_in_proc(m->name);
	const bool is_dir = m->kind == MASKED_DIR || m->kind == MASKED_RARE_DIR;
	int rc = is_shown(proc_fd, m, uid);
	if (rc > 0 && is_dir)
		rc = mount("tmpfs", path.text, "tmpfs",
			   MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC,
			   "mode=0555,size=4k,nr_inodes=2");
	else if (rc > 0)
		rc = mount("/dev/null", path.text, NULL, MS_BIND, NULL);
	return rc < 0 && errno != ENOENT ? cj_fail(err, errno, "mask '%s'", path.text) : 0;
}

/* By mount(2) and paths: only init has used this tree so far, and both ends are checked first. */
int rootfs_mask_proc(int proc_fd, uid_t uid, struct cj_error *err)
{
	if (check_places(proc_fd, err) < 0 || make_settings_read_only(proc_fd, err) < 0)
		return -err->code;
	for (size_t i = 0; i < COUNT_OF(masked); i++)
		if (mask(proc_fd, &masked[i], uid, err) < 0)
			return -err->code;
	return 0;
}

size_t rootfs_list_writable(const struct rootfs_spec *spec, const char **out_places)
{
	size_t count = 0;
	for (size_t i = 0; i < spec->nbinds; i++) {
		enum bind_kind kind = spec->binds[i].kind;
		if (kind == BIND_WRITABLE || kind == BIND_KEPT || kind == BIND_OVERLAY ||
		    kind == BIND_TMPFS)
			out_places[count++] = spec->binds[i].target;
	}
	return count;
}

size_t rootfs_count_overlays(const struct rootfs_spec *spec)
{
	size_t count = 0;
	for (size_t i = 0; i < spec->nbinds; i++)
		count += spec->binds[i].kind == BIND_OVERLAY;
	return count;
}

static int open_overlays(const struct rootfs_spec *spec, struct rootfs_handles *out,
			 struct cj_error *err)
{
	for (size_t i = 0; i < spec->nbinds && out->noverlays < OVERLAYS_MAX; i++) {
		if (spec->binds[i].kind != BIND_OVERLAY)
			continue;
		int fd = sys_openat2(AT_FDCWD, spec->binds[i].target, O_PATH | O_DIRECTORY, 0,
				     RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
		if (fd < 0)
			return cj_fail(err, errno, "open '%s'", spec->binds[i].target);
		out->overlay_fds[out->noverlays++] = fd;
	}
	return 0;
}

int rootfs_open_handles(const struct rootfs_spec *spec, int root_fd, struct rootfs_handles *out,
			struct cj_error *err)
{
	auto_fd int kept_root_fd = root_fd;
	const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	auto_fd int box_fd = open("/box", flags);
	if (box_fd < 0)
		return cj_fail(err, errno, "open '/box'");
	auto_fd int proc_fd = open("/proc", flags);
	if (proc_fd < 0)
		return cj_fail(err, errno, "open '/proc'");

	struct rootfs_handles handles = { 0 };
	if (open_overlays(spec, &handles, err) < 0) {
		while (handles.noverlays > 0)
			cj_close(&handles.overlay_fds[--handles.noverlays]);
		return -err->code;
	}
	handles.box_fd = take_fd(&box_fd);
	handles.root_fd = take_fd(&kept_root_fd);
	handles.proc_fd = take_fd(&proc_fd);
	*out = handles;
	return 0;
}
