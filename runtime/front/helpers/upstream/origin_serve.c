/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The connections of the clients, each with at most one transfer of libcurl.
 *
 * libcurl waits: the loop's epoll is one more descriptor of curl_multi_poll(3).  Callbacks of both
 * only move bytes and note what happened.  Then step() continues each client.  Back-pressure: a
 * full queue pauses the transfer, or stops reading from the client.
 */
#include "runtime/front/helpers/upstream/origin_client.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "netns/relay/tcp_proxy.h"
#include "runtime/base/clock.h"
#include "runtime/base/scope.h"

#define LINGER_MS    10000
#define LINGER_BYTES (64u << 20)
#define SCAN_MS      1000 /* for time limits */

struct origin_listener {
	struct watch watch;
	struct origin_server *server;
	struct origin *origin;
};

struct origin_server {
	struct loop loop;
	struct origin_set *set;
	CURLM *multi;
	struct origin_listener listeners[UPSTREAMS_MAX];
	struct client clients[UPSTREAM_CLIENTS_MAX];
	struct watch signals, names;
	bool has_ended;
};

static void drop_request(struct origin_server *s, struct client *c)
{
	client_end_transfer(c, s->multi);
	c->is_answered = c->keeps_open = c->is_done = false;
	c->send_paused = c->recv_paused = false;
	c->scanned = 0;
}

/* `breaks_off`: the client sees that a part is missing. */
static void close_client(struct origin_server *s, struct client *c, bool breaks_off)
{
	if (c->easy)
		atomic_fetch_add(&c->origin->counters->failed, 1);
	const struct linger reset = { .l_onoff = 1 };
	if (breaks_off)
		(void)setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	drop_request(s, c);
	loop_unwatch(&s->loop, &c->watch);
	cj_close(&c->fd);
	byte_queue_fini(&c->in);
	byte_queue_fini(&c->out);
}

static void note_client(struct watch *w, uint32_t events)
{
	watch_owner(w, struct client, watch)->events |= events;
}

static bool is_idle(const struct client *c)
{
	return c->phase == CLIENT_IDLE && byte_queue_size(&c->in) == 0 && c->events == 0;
}

/* A free place; or that of the client that has been idle longest. */
static struct client *find_place(struct origin_server *s)
{
	struct client *idle = NULL;
	for (size_t i = 0; i < UPSTREAM_CLIENTS_MAX; i++) {
		struct client *c = &s->clients[i];
		if (c->fd < 0)
			return c;
		if (is_idle(c) && (!idle || c->moved_ms < idle->moved_ms))
			idle = c;
	}
	if (idle)
		close_client(s, idle, false);
	return idle;
}

static void accept_client(struct watch *w, uint32_t events)
{
	struct origin_listener *l = watch_owner(w, struct origin_listener, watch);
	struct origin_server *s = l->server;
	const int one = 1;
	struct cj_error err = { 0 };
	(void)events;

	struct client *c = find_place(s);
	if (!c) { /* it waits in the backlog, until step_all() */
		loop_rewatch(&s->loop, &l->watch, 0);
		return;
	}
	auto_fd int fd = tcp_proxy_accept(l->watch.fd);
	if (fd < 0)
		return;
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one,
			 sizeof(one)); /* events without delay */
	*c = (struct client){ .fd = -1, .origin = l->origin, .moved_ms = clock_ms() };
	if (loop_watch(&s->loop, &c->watch, fd, note_client, &err) == 0)
		c->fd = take_fd(&fd);
}

/* --- a request ----------------------------------------------------------------------------- */

static void refuse(struct client *c, unsigned status, const struct cj_error *err)
{
	atomic_fetch_add(&c->origin->counters->refused, 1);
	client_reply(c, status, err);
}

static bool is_within_limits(struct client *c)
{
	const struct origin *o = c->origin;
	struct cj_error err = { 0 };
	if (o->requests >= o->requests_max)
		cj_refuse(&err, "the run has made all of its %llu requests",
			  (unsigned long long)o->requests_max);
	else if (o->bytes >= o->bytes_max)
		cj_refuse(&err, "the run has moved all of its %llu bytes",
			  (unsigned long long)o->bytes_max);
	else
		return true;
	cj_hint(&err, "the caller of cejail chooses this limit");
	refuse(c, 429, &err);
	return false;
}

static void begin_request(struct origin_server *s, struct client *c, size_t head_size)
{
	static struct origin_request request; /* too large for the stack, and used here alone */
	struct cj_error err = { 0 };
	const char go_on[] = "HTTP/1.1 100 Continue\r\n\r\n";

	c->phase = CLIENT_REPLY; /* unless a transfer begins */
	int rc = origin_check(c->origin, c->in.bytes + c->in.start, head_size, &request, &err);
	const struct http_head *h = &request.head;
	c->is_head = strcmp(h->method, "HEAD") == 0;
	if (rc < 0) {
		refuse(c, request.refusal, &err);
		return;
	}
	if (!is_within_limits(c))
		return;
	c->is_1_1 = h->is_1_1;
	c->asks_more = h->keeps_open && h->is_1_1;
	c->is_chunked = h->is_chunked;
	c->body_left = h->length;
	c->chunks = (struct http_chunks){ 0 };
	c->origin->requests++;
	if (client_begin_transfer(c, s->set, s->multi, &request, &err) < 0) {
		atomic_fetch_add(&c->origin->counters->failed, 1);
		client_end_transfer(c, s->multi);
		client_reply(c, 502, &err);
		return;
	}
	byte_queue_take(&c->in, head_size);
	c->phase = CLIENT_TRANSFER;
	if (h->expects_continue && !client_body_ended(c))
		(void)!byte_queue_add(&c->out, go_on, strlen(go_on)); /* a client waits in vain */
}

/* False: the head is not complete. */
static bool read_head(struct origin_server *s, struct client *c)
{
	struct cj_error err = { 0 };
	const size_t size = byte_queue_size(&c->in);
	if (size == 0)
		return false;
	ssize_t found = http_head_find(c->in.bytes + c->in.start, size, &c->scanned, &err);
	if (found == 0 && size > UPSTREAM_HEAD_MAX)
		found = cj_reject_as(&err, EFBIG, "the head of the request has more than %d bytes",
				     UPSTREAM_HEAD_MAX);
	if (found == 0)
		return false;
	if (found > 0 && !origin_is_resolved(s->set, c->origin)) {
		c->scanned = 0; /* it is looked for again */
		return false;
	}
	if (found > 0) {
		begin_request(s, c, (size_t)found);
		return true;
	}
	c->phase = CLIENT_REPLY;
	refuse(c, found == -EFBIG ? 431 : 400, &err);
	return true;
}

/* --- one step of a client ------------------------------------------------------------------ */

static void finish(struct origin_server *s, struct client *c)
{
	struct upstream_counters *n = c->origin->counters;
	struct cj_error err = { 0 };
	const unsigned status = client_settle(c, &err);
	const bool was_answered = c->is_answered, keeps = c->keeps_open && client_body_ended(c);

	if (c->is_refused)
		atomic_fetch_add(&n->refused, 1);
	else if (status > 0)
		atomic_fetch_add(&n->failed, 1);
	else
		atomic_fetch_add(&n->requests, 1);
	if (status == 0)
		atomic_fetch_add(&n->status[c->status < 600 ? c->status / 100 : 0], 1);
	drop_request(s, c);
	c->keeps_open = keeps && status == 0;
	c->phase = CLIENT_REPLY;
	if (status > 0 && was_answered)
		close_client(s, c, true);
	else if (status > 0)
		client_reply(c, status, &err);
}

/* True: it is another client state now, so look again. */
static bool advance(struct origin_server *s, struct client *c)
{
	switch (c->phase) {
	case CLIENT_IDLE:
		return read_head(s, c);
	case CLIENT_TRANSFER:
		if (!c->is_done)
			client_resume(c);
		if (c->is_done)
			finish(s, c);
		return c->phase != CLIENT_TRANSFER;
	case CLIENT_REPLY:
		if (byte_queue_size(&c->out) > 0)
			return false;
		c->moved_ms = clock_ms();
		c->phase = c->keeps_open ? CLIENT_IDLE : CLIENT_LINGER;
		if (c->phase == CLIENT_LINGER)
			(void)shutdown(c->fd, SHUT_WR); /* it has disconnected otherwise */
		c->dropped = 0;
		return true;
	case CLIENT_LINGER:
		c->dropped += byte_queue_size(&c->in);
		byte_queue_take(&c->in, byte_queue_size(&c->in));
		break;
	}
	return false;
}

static bool wants_input(const struct client *c)
{
	return c->phase != CLIENT_REPLY && byte_queue_size(&c->in) < CLIENT_QUEUE_MAX &&
	       (c->phase != CLIENT_TRANSFER || !client_body_ended(c));
}

/* False: the client has disconnected. */
static bool receive(struct client *c)
{
	if (!wants_input(c) || !(c->events & EPOLLIN))
		return true;
	const ssize_t got = byte_queue_receive(&c->in, c->fd, CLIENT_READ_MAX);
	if (got > 0)
		c->moved_ms = c->phase == CLIENT_TRANSFER ? clock_ms() : c->moved_ms;
	return got > 0 || got == -EAGAIN;
}

static bool send_queued(struct client *c)
{
	const size_t size = byte_queue_size(&c->out);
	const bool is_right = byte_queue_send(&c->out, c->fd) == 0;
	if (byte_queue_size(&c->out) < size)
		c->moved_ms = clock_ms();
	return is_right;
}

/* What has waited too long gets an answer where it can have one. */
static void expire(struct origin_server *s, struct client *c)
{
	const bool waits_for_head = c->phase == CLIENT_IDLE;
	const uint64_t limit = waits_for_head              ? s->set->head_ms
			       : c->phase == CLIENT_LINGER ? LINGER_MS
							   : s->set->stall_ms;
	struct cj_error err = { 0 };
	if (clock_ms() - c->moved_ms < limit)
		return;
	if (waits_for_head && byte_queue_size(&c->in) > 0) {
		c->phase = CLIENT_REPLY;
		cj_refuse(&err, "the head of the request did not arrive in time");
		refuse(c, 408, &err);
		return;
	}
	if (c->phase != CLIENT_TRANSFER || c->is_answered || byte_queue_size(&c->out) > 0) {
		close_client(s, c, c->phase == CLIENT_TRANSFER || c->phase == CLIENT_REPLY);
		return;
	}
	const bool is_clients = c->send_paused;
	atomic_fetch_add(&c->origin->counters->failed, 1);
	drop_request(s, c);
	c->phase = CLIENT_REPLY;
	cj_refuse(&err, "%s for %llu s",
		  is_clients ? "the body of the request has not gone on"
			     : "the upstream has sent nothing",
		  (unsigned long long)s->set->stall_ms / 1000);
	client_reply(c, is_clients ? 408 : 504, &err);
}

static void step(struct origin_server *s, struct client *c)
{
	const bool has_left = (c->events & (EPOLLERR | EPOLLHUP)) ||
			      (c->phase == CLIENT_TRANSFER && (c->events & EPOLLRDHUP));
	if (has_left || !receive(c) || c->dropped > LINGER_BYTES) {
		close_client(s, c, c->phase == CLIENT_TRANSFER);
		return;
	}
	c->events = 0;
	do {
		for (bool goes_on = true; goes_on;)
			goes_on = c->fd >= 0 && advance(s, c);
		if (c->fd >= 0 && !send_queued(c))
			close_client(s, c, true);
	} while (c->fd >= 0 && byte_queue_size(&c->out) == 0 &&
		 (c->phase == CLIENT_REPLY || c->recv_paused));
	if (c->fd >= 0)
		expire(s, c);
	if (c->fd >= 0)
		loop_rewatch(&s->loop, &c->watch,
			     (wants_input(c) ? EPOLLIN : 0u) |
				 (byte_queue_size(&c->out) > 0 ? EPOLLOUT : 0u) |
				 (c->phase == CLIENT_TRANSFER ? EPOLLRDHUP : 0u));
}

static void step_all(struct origin_server *s)
{
	bool has_place = false;
	CURLMsg *message;
	for (int left; (message = curl_multi_info_read(s->multi, &left));) {
		struct client *c = NULL;
		if (curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&c) || !c)
			continue;
		c->is_done = true;
		c->result = message->data.result;
	}
	for (size_t i = 0; i < UPSTREAM_CLIENTS_MAX; i++) {
		struct client *c = &s->clients[i];
		if (c->fd >= 0)
			step(s, c);
		has_place = has_place || c->fd < 0 || is_idle(c);
	}
	for (size_t i = 0; has_place && i < s->set->count; i++)
		loop_rewatch(&s->loop, &s->listeners[i].watch, EPOLLIN);
}

static void note_end(struct watch *w, uint32_t events)
{
	(void)events;
	watch_owner(w, struct origin_server, signals)->has_ended = true;
}

static void take_addresses(struct watch *w, uint32_t events)
{
	struct origin_server *s = watch_owner(w, struct origin_server, names);
	(void)events;
	if (!origin_take_addresses(s->set))
		loop_unwatch(&s->loop, w);
}

int origin_serve(struct origin_set *set, struct cj_error *err)
{
	static struct origin_server s;
	s = (struct origin_server){ .loop = LOOP_NULL, .set = set };
	if (origin_start_resolver(set, err) < 0 || loop_open(&s.loop, err) < 0 ||
	    loop_watch(&s.loop, &s.names, set->resolver_fd, take_addresses, err) < 0 ||
	    loop_watch_signals(&s.loop, &s.signals, note_end, err) < 0)
		return -err->code;
	for (size_t i = 0; i < UPSTREAM_CLIENTS_MAX; i++)
		s.clients[i].fd = -1;
	for (size_t i = 0; i < set->count; i++) {
		struct origin_listener *l = &s.listeners[i];
		*l = (struct origin_listener){ .server = &s, .origin = &set->origins[i] };
		if (loop_watch(&s.loop, &l->watch, UPSTREAM_LISTEN_FD + (int)i, accept_client,
			       err) < 0)
			return -err->code;
	}
	s.multi = curl_multi_init();
	/* One transfer on a connection: a client that reads slowly holds up no other. */
	if (!s.multi || curl_multi_setopt(s.multi, CURLMOPT_PIPELINING, CURLPIPE_NOTHING) ||
	    curl_multi_setopt(s.multi, CURLMOPT_MAXCONNECTS, (long)UPSTREAM_CLIENTS_MAX))
		return cj_fail(err, ENOMEM, "prepare libcurl");
	if (origin_confine(set, err) < 0)
		return -err->code;
	while (!s.has_ended) {
		struct curl_waitfd ours = { .fd = s.loop.epoll_fd, .events = CURL_WAIT_POLLIN };
		int running;
		if (curl_multi_poll(s.multi, &ours, 1, SCAN_MS, NULL) ||
		    loop_turn(&s.loop, 0, err) < 0 || curl_multi_perform(s.multi, &running))
			return cj_reject_as(err, EIO, "libcurl can't wait for its transfers");
		step_all(&s);
	}
	return 0;
}
