/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections: each is watched by the epoll loop, its request is read and passed on, the reply is
 * written, the next request read.  server.c accepts the connections.
 *
 * Each connection has one state (enum phase), which alone decides the events that it waits for
 * (events_of).  A change from outside its own turn only marks the connection as due, and
 * http_tick() continues it: no function of http.h calls back into its caller.  Requests of the
 * service's own have no connection: pieces of their streams go to the asker at once.
 */
#include "runtime/service/http/http.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "runtime/base/clock.h"
#include "runtime/base/scope.h"
#include "runtime/service/http/http_parts.h"
#include "runtime/service/log/slog.h"

#define SCAN_MS   100 /* the resolution of deadlines */
#define STEPS_MAX 64  /* of one connection in a turn of the loop */

static void on_ready(struct watch *w, uint32_t events);

/*
 * Each caller's share of connections and of memory: requests that arrive or wait in the queue,
 * replies that wait to be read.
 *
 * A caller may have a quarter.  An eighth is reserved for root and the service's own uid, which may
 * have everything.  The sums are computed each time, so no counter can get out of step.
 */
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
	const struct exchange *e;
	struct holding h = { 0 };

	if (x->is_inner)
		return API_OK; /* the request it is made for counts */
	LIST_FOREACH(e, &x->http->exchanges, link)
	{
		if (e == x || e->is_extra)
			continue;
		h.all++;
		h.own += is_same_caller(e, x);
	}
	return limit(x, h, 1, HTTP_CONNECTIONS_MAX);
}

enum api_code http_may_hold(const struct exchange *x, size_t more)
{
	const struct exchange *e;
	struct holding h = { 0 };

	if (more <= HTTP_SMALL || x->is_inner)
		return API_OK;
	LIST_FOREACH(e, &x->http->exchanges, link)
	{
		size_t bytes = e->body_held + e->reply_held + e->stream.queue.room;
		h.all += bytes;
		h.own += is_same_caller(e, x) ? bytes : 0;
	}
	size_t four = 4 * (x->http->body_max + 1); /* requests of the largest size */
	return limit(x, h, more, four > HTTP_BYTES_MAX ? four : HTTP_BYTES_MAX);
}

struct exchange *http_find_unauthenticated(const struct http *h)
{
	struct exchange *x, *oldest = NULL;
	size_t count = 0;

	LIST_FOREACH(x, &h->exchanges, link)
	{
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
	struct exchange *e, *oldest = NULL, *own_oldest = NULL;
	size_t all = 0, own = 0;

	LIST_FOREACH(e, &x->http->exchanges, link)
	{
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

static uint32_t events_of(const struct exchange *x)
{
	uint32_t events = 0;

	if (x->phase != PHASE_WHOLE)
		return x->phase == PHASE_BODY && x->is_paused ? 0 : EPOLLIN;
	if (exchange_has_output(x))
		events |= EPOLLOUT;
	/*
	 * On a Unix socket a peer that shut down its sending side may still read; TCP does not
	 * tell.
	 */
	if (x->holder && x->caller.is_tcp)
		events |= EPOLLRDHUP;
	return events;
}

/* Notifies the holder. */
static void destroy(struct exchange *x)
{
	struct http *h = x->http;

	LIST_REMOVE(x, link);
	exchange_clear(x);
	byte_queue_fini(&x->in);
	free(x->inner_reply.text);
	if (!x->is_inner) {
		h->count--;
		loop_unwatch(h->loop, &x->watch);
		cj_close(&x->fd);
	}
	free(x);
}

/* Before one more connection becomes extra: the number of those is limited, too. */
static void limit_lingerers(const struct exchange *x)
{
	struct exchange *oldest = http_find_lingerer(x);

	if (oldest) {
		oldest->is_abandoned = true;
		exchange_set_due(oldest);
	}
}

static void finish_reply(struct exchange *x)
{
	uint64_t idle_ms = HTTP_IDLE_MS > x->http->receive_ms ? HTTP_IDLE_MS : x->http->receive_ms;
	bool ends = x->ends_after;

	exchange_clear(x);
	x->deadline_ms = clock_ms() + idle_ms;
	if (!ends)
		return;
	/* Drop what the caller still sends until it has read the reply. */
	x->is_extra = true;
	limit_lingerers(x);
	x->phase = PHASE_LINGER;
	x->deadline_ms = clock_ms() + (x->is_late ? HTTP_LINGER_LATE_MS : HTTP_LINGER_MS);
	if (x->has_ended || shutdown(x->fd, SHUT_WR) < 0)
		x->is_abandoned = true;
}

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

int http_open_inner(struct http *h, const struct http_inner *ask, struct exchange **out,
		    struct cj_error *err)
{
	struct exchange *x = calloc(1, sizeof(*x));
	const struct exchange *outer = ask->outer;

	if (!x) {
		free(ask->body);
		return cj_fail(err, ENOMEM, "ask the service");
	}
	*x = (struct exchange){ .http = h,
				.is_inner = true,
				.inner = *ask,
				.fd = -1,
				.watch = WATCH_NULL,
				.phase = PHASE_WHOLE,
				.body = ask->body,
				.size = ask->body_size,
				.caller = { .uid = geteuid() },
				.is_ours = true,
				.whole_us = clock_us() };
	if (outer) {
		x->caller = outer->caller;
		x->is_ours = outer->is_ours;
		x->whole_us = outer->whole_us;
		memcpy(x->token_name, outer->token_name, sizeof(x->token_name));
	}
	LIST_INSERT_HEAD(&h->inners, x, link);
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

/* A callback may ask and drop other requests, so the list is searched again after each one. */
static void deliver_inners(struct http *h)
{
	struct exchange *x = LIST_FIRST(&h->inners);

	while (x) {
		struct http_reply reply = x->inner_reply;
		if (!x->is_answered) {
			x = LIST_NEXT(x, link);
			continue;
		}
		x->inner_reply.text = NULL;
		struct http_inner ask = x->inner;
		destroy(x);
		ask.replied(ask.context, &reply);
		free(reply.text);
		x = LIST_FIRST(&h->inners);
	}
}

/* As far as it goes without waiting. */
static void progress(struct exchange *x)
{
	int steps = 0;

	for (bool goes_on = true; goes_on && !x->is_abandoned; steps++) {
		if (steps == STEPS_MAX) {
			exchange_set_due(
			    x); /* part of the next request may be in the buffer already */
			return;
		}
		goes_on = exchange_receive(x);
		if (x->phase == PHASE_WHOLE && exchange_send(x)) {
			finish_reply(x);
			goes_on = x->phase == PHASE_IDLE;
		}
	}
	if (x->phase == PHASE_LINGER && !x->is_abandoned)
		exchange_drop_input(x);
}

/* False: the connection was abandoned and is freed. */
static bool turn(struct exchange *x)
{
	x->is_due = false;
	progress(x);
	if (x->is_abandoned) {
		destroy(x);
		return false;
	}
	uint32_t events = events_of(x);
	if (events != x->watched)
		loop_rewatch(x->http->loop, &x->watch, events);
	x->watched = events;
	return true;
}

static void on_ready(struct watch *w, uint32_t events)
{
	struct exchange *x = watch_owner(w, struct exchange, watch);

	if (x->holder && (events & (EPOLLHUP | EPOLLERR | EPOLLRDHUP)))
		x->is_abandoned = true; /* closing it notifies the holder */
	(void)turn(x);
}

/* A caller that is too slow receives 408, unless its reply has begun. */
static void end_late(struct exchange *x)
{
	if (x->phase == PHASE_HEAD || x->phase == PHASE_BODY) {
		x->is_late = true;
		exchange_end_after(x);
		exchange_refuse(x, API_RECEIVE_TIMEOUT, NULL, NULL);
		x->phase = PHASE_WHOLE;
		x->is_extra = true;
		return;
	}
	if (x->phase == PHASE_WHOLE)
		slog(SLOG_INFO, x->trace.request_id, "the caller does not read the reply");
	x->is_abandoned = true;
	exchange_set_due(x);
}

int http_tick(struct http *h, uint64_t now_ms)
{
	struct exchange *x, *next;

	if (now_ms >= h->scan_at_ms) {
		h->scan_at_ms = now_ms + SCAN_MS;
		LIST_FOREACH(x, &h->exchanges, link)
		if (x->deadline_ms > 0 && now_ms >= x->deadline_ms && !x->is_paused)
			end_late(x);
	}
	for (int i = 0; h->has_due && i < 4; i++) {
		h->has_due = false;
		deliver_inners(h);
		for (x = LIST_FIRST(&h->exchanges); x; x = next) {
			next = LIST_NEXT(x, link);
			if (x->is_due)
				(void)turn(x);
		}
	}
	if (h->has_due)
		return 0;
	return LIST_EMPTY(&h->exchanges) ? -1 : SCAN_MS;
}

static bool read_caller(int fd, bool is_tcp, struct http_caller *out)
{
	struct ucred peer = { .uid = (uid_t)-1 };
	socklen_t size = sizeof(peer);
	int on = 1;

	*out = (struct http_caller){ .is_tcp = is_tcp, .uid = (uid_t)-1 };
	if (is_tcp) {
		/* Lines of a run go as they come; without it they are only later. */
		(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
		return true;
	}
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0 || size != sizeof(peer))
		return false;
	out->uid = peer.uid;
	return true;
}

static struct exchange *create_exchange(struct http *h, const struct http_caller *caller, int fd)
{
	struct exchange *x = calloc(1, sizeof(*x));
	struct cj_error err = { 0 };

	if (!x)
		return NULL;
	x->http = h;
	x->caller = *caller;
	x->is_ours = !caller->is_tcp && (caller->uid == 0 || caller->uid == geteuid());
	x->fd = fd;
	x->watched = EPOLLIN;
	x->deadline_ms = clock_ms() + h->receive_ms;
	x->no_room = http_may_connect(x);
	if (x->no_room != API_OK) {
		x->is_extra = true;
		x->deadline_ms = clock_ms() + HTTP_LINGER_MS;
	}
	if (loop_watch(h->loop, &x->watch, fd, on_ready, &err) == 0)
		return x;
	slog_failure(SLOG_WARNING, "", &err, "accept a connection");
	free(x);
	return NULL;
}

/*
 * Refusing the new connection would lock out callers with a token.  The oldest unauthenticated
 * client may have sent its token by now; if not, its request is refused for lack of room.
 */
static void make_room_for_unauthenticated(struct http *h)
{
	struct exchange *oldest = http_find_unauthenticated(h);

	if (!oldest)
		return;
	if (!turn(oldest) ||
	    http_find_unauthenticated(h) != oldest) /* gone, or authenticated now */
		return;
	if (oldest->phase != PHASE_IDLE) {
		end_late(oldest);
		return;
	}
	oldest->no_room = API_TOO_MANY_WAITING;
	oldest->is_extra = true;
	oldest->deadline_ms = clock_ms() + HTTP_LINGER_MS;
	limit_lingerers(oldest);
}

void http_add(struct http *h, int fd, bool is_tcp)
{
	struct http_caller caller;

	if (!read_caller(fd, is_tcp, &caller)) {
		cj_close(&fd);
		return;
	}
	if (is_tcp)
		make_room_for_unauthenticated(h);
	struct exchange *x = create_exchange(h, &caller, fd);
	if (!x) {
		cj_close(&fd);
		return;
	}
	if (x->is_extra)
		limit_lingerers(x);
	LIST_INSERT_HEAD(&h->exchanges, x, link);
	h->count++;
}

int http_open(struct loop *loop, const struct http_ops *ops, struct http **out,
	      struct cj_error *err)
{
	struct http *h = calloc(1, sizeof(*h));

	if (!h)
		return cj_fail(err, ENOMEM, "start the HTTP server");
	*h = (struct http){ .loop = loop, .ops = *ops };
	*out = h;
	return 0;
}

void http_close(struct http **h)
{
	if (!*h)
		return;
	while (!LIST_EMPTY(&(*h)->exchanges))
		destroy(LIST_FIRST(&(*h)->exchanges));
	while (!LIST_EMPTY(&(*h)->inners))
		destroy(LIST_FIRST(&(*h)->inners));
	cj_free(h);
}

void http_set_limits(struct http *h, size_t body_max, uint64_t receive_ms)
{
	h->body_max = body_max;
	h->receive_ms = receive_ms;
}

size_t http_connections(const struct http *h)
{
	return h->count;
}

size_t http_unfinished(const struct http *h)
{
	const struct exchange *x;
	size_t count = 0;

	LIST_FOREACH(x, &h->exchanges, link)
	count += x->phase == PHASE_WHOLE;
	return count;
}
