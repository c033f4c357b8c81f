/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session_files - looks at, reads and lists files of a session from outside.
 *
 * Untrusted programs run meanwhile: they choose each name, type and mode, and change the tree at
 * any time.  So:
 *
 *	- a path lies below /box or /tmp.  It is opened below the jail's own descriptors of them,
 *	  across no symbolic link and no other mount (openat2(2)): a --bind or --overlay below
 *	  /box is outside
 *	- nothing blocks: only regular files are read, and a FIFO is never opened
 *	- the bytes that are read are counted, not the size that stat(2) reports; entries and depth
 *	  have limits, too
 *
 * A file may have several hard links: both directories are on the jail's own tmpfs, so all names
 * of the file are in the jail.
 *
 * Each call acts with the rights of the calling process.  If that is not root, a file that the
 * program made unreadable is refused (EACCES), as the jail's user itself would be.
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

/* Looks at one path.  A symbolic link is reported, not followed. */
int session_file_stat(const struct jail *j, const char *path, struct arena *a,
		      struct session_file *out, struct cj_error *err);

struct session_content {
	struct session_file file;
	const char *bytes; /* with a NUL behind them, which `size` does not count */
	size_t size;       /* bytes read: the file may have grown or shrunk meanwhile */
};

/* Reads one regular file, at most max_bytes: EFBIG for more. */
int session_file_read(const struct jail *j, const char *path, size_t max_bytes, struct arena *a,
		      struct session_content *out, struct cj_error *err);

/* Reads a part of one regular file: at most max_bytes from `offset` on, none behind its end. */
int session_file_read_part(const struct jail *j, const char *path, uint64_t offset,
			   size_t max_bytes, struct arena *a, struct session_content *out,
			   struct cj_error *err);

struct session_list_request {
	const char *path; /* of a directory */
	unsigned depth;   /* 1: its entries; 2: theirs, too; at most SESSION_LIST_DEPTH_MAX */
	size_t max_entries;
};

struct session_listing {
	const struct session_file *items; /* by path */
	size_t count;
	bool is_truncated; /* there are more entries, or a directory could not be read */
};

int session_file_list(const struct jail *j, const struct session_list_request *request,
		      struct arena *a, struct session_listing *out, struct cj_error *err);

/*
 * What a failure of these calls means to the API's caller, by err->code: "not_found",
 * "not_regular", "too_large", "outside", "no_space", "denied"; "failed" for any other.
 */
const char *session_file_fault(int code);
