/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libexec_run - runs a helper of ours from PREFIX/libexec/cejail and reads its answer.  Acts.
 *
 * A helper is a program of its own because of the libraries that it loads: none of them is ever in
 * the launcher's memory, nor in init's, and the launcher is linked statically.  It acts with the
 * caller's rights.  libexec_program.h is the helper's side.
 */
#pragma once

#include <stddef.h>

#include "runtime/base/error.h"

struct libexec_call {
	const char *name;        /* of the program */
	const char *what;        /* for messages: "the helper for names" */
	const char *const *args; /* without the program's name; ends with NULL */
	void *answer;            /* filled on success */
	size_t answer_max;       /* the largest answer; 0: it answers nothing */
};

/*
 * libexec_run - returns the size of the answer, once the helper has ended.
 *
 * The helper has the time limit: see libexec_begin().
 * Fails: as the helper says; ETIMEDOUT; EPROTO when it ends in another way or answers too much;
 *        ENOENT when it is not installed.
 * Follows: posix_spawn(3).
 */
ssize_t libexec_run(const struct libexec_call *call, struct cj_error *err);
