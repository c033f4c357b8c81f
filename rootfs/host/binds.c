/* SPDX-License-Identifier: Apache-2.0 */
/* Opens and attaches the host paths of the caller.  Acts. */
#include "rootfs/host/binds.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rootfs/host/overlays.h"
#include "rootfs/mounts.h"
#include "rootfs/skeleton.h"
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
	/* Connecting does not write to the file system: only the socket's mode counts, unix(7). */
	[BIND_SOCKET] = { "--connect", MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
					   MOUNT_ATTR_NOEXEC },
	[BIND_TMPFS] = { "--tmpfs", 0 },     /* attributes: tmpdirs.c */
	[BIND_OVERLAY] = { "--overlay", 0 }, /* attributes: overlays.c */
};

static const char *kind_of_file(mode_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFDIR:
		return "a directory";
	case S_IFREG:
		return "a regular file";
	case S_IFSOCK:
		return "a socket";
	case S_IFIFO:
		return "a fifo";
	default:
		return "a device";
	}
}

static int check_type(const struct bind_spec *bind, mode_t mode, struct cj_error *err)
{
	const char *option = bind_kinds[bind->kind].option;
	bool is_right = bind->kind == BIND_SOCKET    ? S_ISSOCK(mode)
			: bind->kind == BIND_OVERLAY ? S_ISDIR(mode)
						     : S_ISDIR(mode) || S_ISREG(mode);
	if (is_right)
		return 0;

	int rc = cj_reject(err, "%s '%s': it is %s", option, bind->source, kind_of_file(mode));
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

static int open_source(const struct bind_spec *bind, struct bind_source *out, struct cj_error *err)
{
	const char *option = bind_kinds[bind->kind].option;
	if (bind->kind == BIND_TMPFS) { /* made later, on the scratch */
		*out = (struct bind_source){ .fd = -1, .is_dir = true };
		return 0;
	}
	auto_fd int fd = sys_openat2(AT_FDCWD, bind->source, O_PATH, 0,
				     RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
	if (fd < 0 && errno == ELOOP) {
		int rc =
		    cj_reject(err, "%s '%s': there is a symbolic link in it", option, bind->source);
		cj_hint(err, "name the place itself: see realpath(1)");
		return rc;
	}
	if (fd < 0) {
		int rc = cj_fail(err, errno, "%s '%s'", option, bind->source);
		if (rc == -EACCES)
			cj_hint(err, "the caller's own permissions count; root's rights to "
				     "other users' files do not apply in a user namespace");
		return rc;
	}

	struct stat st;
	if (fstat(fd, &st) < 0)
		return cj_fail(err, errno, "look at '%s'", bind->source);
	int rc = check_type(bind, st.st_mode, err);
	if (rc < 0)
		return rc;

	out->is_dir = S_ISDIR(st.st_mode);
	if (bind->kind == BIND_OVERLAY) {
		rc = overlays_check_lower(fd, bind->source, err);
		out->fd = rc < 0 ? -1 : take_fd(&fd);
		return rc;
	}
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
	if (bind->target[0] != '/')
		return cj_reject(err, "the target '%s' is not absolute", bind->target);

	const uint64_t resolve = RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
	for (size_t i = 0; i < layers->count; i++) {
		auto_fd int fd = sys_openat2(layers->fds[i], bind->target, O_PATH, 0, resolve);
		if (fd >= 0 || errno == ENOENT || errno == ENOTDIR)
			continue;
		if (errno != ELOOP)
			return cj_fail(err, errno, "look for '%s' in the image", bind->target);
		int rc =
		    cj_reject(err, "'%s' goes through a symbolic link of the image", bind->target);
		cj_hint(err, "choose a target without links in it");
		return rc;
	}
	return 0;
}

int binds_open(struct bind_sources *out, const struct rootfs_spec *spec,
	       const struct layers *layers, struct arena *a, struct cj_error *err)
{
	*out = (struct bind_sources){ 0 };
	if (spec->nbinds == 0)
		return 0;
	out->items = arena_array(a, spec->nbinds, sizeof(*out->items));
	if (!out->items)
		return cj_fail(err, errno, "list the binds");

	for (; out->count < spec->nbinds; out->count++) {
		const struct bind_spec *bind = &spec->binds[out->count];
		int rc = check_target(bind, layers, err);
		if (rc == 0)
			rc = open_source(bind, &out->items[out->count], err);
		if (rc < 0) {
			binds_close(out);
			return rc;
		}
	}
	return 0;
}

void binds_close(struct bind_sources *sources)
{
	for (size_t i = 0; i < sources->count; i++)
		cj_close(&sources->items[i].fd);
	sources->count = 0;
}

int binds_add_places(const struct bind_sources *sources, const struct rootfs_spec *spec,
		     int skeleton_fd, struct cj_error *err)
{
	for (size_t i = 0; i < sources->count; i++) {
		int rc = skeleton_add_place(skeleton_fd, spec->binds[i].target + 1,
					    sources->items[i].is_dir, err);
		if (rc < 0)
			return rc;
	}
	return 0;
}

static int fail_missing(const char *target, struct cj_error *err)
{
	int rc = cj_fail(err, ENOENT, "find the mount point '%s'", target);
	cj_hint(err, "it lies in a tree of the host, where cejail creates nothing: "
		     "choose another target, or create it there first");
	return rc;
}

/* Opens one more component below dir_fd; makes a missing one if dir_fd is on the scratch. */
static int step_down(int dir_fd, const char *name, bool is_dir, dev_t scratch_dev)
{
	const uint64_t resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
	int fd = sys_openat2(dir_fd, name, O_PATH, 0, resolve);
	if (fd >= 0 || errno != ENOENT)
		return fd;

	struct stat st;
	if (fstat(dir_fd, &st) < 0)
		return -1;
	if (st.st_dev != scratch_dev) {
		errno = ENOENT;
		return -1;
	}
	if (is_dir)
		return mkdirat(dir_fd, name, 0755) < 0
			   ? -1
			   : sys_openat2(dir_fd, name, O_PATH, 0, resolve);
	/* The new file's own descriptor would do, but a mount point is a place: O_PATH. */
	auto_fd int made = openat(dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	return made < 0 ? -1 : sys_openat2(dir_fd, name, O_PATH, 0, resolve);
}

static int find_place(int root_fd, const char *target, bool is_dir, dev_t scratch_dev,
		      struct cj_error *err)
{
	auto_fd int place_fd = fcntl(root_fd, F_DUPFD_CLOEXEC, 0);
	if (place_fd < 0)
		return cj_fail(err, errno, "duplicate the root's descriptor");

	for (const char *rest = target + 1; rest;) {
		char name[NAME_MAX + 1];
		const char *slash = strchr(rest, '/');
		size_t length = slash ? (size_t)(slash - rest) : strlen(rest);
		if (length >= sizeof(name))
			return cj_fail(err, ENAMETOOLONG, "find the mount point '%s'", target);
		memcpy(name, rest, length);
		name[length] = '\0';

		int next_fd = step_down(place_fd, name, slash || is_dir, scratch_dev);
		if (next_fd < 0 && errno == ENOENT)
			return fail_missing(target, err);
		if (next_fd < 0)
			return cj_fail(err, errno, "find the mount point '%s'", target);
		cj_close(&place_fd);
		place_fd = next_fd;
		rest = slash ? slash + 1 : NULL;
	}
	return take_fd(&place_fd);
}

int binds_attach(const struct bind_sources *sources, const struct rootfs_spec *spec, int scratch_fd,
		 int root_fd, struct cj_error *err)
{
	struct stat scratch;
	if (fstat(scratch_fd, &scratch) < 0)
		return cj_fail(err, errno, "look at the scratch");

	for (size_t i = 0; i < sources->count; i++) {
		const struct bind_spec *bind = &spec->binds[i];
		auto_fd int place_fd = find_place(root_fd, bind->target, sources->items[i].is_dir,
						  scratch.st_dev, err);
		if (place_fd < 0)
			return place_fd;
		int rc = mounts_attach(sources->items[i].fd, place_fd, bind->target, err);
		if (rc < 0)
			return cj_wrap(err, "%s '%s'", bind_kinds[bind->kind].option, bind->source);
	}
	return 0;
}
