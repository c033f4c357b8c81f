/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/service/queue/run_calls.h"

#include <inttypes.h>

#include "runtime/base/byte_queue.h"
#include "runtime/base/clock.h"
#include "runtime/base/json/json.h"
#include "runtime/base/scope.h"
#include "runtime/jail/supervise/call_line.h"
#include "runtime/jail/supervise/calls.h"
#include "runtime/service/config/service_config.h"

/* Of the worker: a name, a hash, numbers, and maybe arguments. */
#define CALL_NOTE_MAX ((4u << 10) + AUDIT_ARGUMENTS_MAX)
#define READS         16 /* of one turn */
#define LAST_TURNS    64 /* more than a socket holds */

struct known_call {
	struct call_record record; /* id 0: the slot is free; its arguments are malloc'ed */
	uint64_t began_ms;
	bool is_answered;
};

struct pending_calls {
	struct loop *loop;
	struct watch watch;
	struct run_calls_ops ops;
	int fd; /* -1: the worker has closed it */
	struct byte_queue in, out;
	struct known_call open[CALLS_OUTSTANDING_MAX];
	uint64_t last_id;
};

static struct known_call *find_call(struct pending_calls *c, uint64_t id)
{
	for (size_t i = 0; i < CALLS_OUTSTANDING_MAX; i++)
		if (c->open[i].record.id == id)
			return &c->open[i];
	return NULL;
}

static void end_call(struct pending_calls *c, struct known_call *call, enum call_end end,
		     uint64_t ms)
{
	struct call_record record = call->record;

	record.end = end;
	record.ms = ms;
	call->record.id = 0;
	c->ops.ended(c->ops.context, &record);
	free(record.arguments);
}

static void read_name(const struct json_node *line, struct call_record *out)
{
	const char *name = json_get_text(line, "name");

	if (name)
		(void)snprintf(out->name, sizeof(out->name), "%s", name);
}

static bool begin_call(struct pending_calls *c, const char *text, const struct json_node *line,
		       uint64_t id)
{
	const char *hash = json_get_text(line, "sha256");
	const struct json_node *arguments = json_get_typed(line, "arguments", JSON_OBJECT);
	struct known_call *call = find_call(c, 0);
	struct call_record record = { .id = id };

	if (!call || id <= c->last_id || !hash || !json_get_u64(line, "bytes", &record.bytes))
		return false;
	if (arguments) {
		const struct blob written = json_written(arguments, text);
		record.arguments = strndup(written.bytes, written.size);
		if (!record.arguments)
			return false;
	}
	read_name(line, &record);
	(void)snprintf(record.sha256, sizeof(record.sha256), "%s", hash);
	*call = (struct known_call){ .record = record, .began_ms = clock_ms() };
	c->last_id = id;
	return true;
}

/* False: it has a line that the protocol does not have. */
static bool take_line(struct pending_calls *c, const char *text, size_t size)
{
	auto_arena struct arena a = { 0 };
	const struct json_node *line = NULL;
	struct cj_error ignored = { 0 };
	uint64_t id = 0, ms = 0;
	enum call_end end = 0;

	if (json_parse("worker", text, size, &a, &line, &ignored) < 0 ||
	    !json_get_u64(line, "id", &id))
		return false;
	const char *ended = json_get_text(line, "ended");
	if (!ended)
		return begin_call(c, text, line, id);
	while (end < CALL_END_COUNT && strcmp(call_end_names[end], ended) != 0)
		end++;
	if (end == CALL_REFUSED) {
		struct call_record refused = { .end = CALL_REFUSED };
		read_name(line, &refused);
		c->ops.ended(c->ops.context, &refused);
		return true;
	}
	struct known_call *call = id > 0 ? find_call(c, id) : NULL;
	if (!call || end == CALL_END_COUNT || !json_get_u64(line, "ms", &ms))
		return false;
	end_call(c, call, end, ms);
	return true;
}

static bool take_lines(struct pending_calls *c)
{
	size_t size, searched = 0;

	while ((size = byte_queue_find_line(&c->in, &searched)) != SIZE_MAX) {
		if (!take_line(c, c->in.bytes + c->in.start, size))
			return false;
		byte_queue_take(&c->in, size + 1);
	}
	return byte_queue_size(&c->in) < CALL_NOTE_MAX;
}

/* The worker's other socket says how its run ends. */
static void lose_worker(struct pending_calls *c)
{
	loop_unwatch(c->loop, &c->watch);
	cj_close(&c->fd);
}

/* False: no more is there. */
static bool receive(struct pending_calls *c)
{
	ssize_t got = 1;

	for (int i = 0; i < READS && c->fd >= 0 && got > 0; i++) {
		got = byte_queue_receive(&c->in, c->fd, CALL_NOTE_MAX);
		if ((got <= 0 && got != -EAGAIN) || (got > 0 && !take_lines(c)))
			lose_worker(c);
	}
	return c->fd >= 0 && got > 0;
}

static void send_answers(struct pending_calls *c)
{
	if (c->fd >= 0 && byte_queue_send(&c->out, c->fd) != 0)
		lose_worker(c);
	const uint32_t more = byte_queue_size(&c->out) > 0 ? EPOLLOUT : 0;
	if (c->fd >= 0)
		loop_rewatch(c->loop, &c->watch, EPOLLIN | more);
	if (!more)
		byte_queue_fini(&c->out); /* it may have been large */
}

static void on_ready(struct watch *watch, uint32_t events)
{
	struct pending_calls *c = watch_owner(watch, struct pending_calls, watch);

	if (events & ~(uint32_t)EPOLLOUT)
		(void)receive(c); /* the loop calls again */
	send_answers(c);
}

int run_calls_begin(struct loop *loop, int fd, const struct run_calls_ops *ops,
		    struct pending_calls **out, struct cj_error *err)
{
	auto_fd int own_fd = fd;
	auto_free struct pending_calls *c = calloc(1, sizeof(*c));

	if (!c)
		return cj_fail(err, ENOMEM, "serve the calls of a run");
	*c = (struct pending_calls){ .loop = loop, .watch = WATCH_NULL, .ops = *ops, .fd = -1 };
	if (loop_watch(loop, &c->watch, fd, on_ready, err) < 0)
		return -err->code;
	c->fd = take_fd(&own_fd);
	*out = take_ptr(c);
	return 0;
}

void run_calls_end(struct pending_calls **c, uint64_t *out_last)
{
	struct pending_calls *old = take_ptr(*c);

	if (!old)
		return;
	for (int i = 0; i < LAST_TURNS && receive(old); i++)
		; /* its run has ended: what is there is the rest */
	for (size_t i = 0; i < CALLS_OUTSTANDING_MAX; i++)
		if (old->open[i].record.id > 0)
			end_call(old, &old->open[i], CALL_CANCELLED,
				 clock_ms() - old->open[i].began_ms);
	*out_last = old->last_id;
	lose_worker(old);
	byte_queue_fini(&old->in);
	byte_queue_fini(&old->out);
	free(old);
}

static int put_answer(struct pending_calls *c, uint64_t id, const char *member, struct blob value)
{
	char head[64];
	struct byte_queue *q = &c->out;
	int size = snprintf(head, sizeof(head), "{\"id\":%" PRIu64 ",\"%s\":", id, member);
	const struct blob line[] = { { head, (size_t)size }, value, { "}\n", 2 } };

	if (byte_queue_add_all(q, line, 3) < 0)
		return -ENOMEM;
	call_line_flatten(q->bytes + q->end - 2 - value.size, value.size); /* it has many lines */
	return 0;
}

enum api_code run_calls_answer(struct pending_calls *c, uint64_t id, const char *member,
			       struct blob value)
{
	const size_t waiting = byte_queue_size(&c->out);

	(void)receive(c); /* the event of a call may come here before its line */
	struct known_call *call = id > 0 ? find_call(c, id) : NULL;
	if (id == 0 || id > c->last_id)
		return API_NOT_FOUND;
	if (!call || call->is_answered || c->fd < 0)
		return API_CALL_ENDED;
	if (waiting > 0 && waiting + value.size > CALL_ANSWER_MAX)
		return API_TOO_MANY_WAITING;
	if (put_answer(c, id, member, value) < 0)
		return API_QUEUE_FULL;
	call->is_answered = true;
	send_answers(c);
	return API_OK;
}

/* The worker knows the call before us.  So few short answers are not limited. */
void run_calls_fail(struct pending_calls *c, uint64_t id, const char *message)
{
	char value[128];
	int size = snprintf(value, sizeof(value), "{\"message\":\"%s\"}", message);

	receive(c);
	struct known_call *call = id > 0 ? find_call(c, id) : NULL;
	if (call)
		call->is_answered = true;
	if (c->fd >= 0 && put_answer(c, id, "error", (struct blob){ value, (size_t)size }) < 0)
		lose_worker(c);
	else
		send_answers(c);
}
