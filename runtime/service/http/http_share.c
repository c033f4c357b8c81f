/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each caller's share of connections and of memory: requests that arrive or wait in the queue,
 * replies that wait to be read.
 *
 * A caller may have a quarter.  An eighth is reserved for root and the service's own uid, which may
 * have everything.  The sums are computed each time, so no counter can get out of step.
 */
#include <string.h>

#include "runtime/service/http/http_parts.h"

/* Of all callers together, and of the one that asks. */
struct holding {
	size_t all, own;
};

static bool is_same_caller(const struct exchange *a, const struct exchange *b)
{
	return a->caller.is_tcp == b->caller.is_tcp && a->caller.uid == b->caller.uid &&
	       strcmp(a->token_name, b->token_name) == 0;
}

static enum api_code limit(const struct exchange *x, struct holding h, size_t more, size_t most)
{
	size_t open = x->is_ours ? most : most - most / 8;

	/* A caller that holds nothing may exceed its quarter: some results are larger than that. */
	if (!x->is_ours && h.own > 0 && h.own + more > most / 4)
		return API_TOO_MANY_WAITING;
	return h.all + more > open ? API_QUEUE_FULL : API_OK;
}

enum api_code http_may_connect(const struct exchange *x)
{
	struct holding h = { 0 };

	if (x->is_inner)
		return API_OK; /* the request it is made for counts */
	for (const struct exchange *e = x->http->exchanges; e; e = e->next) {
		if (e == x || e->is_extra)
			continue;
		h.all++;
		h.own += is_same_caller(e, x);
	}
	return limit(x, h, 1, HTTP_CONNECTIONS_MAX);
}

enum api_code http_may_hold(const struct exchange *x, size_t more)
{
	struct holding h = { 0 };

	if (more <= HTTP_SMALL || x->is_inner)
		return API_OK;
	for (const struct exchange *e = x->http->exchanges; e; e = e->next) {
		size_t bytes = e->body_held + e->reply_held + e->stream.room;
		h.all += bytes;
		h.own += is_same_caller(e, x) ? bytes : 0;
	}
	size_t four = 4 * (x->http->body_max + 1); /* requests of the largest size */
	return limit(x, h, more, four > HTTP_BYTES_MAX ? four : HTTP_BYTES_MAX);
}

struct exchange *http_find_unauthenticated(const struct http *h)
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
	return count >= HTTP_UNAUTHENTICATED_MAX ? oldest : NULL;
}

/* A caller may have half of them; above it, its own oldest one has to go. */
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
