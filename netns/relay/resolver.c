/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Three limits bound what a flooding jail can do: slots (a new query replaces the oldest one, more
 * TCP clients wait), queries per second, and events per call.  A flood delays the jail's own name
 * queries, but neither the host's name server nor the supervisor's other work.
 */
#include "netns/relay/resolver.h"

#include <netinet/in.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "netns/relay/resolver_message.h"
#include "netns/relay/tcp_pool.h"
#include "runtime/base/scope.h"

#define TICK_MS        250  /* resolution of the time limits */
#define QUERIES_SECOND 1000 /* to the host's name server; the burst is as large */
#define BUDGET_MAX     (QUERIES_SECOND * 1000) /* thousandths: that burst */

#define RECEIVE_MAX 8    /* queries read by one call */
#define SKIP_MS     2000 /* after this time of silence a server gets no new queries */
#define EXPIRE_MS   5000

#define IDLE_MS      10000 /* of a TCP connection */
#define SESSION_COST 20 /* in queries: 50 connections a second, so that the host keeps free ports */

#define SESSIONS_MAX 16 /* of TCP, out of RESOLVER_QUERIES_MAX */
#define UDP_MAX      (RESOLVER_QUERIES_MAX - SESSIONS_MAX)

/* Our own sockets in the pool: those of the queries, then the one for all queries. */
#define UDP UDP_MAX

/* A query that waits for its answer. */
struct resolver_query {
	int fd; /* connected to the server, with a port for this query only; -1: free slot */
	uint64_t since_ms;
	size_t server, tried; /* index of its server; how many servers were asked */
	struct sockaddr_storage peer;
	socklen_t peer_size;
	uint8_t bytes[RESOLVER_QUESTION_MAX];
	size_t size;
	uint16_t id; /* of its own, for the server; in the byte order of the network */
};

/* Which servers a client's TCP connection is for. */
struct resolver_session {
	size_t server, tried; /* first server asked; how many were tried */
};

struct resolver {
	struct tcp_pool pool;
	int udp_fd;
	struct resolver_upstream upstream;
	const struct resolver_names *names; /* NULL: any name */
	size_t current;                     /* the server that new queries go to */
	uint64_t filled_ms;
	unsigned budget; /* thousandths of a query */
	struct resolver_query queries[UDP_MAX];
	struct tcp_pool_slot slots[SESSIONS_MAX];
	struct resolver_session sessions[SESSIONS_MAX];
	uint8_t scratch[RESOLVER_ANSWER_MAX];
};

/* This server did not answer: new queries go to the next one. */
static void skip_server(struct resolver *r, size_t server)
{
	if (server == r->current)
		r->current = (server + 1) % r->upstream.count;
}

/* Takes `cost` queries from the budget.  False: it has too few, and none is taken. */
static bool spend(struct resolver *r, unsigned cost)
{
	uint64_t fresh = (r->pool.now_ms - r->filled_ms) * QUERIES_SECOND;
	r->filled_ms = r->pool.now_ms;
	r->budget = fresh > BUDGET_MAX - r->budget ? BUDGET_MAX : r->budget + (unsigned)fresh;
	if (r->budget < cost * 1000)
		return false;
	r->budget -= cost * 1000;
	return true;
}

static int bind_socket(const struct ip *address, int type, struct cj_error *err)
{
	char text[IP_TEXT_MAX];
	struct sockaddr_storage at;
	socklen_t size = ip_socket_address(address, RESOLVER_PORT, &at);
	const char *name = ip_format(address, text);
	int on = 1;

	auto_fd int fd = socket(at.ss_family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return cj_fail(err, errno, "open a socket for names at '%s'", name);
	/* ip(7): also of IPv6.  The gateway's address comes with its link, after the rules. */
	if (setsockopt(fd, IPPROTO_IP, IP_FREEBIND, &on, sizeof(on)) < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0)
		return cj_fail(err, errno, "set up a socket for names at '%s'", name);
	if (bind(fd, (struct sockaddr *)&at, size) < 0)
		return cj_fail(err, errno, "bind '%s' port %d", name, RESOLVER_PORT);
	if (type == SOCK_STREAM && listen(fd, SESSIONS_MAX) < 0)
		return cj_fail(err, errno, "listen at '%s' port %d", name, RESOLVER_PORT);
	return take_fd(&fd);
}

int resolver_listen(const struct ip *address, int *out_udp_fd, int *out_tcp_fd,
		    struct cj_error *err)
{
	auto_fd int udp_fd = bind_socket(address, SOCK_DGRAM, err);
	if (udp_fd < 0)
		return udp_fd;
	int tcp_fd = bind_socket(address, SOCK_STREAM, err);
	if (tcp_fd < 0)
		return tcp_fd;
	*out_udp_fd = take_fd(&udp_fd);
	*out_tcp_fd = tcp_fd;
	return 0;
}

/* Queries over UDP.
 *
 * Each query has a socket of its own, connected to the server: so the port is random, and the
 * kernel accepts answers of this server only (RFC 5452 9.2).  The id is random, too: an answer can
 * open an address, and the program knows its own ids.  When a server can't be reached, or answers
 * that it has failed, the next one is asked at once, as the C library does; after the last one the
 * client gets a failure.  When a server is silent, the client asks again (resolv.conf(5) "timeout",
 * 5 s), and the query goes to another server.
 */

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

static void answer_failure(struct resolver *r, const struct resolver_query *q)
{
	uint8_t failure[RESOLVER_QUESTION_MAX];
	answer_client(r, q, failure, resolver_failure(q->bytes, q->size, failure));
}

static int connect_server(const struct resolver *r, size_t server, int type)
{
	return r->upstream.connect(r->upstream.context, server, type);
}

static bool ask_server(struct resolver *r, struct resolver_query *q)
{
	struct cj_error ignored;
	uint8_t bytes[RESOLVER_QUESTION_MAX];

	if (getrandom(&q->id, sizeof(q->id), GRND_NONBLOCK) != sizeof(q->id))
		return false;
	memcpy(bytes, q->bytes, q->size);
	memcpy(bytes, &q->id, sizeof(q->id));
	const size_t size = r->names ? resolver_add_opt(bytes, q->size) : q->size;
	q->fd = connect_server(r, q->server, SOCK_DGRAM);
	if (q->fd >= 0 && send(q->fd, bytes, size, MSG_NOSIGNAL) == (ssize_t)size &&
	    tcp_pool_watch(&r->pool, q->fd, (size_t)(q - r->queries), &ignored) == 0)
		return true;
	cj_close(&q->fd);
	return false;
}

/* Asks the server at q->server; if it can't be reached, the later ones, each once. */
static void ask(struct resolver *r, struct resolver_query *q)
{
	for (; q->tried < r->upstream.count; q->server = (q->server + 1) % r->upstream.count) {
		q->tried++;
		if (ask_server(r, q))
			return;
		skip_server(r, q->server);
	}
	answer_failure(r, q);
}

static void ask_next(struct resolver *r, struct resolver_query *q)
{
	cj_close(&q->fd);
	q->server = (q->server + 1) % r->upstream.count;
	ask(r, q);
}

/* A free slot, or else the slot of the oldest query.  New queries must reach a server that answers,
 * even if a silent one has let all slots fill up. */
static struct resolver_query *make_room(struct resolver *r)
{
	struct resolver_query *oldest = &r->queries[0];
	for (size_t i = 0; i < UDP_MAX; i++) {
		if (r->queries[i].fd < 0)
			return &r->queries[i];
		if (r->queries[i].since_ms < oldest->since_ms)
			oldest = &r->queries[i];
	}
	cj_close(&oldest->fd);
	return oldest;
}

/* Answers a query of a live list that no server is asked.  True: it has been answered. */
static bool answer_here(struct resolver *r, const struct resolver_query *q)
{
	const struct resolver_names *names = r->names;
	static const uint8_t no_code[4];
	char name[RESOLVER_NAME_MAX];
	uint8_t out[RESOLVER_QUESTION_MAX];
	unsigned type = resolver_question(r->scratch, q->size, name);
	if (type == 0 || !names->may_ask(names->context, name)) {
		refuse(r, q, q->size);
		return true;
	}
	if (type == RESOLVER_TYPE_A || type == RESOLVER_TYPE_AAAA)
		return false;
	answer_client(r, q, out, resolver_answer(r->scratch, q->size, no_code, NULL, 0, out));
	return true;
}

/* Opens what the answer in `scratch` has, before the client gets it. */
static void answer_open(struct resolver *r, const struct resolver_query *q, size_t size)
{
	const struct resolver_names *names = r->names;
	struct resolver_address addresses[RESOLVER_ADDRESSES_MAX];
	struct resolver_aliases aliases;
	char name[RESOLVER_NAME_MAX];
	uint8_t out[RESOLVER_QUESTION_MAX];
	size_t count = resolver_addresses(q->bytes, r->scratch, size, addresses);
	enum resolver_end end = resolver_is_cut_off(r->scratch) ? RESOLVER_LATER : RESOLVER_OPEN;
	(void)resolver_question(q->bytes, q->size, name); /* receive_query() has looked */
	if (count > 0)
		end = resolver_aliases(q->bytes, r->scratch, size, &aliases)
			  ? names->open(names->context, name, &aliases, addresses, &count)
			  : RESOLVER_LATER;
	if (end == RESOLVER_OPEN)
		answer_client(
		    r, q, out,
		    resolver_answer(q->bytes, q->size, r->scratch, addresses, count, out));
	else if (end == RESOLVER_DENIED)
		answer_client(r, q, out, resolver_refusal(q->bytes, q->size, out));
	else
		answer_failure(r, q);
}

static bool receive_query(struct resolver *r)
{
	struct resolver_query query = { .fd = -1,
					.since_ms = r->pool.now_ms,
					.server = r->current,
					.peer_size = sizeof(query.peer) };
	ssize_t size = recvfrom(r->udp_fd, r->scratch, sizeof(r->scratch), 0,
				(struct sockaddr *)&query.peer, &query.peer_size);
	if (size < 0)
		return false; /* EAGAIN; recvfrom(2) has also cleared any pending error */
	if (!spend(r, 1))
		return true;
	query.size = resolver_make_plain(r->scratch, (size_t)size);
	if (query.size == 0) {
		refuse(r, &query, (size_t)size);
		return true;
	}
	if (r->names && answer_here(r, &query))
		return true;
	struct resolver_query *q = make_room(r);
	*q = query;
	memcpy(q->bytes, r->scratch, q->size);
	ask(r, q);
	tcp_pool_start_ticks(&r->pool);
	return true;
}

static void take_answer(struct resolver *r, size_t slot)
{
	struct resolver_query *q = &r->queries[slot];
	if (q->fd < 0)
		return;
	ssize_t size = recv(q->fd, r->scratch, sizeof(r->scratch), 0);
	if (size < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (size < 0) { /* an ICMP error, udp(7) */
		skip_server(r, q->server);
		ask_next(r, q);
		return;
	}
	if (size < (ssize_t)sizeof(q->id) || memcmp(r->scratch, &q->id, sizeof(q->id)) != 0)
		return; /* the right answer may still come */
	memcpy(r->scratch, q->bytes, sizeof(q->id));
	if (!resolver_answers(q->bytes, r->scratch, (size_t)size))
		return;
	if (resolver_has_failed(r->scratch) && q->tried < r->upstream.count) {
		ask_next(r, q);
		return;
	}
	if (r->names)
		answer_open(r, q, (size_t)size);
	else
		answer_client(r, q, r->scratch, (size_t)size);
	cj_close(&q->fd);
}

static bool sweep_queries(struct resolver *r)
{
	bool some_wait = false;
	for (size_t i = 0; i < UDP_MAX; i++) {
		struct resolver_query *q = &r->queries[i];
		if (q->fd < 0)
			continue;
		uint64_t waited_ms = r->pool.now_ms - q->since_ms;
		if (waited_ms >= SKIP_MS)
			skip_server(r, q->server);
		if (waited_ms >= EXPIRE_MS)
			cj_close(&q->fd);
		else
			some_wait = true;
	}
	return some_wait;
}

/* --- queries over TCP: one connection to the server for each connection of a client ---
 *
 * The client's bytes are split into messages, and each message is validated before it is sent on.
 * The server's bytes are passed on unchanged.  Without a free slot, clients wait in the kernel's
 * backlog.
 */

static ssize_t filter_queries(void *arg, uint8_t *bytes, size_t *size)
{
	struct resolver *r = arg;
	size_t passed;
	int count = resolver_stream(bytes, size, &passed);
	if (count < 0 || !spend(r, (unsigned)count))
		return -1;
	return (ssize_t)passed;
}

static bool is_client_wanted(void *owner)
{
	return spend(owner, SESSION_COST);
}

/* Connects to the current server, or to a later one if that fails at once. */
static enum tcp_proxy_state connect_session(struct resolver *r, size_t slot)
{
	struct resolver_session *s = &r->sessions[slot];
	while (s->tried < r->upstream.count) {
		size_t server = (s->server + s->tried++) % r->upstream.count;
		if (tcp_proxy_join(r->slots[slot].proxy, connect_server(r, server, SOCK_STREAM)) ==
		    TCP_PROXY_OPEN)
			return TCP_PROXY_OPEN;
	}
	return TCP_PROXY_CLOSED;
}

static enum tcp_proxy_state open_session(void *owner, size_t slot, int jail_fd, size_t listener)
{
	struct resolver *r = owner;
	(void)jail_fd;
	(void)listener;
	if (r->names)
		return TCP_PROXY_CLOSED; /* its answers would not be read */
	tcp_proxy_filter(r->slots[slot].proxy, filter_queries, r);
	r->sessions[slot] = (struct resolver_session){ .server = r->current };
	return connect_session(r, slot);
}

static enum tcp_proxy_state serve_session(void *owner, size_t slot, enum tcp_proxy_side side,
					  uint32_t events)
{
	struct resolver *r = owner;
	enum tcp_proxy_state state = tcp_proxy_serve(r->slots[slot].proxy, side, events);
	return state == TCP_PROXY_UNREACHABLE ? connect_session(r, slot) : state;
}

static bool sweep(void *owner)
{
	struct resolver *r = owner;
	for (size_t i = 0; i < SESSIONS_MAX; i++)
		if (r->slots[i].proxy && tcp_pool_idle_ms(&r->pool, i) >= IDLE_MS)
			tcp_pool_drop(&r->pool, i);
	return sweep_queries(r) || r->pool.count > 0;
}

/* A stale event, of a query whose slot has another one by now, only reads EAGAIN. */
static void serve_own(void *owner, size_t n)
{
	struct resolver *r = owner;
	if (n < UDP)
		take_answer(r, n);
	for (int i = 0; n == UDP && i < RECEIVE_MAX && receive_query(r); i++)
		;
}

static const struct tcp_pool_calls pool_calls = {
	.is_wanted = is_client_wanted,
	.open = open_session,
	.serve = serve_session,
	.tick = sweep,
	.serve_own = serve_own,
};

int resolver_create(int udp_fd, int tcp_fd, const struct resolver_upstream *upstream,
		    struct resolver **out, struct cj_error *err)
{
	struct resolver *r = calloc(1, sizeof(*r));
	if (!r)
		return cj_fail(err, ENOMEM, "make room for the resolver");
	r->udp_fd = -1;
	for (size_t i = 0; i < UDP_MAX; i++)
		r->queries[i].fd = -1;
	r->upstream = *upstream;
	r->budget = BUDGET_MAX;
	r->pool = (struct tcp_pool){ .what = "the resolver",
				     .calls = &pool_calls,
				     .owner = r,
				     .slots = r->slots,
				     .nslots = SESSIONS_MAX,
				     .tick_ms = TICK_MS };
	int rc = tcp_pool_open(&r->pool, &tcp_fd, 1, err);
	if (rc == 0 && tcp_pool_watch(&r->pool, udp_fd, UDP, err) < 0) {
		r->pool.nlisteners = 0; /* the socket stays the caller's */
		rc = -err->code;
	}
	if (rc < 0) {
		resolver_destroy(&r);
		return rc;
	}
	r->filled_ms = r->pool.now_ms;
	r->udp_fd = udp_fd;
	*out = r;
	return 0;
}

void resolver_destroy(struct resolver **rr)
{
	struct resolver *r = *rr;
	if (!r)
		return;
	for (size_t i = 0; i < UDP_MAX; i++)
		cj_close(&r->queries[i].fd);
	cj_close(&r->udp_fd);
	tcp_pool_close(&r->pool);
	cj_free(rr);
}

static void drop_sessions(struct resolver *r)
{
	for (size_t i = 0; i < SESSIONS_MAX; i++)
		if (r->slots[i].proxy)
			tcp_pool_drop(&r->pool, i);
}

void resolver_filter(struct resolver *r, const struct resolver_names *names)
{
	r->names = names;
	if (names)
		drop_sessions(r);
}

void resolver_lose_servers(struct resolver *r)
{
	for (size_t i = 0; i < UDP_MAX; i++)
		if (r->queries[i].fd >= 0) {
			answer_failure(r, &r->queries[i]);
			cj_close(&r->queries[i].fd);
		}
	drop_sessions(r);
	r->upstream.count = r->current = 0;
}

int resolver_fd(const struct resolver *r)
{
	return r->pool.epoll_fd;
}

int resolver_serve(struct resolver *r, struct cj_error *err)
{
	return tcp_pool_serve(&r->pool, err);
}
