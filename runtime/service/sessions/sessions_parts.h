/* SPDX-License-Identifier: Apache-2.0 */
/* sessions_parts - shared by keeper_conn.c, sessions_execs.c, sessions_files.c, sessions_pipe.c. */
#pragma once

#include "runtime/service/sessions/keeper_conn.h"

/* A caller that waits for a session to live or to end, or for the end of an exec. */
struct session_waiter {
	TAILQ_ENTRY(session_waiter) link;
	struct session_entry *session;
	struct exec_entry *exec; /* NULL: it waits for the session */
	struct exchange *exchange;
	bool is_creator;   /* of the session */
	bool has_network;  /* it waits until next_network is loaded */
	uint64_t until_ms; /* then an exec is shown as it is */
};
/* Copies the waiter and holds its exchange.  False: no memory, and the exchange was refused. */
bool sessions_wait(const struct session_waiter *waiter);
/* Answers callers that have waited long enough.  Returns the time in ms until the next, or -1. */
int sessions_answer(struct session_entry *e, uint64_t now_ms);
void sessions_reply_exec(const struct exec_entry *x, struct exchange *exchange);

/* Can its keeper be asked for something? */
static inline bool sessions_is_live(const struct session_entry *e)
{
	return e->conn && e->state == ENTRY_LIVE;
}

/* Fails the queued execs, and all others if the keeper is gone: sessions_execs.c. */
void sessions_end_execs(struct session_entry *e, bool is_gone);

/* Removes what is over or too late: sessions_files.c. */
void sessions_tick_files(struct session_entry *e, uint64_t now_ms, int *wait_ms);
void sessions_close_files(struct session_entry *e);

/* Takes the descriptor, writes what waits. */
int sessions_pipe_adopt(struct sessions_pipe *p, int *fd, struct cj_error *err);
/* Writes what the pipe takes, calls p->flushed(), closes what has come to its end. */
void sessions_pipe_flush(struct sessions_pipe *p);
/* Bytes that wait are dropped. */
void sessions_pipe_close(struct sessions_pipe *p);
