/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The descriptor is the caller's, and other processes share the open file: O_NONBLOCK cannot be
 * set.  So it polls first, and writes pieces that poll(2) guarantees room for.
 */
#include "runtime/run/report/events.h"

#include <limits.h>
#include <poll.h>

#include "runtime/base/clock.h"
#include "runtime/base/files/fd.h"
#include "runtime/base/sys.h"
#include "runtime/base/text.h"
#include "runtime/jail/jail.h"
#include "runtime/run/report/result.h"

const char *const event_type_names[EVENT_TYPE_COUNT] = {
	[EVENT_START] = "start",     [EVENT_STDOUT] = "stdout",   [EVENT_STDERR] = "stderr",
	[EVENT_NETWORK] = "network", [EVENT_DENIED] = "denied",   [EVENT_CALL] = "call",
	[EVENT_ANSWER] = "answer",   [EVENT_DROPPED] = "dropped",
};

void events_init(struct events *e, int fd)
{
	*e = (struct events){ .fd = fd, .patience_ms = EVENTS_PATIENCE_MS };
}

void events_fini(struct events *e)
{
	byte_queue_fini(&e->queue);
	events_init(e, -1);
}

static bool is_closed(const struct events *e)
{
	return e->fd < 0 || e->is_gone;
}

/* Writes what is queued; waits up to patience_ms for each piece of progress. */
static void flush(struct events *e, int patience_ms)
{
	struct byte_queue *q = &e->queue;
	while (!is_closed(e) && q->start < q->end && fd_await(e->fd, POLLOUT, patience_ms)) {
		size_t size = byte_queue_size(q);
		if (size > PIPE_BUF)
			size = PIPE_BUF; /* pipe(7): what POLLOUT promises */
		ssize_t put = sys_write(e->fd, q->bytes + q->start, size);
		if (put < 0 && errno == EAGAIN && patience_ms == 0)
			break;
		if (put < 0 && errno != EAGAIN)
			e->is_gone = true;
		if (put > 0)
			byte_queue_take(q, (size_t)put);
	}
}

/*
 * Queues `before`, the bytes and `after`: all, or nothing beyond queue_max or without memory, since
 * a partial line would corrupt the next one.
 */
static int queue_bytes(struct events *e, const char *before, const char *bytes, size_t size,
		       const char *after, size_t queue_max)
{
	const size_t total = strlen(before) + size + strlen(after);

	struct byte_queue *q = &e->queue;
	if (total > queue_max || byte_queue_size(q) > queue_max - total ||
	    byte_queue_grow(q, total) < 0)
		return -ENOMEM;
	char *to = stpcpy(q->bytes + q->end, before);
	memcpy(to, bytes, size);
	memcpy(to + size, after, strlen(after));
	q->end += total;
	return 0;
}

/* Queues the object of the writer as a line. */
static int put_line(struct events *e, struct json_writer *w, size_t queue_max)
{
	struct cj_error err = { 0 };
	struct blob text = { 0 };

	if (json_writer_take(w, &text, &err) < 0)
		return -ENOMEM;
	return queue_bytes(e, "", text.bytes, text.size, "\n", queue_max);
}

/* Beyond the limit, drops the event, and the following ones until the reader has caught up. */
static void queue_line(struct events *e, struct json_writer *w)
{
	if (put_line(e, w, EVENTS_QUEUE_MAX) < 0)
		e->dropped++;
}

static bool has_caught_up(const struct events *e)
{
	return byte_queue_size(&e->queue) <= EVENTS_QUEUE_MAX / 2;
}

/* The start of an object.  Returns: NULL without memory. */
static struct json_writer *open_event(struct events *e, enum event_type type)
{
	struct json_writer *w = json_writer_create(false);
	if (!w)
		return NULL;
	if (e->began_ms == 0)
		e->began_ms = clock_ms();
	json_open_object(w);
	json_member_text(w, "type", event_type_names[type]);
	json_member_u64(w, "at_ms", clock_ms() - e->began_ms);
	return w;
}

static void add_dropped(struct events *e)
{
	auto_json_writer struct json_writer *w = open_event(e, EVENT_DROPPED);
	if (!w)
		return; /* reported later, with the next ones */

	json_member_u64(w, "events", e->dropped);
	json_close_object(w);
	if (put_line(e, w, SIZE_MAX) == 0)
		e->dropped = 0;
}

bool events_has_room(struct events *e)
{
	flush(e, 0);
	return is_closed(e) || has_caught_up(e);
}

/* False: there is no reader, or the reader is behind and this event is dropped. */
static bool is_ready(struct events *e)
{
	flush(e, 0);
	if (is_closed(e))
		return false;
	if (e->dropped > 0 && has_caught_up(e))
		add_dropped(e);
	if (e->dropped > 0)
		e->dropped++;
	return e->dropped == 0;
}

/* The start of an event of a reader that keeps up.  Returns: NULL if the event is dropped. */
static struct json_writer *begin_event(struct events *e, enum event_type type)
{
	if (!is_ready(e))
		return NULL;
	struct json_writer *w = open_event(e, type);
	e->dropped += !w;
	return w;
}

static void end_event(struct events *e, struct json_writer *w)
{
	json_close_object(w);
	queue_line(e, w);
	flush(e, 0);
}

void events_add_start(struct events *e, const char *id)
{
	auto_json_writer struct json_writer *w = begin_event(e, EVENT_START);

	if (!w)
		return;
	json_member_text(w, "id", id);
	result_put_ms(w, "time", clock_epoch_ms());
	json_member_known(w, "timeout_ms", e->timeout_ms > 0, e->timeout_ms);
	end_event(e, w);
}

void events_add_denied(struct events *e, const struct jail_denied *d)
{
	auto_json_writer struct json_writer *w = begin_event(e, EVENT_DENIED);
	if (!w)
		return;
	if (d->packet) {
		json_put_key(w, "network");
		result_put_denial(w, d->packet);
	} else {
		json_member_text(w, "syscall", d->syscall);
	}
	end_event(e, w);
}

/* The text of the arguments is that of the program, byte for byte. */
static int queue_call(struct events *e, struct json_writer *w, const struct jail_call *call)
{
	struct cj_error err = { 0 };
	struct blob head = { 0 };
	json_close_object(w);
	if (json_writer_take(w, &head, &err) < 0)
		return -ENOMEM;
	static const char before[] = ",\"arguments\":";
	const struct blob line[] = {
		{ head.bytes, head.size - 1 }, /* without its bracket */
		{ before, sizeof(before) - 1 },
		{ call->arguments, call->arguments_size },
		{ "}\n", 2 },
	};
	return byte_queue_add_all(&e->queue, line, COUNT_OF(line));
}

bool events_add_call(struct events *e, const struct jail_call *call, bool with_arguments)
{
	const bool begins = call->id > 0 && call->arguments;
	const bool is_needed = begins && with_arguments;
	const enum event_type type = begins         ? EVENT_CALL
				     : call->id > 0 ? EVENT_ANSWER
						    : EVENT_DENIED;
	auto_json_writer struct json_writer *w = !is_needed     ? begin_event(e, type)
						 : is_closed(e) ? NULL
								: open_event(e, type);
	if (!w)
		return !is_needed;
	if (call->id > 0) {
		json_member_u64(w, "call", call->id);
		json_member_text(w, "name", call->name);
	} else {
		json_member_text(w, "call", call->name);
		json_member_text(w, "reason", call->reason);
	}
	if (type == EVENT_ANSWER) {
		json_member_u64(w, "ms", call->ms);
		json_member_text(w, "outcome", call_end_names[call->end]);
	}
	bool is_kept = !is_needed || queue_call(e, w, call) == 0;
	if (!is_needed)
		end_event(e, w);
	else
		e->dropped += !is_kept;
	flush(e, 0);
	return is_kept;
}

void events_add_network(struct events *e, const struct network_outcome *n)
{
	auto_json_writer struct json_writer *w = begin_event(e, EVENT_NETWORK);
	if (!w)
		return;
	result_put_network_state(w, n);
	end_event(e, w);
}

static void add_output(struct events *e, size_t stream, const void *bytes, size_t size,
		       bool is_last)
{
	struct half_character *half = &e->carried[stream];
	auto_json_writer struct json_writer *w =
	    open_event(e, stream == 0 ? EVENT_STDOUT : EVENT_STDERR);
	uint8_t *joined = malloc(half->size + size + 1);

	if (!w || !joined) {
		e->dropped++;
		free(joined);
		return;
	}
	memcpy(joined, half->bytes, half->size);
	if (size > 0)
		memcpy(joined + half->size, bytes, size);
	size += half->size;
	half->size = is_last ? 0 : utf8_unfinished(joined, size);
	size -= half->size;
	memcpy(half->bytes, joined + size, half->size);

	if (size > 0) {
		json_put_bytes(w, joined, size);
		json_close_object(w);
		queue_line(e, w);
	}
	free(joined);
}

void events_add_output(struct events *e, size_t stream, const void *bytes, size_t size)
{
	if (!is_ready(e))
		return;
	add_output(e, stream, bytes, size, false);
	flush(e, 0);
}

void events_add_json(struct events *e, const char *line, size_t size)
{
	if (!is_ready(e))
		return;
	if (queue_bytes(e, "", line, size, "\n", EVENTS_QUEUE_MAX) < 0)
		e->dropped++;
	flush(e, 0);
}

/* After the last event: the rest of an unfinished character, and the number of dropped events. */
static void end_events(struct events *e)
{
	for (size_t i = 0; i < 2; i++) {
		if (e->carried[i].size > 0)
			add_output(e, i, NULL, 0, true);
	}
	if (e->dropped > 0)
		add_dropped(e);
}

int events_add_line(struct events *e, struct json_writer *w, struct cj_error *err)
{
	if (e->fd < 0)
		return 0;
	end_events(e);
	if (put_line(e, w, SIZE_MAX) < 0)
		return cj_fail(err, ENOMEM, "write a line after the events");
	return 0;
}

int events_finish(struct events *e, const char *result, size_t size, struct cj_error *err)
{
	if (e->fd < 0)
		return 0;
	end_events(e);
	if (queue_bytes(e, "{\"type\":\"result\",\"result\":", result, size, "}\n", SIZE_MAX) < 0)
		return cj_fail(err, ENOMEM, "write the last event");

	flush(e, e->patience_ms);
	if (e->is_gone)
		return cj_fail(err, EPIPE, "write events to descriptor %d", e->fd);
	if (byte_queue_size(&e->queue) > 0)
		return cj_fail(err, ETIMEDOUT,
			       "the reader of the events on descriptor %d reads nothing", e->fd);
	return 0;
}
