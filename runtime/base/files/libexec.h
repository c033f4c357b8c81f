/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libexec - helpers: programs of ours that lie in PREFIX/libexec/cejail, of the PREFIX that has the
 * running program in bin or there, too; never found by PATH.
 *
 * A helper is a program of its own because of the libraries that it loads: none of them is ever in
 * the launcher's memory, nor in init's, and the launcher is linked statically.  It acts with the
 * caller's rights.
 */
#pragma once

#include <limits.h>

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

/* The path of the running program, also when that is a copy in memory: own_copy.c. */
int libexec_self(char out[static PATH_MAX], struct cj_error *err);

/*
 * The path of the helper `name`.  Fails: EPERM where users other than root, the caller and the
 * owner of the running program could have put it there.
 */
int libexec_find(const char *name, char out[static PATH_MAX], struct cj_error *err);

/* A helper that stays. */
struct libexec_program {
	const char *name;
	const char *const *args; /* without the program's name; both end with NULL */
	char *const *environment;
	const int *fds; /* they stay the caller's */
	size_t count;
	bool blocks_signals; /* all of them, from its start on */
};

/*
 * libexec_start - start a helper that ends with the caller at the latest.
 *
 * The helper finds fds[] at 3, 4, ..., in a session of its own, in "/", with /dev/null as its
 * streams and with default signal actions.  Returns its pid; the caller owns the pidfd.
 * Waits as long as execve(2) does: on a file system that does not answer, for ever.
 * Fails: also when the program can't be executed: no process is left then.
 * Must not: be called by two threads at once.
 */
pid_t libexec_start(const struct libexec_program *program, int *out_pidfd, struct cj_error *err);

/* --- for the helper itself ----------------------------------------------------- */

/*
 * libexec_begin - from now on the program ends with its parent, and after so many seconds at the
 * latest: what it asks may never answer.
 */
void libexec_begin(unsigned life_seconds);

/* Writes the answer to standard output.  Returns the exit status. */
int libexec_answer(const void *bytes, size_t size);
/* Writes the error there.  Returns the exit status that goes with it. */
int libexec_fail(const struct cj_error *err);
