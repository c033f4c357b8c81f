/* SPDX-License-Identifier: Apache-2.0 */
/*
 * upstream - cejail as the client of one MCP server: it opens the server at first use, lists its
 * tools, calls them, and opens it again after it has ended.
 *
 * The server is trusted no more than a client.  What it sends has limits, and what breaks the
 * protocol ends that server alone: its link is closed, and the calls in progress fail with one
 * sentence.  upstream_take() only notes a failure; upstream_tick() carries it out, so a link's
 * callbacks never close it.
 *
 * A handshake of the versions up to 2025-11-25 is tried first, because nearly all servers know one
 * of these.  After an error, server/discover asks for 2026-07-28.
 */
#pragma once

#include <sys/queue.h>

#include "runtime/base/arena.h"
#include "runtime/base/error.h"
#include "runtime/base/json/json.h"
#include "runtime/base/loop.h"
#include "runtime/front/mcp/upstream/servers_file.h"
#include "runtime/front/mcp/upstream/tool_choice.h"
#include "runtime/run/mcp/mcp_message.h"

#define UPSTREAM_PAGES_MAX    64
#define UPSTREAM_TOOLS_MAX    500
#define UPSTREAM_LIST_BYTES   JSON_BYTES_MAX /* all pages of tools/list */
#define UPSTREAM_LIST_VALUES  100000         /* JSON_NODES_MAX, less the rest of a request */
#define UPSTREAM_CALLS_MAX    64
#define UPSTREAM_START_MS     20000 /* from the start to the list, unless "timeout" says more */
#define UPSTREAM_UNASKED_MAX  10000 /* messages that nobody asked for, in UPSTREAM_UNASKED_MS */
#define UPSTREAM_UNASKED_MS   10000
#define UPSTREAM_RETRY_MS     1000 /* after the second failure; then twice as long each time */
#define UPSTREAM_RETRY_MS_MAX 60000

struct upstream;

/* A message for the server, and what HTTP says of it in headers. */
struct upstream_message {
	struct blob line;
	uint64_t id; /* 0: no request */
	const char *method;
	const char *name; /* of a tool; NULL: none */
};

struct upstream_link {
	/* Fails: the server cannot be started. */
	int (*open)(struct upstream *u, struct cj_error *err);
	void (*send)(struct upstream *u, const struct upstream_message *m);
	/* The answer to this request is no longer wanted; NULL: nothing to do. */
	void (*forget)(struct upstream *u, uint64_t id);
	/* Is what was sent not read yet?  Then calls wait. */
	bool (*is_busy)(const struct upstream *u);
	/* Notes an end with upstream_fail().  The time in ms until the next tick; -1: for ever. */
	int (*tick)(struct upstream *u, uint64_t now_ms);
	/* Begins to end the link.  upstream_is_closed() is true when nothing of it is left. */
	void (*close)(struct upstream *u);
	bool (*is_closed)(struct upstream *u);
};

enum upstream_state {
	UPSTREAM_OFF,
	UPSTREAM_OPENING, /* initialize is sent */
	UPSTREAM_ASKING,  /* server/discover is sent */
	UPSTREAM_LISTING, /* tools/list is sent */
	UPSTREAM_READY,
	UPSTREAM_CLOSING,
};

/* A call; the owner frees it, after `done` or upstream_forget(). */
struct upstream_call {
	TAILQ_ENTRY(upstream_call) link;
	struct upstream *server; /* NULL: it has ended */
	const char *tool;        /* at the server; borrowed */
	const char *arguments;   /* an object, byte for byte as it is sent; borrowed */
	size_t size;
	uint64_t id; /* 0: not sent yet */
	uint64_t deadline_ms;
	/* The value, or NULL and a sentence. */
	void (*done)(struct upstream_call *c, const struct json_node *value, const char *error);
};

struct upstream {
	struct loop *loop;
	const struct server_spec *spec;
	const struct upstream_link *link;
	void *link_state;
	enum upstream_state state;
	enum mcp_era era;
	char version[16];
	uint64_t next_id, step_id; /* step_id: of the request that the state waits for */
	uint64_t start_ms;         /* when it was opened: 0: not */
	bool is_wanted;            /* the list is */
	bool is_listed;            /* the tools are known */
	bool is_stale;             /* the server says that they have changed */
	unsigned generation;       /* counts lists */

	struct arena pages[UPSTREAM_PAGES_MAX], next_pages[UPSTREAM_PAGES_MAX];
	size_t npages, list_bytes, list_values;
	struct upstream_tool tools[UPSTREAM_TOOLS_MAX], next_tools[UPSTREAM_TOOLS_MAX];
	size_t ntools, next_ntools;

	TAILQ_HEAD(, upstream_call) calls;
	size_t ncalls;

	char last_line[161];     /* that a server wrote before it ended; "": none */
	struct cj_error failure; /* code 0: none; the last one stays until it is READY */
	bool has_ended;          /* by itself: last_line may say why */
	bool has_failed;         /* upstream_tick() has still to close the link */
	unsigned failures;       /* one after another */
	uint64_t retry_ms;       /* not opened again before */
	uint64_t unasked_ms;     /* since when these are counted */
	unsigned unasked;
};

/* *u is zeroed.  Borrows the rest.  `link`: upstream_stdio or upstream_http. */
void upstream_init(struct upstream *u, struct loop *loop, const struct server_spec *spec,
		   const struct upstream_link *link);
/* Only when it is closed. */
void upstream_fini(struct upstream *u);

/* Begins to end the server; its calls fail. */
void upstream_close(struct upstream *u);
bool upstream_is_closed(struct upstream *u);

/* Opens the server if it is needed; ends what took too long.  Returns the time in ms until the next
 * tick; -1: for ever. */
int upstream_tick(struct upstream *u, uint64_t now_ms);

/* Asks for the list: it is there when is_listed is true; failure.code says why it is not. */
void upstream_want_list(struct upstream *u);

/* The failure, and the last line that a server wrote before it ended: for the user, not for the
 * program.  Returns `out`. */
const char *upstream_explain(const struct upstream *u, char *out, size_t size);

/* Begins a call.  `done` may be called at once. */
void upstream_call(struct upstream *u, struct upstream_call *c);
/* The call ends without `done`. */
void upstream_forget(struct upstream_call *c, const char *reason);

/* --- of the links ----------------------------------------------------------------------- */

/* One message of the server. */
void upstream_take(struct upstream *u, const char *text, size_t size);

/* Notes the failure "the server 'NAME' TEXT"; the first one stays. */
void upstream_fail(struct upstream *u, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

extern const struct upstream_link upstream_stdio, upstream_http;

/* --- what upstream.c and upstream_take.c have of each other ------------------------------ */

#define UPSTREAM_LEGACY "2025-11-25" /* the newest of those with a handshake */
#define UPSTREAM_MODERN "2026-07-28"

/* They set step_id. */
void upstream_write_initialize(struct upstream *u);
void upstream_write_list(struct upstream *u, const char *cursor); /* NULL: the first page */

void upstream_write_call(struct upstream *u, struct upstream_call *c);
void upstream_write_cancelled(struct upstream *u, uint64_t id, const char *reason);

/* Empties the list that is being read. */
void upstream_list_begin(struct upstream *u);
/* The call ends, and is no longer in the list. */
void upstream_end_call(struct upstream_call *c, const struct json_node *value, const char *error);
