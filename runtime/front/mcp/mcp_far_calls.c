/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/front/mcp/mcp_far.h"

#include <stdio.h>

#include "runtime/base/scope.h"

static void on_answer(struct broker_calls *calls, uint64_t id, const char *text, size_t size)
{
	struct far_calls *c = watch_owner(calls, struct far_calls, calls);
	call_answers_add(&c->answers, id, text, size);
}

static int begin(struct far_calls *c, char *line, size_t size, struct cj_error *err)
{
	auto_arena struct arena a = { 0 };
	struct call_event event;

	if (call_event_read(line, size, c->last_id, &a, &event, err) < 0)
		return -err->code;
	/* one more: the call whose answer is under way may have ended */
	if (c->calls.count + c->answers.count > CALLS_OUTSTANDING_MAX)
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
		call_answers_drop(&c->answers, id);
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

	*c = (struct far_calls){ .calls = { .broker = broker, .answer = on_answer } };
	TAILQ_INIT(&c->calls.list);
	call_answers_open(&c->answers, loop, socket_path, c->url);
	c->answers.agent = "cejail-mcp";
	if (session[0])
		(void)snprintf(c->url, sizeof(c->url), "/v1/sessions/%s/execs/%s", session,
			       run->id);
	else
		(void)snprintf(c->url, sizeof(c->url), "/v1/runs/%s", run->id);
}

void far_calls_close(struct far_calls *c)
{
	if (!c->calls.broker)
		return;
	broker_calls_cancel(&c->calls);
	call_answers_close(&c->answers);
}
