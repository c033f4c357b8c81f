/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of tools.  Acts. */
#include "runtime/front/mcp/calls/mcp_call.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/clock.h"
#include "runtime/base/scope.h"
#include "runtime/front/mcp/protocol/mcp_answer.h"
#include "runtime/front/serve/loop.h"

/* A call that did not run, or has no result. */
static void send_refusal(struct mcp_call *c, const struct cj_error *why)
{
	auto_json_writer struct json_writer *w = json_writer_create(false);
	char text[CJ_ERROR_MSG_MAX + CJ_ERROR_HINT_MAX + 8];

	(void)snprintf(text, sizeof(text), why->hint[0] ? "%s (%s)" : "%s%s", why->msg, why->hint);
	if (w)
		mcp_answer_put_refusal(w, &c->id, c->era, text);
	c->ops->send(c, w, false);
}

/* --- events and the end ---------------------------------------------------------------- */

static void on_event(struct mcp_run *r, const char *line, size_t size)
{
	struct mcp_call *c = watch_owner(r, struct mcp_call, run);
	auto_json_writer struct json_writer *w = json_writer_create(false);

	if (w && !c->is_cancelled && mcp_progress_note(&c->progress, line, size, clock_ms(), w))
		c->ops->send(c, w, true);
}

static int read_result(const char *text, size_t size, struct arena *a, const struct json_node **out,
		       struct cj_error *err)
{
	if (json_parse_capped("the result", text, size, a, out, err) < 0)
		return -err->code;
	return json_get_text(*out, "status") ? 0 : cj_reject(err, "the result has no status");
}

static void send_result(struct mcp_call *c, const char *text, size_t size)
{
	auto_arena struct arena a = { 0 };
	auto_json_writer struct json_writer *w = json_writer_create(false);
	struct mcp_answer answer = { .id = c->id, .era = c->era, .tool = &c->tool };
	struct mcp_stored stored = { .directory = NULL };
	struct cj_error err = { 0 };

	if (w && read_result(text, size, &a, &answer.result, &err) < 0) {
		send_refusal(c, &err);
		return;
	}
	if (w) {
		if (c->ops->see)
			c->ops->see(c, answer.result, &a, &stored);
		answer.directory = stored.directory;
		answer.stored = &stored.paths;
		answer.warnings = &stored.warnings;
		mcp_answer_put(w, &answer);
	}
	c->ops->send(c, w, false);
}

static void on_done(struct mcp_run *r, const char *result, size_t size, const char *why)
{
	struct mcp_call *c = watch_owner(r, struct mcp_call, run);
	struct cj_error err = { 0 };

	if (!c->is_cancelled && result) {
		send_result(c, result, size);
	} else if (!c->is_cancelled) {
		(void)!cj_reject(&err, "the run has no result: %s", why);
		send_refusal(c, &err);
	}
	c->ops->over(c);
}

/* --- the start --------------------------------------------------------------------------- */

static int write_request(struct mcp_call *c, const struct mcp_asked *asked,
			 const struct mcp_given *given, char **out, size_t *out_size,
			 struct cj_error *err)
{
	auto_json_writer struct json_writer *w = json_writer_create(false);
	const char *text = NULL;

	if (!w)
		return cj_fail(err, ENOMEM, "read the arguments");
	if (mcp_arguments_write(w, &c->tool, given, asked->arguments, c->run.id, err) < 0 ||
	    json_writer_take(w, &text, out_size, err) < 0)
		return -err->code;
	*out = strndup(text, *out_size);
	return *out ? 0 : cj_fail(err, ENOMEM, "read the arguments");
}

static int start(struct mcp_call *c, const struct mcp_asked *asked, const struct mcp_given *given,
		 struct cj_error *err)
{
	char *request = NULL;
	size_t size = 0;

	if (plan_mint_id(c->run.id, err) < 0 ||
	    write_request(c, asked, given, &request, &size, err) < 0)
		return -err->code;
	return c->place->start(c->place->context, &c->run, request, size, err);
}

void mcp_call_begin(struct mcp_call *c, const struct mcp_asked *asked,
		    const struct mcp_given *given)
{
	struct cj_error err = { 0 };

	c->id = asked->id;
	c->era = asked->era;
	c->tool = *asked->tool;
	mcp_progress_init(&c->progress, &asked->progress, c->tool.wall_ms, clock_ms());
	c->run = (struct mcp_run){ .profile = c->tool.profile,
				   .wants_events = asked->progress.kind != MCP_ID_NONE,
				   .wall_ms = c->tool.wall_ms,
				   .output_bytes = c->tool.output_bytes,
				   .traceparent = asked->traceparent,
				   .event = on_event,
				   .done = on_done };
	if (start(c, asked, given, &err) == 0)
		return;
	send_refusal(c, &err);
	c->ops->over(c);
}

void mcp_call_cancel(struct mcp_call *c)
{
	c->is_cancelled = true;
	c->place->cancel(c->place->context, &c->run);
}

int mcp_call_beat(struct mcp_call *c)
{
	auto_json_writer struct json_writer *w = NULL;
	uint64_t now = clock_ms();

	if (c->is_cancelled || !c->run.wants_events)
		return -1;
	w = json_writer_create(false);
	if (w && mcp_progress_beat(&c->progress, now, w))
		c->ops->send(c, w, true);
	return mcp_progress_wait(&c->progress, now);
}
