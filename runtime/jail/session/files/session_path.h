/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session_path - a path of a session's files: below which descriptor it is opened, and how.
 * session_files.h has the rules.
 */
#pragma once

#include "runtime/base/arena.h"
#include "runtime/base/error.h"

struct jail;

struct session_path {
	const char *path;   /* absolute, normalised; for messages and results */
	const char *inside; /* below dir_fd; ".": the top itself */
	int dir_fd;         /* borrowed: the jail's handle of /box or /tmp */
};

/* Fails: EXDEV when `path` is not below /box or /tmp; EINVAL when it has "..". */
int session_path_parse(const struct jail *j, const char *path, struct arena *a,
		       struct session_path *out, struct cj_error *err);

/* Opens the path itself.  Returns: a descriptor, the caller's to close. */
int session_path_open(const struct session_path *at, int flags, struct cj_error *err);

/* Opens its parent directory (O_PATH); *out_name is the last component, in the arena. */
int session_path_open_parent(const struct session_path *at, struct arena *a, const char **out_name,
			     struct cj_error *err);

/* "DOING 'PATH': WHY", with a hint where the errno has a known cause.  Returns -code. */
int session_path_fail(const struct session_path *at, int code, const char *doing,
		      struct cj_error *err) __attribute__((warn_unused_result));
