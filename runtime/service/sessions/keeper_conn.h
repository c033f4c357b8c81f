/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keeper_conn - what acts on the sessions of sessions.h: the connections to their keepers, with
 * execs, files and audit lines.
 *
 *	sessions_begin   a worker of the pool or a new one gets a JOB_SESSION
 *	"session"        the jail is built: the session lives, its caller is answered
 *	sessions_exec    an exec is queued as a run (execution.h); its worker is the keeper's
 *	sessions_close   the control pipe is closed: the keeper cancels the execs, destroys the jail
 *	"ended"          nothing of the jail is left; waiting callers are told why
 *
 * A session without its keeper has ended.  A caller that waits holds its exchange here, so it may
 * disconnect at any time, and nobody waits for it.
 */
#pragma once

#include "runtime/service/keeper/keeper_channel.h"
#include "runtime/service/sessions/sessions.h"

#define SESSIONS_START_MS     30000      /* for the jail to be built */
#define SESSIONS_END_MS       15000      /* for the keeper to end; it limits itself to less */
#define SESSION_FILE_MS       30000      /* between two signs of life of a file operation */
#define SESSION_STDIN_MAX     (1u << 20) /* buffered for an exec that does not read */
#define SESSION_FILES_MAX     16         /* operations of a caller at once, watches too */
#define SESSION_ALL_FILES_MAX 64
#define SESSION_FILE_BUFFER   (64u << 10) /* of a put; then its caller waits */

/* --- sessions ---------------------------------------------------------------------- */

/* A session as it is accepted. */
struct sessions_order {
	struct exchange *exchange;       /* answered when the session lives */
	struct run_order run;            /* moved, but for its body */
	struct sessions_request session; /* without its id and profile, which are those of `run` */
	/* Moved into the session on success: the profile, with the request's settings, and the
	 * memory of both. */
	struct config *profile, *config;
	struct arena *arena;
};
/* Answers the exchange with the session, as it is now. */
void sessions_reply(const struct session_entry *e, struct exchange *x, unsigned status);
/* Answers the exchange now or later, unless it fails. */
int sessions_begin(struct sessions *s, const struct sessions_order *o, struct cj_error *err);

/*
 * sessions_change_network - other rules for its network, from these settings, which were validated.
 *
 * narrows: they only close more of what the rules in force open.
 * API_OK: the exchange is answered when they are in force, with the session, or when they could not
 * be loaded; API_INTERNAL and API_BAD_REQUEST: *err says why not.
 */
enum api_code sessions_change_network(struct session_entry *e, const struct config *asked,
				      bool narrows, struct exchange *x, struct cj_error *err);

/* Ends it; the exchange, if there is one, is answered when it has ended. */
void sessions_close(struct session_entry *e, enum session_end reason, struct exchange *x);
void sessions_close_all(struct sessions *s, enum session_end reason);
/* Nothing of them is left afterwards; call it when executions have ended. */
void sessions_end_all(struct sessions *s);

/*
 * What is due: leases, idle times, deadlines, callers that have waited long enough; and while the
 * service drains, sessions without an exec.  Returns the time in ms until there is more, or -1.
 */
int sessions_tick(struct sessions *s, uint64_t now_ms);

/* --- execs: sessions_execs.c ---------------------------------------------------------- */

struct exec_order {
	struct run_order run;
	struct exchange *exchange; /* NULL: it is detached */
	bool is_cell, has_stdin;
};
/*
 * sessions_exec - queue an exec; takes the run's body.
 *
 * *out is the exec; of one that is not detached the exchange is held.  API_OK: it is
 * queued; API_INTERNAL: *err says why it is not.
 */
enum api_code sessions_exec(struct session_entry *e, const struct exec_order *order,
			    struct exec_entry **out, struct cj_error *err);
/* Answers the exchange when the exec is finished, or at `until_ms`. */
void sessions_await_exec(struct exec_entry *x, struct exchange *exchange, uint64_t until_ms);
/* API_OK: it is sent; to a queued exec, when that has its worker. */
enum api_code sessions_signal_exec(struct exec_entry *x, int signo);
/* Kills the processes that a finished exec left in the background, if there are any. */
void sessions_kill_left(const struct exec_entry *x);

/* All of it or nothing.  API_OK: it is taken, and so much waits in *out_buffered. */
enum api_code sessions_feed_exec(struct exec_entry *x, struct blob input, bool is_end,
				 size_t *out_buffered);

/*
 * keeper_stream_exec - the body of the exchange, which has begun, is the rest of its input.
 *
 * The body is read as the program reads.  If it ends early, the exec is cancelled: a program must
 * not take a part for the whole.
 * API_OK: the exchange is held.
 */
enum api_code keeper_stream_exec(struct exec_entry *x, struct exchange *exchange, size_t max);
/* The body is whole: answer its exchange.  Returns the exec. */
const struct exec_entry *keeper_stream_whole(struct exchange *exchange, size_t *out_accepted,
					     size_t *out_buffered);

/* --- files: sessions_files.c ------------------------------------------------------- */

struct file_order {
	struct file_job job;
	bool wants_head; /* of get: no bytes */
	char *bytes;     /* of put: malloc'ed, taken; NULL: they come through the exchange's body */
	size_t size;
};
/* Answers the exchange when it is done, or with a stream.  That of a put whose bytes are to come
 * diverts its body. */
void sessions_file(struct session_entry *e, const struct file_order *order, struct exchange *x);
/* The diverted body is whole. */
void sessions_file_whole(struct exchange *x);
