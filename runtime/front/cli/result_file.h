/* SPDX-License-Identifier: Apache-2.0 */
/*
 * result_file - `--json=FILE`: a file that is whole or is not there.
 *
 * Opened before the run, so that a place that can't be written ends it before it
 * begins; the text goes to a file without a name, which takes FILE's place when it is
 * whole.  What is there and is no regular file (a fifo, /dev/stderr) is written as it
 * stands.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "runtime/base/error.h"
#include "runtime/base/files/atomic_file.h"

struct result_file {
	int dir_fd;             /* -1: not open */
	struct atomic_file new; /* or what is there, open */
	char *name;             /* below dir_fd */
	bool is_in_place;       /* what is there is written as it stands */
};

#define RESULT_FILE_NULL                                                                           \
	{                                                                                          \
		.dir_fd = -1, .new = NEWFILE_NULL                                                  \
	}

int result_file_open(const char *path, struct result_file *out, struct cj_error *err);

/* Writes the text and a newline, and gives the file its name. */
int result_file_commit(struct result_file *f, const char *text, size_t size, struct cj_error *err);

/* Leaves nothing behind unless it was committed. */
void result_file_fini(struct result_file *f);
