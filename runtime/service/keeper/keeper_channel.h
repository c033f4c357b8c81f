/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keeper_channel - what the server and the keeper of a session send each other.
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

#define KEEPER_WORKERS_MAX 64 /* of one session at once: execs and files; then "unready" */

/* --- the server's side ------------------------------------------------------------- */

enum keeper_worker {
	KEEPER_WORKER_EXEC,
	KEEPER_WORKER_CELL,  /* an exec whose code runs in the session's interpreter */
	KEEPER_WORKER_FILE,  /* an operation on files (file_job.h) */
	KEEPER_WORKER_WRITE, /* likewise, and the session pays for its memory */
	KEEPER_WORKER_COUNT
};

/*
 * keeper_send_worker - ask for a worker in the session; send it its job by worker_send_job().
 *
 * `id` is the exec's, "" of a file.  With out_stdin_fd the exec's standard input, or the bytes of a
 * file, come through a pipe, whose write end the caller gets, non-blocking.
 * Fails: EAGAIN when the keeper does not read; EPIPE when it has ended.
 */
int keeper_send_worker(const struct worker *keeper, enum keeper_worker kind, const char *id,
		       struct worker *out, int *out_stdin_fd, struct cj_error *err);

/*
 * keeper_send_signal - a signal to the main process of an exec.
 *
 * The keeper holds it until the program runs, or until the interpreter begins the cell.
 * Best-effort: an exec that has ended does not get it.
 */
int keeper_send_signal(const struct worker *keeper, const char *id, int signo,
		       struct cj_error *err);

/* --- the keeper's side ------------------------------------------------------------- */

enum keeper_request_kind { KEEPER_REQUEST_WORKER, KEEPER_REQUEST_SIGNAL, KEEPER_REQUEST_COUNT };

struct keeper_request {
	enum keeper_request_kind kind;
	enum keeper_worker worker;
	char id[PLAN_ID_MAX];
	int signo;
	int sock_fd, control_fd, stdin_fd; /* of a worker; stdin_fd -1: none.  The receiver's */
};

#define KEEPER_REQUEST_NULL                                                                        \
	{                                                                                          \
		.sock_fd = -1, .control_fd = -1, .stdin_fd = -1                                    \
	}

/* One request.  Returns 1, or 0 when there is none now.  Fails: EPIPE when the server has ended. */
int keeper_receive(int sock_fd, struct keeper_request *out, struct cj_error *err);
void keeper_request_fini(struct keeper_request *r);

/* --- lines of the keeper ----------------------------------------------------------- */

enum keeper_line_type {
	KEEPER_LINE_NONE, /* another line, or one that can't be read */
	KEEPER_LINE_LIVES,
	KEEPER_LINE_STATUS,
	KEEPER_LINE_ENDED,
};

struct keeper_line {
	enum keeper_line_type type;
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
int keeper_line_send(int sock_fd, const struct keeper_line *line, struct cj_error *err);
/* The line "ended", with why->stage and its message.  Waits `wait_ms` for room at most. */
void keeper_line_send_end(int sock_fd, enum session_end reason, const struct cj_error *why,
			  bool is_callers_own, int wait_ms);
void keeper_line_read(const char *text, size_t size, struct keeper_line *out);
