/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Removes a file or a tree of a jail in which programs run.
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
#include "runtime/session/files/session_change.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "rootfs/files/jail_file.h"
#include "runtime/base/files/fd.h"
#include "runtime/base/scope.h"
#include "runtime/session/files/session_path.h"

#define ROUNDS_MAX 10000 /* through the top; each but the last finds an entry */

struct removal {
	const struct session_path *at;
	int top_fd;        /* the tree's top */
	unsigned entries;  /* looked at so far */
	unsigned numbered; /* names that were given to moved directories */
};

/* What to do with the next entry. */
enum removed { REMOVED, NOT_EMPTY }; /* or a negative errno */

static int fail(const struct removal *r, int code, struct cj_error *err)
{
	return session_path_fail(r->at, code, "remove what is in", err);
}

static int refuse_more(const struct removal *r, struct cj_error *err)
{
	cj_refuse_as(err, EBUSY,
		     "'%s' has more than %d entries, or programs keep adding "
		     "to it: a part of it is removed",
		     r->at->path, SESSION_REMOVE_MAX);
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
	auto_dir DIR *dir = fd_take_dir(fd);
	if (!dir)
		return fail(r, errno, err);
	for (const struct dirent *e; (e = readdir(dir)) != NULL;) {
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		if (act(r, dirfd(dir), e->d_name, err) < 0)
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

static int remove_tree(const struct session_path *at, int parent_fd, const char *name,
		       struct cj_error *err)
{
	auto_fd int top_fd = jail_file_open(parent_fd, name, O_DIRECTORY);
	if (top_fd < 0)
		return session_path_fail(at, errno, "open", err);
	struct removal r = { .at = at, .top_fd = top_fd };
	int rc;
	do {
		if (empty_top(&r, err) < 0)
			return -err->code;
		if (++r.entries > SESSION_REMOVE_MAX)
			return refuse_more(&r, err);
		rc = remove_one(parent_fd, name);
	} while (rc == NOT_EMPTY);
	return rc < 0 ? session_path_fail(at, -rc, "remove", err) : 0;
}

static int remove_named(const struct session_path *at, int parent_fd, const char *name,
			bool is_tree, struct cj_error *err)
{
	if (faccessat(parent_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
		return session_path_fail(at, errno, "remove", err);
	int rc = remove_one(parent_fd, name);
	if (rc != NOT_EMPTY)
		return rc < 0 ? session_path_fail(at, -rc, "remove", err) : 0;
	if (is_tree)
		return remove_tree(at, parent_fd, name, err);
	return session_path_fail(at, ENOTEMPTY, "remove", err);
}

int session_file_remove(const struct jail *j, const char *path, bool is_tree, struct cj_error *err)
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
	return remove_named(&at, parent_fd, name, is_tree, err);
}
