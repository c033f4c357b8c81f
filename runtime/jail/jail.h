/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jail - the engine: one way in for every front end.
 *
 *	jail_prepare(plan)     build and seal: nothing untrusted is inside yet
 *	jail_warm(launcher)    if wanted: an interpreter, started inside, that waits for its program
 *	jail_start(program)    hand the program in and let it go
 *	jail_wait(outcome)     watch it until the first terminal event, then end all of it
 *	jail_destroy()         always; gives back whatever is held, in any state
 *
 * jail.c opens with the theory of operation.
 */
#pragma once

#include <signal.h>

#include "profiles/plan/plan.h"
#include "runtime/base/error.h"
#include "runtime/jail/jail_io.h"
#include "runtime/jail/outcome.h"

struct jail;

/*
 * jail_prepare - from a plan to a sealed jail.
 *
 * The calling process has one thread: init is a copy of it that goes on without the others.
 * `id` names the cgroup leaf and the record.  Blocks PIPE, XFSZ, TERM and, where they would end
 * the calling process, INT, HUP, QUIT, ALRM and XCPU (jail_destroy restores them): they are read
 * from a descriptor, and any but the first two cancels the run.
 * Fails: with the stage's name in err->stage; nothing is held then.
 */
int jail_prepare(const struct plan *plan, const char *id, struct jail **out, struct cj_error *err);

/*
 * jail_warm - start `launcher` in the sealed jail; returns when it says that it waits.
 *
 * It is a program of ours (plan_launcher()): nothing untrusted has been inside afterwards either.
 * The one program that jail_start() hands over then runs in the process that waited: it says
 * with a byte on its descriptor 3 that it is ready, reads the program's words from there and
 * becomes the program.  The CPU time until here is not the program's; the memory is.
 * A waiting jail has no time limit.  Borrows `launcher` until jail_start(), which refuses (EINVAL)
 * a program whose command before the code, environment or directory is another.
 * Fails: what the launcher said and how it ended; ETIMEDOUT; the jail is only to be destroyed then.
 */
int jail_warm(struct jail *j, const struct program *launcher, struct cj_error *err);

/* Of a jail that waits for its program: readable once it, or its launcher, has ended instead. */
int jail_waiting_fd(const struct jail *j);

/* Reads the program's code and inputs with the caller's rights, hands them to init, starts the
 * payload.  Once for each jail. */
int jail_start(struct jail *j, const struct program *program, const struct jail_io *io,
	       struct cj_error *err);

/*
 * jail_wait - exactly one outcome, whatever happens.
 * Fails only when cejail itself did; *out is then a STATUS_SETUP_ERROR with the same error.
 */
int jail_wait(struct jail *j, struct outcome *out, struct cj_error *err);

/* After jail_wait: copy artefacts into a directory of the caller's (artifacts.h); fills
 * out->artifacts. */
int jail_collect(struct jail *j, int dest_fd, struct outcome *out, struct cj_error *err);

/* The same into memory, at most max_bytes of them together (artifacts_keep). */
int jail_collect_memory(struct jail *j, uint64_t max_bytes, struct outcome *out,
			struct cj_error *err);

void jail_destroy(struct jail **j);

/* The signals that cancel a run of this process: TERM, and of the above those it would die of. */
void jail_ending_signals(sigset_t *out);
