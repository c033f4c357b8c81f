/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api_parts - what the files of api.h share: api.c (access, routes), api_runs.c, api_posted.c,
 * api_sessions.c (and their files), api_session_execs.c, api_target.c, api_mcp.c.
 */
#pragma once

#include "profiles/config.h"
#include "profiles/plan/plan.h"
#include "rootfs/files/inputs.h"
#include "runtime/base/arena.h"
#include "runtime/base/error.h"
#include "runtime/base/json/json_record.h"
#include "runtime/run/mcp/mcp_protocol.h"
#include "runtime/run/request/request.h"
#include "runtime/service/api/api.h"
#include "runtime/service/queue/execution.h"

/* --- what the path and the query of a request name --------------------------------------- */

/*
 * The path is decoded once, by http_head.h, before it is split here: an encoded slash separates
 * as any other, and an encoded ".." is refused as any other.
 */
#define API_NAMES_MAX 3

/* What the wildcards of a route's pattern match. */
struct api_names {
	char ids[API_NAMES_MAX][PLAN_ID_MAX]; /* each '*': a segment; "": the pattern has none */
	const char *rest;                     /* "**" at the end: all that follows; "" */
};

/* The path fits the pattern; one with a segment longer than any id does not. */
bool api_path_fits(const char *pattern, const char *path, struct api_names *out);

/*
 * api_file_path - "box/a.txt" to "/box/a.txt": a path in the jail.
 *
 * A segment is not empty, "." or ".."; `may_be_directory`: it may have a slash at the end, which
 * *out has not.  Which places of the jail have files for the API, the jail decides.  Fails: EINVAL.
 */
int api_file_path(const char *rest, bool may_be_directory, char out[static INPUT_PATH_MAX],
		  struct cj_error *err);

/* The parameters of all routes of sessions. */
enum api_parameter {
	PARAMETER_LIST = 1,
	PARAMETER_EXECUTABLE = 2,
	PARAMETER_WAIT = 4,
	PARAMETER_STAT = 8,
	PARAMETER_WATCH = 16,
	PARAMETER_DEPTH = 32, /* with PARAMETER_LIST */
	PARAMETER_OFFSET = 64,
	PARAMETER_LENGTH = 128,
	PARAMETER_NARROW = 256
};
struct api_query {
	unsigned given;                          /* enum api_parameter */
	uint64_t wait_ms, depth, offset, length; /* 0: not given */
};
#define API_WAIT_MAX_MS 60000
#define API_DEPTH_MAX   64

/*
 * "list", "wait=10s", with '&' between; only those of `allowed`, each once, and one of list, stat
 * and watch.  Fails: EINVAL.
 */
int api_query_parse(const char *query, unsigned allowed, struct api_query *out,
		    struct cj_error *err);

/* What http.h calls. */
struct http_ops api_ops(struct api *a);

/* --- small bodies -------------------------------------------------------------------------- */

enum api_body_kind {
	API_BODY_LEASE,  /* {"lease": "10m"} */
	API_BODY_SIGNAL, /* {"signal": "INT"}, also "SIGINT" */
	API_BODY_STDIN,  /* {"text": "..."} or {"base64": "..."}, and "eof": true, or this alone */
	API_BODY_CHANGE, /* {"mkdir": true} or {"rename": "/box/b"}: one of them */
	API_BODY_ANSWER, /* {"result": ANY} or {"error": {"message": "..."}}: one of them */
};
struct api_body {
	size_t max; /* of the bytes of API_BODY_STDIN; set before it is read */
	uint64_t lease_ms;
	int signo;
	struct blob text, base64, bytes; /* bytes: one of the two */
	bool is_end, is_mkdir;
	const char *to; /* NULL: no rename */
	/* Of API_BODY_ANSWER: one of the two, and its bytes in the body. */
	const struct json_node *result, *error;
	struct blob value;
};

/* Into *out, which is zero but for `max`; texts live in the arena.  Fails: EINVAL; EFBIG. */
int api_body_read(enum api_body_kind kind, struct blob body, struct arena *a, struct api_body *out,
		  struct cj_error *err);
/* That of the call's exchange.  False: it was refused. */
struct api_call;
bool api_body_take(struct api_call *c, enum api_body_kind kind, struct arena *a,
		   struct api_body *out);

/* --- a request that passed the access check ------------------------------------------ */

/* Who sent it, and what its path names. */
struct api_call {
	struct api *api;
	struct exchange *exchange;
	struct account *account;
	struct api_names names;
	bool wants_events;             /* of a run, as they come */
	const struct api_query *query; /* NULL: the exchange has it as text */
};

/*
 * The account of the exchange's caller; `asker` has its token, if it needs one.  NULL: refused.
 */
struct account *api_find_account(struct api *api, struct exchange *x, const struct exchange *asker);

/*
 * Refuses the call, with the error's message unless `err` is NULL.  The caller is not at fault for
 * API_INTERNAL, whose message goes only to the log.  Returns false.
 */
bool api_refuse(struct api_call *c, enum api_code code, const struct cj_error *err);
/* Refuses it unless the code is API_OK. */
bool api_is_admitted(struct api_call *c, enum api_code code);

void api_post_run(struct api_call *c);
void api_list_runs(struct api_call *c);
void api_show_run(struct api_call *c);
void api_cancel_run(struct api_call *c);
void api_answer_call(struct api_call *c);
void api_list_profiles(struct api_call *c);

/* The answer of the exchange's body, to a call of the run; NULL: it ended after `last_call`. */
void api_take_answer(struct api_call *c, struct run *run, uint64_t last_call, const char *call);

/* --- the body of a new run, session or exec, while it is validated ----------------------- */

/*
 * A request is validated here before a process is made for it: its JSON and its sizes, the profile,
 * the rights and ceilings of its caller, the room in the queue.  Each step answers the caller when
 * it returns false.
 */
struct posted {
	struct api_call *call;
	struct arena arena;
	char *body;
	size_t size;
	struct request request;
	const struct config *profile; /* borrowed from profile_cache.h, or of a session */
	struct config asked;          /* with the request's settings */
	struct rights_clamp clamp;
};

/* Takes the body out of the exchange. */
void posted_init(struct posted *p, struct api_call *call);
void posted_fini(struct posted *p);

/* No service that drains takes new ones. */
bool posted_is_accepted(struct posted *p);
/* `of`: a session that lives, whose profile is then that of the request; NULL: none. */
bool posted_parse(struct posted *p, enum request_kind kind, const struct session_entry *of);
/* The header Content-Type is this type, with or without parameters. */
bool posted_is_type(const char *content_type, const char *wanted);
/* Sets p->profile. */
bool posted_find_profile(struct posted *p);
/* The request onto `base`, against the rights and ceilings of its caller. */
bool posted_validate(struct posted *p, const struct config *base);
/* Calls of tools would reach the caller. */
bool posted_may_call(const struct posted *p);
/* So do those of its tools, if it names any. */
bool posted_is_answerable(struct posted *p);
/* Room in the queue, and an id that is free. */
bool posted_has_room(struct posted *p, char id[static PLAN_ID_MAX]);

/* What was decided about it, with the body, which moves. */
struct run_order posted_order(struct posted *p, enum job_kind kind, const char *id);

/* --- /v1/sessions ------------------------------------------------------------------------ */

/* The session that the path names.  NULL: the caller has none; it was answered. */
struct session_entry *api_find_session(struct api_call *c);
/* Likewise, and something can be done with it. */
struct session_entry *api_find_live_session(struct api_call *c);

void api_post_session(struct api_call *c);
void api_list_sessions(struct api_call *c);
void api_show_session(struct api_call *c);
void api_end_session(struct api_call *c);
void api_renew_session(struct api_call *c);
void api_change_network(struct api_call *c);

/* api_session_execs.c */
void api_post_exec(struct api_call *c);
void api_list_execs(struct api_call *c);
void api_show_exec(struct api_call *c);
void api_cancel_exec(struct api_call *c);
void api_signal_exec(struct api_call *c);
void api_feed_exec(struct api_call *c);
void api_begin_stdin(struct api_call *c);
void api_put_stdin(struct api_call *c);
void api_answer_exec_call(struct api_call *c);

/* api_sessions.c */
void api_get_file(struct api_call *c);
void api_begin_put(struct api_call *c);
void api_put_file(struct api_call *c);
void api_change_file(struct api_call *c);
void api_remove_file(struct api_call *c);

/* --- POST /mcp --------------------------------------------------------------------------- */

/*
 * A call of a tool is an operation of the same API (api.h), with the rights of the caller:
 * accounts, ceilings, the queue, the audit and the metrics see what they see of any request.  The
 * answer is JSON; if it takes long, or there is progress, a stream of events.
 *
 * Nothing is kept between two requests.  A client that opens with `initialize` gets a session id
 * that only labels its calls, so that notifications/cancelled finds them.  A client that closes the
 * connection cancels its call, in all versions: no stream can be resumed, and the answer is lost.
 */
#define API_MCP_SESSION_MAX 64
#define API_MCP_TOOLS_MAX   64

void api_post_mcp(struct api_call *c);

/* The type of an answer that begins late, or has several messages. */
#define API_MCP_EVENTS "text/event-stream"

/* Time has passed.  Returns the time in ms until there is more to do, or -1. */
int api_mcp_tick(struct api *a, uint64_t now_ms);
