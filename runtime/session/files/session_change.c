/* SPDX-License-Identifier: Apache-2.0 */
/* Writes, moves and removes files of a jail in which programs run. */
#include "runtime/session/files/session_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

#include "rootfs/files/jail_file.h"
#include "runtime/base/files/fd.h"
#include "runtime/base/scope.h"
#include "runtime/session/files/session_path.h"

#define NEW_DIRECTORY 0755

/* A rename would replace a file that its owner has made read-only; open(2) would not write it. */
static int check_replaced(int dir_fd, const char *name)
{
	struct stat st;
	if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
	if (session_path_is_mount(dir_fd, name))
		return -EBUSY;
	if (S_ISREG(st.st_mode) && faccessat(dir_fd, name, W_OK, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	return 0;
}

int session_file_create(const struct jail *j, const char *path, struct arena *a,
			struct session_put *out, struct cj_error *err)
{
	struct session_path at;
	struct session_put put = SESSION_PUT_NULL;
	if (session_path_parse(j, path, a, &at, err) < 0)
		return -err->code;
	put.path = at.path;
	auto_fd int dir_fd = session_path_open_parent(&at, NEW_DIRECTORY, a, &put.name, err);
	if (dir_fd < 0)
		return dir_fd;
	int rc = check_replaced(dir_fd, put.name);
	if (rc < 0)
		return session_path_fail(at.path, -rc, "write", err);
	/* Our pid makes the name ours among all that write files from outside. */
	(void)snprintf(put.fresh, sizeof(put.fresh), ".cejail-put-%d", getpid());
	const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
	put.fd = openat(dir_fd, put.fresh, flags, 0600);
	if (put.fd < 0)
		return session_path_fail(at.path, errno, "write", err);
	put.dir_fd = take_fd(&dir_fd);
	*out = put;
	return 0;
}

int session_file_publish(struct session_put *put, bool is_executable, struct cj_error *err)
{
	if (fchmod(put->fd, is_executable ? 0755 : 0644) < 0)
		return session_path_fail(put->path, errno, "set the mode of", err);
	int rc = check_replaced(put->dir_fd, put->name);
	if (rc < 0)
		return session_path_fail(put->path, -rc, "write", err);
	if (renameat(put->dir_fd, put->fresh, put->dir_fd, put->name) < 0)
		return session_path_fail(put->path, errno, "write", err);
	put->fresh[0] = '\0';
	return 0;
}

void session_put_fini(struct session_put *put)
{
	if (put->dir_fd >= 0 && put->fresh[0])
		(void)unlinkat(put->dir_fd, put->fresh, 0); /* a program may have moved it */
	cj_close(&put->fd);
	cj_close(&put->dir_fd);
}

int session_file_mkdir(const struct jail *j, const char *path, bool *out_is_new,
		       struct cj_error *err)
{
	auto_arena struct arena a = { 0 };
	struct session_path at;
	struct stat st;
	const char *name;
	*out_is_new = false;
	if (session_path_parse(j, path, &a, &at, err) < 0)
		return -err->code;
	if (at.is_top)
		return 0;
	auto_fd int dir_fd = session_path_open_parent(&at, NEW_DIRECTORY, &a, &name, err);
	if (dir_fd < 0)
		return dir_fd;
	*out_is_new = mkdirat(dir_fd, name, NEW_DIRECTORY) == 0;
	int code = errno;
	if (*out_is_new ||
	    (code == EEXIST && fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	     S_ISDIR(st.st_mode)))
		return 0;
	return session_path_fail(at.path, code, "make the directory", err);
}

int session_file_rename(const struct jail *j, const char *path, const char *to,
			struct cj_error *err)
{
	auto_arena struct arena a = { 0 };
	struct session_path from_at, to_at;
	const char *from_name, *to_name;
	if (session_path_parse(j, path, &a, &from_at, err) < 0 ||
	    session_path_parse(j, to, &a, &to_at, err) < 0)
		return -err->code;
	auto_fd int from_fd = session_path_open_parent(&from_at, 0, &a, &from_name, err);
	if (from_fd < 0)
		return from_fd;
	auto_fd int to_fd = session_path_open_parent(&to_at, 0, &a, &to_name, err);
	if (to_fd < 0)
		return to_fd;
	if (session_path_check_free(j, &from_at, "rename", err) < 0)
		return -err->code;
	if (session_path_is_mount(from_fd, from_name))
		return session_path_fail(from_at.path, EBUSY, "rename", err);
	if (session_path_is_mount(to_fd, to_name))
		return session_path_fail(to_at.path, EBUSY, "replace", err);
	if (renameat(from_fd, from_name, to_fd, to_name) < 0)
		return session_path_fail(from_at.path, errno, "rename", err);
	return 0;
}

/*
 * --- removal ---
 *
 * A tree may be as deep as its file system has inodes.  So there is no recursion and no path: the
 * directories inside a subdirectory are moved up to the top of the tree first, and then the
 * subdirectory is empty of directories.  Each directory is moved once, and two descriptors are
 * enough.
 *
 * Programs may rename and add entries meanwhile.  The number of entries that are looked at has a
 * limit.  A directory that was moved elsewhere after it was opened may still lose its entries: a
 * program of the session may remove them as well.  No other mount is entered.
 */

#define ROUNDS_MAX 10000 /* through the top; each but the last finds an entry */

struct removal {
	const char *path;
	int top_fd;        /* the tree's top */
	unsigned entries;  /* looked at so far */
	unsigned numbered; /* names that were given to moved directories */
};

enum removed { REMOVED, NOT_EMPTY }; /* or a negative errno */

static int fail(const struct removal *r, int code, struct cj_error *err)
{
	return session_path_fail(r->path, code, "remove what is in", err);
}

static int refuse_more(const struct removal *r, struct cj_error *err)
{
	cj_refuse_as(err, EBUSY,
		     "'%s' has more than %d entries, or programs keep adding "
		     "to it: a part of it is removed",
		     r->path, SESSION_REMOVE_MAX);
	return cj_hint(err, "end the programs that write there, then remove it again");
}

/* Whatever has the name now; a directory only if it is empty. */
static int remove_one(int dir_fd, const char *name)
{
	if (session_path_is_mount(dir_fd, name))
		return -EBUSY;
	if (unlinkat(dir_fd, name, 0) == 0 || errno == ENOENT)
		return REMOVED;
	if (errno != EISDIR)
		return -errno;
	if (unlinkat(dir_fd, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
		return REMOVED;
	/* ENOTDIR: a program replaced it; the next round sees what it is. */
	return errno == ENOTEMPTY || errno == ENOTDIR ? NOT_EMPTY : -errno;
}

/* Gives a directory a name in the top that no other entry has. */
static int move_up(struct removal *r, int dir_fd, const char *name)
{
	for (;;) {
		char moved[48];
		(void)snprintf(moved, sizeof(moved), ".cejail-removed-%u", r->numbered);
		r->numbered++;
		if (renameat2(dir_fd, name, r->top_fd, moved, RENAME_NOREPLACE) == 0 ||
		    errno == ENOENT)
			return 0;
		if (errno != EEXIST || r->numbered >= SESSION_REMOVE_MAX)
			return -errno;
	}
}

static int remove_entry(struct removal *r, int dir_fd, const char *name, struct cj_error *err)
{
	if (++r->entries > SESSION_REMOVE_MAX)
		return refuse_more(r, err);
	int rc = remove_one(dir_fd, name);
	if (rc == NOT_EMPTY)
		rc = move_up(r, dir_fd, name);
	return rc < 0 ? fail(r, -rc, err) : 0;
}

/* Every entry of a directory with `act`; how many there were.  Takes fd. */
static int for_each(struct removal *r, int fd,
		    int (*act)(struct removal *, int dir_fd, const char *name, struct cj_error *),
		    struct cj_error *err)
{
	int count = 0;
	auto_fd_dir struct fd_dir *dir = fd_take_dir(fd);
	if (!dir)
		return fail(r, errno, err);
	for (const struct dirent *e; (e = fd_next_entry(dir)) != NULL;) {
		if (act(r, dir->fd, e->d_name, err) < 0)
			return -err->code;
		count += count < INT_MAX;
	}
	return count;
}

/* An entry of the top: a directory is emptied first. */
static int remove_of_top(struct removal *r, int top_fd, const char *name, struct cj_error *err)
{
	if (++r->entries > SESSION_REMOVE_MAX)
		return refuse_more(r, err);
	int rc = remove_one(top_fd, name);
	if (rc != NOT_EMPTY)
		return rc < 0 ? fail(r, -rc, err) : 0;

	int fd = jail_file_open(top_fd, name, O_DIRECTORY);
	/* ENOENT, ENOTDIR, ELOOP: a program replaced it; the next round sees what it is. */
	if (fd < 0)
		return errno == ENOENT || errno == ENOTDIR || errno == ELOOP ? 0
									     : fail(r, errno, err);
	if (for_each(r, fd, remove_entry, err) < 0)
		return -err->code;
	rc = remove_one(top_fd, name);
	return rc < 0 ? fail(r, -rc, err) : 0;
}

static int empty_top(struct removal *r, struct cj_error *err)
{
	for (unsigned round = 0; round < ROUNDS_MAX; round++) {
		int fd = jail_file_open(r->top_fd, ".", O_DIRECTORY);
		if (fd < 0)
			return fail(r, errno, err);
		int count = for_each(r, fd, remove_of_top, err);
		if (count <= 0)
			return count;
	}
	return refuse_more(r, err);
}

int session_file_remove(const struct jail *j, const char *path, struct cj_error *err)
{
	auto_arena struct arena a = { 0 };
	struct session_path at;
	const char *name;
	if (session_path_parse(j, path, &a, &at, err) < 0)
		return -err->code;
	auto_fd int parent_fd = session_path_open_parent(&at, 0, &a, &name, err);
	if (parent_fd < 0)
		return parent_fd;
	if (session_path_check_free(j, &at, "remove", err) < 0)
		return -err->code;
	if (faccessat(parent_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
		return session_path_fail(at.path, errno, "remove", err);
	int rc = remove_one(parent_fd, name);
	if (rc == NOT_EMPTY) {
		auto_fd int top_fd = jail_file_open(parent_fd, name, O_DIRECTORY);
		if (top_fd < 0)
			return session_path_fail(at.path, errno, "open", err);
		struct removal r = { .path = at.path, .top_fd = top_fd };
		do {
			if (empty_top(&r, err) < 0)
				return -err->code;
			if (++r.entries > SESSION_REMOVE_MAX)
				return refuse_more(&r, err);
			rc = remove_one(parent_fd, name);
		} while (rc == NOT_EMPTY);
	}
	return rc < 0 ? session_path_fail(at.path, -rc, "remove", err) : 0;
}
