/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calls of a program to tools, when the run is at a service: lines for our caller, as a run
 * here writes them, and requests for its answers.
 */

#include "runtime/base/clock.h"
#include "runtime/front/client/remote_state.h"
#include "runtime/jail/jail.h"
#include "runtime/jail/supervise/call_line.h"
#include "runtime/jail/supervise/calls.h"

#define CHUNK 65536
#define GONE  "the caller answers no more calls"

static struct remote_open_call *find_call(struct remote_calls *c, uint64_t id)
{
	for (size_t i = 0; i < CALLS_OUTSTANDING_MAX; i++)
		if (c->open[i].id == id)
			return &c->open[i];
	return NULL;
}

static void lose_caller(struct remote *r, const char *why)
{
	struct remote_calls *c = &r->calls;

	loop_unwatch(&r->loop, &c->caller);
	c->no_more = why;
	byte_queue_fini(&c->in);
	byte_queue_fini(&c->out);
	for (size_t i = 0; i < CALLS_OUTSTANDING_MAX; i++) {
		if (c->open[i].id > 0)
			call_answers_add_error(&c->answers, c->open[i].id, why);
		c->open[i].id = 0;
	}
}

static void send_lines(struct remote *r)
{
	struct remote_calls *c = &r->calls;
	const size_t before = byte_queue_size(&c->out);

	if (c->caller.fd >= 0 && byte_queue_send(&c->out, c->caller.fd) != 0)
		lose_caller(r, GONE);
	if (before == 0 || byte_queue_size(&c->out) < before)
		c->read_ms = clock_ms();
	loop_rewatch(&r->loop, &c->caller, EPOLLIN | (byte_queue_size(&c->out) > 0 ? EPOLLOUT : 0));
}

static void put_end(struct remote *r, uint64_t id, enum call_end end, uint64_t ms)
{
	struct remote_calls *c = &r->calls;

	if (c->caller.fd >= 0 && call_line_put_end(&c->out, id, call_end_names[end], ms) < 0)
		lose_caller(r, "cejail has no memory for the calls");
	send_lines(r);
}

static void add_answer(struct call_answers *c, const struct written_answer *answer)
{
	auto_json_writer struct json_writer *w = json_writer_create(false);
	struct cj_error ignored = { 0 };
	struct blob text = { 0 };

	json_open_object(w);
	if (answer->is_error)
		json_member_object(w, "error");
	json_put_key(w, answer->is_error ? "message" : "result");
	json_put_raw(w, answer->value.bytes, answer->value.size);
	if (answer->is_error)
		json_close_object(w);
	json_close_object(w);
	/* without it, the call ends by its time limit */
	if (json_writer_take(w, &text, &ignored) == 0)
		call_answers_add(c, answer->id, text.bytes, text.size);
}

/* Returns what is wrong with the line; NULL: nothing. */
static const char *take_answer(struct remote_calls *c, char *line, size_t size)
{
	struct written_answer w;
	const char *wrong = call_line_read_answer(line, size, &w);
	struct remote_open_call *call = wrong || w.id == 0 ? NULL : find_call(c, w.id);

	if (!call)
		return wrong; /* NULL: it has ended meanwhile */
	call->id = 0;
	if (w.value.bytes)
		add_answer(&c->answers, &w);
	else
		call_answers_add_error(&c->answers, w.id, CALL_ANSWER_EMPTY);
	return NULL;
}

static void on_caller(struct watch *watch, uint32_t events)
{
	struct remote *r = watch_owner(watch, struct remote, calls.caller);
	struct remote_calls *c = &r->calls;
	const char *wrong = NULL;
	size_t size;

	send_lines(r);
	if (c->caller.fd < 0 || (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) == 0)
		return;
	const ssize_t got = byte_queue_receive(&c->in, c->caller.fd, CHUNK);
	if (got <= 0 && got != -EAGAIN)
		wrong = GONE;
	while (!wrong && (size = byte_queue_find_line(&c->in, &c->searched)) != SIZE_MAX) {
		wrong = take_answer(c, c->in.bytes + c->in.start, size);
		byte_queue_take(&c->in, size + 1);
	}
	if (!wrong && byte_queue_size(&c->in) > CALL_ANSWER_MAX + CHUNK)
		wrong = "the caller's answer has more than 16 MiB";
	if (wrong)
		lose_caller(r, wrong);
}

/* The name must be one of the list: it becomes a part of the caller's line. */
static int begin_call(struct remote *r, const struct call_event *event, struct cj_error *err)
{
	const struct written_call w = { .name = event->name, .arguments = event->arguments };
	struct remote_calls *c = &r->calls;
	struct remote_open_call *call = find_call(c, 0);

	if (!c->tools.catalogue || tool_list_find(&c->tools, w.name) == c->tools.names.count)
		return cj_reject(err, "the service sent a call of a tool that is not in --tools");
	if (!call || c->answers.count > CALLS_OUTSTANDING_MAX)
		return cj_reject(err, "the service sent too many calls at a time");
	c->last_id = event->id;
	if (c->no_more) {
		call_answers_add_error(&c->answers, event->id, c->no_more);
		return 0;
	}
	*call = (struct remote_open_call){ .id = event->id, .began_ms = clock_ms() };
	if (call_line_put_call(&c->out, event->id, &w) < 0)
		lose_caller(r, "cejail has no memory for the calls");
	send_lines(r);
	return 0;
}

/* --events-fd gets no arguments. */
int remote_calls_take(struct remote *r, struct cj_error *err)
{
	auto_arena struct arena a = { 0 };
	struct call_event event;

	if (call_event_read(r->line.text.bytes, r->line.text.end, r->calls.last_id, &a, &event,
			    err) < 0)
		return -err->code;
	events_add_json(&r->call->delivery->events, event.head.bytes, event.head.size);
	return begin_call(r, &event, err);
}

void remote_calls_end(struct remote *r, const struct json_node *event)
{
	const char *outcome = json_get_text(event, "outcome");
	struct remote_calls *c = &r->calls;
	uint64_t id = 0, ms = 0;

	if (!outcome || !json_get_u64(event, "call", &id) || !json_get_u64(event, "ms", &ms))
		return;
	struct remote_open_call *call = id > 0 ? find_call(c, id) : NULL;
	call_answers_drop(&c->answers, id);
	if (!call)
		return; /* the caller has answered it */
	call->id = 0;
	put_end(r, id,
		strcmp(outcome, call_end_names[CALL_TIMED_OUT]) == 0 ? CALL_TIMED_OUT
								     : CALL_CANCELLED,
		ms);
}

int remote_calls_open(struct remote *r, struct cj_error *err)
{
	struct config *config = r->call->config;
	struct remote_calls *c = &r->calls;

	if (!config->tools)
		return 0;
	call_answers_open(&c->answers, &r->loop, config->remote, r->url);
	if (plan_read_tools(config, NULL, &c->tools, err) < 0)
		return -err->code;
	return loop_watch(&r->loop, &c->caller, config->calls_fd, on_caller, err);
}

void remote_calls_close(struct remote *r)
{
	struct remote_calls *c = &r->calls;

	for (size_t i = 0; i < CALLS_OUTSTANDING_MAX; i++)
		if (c->open[i].id > 0)
			put_end(r, c->open[i].id, CALL_CANCELLED, clock_ms() - c->open[i].began_ms);
	call_answers_close(&c->answers);
	loop_unwatch(&r->loop, &c->caller);
	byte_queue_fini(&c->in);
	byte_queue_fini(&c->out);
}

bool remote_calls_are_behind(const struct remote_calls *c)
{
	return byte_queue_size(&c->out) >= CALL_LINE_MAX;
}

/* When a caller that does not read is waited for no longer, as a reader of the output; 0: never. */
static uint64_t patience_ends_ms(const struct remote *r)
{
	const uint64_t read_ms = r->calls.read_ms;

	if (!remote_calls_are_behind(&r->calls) || r->run_ended_ms == 0)
		return 0;
	return (read_ms > r->run_ended_ms ? read_ms : r->run_ended_ms) + EVENTS_PATIENCE_MS;
}

int remote_calls_tick(struct remote *r)
{
	const uint64_t late_ms = patience_ends_ms(r);

	if (late_ms > 0 && clock_ms_until(late_ms) == 0)
		lose_caller(r, GONE);
	return loop_sooner(clock_ms_until(patience_ends_ms(r)),
			   call_answers_tick(&r->calls.answers, clock_ms()));
}
