/* SPDX-License-Identifier: Apache-2.0 */
/* What MCP asks of the API. */
#include "runtime/service/api/mcp_inner.h"

#include <stdio.h>

#include "runtime/service/api/api_parts.h"

/*
 * The handler still uses the exchange: a run that is done here is freed only when `ended` is
 * called.
 */
static void on_piece(void *context, const char *bytes, size_t size)
{
	struct mcp_inner *i = context;
	struct cj_error err = { 0 };

	if (mcp_reply_keep(&i->reply, 200, bytes, size, &err) < 0)
		mcp_reply_fail(&i->reply, &err);
}

static void on_replied(void *context, const struct http_reply *reply)
{
	struct mcp_inner *i = context;
	struct cj_error err = { 0 };

	if (reply->text && mcp_reply_keep(&i->reply, reply->status, reply->text + reply->skip,
					  reply->size, &err) < 0)
		mcp_reply_fail(&i->reply, &err);
	mcp_reply_end(&i->reply, reply->status, (reply->retry_after_ms + 999) / 1000);
	i->exchange = NULL;
	i->ended(i);
}

static const struct operation {
	void (*handle)(struct api_call *c);
	unsigned parameters; /* enum api_parameter */
} operations[MCP_OPERATION_COUNT] = {
	[MCP_RUN_PROGRAM] = { api_post_run, 0 },
	[MCP_CREATE_SESSION] = { api_post_session, 0 },
	[MCP_EXEC_PROGRAM] = { api_post_exec, 0 },
	[MCP_PUT_FILE] = { api_put_file, 0 },
	[MCP_GET_FILE] = { api_get_file, PARAMETER_OFFSET | PARAMETER_LENGTH },
	[MCP_LIST_FILES] = { api_get_file, PARAMETER_LIST },
	[MCP_END_SESSION] = { api_end_session, 0 },
};

static void carry_out(struct api *api, struct exchange *x, const struct exchange *outer,
		      const struct mcp_run *r)
{
	const struct mcp_request *asked = r->request;
	const struct operation *o = &operations[asked->operation];
	const bool is_part = asked->operation == MCP_GET_FILE;
	const struct api_query query = {
		.given = o->parameters | (asked->is_executable ? PARAMETER_EXECUTABLE : 0),
		.offset = is_part ? asked->offset : 0,
		.length = is_part ? asked->length : 0,
	};
	struct api_call call = { .api = api,
				 .exchange = x,
				 .account = api_find_account(api, x, outer ? outer : x),
				 .names.rest = asked->path,
				 .wants_events = r->wants_events,
				 .query = &query };

	if (!call.account)
		return;
	(void)snprintf(call.names.ids[0], sizeof(call.names.ids[0]), "%s", asked->session);
	o->handle(&call);
	http_settle_inner(x);
}

int mcp_inner_ask(struct mcp_inner *i, struct api *api, const struct exchange *outer,
		  struct mcp_run *r, char *body, size_t size, struct cj_error *err)
{
	struct http_inner ask = {
		.outer = outer,
		.traceparent = r->traceparent,
		.body_size = size,
		.piece = on_piece,
		.replied = on_replied,
		.context = i,
	};

	ask.body = body;
	i->reply.run = r;
	if (http_open_inner(api->http, &ask, &i->exchange, err) < 0)
		return -err->code;
	carry_out(api, i->exchange, outer, r);
	return 0;
}

/* Dropping the request cancels its run. */
void mcp_inner_cancel(struct mcp_inner *i)
{
	struct cj_error err = { 0 };

	http_drop_inner(&i->exchange);
	(void)!cj_reject(&err, "cancelled");
	mcp_reply_fail(&i->reply, &err);
}

void mcp_inner_fini(struct mcp_inner *i)
{
	http_drop_inner(&i->exchange);
	mcp_reply_fini(&i->reply);
}
