/* SPDX-License-Identifier: Apache-2.0 */
/* The calls of one run, from wherever they come. */
#include "runtime/front/mcp/upstream/broker.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/scope.h"
#include "runtime/jail/supervise/calls.h"

struct broker_call {
	TAILQ_ENTRY(broker_call) link;
	struct broker_calls *all;
	uint64_t id;
	struct upstream_call of;
	char arguments[]; /* of.size bytes, and a NUL */
};

/* One of `value` and `error` is there. */
static void answer(struct broker_calls *c, uint64_t id, const struct json_node *value,
		   const char *error)
{
	auto_json_writer struct json_writer *w = json_writer_create(false);
	struct cj_error err = { 0 };
	const char *text = NULL;
	size_t size = 0;

	json_open_object(w);
	if (c->puts_ids)
		json_member_u64(w, "id", id);
	if (error) {
		json_member_object(w, "error");
		json_member_text(w, "message", error);
		json_close_object(w);
	} else {
		json_member_node(w, "result", value);
	}
	json_close_object(w);
	bool is_whole = w && json_writer_take(w, &text, &size, &err) == 0;
	if (is_whole && size < CALL_ANSWER_MAX)
		c->answer(c, id, text, size);
	else if (error)
		c->answer(c, id, NULL, 0);
	else
		answer(c, id, NULL,
		       is_whole ? "the answer is larger than 16 MiB; ask for less"
				: "there is no memory for the answer");
}

static void destroy(struct broker_call *call)
{
	TAILQ_REMOVE(&call->all->list, call, link);
	call->all->count--;
	free(call);
}

static void on_done(struct upstream_call *of, const struct json_node *value, const char *error)
{
	struct broker_call *call = watch_owner(of, struct broker_call, of);

	answer(call->all, call->id, value, value ? NULL : error);
	destroy(call);
}

static struct broker_call *find_call(struct broker_calls *c, uint64_t id)
{
	struct broker_call *call;

	TAILQ_FOREACH(call, &c->list, link)
		if (call->id == id)
			return call;
	return NULL;
}

static void begin(struct broker_calls *c, uint64_t id, const struct broker_tool *tool,
		  struct blob arguments)
{
	struct broker_call *call = calloc(1, sizeof(*call) + arguments.size + 1);

	if (!call) {
		answer(c, id, NULL, "there is no memory for the call");
		return;
	}
	memcpy(call->arguments, arguments.bytes, arguments.size);
	call->all = c;
	call->id = id;
	call->of = (struct upstream_call){ .tool = tool->name,
					   .arguments = call->arguments,
					   .size = arguments.size,
					   .done = on_done };
	TAILQ_INSERT_TAIL(&c->list, call, link);
	c->count++;
	upstream_call(tool->server, &call->of);
}

void broker_call_begin(struct broker_calls *c, uint64_t id, const char *name, struct blob arguments)
{
	const struct broker_tool *tool = name ? broker_find(c->broker, name) : NULL;

	if (find_call(c, id))
		answer(c, id, NULL, "a call with this id is not answered yet");
	else if (!tool)
		answer(c, id, NULL, "there is no such tool; tools.describe() lists them");
	else if (!arguments.bytes)
		answer(c, id, NULL, "the arguments must be an object");
	else if (c->count >= CALLS_OUTSTANDING_MAX)
		answer(c, id, NULL, "too many calls wait; wait for some of their answers");
	else
		begin(c, id, tool, arguments);
}

void broker_call_end(struct broker_calls *c, uint64_t id, const char *why)
{
	struct broker_call *call = find_call(c, id);

	if (!call)
		return;
	upstream_forget(&call->of, why);
	destroy(call);
}

void broker_calls_cancel(struct broker_calls *c)
{
	struct broker_call *call;

	while ((call = TAILQ_FIRST(&c->list)) != NULL)
		broker_call_end(c, call->id, "cancelled");
}
