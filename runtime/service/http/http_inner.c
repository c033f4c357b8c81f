/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of the service's own: an exchange without a connection. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/base/scope.h"
#include "runtime/service/http/http_parts.h"

/* A reply waits for http_tick(), because the handler may still use the exchange. */
void exchange_keep_inner_reply(struct exchange *x, const struct http_reply *reply)
{
	x->is_answered = true;
	x->inner_reply = *reply;
	x->http->has_due = true;
}

bool exchange_is_inner(const struct exchange *x)
{
	return x->is_inner;
}

/* --- life ------------------------------------------------------------------------ */

static void destroy(struct exchange *x)
{
	if (x->next)
		x->next->previous = x->previous;
	if (x->previous)
		x->previous->next = x->next;
	else
		x->http->inners = x->next;
	exchange_clear(x); /* notifies the holder */
	free(x->inner_reply.text);
	free(x);
}

static int take_trace(struct exchange *x, struct cj_error *err)
{
	const struct http_inner *ask = &x->inner;
	const char *request_id = ask->outer ? ask->outer->trace.request_id : NULL;

	if (ask->outer && !ask->traceparent) {
		x->trace = ask->outer->trace;
		return 0;
	}
	return trace_adopt(request_id, ask->traceparent, &x->trace, err);
}

static void take_caller(struct exchange *x, const struct exchange *outer)
{
	x->caller = (struct http_caller){ .uid = geteuid() };
	x->is_ours = true;
	x->whole_us = clock_us();
	if (!outer)
		return;
	x->caller = outer->caller;
	x->is_ours = outer->is_ours;
	x->whole_us = outer->whole_us;
	memcpy(x->token_name, outer->token_name, sizeof(x->token_name));
}

static struct exchange *create(struct http *h, const struct http_inner *ask)
{
	struct exchange *x = calloc(1, sizeof(*x));

	if (!x)
		return NULL;
	*x = (struct exchange){ .http = h,
				.is_inner = true,
				.inner = *ask,
				.fd = -1,
				.watch = WATCH_NULL,
				.phase = PHASE_WHOLE,
				.body = ask->body,
				.size = ask->body_size };
	take_caller(x, ask->outer);
	return x;
}

int http_open_inner(struct http *h, const struct http_inner *ask, struct exchange **out,
		    struct cj_error *err)
{
	struct exchange *x = create(h, ask);

	if (!x) {
		free(ask->body);
		return cj_fail(err, ENOMEM, "ask the service");
	}
	x->next = h->inners;
	if (x->next)
		x->next->previous = x;
	h->inners = x;
	if (take_trace(x, err) < 0) {
		destroy(x);
		return -err->code;
	}
	x->inner.outer = NULL; /* it may end first */
	*out = x;
	return 0;
}

void http_settle_inner(struct exchange *x)
{
	if (!x->is_answered && !x->holder)
		exchange_refuse(x, API_INTERNAL, NULL, NULL);
}

void http_drop_inner(struct exchange **x)
{
	if (*x)
		destroy(*x);
	*x = NULL;
}

/* --- replies ----------------------------------------------------------------------- */

/* A callback may ask and drop other requests, so the list is searched again after each one. */
void http_deliver_inners(struct http *h)
{
	struct exchange *x = h->inners;

	while (x) {
		struct http_reply reply = x->inner_reply;
		if (!x->is_answered) {
			x = x->next;
			continue;
		}
		x->inner_reply.text = NULL;
		struct http_inner ask = x->inner;
		destroy(x);
		ask.replied(ask.context, &reply);
		free(reply.text);
		x = h->inners;
	}
}

void http_drop_inners(struct http *h)
{
	while (h->inners)
		destroy(h->inners);
}
