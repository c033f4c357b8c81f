/* SPDX-License-Identifier: Apache-2.0 */
/* What a handler sees of a request, and how it answers. */
#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>

#include "runtime/base/clock.h"
#include "runtime/base/json/json.h"
#include "runtime/base/scope.h"
#include "runtime/service/http/http_parts.h"

#define FRAME_MAX 24 /* before a chunk: its size, the end of a line, a NUL */

const char *exchange_method(const struct exchange *x)
{
	return x->head.method;
}

const char *exchange_path(const struct exchange *x)
{
	return x->head.path ? x->head.path : "";
}

const char *exchange_query(const struct exchange *x)
{
	return x->head.query ? x->head.query : "";
}

const char *exchange_header(const struct exchange *x, const char *name)
{
	return http_head_get(&x->head, name);
}

struct http_caller exchange_caller(const struct exchange *x)
{
	return x->caller;
}

const struct trace *exchange_trace(const struct exchange *x)
{
	return &x->trace;
}

uint64_t exchange_whole_us(const struct exchange *x)
{
	return x->whole_us;
}

bool exchange_adopt(struct exchange *x, const char *token_name)
{
	if (strcmp(x->token_name, token_name) == 0)
		return true;
	(void)snprintf(x->token_name, sizeof(x->token_name), "%s", token_name);
	enum api_code why = http_may_connect(x);
	if (why == API_OK)
		return true;
	exchange_end_after(x);
	exchange_refuse(x, why, NULL, NULL);
	return false;
}

size_t exchange_body_size(const struct exchange *x)
{
	return x->size;
}

char *exchange_take_body(struct exchange *x, size_t *out_size)
{
	*out_size = x->size;
	x->size = x->room = 0;
	return take_ptr(x->body);
}

void exchange_drop_body(struct exchange *x)
{
	x->body_held = 0;
}

void exchange_divert_body(struct exchange *x, const struct http_diversion *to)
{
	exchange_hold(x, to->gone, to->holder);
	x->divert = to->take;
	x->divert_max = to->max;
}

void exchange_resume_body(struct exchange *x)
{
	if (x->is_paused)
		x->deadline_ms += clock_ms() - x->paused_ms; /* the caller could not send */
	x->is_paused = false;
	exchange_set_due(x);
}

void *exchange_diverted_to(const struct exchange *x)
{
	return x->divert ? x->holder : NULL;
}

void exchange_set_due(struct exchange *x)
{
	x->is_due = x->http->has_due = true;
}

void exchange_hold(struct exchange *x, void (*gone)(void *holder), void *holder)
{
	x->gone = gone;
	x->holder = holder;
}

void exchange_release(struct exchange *x)
{
	x->holder = NULL;
}

void exchange_clear(struct exchange *x)
{
	void *holder = take_ptr(x->holder);

	if (holder)
		x->gone(holder);
	free(x->head_text);
	free(x->body);
	free(x->reply_text);
	byte_queue_fini(&x->stream.queue);
	if (byte_queue_size(&x->in) == 0)
		byte_queue_fini(&x->in);
	x->head_text = x->body = x->reply_text = NULL;
	x->head = (struct http_head){ 0 };
	x->trace.request_id[0] = '\0';
	x->stream = (struct stream){ 0 };
	x->size = x->room = x->body_held = x->reply_held = 0;
	x->reply_head_size = x->reply_head_sent = x->reply_size = x->reply_sent = 0;
	x->phase = PHASE_IDLE;
	x->nmore = 0;
	x->is_answered = x->ends_after = x->is_paused = false;
	x->divert = NULL;
}

static const char *reason_of(unsigned status)
{
	static const struct {
		unsigned status;
		const char *reason;
	} rows[] = {
		{ 200, "OK" },
		{ 201, "Created" },
		{ 202, "Accepted" },
		{ 204, "No Content" },
		{ 400, "Bad Request" },
		{ 401, "Unauthorized" },
		{ 403, "Forbidden" },
		{ 404, "Not Found" },
		{ 405, "Method Not Allowed" },
		{ 406, "Not Acceptable" },
		{ 408, "Request Timeout" },
		{ 409, "Conflict" },
		{ 413, "Content Too Large" },
		{ 415, "Unsupported Media Type" },
		{ 429, "Too Many Requests" },
		{ 500, "Internal Server Error" },
		{ 503, "Service Unavailable" },
	};

	for (size_t i = 0; i < COUNT_OF(rows); i++)
		if (rows[i].status == status)
			return rows[i].reason;
	return "";
}

__attribute__((format(printf, 2, 3))) static void add_line(struct exchange *x, const char *fmt, ...)
{
	size_t used = x->reply_head_size;
	va_list ap;

	va_start(ap, fmt);
	int size = vsnprintf(x->reply_head + used, sizeof(x->reply_head) - used, fmt, ap);
	va_end(ap);
	/*
	 * The longest head takes half of the room: only the request id in it comes from the caller.
	 */
	assert(size >= 0 && (size_t)size < sizeof(x->reply_head) - used);
	x->reply_head_size += (size_t)size;
}

/* A request that was not HTTP has no id yet. */
static void ensure_name(struct exchange *x)
{
	struct cj_error ignored = { 0 };

	if (x->trace.request_id[0] == '\0')
		(void)!trace_adopt(NULL, NULL, &x->trace, &ignored); /* then it is empty */
}

static void begin_head(struct exchange *x, unsigned status, const char *content_type)
{
	time_t now = time(NULL);
	struct tm utc;
	char date[64];

	ensure_name(x);
	x->reply_head_size = x->reply_head_sent = 0;
	add_line(x, "HTTP/1.1 %u %s\r\n", status, reason_of(status));
	if (gmtime_r(&now, &utc) &&
	    strftime(date, sizeof(date), "%a, %d %b %Y %H:%M:%S GMT", &utc) > 0)
		add_line(x, "Date: %s\r\n", date);
	if (content_type)
		add_line(x, "Content-Type: %s\r\n", content_type);
	add_line(x, "X-Request-Id: %s\r\n", x->trace.request_id);
	add_line(x, "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n");
	if (status == 401)
		add_line(x, "WWW-Authenticate: Bearer\r\n");
	for (size_t i = 0; i < x->nmore; i++)
		add_line(x, "%s: %s\r\n", x->more[i].name, x->more[i].value);
	if (!x->head.keeps_open || exchange_awaits_body(x))
		x->ends_after = true; /* the next bytes would be the rest of the body */
	if (x->ends_after)
		add_line(x, "Connection: close\r\n");
	else if (!x->head.is_1_1)
		add_line(x, "Connection: keep-alive\r\n");
}

static void end_head(struct exchange *x)
{
	add_line(x, "\r\n");
	x->is_answered = true;
	exchange_set_deadline(x);
	exchange_set_due(x);
}

void exchange_set_deadline(struct exchange *x)
{
	const struct stream *s = &x->stream;
	uint64_t bytes = s->is_on ? byte_queue_size(&s->queue) : x->reply_held;

	x->deadline_ms = 0; /* a stream lasts as long as its run */
	if (!s->is_on || s->has_ended)
		x->deadline_ms = clock_ms() + x->http->receive_ms + bytes * 1000 / HTTP_SEND_RATE;
}

void exchange_end_after(struct exchange *x)
{
	x->ends_after = true;
}

void exchange_add_header(struct exchange *x, const char *name, const char *value)
{
	assert(x->nmore < HTTP_MORE_HEADERS);
	x->more[x->nmore++] = (struct http_field){ name, value };
}

/* Of a request of the service's own, only the refusal counts. */
static void count(struct exchange *x, unsigned status, enum api_code code)
{
	if (x->is_inner)
		status = 0;
	x->http->ops.replied(x->http->ops.context, status, code);
}

/* Its reply has no body. */
static bool is_head(const struct exchange *x)
{
	return !x->is_inner && strcmp(x->head.method, "HEAD") == 0;
}

/* Takes its text. */
static void send_reply(struct exchange *x, const struct http_reply *reply)
{
	void *holder = take_ptr(x->holder);

	if (x->divert && holder)
		x->gone(holder); /* it is not the holder who answers */
	if (x->is_inner) {
		exchange_keep_inner_reply(x, reply);
		return;
	}
	const bool has_body = reply->status != 204;
	if (!reply->text && has_body) {
		x->is_abandoned = true; /* no memory: end the connection */
		exchange_set_due(x);
		return;
	}
	begin_head(x, reply->status, reply->content_type);
	if (reply->retry_after_ms > 0) /* whole seconds, at least one: RFC 9110, section 10.2.3 */
		add_line(x, "Retry-After: %" PRIu64 "\r\n", (reply->retry_after_ms + 999) / 1000);
	if (has_body) /* else it must not be there: RFC 9110, section 8.6 */
		add_line(x, "Content-Length: %zu\r\n", reply->size);
	if (is_head(x)) {
		free(reply->text);
	} else {
		x->reply_text = reply->text;
		x->reply = reply->text + reply->skip;
		x->reply_size = reply->size;
	}
	end_head(x);
	if (x->divert)
		x->phase = PHASE_WHOLE; /* the rest of its body is not awaited */
}

void exchange_reply(struct exchange *x, const struct http_reply *reply)
{
	size_t bytes = reply->text && !is_head(x) ? reply->skip + reply->size : 0;
	enum api_code why = http_may_hold(x, bytes);

	if (why != API_OK) {
		free(reply->text);
		exchange_refuse(
		    x, why, "too many replies wait to be read, so there is no room for this one",
		    "read replies as they arrive; GET /v1/runs/ID tells how a run ended");
		return;
	}
	x->reply_held = bytes;
	count(x, reply->status, API_OK);
	send_reply(x, reply);
}

static void refuse(struct exchange *x, enum api_code code, const char *message, const char *hint,
		   uint64_t retry_after_ms)
{
	struct http_reply reply = { .status = api_rows[code].http_status,
				    .content_type = "application/json",
				    .retry_after_ms = retry_after_ms };

	ensure_name(x);
	reply.text = api_error_text(NULL, code, message, hint, x->trace.request_id, &reply.size);
	count(x, reply.status, code);
	send_reply(x, &reply);
}

void exchange_refuse(struct exchange *x, enum api_code code, const char *message, const char *hint)
{
	unsigned status = api_rows[code].http_status;
	bool is_for_now = status == 429 || status == 503;

	refuse(x, code, message, hint,
	       !is_for_now            ? 0
	       : code == API_DRAINING ? HTTP_RETRY_RESTART_MS
				      : HTTP_RETRY_MS);
}

void exchange_refuse_for(struct exchange *x, enum api_code code, uint64_t ms)
{
	refuse(x, code, NULL, NULL, ms);
}

void exchange_reply_json(struct exchange *x, unsigned status, struct json_writer *w)
{
	struct http_reply reply = { .status = status, .content_type = "application/json" };

	reply.text = json_writer_line(w, &reply.size);
	if (reply.text)
		exchange_reply(x, &reply);
	else
		exchange_refuse(x, API_INTERNAL, NULL, NULL);
}

void exchange_begin_stream(struct exchange *x, const char *content_type,
			   void (*taken)(void *holder))
{
	x->stream.is_on = true;
	x->stream.taken = taken;
	if (x->is_inner)
		return;
	if (!x->head.is_1_1)
		x->ends_after =
		    true; /* HTTP/1.0 knows the end of the body only by the end of the connection */
	count(x, 200, API_OK);
	begin_head(x, 200, content_type);
	if (x->head.is_1_1)
		add_line(x, "Transfer-Encoding: chunked\r\n");
	end_head(x);
}

bool exchange_is_streaming(const struct exchange *x)
{
	return x->stream.is_on;
}

bool exchange_is_behind(const struct exchange *x)
{
	return byte_queue_size(&x->stream.queue) > HTTP_STREAM_BEHIND;
}

bool exchange_put(struct exchange *x, const char *bytes, size_t size, bool must)
{
	struct stream *s = &x->stream;
	char frame[FRAME_MAX];

	if (must ? http_may_hold(x, size) != API_OK
		 : byte_queue_size(&s->queue) + size > HTTP_STREAM_MAX)
		return false;
	if (size == 0)
		return true; /* an empty chunk would end the stream */
	if (x->is_inner) {
		x->inner.piece(x->inner.context, bytes, size);
		return true;
	}
	int head = x->head.is_1_1 ? snprintf(frame, sizeof(frame), "%zx\r\n", size) : 0;
	const struct blob parts[] = { { frame, (size_t)head },
				      { bytes, size },
				      { "\r\n", x->head.is_1_1 ? 2 : 0 } };
	if (byte_queue_add_all(&s->queue, parts, 3) < 0)
		return false;
	exchange_set_due(x);
	return true;
}

void exchange_break_stream(struct exchange *x)
{
	x->holder = NULL;
	if (x->is_inner) {
		exchange_refuse(x, API_INTERNAL, NULL, NULL);
		return;
	}
	x->is_abandoned = true;
	exchange_set_due(x);
}

void exchange_end_stream(struct exchange *x)
{
	x->stream.has_ended = true;
	x->holder = NULL; /* no holder needs to know if the caller disconnects from now on */
	if (x->is_inner) {
		exchange_keep_inner_reply(x, &(struct http_reply){ .status = 200 });
		return;
	}
	exchange_set_deadline(x);
	exchange_set_due(x);
}

static struct iovec rest_of(char *bytes, size_t start, size_t end)
{
	return (struct iovec){ .iov_base = start < end ? bytes + start : NULL,
			       .iov_len = end - start };
}

bool exchange_has_output(const struct exchange *x)
{
	const struct stream *s = &x->stream;
	size_t waiting = s->is_on ? byte_queue_size(&s->queue) : x->reply_size - x->reply_sent;

	return x->is_answered && waiting + x->reply_head_size - x->reply_head_sent > 0;
}

static void note_sent(struct exchange *x, size_t size)
{
	size_t head = x->reply_head_size - x->reply_head_sent;
	struct stream *s = &x->stream;

	head = size < head ? size : head;
	x->reply_head_sent += head;
	size -= head;
	if (!s->is_on) {
		x->reply_sent += size;
		return;
	}
	byte_queue_take(&s->queue, size);
	if (byte_queue_size(&s->queue) > 0 || size == 0)
		return;
	if (x->holder && s->taken)
		s->taken(x->holder);
}

/* The reply is complete when nothing is unsent; the end of a stream is one more piece. */
static bool is_over(struct exchange *x)
{
	static const char tail[] = "0\r\n\r\n";
	struct stream *s = &x->stream;

	if (!s->is_on)
		return true;
	if (!s->has_ended)
		return false;
	if (s->has_tail || !x->head.is_1_1)
		return true;
	s->has_tail = true;
	memcpy(x->reply_head, tail, sizeof(tail) - 1);
	x->reply_head_size = sizeof(tail) - 1;
	x->reply_head_sent = 0;
	return false;
}

bool exchange_send(struct exchange *x)
{
	while (x->is_answered && !x->is_abandoned) {
		struct stream *s = &x->stream;
		if (!exchange_has_output(x)) {
			if (is_over(x))
				return true;
			if (!exchange_has_output(x))
				return false;
		}
		/* first the head, then the text or the stream's lines */
		struct iovec out[] = {
			rest_of(x->reply_head, x->reply_head_sent, x->reply_head_size),
			s->is_on ? rest_of(s->queue.bytes, s->queue.start, s->queue.end)
				 : rest_of(x->reply, x->reply_sent, x->reply_size)
		};
		const struct msghdr message = { .msg_iov = out, .msg_iovlen = 2 };
		ssize_t sent = sendmsg(x->fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (sent < 0 && (errno == EAGAIN || errno == EINTR))
			return false;
		if (sent < 0)
			x->is_abandoned = true;
		else
			note_sent(x, (size_t)sent);
	}
	return false;
}
