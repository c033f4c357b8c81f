/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcp_inner - a request of MCP to the API of the same process, carried out by the handlers of the
 * routes: with the rights of the caller, and without HTTP.
 *
 * The request that it is made for has paid for its rate, and has passed the checks of Origin and
 * Host.  Its token is checked again: a reload may have taken its rights away.
 */
#pragma once

#include "runtime/run/mcp/calls/mcp_reply.h"
#include "runtime/service/api/api.h"

struct mcp_inner {
	struct exchange *exchange; /* NULL: not asked yet, replied, or cancelled */
	struct mcp_reply reply;
	/* The last callback, after `done` of the run; not of one that was cancelled. */
	void (*ended)(struct mcp_inner *i);
};

/* `outer`: NULL: the request is this process' own.  Takes the body.  The owner has set `ended`. */
int mcp_inner_ask(struct mcp_inner *i, struct api *api, const struct exchange *outer,
		  struct mcp_run *r, char *body, size_t size, struct cj_error *err);
/* Calls `done` of the run, and uses *i no more after it. */
void mcp_inner_cancel(struct mcp_inner *i);
void mcp_inner_fini(struct mcp_inner *i);
