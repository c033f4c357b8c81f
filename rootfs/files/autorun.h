/* SPDX-License-Identifier: Apache-2.0 */
/*
 * autorun - names that other programs execute or obey where they find them: git's hooks, an
 * editor's tasks, a shell's start-up files.
 *
 * A program in a jail that may write a directory of the caller's (--bind), or whose files are
 * copied into one (--artifacts), could leave such a file and wait until the caller's own tools run
 * it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#define AUTORUN_ROWS_MAX 64

/* Why such a file is not copied out. */
#define AUTORUN_FAULT "other programs execute or obey a file of this name"

/* What was at a name; all null: nothing. */
struct autorun_mark {
	uint64_t inode;
	struct timespec changed; /* ctime(2): the program can't set it */
};

struct autorun_marks {
	struct autorun_mark of[AUTORUN_ROWS_MAX];
};

/* Is `path`, or a directory on the way to it, one of the names, at any depth?  Pure. */
bool autorun_has_name(const char *path);

/* What is at each name below the directory now.  No link is followed. */
void autorun_look(int dir_fd, struct autorun_marks *out);

/*
 * The first name from row *at on that is new, or another one than before; NULL: no more.  *at is
 * where to go on.  Of a directory and a name in it one is given.
 */
const char *autorun_next_change(const struct autorun_marks *before,
				const struct autorun_marks *after, size_t *at);
