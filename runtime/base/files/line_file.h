/* SPDX-License-Identifier: Apache-2.0 */
/*
 * line_file - a file that several processes append lines to.
 *
 * A line is one write(2) with O_APPEND, so that lines of two writers do not mix.
 */
#pragma once

#include <limits.h>

#include "runtime/base/error.h"

struct line_file {
	int fd;       /* -1: none */
	bool is_torn; /* the file ends in half a line of ours: write a newline first */
	char path[PATH_MAX];
};
#define LINE_FILE_NULL ((struct line_file){ .fd = -1 })

/*
 * line_file_open - open the file for appending; `mode` is that of a new one.
 *
 * Fails: a symbolic link, or no regular file; *out is not changed then.
 */
int line_file_open(const char *path, mode_t mode, struct line_file *out, struct cj_error *err);
/* For log rotation: opens the path again, if there is a file.  If that fails, it stays in use. */
int line_file_reopen(struct line_file *f, mode_t mode, struct cj_error *err);
void line_file_close(struct line_file *f);

/* Appends the text, which has no newline, and a newline.  Fails: ENOSPC if only a part fits. */
int line_file_append(struct line_file *f, const char *text, size_t size, struct cj_error *err);
