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
 *	{"type":"network","message":M}                 the rules were changed, or M says why not
 *	{"type":"ended","reason":R,"message":M}        last; the jail is gone; then end of file
 *
 * A session that can't be built has an "ended" line with the reason "failed" and no "session" line.
 * End of file without "ended": the keeper was killed, and its jail with it.
 *
 * A worker of a keeper gets its own job from the server, over its own socket.  One for an exec
 * sends what a worker of a run sends, without "ready"; one for files the lines below.
 * If the keeper can't start it, it sends "unready" on that socket.
 *
 * Closing the control pipe of an exec cancels it.  Closing that of the keeper ends the session:
 * execs are cancelled, they send their results, then the jail is destroyed.
 */
#pragma once

#include <signal.h>

#include "runtime/base/arena.h"
#include "runtime/base/error.h"
#include "runtime/base/json/json_record.h"
#include "runtime/service/worker/job.h"
#include "runtime/service/worker/spawner.h"
#include "runtime/session/files/session_files.h"
#include "runtime/session/session.h"

#define KEEPER_WORKERS_MAX 64 /* of one session at once, and cells that wait; then "unready" */

/* --- requests of the server -------------------------------------------------------- */

enum keeper_request_kind {
	KEEPER_WORKER_EXEC,
	KEEPER_WORKER_CELL,  /* an exec whose code runs in the session's interpreter */
	KEEPER_WORKER_FILE,  /* an operation on files (struct file_job) */
	KEEPER_WORKER_WRITE, /* likewise, and the session pays for its memory */
	KEEPER_SIGNAL,
	KEEPER_NETWORK, /* other rules; the answer is a line "network" */
	KEEPER_REQUEST_COUNT
};

/*
 * keeper_send_worker - ask for a worker in the session; send it its job by worker_send_job().
 *
 * `id` is the exec's, "" of a file.  With out_stdin_fd the exec's standard input, or the bytes of a
 * file, come through a pipe, whose write end the caller gets, non-blocking.
 * Fails: EAGAIN when the keeper does not read; EPIPE when it has ended.
 */
int keeper_send_worker(const struct worker *keeper, enum keeper_request_kind kind, const char *id,
		       struct worker *out, int *out_stdin_fd, struct cj_error *err);

/*
 * keeper_send_signal - a signal to the main process of an exec.
 *
 * The keeper holds it until the program runs, or until the interpreter begins the cell.
 * Best-effort: an exec that has ended does not get it.
 */
int keeper_send_signal(const struct worker *keeper, const char *id, int signo,
		       struct cj_error *err);

/* keeper_send_network - session_change_network(). */
int keeper_send_network(const struct worker *keeper, const struct network_lists *lists,
			struct cj_error *err);

static inline uint64_t keeper_signal_bit(int signo)
{
	return UINT64_C(1) << (signo - 1);
}

/* Signals that are held, and more.  As in signal(7), STOP and CONT take each other back. */
static inline uint64_t keeper_signals_join(uint64_t held, uint64_t more)
{
	const uint64_t stop = keeper_signal_bit(SIGSTOP), resume = keeper_signal_bit(SIGCONT);

	if (more & resume)
		held &= ~stop;
	if (more & stop)
		held &= ~resume;
	return held | more;
}

struct keeper_request {
	uint32_t kind; /* enum keeper_request_kind */
	int32_t signo;
	char id[PLAN_ID_MAX];
	/* Of a worker, the receiver's; stdin_fd -1: none.  Of KEEPER_NETWORK sock_fd is a file with
	 * the rules.  Not in the message's bytes. */
	int sock_fd, control_fd, stdin_fd;
};

#define KEEPER_REQUEST_NULL                                                                        \
	{                                                                                          \
		.sock_fd = -1, .control_fd = -1, .stdin_fd = -1                                    \
	}

/* One request.  Returns 1, or 0 when there is none now.  Fails: EPIPE when the server has ended. */
int keeper_receive(int sock_fd, struct keeper_request *out, struct cj_error *err);
void keeper_request_fini(struct keeper_request *r);
/* What came with a KEEPER_NETWORK; texts live in the arena. */
int keeper_read_network(const struct keeper_request *r, struct arena *a, struct network_lists *out,
			struct cj_error *err);

/* --- lines of the keeper ----------------------------------------------------------- */

enum keeper_line_type {
	KEEPER_LINE_NONE, /* another line, or one that can't be read */
	KEEPER_LINE_LIVES,
	KEEPER_LINE_STATUS,
	KEEPER_LINE_NETWORK,
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
	/* Of "network", too.  Names the host: for the log. */
	char message[CJ_ERROR_TEXT_MAX];
	bool is_callers_own; /* the caller's mistake: it may see the message */
};

/* Writes the line; never blocks.  Fails: EAGAIN when the server does not read. */
int keeper_line_send(int sock_fd, const struct keeper_line *line, struct cj_error *err);
/* The line "network": the rules were changed, if why->code is 0. */
int keeper_line_send_network(int sock_fd, const struct cj_error *why, struct cj_error *err);
/* The line "ended", with why->stage and its message.  Waits `wait_ms` for room at most. */
void keeper_line_send_end(int sock_fd, enum session_end reason, const struct cj_error *why,
			  bool is_callers_own, int wait_ms);
void keeper_line_read(const char *text, size_t size, struct keeper_line *out);

/* --- a worker for files ---------------------------------------------------------------- */

/*
 * One operation on files: the body of a JOB_FILE is an object with all members of struct file_job.
 * The first answer is one line, {"type":"file","result":{...}}, or
 * {"type":"file","error":{"code":"not_found","message":"..."}}.  The results:
 *
 *	get     {"bytes":N}; then the bytes as lines {"type":"bytes","base64":"..."}, and
 *	        {"type":"end"}
 *	part    {"bytes":N of the whole file,"offset":N,"base64":"..."}
 *	put     {"bytes":N}; the bytes come through the pipe of the worker's request, to its end
 *	list    {"entries":[{"path","type","bytes","mode","mtime"}],"truncated":false}
 *	remove  {}; a directory with all that is in it
 *	stat    an entry, as in a list
 *	mkdir   {"created":true}
 *	rename  {}
 *	watch   {}; then a line {"type":"event","event":"create","path":"..."} for each change,
 *	        until the socket is closed, or {"type":"end"} when the directory is gone
 */
enum file_op {
	FILE_GET,
	FILE_PART,
	FILE_PUT,
	FILE_LIST,
	FILE_REMOVE,
	FILE_STAT,
	FILE_MKDIR,
	FILE_RENAME,
	FILE_WATCH,
	FILE_OP_COUNT
};
extern const char *const file_op_names[FILE_OP_COUNT]; /* "get", "put", ... */

struct file_job {
	enum file_op op;
	const char *path;   /* in the jail, absolute */
	const char *to;     /* of rename: likewise; else "" */
	uint64_t max_bytes; /* of get, part and put */
	uint64_t offset;    /* of part */
	uint64_t depth;     /* of list; 0: FILE_LIST_DEPTH */
	bool is_executable; /* of put */
};

#define FILE_LIST_DEPTH 8           /* of a list that names none */
#define FILE_PART_MAX   (4u << 20)  /* bytes in a part */
#define FILE_PIECE      (48u << 10) /* bytes in a line of a get */

/* The body of a JOB_FILE; malloc'ed, the caller's. */
int file_job_write(const struct file_job *job, char **out, size_t *out_size, struct cj_error *err);
/* The paths live in the arena. */
int file_job_read(struct blob body, struct arena *a, struct file_job *out, struct cj_error *err);

/* The first line of a worker, taken apart. */
struct file_answer {
	bool is_ok;
	const struct json_node *result; /* an object; in the arena */
	enum file_error error;
	const char *message;
};
/* Fails when the line is another one. */
int file_answer_read(const char *line, size_t size, struct arena *a, struct file_answer *out,
		     struct cj_error *err);
