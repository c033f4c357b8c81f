/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Places in a hostile tree.  Acts.
 *
 * Every descriptor here was opened by the kernel inside the root, whatever somebody exchanges
 * meanwhile: each prefix of a path is resolved from root_fd, and a missing component is made in
 * the descriptor of its parent.  From the first component that we made on, a link is an attack.
 */
#include "rootfs/tree/tree_place.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/scope.h"
#include "runtime/base/sys.h"

#define RESOLVE_NEW (RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS)

static uint64_t resolve_flags(bool follows_links)
{
	return RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS | (follows_links ? 0 : RESOLVE_NO_SYMLINKS);
}

static int fail_open(const char *path, int code, struct cj_error *err)
{
	int rc = cj_fail(err, code, "find '%s' in the root file system", path);
	if (code == ELOOP)
		cj_hint(err, "a symbolic link there leads to nothing, or may not be followed: at "
			     "and below /dev, /proc and /sys there must be real directories");
	return rc;
}

/* Makes `name` in dir_fd and opens it.  One that exists is taken: another container may have made
 * it just now. */
static int make_entry(int dir_fd, const char *name, bool is_dir)
{
	int rc;
	if (is_dir) {
		rc = mkdirat(dir_fd, name, 0755);
	} else {
		auto_fd int fd = openat(dir_fd, name,
					O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
		rc = fd < 0 ? -1 : 0;
	}
	if (rc < 0 && errno != EEXIST)
		return -1;
	return sys_openat2(dir_fd, name, O_PATH | (is_dir ? O_DIRECTORY : 0), 0, RESOLVE_NEW);
}

/* One component further.  `prefix` ends with the component `name`. */
static int step(int root_fd, int dir_fd, const char *prefix, const char *name, bool is_dir,
		bool *has_made, uint64_t resolve)
{
	if (!*has_made) {
		int fd =
		    sys_openat2(root_fd, prefix, O_PATH | (is_dir ? O_DIRECTORY : 0), 0, resolve);
		if (fd >= 0 || errno != ENOENT)
			return fd;
		*has_made = true;
	}
	return make_entry(dir_fd, name, is_dir);
}

static int fail_make(const char *path, int code, struct cj_error *err)
{
	int rc = code == ELOOP || code == ENOTDIR
		     ? fail_open(path, code, err)
		     : cj_fail(err, code, "make '%s' in the root file system", path);
	if (code == EROFS || code == EACCES || code == EPERM)
		cj_hint(err, "the mount point is missing and can't be made: make it in the image");
	return rc;
}

static int make_path(int root_fd, const char *path, bool is_dir, uint64_t resolve,
		     struct cj_error *err)
{
	char prefix[PATH_MAX];
	if (strlen(path) >= sizeof(prefix))
		return cj_fail(err, ENAMETOOLONG, "find '%s'", path);
	memcpy(prefix, path, strlen(path) + 1);

	auto_fd int dir_fd = fcntl(root_fd, F_DUPFD_CLOEXEC, 0);
	if (dir_fd < 0)
		return cj_fail(err, errno, "duplicate the root's descriptor");
	bool has_made = false;
	for (char *name = prefix; *name == '/';) {
		char *end = strchrnul(++name, '/');
		bool is_last = *end == '\0';
		*end = '\0';
		int next_fd =
		    step(root_fd, dir_fd, prefix, name, !is_last || is_dir, &has_made, resolve);
		if (next_fd < 0)
			return fail_make(path, errno, err);
		cj_close(&dir_fd);
		dir_fd = next_fd;
		if (!is_last)
			*end = '/';
		name = end;
	}
	return take_fd(&dir_fd);
}

/* A mount on the root itself would lie above it, and the container below. */
static int is_root(int root_fd, int fd, bool *out)
{
	struct statx root, place;
	if (statx(root_fd, "", AT_EMPTY_PATH, STATX_INO | STATX_MNT_ID, &root) < 0 ||
	    statx(fd, "", AT_EMPTY_PATH, STATX_INO | STATX_MNT_ID, &place) < 0)
		return -errno;
	*out = root.stx_mnt_id == place.stx_mnt_id && root.stx_ino == place.stx_ino;
	return 0;
}

static int check_place(int root_fd, int fd, const char *path, enum tree_place place,
		       struct cj_error *err)
{
	struct stat st;
	bool is_the_root = true;
	int rc = is_root(root_fd, fd, &is_the_root);
	if (rc < 0 || fstat(fd, &st) < 0)
		return cj_fail(err, rc < 0 ? -rc : errno, "look at '%s'", path);
	if (is_the_root)
		return cj_reject_as(err, EBUSY, "'%s' leads to the root itself", path);
	if (place == TREE_PLACE_DIRECTORY && !S_ISDIR(st.st_mode))
		return cj_fail(err, ENOTDIR, "'%s' of the root file system", path);
	if (place == TREE_PLACE_FILE && S_ISDIR(st.st_mode))
		return cj_fail(err, EISDIR, "'%s' of the root file system", path);
	return 0;
}

int tree_place_open(int root_fd, const char *path, enum tree_place place, bool follows_links,
		    struct cj_error *err)
{
	const uint64_t resolve = resolve_flags(follows_links);
	auto_fd int fd = sys_openat2(root_fd, path, O_PATH, 0, resolve);
	if (fd < 0 && errno == ENOENT && place != TREE_PLACE_GIVEN) {
		fd = make_path(root_fd, path, place == TREE_PLACE_DIRECTORY, resolve, err);
		if (fd < 0)
			return fd;
	}
	if (fd < 0)
		return fail_open(path, errno, err);
	int rc = check_place(root_fd, fd, path, place, err);
	return rc < 0 ? rc : take_fd(&fd);
}

int tree_place_open_parent(int root_fd, const char *path, const char **out_name,
			   struct cj_error *err)
{
	const char *slash = strrchr(path, '/');
	if (!slash || slash[1] == '\0')
		return cj_reject(err, "'%s' is not the absolute path of a file", path);
	*out_name = slash + 1;
	auto_free char *parent = strndup(path, (size_t)(slash - path));
	if (!parent)
		return cj_fail(err, ENOMEM, "find '%s'", path);
	return make_path(root_fd, parent, true, resolve_flags(false), err);
}
