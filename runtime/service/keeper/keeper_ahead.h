/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keeper_ahead - the keeper of a session before its job comes, for TIER_REPL: the session has
 * begun in the prepared jail, and its interpreter starts and waits.  Acts.
 */
#pragma once

#include <stdbool.h>

#include "runtime/base/error.h"
#include "runtime/service/keeper/keeper_repl.h"
#include "runtime/service/worker/work.h"
#include "runtime/session/session.h"

/*
 * keeper_ahead_take - begin a session in w->driver.jail, send "ready" when its interpreter waits,
 * read the job.
 *
 * An interpreter that ends meanwhile is replaced.  If the jail or the interpreter fails when the
 * job has come already, *session and *repl are NULL and w is as for TIER_COLD: the keeper makes a
 * new jail.
 * True: the job was read; *early says why it fails, if it does.  False: the server does not want
 * this session any more, SIGTERM came, or "unready" was sent.  The caller ends what is there.
 */
bool keeper_ahead_take(struct work *w, int signal_fd, struct session **session,
		       struct keeper_repl **repl, struct cj_error *early);
