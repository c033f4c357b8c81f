/* SPDX-License-Identifier: Apache-2.0 */
/* What a handler sees of a request, and how it answers.  Acts: through libmicrohttpd. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "runtime/base/clock.h"
#include "runtime/base/scope.h"
#include "runtime/front/serve/http_parts.h"

#define STREAM_BLOCK  HTTP_SMALL
#define RETRY_SOON_MS 1000

struct header_count {
	const char *name;
	size_t count;
};

/* --- the request ------------------------------------------------------------ */

const char *exchange_method(const struct exchange *x)
{
	return x->method;
}

const char *exchange_path(const struct exchange *x)
{
	return x->path;
}

const char *exchange_header(const struct exchange *x, const char *name)
{
	return MHD_lookup_connection_value(x->mhd, MHD_HEADER_KIND, name);
}

bool exchange_is_http_1_1(const struct exchange *x)
{
	return x->is_1_1;
}

static enum MHD_Result count_header(void *cls, enum MHD_ValueKind kind, const char *name,
				    const char *value)
{
	struct header_count *c = cls;
	(void)kind, (void)value;

	c->count += strcasecmp(name, c->name) == 0;
	return MHD_YES;
}

size_t exchange_header_count(const struct exchange *x, const char *name)
{
	struct header_count c = { .name = name };

	(void)MHD_get_connection_values(x->mhd, MHD_HEADER_KIND, count_header, &c);
	return c.count;
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

bool exchange_is_answered(const struct exchange *x)
{
	return x->is_answered;
}

bool exchange_adopt(struct exchange *x, const char *token_name)
{
	if (strcmp(x->token_name, token_name) == 0)
		return true;
	(void)snprintf(x->token_name, sizeof(x->token_name), "%s", token_name);
	enum api_code why = http_may_connect(x);
	if (why == API_CODE_COUNT)
		return true;
	exchange_end_after(x);
	exchange_refuse(x, why, NULL, NULL, RETRY_SOON_MS);
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

/* --- suspending ------------------------------------------------------------- */

static void on_caller_gone(struct watch *w, uint32_t events)
{
	struct exchange *x = watch_owner(w, struct exchange, watch);
	void (*gone)(void *holder) = x->gone;
	void *holder = take_ptr(x->holder);
	(void)events;

	loop_unwatch(x->http->loop, w);
	x->is_abandoned = true;
	exchange_resume(x);
	if (holder)
		gone(holder);
}

void exchange_suspend(struct exchange *x)
{
	MHD_suspend_connection(x->mhd);
	x->is_suspended = true;
}

void exchange_resume(struct exchange *x)
{
	if (!x->is_suspended)
		return;
	x->is_suspended = false;
	x->http->wants_run = true;
	MHD_resume_connection(x->mhd);
}

void exchange_hold(struct exchange *x, void (*gone)(void *holder), void *holder)
{
	/* A Unix socket's peer that has only ended its sending still reads; TCP can't tell. */
	uint32_t events = x->caller.is_tcp ? EPOLLRDHUP : 0;
	struct cj_error ignored = { 0 };

	x->gone = gone;
	x->holder = holder;
	/* Without memory for it its going away is only seen when it is answered. */
	(void)!loop_watch(x->http->loop, &x->watch, x->fd, events, on_caller_gone, &ignored);
}

static void let_go(struct exchange *x)
{
	x->holder = NULL;
	loop_unwatch(x->http->loop, &x->watch);
}

void exchange_clear(struct exchange *x)
{
	void *holder = take_ptr(x->holder);

	let_go(x);
	if (holder)
		x->gone(holder);
	if (x->response)
		MHD_destroy_response(x->response);
	free(x->body);
	free(x->stream.bytes);
	x->response = NULL;
	x->body = NULL;
	x->stream = (struct stream){ 0 };
	x->size = x->room = x->body_held = x->reply_held = 0;
	x->phase = PHASE_IDLE;
	x->is_answered = x->ends_after = false;
}

/* --- replies ---------------------------------------------------------------- */

static void add_header(struct MHD_Response *r, const char *name, const char *value)
{
	if (value && value[0])
		(void)MHD_add_response_header(r, name, value); /* no memory: a reply without it */
}

void exchange_set_deadline(struct exchange *x)
{
	const struct stream *s = &x->stream;
	uint64_t bytes = s->is_on ? s->end - s->start : x->reply_held;

	x->deadline_ms = 0; /* a stream goes on as long as its run does */
	if (!s->is_on || s->has_ended)
		x->deadline_ms = clock_ms() + x->http->receive_ms + bytes * 1000 / HTTP_SEND_RATE;
}

void exchange_end_after(struct exchange *x)
{
	x->ends_after = true;
}

void exchange_count(struct exchange *x, enum api_code code)
{
	x->http->ops.replied(x->http->ops.context, api_rows[code].http_status, code);
}

static void set_response(struct exchange *x, struct MHD_Response *r, unsigned status,
			 const char *content_type)
{
	add_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, content_type);
	add_header(r, "X-Request-Id", x->trace.request_id);
	add_header(r, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
	add_header(r, "X-Content-Type-Options", "nosniff");
	if (status == MHD_HTTP_UNAUTHORIZED)
		add_header(r, MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer");
	if (x->ends_after)
		add_header(r, MHD_HTTP_HEADER_CONNECTION, "close");
	x->response = r;
	x->status = status;
	x->is_answered = true;
	exchange_resume(x);
}

/* Whole seconds, at least one: RFC 9110, section 10.2.3. */
static void add_retry_after(struct MHD_Response *r, uint64_t ms)
{
	char text[24];

	if (ms == 0)
		return;
	(void)snprintf(text, sizeof(text), "%llu", (unsigned long long)(ms + 999) / 1000);
	add_header(r, MHD_HTTP_HEADER_RETRY_AFTER, text);
}

static void send_reply(struct exchange *x, const struct http_reply *reply)
{
	struct MHD_Response *r = NULL;

	let_go(x);
	if (reply->text)
		r = MHD_create_response_from_buffer_with_free_callback_cls(
		    reply->size, reply->text + reply->skip, free, reply->text);
	if (!r) {
		free(reply->text);
		x->is_abandoned = true; /* no memory: the connection ends */
		exchange_resume(x);
		return;
	}
	add_header(r, MHD_HTTP_HEADER_ALLOW, reply->allow);
	add_retry_after(r, reply->retry_after_ms);
	set_response(x, r, reply->status, reply->content_type);
}

void exchange_reply(struct exchange *x, const struct http_reply *reply)
{
	size_t bytes = reply->text ? reply->skip + reply->size : 0;
	enum api_code why = http_may_hold(x, bytes);

	if (why != API_CODE_COUNT) {
		free(reply->text);
		exchange_refuse(x, why, "too many answers wait to be read, so this one has no room",
				"read answers as they come; GET /v1/runs/ID tells how a run ended",
				RETRY_SOON_MS);
		return;
	}
	x->reply_held = bytes;
	x->http->ops.replied(x->http->ops.context, reply->status, API_CODE_COUNT);
	send_reply(x, reply);
}

void exchange_refuse(struct exchange *x, enum api_code code, const char *message, const char *hint,
		     uint64_t retry_after_ms)
{
	struct http_reply reply = { .status = api_rows[code].http_status,
				    .content_type = "application/json",
				    .retry_after_ms = retry_after_ms };

	reply.text = api_error_text(code, message, hint, x->trace.request_id, &reply.size);
	exchange_count(x, code);
	send_reply(x, &reply);
}

void http_answer_raw(int fd, enum api_code code, const char *request_id)
{
	const struct api_row *row = &api_rows[code];
	struct trace trace = { .request_id = "" };
	struct cj_error ignored = { 0 };
	char head[512];
	size_t size = 0;

	if (!request_id || request_id[0] == '\0') {
		(void)!trace_adopt(NULL, NULL, &trace, &ignored);
		request_id = trace.request_id;
	}
	auto_free char *text = api_error_text(code, NULL, NULL, request_id, &size);
	if (!text)
		return;
	int used = snprintf(
	    head, sizeof(head),
	    "HTTP/1.1 %u %s\r\nContent-Type: application/json\r\n"
	    "Content-Length: %zu\r\nX-Request-Id: %s\r\n%sConnection: close\r\n\r\n",
	    row->http_status, MHD_get_reason_phrase_for(row->http_status), size, request_id,
	    row->http_status == 429 || row->http_status == 503 ? "Retry-After: 1\r\n" : "");
	/* As much as goes at once: this caller has had its time. */
	if (send(fd, head, (size_t)used, MSG_DONTWAIT | MSG_NOSIGNAL | MSG_MORE) == used)
		(void)send(fd, text, size, MSG_DONTWAIT | MSG_NOSIGNAL);
	(void)shutdown(fd, SHUT_WR);
}

/* --- streams ---------------------------------------------------------------- */

static ssize_t read_stream(void *cls, uint64_t position, char *out, size_t max)
{
	struct exchange *x = cls;
	struct stream *s = &x->stream;
	size_t size = s->end - s->start;
	(void)position;

	if (x->is_abandoned)
		return MHD_CONTENT_READER_END_WITH_ERROR;
	if (size == 0 && s->has_ended)
		return MHD_CONTENT_READER_END_OF_STREAM;
	if (size == 0) {
		exchange_suspend(x);
		return 0;
	}
	size = size < max ? size : max;
	memcpy(out, s->bytes + s->start, size);
	s->start += size;
	if (s->start == s->end) {
		s->start = s->end = 0;
		if (x->holder)
			s->taken(x->holder);
	}
	return (ssize_t)size;
}

void exchange_begin_stream(struct exchange *x, void (*taken)(void *holder))
{
	struct MHD_Response *r =
	    MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, STREAM_BLOCK, read_stream, x, NULL);
	if (!r) {
		x->is_abandoned = true;
		exchange_resume(x);
		return;
	}
	x->stream.is_on = true;
	x->stream.taken = taken;
	x->http->ops.replied(x->http->ops.context, MHD_HTTP_OK, API_CODE_COUNT);
	set_response(x, r, MHD_HTTP_OK, "application/x-ndjson");
}

bool exchange_is_streaming(const struct exchange *x)
{
	return x->stream.is_on;
}

bool exchange_is_behind(const struct exchange *x)
{
	return x->stream.end - x->stream.start > HTTP_STREAM_BEHIND;
}

bool exchange_put(struct exchange *x, const char *bytes, size_t size, bool must)
{
	struct stream *s = &x->stream;
	size_t waiting = s->end - s->start;

	if (must ? http_may_hold(x, size) != API_CODE_COUNT : waiting + size > HTTP_STREAM_MAX)
		return false;
	if (s->start > 0 && s->end + size > s->room) {
		memmove(s->bytes, s->bytes + s->start, waiting);
		s->start = 0;
		s->end = waiting;
	}
	if (s->end + size > s->room) {
		char *grown = realloc(s->bytes, s->end + size + STREAM_BLOCK);
		if (!grown)
			return false;
		s->bytes = grown;
		s->room = s->end + size + STREAM_BLOCK;
	}
	memcpy(s->bytes + s->end, bytes, size);
	s->end += size;
	exchange_resume(x);
	return true;
}

void exchange_end_stream(struct exchange *x)
{
	x->stream.has_ended = true;
	x->holder = NULL; /* the caller may still go away: nobody's loss now */
	loop_unwatch(x->http->loop, &x->watch);
	exchange_set_deadline(x);
	exchange_resume(x);
}
