/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queries over UDP.  Acts.
 *
 * Each query has a socket of its own, connected to the server: so the port is random, and the
 * kernel accepts answers of this server only (RFC 5452 9.2).  The id is the client's own.  When a
 * server refuses, the next one is asked at once; after the last one the client gets a failure.
 * When a server is silent, the client asks again (resolv.conf(5) "timeout", 5 s), and the query
 * goes to another server.
 */
#include "netns/relay/resolver_udp.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>

#include "runtime/base/scope.h"

#define RECEIVE_MAX 8    /* queries read by one call */
#define SKIP_MS     2000 /* after this time of silence a server gets no new queries */
#define EXPIRE_MS   5000
#define IS_FREE(q)  ((q)->fd < 0)

static void free_query(struct resolver_query *q)
{
	cj_close(&q->fd);
}

static void answer_client(struct resolver *r, const struct resolver_query *q, const uint8_t *bytes,
			  size_t size)
{
	/* A full send buffer drops the answer, as any router may: the client asks again. */
	(void)sendto(r->udp_fd, bytes, size, MSG_NOSIGNAL, (const struct sockaddr *)&q->peer,
		     q->peer_size);
}

/* At once, because without an answer the client waits and asks again. */
static void refuse(struct resolver *r, const struct resolver_query *q, size_t size)
{
	uint8_t refusal[RESOLVER_QUESTION_MAX];
	size_t length = resolver_refusal(r->scratch, size, refusal);
	if (length > 0)
		answer_client(r, q, refusal, length);
}

/* --- asking -------------------------------------------------------------------- */

static bool ask_server(struct resolver *r, struct resolver_query *q)
{
	struct sockaddr_storage address;
	socklen_t size = resolver_state_address(&r->servers[q->server], &address);
	struct epoll_event event = {
		.events = EPOLLIN, .data.u32 = RESOLVER_FIRST_QUERY + (uint32_t)(q - r->queries)
	};

	q->fd = socket(address.ss_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (q->fd >= 0 && connect(q->fd, (struct sockaddr *)&address, size) == 0 &&
	    send(q->fd, q->bytes, q->size, MSG_NOSIGNAL) == (ssize_t)q->size &&
	    epoll_ctl(r->epoll_fd, EPOLL_CTL_ADD, q->fd, &event) == 0)
		return true;
	free_query(q);
	return false;
}

/* Asks the server at q->server; if it can't be reached, the later ones, each once. */
static void ask(struct resolver *r, struct resolver_query *q)
{
	for (; q->tried < r->nservers; q->server = (q->server + 1) % r->nservers) {
		q->tried++;
		if (ask_server(r, q))
			return;
		resolver_state_skip_server(r, q->server);
	}
	uint8_t failure[RESOLVER_QUESTION_MAX];
	answer_client(r, q, failure, resolver_failure(q->bytes, q->size, failure));
}

/* --- receiving -------------------------------------------------------------------- */

/* A free slot, or else the slot of the oldest query.  New queries must reach a server that answers,
 * even if a silent one has let all slots fill up. */
static struct resolver_query *make_room(struct resolver *r)
{
	struct resolver_query *oldest = &r->queries[0];
	for (size_t i = 0; i < RESOLVER_UDP_MAX; i++) {
		if (IS_FREE(&r->queries[i]))
			return &r->queries[i];
		if (r->queries[i].since_ms < oldest->since_ms)
			oldest = &r->queries[i];
	}
	free_query(oldest);
	return oldest;
}

static bool receive_query(struct resolver *r)
{
	struct resolver_query query = { .fd = -1,
					.since_ms = r->now_ms,
					.server = r->current,
					.peer_size = sizeof(query.peer) };
	ssize_t size = recvfrom(r->udp_fd, r->scratch, sizeof(r->scratch), 0,
				(struct sockaddr *)&query.peer, &query.peer_size);
	if (size < 0)
		return false; /* EAGAIN; recvfrom(2) has also cleared any pending error */
	if (!resolver_state_spend(r, 1))
		return true;
	query.size = resolver_make_plain(r->scratch, (size_t)size);
	if (query.size == 0) {
		refuse(r, &query, (size_t)size);
		return true;
	}
	struct resolver_query *q = make_room(r);
	*q = query;
	memcpy(q->bytes, r->scratch, q->size);
	ask(r, q);
	resolver_state_start_timer(r);
	return true;
}

void resolver_udp_receive(struct resolver *r)
{
	for (int i = 0; i < RECEIVE_MAX && receive_query(r); i++)
		;
}

/* --- answering ----------------------------------------------------------------- */

void resolver_udp_answer(struct resolver *r, size_t slot)
{
	struct resolver_query *q = &r->queries[slot];
	if (IS_FREE(q))
		return;
	ssize_t size = recv(q->fd, r->scratch, sizeof(r->scratch), 0);
	if (size < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (size < 0) { /* an ICMP error, udp(7) */
		free_query(q);
		resolver_state_skip_server(r, q->server);
		q->server = (q->server + 1) % r->nservers;
		ask(r, q);
		return;
	}
	if (!resolver_answers(q->bytes, r->scratch, (size_t)size))
		return; /* the right answer may still come */
	answer_client(r, q, r->scratch, (size_t)size);
	free_query(q);
}

bool resolver_udp_sweep(struct resolver *r)
{
	bool some_wait = false;
	for (size_t i = 0; i < RESOLVER_UDP_MAX; i++) {
		struct resolver_query *q = &r->queries[i];
		if (IS_FREE(q))
			continue;
		uint64_t waited_ms = r->now_ms - q->since_ms;
		if (waited_ms >= SKIP_MS)
			resolver_state_skip_server(r, q->server);
		if (waited_ms >= EXPIRE_MS)
			free_query(q);
		else
			some_wait = true;
	}
	return some_wait;
}

void resolver_udp_fini(struct resolver *r)
{
	for (size_t i = 0; i < RESOLVER_UDP_MAX; i++)
		free_query(&r->queries[i]);
}
