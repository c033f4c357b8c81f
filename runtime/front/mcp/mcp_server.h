/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcp_server - the parts of the MCP server.
 *
 *	main.c         start, and the spawner
 *	mcp_options.c  the arguments, and the tools that they ask for
 *	mcp_server.c   one thread, one epoll loop over the client, the runs and signals
 *	mcp_broker.c   the tools of other MCP servers, which programs may call (upstream/)
 *	mcp_local.c    runs and sessions on this machine
 *	mcp_remote.c   runs and sessions at a service
 *
 * A line of the client goes to mcp_protocol, and is answered at once or is a call.  mcp_request
 * makes a request of a call, and mcp_run carries it out: here, or at a service.  Its events become
 * progress; mcp_answer makes the client's answer of its result.
 *
 * The end of standard input, SIGTERM, SIGINT and SIGHUP end the server, and all its jails.
 */
#pragma once

#include "profiles/config.h"
#include "runtime/base/json/json_record.h"
#include "runtime/base/loop.h"
#include "runtime/front/mcp/upstream/broker.h"
#include "runtime/run/mcp/calls/mcp_run.h"
#include "runtime/run/mcp/mcp_request.h"
#include "runtime/run/mcp/mcp_stdio.h"
#include "runtime/run/mcp/mcp_tool.h"
#include "runtime/run/options/options.h"
#include "runtime/service/queue/pool.h"
#include "runtime/service/worker/spawner.h"

/* --- the arguments -------------------------------------------------------------------- */

#define MCP_PROFILES_MAX 16

/*
 * The options of `cejail run` that describe a jail apply to every call.  They are the only source
 * of host paths, connections and variables, and the most that a call may use.
 */
struct mcp_options {
	struct config config; /* the options of `run`, without a profile; owns all texts */
	struct options run;
	struct mcp_given given;
	const char *profiles[MCP_PROFILES_MAX + 1]; /* in the order given; NULL-terminated */
	const char *prefix;                         /* of the tools' names; "": none */
	const char *files;                          /* NULL: none */
	const char *text_size;                      /* NULL: not given */
	uint64_t text_max;                          /* struct mcp_tool */
	const char *tools_from;                     /* NULL: not given */
	bool checks;                                /* --check: list those tools, and exit */
	const char *host;                           /* --print-config; NULL: not given */
	const char *url;                            /* for it; NULL: not given */
	const char **others;                        /* the arguments without --print-config */
	bool wants_help;
};

/*
 * mcp_options_parse - read the arguments after the verb.
 *
 * Owns: o->config is the caller's to end, also after a failure.
 */
int mcp_options_parse(const char *const *args, const char *const *caller_env, struct mcp_options *o,
		      struct cj_error *err);
void mcp_options_print_help(void);

/*
 * mcp_options_print_config - print the configuration with which the program of o->host starts this
 * server.
 *
 * `program`: the absolute path of cejail.
 * Fails: EINVAL for an unknown host; the hint lists those that are known.
 */
int mcp_options_print_config(const struct mcp_options *o, const char *program,
			     struct cj_error *err);

/* Which tools the server has. */
struct mcp_setup {
	struct arena arena; /* owns all texts */
	struct mcp_tool tools[MCP_PROFILES_MAX + MCP_SESSION_TOOLS];
	size_t count;
	struct strings accepted; /* what a host may lack without a warning to the user */
	const char *socket;      /* of the service; NULL: jails are built here */
};

/*
 * mcp_setup_read - the profiles that were asked for, or those of python, node and shell whose
 * interpreter is installed.
 *
 * Owns: the arena is the caller's to end, also after a failure.
 */
int mcp_setup_read(struct mcp_setup *s, const struct mcp_options *o, struct cj_error *err);

/* Takes the spawner; it is not started if runs take place at a service. */
int mcp_server_run(const struct mcp_options *o, struct mcp_setup *setup, struct spawner *spawner,
		   struct cj_error *err);

/* --- where runs take place ---------------------------------------------------------------- */

/*
 * On this machine, by the parts of the service in the same process.  Runs and sessions end with it.
 *
 * A profile that has been called once gets a jail prepared ahead, so that its next call is fast.
 * After the first cell of a session, it also gets a session whose interpreter waits.
 */
struct mcp_local_options {
	struct loop *loop;
	struct spawner *spawner; /* taken */
	/* What of a jail can be prepared ahead: FIT_COLD is nothing. */
	enum request_fit fit;
	struct broker *broker;  /* of the tools that programs may call, listed; NULL: none */
	const char *trace_file; /* NULL: none */
};

/* *out is to be closed with its `close`.  Takes the spawner, also when it fails. */
int mcp_local_open(const struct mcp_local_options *o, struct mcp_place *out, struct cj_error *err);

/*
 * At a service, cejail-serve(8).  Each run is a request on a connection of its own, without
 * blocking.  Closing the connection cancels the run.
 */
/* *out is to be closed with its `close`.  Borrows the path, and the broker as mcp_local_open(). */
int mcp_remote_open(struct loop *loop, const char *socket_path, struct broker *broker,
		    struct mcp_place *out, struct cj_error *err);

/* GET /v1/profiles: blocks, for the start.  *out lives in the arena. */
int mcp_remote_list_profiles(const char *socket_path, struct arena *a, const struct json_node **out,
			     struct cj_error *err);

/* --- mcp_broker.c: the tools of other MCP servers ----------------------------------------- */

/*
 * mcp_broker_main - this program as the child of another cejail, which runs a program with the
 * tools of MCP servers: `mcp broker --tools-from FILE [--calls-fd N] [--quiet]`.
 *
 * It starts the servers, writes {"tools": [...]} to standard output as one line, and closes it.
 * Then it carries out the calls that arrive on the socket N (struct broker_stream) until that is
 * closed, and ends all servers.  Without a socket it ends after the list.
 *
 * It fails before it writes the list if the file is wrong, a server cannot be started or has not
 * listed its tools in time, or a pattern is wrong.  In place of the list it then writes a struct
 * cj_error, whose first byte is no '{'.  Fails: the error is written already.
 */
int mcp_broker_main(const char *const *args);

/* --check: starts the servers, and prints the names of their tools.  Fails with the error of the
 * first server that has failed. */
int mcp_broker_print(const char *path, struct cj_error *err);

/* A warning for each server that has failed, or that offers no tool. */
void mcp_broker_warn(const struct broker *b);

/*
 * mcp_broker_describe - what a model reads: the names of the tools by server, how code calls them,
 * and the servers that have failed.  NULL: there are none, or no memory.
 */
const char *mcp_broker_describe(const struct broker *b, struct arena *a);
