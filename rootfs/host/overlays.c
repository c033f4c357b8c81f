/* SPDX-License-Identifier: Apache-2.0 */
/* Directories of the host, copy on write.  Acts. */
#include "rootfs/host/overlays.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "rootfs/host/layers.h"
#include "rootfs/mounts.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"

int overlays_check_lower(int dir_fd, const char *name, struct cj_error *err)
{
	/* Not recursive: the kernel refuses that where a mount we inherited lies below. */
	auto_fd int tree_fd = sys_open_tree(
	    dir_fd, "", OPEN_TREE_CLONE | AT_NO_AUTOMOUNT | AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW);
	if (tree_fd >= 0)
		return 0;
	if (errno != EINVAL)
		return cj_fail(err, errno, "--overlay '%s': clone its mount", name);
	int rc = cj_reject(err, "--overlay '%s': other file systems are mounted below it", name);
	cj_hint(err, "name a directory without mount points below, or use --ro-bind %s", name);
	return rc;
}

/* The supervisor opened the path separately: check that both are the same directory. */
static int adopt(struct bind_source *source, const char *name, int *fd, struct cj_error *err)
{
	struct stat ours, theirs;
	if (fstat(source->fd, &ours) < 0 || fstat(*fd, &theirs) < 0)
		return cj_fail(err, errno, "--overlay '%s': look at it", name);
	if (ours.st_dev != theirs.st_dev || ours.st_ino != theirs.st_ino)
		return cj_reject(err, "--overlay '%s': it was replaced by another directory", name);
	cj_close(&source->fd);
	source->fd = take_fd(fd);
	source->is_detached = true;
	return 0;
}

int overlays_adopt(struct bind_sources *sources, const struct rootfs_spec *spec, int *fds,
		   size_t count, struct cj_error *err)
{
	size_t used = 0;
	for (size_t i = 0; i < sources->count && used < count; i++) {
		if (spec->binds[i].kind != BIND_OVERLAY)
			continue;
		int rc = adopt(&sources->items[i], spec->binds[i].source, &fds[used++], err);
		if (rc < 0)
			return rc;
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
	int rc = cj_reject(err,
			   "--overlay '%s': its %s is not the jail's, so nothing in it could "
			   "be changed",
			   bind->source, is_group ? "group" : "owner");
	cj_hint(err,
		is_group ? "give it your own group (chgrp(1)), or copy it in with --file %s"
			 : "start cejail as its owner, or copy it in with --file %s",
		bind->source);
	return rc;
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
	int rc = check_owner(bind, spec, &st, err);
	if (rc == 0)
		rc = find_attrs(lower_fd, spec, &attrs, err);
	if (rc < 0)
		return rc;

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

int overlays_mount(struct bind_sources *sources, const struct rootfs_spec *spec, int scratch_fd,
		   int park_fd, struct cj_error *err)
{
	for (size_t i = 0; i < sources->count; i++) {
		struct bind_source *source = &sources->items[i];
		const struct bind_spec *bind = &spec->binds[i];
		if (bind->kind != BIND_OVERLAY)
			continue;
		int rc = source->is_detached ? mounts_attach(source->fd, park_fd, bind->source, err)
					     : 0;
		if (rc < 0)
			return rc;
		int fd = mount_one(spec, i, source->fd, scratch_fd, err);
		if (fd < 0)
			return fd;
		cj_close(&source->fd);
		source->fd = fd;
	}
	return 0;
}
