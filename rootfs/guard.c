/* SPDX-License-Identifier: Apache-2.0 */
#include "rootfs/guard.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

#include "runtime/base/files/fd.h"
#include "runtime/base/scope.h"
#include "runtime/base/text.h"

#define DEPTH_MAX 512 /* directories above one */

static int look(int fd, const char *name, struct statx *out, struct cj_error *err)
{
	const int flags = AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT;
	if (statx(fd, name, flags, STATX_TYPE | STATX_INO | STATX_MNT_ID, out) < 0)
		return cj_fail(err, errno, "look at '%s'", name);
	return 0;
}

/* Looks at the directory `level` levels above the directory fd: one call, and no descriptor. */
static int look_above(int fd, size_t level, struct statx *out, struct cj_error *err)
{
	char up[2 + 3 * DEPTH_MAX] = ".";
	if (level > DEPTH_MAX)
		return cj_fail(err, ENAMETOOLONG, "look at the directories above it");
	for (size_t i = 0; i < level; i++)
		memcpy(up + 1 + 3 * i, "/..", sizeof("/.."));
	return look(fd, up, out, err);
}

/* Not by the inode alone: a directory can be mounted below itself. */
static bool is_root(const struct statx *at, const struct statx *above)
{
	return at->stx_mnt_id == above->stx_mnt_id && at->stx_ino == above->stx_ino;
}

int guard_add(struct guard *g, int fd, size_t own, const char *path, struct arena *a,
	      struct cj_error *err)
{
	struct statx at, below = { 0 };
	for (size_t level = 0;; level++) {
		if (look_above(fd, level, &at, err) < 0)
			return cj_wrap(err, "guard '%s'", path);
		if (level > 0 && is_root(&below, &at))
			return 0;
		const struct guarded dir = { .path = path,
					     .inode = at.stx_ino,
					     .device_major = at.stx_dev_major,
					     .device_minor = at.stx_dev_minor,
					     .is_own = level < own };
		if (!arena_append(a, g->items, g->count, dir))
			return cj_fail(err, ENOMEM, "guard '%s'", path);
		below = at;
	}
}

static bool is_on_device(const struct guarded *dir, const struct statx *at)
{
	return dir->device_major == at->stx_dev_major && dir->device_minor == at->stx_dev_minor;
}

static const struct guarded *find(const struct guard *g, const struct statx *at, bool only_own)
{
	for (size_t i = 0; i < g->count; i++)
		if (g->items[i].inode == at->stx_ino && is_on_device(&g->items[i], at) &&
		    (g->items[i].is_own || !only_own))
			return &g->items[i];
	return NULL;
}

/* False for most: what lies on another file system than cejail's own directories is in none. */
static bool may_be_below(const struct guard *g, const struct statx *at)
{
	for (size_t i = 0; i < g->count; i++)
		if (g->items[i].is_own && is_on_device(&g->items[i], at))
			return true;
	return false;
}

static int refuse(const struct guarded *dir, const char *relation, struct cj_error *err)
{
	return cj_reject(err, "it %s '%s', where cejail keeps records that no program may change",
			 relation, dir->path);
}

/* Whether the directory fd, or one above it, is cejail's own. */
static int check_above(const struct guard *g, int fd, struct cj_error *err)
{
	struct statx at, below = { 0 };
	for (size_t level = 0;; level++) {
		if (look_above(fd, level, &at, err) < 0)
			return -err->code;
		if ((level > 0 && is_root(&below, &at)) || !may_be_below(g, &at))
			return 0;
		const struct guarded *dir = find(g, &at, true);
		if (dir)
			return refuse(dir, "is part of", err);
		below = at;
	}
}

static int check_file(const struct guard *g, const char *path, struct cj_error *err)
{
	const char *slash = strrchr(path, '/');
	auto_free char *parent = strndup(path, slash > path ? (size_t)(slash - path) : 1);
	if (!parent)
		return cj_fail(err, ENOMEM, "look at the directory above it");
	auto_fd int fd = open(parent, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return cj_fail(err, errno, "open '%s'", parent);
	return check_above(g, fd, err);
}

int guard_check(const struct guard *g, int fd, const char *path, struct cj_error *err)
{
	struct statx at;
	if (g->count == 0)
		return 0;
	if (look(fd, "", &at, err) < 0)
		return -err->code;
	const struct guarded *dir = find(g, &at, false);
	if (dir && !dir->is_own)
		return refuse(dir, "contains", err);
	if (!may_be_below(g, &at))
		return 0;
	return S_ISDIR(at.stx_mode) ? check_above(g, fd, err) : check_file(g, path, err);
}

/* What the caller may not look at, no program of the caller's can reach. */
static int check_mount(const struct guard *g, const char *place, struct cj_error *err)
{
	struct cj_error ignored;
	struct statx at;
	if (look(AT_FDCWD, place, &at, &ignored) < 0)
		return 0;
	const struct guarded *dir = find(g, &at, false);
	return dir ? refuse(dir, "has a mount below it that leads to", err) : 0;
}

int guard_check_mounts(const struct guard *g, int fd, struct cj_error *err)
{
	char top[PATH_MAX];
	auto_free char *line = NULL;
	size_t room = 0;
	if (g->count == 0)
		return 0;
	auto_file FILE *file = fopen("/proc/self/mountinfo", "re");
	if (!file || !fd_real_path(fd, top))
		return cj_fail(err, errno, "list the mounts below it");
	while (getline(&line, &room, file) > 0) {
		const char *place = text_mount_place(line);
		if (!place)
			return cj_fail(err, EPROTO, "read the place of a mount");
		const char *below = text_after(place, top);
		if (below && *below == '/' && check_mount(g, place, err) < 0)
			return -err->code;
	}
	return ferror(file) ? cj_fail(err, errno, "list the mounts below it") : 0;
}
