/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcp_protocol - what a message asks for, and the answers that need no run.
 *
 * The era is chosen for each request: with a version in params._meta it is modern; otherwise the
 * client must have sent `initialize`, which selects a legacy version for this process.  Over HTTP,
 * where each request may come on its own connection, the headers say what was selected.
 */
#pragma once

#include "runtime/run/mcp/mcp_message.h"
#include "runtime/run/mcp/mcp_tool.h"

#define MCP_VERSION_MAX 16

/* The state of one connection, or of one request over HTTP. */
struct mcp_protocol {
	const struct mcp_tool *tools; /* borrowed */
	size_t ntools;
	/* Fills the two before they are used for the first time; may be NULL. */
	int (*load)(struct mcp_protocol *p, struct cj_error *err);
	const struct mcp_headers *headers; /* NULL: stdio */
	char version[MCP_VERSION_MAX];     /* that `initialize` has chosen; "": none yet */
	bool was_opened;                   /* this message was an `initialize` */
};

enum mcp_action {
	MCP_NOTHING, /* no answer */
	MCP_ANSWER,  /* the writer has the answer */
	MCP_CALL,    /* tools/call: run it, and answer later */
	MCP_CANCEL,  /* of the request `id` */
	MCP_TASK,    /* tasks/get, tasks/update, tasks/cancel: mcp_tasks.h answers */
};

enum mcp_task_method { MCP_TASK_GET, MCP_TASK_UPDATE, MCP_TASK_CANCEL };

/* Texts and nodes point into the arena. */
struct mcp_asked {
	enum mcp_action action;
	struct mcp_id id;
	unsigned http_status; /* of the answer; 202 where there is none */
	enum mcp_era era;
	/* of MCP_TASK */
	enum mcp_task_method task_method;
	const char *task;
	/* of MCP_CALL */
	bool takes_tasks; /* the client has declared the extension */
	const struct mcp_tool *tool;
	const struct json_node *arguments; /* an object; NULL: none */
	struct mcp_id progress;            /* MCP_ID_NONE: the client wants no progress */
	const char *traceparent;           /* NULL: none */
};

/* A line without its newline.  The writer is empty before. */
void mcp_protocol_take(struct mcp_protocol *p, const char *line, size_t size, struct arena *a,
		       struct json_writer *w, struct mcp_asked *out);

/*
 * The headers of a message over HTTP, which repeat members of its body.
 *
 * A proxy may decide by the headers, so they must say what the body says.
 * https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http
 * NULL: the request has no such header.
 */
struct mcp_headers {
	const char *version; /* MCP-Protocol-Version */
	const char *method;  /* Mcp-Method */
	const char *name;    /* Mcp-Name */
};

/*
 * mcp_headers_check - the headers of a request of 2026-07-28.
 *
 * `version`: the one in its body.  Fails: a header is missing, or differs from the body.
 */
int mcp_headers_check(const struct mcp_headers *h, const struct mcp_message *m, const char *version,
		      struct mcp_fault *fault);

/* "a/b;q=0.1, c/d": does the value of Accept allow this media type?  NULL allows each. */
bool mcp_headers_accept(const char *accept, const char *type);
