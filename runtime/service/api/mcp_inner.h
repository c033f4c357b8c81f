/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcp_inner - a request of the MCP server to the API of the same process: http_ask_inner() and its
 * reply.  Acts: asks.
 */
#pragma once

#include "runtime/run/mcp/calls/mcp_reply.h"
#include "runtime/service/http/http.h"

struct mcp_inner {
	struct exchange *exchange; /* NULL: not asked yet, replied, or cancelled */
	struct mcp_reply reply;
	/* The last callback, after `done` of the run; not of one that was cancelled. */
	void (*ended)(struct mcp_inner *i);
};

/* `outer`: NULL: the request is this process' own.  Takes the body.  The owner has set `ended`. */
int mcp_inner_ask(struct mcp_inner *i, struct http *http, const struct exchange *outer,
		  struct mcp_run *r, char *body, size_t size, struct cj_error *err);
/* Calls `done` of the run, and uses *i no more after it. */
void mcp_inner_cancel(struct mcp_inner *i);
void mcp_inner_fini(struct mcp_inner *i);
