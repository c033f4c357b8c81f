/* SPDX-License-Identifier: Apache-2.0 */
/* Opens and attaches the host paths of the caller. */
#include "rootfs/rootfs_parts.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "rootfs/mounts.h"
#include "rootfs/tree_place.h"
#include "runtime/base/files/fd.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"

static const struct {
	const char *option;
	uint64_t attrs;
} bind_kinds[] = {
	/* Links in a read-only tree are the host's own, and venvs are made of them. */
	[BIND_READ_ONLY] = { "--ro-bind",
			     MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV },
	/* In a writable tree a jail could plant a link for the next jail that uses it. */
	[BIND_WRITABLE] = { "--bind",
			    MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOSYMFOLLOW },
	/* Only jails of the same server use it, and package managers link to their programs. */
	[BIND_KEPT] = { "--cache", MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV },
	/* Connecting does not write to the file system: only the socket's mode counts, unix(7). */
	[BIND_SOCKET] = { "--connect", MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
					   MOUNT_ATTR_NOEXEC },
	[BIND_TMPFS] = { "--tmpfs", 0 },     /* attributes: scratch.c */
	[BIND_OVERLAY] = { "--overlay", 0 }, /* attributes: find_attrs() */
};

static int check_type(const struct bind_spec *bind, mode_t mode, struct cj_error *err)
{
	const char *option = bind_kinds[bind->kind].option;
	bool is_right = bind->kind == BIND_SOCKET    ? S_ISSOCK(mode)
			: bind->kind == BIND_OVERLAY ? S_ISDIR(mode)
						     : S_ISDIR(mode) || S_ISREG(mode);
	if (is_right)
		return 0;

	int rc = cj_reject(err, "%s '%s': it is %s", option, bind->source, fd_kind_name(mode));
	if (bind->kind == BIND_SOCKET)
		cj_hint(err, "--connect unix: wants the socket of a listening program");
	else if (bind->kind == BIND_OVERLAY)
		cj_hint(err, "an overlay needs a directory; copy one file in with --file");
	else if (S_ISSOCK(mode))
		cj_hint(err, "sockets are opened by --connect unix:%s", bind->source);
	else
		cj_hint(err, "directories and regular files can be shown");
	return rc;
}

/* Returns 1 if mounts lie below the directory, else 0. */
static int has_mounts_below(int dir_fd, struct cj_error *err)
{
	/* Not recursive: the kernel refuses that where a mount we inherited lies below. */
	auto_fd int tree_fd = sys_open_tree(
	    dir_fd, "", OPEN_TREE_CLONE | AT_NO_AUTOMOUNT | AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW);
	if (tree_fd < 0 && errno != EINVAL)
		return cj_fail(err, errno, "clone its mount");
	return tree_fd < 0;
}

/* The overlay would show what other file systems below the directory cover. */
static int check_lower(int dir_fd, const char *name, struct cj_error *err)
{
	int rc = has_mounts_below(dir_fd, err);
	if (rc < 0)
		return cj_wrap(err, "--overlay '%s'", name);
	if (rc == 0)
		return 0;
	cj_refuse(err, "--overlay '%s': other file systems are mounted below it", name);
	return cj_hint(err, "name a directory without mount points below, or use --ro-bind %s",
		       name);
}

static int check_guard(const struct bind_spec *bind, const struct guard *guard, int fd, bool is_dir,
		       struct cj_error *err)
{
	int rc = guard_check(guard, fd, bind->source, err);
	if (rc == 0 && is_dir)
		rc = has_mounts_below(fd, err);
	if (rc > 0)
		rc = guard_check_mounts(guard, fd, err);
	if (rc == 0)
		return 0;
	(void)!cj_wrap(err, "%s '%s'", bind_kinds[bind->kind].option, bind->source);
	return bind->kind == BIND_KEPT
		   ? cj_hint_for(err, EINVAL, "set XDG_CACHE_HOME to another directory")
		   : cj_hint_for(err, EINVAL,
				 "bind another directory, for example one below it, "
				 "or bind it read-only with --ro-bind");
}

static int open_source(const struct bind_spec *bind, const struct guard *guard,
		       struct rootfs_entry *out, struct cj_error *err)
{
	const char *option = bind_kinds[bind->kind].option;
	*out = (struct rootfs_entry){ .path = bind->target, .fd = -1, .is_dir = true };
	if (bind->kind == BIND_TMPFS) /* made later, on the scratch */
		return 0;
	auto_fd int fd = sys_openat2(AT_FDCWD, bind->source, O_PATH, 0,
				     RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
	if (fd < 0 && errno == ELOOP) {
		cj_refuse(err, "%s '%s': there is a symbolic link in it", option, bind->source);
		return cj_hint(err, "name the place itself: see realpath(1)");
	}
	if (fd < 0) {
		(void)!cj_fail(err, errno, "%s '%s'", option, bind->source);
		return cj_hint_for(err, EACCES,
				   "the caller's own permissions count; root's rights to "
				   "other users' files do not apply in a user namespace");
	}

	struct stat st;
	if (fstat(fd, &st) < 0)
		return cj_fail(err, errno, "look at '%s'", bind->source);
	if (check_type(bind, st.st_mode, err) < 0)
		return -err->code;

	out->is_dir = S_ISDIR(st.st_mode);
	if (bind->kind == BIND_OVERLAY) {
		int rc = check_lower(fd, bind->source, err);
		out->fd = rc < 0 ? -1 : take_fd(&fd);
		return rc;
	}
	if (rootfs_bind_is_writable(bind) && check_guard(bind, guard, fd, out->is_dir, err) < 0)
		return -err->code;
	out->fd = mounts_clone(fd, "", bind_kinds[bind->kind].attrs, bind->source, err);
	return out->fd < 0 ? out->fd : 0;
}

/*
 * The skeleton is above the image and has a real directory for every target.  So a link of the
 * image could not redirect a mount, but the skeleton would hide it, for example /bin.
 */
static int check_target(const struct bind_spec *bind, const struct layers *layers,
			struct cj_error *err)
{
	const char *last = strrchr(bind->target, '/');
	if (bind->target[0] != '/' || strstr(bind->target, "/../") || strcmp(last, "/..") == 0)
		return cj_reject(err, "the target '%s' is not absolute, or has '..' in it",
				 bind->target);

	const uint64_t resolve = RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
	for (size_t i = 0; i < layers->count; i++) {
		auto_fd int fd = sys_openat2(layers->fds[i], bind->target, O_PATH, 0, resolve);
		if (fd >= 0 || errno == ENOENT || errno == ENOTDIR)
			continue;
		if (errno != ELOOP)
			return cj_fail(err, errno, "look for '%s' in the image", bind->target);
		cj_refuse(err, "'%s' goes through a symbolic link of the image", bind->target);
		return cj_hint(err, "choose a target without links in it");
	}
	return 0;
}

int binds_open(struct rootfs_entries *list, const struct rootfs_spec *spec,
	       const struct layers *layers, struct cj_error *err)
{
	for (size_t i = 0; i < spec->nbinds; i++) {
		struct rootfs_entry entry;
		if (check_target(&spec->binds[i], layers, err) < 0 ||
		    open_source(&spec->binds[i], &spec->guard, &entry, err) < 0 ||
		    rootfs_entries_add(list, &entry, err) < 0)
			return -err->code;
	}
	return 0;
}

int binds_attach(const struct rootfs_entries *list, const struct rootfs_spec *spec, int scratch_fd,
		 int root_fd, struct cj_error *err)
{
	struct stat scratch = { 0 };
	if (list->count > 0 && fstat(scratch_fd, &scratch) < 0)
		return cj_fail(err, errno, "look at the scratch");

	for (size_t i = 0; i < list->count; i++) {
		const struct bind_spec *bind = &spec->binds[i];
		const struct tree_path at = { .dir_fd = root_fd,
					      .path = bind->target,
					      .name = bind->target,
					      .makes_on = &scratch.st_dev };
		auto_fd int place_fd = tree_place_open(
		    &at, list->items[i].is_dir ? TREE_PLACE_DIRECTORY : TREE_PLACE_FILE, err);
		if (place_fd < 0) {
			(void)!cj_fail(err, -place_fd, "find the mount point '%s'", bind->target);
			return cj_hint_for(err, ENOENT,
					   "it lies in a tree of the host, where cejail creates "
					   "nothing: choose another target, or create it there "
					   "first");
		}
		if (mounts_attach(list->items[i].fd, place_fd, bind->target, err) < 0)
			return cj_wrap(err, "%s '%s'", bind_kinds[bind->kind].option, bind->source);
	}
	return 0;
}

/* The supervisor opened the path separately: check that both are the same directory. */
static int adopt(struct rootfs_entry *source, const struct bind_spec *bind, int *fd,
		 struct cj_error *err)
{
	const char *option = bind_kinds[bind->kind].option;
	struct stat ours, theirs;
	if (fstat(source->fd, &ours) < 0 || fstat(*fd, &theirs) < 0)
		return cj_fail(err, errno, "%s '%s': look at it", option, bind->source);
	if (ours.st_dev != theirs.st_dev || ours.st_ino != theirs.st_ino)
		return cj_reject(err, "%s '%s': it was replaced by another directory", option,
				 bind->source);
	cj_close(&source->fd);
	source->fd = take_fd(fd);
	source->is_detached = true;
	return 0;
}

int binds_adopt_lowers(struct rootfs_entries *list, const struct rootfs_spec *spec, int *fds,
		       size_t count, struct cj_error *err)
{
	size_t used = 0;
	for (size_t i = 0; i < list->count && used < count; i++) {
		if (!rootfs_bind_is_shifted(&spec->binds[i]))
			continue;
		if (adopt(&list->items[i], &spec->binds[i], &fds[used++], err) < 0)
			return -err->code;
	}
	return 0;
}

/* Files of another user can't be copied up: their owner has no id in this user namespace. */
static int check_owner(const struct bind_spec *bind, const struct rootfs_spec *spec,
		       const struct stat *st, struct cj_error *err)
{
	if (st->st_uid == spec->uid && st->st_gid == spec->gid)
		return 0;
	bool is_group = st->st_uid == spec->uid;
	cj_refuse(err,
		  "--overlay '%s': its %s is not the jail's, so nothing in it could "
		  "be changed",
		  bind->source, is_group ? "group" : "owner");
	return cj_hint(err,
		       is_group ? "give it your own group (chgrp(1)), or copy it in with --file %s"
				: "start cejail as its owner, or copy it in with --file %s",
		       bind->source);
}

/* A directory of the scratch, not shown in the jail.  Returns a descriptor. */
static int make_layer(int scratch_fd, const char *name, mode_t mode, struct cj_error *err)
{
	if (mkdirat(scratch_fd, name, mode) < 0)
		return cj_fail(err, errno, "make '%s' of the scratch", name);
	int fd = openat(scratch_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? cj_fail(err, errno, "open '%s' of the scratch", name) : fd;
}

/* The upper directory is the visible root of the overlay: it gets the mode and time of the
 * lower. */
static int make_upper(int scratch_fd, const char *name, const struct stat *lower,
		      struct cj_error *err)
{
	auto_fd int fd = make_layer(scratch_fd, name, lower->st_mode & 0777, err);
	if (fd < 0)
		return fd;
	const struct timespec times[2] = { lower->st_atim, lower->st_mtim };
	if (futimens(fd, times) < 0)
		return cj_fail(err, errno, "set the time of '%s' of the scratch", name);
	return take_fd(&fd);
}

/* The noexec of the lower mount has no effect through an overlay. */
static int find_attrs(int lower_fd, const struct rootfs_spec *spec, uint64_t *out,
		      struct cj_error *err)
{
	struct statvfs fs;
	if (fstatvfs(lower_fd, &fs) < 0)
		return cj_fail(err, errno, "read the mount flags");
	*out = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
	if (spec->noexec_scratch || (fs.f_flag & ST_NOEXEC))
		*out |= MOUNT_ATTR_NOEXEC;
	return 0;
}

/* Returns the overlay of the bind `number` over lower_fd, detached. */
static int mount_one(const struct rootfs_spec *spec, size_t number, int lower_fd, int scratch_fd,
		     struct cj_error *err)
{
	const struct bind_spec *bind = &spec->binds[number];
	struct stat st;
	uint64_t attrs = 0;
	if (fstat(lower_fd, &st) < 0)
		return cj_fail(err, errno, "look at it");
	if (check_owner(bind, spec, &st, err) < 0 || find_attrs(lower_fd, spec, &attrs, err) < 0)
		return -err->code;

	char upper[48], work[48];
	(void)snprintf(upper, sizeof(upper), "overlay%zu", number);
	(void)snprintf(work, sizeof(work), "overlay%zu.work", number);
	auto_fd int upper_fd = make_upper(scratch_fd, upper, &st, err);
	auto_fd int work_fd = upper_fd < 0 ? -1 : make_layer(scratch_fd, work, 0700, err);
	if (work_fd < 0)
		return -err->code;
	const struct overlay overlay = {
		.name = bind->source, .top_fd = lower_fd, .upper_fd = upper_fd, .work_fd = work_fd
	};
	return layers_join(&overlay, attrs, err);
}

int binds_mount_overlays(struct rootfs_entries *list, const struct rootfs_spec *spec,
			 int scratch_fd, int park_fd, struct cj_error *err)
{
	for (size_t i = 0; i < list->count; i++) {
		struct rootfs_entry *source = &list->items[i];
		const struct bind_spec *bind = &spec->binds[i];
		if (bind->kind != BIND_OVERLAY)
			continue;
		if (source->is_detached &&
		    mounts_attach(source->fd, park_fd, bind->source, err) < 0)
			return -err->code;
		int fd = mount_one(spec, i, source->fd, scratch_fd, err);
		if (fd < 0)
			return fd;
		cj_close(&source->fd);
		source->fd = fd;
	}
	return 0;
}
