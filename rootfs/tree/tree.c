/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mounts on a root file system that may be hostile.
 *
 * Theory of operation.  Kernels before 6.15 attach mounts only beneath mounts of the caller's
 * namespace.  So the root is cloned and attached on its own directory first; everything else goes
 * beneath that clone, by descriptor.
 *
 * A mount at /dev, /proc or /sys is remembered by its descriptor, its anchor.  From then on every
 * path below it begins there, not at the root: another container that shares the root may rename
 * these directories between two steps, and a mask would miss its procfs.
 */
#include "rootfs/tree/tree.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "rootfs/rootfs.h"
#include "rootfs/tree/tree_parts.h"
#include "rootfs/tree_place.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"
#include "runtime/base/text.h"

/* Places where only real directories count, and what may be mounted there; 0: anything. */
static const struct {
	const char *path;
	long magic;
	const char *what;
} anchor_rows[] = {
	{ "/dev", 0, NULL },
	{ "/proc", PROC_SUPER_MAGIC, "a procfs" },
	{ "/sys", SYSFS_MAGIC, "a sysfs" },
};
/* The only files of a procfs that something else may be mounted over: they inform, and a program of
 * ours writes none of them. */
static const char *const proc_files[] = {
	"/proc/cpuinfo",  "/proc/diskstats", "/proc/loadavg", "/proc/meminfo",
	"/proc/slabinfo", "/proc/stat",      "/proc/swaps",   "/proc/uptime",
};

struct tree_sources {
	int root_fd; /* the directory, before it is mounted on itself */
	struct tree_masks masks;
	int anchor_fds[COUNT_OF(anchor_rows)]; /* what we mounted there; -1: nothing */
	int *mount_fds;                        /* for each operation, a detached mount; -1: none */
	size_t count;
};

void tree_close(struct tree_sources **sources)
{
	struct tree_sources *s = *sources;
	if (!s)
		return;
	cj_close(&s->root_fd);
	cj_close(&s->masks.null_fd);
	cj_close(&s->masks.empty_fd);
	for (size_t i = 0; i < COUNT_OF(anchor_rows); i++)
		cj_close(&s->anchor_fds[i]);
	for (size_t i = 0; i < s->count; i++)
		cj_close(&s->mount_fds[i]);
	free(s->mount_fds);
	free(s);
	*sources = NULL;
}

#define auto_tree __attribute__((cleanup(tree_close)))

static struct tree_sources *sources_new(const struct tree_spec *spec)
{
	auto_tree struct tree_sources *s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	s->root_fd = -1;
	s->masks = (struct tree_masks){ .null_fd = -1, .empty_fd = -1 };
	for (size_t i = 0; i < COUNT_OF(anchor_rows); i++)
		s->anchor_fds[i] = -1;
	s->mount_fds = calloc(spec->nops + 1, sizeof(*s->mount_fds));
	if (!s->mount_fds)
		return NULL;
	for (s->count = 0; s->count < spec->nops; s->count++)
		s->mount_fds[s->count] = -1;
	return take_ptr(s);
}

int tree_open_outside(const struct tree_spec *spec, const char *base, struct tree_sources **out,
		      struct cj_error *err)
{
	auto_tree struct tree_sources *s = sources_new(spec);
	if (!s)
		return cj_fail(err, ENOMEM, "list the mounts");
	auto_fd int base_fd = open(base, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (base_fd < 0)
		return cj_fail(err, errno, "open '%s'", base);
	for (size_t i = 0; i < spec->nops; i++) {
		if (!spec->ops[i].ids.uid_map)
			continue;
		s->mount_fds[i] = tree_mount_bind(&spec->ops[i], base_fd, err);
		if (s->mount_fds[i] < 0)
			return cj_wrap(err, "mount '%s'", spec->ops[i].path);
	}
	*out = take_ptr(s);
	return 0;
}

/* As peers of the host's, the mounts of this namespace would take ours to the host; as slaves they
 * still receive its mounts, for a bind with rslave. */
static int stop_propagation(const struct tree_spec *spec, struct cj_error *err)
{
	if (spec->keeps_peers || mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) == 0)
		return 0;
	(void)!cj_fail(err, errno, "make the mounts of '/' slaves");
	return cj_hint_for(err, EINVAL,
			   "'/' must be a mount point: before chroot(8), mount the directory on "
			   "itself");
}

int tree_open_sources(const struct tree_spec *spec, struct tree_sources *s, struct cj_error *err)
{
	if (stop_propagation(spec, err) < 0)
		return -err->code;
	auto_fd int dev_fd = open("/dev", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dev_fd < 0)
		return cj_fail(err, errno, "open '/dev'");
	s->masks.label = spec->mount_label;
	if (tree_mask_open(&s->masks, dev_fd, err) < 0)
		return -err->code;
	s->root_fd =
	    sys_openat2(AT_FDCWD, spec->root, O_PATH | O_DIRECTORY, 0, RESOLVE_NO_MAGICLINKS);
	if (s->root_fd < 0)
		return cj_fail(err, errno, "open the root file system '%s'", spec->root);
	for (size_t i = 0; i < spec->nops; i++) {
		if (spec->ops[i].kind != TREE_BIND || s->mount_fds[i] >= 0)
			continue;
		s->mount_fds[i] = tree_mount_bind(&spec->ops[i], AT_FDCWD, err);
		if (s->mount_fds[i] < 0)
			return cj_wrap(err, "mount '%s'", spec->ops[i].path);
	}
	return 0;
}

/* A descriptor of the root of the mount that fd lies in. */
static int open_mount_root(int fd, struct cj_error *err)
{
	auto_fd int at_fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	for (;;) {
		struct statx st;
		if (at_fd < 0 || statx(at_fd, "", AT_EMPTY_PATH, STATX_TYPE, &st) < 0)
			return cj_fail(err, errno, "find the mount of the root file system");
		if (st.stx_attributes & STATX_ATTR_MOUNT_ROOT)
			return take_fd(&at_fd);
		int up_fd = openat(at_fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
		cj_close(&at_fd);
		at_fd = up_fd;
	}
}

/*
 * With peers on the host: what is attached in a peer appears on the host, and pivot_root(2) refuses
 * peers.  So the two mounts that matter are private: "/" and the one below the root.
 */
static int leave_peers(const struct tree_spec *spec, const struct tree_sources *s,
		       struct cj_error *err)
{
	if (!spec->keeps_peers)
		return 0;
	auto_fd int mount_fd = open_mount_root(s->root_fd, err);
	if (mount_fd < 0)
		return mount_fd;
	struct mount_attr wanted = { .propagation = MS_PRIVATE };
	if (sys_mount_setattr(mount_fd, "", AT_EMPTY_PATH, &wanted) < 0 ||
	    mount(NULL, "/", NULL, MS_PRIVATE, NULL) < 0)
		return cj_fail(err, errno, "make the mount of the root file system private");
	return 0;
}

/* As a slave it receives the host's mounts below the root, but never sends ours. */
static int mount_root(const struct tree_spec *spec, const struct tree_sources *s,
		      struct cj_error *err)
{
	if (leave_peers(spec, s, err) < 0)
		return -err->code;
	auto_fd int tree_fd = tree_mount_clone(s->root_fd, true, spec->root, err);
	if (tree_fd < 0)
		return tree_fd;
	const struct tree_attrs attrs = {
		.propagation = spec->propagation == MS_SLAVE ? MS_SLAVE : MS_PRIVATE,
		.propagates_below = true,
	};
	if (tree_mount_restrict(tree_fd, &attrs, spec->root, err) < 0 ||
	    mounts_attach(tree_fd, s->root_fd, spec->root, err) < 0)
		return -err->code;
	return take_fd(&tree_fd);
}

/* A path begins at the anchor above it, if there is one.  A device or link at an anchor's place
 * follows no link, either. */
static struct tree_path find_start(const struct tree_sources *s, int root_fd, const char *path)
{
	struct tree_path at = { root_fd, path, path, true };
	for (size_t i = 0; i < COUNT_OF(anchor_rows); i++) {
		const char *rest = text_path_below(path, anchor_rows[i].path);
		if (!rest)
			continue;
		at.follows_links = false;
		if (s->anchor_fds[i] >= 0 && *rest == '/') {
			at.dir_fd = s->anchor_fds[i];
			at.path = rest;
		}
	}
	return at;
}

static int open_place(const struct tree_sources *s, int root_fd, const char *path,
		      enum tree_place place, struct cj_error *err)
{
	const struct tree_path at = find_start(s, root_fd, path);
	return tree_place_open(&at, place, err);
}

static int get_magic(int fd, const char *name, long *out, struct cj_error *err)
{
	struct statfs fs;
	if (fstatfs(fd, &fs) < 0)
		return cj_fail(err, errno, "look at '%s'", name);
	*out = fs.f_type;
	return 0;
}

/* What is mounted at /proc and /sys, and what is mounted in a procfs and sysfs. */
static int check_mount(const struct tree_op *op, int tree_fd, int place_fd, struct cj_error *err)
{
	long tree = 0, place = 0;
	if (get_magic(tree_fd, op->path, &tree, err) < 0 ||
	    get_magic(place_fd, op->path, &place, err) < 0)
		return -err->code;
	for (size_t i = 0; i < COUNT_OF(anchor_rows); i++)
		if (strcmp(op->path, anchor_rows[i].path) == 0 && anchor_rows[i].magic &&
		    tree != anchor_rows[i].magic)
			return cj_reject(err, "at '%s' there may only be %s", op->path,
					 anchor_rows[i].what);
	bool is_allowed = strcmp(op->path, "/proc") == 0;
	for (size_t i = 0; i < COUNT_OF(proc_files); i++)
		is_allowed |= strcmp(op->path, proc_files[i]) == 0;
	if (place == PROC_SUPER_MAGIC && !is_allowed)
		return cj_reject(err, "'%s' is in a procfs: nothing may be mounted there",
				 op->path);
	if (place == SYSFS_MAGIC && !text_path_below(op->path, "/sys"))
		return cj_reject(err, "a link leads '%s' into a sysfs", op->path);
	return 0;
}

/* Keeps the mount's descriptor when it is an anchor. */
static int keep_anchor(struct tree_sources *s, const char *path, int tree_fd, struct cj_error *err)
{
	for (size_t i = 0; i < COUNT_OF(anchor_rows); i++) {
		if (strcmp(path, anchor_rows[i].path) != 0)
			continue;
		cj_close(&s->anchor_fds[i]);
		s->anchor_fds[i] = fcntl(tree_fd, F_DUPFD_CLOEXEC, 0);
		if (s->anchor_fds[i] < 0)
			return cj_fail(err, errno, "keep the mount at '%s'", path);
	}
	return 0;
}

static bool has_option(const struct tree_op *op, const char *key)
{
	for (size_t i = 0; i < op->noptions; i++)
		if (strcmp(op->options[i].key, key) == 0)
			return true;
	return false;
}

/* The mode of the covered directory, with tmpcopyup its files and owner, too; but what the options
 * say counts. */
static int imitate(const struct tree_op *op, int place_fd, int tree_fd, struct cj_error *err)
{
	struct stat covered, asked;
	auto_fd int to_fd = openat(tree_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (to_fd < 0 || fstat(to_fd, &asked) < 0 || fstat(place_fd, &covered) < 0)
		return cj_fail(err, errno, "look at '%s' of the root file system", op->path);
	if (op->copies_up) {
		auto_fd int from_fd = openat(place_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (from_fd < 0)
			return cj_fail(err, errno, "open '%s' of the root file system", op->path);
		if (tree_copy(from_fd, to_fd, op->path, err) < 0)
			return -err->code;
	}
	uid_t uid = has_option(op, "uid") ? asked.st_uid : (uid_t)-1;
	gid_t gid = has_option(op, "gid") ? asked.st_gid : (gid_t)-1;
	mode_t mode = has_option(op, "mode") ? asked.st_mode : covered.st_mode;
	if (fchown(to_fd, uid, gid) < 0 || fchmod(to_fd, mode & 07777) < 0)
		return cj_fail(err, errno, "set the owner or mode of '%s'", op->path);
	return 0;
}

static int attach(const struct tree_op *op, struct tree_sources *s, int root_fd, int tree_fd,
		  struct cj_error *err)
{
	struct stat st;
	if (fstat(tree_fd, &st) < 0)
		return cj_fail(err, errno, "look at '%s'", op->path);
	enum tree_place kind = S_ISDIR(st.st_mode) ? TREE_PLACE_DIRECTORY : TREE_PLACE_FILE;
	/* A new tmpfs covers a directory of the image: then it is like that directory. */
	struct cj_error none = { 0 }; /* open_place() below reports it */
	auto_fd int covered_fd = op->kind == TREE_FS && strcmp(op->type, "tmpfs") == 0
				     ? open_place(s, root_fd, op->path, TREE_PLACE_GIVEN, &none)
				     : -1;
	auto_fd int place_fd = open_place(s, root_fd, op->path, kind, err);
	if (place_fd < 0)
		return place_fd;
	if (check_mount(op, tree_fd, place_fd, err) < 0 ||
	    (covered_fd >= 0 && imitate(op, place_fd, tree_fd, err) < 0) ||
	    mounts_attach(tree_fd, place_fd, op->path, err) < 0)
		return -err->code;
	return keep_anchor(s, op->path, tree_fd, err);
}

static int do_operation(const struct tree_op *op, struct tree_sources *s, int *mount_fd,
			int root_fd, struct cj_error *err)
{
	const struct tree_path at = find_start(s, root_fd, op->path);
	auto_fd int made_fd = -1;
	switch (op->kind) {
	case TREE_DIRECTORY:
		made_fd = tree_place_open(&at, TREE_PLACE_DIRECTORY, err);
		return made_fd < 0 ? made_fd : 0;
	case TREE_FILE:
		made_fd = tree_place_open(&at, TREE_PLACE_FILE, err);
		return made_fd < 0 ? made_fd : 0;
	case TREE_LINK:
		return tree_node_add_link(&at, op->source, err);
	case TREE_DEVICE:
		return tree_node_add_device(&at, op, err);
	case TREE_FS:
		*mount_fd = tree_mount_create(op, err);
		return *mount_fd < 0 ? *mount_fd : attach(op, s, root_fd, *mount_fd, err);
	case TREE_BIND:
		return attach(op, s, root_fd, *mount_fd, err);
	default:
		return cj_reject(err, "'%s': no such operation", op->path);
	}
}

static int do_operations(const struct tree_spec *spec, struct tree_sources *s, int root_fd,
			 struct cj_error *err)
{
	for (size_t i = 0; i < spec->nops; i++) {
		if (do_operation(&spec->ops[i], s, &s->mount_fds[i], root_fd, err) < 0)
			return cj_wrap(err, "mount '%s'", spec->ops[i].path);
		if (!tree_mount_is_late(&spec->ops[i]))
			cj_close(&s->mount_fds[i]);
	}
	return 0;
}

int tree_build(const struct tree_spec *spec, struct tree_sources *s, struct cj_error *err)
{
	mode_t saved = umask(0); /* modes here are exact */
	auto_fd int root_fd = mount_root(spec, s, err);
	int rc = root_fd < 0 ? root_fd : do_operations(spec, s, root_fd, err);
	(void)umask(saved);
	return rc < 0 ? rc : take_fd(&root_fd);
}

/* Covers what is at place_fd by a read-only clone of it and of the mounts below it. */
static int make_read_only(struct tree_masks *masks, int place_fd, const char *name,
			  struct cj_error *err)
{
	(void)masks;
	auto_fd int tree_fd = mounts_clone(place_fd, "", MOUNT_ATTR_RDONLY, name, err);
	return tree_fd < 0 ? tree_fd : mounts_attach(tree_fd, place_fd, name, err);
}

/* Covers each of the paths that exist. */
static int cover_all(const struct strings *paths, struct tree_sources *s, int root_fd,
		     int (*cover)(struct tree_masks *masks, int place_fd, const char *name,
				  struct cj_error *err),
		     struct cj_error *err)
{
	for (size_t i = 0; i < paths->count; i++) {
		auto_fd int fd = open_place(s, root_fd, paths->items[i], TREE_PLACE_GIVEN, err);
		if (fd == -ENOENT || fd == -ENOTDIR)
			*err = (struct cj_error){ 0 };
		else if (fd < 0 || cover(&s->masks, fd, paths->items[i], err) < 0)
			return -err->code;
	}
	return 0;
}

int tree_finish(const struct tree_spec *spec, struct tree_sources *s, int root_fd,
		struct cj_error *err)
{
	if (cover_all(&spec->read_only, s, root_fd, make_read_only, err) < 0)
		return cj_wrap(err, "make read-only");
	if (cover_all(&spec->masked, s, root_fd, tree_mask_cover, err) < 0)
		return cj_wrap(err, "mask");
	/* Late mounts: what is mounted or made below them is there by now. */
	for (size_t i = 0; i < spec->nops; i++)
		if (s->mount_fds[i] >= 0 &&
		    mounts_restrict(s->mount_fds[i], MOUNT_ATTR_RDONLY, spec->ops[i].path, err) < 0)
			return cj_wrap(err, "make read-only");
	return 0;
}

int tree_enter(const struct tree_spec *spec, int root_fd, struct cj_error *err)
{
	if (!spec->keeps_peers)
		return rootfs_enter(root_fd, err);
	return mounts_pivot_from_peers(root_fd, err) < 0 ? -err->code : rootfs_check_entered(err);
}

int tree_seal(const struct tree_spec *spec, struct cj_error *err)
{
	const struct tree_attrs attrs = {
		.set = spec->is_read_only ? MOUNT_ATTR_RDONLY : 0,
		.propagation = spec->propagation ? spec->propagation : MS_PRIVATE,
	};
	auto_fd int root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root_fd < 0)
		return cj_fail(err, errno, "open '/'");
	return tree_mount_restrict(root_fd, &attrs, "/", err);
}
