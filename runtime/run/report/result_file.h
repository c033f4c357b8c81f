/* SPDX-License-Identifier: Apache-2.0 */
/*
 * result_file - `--json=FILE`: after a run, FILE has the whole result or is unchanged.
 *
 * It is opened before the run, so that a directory that cannot be written is an error before the
 * program starts.  The text is written to a file without a name, which then replaces FILE.  A FILE
 * that exists and is not a regular file (a FIFO, /dev/stderr) is written in place.
 */
#pragma once

#include "runtime/base/error.h"
#include "runtime/base/files/atomic_file.h"

struct result_file {
	int dir_fd;             /* -1: not open */
	struct atomic_file new; /* with is_in_place: FILE itself, open */
	char *name;             /* below dir_fd */
	bool is_in_place;       /* FILE exists and is not a regular file */
};

#define RESULT_FILE_NULL                                                                           \
	{                                                                                          \
		.dir_fd = -1, .new = NEWFILE_NULL                                                  \
	}

int result_file_open(const char *path, struct result_file *out, struct cj_error *err);

/* Makes what was written to new.fd visible as FILE. */
int result_file_publish(struct result_file *f, struct cj_error *err);

/* Writes the text and a newline, and makes the file visible as FILE. */
int result_file_commit(struct result_file *f, const char *text, size_t size, struct cj_error *err);

/* Discards the new file if it was not committed. */
void result_file_fini(struct result_file *f);
