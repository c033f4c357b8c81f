/* SPDX-License-Identifier: Apache-2.0 */
/*
 * request - the JSON object of a run, taken apart and checked: the body of POST /v1/runs, and what
 * --request-fd reads.
 *
 * A request is a profile's name, a program, and any of a profile's keys: the same table
 * (profiles/settings.h) reads all three of command line, profile and request.  Schema:
 * profiles/schema/request.json.  The server parses it to validate it, the worker to run it: one
 * parser, the same bytes.
 */
#pragma once

#include "profiles/plan/plan.h"
#include "profiles/settings.h"
#include "runtime/base/arena.h"
#include "runtime/base/error.h"
#include "runtime/base/json/json_record.h"

#define REQUEST_FILES_MAX 1000

/* How much of a prepared worker the request can use. */
enum request_fit {
	FIT_INTERPRETER, /* only the program differs: any tier serves it */
	FIT_JAIL,        /* also its environment, workdir or command: TIER_JAIL or TIER_COLD */
	FIT_COLD,        /* it changes the jail: memory, network, ... */
};
/* How much is left to a request that has this setting. */
enum request_fit request_fit_of(const struct setting *s);
/* The keys that are no settings, such as "code"; NULL: `i` is behind the last one. */
const char *request_own_key(size_t i);

/* What a body asks for. */
enum request_kind {
	REQUEST_RUN,
	REQUEST_SESSION, /* the jail of a session: no program */
	REQUEST_EXEC,    /* a program in a session's jail, which it can't change */
};

struct request {
	enum request_kind kind;
	const char *profile;
	const char *id; /* NULL: minted */
	bool has_code, is_command;
	struct blob code;       /* "code": "text" or {"base64": "..."} */
	struct strings args;    /* "args" after the code, or "command" with its arguments */
	const char *args_json;  /* the text of "args_json": any JSON value; NULL: none */
	const char *tools_json; /* the text of "tools"; NULL: none */
	size_t ntools;          /* in it */
	bool refuses_tools;     /* "tools": false: not the session's either */
	bool has_stdin;
	struct blob stdin_bytes;
	struct copy_spec *files; /* bytes of "files", sorted by target, none twice */
	size_t nfiles;
	bool wants_artifacts;
	bool wants_changed;       /* only those that changed since the start */
	uint64_t artifacts_bytes; /* at most so many in the result; 0: none */
	enum request_fit fit;
	/* Of REQUEST_SESSION; 0: the service's default. */
	bool wants_repl;
	uint64_t lease_ms, idle_ms;
	bool renew_on_use;
	/* Of REQUEST_EXEC. */
	bool detach, interrupt, open_stdin;
	const struct json_node *root; /* the whole; request_apply reads the settings in it */
};

/* What one request may have; 0 is none at all.  Files: each of them. */
struct request_caps {
	size_t body_bytes, code_bytes, file_bytes, stdin_bytes;
	const char *profile; /* of a request that names none; NULL: it must name one */
	enum request_kind
	    kind; /* REQUEST_EXEC: `profile` is the session's, and no other may stand */
};

/*
 * request_parse - text to request.  Points into `a` and nowhere else.
 *
 * Fails: EINVAL with "request:LINE:COLUMN: ..."; EFBIG past a cap, naming it.
 */
int request_parse(struct blob body, const struct request_caps *caps, struct arena *a,
		  struct request *out, struct cj_error *err);

/*
 * request_apply - its settings onto a config that has its profile loaded already.
 *
 * `may_name_host_paths`: settings that name something of the host (ro_bind, bind, connect, rootfs,
 * seccomp, cgroup_parent, file, allow_private) are refused without it (EACCES).  Never over the
 * API: tty, what belongs to a profile, and how a result is delivered (EINVAL).  A profile's strict
 * and noexec stay (EPERM, rights_validate_kept()).
 */
int request_apply(const struct request *r, bool may_name_host_paths, struct config *c,
		  struct cj_error *err);

/*
 * request_check - what a request that was applied to `c` can't have on any host: -EINVAL, and the
 * message has the key and the value.  Works in `a`.
 */
int request_check(const struct request *r, const struct config *c, struct arena *a,
		  struct cj_error *err);
/* Does the request have this text as its workdir, a file's path or an entry of network.allow or
 * network.deny? */
bool request_names(const struct request *r, const char *text);

/*
 * request_invoke - the program of a request whose settings are applied already, for plan_make().
 *
 * Sets the code and the JSON arguments in *c.  *out points into both arenas.
 * Fails: the profile wants a terminal.
 */
int request_invoke(const struct request *r, struct config *c, struct invocation *out,
		   struct cj_error *err);

/*
 * request_plan - plan_make() of such a request.
 *
 * Its standard input is the caller's to connect: r->stdin_bytes as a memfd in jail_io.stdin_fd,
 * when out_program->interactive.  *out_plan and *out_program point into both arenas.
 */
int request_plan(const struct request *r, struct config *c, struct plan *out_plan,
		 struct program *out_program, struct cj_error *err);

/* The jail of a profile, to be prepared before there is a request. */
int request_plan_jail(struct config *c, struct plan *out, struct cj_error *err);
