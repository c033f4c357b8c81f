/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session_files - looks at, reads, lists, watches and changes files of a session from outside.
 *
 * Untrusted programs run meanwhile: they choose each name, type and mode, and change the tree at
 * any time.  So:
 *
 *	- the caller first becomes the user of the programs (session_files_become()), and opens
 *	  everything through the jail's own mounts: no more can be read or written than by a program
 *	- a path lies below /box, /tmp, or a destination of the caller's own mounts.  It is opened
 *	  below the jail's root, across no symbolic link (openat2(2))
 *	- nothing blocks: only regular files are read, and a FIFO is never opened
 *	- the bytes that are read are counted, not the size that stat(2) reports; entries and depth
 *	  have limits, too
 */
#pragma once

#include "runtime/base/arena.h"
#include "runtime/base/error.h"

struct jail;

#define SESSION_LIST_DEPTH_MAX 64         /* directories below the one that is listed */
#define SESSION_LIST_BYTES_MAX (4u << 20) /* of all paths of one listing */

enum session_file_kind {
	SESSION_FILE_REGULAR,
	SESSION_FILE_DIRECTORY,
	SESSION_FILE_SYMLINK,
	SESSION_FILE_FIFO,
	SESSION_FILE_SOCKET,
	SESSION_FILE_OTHER,
	SESSION_FILE_KIND_COUNT
};
/* "file", "directory", "symlink", "fifo", "socket", "other" */
extern const char *const session_file_kind_names[SESSION_FILE_KIND_COUNT];

struct session_file {
	/* Absolute, in the jail.  Always UTF-8 without control characters: a path with other bytes
	 * shows them as \xNN, and names no file. */
	const char *path;
	enum session_file_kind kind;
	uint64_t bytes;   /* as stat(2) reports them; 0 of a directory */
	unsigned mode;    /* permission bits */
	int64_t mtime_ms; /* since 1970; the program can set it to any value */
};

/*
 * session_files_become - from now on this process has the rights of the session's programs to
 * files, and no more.  It stays in the namespaces of its keeper.
 *
 * Runs in: a fork of the keeper, before any of the calls below.
 */
int session_files_become(const struct jail *j, struct cj_error *err);

/* Looks at one path.  A symbolic link is reported, not followed. */
int session_file_stat(const struct jail *j, const char *path, struct arena *a,
		      struct session_file *out, struct cj_error *err);

/*
 * Opens one regular file to read it; EFBIG if it has more than max_bytes.  It may grow or shrink
 * afterwards.  Returns: a descriptor, the caller's to close.
 */
int session_file_open(const struct jail *j, const char *path, uint64_t max_bytes, struct arena *a,
		      struct session_file *out, struct cj_error *err);

struct session_list_request {
	const char *path; /* of a directory */
	unsigned depth;   /* 1: its entries; 2: theirs, too; at most SESSION_LIST_DEPTH_MAX */
	size_t max_entries;
};

struct session_listing {
	const struct session_file *items; /* by path */
	size_t count;
	bool is_truncated; /* there are more entries, or some could not be looked at */
};

int session_file_list(const struct jail *j, const struct session_list_request *request,
		      struct arena *a, struct session_listing *out, struct cj_error *err);

/* --- changes in a directory, by inotify(7) ----------------------------------------------- */

enum session_change {
	SESSION_CHANGE_CREATE, /* also: moved here */
	SESSION_CHANGE_WRITE,
	SESSION_CHANGE_CHMOD, /* mode, owner or times */
	SESSION_CHANGE_REMOVE,
	SESSION_CHANGE_RENAME, /* moved away; if it stays here, CREATE follows with the new name */
	SESSION_CHANGE_OVERFLOW, /* changes are missing here: list the directory */
	SESSION_CHANGE_COUNT
};
extern const char *const session_change_names[SESSION_CHANGE_COUNT]; /* "create", ... */

struct session_watch {
	const char *path; /* of the directory, in the arena of session_watch_open() */
	int fd;           /* readable when there are changes; -1: none */
};
#define SESSION_WATCH_NULL ((struct session_watch){ .fd = -1 })

/* Sees what happens in the directory, not below it.  The caller closes out->fd. */
int session_watch_open(const struct jail *j, const char *path, struct arena *a,
		       struct session_watch *out, struct cj_error *err);

/*
 * session_watch_read - call `see` for each change that has come.  The path is absolute, escaped as
 * that of a struct session_file, and lives until `see` returns.
 * Returns 0 when the directory itself is gone, else 1.  Fails: as `see` does.
 */
int session_watch_read(const struct session_watch *w,
		       int (*see)(void *context, enum session_change change, const char *path,
				  struct cj_error *err),
		       void *context, struct cj_error *err);

/* --- session_change.c ---------------------------------------------------------------- */

/* A file that is being written; its name appears with session_file_publish(). */
struct session_put {
	const char *path, *name; /* in the arena of session_file_create() */
	char fresh[40];          /* its name until then; "": it has none */
	int dir_fd, fd;          /* write to fd */
};
#define SESSION_PUT_NULL ((struct session_put){ .dir_fd = -1, .fd = -1 })

/*
 * session_file_create - begin a file, and make the directories that are missing above it.
 *
 * Fails: EACCES when a file of that name may not be written; EISDIR; EBUSY when a mount is there.
 */
int session_file_create(const struct jail *j, const char *path, struct arena *a,
			struct session_put *out, struct cj_error *err);
/* It replaces what has the name: programs see the old file or the whole new one. */
int session_file_publish(struct session_put *put, bool is_executable, struct cj_error *err);
/* Removes what was not published. */
void session_put_fini(struct session_put *put);

/* Makes a directory and those missing above it.  *out_is_new false: it was there.  EEXIST: a file
 * has the name. */
int session_file_mkdir(const struct jail *j, const char *path, bool *out_is_new,
		       struct cj_error *err);

/* As rename(2): a file replaces a file, a directory an empty one.  EXDEV: they are on different
 * mounts. */
int session_file_rename(const struct jail *j, const char *path, const char *to,
			struct cj_error *err);

#define SESSION_REMOVE_MAX 1000000 /* entries that one removal looks at */

/*
 * session_file_remove - remove a file, a link, or a directory and everything in it.
 *
 * Fails: EBUSY when programs keep adding to the tree, or it has more than SESSION_REMOVE_MAX
 *        entries; a part of the tree is removed then.  What is left of it after any failure may
 *        have moved to ".cejail-removed-N" in the tree's top.
 *
 * In a writable bind, a directory that a process of the host moves out of the tree meanwhile may
 * still lose its entries.
 */
int session_file_remove(const struct jail *j, const char *path, struct cj_error *err);

/* --- failures ---------------------------------------------------------------------------- */

/* What a failure of these calls means to the API's caller. */
enum file_error {
	FILE_NOT_FOUND,   /* also: a symbolic link is on the way */
	FILE_NOT_REGULAR, /* a FIFO, a device, a socket; a directory where a file is wanted */
	FILE_TOO_LARGE,
	FILE_OUTSIDE, /* no path of the session's files */
	FILE_NO_SPACE,
	FILE_DENIED, /* the jail's user has no access */
	FILE_EXISTS,
	FILE_FAILED, /* the session has ended, or cejail failed */
	FILE_ERROR_COUNT
};
extern const char *const file_error_names[FILE_ERROR_COUNT]; /* "not_found", ... */
/* By err->code. */
enum file_error session_file_error(int code);
