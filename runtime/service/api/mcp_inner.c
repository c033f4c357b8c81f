/* SPDX-License-Identifier: Apache-2.0 */
/* Requests without a connection.  Acts. */
#include "runtime/service/api/mcp_inner.h"

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

int mcp_inner_ask(struct mcp_inner *i, struct http *http, const struct exchange *outer,
		  struct mcp_run *r, char *body, size_t size, struct cj_error *err)
{
	struct http_inner ask = {
		.outer = outer,
		.method = r->method,
		.target = r->target,
		.accept = r->wants_events ? "application/x-ndjson" : "*/*",
		.content_type = r->content_type,
		.traceparent = r->traceparent,
		.body_size = size,
		.piece = on_piece,
		.replied = on_replied,
		.context = i,
	};

	ask.body = body;
	i->reply.run = r;
	return http_ask_inner(http, &ask, &i->exchange, err);
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
