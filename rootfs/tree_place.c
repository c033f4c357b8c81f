/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Places in a hostile tree.
 *
 * Every descriptor here was opened by the kernel inside the root, whatever somebody exchanges
 * meanwhile: each prefix of a path is resolved from root_fd, and a missing component is made in
 * the descriptor of its parent.  From the first component that we made on, a link is an attack.
 * A link that leads to nothing is replaced by its target, and the walk begins again: an image's
 * /etc/resolv.conf often is one.
 */
#include "rootfs/tree_place.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

#include "runtime/base/scope.h"
#include "runtime/base/sys.h"

#define LINKS_MAX   40 /* as path_resolution(7) */
#define RESOLVE_NEW (RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS)

static uint64_t resolve_flags(bool follows_links)
{
	return RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS | (follows_links ? 0 : RESOLVE_NO_SYMLINKS);
}

static int fail_open(const char *name, int code, struct cj_error *err)
{
	(void)!cj_fail(err, code, "find '%s' in the root file system", name);
	cj_hint_for(err, ELOOP,
		    "a symbolic link there may not be followed: at and below /dev, /proc and /sys "
		    "there must be real directories");
	/* openat2(2), after all its tries */
	return cj_hint_for(err, EAGAIN,
			   "other processes rename or mount without a pause: try again");
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

/* A walk along a path whose end is missing. */
struct place_walk {
	const struct tree_path *at;
	bool is_dir;       /* what the last component shall be */
	bool has_made;     /* a component, since the walk began */
	bool has_new_path; /* a link that leads to nothing was replaced by its target */
	char path[PATH_MAX];
};

/* One component further: w->path ends with `name` for now. */
static int step(struct place_walk *w, int dir_fd, const char *name, bool is_dir)
{
	struct stat st;
	if (!w->has_made) {
		int fd = sys_openat2(w->at->dir_fd, w->path, O_PATH | (is_dir ? O_DIRECTORY : 0), 0,
				     resolve_flags(w->at->follows_links));
		if (fd >= 0 || errno != ENOENT)
			return fd;
	}
	if (w->at->makes_on) {
		if (fstat(dir_fd, &st) < 0)
			return -1;
		if (st.st_dev != *w->at->makes_on) {
			errno = ENOENT;
			return -1;
		}
	}
	int fd = make_entry(dir_fd, name, is_dir);
	w->has_made = w->has_made || fd >= 0;
	return fd;
}

/*
 * Replaces the component `name` of w->path by what the link of this name holds; `rest` follows it.
 * The link itself is opened, so that what is read is no other object.
 */
static int insert_target(struct place_walk *w, int dir_fd, const char *name, const char *rest)
{
	char target[PATH_MAX], path[PATH_MAX];
	auto_fd int link_fd = openat(dir_fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	ssize_t size = link_fd < 0 ? -1 : readlinkat(link_fd, "", target, sizeof(target) - 1);
	if (size < 0)
		return -errno;
	target[size] = '\0';
	int parent = target[0] == '/' ? 0 : (int)(name - w->path);
	int length = snprintf(path, sizeof(path), "%.*s/%s%s", parent, w->path, target, rest);
	if (length < 0 || (size_t)length >= sizeof(path))
		return -ENAMETOOLONG;
	memcpy(w->path, path, (size_t)length + 1);
	w->has_new_path = true;
	return -ELOOP; /* unless the walk along the new path succeeds */
}

/* Returns a descriptor or -errno.  With has_new_path the walk must begin again. */
static int walk_once(struct place_walk *w)
{
	w->has_new_path = false;
	auto_fd int dir_fd = fcntl(w->at->dir_fd, F_DUPFD_CLOEXEC, 0);
	if (dir_fd < 0)
		return -errno;
	for (char *name = w->path; *name == '/';) {
		name += strspn(name, "/");
		char *end = strchrnul(name, '/'), cut = *end;
		if (name == end)
			break;
		*end = '\0';
		int next_fd = step(w, dir_fd, name, cut == '/' || w->is_dir);
		int code = errno;
		if (next_fd < 0 && code == ELOOP && w->at->follows_links && !w->has_made) {
			char rest[PATH_MAX];
			*end = cut;
			memcpy(rest, end, strlen(end) + 1);
			*end = '\0';
			return insert_target(w, dir_fd, name, rest);
		}
		*end = cut;
		if (next_fd < 0)
			return -code;
		cj_close(&dir_fd);
		dir_fd = next_fd;
		name = end;
	}
	return take_fd(&dir_fd);
}

static int fail_make(const char *name, int code, struct cj_error *err)
{
	int rc = code == ELOOP || code == ENOTDIR || code == EAGAIN
		     ? fail_open(name, code, err)
		     : cj_fail(err, code, "make '%s' in the root file system", name);
	if (code == EROFS || code == EACCES || code == EPERM)
		cj_hint(err, "it is missing and can't be made: make it in the image");
	return rc;
}

static int make_path(const struct tree_path *at, bool is_dir, struct cj_error *err)
{
	struct place_walk w = { .at = at, .is_dir = is_dir };
	size_t size = strlen(at->path) + 1;
	if (size > sizeof(w.path))
		return cj_fail(err, ENAMETOOLONG, "find '%s'", at->name);
	memcpy(w.path, at->path, size);

	int fd = walk_once(&w);
	for (int links = 0; w.has_new_path && links < LINKS_MAX; links++)
		fd = walk_once(&w);
	return fd < 0 ? fail_make(at->name, -fd, err) : fd;
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

static int check_place(const struct tree_path *at, int fd, enum tree_place place,
		       struct cj_error *err)
{
	struct stat st;
	bool is_the_root = true;
	int rc = is_root(at->dir_fd, fd, &is_the_root);
	if (rc < 0 || fstat(fd, &st) < 0) {
		/* The place is open, so it exists.  A caller leaves out what does not: a mask would
		 * be missing. */
		int code = rc < 0 ? -rc : errno;
		return cj_fail(err, code == ENOENT || code == ENOTDIR ? ESTALE : code,
			       "look at '%s'", at->name);
	}
	if (is_the_root)
		return cj_reject_as(err, EBUSY, "'%s' leads to the root itself", at->name);
	if (place == TREE_PLACE_DIRECTORY && !S_ISDIR(st.st_mode))
		return cj_fail(err, ENOTDIR, "'%s' of the root file system", at->name);
	if (place == TREE_PLACE_FILE && S_ISDIR(st.st_mode))
		return cj_fail(err, EISDIR, "'%s' of the root file system", at->name);
	return 0;
}

int tree_place_open(const struct tree_path *at, enum tree_place place, struct cj_error *err)
{
	auto_fd int fd =
	    sys_openat2(at->dir_fd, at->path, O_PATH, 0, resolve_flags(at->follows_links));
	if (fd < 0 && errno == ENOENT && place != TREE_PLACE_GIVEN) {
		fd = make_path(at, place == TREE_PLACE_DIRECTORY, err);
		if (fd < 0)
			return fd;
	}
	if (fd < 0)
		return fail_open(at->name, errno, err);
	int rc = check_place(at, fd, place, err);
	return rc < 0 ? rc : take_fd(&fd);
}

int tree_place_open_parent(const struct tree_path *at, const char **out_name, struct cj_error *err)
{
	const char *slash = strrchr(at->path, '/');
	if (!slash || slash[1] == '\0')
		return cj_reject(err, "'%s' is not the absolute path of a file", at->name);
	*out_name = slash + 1;
	auto_free char *parent = strndup(at->path, (size_t)(slash - at->path));
	if (!parent)
		return cj_fail(err, ENOMEM, "find '%s'", at->name);
	const struct tree_path above = { .dir_fd = at->dir_fd, .path = parent, .name = at->name };
	return make_path(&above, true, err);
}
