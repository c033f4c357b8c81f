/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exposure - what a host path that is shown in a jail hands to the program: sockets that control
 * the host, agents with keys, home directories.
 *
 * A warning, no isolation: the list has common paths only.  exposure_of() is pure; the rest
 * asks the host.
 */
#pragma once

#include <stdbool.h>

#include "runtime/base/arena.h"
#include "runtime/base/error.h"

struct exposure {
	const char *path; /* a pattern of fnmatch(3), FNM_PATHNAME */
	const char *what; /* "hands the program ...": control of docker */
	bool
	    is_control; /* a program that uses it controls this host, or a user's session: --strict refuses */
};

/* The row for the path of a socket or a directory; NULL: none.  Compares the text only. */
const struct exposure *exposure_of(const char *path);

/* From the caller's environment. */
struct exposure_caller {
	const char *home;      /* HOME; NULL: unknown */
	const char *ssh_agent; /* SSH_AUTH_SOCK */
};

/*
 * exposure_check - say what `source` (absolute, without links, there) hands the program.
 *
 * Adds at most one sentence to *warnings, which begins with `option`.  A path matches by its text,
 * by being the same file as a listed path, and by a listed socket below it.
 * Fails: with `strict`, where a socket that controls the host is handed out.
 */
int exposure_check(const char *option, const char *source, const struct exposure_caller *caller,
		   bool strict, struct arena *a, struct strings *warnings, struct cj_error *err);
