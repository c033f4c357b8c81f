/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calls of a program to tools, when the run is at a service: lines for our caller, as a run
 * here writes them, and requests for its answers.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/clock.h"
#include "runtime/base/scope.h"
#include "runtime/front/client/call_event.h"
#include "runtime/front/client/remote_state.h"
#include "runtime/jail/jail.h"
#include "runtime/jail/supervise/call_line.h"
#include "runtime/jail/supervise/calls.h"

#define CHUNK 65536
#define GONE  "the caller answers no more calls"

enum { ON_CALLER, ON_REPLY };

static void lose_caller(struct remote_calls *c, const char *why)
{
	c->fd = -1;
	c->no_more = why;
	byte_queue_fini(&c->in);
	byte_queue_fini(&c->out);
}

static void send_lines(struct remote_calls *c)
{
	const size_t before = byte_queue_size(&c->out);

	if (c->fd >= 0 && byte_queue_send(&c->out, c->fd) != 0)
		lose_caller(c, GONE);
	if (before == 0 || byte_queue_size(&c->out) < before)
		c->read_ms = clock_ms();
}

static struct remote_open_call *find_call(struct remote_calls *c, uint64_t id)
{
	for (size_t i = 0; i < CALLS_OUTSTANDING_MAX; i++)
		if (c->open[i].id == id)
			return &c->open[i];
	return NULL;
}

static void put_end(struct remote_calls *c, uint64_t id, enum call_end end, uint64_t ms)
{
	if (c->fd >= 0 && call_line_put_end(&c->out, id, call_end_names[end], ms) < 0)
		lose_caller(c, "cejail has no memory for the calls");
	send_lines(c);
}

static void send_answer(struct remote *r)
{
	struct remote_calls *c = &r->calls;
	char url[REMOTE_URL_MAX + 32];
	struct cj_error ignored = { 0 };

	(void)snprintf(url, sizeof(url), "%s/calls/%" PRIu64, r->url, c->posted_id);
	if (remote_post_send(&c->post, r->call->config->remote, url, &ignored) < 0)
		remote_post_retry(&c->post, CALL_RETRY_MS);
}

/* `why`: an error of ours in place of the answer; else NULL. */
static void begin_answer(struct remote *r, const struct written_answer *answer, const char *why)
{
	struct remote_calls *c = &r->calls;
	auto_json_writer struct json_writer *w = json_writer_create(false);
	struct cj_error ignored = { 0 };
	const bool is_error = why || answer->is_error;

	json_open_object(w);
	if (is_error)
		json_member_object(w, "error");
	json_put_key(w, is_error ? "message" : "result");
	if (why)
		json_put_string(w, why);
	else
		json_put_raw(w, answer->value.bytes, answer->value.size);
	if (is_error)
		json_close_object(w);
	json_close_object(w);
	c->posted_id = answer->id;
	c->is_refusal = why != NULL;
	if (remote_post_take(&c->post, w, &ignored) == 0)
		send_answer(r); /* else the call ends by its time limit */
}

/* Returns what is wrong with the line; NULL: nothing. */
static const char *take_answer(struct remote *r, char *line, size_t size)
{
	struct written_answer w;
	const char *wrong = call_line_read_answer(line, size, &w);
	struct remote_open_call *call = wrong || w.id == 0 ? NULL : find_call(&r->calls, w.id);

	if (!call)
		return wrong; /* NULL: it has ended meanwhile */
	call->id = 0;
	begin_answer(r, &w, w.value.bytes ? NULL : CALL_ANSWER_EMPTY);
	return NULL;
}

static bool fail_next(struct remote *r)
{
	for (size_t i = 0; i < CALLS_OUTSTANDING_MAX; i++) {
		struct written_answer failed = { .id = r->calls.open[i].id };
		if (failed.id == 0)
			continue;
		r->calls.open[i].id = 0;
		begin_answer(r, &failed, r->calls.no_more);
		return true;
	}
	return false;
}

/* False: nothing is there to be answered. */
static bool answer_next(struct remote *r)
{
	struct remote_calls *c = &r->calls;
	struct byte_queue *q = &c->in;

	if (c->no_more)
		return fail_next(r);
	const size_t size = byte_queue_find_line(q, &c->searched);
	const char *wrong = NULL;
	if (size != SIZE_MAX) {
		wrong = take_answer(r, q->bytes + q->start, size);
		byte_queue_take(q, size + 1);
	} else if (byte_queue_size(q) > CALL_ANSWER_MAX + CHUNK) {
		wrong = "the caller's answer has more than 16 MiB";
	} else {
		return false;
	}
	if (wrong)
		lose_caller(c, wrong);
	return true;
}

static void answer_all(struct remote *r)
{
	while (!r->calls.post.body && answer_next(r))
		;
}

static void read_reply(struct remote *r)
{
	struct remote_calls *c = &r->calls;
	struct cj_error ignored = { 0 };
	uint64_t wait_ms = 0;
	int rc = remote_post_read(&c->post, &ignored);

	if (rc == 0)
		return;
	const struct http_answer *said = &c->post.answer;
	enum call_reply reply = call_event_reply(said, rc > 0, &wait_ms);
	if (reply == CALL_REPLY_LATER) {
		remote_post_retry(&c->post, wait_ms);
		return;
	}
	char why[128];
	(void)snprintf(why, sizeof(why),
		       "the service does not take the answer of %zu bytes: HTTP status %u",
		       c->post.size, said->status);
	remote_post_forget(&c->post);
	if (reply == CALL_REPLY_REFUSED && !c->is_refusal)
		begin_answer(r, &(struct written_answer){ .id = c->posted_id }, why);
}

bool remote_calls_has_line(const struct remote *r)
{
	return call_event_is(r->line.text.bytes, r->line.text.end);
}

/* The name must be one of the list: it becomes a part of the caller's line. */
static int begin_call(struct remote *r, const struct call_event *event, struct cj_error *err)
{
	const struct written_call w = { .name = event->name, .arguments = event->arguments };
	struct remote_calls *c = &r->calls;
	struct remote_open_call *call = find_call(c, 0);

	if (!c->tools.catalogue || tool_list_find(&c->tools, w.name) == c->tools.names.count)
		return cj_reject(err, "the service sent a call of a tool that is not in --tools");
	if (!call)
		return cj_reject(err, "the service sent too many calls at a time");
	*call = (struct remote_open_call){ .id = event->id, .began_ms = clock_ms() };
	c->last_id = event->id;
	if (c->fd >= 0 && call_line_put_call(&c->out, event->id, &w) < 0)
		lose_caller(c, "cejail has no memory for the calls");
	send_lines(c);
	answer_all(r); /* of a caller that has gone */
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
	if (!call)
		return; /* the caller has answered it */
	call->id = 0;
	put_end(c, id,
		strcmp(outcome, call_end_names[CALL_TIMED_OUT]) == 0 ? CALL_TIMED_OUT
								     : CALL_CANCELLED,
		ms);
}

int remote_calls_open(struct remote *r, struct cj_error *err)
{
	struct config *config = r->call->config;

	if (!config->tools)
		return 0;
	r->calls.fd = config->calls_fd;
	return plan_read_tools(config, NULL, &r->calls.tools, err);
}

void remote_calls_close(struct remote *r)
{
	struct remote_calls *c = &r->calls;

	for (size_t i = 0; i < CALLS_OUTSTANDING_MAX; i++)
		if (c->open[i].id > 0)
			put_end(c, c->open[i].id, CALL_CANCELLED, clock_ms() - c->open[i].began_ms);
	remote_post_forget(&c->post);
	byte_queue_fini(&c->in);
	byte_queue_fini(&c->out);
}

void remote_calls_watch(const struct remote_calls *c, struct pollfd fds[static REMOTE_CALLS_FDS])
{
	const short events =
	    (short)((c->post.body ? 0 : POLLIN) | (byte_queue_size(&c->out) > 0 ? POLLOUT : 0));

	/* poll(2) always reports a hang-up, which is handled when it can be read */
	fds[ON_CALLER] = (struct pollfd){ .fd = events ? c->fd : -1, .events = events };
	fds[ON_REPLY] = (struct pollfd){ .fd = c->post.answer_fd, .events = POLLIN };
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

uint64_t remote_calls_at_ms(const struct remote *r)
{
	return clock_earlier(r->calls.post.retry_at_ms, patience_ends_ms(r));
}

void remote_calls_serve(struct remote *r, const struct pollfd fds[static REMOTE_CALLS_FDS])
{
	struct remote_calls *c = &r->calls;
	const uint64_t now_ms = clock_ms(), late_ms = patience_ends_ms(r);

	if (late_ms > 0 && now_ms >= late_ms)
		lose_caller(c, GONE);
	if (fds[ON_REPLY].revents)
		read_reply(r);
	else if (c->post.retry_at_ms > 0 && now_ms >= c->post.retry_at_ms)
		send_answer(r);
	send_lines(c);
	if (c->fd >= 0 && !c->post.body && fds[ON_CALLER].revents & ~POLLOUT) {
		ssize_t got = byte_queue_receive(&c->in, c->fd, CHUNK);
		if (got <= 0 && got != -EAGAIN)
			lose_caller(c, GONE);
	}
	answer_all(r);
}
