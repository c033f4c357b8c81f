/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests as they arrive.
 *
 * A head is validated as a whole (http_head.h) before any header is used.  Input that is not HTTP
 * is answered once, with an error, and the connection ends.  No more of a body is read than the
 * head has announced.
 */
#include <sys/socket.h>

#include "runtime/base/clock.h"
#include "runtime/service/http/http_parts.h"
#include "runtime/service/log/slog.h"

#define DROP_BLOCK (64u << 10)
#define DROPS      16 /* blocks at a turn */

static void end_with(struct exchange *x, enum api_code code, const char *message)
{
	exchange_end_after(x);
	exchange_refuse(x, code, message, NULL);
	x->phase = PHASE_WHOLE;
}

static void forget_input(struct exchange *x)
{
	byte_queue_fini(&x->in);
	x->scanned = 0;
}

/* Reads as much as fits behind the unparsed input. */
static bool read_more(struct exchange *x)
{
	size_t room = HTTP_HEAD_MAX - byte_queue_size(&x->in);
	ssize_t got = byte_queue_receive(&x->in, x->fd, room);

	if (got > 0)
		return true;
	if (got == 0)
		x->has_ended = true;
	else if (got != -EAGAIN)
		x->is_abandoned = true;
	if (byte_queue_size(&x->in) == 0)
		forget_input(x); /* an idle connection holds no memory */
	return got == 0;
}

void exchange_drop_input(struct exchange *x)
{
	static char block[DROP_BLOCK];

	forget_input(x);
	for (int i = 0; i < DROPS; i++) {
		ssize_t got = recv(x->fd, block, sizeof(block), MSG_DONTWAIT);
		if (got < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		x->dropped += got > 0 ? (uint64_t)got : 0;
		if (got <= 0 || x->dropped > HTTP_LINGER_BYTES) {
			x->is_abandoned = true;
			return;
		}
	}
}

/* For callers that wait before they send the body: RFC 9110, section 10.1.1. */
static void invite_body(struct exchange *x)
{
	static const char text[] = "HTTP/1.1 100 Continue\r\n\r\n";

	if (x->head.expects_continue && exchange_awaits_body(x) && byte_queue_size(&x->in) == 0 &&
	    send(x->fd, text, sizeof(text) - 1, MSG_DONTWAIT | MSG_NOSIGNAL) !=
		(ssize_t)sizeof(text) - 1)
		x->is_abandoned =
		    true; /* the socket is empty, so only a disconnected caller makes this fail */
}

static void begin(struct exchange *x)
{
	size_t max = x->http->body_max;
	struct cj_error err = { 0 };

	if (trace_adopt(http_head_get(&x->head, "X-Request-Id"),
			http_head_get(&x->head, "traceparent"), &x->trace, &err) < 0)
		slog_failure(SLOG_WARNING, "", &err, "mint a request id");
	x->phase = PHASE_BODY;
	x->chunks = (struct http_chunks){ 0 };
	x->body_left = x->head.length;
	/* With a NUL at the end.  It grows as bytes arrive: a length alone reserves no memory. */
	x->most = 1 + (x->head.is_chunked || x->head.length > max ? max : (size_t)x->head.length);
	if (x->no_room != API_OK)
		end_with(x, x->no_room, NULL);
	else
		x->http->ops.begun(x->http->ops.context, x);
	if (x->is_answered)
		x->phase = PHASE_WHOLE;
	else
		invite_body(x);
}

/* The head is complete or invalid. */
static void read_head(struct exchange *x, ssize_t size, struct cj_error *err)
{
	if (size > 0) {
		x->head_text = malloc((size_t)size);
		if (!x->head_text) {
			x->is_abandoned = true;
			return;
		}
		memcpy(x->head_text, x->in.bytes + x->in.start, (size_t)size);
		byte_queue_take(&x->in, (size_t)size);
		x->scanned = 0;
		if (http_head_parse(x->head_text, (size_t)size, &x->head, err) == 0) {
			begin(x);
			return;
		}
	}
	bool is_large = err->code == EFBIG;
	/* Nothing of a refused head is used. */
	x->head = (struct http_head){ 0 };
	end_with(x, is_large ? API_TOO_LARGE : API_BAD_REQUEST, err->msg);
}

/* The time for the whole request starts at its first byte. */
static bool receive_head(struct exchange *x)
{
	struct cj_error err = { 0 };

	if (byte_queue_size(&x->in) > 0 && x->phase == PHASE_IDLE) {
		x->phase = PHASE_HEAD;
		x->deadline_ms = clock_ms() + x->http->receive_ms;
	}
	const char *bytes = x->in.bytes ? x->in.bytes + x->in.start : "";
	ssize_t size = http_head_find(bytes, byte_queue_size(&x->in), &x->scanned, &err);
	if (size != 0) {
		read_head(x, size, &err);
		return true;
	}
	if (x->has_ended && x->phase == PHASE_IDLE)
		x->is_abandoned = true;
	else if (x->has_ended)
		end_with(x, API_BAD_REQUEST, "the request ends within its head");
	else
		return read_more(x);
	return false;
}

bool exchange_awaits_body(const struct exchange *x)
{
	return x->phase == PHASE_BODY &&
	       (x->head.is_chunked ? x->chunks.state != CHUNK_END : x->body_left > 0);
}

/* API_OK: there is room. */
static enum api_code make_room(struct exchange *x, size_t needed)
{
	size_t room = 2 * needed < x->most ? 2 * needed : x->most;

	if (needed <= x->room)
		return API_OK;
	if (room < needed)
		room = needed; /* a reload has raised the limit meanwhile */
	enum api_code why = http_may_hold(x, room - x->room);
	if (why != API_OK)
		return why;
	char *grown = realloc(x->body, room);
	if (!grown)
		return API_QUEUE_FULL;
	x->body = grown;
	x->room = x->body_held = room;
	return API_OK;
}

/* The limit of a request, a caller or all callers that it exceeds; API_OK: none. */
static enum api_code add_body(struct exchange *x, const struct blob *part)
{
	/* a reload may have lowered the limit meanwhile */
	size_t max = x->divert ? x->divert_max : x->http->body_max;

	if (part->size > max || x->size > max - part->size)
		return API_TOO_LARGE;
	if (x->divert) {
		x->size += part->size;
		x->deadline_ms += part->size * 1000 / HTTP_SEND_RATE; /* it may be large */
		/* Without a holder it is answered, and the rest of the body is dropped. */
		x->is_paused = x->holder && !x->divert(x->holder, part->bytes, part->size);
		x->paused_ms = clock_ms();
		return API_OK;
	}
	enum api_code why = make_room(x, x->size + part->size + 1);
	if (why != API_OK)
		return why;
	memcpy(x->body + x->size, part->bytes, part->size);
	x->size += part->size;
	x->body[x->size] = '\0';
	return API_OK;
}

static int next_part(struct exchange *x, struct blob *out, struct cj_error *err)
{
	struct blob in = { x->in.bytes + x->in.start, byte_queue_size(&x->in) };
	int rc = 0;

	if (x->head.is_chunked) {
		rc = http_chunks_next(&x->chunks, &in, out, err);
	} else {
		*out = (struct blob){ in.bytes, in.size };
		if (x->body_left < in.size)
			out->size = (size_t)x->body_left;
		x->body_left -= out->size;
		in.size -= out->size;
	}
	byte_queue_take(&x->in, byte_queue_size(&x->in) - in.size);
	return rc;
}

static bool receive_body(struct exchange *x)
{
	struct blob part = { 0 };
	struct cj_error err = { 0 };

	if (byte_queue_size(&x->in) == 0) {
		if (!x->has_ended)
			return read_more(x);
		end_with(x, API_BAD_REQUEST, "the request ends within its body");
		return false;
	}
	if (next_part(x, &part, &err) < 0) {
		end_with(x, API_BAD_REQUEST, err.msg);
		return false;
	}
	enum api_code why = part.size > 0 ? add_body(x, &part) : API_OK;
	if (why != API_OK)
		end_with(x, why, NULL);
	return why == API_OK;
}

bool exchange_receive(struct exchange *x)
{
	if (x->is_abandoned || x->phase >= PHASE_WHOLE)
		return false;
	if (x->phase < PHASE_BODY)
		return receive_head(x);
	if (exchange_awaits_body(x))
		return !x->is_paused && receive_body(x);
	x->phase = PHASE_WHOLE;
	x->deadline_ms = 0;
	x->whole_us = clock_us();
	x->http->ops.whole(x->http->ops.context, x);
	if (!x->is_answered && !x->holder)
		x->is_abandoned = true; /* there was no memory */
	return false;
}
