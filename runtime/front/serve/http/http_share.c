/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What one caller may hold of what all share: connections, and memory (requests that come in or
 * wait for their turn, replies that wait to be read).  Pure.
 *
 * A caller has a quarter; an eighth is kept for root and the service's own uid, who may have all.
 * The sums are made anew each time: there is nothing to keep in step.
 */
#include <string.h>

#include "runtime/front/serve/http/http_parts.h"

/* Of others together, and of the one who asks. */
struct holding {
	size_t all, own;
};

static bool is_same_caller(const struct exchange *a, const struct exchange *b)
{
	return a->caller.is_tcp == b->caller.is_tcp && a->caller.uid == b->caller.uid &&
	       strcmp(a->token_name, b->token_name) == 0;
}

static enum api_code judge(const struct exchange *x, struct holding held, size_t more, size_t most)
{
	size_t open = x->is_ours ? most : most - most / 8;

	/* Who holds nothing may have more than a quarter: else some results could never be had. */
	if (!x->is_ours && held.own > 0 && held.own + more > most / 4)
		return API_TOO_MANY_WAITING;
	return held.all + more > open ? API_QUEUE_FULL : API_CODE_COUNT;
}

enum api_code http_may_connect(const struct exchange *x)
{
	struct holding held = { 0 };

	for (const struct exchange *e = x->http->exchanges; e; e = e->next) {
		if (e == x || e->is_extra)
			continue;
		held.all++;
		held.own += is_same_caller(e, x);
	}
	return judge(x, held, 1, HTTP_CONNECTIONS_MAX);
}

/* As many bytes as four of the largest requests take, if that is more than usual. */
static size_t bytes_max(const struct http *h)
{
	size_t four = 4 * (h->body_max + 1);
	return four > HTTP_BYTES_MAX ? four : HTTP_BYTES_MAX;
}

enum api_code http_may_hold(const struct exchange *x, size_t more)
{
	struct holding held = { 0 };

	if (more <= HTTP_SMALL)
		return API_CODE_COUNT;
	for (const struct exchange *e = x->http->exchanges; e; e = e->next) {
		size_t bytes = e->body_held + e->reply_held + e->stream.room;
		held.all += bytes;
		held.own += is_same_caller(e, x) ? bytes : 0;
	}
	return judge(x, held, more, bytes_max(x->http));
}

struct exchange *http_find_stranger(const struct http *h)
{
	struct exchange *oldest = NULL;
	size_t count = 0;

	for (struct exchange *x = h->exchanges; x; x = x->next) {
		if (!x->caller.is_tcp || x->token_name[0] || x->is_abandoned || x->is_extra ||
		    x->ends_after)
			continue;
		oldest = x;
		count++;
	}
	return count >= HTTP_STRANGERS_MAX ? oldest : NULL;
}

/* A caller has half of them, and gives up its own oldest. */
struct exchange *http_find_lingerer(const struct exchange *x)
{
	struct exchange *oldest = NULL, *own_oldest = NULL;
	size_t all = 0, own = 0;

	for (struct exchange *e = x->http->exchanges; e; e = e->next) {
		if (e == x || !e->is_extra || e->is_abandoned)
			continue;
		oldest = e;
		all++;
		if (is_same_caller(e, x)) {
			own_oldest = e;
			own++;
		}
	}
	if (own >= HTTP_LINGER_MAX / 2)
		return own_oldest;
	return all >= HTTP_LINGER_MAX ? oldest : NULL;
}
