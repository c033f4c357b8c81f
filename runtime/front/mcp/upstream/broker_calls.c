/* SPDX-License-Identifier: Apache-2.0 */
/* The calls of one run, from wherever they come; and as lines of a socket. */
#include "runtime/front/mcp/upstream/broker.h"

#include "runtime/base/scope.h"
#include "runtime/jail/supervise/calls.h"

#define LINE_SLACK 1024 /* of a call's line, beside what the program wrote */

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
	struct blob text = { 0 };

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
	bool is_whole = json_writer_take(w, &text, &err) == 0;
	if (is_whole && text.size < CALL_ANSWER_MAX)
		c->answer(c, id, text.bytes, text.size);
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

/* --- broker_stream ------------------------------------------------------------------------ */

static void put_answer(struct broker_calls *c, uint64_t id, const char *text, size_t size)
{
	struct broker_stream *s = watch_owner(c, struct broker_stream, calls);

	(void)id;
	if (text)
		mcp_stdio_put(&s->stdio, text, size, false);
	else
		s->stdio.is_over = true; /* else the program would wait */
}

/* Only the engine writes here: a line that is no call of its protocol ends the stream. */
static void on_line(struct mcp_stdio *stdio, const char *text, size_t size)
{
	struct broker_stream *s = stdio->owner;
	auto_arena struct arena a = { 0 };
	const struct json_node *root = NULL;
	struct cj_error err = { 0 };
	uint64_t id = 0;

	if (size > CALL_LINE_MAX + LINE_SLACK ||
	    json_parse_capped("call", text, size, &a, &root, &err) < 0 ||
	    !json_get_u64(root, "id", &id)) {
		stdio->is_over = true;
		return;
	}
	const char *why = json_get_text(root, "ended");
	if (why) {
		broker_call_end(&s->calls, id, why);
		return;
	}
	const struct json_node *arguments = json_get(root, "arguments");
	struct blob raw = { "{}", 2 };
	if (arguments)
		raw = json_written(arguments, text);
	if (arguments && arguments->type != JSON_OBJECT)
		raw.bytes = NULL;
	broker_call_begin(&s->calls, id, json_get_text(root, "name"), raw);
}

static void on_cut(struct mcp_stdio *stdio, struct blob head, struct blob tail)
{
	(void)head;
	(void)tail;
	stdio->is_over = true;
}

int broker_stream_open(struct broker_stream *s, struct broker *b, int fd, struct cj_error *err)
{
	s->calls = (struct broker_calls){ .broker = b, .puts_ids = true, .answer = put_answer };
	TAILQ_INIT(&s->calls.list);
	s->stdio =
	    (struct mcp_stdio){ .loop = b->loop, .owner = s, .line = on_line, .cut = on_cut };
	return mcp_stdio_open_fds(&s->stdio, fd, fd, err);
}

void broker_stream_close(struct broker_stream *s)
{
	broker_calls_cancel(&s->calls);
	mcp_stdio_close(&s->stdio);
}
