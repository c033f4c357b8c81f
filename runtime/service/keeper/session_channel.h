/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session_channel - what the server and the keeper of a session send each other.  Acts.
 *
 * A keeper is a worker (spawner_ask(), not TIER_INTERPRETER) that received a job of the kind
 * JOB_SESSION.  To the keeper, over its socket after the job: messages of one size, some with
 * descriptors.  To the server: JSON lines, in this order:
 *
 *	{"type":"ready",...}, {"type":"unready",...}   as of any worker (job.h), before the job
 *	{"type":"session", ...}                        the jail is built: execs may be sent
 *	{"type":"status", ...}                         now and then, while something changes
 *	{"type":"ended","reason":R,"message":M}        last; the jail is gone; then end of file
 *
 * A session that can't be built has an "ended" line with the reason "failed" and no "session" line.
 * End of file without "ended": the keeper was killed, and its jail with it.
 *
 * A worker of a keeper gets its own job from the server, over its own socket.  One for an exec
 * sends what a worker of a run sends, without "ready"; one for files the lines of file_job.h.
 * If the keeper can't start it, it sends "unready" on that socket.
 *
 * Closing the control pipe of an exec cancels it.  Closing that of the keeper ends the session:
 * execs are cancelled, they send their results, then the jail is destroyed.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "runtime/base/error.h"
#include "runtime/service/worker/job.h"
#include "runtime/service/worker/spawner.h"
#include "runtime/session/session.h"

#define SESSION_WORKERS_MAX 64 /* of one session at once: execs and files; then "unready" */

/* --- the server's side ------------------------------------------------------------- */

enum session_worker {
	SESSION_WORKER_EXEC,
	SESSION_WORKER_CELL,  /* an exec whose code runs in the session's interpreter */
	SESSION_WORKER_FILE,  /* an operation on files (file_job.h) */
	SESSION_WORKER_WRITE, /* likewise, and the session pays for its memory */
	SESSION_WORKER_COUNT
};

/*
 * session_send_worker - ask for a worker in the session; send it its job by worker_send_job().
 *
 * `id` is the exec's, "" of a file.  With out_stdin_fd the exec's standard input, or the bytes of a
 * file, come through a pipe, whose write end the caller gets, non-blocking.
 * Fails: EAGAIN when the keeper does not read; EPIPE when it has ended.
 */
int session_send_worker(const struct worker *keeper, enum session_worker kind, const char *id,
			struct worker *out, int *out_stdin_fd, struct cj_error *err);

/*
 * session_send_signal - a signal to the main process of an exec.
 *
 * The keeper holds it until the program runs, or until the interpreter begins the cell.
 * Best-effort: an exec that has ended does not get it.
 */
int session_send_signal(const struct worker *keeper, const char *id, int signo,
			struct cj_error *err);

/* --- the keeper's side ------------------------------------------------------------- */

enum session_request_kind { SESSION_REQUEST_WORKER, SESSION_REQUEST_SIGNAL, SESSION_REQUEST_COUNT };

struct session_request {
	enum session_request_kind kind;
	enum session_worker worker;
	char id[PLAN_ID_MAX];
	int signo;
	int sock_fd, control_fd, stdin_fd; /* of a worker; stdin_fd -1: none.  The receiver's */
};

#define SESSION_REQUEST_NULL                                                                       \
	{                                                                                          \
		.sock_fd = -1, .control_fd = -1, .stdin_fd = -1                                    \
	}

/* One request.  Returns 1, or 0 when there is none now.  Fails: EPIPE when the server has ended. */
int session_receive(int sock_fd, struct session_request *out, struct cj_error *err);
void session_request_fini(struct session_request *r);

/* --- lines of the keeper ----------------------------------------------------------- */

enum session_line_type {
	SESSION_LINE_NONE, /* another line, or one that can't be read */
	SESSION_LINE_LIVES,
	SESSION_LINE_STATUS,
	SESSION_LINE_ENDED,
};

struct session_line {
	enum session_line_type type;
	/* "session" */
	bool is_isolated; /* execs can't reach each other's processes: Landlock is in force */
	/* "status" */
	uint64_t cpu_ms;             /* of the whole jail */
	uint64_t memory_bytes, pids; /* the highest so far */
	uint64_t used_bytes;         /* of memory, now; UINT64_MAX: not known, or an exec runs */
	uint64_t denied_syscalls, denied_packets;
	/* "ended" */
	enum session_end reason;
	char stage[32];
	char message[CJ_ERROR_MSG_MAX + CJ_ERROR_HINT_MAX + 4]; /* names the host: for the log */
	bool is_callers_own; /* the caller's mistake: it may see the message */
};

/* Writes the line; never blocks.  Fails: EAGAIN when the server does not read. */
int session_line_send(int sock_fd, const struct session_line *line, struct cj_error *err);
/* The line "ended", with why->stage and its message.  Waits `wait_ms` for room at most. */
void session_end_send(int sock_fd, enum session_end reason, const struct cj_error *why,
		      bool is_callers_own, int wait_ms);
void session_line_read(const char *text, size_t size, struct session_line *out);
