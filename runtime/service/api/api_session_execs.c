/* SPDX-License-Identifier: Apache-2.0 */
/* /v1/sessions/ID/execs. */

#include "runtime/base/clock.h"
#include "runtime/base/json/json.h"
#include "runtime/service/api/api_parts.h"
#include "runtime/service/sessions/keeper_conn.h"
#include "runtime/service/sessions/sessions.h"

static struct exec_entry *find_exec(struct api_call *c)
{
	struct session_entry *e = api_find_session(c);
	struct exec_entry *x = e ? sessions_find_exec(e, c->names.ids[1]) : NULL;

	if (e && !x)
		exchange_refuse(c->exchange, API_NOT_FOUND, "the session has no such exec",
				"it remembers its last 32 finished execs");
	return x;
}

static void reply(struct api_call *c, unsigned status, const struct exec_entry *x)
{
	auto_json_writer struct json_writer *w = json_writer_create(false);

	sessions_json_put_exec(w, x);
	exchange_reply_json(c->exchange, status, w);
}

static bool fits_session(struct posted *p, const struct session_entry *e)
{
	struct cj_error err = { 0 };

	if (e->is_repl && p->request.has_code && p->request.open_stdin) {
		cj_refuse(&err, "open_stdin: a cell of a 'repl' has no standard input");
		cj_hint(&err, "send a command instead of code");
		return api_refuse(p->call, API_BAD_REQUEST, &err);
	}
	return api_is_admitted(p->call, sessions_admit_exec(e));
}

static void take(struct posted *p, struct session_entry *e, const char *id)
{
	struct api_call *c = p->call;
	bool is_detached = p->request.detach;
	struct exec_order order = { .run = posted_order(p, JOB_EXEC, id),
				    .exchange = is_detached ? NULL : c->exchange,
				    .is_cell = e->is_repl && p->request.has_code,
				    .has_stdin = p->request.open_stdin };
	struct exec_entry *x = NULL;
	struct cj_error err = { 0 };

	order.run.audit_required |= e->order.audit_required;
	order.run.job.wants_events &= !is_detached;
	/* without a way for its calls it has none, so that a plain exec works in each session */
	order.run.job.session_tools = e->has_tools && !p->request.tools_json &&
				      !p->request.refuses_tools && posted_may_call(p);
	order.run.job.has_tools |= order.run.job.session_tools;
	enum api_code why = sessions_exec(e, &order, &x, &err);
	if (why != API_OK)
		(void)api_refuse(c, why, why == API_INTERNAL ? &err : NULL);
	else if (is_detached)
		reply(c, 202, x);
}

void api_post_exec(struct api_call *c)
{
	struct posted p;
	char id[PLAN_ID_MAX];

	posted_init(&p, c);
	struct session_entry *e = api_find_live_session(c);
	if (e && posted_is_accepted(&p) && posted_parse(&p, REQUEST_EXEC, e) &&
	    posted_validate(&p, &e->config) && posted_is_answerable(&p) && fits_session(&p, e) &&
	    posted_has_room(&p, id))
		take(&p, e, id);
	posted_fini(&p);
}

void api_list_execs(struct api_call *c)
{
	const struct session_entry *e = api_find_session(c);
	const struct exec_entry *x;

	if (!e)
		return;
	auto_json_writer struct json_writer *w = json_writer_create(false);
	json_open_object(w);
	json_member_array(w, "execs");
	TAILQ_FOREACH(x, &e->execs, link)
		sessions_json_put_exec(w, x);
	json_close_array(w);
	json_close_object(w);
	exchange_reply_json(c->exchange, 200, w);
}

void api_show_exec(struct api_call *c)
{
	struct api_query query;
	struct cj_error err = { 0 };

	if (api_query_parse(exchange_query(c->exchange), PARAMETER_WAIT, &query, &err) < 0) {
		(void)api_refuse(c, API_BAD_REQUEST, &err);
		return;
	}
	struct exec_entry *x = find_exec(c);
	if (x)
		sessions_await_exec(x, c->exchange, clock_ms() + query.wait_ms);
}

void api_cancel_exec(struct api_call *c)
{
	struct exec_entry *x = find_exec(c);

	if (x && x->is_finished) {
		sessions_kill_left(x);
		reply(c, 200, x);
	} else if (x) {
		execution_cancel(x->run);
		x = find_exec(c); /* a queued one is finished now, and may be forgotten already */
		if (x)
			reply(c, 202, x);
	}
}

void api_signal_exec(struct api_call *c)
{
	auto_arena struct arena a = { 0 };
	struct exec_entry *x = find_exec(c);
	struct api_body body = { 0 };

	if (x && api_body_take(c, API_BODY_SIGNAL, &a, &body) &&
	    api_is_admitted(c, sessions_signal_exec(x, body.signo)))
		reply(c, 202, x);
}

void api_answer_exec_call(struct api_call *c)
{
	struct exec_entry *x = find_exec(c);

	if (x)
		api_take_answer(c, x->run, x->last_call, c->names.ids[2]);
}

static void reply_fed(struct api_call *c, const struct exec_entry *x, size_t accepted,
		      size_t buffered, bool is_end)
{
	auto_json_writer struct json_writer *w = json_writer_create(false);

	json_open_object(w);
	json_member_text(w, "id", x->id);
	json_member_u64(w, "accepted", accepted);
	json_member_u64(w, "buffered", buffered);
	json_member_bool(w, "eof", is_end);
	json_close_object(w);
	exchange_reply_json(c->exchange, 200, w);
}

static void refuse_input(struct api_call *c, enum api_code why)
{
	exchange_refuse(
	    c->exchange, why,
	    why == API_NOT_RUNNING ? "the exec has ended, or its standard input is closed" : NULL,
	    NULL);
}

void api_feed_exec(struct api_call *c)
{
	auto_arena struct arena a = { 0 };
	struct exec_entry *x = find_exec(c);
	struct api_body body = { .max = SESSION_STDIN_MAX };
	size_t buffered = 0;

	if (!x || !api_body_take(c, API_BODY_STDIN, &a, &body))
		return;
	enum api_code why = sessions_feed_exec(x, body.bytes, body.is_end, &buffered);
	if (why == API_OK)
		reply_fed(c, x, body.bytes.size, buffered, body.is_end);
	else
		refuse_input(c, why);
}

/* The head of the request is there, and its body is to come. */
void api_begin_stdin(struct api_call *c)
{
	struct exec_entry *x = find_exec(c);

	if (!x)
		return;
	enum api_code why = keeper_stream_exec(x, c->exchange, c->api->config->caps.stdin_bytes);
	if (why != API_OK)
		refuse_input(c, why);
}

void api_put_stdin(struct api_call *c)
{
	size_t accepted, buffered;

	if (!exchange_diverted_to(c->exchange)) { /* no MCP tool asks for it */
		exchange_refuse(c->exchange, API_INTERNAL, NULL, NULL);
		return;
	}
	const struct exec_entry *x = keeper_stream_whole(c->exchange, &accepted, &buffered);
	reply_fed(c, x, accepted, buffered, true);
}
