/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/base/files/owned_dir.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

#include "runtime/base/scope.h"

#define LINKS_MAX 40 /* as the kernel's: path_resolution(7) */

struct dir_walk {
	const char *path; /* the whole one, for messages */
	mode_t above, last;
	int fd;           /* of the directory that was reached, O_PATH */
	bool is_of_other; /* another user can change what it has, or a directory above it */
	bool is_shared;   /* every user may make something in it */
	unsigned links;
	uid_t root_uid;
};

/* Of the owner of what the reached directory has.  In a user namespace each user without an id
 * there looks like the owner of /, who is one.  Where all may write, that uid counts for nothing.
 */
static bool is_others_uid(const struct dir_walk *w, uid_t uid)
{
	return uid != geteuid() && uid != 0 && (uid != w->root_uid || w->is_shared);
}

static bool is_open_to_others(const struct dir_walk *w, const struct stat *st)
{
	return is_others_uid(w, st->st_uid) ||
	       ((st->st_mode & S_IWOTH) && !(st->st_mode & S_ISVTX));
}

/* Takes fd. */
static void move_to(struct dir_walk *w, int fd, const struct stat *st)
{
	cj_close(&w->fd);
	w->fd = fd;
	w->is_of_other |= is_open_to_others(w, st);
	w->is_shared = st->st_mode & S_IWOTH;
}

static int begin_at(struct dir_walk *w, const char *name, struct cj_error *err)
{
	struct stat st;
	auto_fd int fd = open(name, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return cj_fail(err, errno, "open '%s'", name);
	w->is_of_other = w->is_shared = false;
	move_to(w, take_fd(&fd), &st);
	return 0;
}

static int walk_down(struct dir_walk *w, const char *path, bool is_target, struct cj_error *err);

static int follow(struct dir_walk *w, int link_fd, const struct stat *st, struct cj_error *err)
{
	char target[PATH_MAX];
	if (w->is_of_other || is_others_uid(w, st->st_uid)) {
		cj_refuse_as(err, EPERM,
			     "'%s' leads through a symbolic link that another user can change",
			     w->path);
		return cj_hint(err, "name the directory itself, or one that only you can change");
	}
	ssize_t size = readlinkat(link_fd, "", target, sizeof(target) - 1);
	if (size < 0 || ++w->links > LINKS_MAX)
		return cj_fail(err, size < 0 ? errno : ELOOP, "open '%s'", w->path);
	target[size] = '\0';
	return walk_down(w, target, true, err);
}

/* mode 0: it must be there. */
static int open_one(const struct dir_walk *w, const char *name, mode_t mode, struct cj_error *err)
{
	const int flags = O_PATH | O_NOFOLLOW | O_CLOEXEC;
	int fd = openat(w->fd, name, flags);
	if (fd < 0 && errno == ENOENT && mode != 0) {
		if (mkdirat(w->fd, name, mode) < 0 && errno != EEXIST)
			return cj_fail(err, errno, "create '%s' of '%s'", name, w->path);
		fd = openat(w->fd, name, flags);
	}
	return fd < 0 ? cj_fail(err, errno, "open '%s'", w->path) : fd;
}

static int step(struct dir_walk *w, const char *name, mode_t mode, struct cj_error *err)
{
	struct stat st;
	auto_fd int fd = open_one(w, name, mode, err);
	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return cj_fail(err, errno, "open '%s'", w->path);
	if (S_ISLNK(st.st_mode))
		return follow(w, fd, &st, err);
	if (!S_ISDIR(st.st_mode))
		return cj_fail(err, ENOTDIR, "open '%s'", w->path);
	move_to(w, take_fd(&fd), &st);
	return 0;
}

/* Nothing is made where a link leads to. */
static int walk_down(struct dir_walk *w, const char *path, bool is_target, struct cj_error *err)
{
	if ((path[0] == '/' || !is_target) && begin_at(w, path[0] == '/' ? "/" : ".", err) < 0)
		return -err->code;
	for (path += strspn(path, "/"); *path;) {
		char name[NAME_MAX + 1];
		size_t size = strcspn(path, "/");
		if (size > NAME_MAX)
			return cj_fail(err, ENAMETOOLONG, "open '%s'", w->path);
		(void)snprintf(name, sizeof(name), "%.*s", (int)size, path);
		path += size;
		path += strspn(path, "/");
		mode_t mode = *path ? w->above : w->last;
		if (step(w, name, is_target || w->last == 0 ? 0 : mode, err) < 0)
			return -err->code;
	}
	return 0;
}

int owned_dir_open(const char *path, mode_t above, mode_t last, struct cj_error *err)
{
	struct stat root;
	struct dir_walk w = { .path = path, .above = above, .last = last, .fd = -1 };
	if (path[0] == '\0')
		return cj_fail(err, ENOENT, "open ''");
	if (stat("/", &root) < 0)
		return cj_fail(err, errno, "open '/'");
	w.root_uid = root.st_uid;
	int rc = walk_down(&w, path, false, err);
	auto_fd int walked_fd = w.fd;
	if (rc < 0)
		return rc;
	int fd = openat(walked_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? cj_fail(err, errno, "open '%s'", path) : fd;
}
