/* SPDX-License-Identifier: Apache-2.0 */
/* How a session ends, in words. */
#include "runtime/session/session.h"

const struct session_end_row session_ends[SESSION_END_COUNT] = {
	[SESSION_LIVES] = { "lives", "the session has not ended" },
	[SESSION_LEASE] = { "lease", "the session's lease is over" },
	[SESSION_IDLE] = { "idle", "the session was idle for too long" },
	[SESSION_DRAIN] = { "drain", "the service is shutting down" },
	[SESSION_CLOSED] = { "closed", "the session was closed" },
	[SESSION_OOM] = { "oom", "the programs of the session together exceeded its memory limit" },
	[SESSION_KILLED] = { "killed",
			     "a program of the session ended the first process of its jail" },
	[SESSION_STUCK] = { "stuck", "the processes of an exec could not be killed" },
	[SESSION_FAILED] = { "failed",
			     "the session's jail failed; the service's log has the reason" },
};
