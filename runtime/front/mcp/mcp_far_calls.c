/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/front/mcp/mcp_far.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/clock.h"
#include "runtime/base/scope.h"
#include "runtime/front/client/call_event.h"

struct far_answer {
	TAILQ_ENTRY(far_answer) link;
	uint64_t id;
	bool is_refusal; /* an error of ours in place of the answer */
	size_t size;
	char body[];
};

static void send_first(struct far_calls *c);

static struct far_answer *copy_answer(uint64_t id, const char *text, size_t size)
{
	struct far_answer *a = text ? malloc(sizeof(*a) + size) : NULL;

	if (!a)
		return NULL;
	*a = (struct far_answer){ .id = id, .size = size };
	memcpy(a->body, text, size);
	return a;
}

static void drop(struct far_calls *c, struct far_answer *a)
{
	TAILQ_REMOVE(&c->answers, a, link);
	c->nanswers--;
	free(a);
}

static void drop_first(struct far_calls *c)
{
	drop(c, TAILQ_FIRST(&c->answers));
	send_first(c);
}

/* The call has ended: nobody waits for its answer, which may be under way. */
static void drop_late(struct far_calls *c, uint64_t id)
{
	struct far_answer *a, *next;

	for (a = TAILQ_FIRST(&c->answers); a; a = next) {
		next = TAILQ_NEXT(a, link);
		if (a->id == id && a != TAILQ_FIRST(&c->answers))
			drop(c, a);
	}
}

static void refuse_first(struct far_calls *c, unsigned status)
{
	struct far_answer *a = TAILQ_FIRST(&c->answers);
	char text[160];
	const int size = snprintf(text, sizeof(text),
				  "{\"error\":{\"message\":\"the service does not take the answer "
				  "of %zu bytes: HTTP status %u\"}}",
				  a->size, status);
	struct far_answer *refusal = copy_answer(a->id, text, (size_t)size);

	if (refusal) {
		refusal->is_refusal = true;
		TAILQ_INSERT_AFTER(&c->answers, a, refusal, link);
		c->nanswers++;
	}
	c->has_no_memory |= !refusal;
	drop_first(c);
}

static void on_posted(struct far_request *q, const struct cj_error *err)
{
	struct far_calls *c = watch_owner(q, struct far_calls, post);
	uint64_t wait_ms = 0;
	const enum call_reply reply = call_event_reply(&q->answer, err->code == 0, &wait_ms);

	far_request_close(q);
	if (reply == CALL_REPLY_LATER)
		c->retry_at_ms = clock_ms() + wait_ms;
	else if (reply == CALL_REPLY_TAKEN || TAILQ_FIRST(&c->answers)->is_refusal)
		drop_first(c);
	else
		refuse_first(c, q->answer.status);
}

static void send_first(struct far_calls *c)
{
	const struct far_answer *a = TAILQ_FIRST(&c->answers);
	char target[sizeof(c->url) + 32];
	struct cj_error ignored = { 0 };

	c->retry_at_ms = 0;
	if (!a)
		return;
	(void)snprintf(target, sizeof(target), "%s/calls/%" PRIu64, c->url, a->id);
	const struct remote_message message = { .method = "POST",
						.path = target,
						.accept = "application/json",
						.body = a->body,
						.size = a->size,
						.agent = "cejail-mcp" };
	if (far_request_start(&c->post, &message, &ignored) < 0)
		c->retry_at_ms = clock_ms() + CALL_RETRY_MS;
}

static void on_answer(struct broker_calls *calls, uint64_t id, const char *text, size_t size)
{
	struct far_calls *c = watch_owner(calls, struct far_calls, calls);
	const bool is_first = TAILQ_EMPTY(&c->answers);
	struct far_answer *a = copy_answer(id, text, size);

	c->has_no_memory |= !a;
	if (!a)
		return;
	TAILQ_INSERT_TAIL(&c->answers, a, link);
	c->nanswers++;
	if (is_first)
		send_first(c);
}

static int begin(struct far_calls *c, char *line, size_t size, struct cj_error *err)
{
	auto_arena struct arena a = { 0 };
	struct call_event event;

	if (call_event_read(line, size, c->last_id, &a, &event, err) < 0)
		return -err->code;
	/* one more: the call whose answer is under way may have ended */
	if (c->calls.count + c->nanswers > CALLS_OUTSTANDING_MAX)
		return cj_reject(err, "the service sent too many calls at a time");
	c->last_id = event.id;
	broker_call_begin(&c->calls, event.id, event.name, event.arguments);
	return 0;
}

static int end(struct far_calls *c, const char *line, size_t size, struct cj_error *err)
{
	auto_arena struct arena a = { 0 };
	const struct json_node *event = NULL;
	uint64_t id = 0;

	if (json_parse("the service's event", line, size, &a, &event, err) < 0)
		return -err->code;
	const char *outcome = json_get_text(event, "outcome");
	if (outcome && json_get_u64(event, "call", &id)) {
		broker_call_end(&c->calls, id, outcome);
		drop_late(c, id);
	}
	return 0;
}

int far_calls_take(struct far_calls *c, char *line, size_t size, struct cj_error *err)
{
	return call_event_is(line, size) ? begin(c, line, size, err) : end(c, line, size, err);
}

void far_calls_open(struct far_calls *c, struct loop *loop, const char *socket_path,
		    struct broker *broker, const struct mcp_run *run)
{
	const char *session = run->request->session;

	*c = (struct far_calls){
		.calls = { .broker = broker, .answer = on_answer },
		.post = { .loop = loop,
			  .socket_path = socket_path,
			  .end = on_posted,
			  .watch = WATCH_NULL,
			  .fd = -1 },
	};
	TAILQ_INIT(&c->calls.list);
	TAILQ_INIT(&c->answers);
	if (session[0])
		(void)snprintf(c->url, sizeof(c->url), "/v1/sessions/%s/execs/%s", session,
			       run->id);
	else
		(void)snprintf(c->url, sizeof(c->url), "/v1/runs/%s", run->id);
}

int far_calls_tick(struct far_calls *c, uint64_t now_ms)
{
	if (c->retry_at_ms > 0 && now_ms >= c->retry_at_ms)
		send_first(c);
	return c->retry_at_ms > now_ms ? (int)(c->retry_at_ms - now_ms) : -1;
}

void far_calls_close(struct far_calls *c)
{
	if (!c->calls.broker)
		return;
	broker_calls_cancel(&c->calls);
	far_request_close(&c->post);
	while (!TAILQ_EMPTY(&c->answers))
		drop(c, TAILQ_FIRST(&c->answers));
}
