/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keeper - the worker that keeps the jail of a session.
 *
 * It is the supervisor of the jail's init.  For each exec and each operation on a file it forks a
 * worker of its own, so that nothing a program does can delay the others: its one loop answers the
 * engine (session.h), the server (keeper_channel.h) and the ends of its workers, and waits for
 * none of them.
 *
 * It knows one caller and one session.  When it ends in any way, its workers and the jail end, too
 * (PR_SET_PDEATHSIG).
 */
#pragma once

#include <assert.h>

#include "runtime/base/error.h"
#include "runtime/service/worker/work.h"
#include "runtime/session/session.h"

/* From the end of a session until its workers are killed: they send their results meanwhile. */
#define KEEPER_END_MS 10000
static_assert(KEEPER_END_MS > CELL_CANCEL_MS, "a cell that is cancelled has time for its result");

/* Not more often than this a "status" line is sent. */
#define KEEPER_STATUS_MS 1000
/* When the last exec has ended, the next line comes so soon: others may wait for the memory. */
#define KEEPER_SETTLE_MS 50

/*
 * keeper_main - the life of a session: its jail, its workers, its end.
 *
 * w->job is a JOB_SESSION that was read; `early` is what failed before, or has no code.  signal_fd
 * is readable when SIGTERM asks to end it.  Returns when every program is dead and the line "ended"
 * is sent.  What is left of the jail is the caller's: the server does not wait for its removal.
 * Runs in: a worker, which exits after it.
 */
void keeper_main(struct work *w, int signal_fd, const struct cj_error *early);
