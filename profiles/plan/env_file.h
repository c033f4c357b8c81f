/* SPDX-License-Identifier: Apache-2.0 */
/*
 * env_file - the file of --env-file, in docker's format.
 *
 * A line is NAME=VALUE, or NAME alone: the caller's own value.  Blanks before NAME are skipped; a
 * line that is empty or begins with '#' is a comment.  VALUE is taken as it stands: quotes,
 * backslashes and blanks are part of it.
 */
#pragma once

#include "runtime/base/arena.h"
#include "runtime/base/error.h"

#define ENV_FILE_MAX (1u << 20) /* bytes */

struct env_line {
	const char *text; /* "NAME=VALUE" or "NAME" */
	unsigned number;  /* from 1 */
};

/* The "NAME=VALUE" of a list that ends in a NULL (or is NULL); NULL: it has no NAME. */
const char *env_find(const char *const *env, const char *name);
/* The VALUE alone. */
const char *env_value(const char *const *env, const char *name);

/*
 * env_file_parse - the lines of `text` that name a variable, in their order.
 *
 * `caller_env`: of the caller, for a NAME alone.  What is returned lives in the arena; whether NAME
 * is one is for the setting --env to say.
 * Fails: a NUL byte, a NAME alone that is not set: "line 3: ...".
 */
int env_file_parse(const char *text, size_t size, const char *const *caller_env, struct arena *a,
		   struct env_line **out, size_t *out_count, struct cj_error *err);
