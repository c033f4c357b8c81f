/* SPDX-License-Identifier: Apache-2.0 */
/* The calls of one run, as lines of a socket. */
#include "runtime/front/mcp/upstream/broker.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/scope.h"
#include "runtime/jail/supervise/calls.h"

#define LINE_SLACK 1024 /* of a call's line, beside what the program wrote */

struct broker_call {
	TAILQ_ENTRY(broker_call) link;
	struct broker_stream *stream;
	uint64_t id;
	struct upstream_call of;
	char arguments[]; /* of.size bytes, and a NUL */
};

/* --- answers -------------------------------------------------------------------------------- */

/* One of `value` and `error` is there. */
static void answer(struct broker_stream *s, uint64_t id, const struct json_node *value,
		   const char *error)
{
	auto_json_writer struct json_writer *w = json_writer_create(false);
	struct cj_error err = { 0 };
	const char *text = NULL;
	size_t size = 0;

	json_open_object(w);
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
		mcp_stdio_put(&s->stdio, text, size, false);
	else if (error)
		s->stdio.is_over = true; /* no memory: else the program would wait */
	else
		answer(s, id, NULL,
		       is_whole ? "the answer is larger than 16 MiB; ask for less"
				: "there is no memory for the answer");
}

/* --- calls ----------------------------------------------------------------------------------- */

static void destroy(struct broker_call *c)
{
	TAILQ_REMOVE(&c->stream->calls, c, link);
	c->stream->ncalls--;
	free(c);
}

static void on_done(struct upstream_call *of, const struct json_node *value, const char *error)
{
	struct broker_call *c = watch_owner(of, struct broker_call, of);

	answer(c->stream, c->id, value, value ? NULL : error);
	destroy(c);
}

static struct broker_call *find_call(struct broker_stream *s, uint64_t id)
{
	struct broker_call *c;

	TAILQ_FOREACH(c, &s->calls, link)
		if (c->id == id)
			return c;
	return NULL;
}

static void begin_call(struct broker_stream *s, uint64_t id, const struct broker_tool *tool,
		       struct blob arguments)
{
	struct broker_call *c = calloc(1, sizeof(*c) + arguments.size + 1);

	if (!c) {
		answer(s, id, NULL, "there is no memory for the call");
		return;
	}
	memcpy(c->arguments, arguments.bytes, arguments.size);
	c->stream = s;
	c->id = id;
	c->of = (struct upstream_call){ .tool = tool->name,
					.arguments = c->arguments,
					.size = arguments.size,
					.done = on_done };
	TAILQ_INSERT_TAIL(&s->calls, c, link);
	s->ncalls++;
	upstream_call(tool->server, &c->of);
}

static void end_call(struct broker_stream *s, uint64_t id, const char *why)
{
	struct broker_call *c = find_call(s, id);

	if (!c) /* answered already */
		return;
	upstream_forget(&c->of, why);
	destroy(c);
}

static void take_call(struct broker_stream *s, struct blob line, const struct json_node *root,
		      uint64_t id)
{
	const char *name = json_get_text(root, "name");
	const struct json_node *arguments = json_get(root, "arguments");
	struct blob raw = { "{}", 2 };
	const struct broker_tool *tool = name ? broker_find(s->broker, name) : NULL;

	if (arguments)
		raw = (struct blob){ line.bytes + arguments->begin,
				     arguments->end - arguments->begin };
	if (find_call(s, id))
		answer(s, id, NULL, "a call with this id is not answered yet");
	else if (!tool)
		answer(s, id, NULL, "there is no such tool; tools.describe() lists them");
	else if (arguments && arguments->type != JSON_OBJECT)
		answer(s, id, NULL, "the arguments must be an object");
	else if (s->ncalls >= CALLS_OUTSTANDING_MAX)
		answer(s, id, NULL, "too many calls wait; wait for some of their answers");
	else
		begin_call(s, id, tool, raw);
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
	if (why)
		end_call(s, id, why);
	else
		take_call(s, (struct blob){ text, size }, root, id);
}

static void on_cut(struct mcp_stdio *stdio, struct blob head, struct blob tail)
{
	(void)head;
	(void)tail;
	stdio->is_over = true;
}

/* --- open, close ------------------------------------------------------------------------------ */

int broker_stream_open(struct broker_stream *s, struct broker *b, int fd, struct cj_error *err)
{
	s->broker = b;
	TAILQ_INIT(&s->calls);
	s->stdio =
	    (struct mcp_stdio){ .loop = b->loop, .owner = s, .line = on_line, .cut = on_cut };
	return mcp_stdio_open_fds(&s->stdio, fd, fd, err);
}

bool broker_stream_is_over(const struct broker_stream *s)
{
	return s->stdio.is_over;
}

void broker_stream_close(struct broker_stream *s)
{
	struct broker_call *c;

	while ((c = TAILQ_FIRST(&s->calls)) != NULL)
		end_call(s, c->id, "cancelled");
	mcp_stdio_close(&s->stdio);
}
