/* SPDX-License-Identifier: Apache-2.0 */
/*
 * autorun - names that other programs execute or obey where they find them: git's hooks, an
 * editor's tasks, a shell's start-up files.
 *
 * A program in a jail may write to a directory of the caller (--bind), or its files are copied into
 * one (--artifacts).  It could leave such a file there, which the caller's own tools run later.
 */
#pragma once

#include <time.h>

#define AUTORUN_ROWS_MAX 64

/* Why such a file is not copied out. */
#define AUTORUN_FAULT "other programs execute or obey a file of this name"

/* The file at a name; all null: none. */
struct autorun_mark {
	uint64_t inode;
	struct timespec changed; /* ctime(2): the program can't set it */
};

struct autorun_marks {
	struct autorun_mark of[AUTORUN_ROWS_MAX];
};

/* True when `path`, or a directory in it, is one of the names, at any depth. */
bool autorun_has_name(const char *path);

/* Records the file at each name below the directory.  Follows no link. */
void autorun_look(int dir_fd, struct autorun_marks *out);

/*
 * The first name from row *at on whose file is new or changed; NULL: no more.  Sets *at for the
 * next call.  Of a directory and a name in it only one is returned.
 */
const char *autorun_next_change(const struct autorun_marks *before,
				const struct autorun_marks *after, size_t *at);
