/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of tools. */
#include "runtime/run/mcp/calls/mcp_call.h"

#include "runtime/base/clock.h"
#include "runtime/base/scope.h"
#include "runtime/base/loop.h"

/* The answer to the request, or if that is answered, the result of the task. */
static void send_answer(struct mcp_call *c, struct json_writer *w)
{
	struct cj_error ignored = { 0 };
	struct blob text = { 0 };

	if (!c->task) {
		c->ops->send(c, w, false);
		return;
	}
	(void)json_writer_take(w, &text, &ignored); /* without memory it stays empty */
	mcp_task_end(c->tasks, c->task, text.bytes, text.size, false);
}

static void end_call(struct mcp_call *c)
{
	if (c->task && c->task->call)
		mcp_task_end(c->tasks, c->task, NULL, 0, true);
	c->ops->over(c);
}

/* A call that did not run, or has no result. */
static void send_refusal(struct mcp_call *c, const struct cj_error *why)
{
	auto_json_writer struct json_writer *w = json_writer_create(false);
	char text[CJ_ERROR_TEXT_MAX];
	const struct mcp_frame frame = { &c->id, c->era, .is_error = true,
					 .text = cj_error_text(why, text) };

	if (w)
		mcp_answer_put_frame(w, &frame);
	send_answer(c, w);
}

static void send_progress(struct mcp_call *c, uint64_t now_ms)
{
	auto_json_writer struct json_writer *w = json_writer_create(false);

	if (w && mcp_progress_beat(&c->progress, now_ms, w))
		c->ops->send(c, w, true);
}

static void on_event(struct mcp_run *r, const char *line, size_t size)
{
	struct mcp_call *c = watch_owner(r, struct mcp_call, run);

	if (c->is_cancelled || c->task)
		return;
	mcp_progress_note(&c->progress, line, size);
	send_progress(c, clock_ms());
}

static void send_result(struct mcp_call *c, const char *text, size_t size)
{
	auto_arena struct arena a = { 0 };
	auto_json_writer struct json_writer *w = json_writer_create(false);
	struct mcp_stored stored = { .directory = NULL };
	struct mcp_answer answer = {
		.id = c->id, .era = c->era, .tool = &c->tool, .stored = &stored
	};
	struct cj_error err = { 0 };

	int rc = w ? json_parse_capped("the result", text, size, &a, &answer.result, &err) : 0;
	if (w && rc == 0 && !json_get_text(answer.result, "status"))
		rc = cj_reject(&err, "the result has no status");
	if (rc < 0) {
		send_refusal(c, &err);
		return;
	}
	if (w) {
		if (c->ops->see)
			c->ops->see(c, answer.result, &a, &stored);
		mcp_answer_put(w, &answer);
	}
	send_answer(c, w);
}

/* Of a tool that runs no program. */
static void send_reply(struct mcp_call *c, const char *reply, size_t size)
{
	auto_json_writer struct json_writer *w = json_writer_create(false);
	const struct mcp_session_answer answer = { .id = c->id,
						   .era = c->era,
						   .kind = c->tool.kind,
						   .session = c->session,
						   .path = c->path,
						   .has_length = c->has_length };
	struct cj_error err = { 0 };

	if (w && mcp_session_answer_put(w, &answer, reply, size, &err) < 0)
		send_refusal(c, &err);
	else
		send_answer(c, w);
}

static bool has_result(const struct mcp_call *c)
{
	return c->tool.kind == MCP_TOOL_RUN || c->tool.kind == MCP_TOOL_SESSION_EXEC;
}

static void on_done(struct mcp_run *r, const char *reply, size_t size, const char *why)
{
	struct mcp_call *c = watch_owner(r, struct mcp_call, run);
	struct cj_error err = { 0 };

	if (!c->is_cancelled && reply && has_result(c)) {
		send_result(c, reply, size);
	} else if (!c->is_cancelled && reply) {
		send_reply(c, reply, size);
	} else if (!c->is_cancelled) {
		cj_refuse(&err, "%s%s", has_result(c) ? "the run has no result: " : "", why);
		send_refusal(c, &err);
	}
	end_call(c);
}

static int start(struct mcp_call *c, const struct mcp_asked *asked, const struct mcp_given *given,
		 struct cj_error *err)
{
	struct mcp_request request = { .body = NULL };
	struct mcp_given known = *given;
	const char *session = json_get_text(asked->arguments, "session");
	const char *path = json_get_text(asked->arguments, "path");

	if (session && c->place->profile_of)
		known.session_profile = c->place->profile_of(c->place->context, session);
	int rc = plan_mint_id(c->run.id, err);
	if (rc == 0)
		rc =
		    mcp_request_write(&request, &c->tool, &known, asked->arguments, c->run.id, err);
	if (rc == 0) {
		(void)snprintf(c->session, sizeof(c->session), "%s", session ? session : "");
		(void)snprintf(c->path, sizeof(c->path), "%s", path ? path : "");
		c->has_length = mcp_member(asked->arguments, "length") != NULL;
		c->tool.runs = NULL; /* they may be freed before the call ends */
		c->tool.nruns = 0;
		c->run.request = &request;
		rc = c->place->start(c->place->context, &c->run, take_ptr(request.body),
				     request.size, err);
	}
	cj_free(&request.body);
	return rc;
}

void mcp_call_begin(struct mcp_call *c, const struct mcp_asked *asked,
		    const struct mcp_given *given)
{
	struct cj_error err = { 0 };

	c->id = asked->id;
	c->era = asked->era;
	c->tool = *asked->tool;
	c->task_at_ms = asked->takes_tasks && has_result(c) ? clock_ms() + MCP_TASK_AFTER_MS : 0;
	mcp_progress_init(&c->progress, &asked->progress, c->tool.limits.wall_ms, clock_ms());
	c->run =
	    (struct mcp_run){ .profile = c->tool.profile,
			      .wants_events = has_result(c) && asked->progress.kind != MCP_ID_NONE,
			      .traceparent = asked->traceparent,
			      .event = on_event,
			      .done = on_done };
	if (start(c, asked, given, &err) == 0)
		return;
	send_refusal(c, &err);
	end_call(c);
}

void mcp_call_cancel(struct mcp_call *c)
{
	c->is_cancelled = true;
	c->place->cancel(c->place->context, &c->run);
}

int mcp_call_beat(struct mcp_call *c)
{
	uint64_t now = clock_ms();
	int wait_ms = -1;

	if (c->task_at_ms > 0 && now >= c->task_at_ms && !c->is_cancelled) {
		auto_json_writer struct json_writer *w = json_writer_create(false);
		c->task_at_ms = 0;
		c->task = w ? mcp_tasks_add(c->tasks, c->caller, c->run.id, c) : NULL;
		if (c->task) { /* else the client waits on */
			mcp_task_put_created(w, &c->id, c->task);
			c->ops->send(c, w, false);
		}
	}
	if (c->is_cancelled || c->task)
		return -1;
	if (c->task_at_ms > 0)
		wait_ms = (int)(c->task_at_ms - now);
	if (!c->run.wants_events)
		return wait_ms;
	send_progress(c, now);
	return loop_sooner(wait_ms, mcp_progress_wait(&c->progress, now));
}
