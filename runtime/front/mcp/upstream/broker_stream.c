/* SPDX-License-Identifier: Apache-2.0 */
/* The calls of one run, as lines of a socket. */
#include "runtime/front/mcp/upstream/broker.h"

#include "runtime/base/scope.h"
#include "runtime/jail/supervise/calls.h"

#define LINE_SLACK 1024 /* of a call's line, beside what the program wrote */

static void put_answer(struct broker_calls *c, uint64_t id, const char *text, size_t size)
{
	struct broker_stream *s = watch_owner(c, struct broker_stream, calls);

	(void)id;
	if (text)
		mcp_stdio_put(&s->stdio, text, size, false);
	else
		s->stdio.is_over = true; /* else the program would wait */
}

static void take_call(struct broker_stream *s, struct blob line, const struct json_node *root,
		      uint64_t id)
{
	const struct json_node *arguments = json_get(root, "arguments");
	struct blob raw = { "{}", 2 };

	if (arguments)
		raw = (struct blob){ line.bytes + arguments->begin,
				     arguments->end - arguments->begin };
	if (arguments && arguments->type != JSON_OBJECT)
		raw.bytes = NULL;
	broker_call_begin(&s->calls, id, json_get_text(root, "name"), raw);
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
		broker_call_end(&s->calls, id, why);
	else
		take_call(s, (struct blob){ text, size }, root, id);
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

bool broker_stream_is_over(const struct broker_stream *s)
{
	return s->stdio.is_over;
}

void broker_stream_close(struct broker_stream *s)
{
	broker_calls_cancel(&s->calls);
	mcp_stdio_close(&s->stdio);
}
