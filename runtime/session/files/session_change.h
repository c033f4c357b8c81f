/* SPDX-License-Identifier: Apache-2.0 */
/* session_change - changes files of a session, by the rules of session_files.h. */
#pragma once

#include <stdbool.h>

#include "runtime/base/arena.h"
#include "runtime/base/error.h"

struct jail;

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

/* --- removal: session_remove.c --------------------------------------------------------------- */

#define SESSION_REMOVE_MAX 1000000 /* entries that one removal looks at */

/*
 * session_file_remove - remove a file, a link or an empty directory; with is_tree a directory and
 * everything in it.
 *
 * Fails: EBUSY when programs keep adding to the tree, or it has more than SESSION_REMOVE_MAX
 *        entries; a part of the tree is removed then.  What is left of it after any failure may
 *        have moved to ".cejail-removed-N" in the tree's top.
 *
 * In a writable bind, a directory that a process of the host moves out of the tree meanwhile may
 * still lose its entries.
 */
int session_file_remove(const struct jail *j, const char *path, bool is_tree, struct cj_error *err);
