/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections and requests.  Acts: libmicrohttpd in its external epoll form, without a thread or a
 * listening socket of its own; we accept, it parses, and it is told to go on when its descriptor
 * is ready or when we resumed something.
 *
 * A held connection is suspended: libmicrohttpd has taken its descriptor out of its epoll, and
 * ours watches it for the caller's going away.
 */
#include "runtime/front/serve/http.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/base/scope.h"
#include "runtime/base/text.h"
#include "runtime/front/serve/http_parts.h"
#include "runtime/front/serve/slog.h"

#define SCAN_MS           100         /* how exact deadlines are */
#define CONNECTION_MEMORY (32u << 10) /* request line and headers */

/* --- connections ------------------------------------------------------------ */

static void link_exchange(struct http *h, struct exchange *x)
{
	x->next = h->exchanges;
	if (x->next)
		x->next->previous = x;
	h->exchanges = x;
	h->count++;
}

static void destroy_exchange(struct exchange *x)
{
	struct http *h = x->http;

	exchange_clear(x);
	if (x->next)
		x->next->previous = x->previous;
	if (x->previous)
		x->previous->next = x->next;
	else
		h->exchanges = x->next;
	h->count--;
	free(x);
}

static void on_connection(void *cls, struct MHD_Connection *mhd, void **socket_context,
			  enum MHD_ConnectionNotificationCode code)
{
	struct http *h = cls;

	if (code == MHD_CONNECTION_NOTIFY_STARTED) {
		*socket_context = h->adding;
		if (h->adding)
			h->adding->mhd = mhd;
	} else if (*socket_context) {
		destroy_exchange(*socket_context);
		*socket_context = NULL;
	}
}

static bool read_caller(int fd, bool is_tcp, struct http_caller *out)
{
	struct ucred peer = { .uid = (uid_t)-1 };
	socklen_t size = sizeof(peer);

	*out = (struct http_caller){ .is_tcp = is_tcp, .uid = (uid_t)-1 };
	if (is_tcp)
		return true;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0 || size != sizeof(peer))
		return false;
	out->uid = peer.uid;
	return true;
}

/* Who is too slow is told so, where a reply can still be told from anything else. */
static void end_late(struct exchange *x)
{
	if (x->phase == PHASE_HEADERS || x->phase == PHASE_BODY) {
		exchange_count(x, API_RECEIVE_TIMEOUT);
		http_answer_raw(x->fd, API_RECEIVE_TIMEOUT, x->trace.request_id);
	} else if (x->phase == PHASE_WHOLE) {
		slog(SLOG_INFO, x->trace.request_id, "the caller doesn't read its answer");
	}
	x->is_abandoned = true;
	x->deadline_ms = 0;
	(void)shutdown(x->fd, SHUT_RDWR); /* MHD sees the end and closes it */
}

/* NULL: refused. */
static struct exchange *create_exchange(struct http *h, struct http_caller caller, int fd)
{
	struct exchange *x = calloc(1, sizeof(*x));
	enum api_code why = API_QUEUE_FULL;

	if (x) {
		*x = (struct exchange){ .http = h,
					.caller = caller,
					.is_ours = !caller.is_tcp &&
						   (caller.uid == 0 || caller.uid == geteuid()),
					.fd = fd,
					.deadline_ms = clock_ms() + h->receive_ms,
					.watch = WATCH_NULL };
		why = http_may_connect(x);
	}
	if (why == API_CODE_COUNT)
		return x;
	free(x);
	h->ops.replied(h->ops.context, api_rows[why].http_status, why);
	http_answer_raw(fd, why, NULL);
	return NULL;
}

void http_add(struct http *h, int fd, bool is_tcp)
{
	union {
		struct sockaddr any;
		struct sockaddr_un un;
		struct sockaddr_storage storage;
	} peer = { .un = { .sun_family = AF_UNIX } };
	socklen_t size = sizeof(peer);
	struct http_caller caller;

	if (!read_caller(fd, is_tcp, &caller) || getpeername(fd, &peer.any, &size) < 0) {
		cj_close(&fd);
		return;
	}
	struct exchange *stranger = is_tcp ? http_find_stranger(h) : NULL;
	if (stranger)
		end_late(stranger); /* to refuse the new one would keep out who has a token */
	struct exchange *x = create_exchange(h, caller, fd);
	if (!x) {
		cj_close(&fd);
		return;
	}
	link_exchange(h, x);
	h->adding = x;
	if (MHD_add_connection(h->daemon, fd, &peer.any, size) != MHD_YES && x == h->exchanges &&
	    !x->mhd)
		destroy_exchange(x); /* MHD has closed fd */
	h->adding = NULL;
	h->wants_run = true;
}

/* --- requests --------------------------------------------------------------- */

static struct exchange *exchange_of(struct MHD_Connection *mhd)
{
	const union MHD_ConnectionInfo *info =
	    MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
	return info ? info->socket_context : NULL;
}

/* The request line is there: from now on the clock of a whole request runs. */
static void *on_request_line(void *cls, const char *uri, struct MHD_Connection *mhd)
{
	struct http *h = cls;
	struct exchange *x = exchange_of(mhd);
	(void)uri;

	if (x) {
		x->phase = PHASE_HEADERS;
		x->deadline_ms = clock_ms() + h->receive_ms;
	}
	return x;
}

static void copy_text(char *out, size_t room, const char *text)
{
	(void)snprintf(out, room, "%s", strlen(text) < room ? text : "");
}

/* With the NUL behind it.  It is not taken at once: who only says a length holds nothing. */
static size_t body_room(const struct exchange *x)
{
	const char *length = exchange_header(x, "Content-Length");
	struct cj_error ignored = { 0 };
	uint64_t size = 0;

	if (!length || parse_u64(length, 0, x->http->body_max, &size, &ignored) < 0)
		size = x->http->body_max;
	return (size_t)size + 1;
}

static void begin(struct exchange *x, const char *url, const char *method)
{
	struct cj_error err = { 0 };

	x->phase = PHASE_BODY;
	copy_text(x->method, sizeof(x->method), method);
	copy_text(x->path, sizeof(x->path), url);
	if (trace_adopt(exchange_header(x, "X-Request-Id"), exchange_header(x, "traceparent"),
			&x->trace, &err) < 0)
		slog_failure(SLOG_WARNING, "", &err, "mint a request id");
	x->most = body_room(x);
	x->http->ops.begun(x->http->ops.context, x);
}

/* Why there is none, else API_CODE_COUNT. */
static enum api_code make_room(struct exchange *x, size_t needed)
{
	size_t room = 2 * needed < x->most ? 2 * needed : x->most;

	if (needed <= x->room)
		return API_CODE_COUNT;
	if (room < needed)
		room = needed; /* a reload has raised the cap meanwhile */
	enum api_code why = http_may_hold(x, room - x->room);
	if (why != API_CODE_COUNT)
		return why;
	char *grown = realloc(x->body, room);
	if (!grown)
		return API_QUEUE_FULL;
	x->body = grown;
	x->room = x->body_held = room;
	return API_CODE_COUNT;
}

/* Why it can't be taken: past what a request, a caller or all may have; else API_CODE_COUNT. */
static enum api_code add_body(struct exchange *x, const char *bytes, size_t size)
{
	size_t max = x->http->body_max; /* a reload may have lowered it meanwhile */

	if (size > max || x->size > max - size)
		return API_TOO_LARGE;
	enum api_code why = make_room(x, x->size + size + 1);
	if (why != API_CODE_COUNT)
		return why;
	memcpy(x->body + x->size, bytes, size);
	x->size += size;
	x->body[x->size] = '\0';
	return API_CODE_COUNT;
}

static enum MHD_Result queue_response(struct exchange *x)
{
	enum MHD_Result rc = MHD_queue_response(x->mhd, x->status, x->response);

	MHD_destroy_response(x->response); /* MHD holds it now, or nobody does */
	x->response = NULL;
	x->phase = PHASE_WHOLE;
	exchange_set_deadline(x);
	return rc;
}

static bool expects_body(const struct exchange *x)
{
	const char *length = exchange_header(x, "Content-Length");

	return (length && strcmp(length, "0") != 0) || exchange_header(x, "Transfer-Encoding");
}

static enum MHD_Result receive_body(struct exchange *x, const char *bytes, size_t *size)
{
	enum api_code why = x->is_abandoned ? API_CODE_COUNT : add_body(x, bytes, *size);

	if (why != API_CODE_COUNT) {
		x->is_abandoned = true;
		exchange_count(x, why);
		http_answer_raw(x->fd, why, x->trace.request_id);
	}
	*size = 0;
	return x->is_abandoned ? MHD_NO : MHD_YES;
}

static enum MHD_Result on_request(void *cls, struct MHD_Connection *mhd, const char *url,
				  const char *method, const char *version, const char *upload_data,
				  size_t *upload_size, void **con_cls)
{
	struct http *h = cls;
	struct exchange *x = exchange_of(mhd);
	(void)con_cls;

	if (!x || x->is_abandoned)
		return MHD_NO;
	if (x->phase < PHASE_BODY) {
		x->is_1_1 = strcmp(version, MHD_HTTP_VERSION_1_1) == 0;
		begin(x, url, method);
		return x->response && expects_body(x) ? queue_response(x) : MHD_YES;
	}
	if (*upload_size > 0)
		return receive_body(x, upload_data, upload_size);
	if (x->phase == PHASE_BODY) {
		x->phase = PHASE_WHOLE;
		x->deadline_ms = 0;
		x->whole_us = clock_us();
		if (!x->response)
			h->ops.whole(h->ops.context, x);
	}
	if (x->response)
		return queue_response(x);
	if (!x->holder)
		return MHD_NO; /* neither answered nor held: there was no memory */
	exchange_suspend(x);
	return MHD_YES;
}

/* Also when it broke off; the connection may go on with another request. */
static void on_completed(void *cls, struct MHD_Connection *mhd, void **con_cls,
			 enum MHD_RequestTerminationCode code)
{
	struct http *h = cls;
	struct exchange *x = exchange_of(mhd);
	(void)con_cls, (void)code;

	if (!x)
		return;
	exchange_clear(x);
	x->deadline_ms = clock_ms() + (HTTP_IDLE_MS > h->receive_ms ? HTTP_IDLE_MS : h->receive_ms);
}

/* --- the turn of the loop --------------------------------------------------- */

static void on_daemon_ready(struct watch *w, uint32_t events)
{
	(void)events;
	watch_owner(w, struct http, watch)->wants_run = true;
}

int http_tick(struct http *h, uint64_t now_ms)
{
	MHD_UNSIGNED_LONG_LONG wait_ms = 0;

	for (int i = 0; i < 4; i++) {
		if (!h->wants_run &&
		    (MHD_get_timeout(h->daemon, &wait_ms) != MHD_YES || wait_ms > 0))
			break;
		h->wants_run = false;
		(void)MHD_run(h->daemon); /* fails only for the form of daemon that ours isn't */
	}
	if (h->exchanges && now_ms >= h->scan_at_ms) {
		h->scan_at_ms = now_ms + SCAN_MS;
		for (struct exchange *x = h->exchanges; x; x = x->next)
			if (x->deadline_ms > 0 && now_ms >= x->deadline_ms)
				end_late(x);
	}
	if (h->wants_run || (MHD_get_timeout(h->daemon, &wait_ms) == MHD_YES && wait_ms == 0))
		return 0;
	return h->exchanges ? SCAN_MS : -1;
}

/* --- open, close ------------------------------------------------------------ */

int http_open(struct loop *loop, const struct http_ops *ops, struct http **out,
	      struct cj_error *err)
{
	struct http *h = calloc(1, sizeof(*h));
	if (!h)
		return cj_fail(err, ENOMEM, "start the HTTP library");
	*h = (struct http){ .loop = loop, .ops = *ops, .watch = WATCH_NULL };
	h->daemon = MHD_start_daemon(
	    MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL,
	    on_request, h, MHD_OPTION_NOTIFY_COMPLETED, on_completed, h,
	    MHD_OPTION_NOTIFY_CONNECTION, on_connection, h, MHD_OPTION_URI_LOG_CALLBACK,
	    on_request_line, h, MHD_OPTION_CONNECTION_LIMIT, (unsigned)HTTP_CONNECTIONS_MAX,
	    MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_MEMORY,
	    MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)(2 * HTTP_IDLE_MS / 1000), MHD_OPTION_END);
	const union MHD_DaemonInfo *info =
	    h->daemon ? MHD_get_daemon_info(h->daemon, MHD_DAEMON_INFO_EPOLL_FD) : NULL;
	int rc = info ? loop_watch(loop, &h->watch, info->epoll_fd, EPOLLIN, on_daemon_ready, err)
		      : cj_fail(err, errno ? errno : EIO, "start the HTTP library");
	if (rc < 0) {
		http_close(&h);
		return rc;
	}
	*out = h;
	return 0;
}

void http_close(struct http **h)
{
	if (!*h)
		return;
	/* MHD_stop_daemon() wants none suspended. */
	for (struct exchange *x = (*h)->exchanges; x; x = x->next) {
		x->is_abandoned = true;
		exchange_resume(x);
	}
	loop_unwatch((*h)->loop, &(*h)->watch);
	if ((*h)->daemon)
		MHD_stop_daemon((*h)->daemon);
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
