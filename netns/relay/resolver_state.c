/* SPDX-License-Identifier: Apache-2.0 */
/* The servers, the timer and the budget of a resolver.  Acts. */
#include "netns/relay/resolver_state.h"

#include <netinet/in.h>
#include <string.h>
#include <sys/timerfd.h>

#define TICK_MS        250  /* resolution of the time limits */
#define QUERIES_SECOND 1000 /* to the host's name server; the burst is as large */
#define BUDGET_MAX     (QUERIES_SECOND * 1000) /* thousandths: that burst */

socklen_t resolver_state_address(const struct ip *ip, struct sockaddr_storage *out)
{
	memset(out, 0, sizeof(*out));
	if (ip->family == 4) {
		struct sockaddr_in *in = (struct sockaddr_in *)out;
		in->sin_family = AF_INET;
		in->sin_port = htons(RESOLVER_PORT);
		memcpy(&in->sin_addr, ip->bytes, 4);
		return sizeof(*in);
	}
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)out;
	in6->sin6_family = AF_INET6;
	in6->sin6_port = htons(RESOLVER_PORT);
	memcpy(&in6->sin6_addr, ip->bytes, 16);
	return sizeof(*in6);
}

void resolver_state_skip_server(struct resolver *r, size_t server)
{
	if (server == r->current)
		r->current = (server + 1) % r->nservers;
}

bool resolver_state_spend(struct resolver *r, unsigned cost)
{
	uint64_t fresh = (r->now_ms - r->filled_ms) * QUERIES_SECOND;
	r->filled_ms = r->now_ms;
	r->budget = fresh > BUDGET_MAX - r->budget ? BUDGET_MAX : r->budget + (unsigned)fresh;
	if (r->budget < cost * 1000)
		return false;
	r->budget -= cost * 1000;
	return true;
}

static void set_timer(struct resolver *r, long ms)
{
	struct itimerspec when = { 0 };
	when.it_value.tv_nsec = when.it_interval.tv_nsec = ms * 1000000;
	(void)timerfd_settime(r->timer_fd, 0, &when, NULL); /* fails for bad arguments only */
	r->is_ticking = ms > 0;
}

void resolver_state_start_timer(struct resolver *r)
{
	if (!r->is_ticking)
		set_timer(r, TICK_MS);
}

void resolver_state_stop_timer(struct resolver *r)
{
	set_timer(r, 0);
}

void resolver_state_init_budget(struct resolver *r, uint64_t now_ms)
{
	r->budget = BUDGET_MAX;
	r->now_ms = r->filled_ms = now_ms;
}
