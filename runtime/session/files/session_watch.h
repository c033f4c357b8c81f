/* SPDX-License-Identifier: Apache-2.0 */
/* session_watch - the changes in one directory of a session, by inotify(7). */
#pragma once

#include "runtime/base/arena.h"
#include "runtime/base/error.h"

struct jail;

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
