/* SPDX-License-Identifier: Apache-2.0 */
/*
 * broker - the tools of several MCP servers as one list, and their calls.
 *
 * The names of the tools are SERVER.TOOL.  One broker serves all runs of its process: each has a
 * broker_stream, on which the engine sends calls.
 */
#pragma once

#include <sys/queue.h>

#include "runtime/base/arena.h"
#include "runtime/base/error.h"
#include "runtime/base/json/json_record.h"
#include "runtime/base/loop.h"
#include "runtime/front/mcp/upstream/servers_file.h"
#include "runtime/front/mcp/upstream/upstream.h"
#include "runtime/run/mcp/mcp_stdio.h"

#define BROKER_TOOLS_MAX 1024 /* as --tools takes them */

/* A tool that is offered.  Its texts live as long as the broker. */
struct broker_tool {
	const char *full_name, *name; /* "server.tool"; at the server */
	struct upstream *server;
};

struct broker {
	struct loop *loop;
	struct servers_file file;
	struct upstream *servers; /* as many as the file has */
	struct arena arena;       /* of the names */
	struct broker_tool tools[BROKER_TOOLS_MAX];
	size_t ntools;
	struct json_writer *catalogue; /* NULL: not made yet */
};

/*
 * broker_open - read the list of servers.  *b is zeroed.  Nothing is started.
 *
 * Owns: the caller calls broker_close(), also after a failure.
 */
int broker_open(struct broker *b, struct loop *loop, const char *path, struct cj_error *err);
/* Ends all servers, and waits until no process of them is left. */
void broker_close(struct broker *b);

/* Asks all servers for their tools, which starts them. */
void broker_want_list(struct broker *b);
/* Each server has listed its tools or failed. */
bool broker_is_listed(const struct broker *b);
/* The first server that has failed; NULL: none. */
const struct upstream *broker_find_failed(const struct broker *b);

/*
 * broker_catalogue - {"tools": [...]}: each tool that is offered, with its full name, and its
 * description, schemas and annotations as its server gives them.  A server whose tools do not fit
 * into JSON_BYTES_MAX, UPSTREAM_LIST_VALUES and BROKER_TOOLS_MAX is left out with a warning.
 * Borrowed from the broker.
 */
int broker_catalogue(struct broker *b, struct blob *out, struct cj_error *err);

/* NULL: there is none with this name. */
const struct broker_tool *broker_find(const struct broker *b, const char *full_name);

/* To be called before each turn of the loop; returns the longest time of that turn. */
int broker_tick(struct broker *b);

/* --- calls of one run --------------------------------------------------------------------- */

/* The calls that have no answer yet.  The owner sets what is above the list. */
struct broker_calls {
	struct broker *broker;
	bool puts_ids; /* the answers have a member "id" */
	/* {"result": ANY} or {"error": {"message": TEXT}}; NULL: there is no memory for either. */
	void (*answer)(struct broker_calls *c, uint64_t id, const char *text, size_t size);
	TAILQ_HEAD(, broker_call) list;
	size_t count;
};

/*
 * broker_call_begin - `answer` follows, maybe before this returns.
 *
 * `arguments`: the bytes of an object, copied; bytes NULL: they are none.
 */
void broker_call_begin(struct broker_calls *c, uint64_t id, const char *name,
		       struct blob arguments);
/* The call ends without `answer`; nothing happens if it has one already. */
void broker_call_end(struct broker_calls *c, uint64_t id, const char *why);
void broker_calls_cancel(struct broker_calls *c);

/*
 * The protocol of --calls-fd: lines {"id":N,"name":"SERVER.TOOL","arguments":{...}} and
 * {"id":N,"ended":WHY} come in, {"id":N,"result":...} and {"id":N,"error":{"message":...}} go out.
 */
struct broker_stream {
	struct broker_calls calls;
	struct mcp_stdio stdio; /* when it is over, the owner calls broker_stream_close() */
};

/* *s is zeroed.  Takes the descriptor, of a connected stream socket, also when it fails. */
int broker_stream_open(struct broker_stream *s, struct broker *b, int fd, struct cj_error *err);
/* Its calls are cancelled. */
void broker_stream_close(struct broker_stream *s);
