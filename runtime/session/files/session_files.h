/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session_files - looks at, reads and lists files of a session from outside.
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

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
	const char *path; /* absolute, in the jail; always UTF-8 without control characters */
	bool is_escaped;  /* the name has other bytes, shown as \xNN: the path names no file */
	enum session_file_kind kind;
	uint64_t bytes;   /* as stat(2) reports them; 0 of a directory */
	unsigned mode;    /* permission bits */
	int64_t mtime_ms; /* since 1970; the program can set it to any value */
};

/* A path as it is in a struct session_file.  NULL: no memory. */
const char *session_file_shown(const char *path, struct arena *a);

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
