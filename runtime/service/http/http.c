/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections: each is watched by the epoll loop, its request is read and passed on, the reply is
 * written, the next request read.  server.c accepts the connections.
 *
 * Each connection has one state (enum phase), which alone decides the events that it waits for
 * (events_of).  A change from outside its own turn only marks the connection as due, and
 * http_tick() continues it: no function of http.h calls back into its caller.  Requests of the
 * service's own (http_inner.c) have no connection: pieces of their streams go to the asker at once.
 */
#include "runtime/service/http/http.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/base/scope.h"
#include "runtime/service/http/http_parts.h"
#include "runtime/service/log/slog.h"

#define SCAN_MS   100 /* the resolution of deadlines */
#define STEPS_MAX 64  /* of one connection in a turn of the loop */

static void on_ready(struct watch *w, uint32_t events);

/* --- what is waited for ----------------------------------------------------- */

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

/* --- life ------------------------------------------------------------------- */

static void destroy_exchange(struct exchange *x)
{
	struct http *h = x->http;

	exchange_clear(x);
	cj_free(&x->in);
	if (x->next)
		x->next->previous = x->previous;
	if (x->previous)
		x->previous->next = x->next;
	else
		h->exchanges = x->next;
	h->count--;
	loop_unwatch(h->loop, &x->watch);
	cj_close(&x->fd);
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

/* The reply is sent; drop what the caller still sends until it has read the reply. */
static void linger(struct exchange *x)
{
	x->is_extra = true;
	limit_lingerers(x);
	x->phase = PHASE_LINGER;
	x->deadline_ms = clock_ms() + (x->is_late ? HTTP_LINGER_LATE_MS : HTTP_LINGER_MS);
	if (x->has_ended || shutdown(x->fd, SHUT_WR) < 0)
		x->is_abandoned = true;
}

static void finish_reply(struct exchange *x)
{
	uint64_t idle_ms = HTTP_IDLE_MS > x->http->receive_ms ? HTTP_IDLE_MS : x->http->receive_ms;
	bool ends = x->ends_after;

	exchange_clear(x);
	x->deadline_ms = clock_ms() + idle_ms;
	if (ends)
		linger(x);
}

/* --- turns ------------------------------------------------------------------ */

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
		destroy_exchange(x);
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

static void end_all_late(struct http *h, uint64_t now_ms)
{
	if (now_ms < h->scan_at_ms)
		return;
	h->scan_at_ms = now_ms + SCAN_MS;
	for (struct exchange *x = h->exchanges; x; x = x->next)
		if (x->deadline_ms > 0 && now_ms >= x->deadline_ms && !x->is_paused)
			end_late(x);
}

int http_tick(struct http *h, uint64_t now_ms)
{
	end_all_late(h, now_ms);
	for (int i = 0; h->has_due && i < 4; i++) {
		h->has_due = false;
		http_deliver_inners(h);
		for (struct exchange *x = h->exchanges, *next = NULL; x; x = next) {
			next = x->next;
			if (x->is_due)
				(void)turn(x);
		}
	}
	if (h->has_due)
		return 0;
	return h->exchanges ? SCAN_MS : -1;
}

/* --- new connections -------------------------------------------------------- */

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
	x->next = h->exchanges;
	if (x->next)
		x->next->previous = x;
	h->exchanges = x;
	h->count++;
}

/* --- open, close ------------------------------------------------------------ */

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
	while ((*h)->exchanges)
		destroy_exchange((*h)->exchanges);
	http_drop_inners(*h);
	free(*h);
	*h = NULL;
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
	size_t count = 0;

	for (const struct exchange *x = h->exchanges; x; x = x->next)
		count += x->phase == PHASE_WHOLE;
	return count;
}
