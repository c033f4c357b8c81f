/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job - the messages between the server and a worker.
 *
 * To the worker, once: one byte with a sealed memfd, which has a header (one line of JSON) and the
 * request's body as the caller sent it, and maybe a socket for the calls of the program.  To the
 * server: JSON lines, in this order:
 *
 *	{"type":"ready","zygote":Z}                        the jail is sealed and waits; its
 *	                                                   interpreter is of the zygote or not,
 *	                                                   and a "message" says why not
 *	{"type":"unready","stage":S,"message":M,"hint":H}  it could not be built, or not even a
 *	                                                   worker; the end.  A cold worker tells
 *	                                                   what fails ahead of its job as its result
 *	{"type":"stale"}                                   a zygote's files have changed
 *	--- after the job ---
 *	{"type":"start"|"stdout"|..., ...}                 as --events-fd (events.h); only if asked
 *	{"type":"summary", ...}                            for audit and metrics; no output
 *	{"type":"result","result":{...}}                   last, always; then end of file
 */
#pragma once

#include "profiles/plan/plan.h"
#include "runtime/base/arena.h"
#include "runtime/base/error.h"
#include "runtime/run/request/request.h"
#include "runtime/run/request/rights.h"
#include "runtime/run/report/trace.h"
#include "runtime/jail/jail.h"
#include "runtime/jail/outcome.h"

/* How far a jail is prepared before its request arrives. */
enum tier {
	TIER_COLD,        /* not at all */
	TIER_JAIL,        /* sealed */
	TIER_INTERPRETER, /* sealed, and the profile's interpreter waits inside */
	TIER_REPL,        /* a session in it, whose interpreter waits for its first cell */
	TIER_COUNT
};
extern const char *const tier_names[TIER_COUNT]; /* "cold", "jail", "interpreter", "repl" */

/* Why a run of a profile that has a pool got a cold worker. */
enum pool_bypass {
	BYPASS_REQUEST, /* the request changes the jail */
	BYPASS_CEILING, /* a ceiling of the caller changes the jail */
	BYPASS_EMPTY,   /* no prepared jail was ready */
	BYPASS_COUNT    /* also: the pool was not bypassed */
};

/* What the worker that receives a job is to do; its body is a request (request.h) or a file_job. */
enum job_kind {
	JOB_RUN,     /* run one program in a jail of its own */
	JOB_SESSION, /* keep a jail for the execs of a session: the request names no program */
	JOB_EXEC,    /* run one program in the session's jail; to a worker of a keeper */
	JOB_FILE,    /* one operation on a file of the session's jail; likewise */
	JOB_KIND_COUNT
};
extern const char *const job_kind_names[JOB_KIND_COUNT]; /* "run", "session", "exec", "file" */

struct job {
	enum job_kind kind;
	char id[PLAN_ID_MAX]; /* the run's; of a JOB_SESSION the session's */
	struct trace trace;
	bool wants_events;
	bool session_tools;    /* of an exec that names no tools: it has those of its session */
	bool calls_brief;      /* as of jail_io: the events have the calls of the program */
	uint64_t calls_quoted; /* likewise: the audit record has their arguments */
	bool may_name_host_paths;
	/* The rights were validated with this profile; a worker that read another refuses.  "":
	 * any.
	 */
	char profile_sha256[SHA256_HEX_MAX];
	struct rights_clamp clamp;
	bool has_tools;   /* the program has; not sent */
	int calls_fd;     /* the socket for their calls, sent beside it and borrowed; 0: none */
	uint64_t sent_us; /* clock_us() when it was sent: the set-up time starts here */
	char *body;       /* borrowed; of a job that was read: in its arena */
	size_t body_size;
};

#define RUN_PROFILE_MAX 64

struct account;
struct run_gate;

/*
 * What the service has decided about a request that it accepts: a run, an exec, or a session.  It
 * is made once, where the request is validated, and then moves into the run or the session.
 */
struct run_order {
	struct job job; /* for the worker; its body is malloc'ed, and NULL when the worker has it */
	char caller[CALLER_NAME_MAX], profile[RUN_PROFILE_MAX];
	char session[PLAN_ID_MAX]; /* that it is an exec of; "": none */
	struct account *account;   /* NULL: the run is finished */
	struct run_gate *gate;     /* NULL: none; borrowed while the run is unfinished */
	/* For the audit; "" where there is none. */
	char code_sha256[SHA256_HEX_MAX], request_sha256[SHA256_HEX_MAX];
	size_t code_bytes;
	enum request_fit fit;
	enum pool_bypass why_cold; /* with FIT_COLD */
	bool audit_required;
	uint64_t wall_ms, output_bytes; /* the limits in force */
};

/*
 * The line of the result of a run that was cancelled before a worker could write it; malloc'ed.
 * NULL: no memory.
 */
char *order_write_cancelled(const struct run_order *order, size_t *out_size);

/* Of all artefacts together, as bytes in the result itself. */
#define JOB_ARTIFACTS_MAX ARTIFACTS_INLINE_MAX

/* Returns a sealed memfd. */
int job_write(const struct job *job, struct cj_error *err);
/* The body lives in the arena. */
int job_read(int memfd, struct arena *a, struct job *out, struct cj_error *err);

/*
 * The memfd on its way, beside one byte, with the socket of the calls (0: none).  job_receive()
 * returns the memfd; *out_calls_fd -1: no socket came.  out_calls_fd NULL: none may come.
 */
int job_send(int sock_fd, int memfd, int calls_fd, struct cj_error *err);
int job_receive(int sock_fd, int *out_calls_fd, struct cj_error *err);

/* For metrics, audit, and GET /v1/runs of a finished run. */
struct summary {
	unsigned type; /* 0: "summary" */
	struct outcome_totals totals;
	char error_stage[32]; /* "" unless STATUS_SETUP_ERROR */
	char error_message[512];
	bool is_callers_own; /* the caller's mistake: it gets the whole message */
	char profile_sha256[SHA256_HEX_MAX], code_sha256[SHA256_HEX_MAX];
	bool has_network; /* the plan has a public one */
	enum network_state network_state;
	uint64_t setup_us; /* from the job to the program's first instruction */
};
/* What the audit record has of one call of a tool.  Of a refused call only the name, or "". */
struct call_record {
	uint64_t id; /* 0: it was refused */
	char name[TOOL_NAME_MAX + 1];
	uint64_t bytes; /* of its arguments */
	char sha256[SHA256_HEX_MAX];
	char *arguments; /* their JSON; NULL: not asked for, or too long */
	enum call_end end;
	uint64_t ms;
};

struct json_writer;
void summary_write(struct json_writer *w, const struct summary *s); /* the whole line's object */
struct json_node;
int summary_read(const struct json_node *line, struct summary *out, struct cj_error *err);

/*
 * job_send_line - write one line in one piece: it is shorter than the socket's buffer.
 * Fails: EAGAIN when a non-blocking socket has no room; nothing is written then.
 */
int job_send_line(int sock_fd, struct json_writer *w, struct cj_error *err);

/* The first line.  `zygote_failure`: why the interpreter is not of the zygote, or NULL. */
int ready_tell(int sock_fd, bool is_of_zygote, const struct cj_error *zygote_failure,
	       struct cj_error *err);
void unready_tell(int sock_fd, const struct cj_error *why);
/* Of a keeper, after "ready": another zygote should take over (zygote_keeper.h). */
void stale_tell(int sock_fd);

/* Of either line. */
struct readiness_line {
	bool is_of_zygote;
	char stage[32]; /* of an error */
	/* message and hint; of a "ready" line "": no failure */
	char why[CJ_ERROR_MSG_MAX + CJ_ERROR_HINT_MAX];
};
void ready_read(const char *line, size_t size, struct readiness_line *out);
