/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of tools, and the loop.  Acts. */
#include "runtime/front/mcp/mcp_server.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "profiles/settings.h"
#include "runtime/base/clock.h"
#include "runtime/base/log.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"
#include "runtime/front/mcp/mcp_files.h"
#include "runtime/front/mcp/mcp_local.h"
#include "runtime/front/mcp/protocol/mcp_progress.h"
#include "runtime/front/mcp/mcp_remote.h"
#include "runtime/front/mcp/mcp_stdio.h"
#include "runtime/front/mcp/protocol/mcp_answer.h"
#include "runtime/front/mcp/protocol/mcp_arguments.h"
#include "runtime/front/mcp/protocol/mcp_protocol.h"
#include "runtime/jail/outcome.h"

struct call {
	LIST_ENTRY(call) link;
	struct server *server;
	struct mcp_id id;
	enum mcp_era era;
	const struct mcp_tool *tool;
	struct mcp_run run;
	struct mcp_progress progress;
	bool is_cancelled; /* no answer */
};

struct server {
	const struct mcp_given *given;
	struct loop loop;
	struct mcp_stdio stdio;
	struct mcp_protocol protocol;
	struct mcp_place place;
	struct mcp_files files;
	struct arena arena;
	LIST_HEAD(, call) calls;
	struct watch signals;
	int signal_fd;
	bool is_over;
	bool has_warned[DEGRADED_COUNT];
};

/* --- lines to the client -------------------------------------------------------------- */

static void send_line(struct server *v, struct json_writer *w, bool may_drop)
{
	struct cj_error err = { 0 };
	const char *text = NULL;
	size_t size = 0;

	if (json_writer_take(w, &text, &size, &err) < 0)
		v->is_over = true; /* no memory: the client would wait for ever */
	else
		mcp_stdio_put(&v->stdio, text, size, may_drop);
}

/* A call that did not run, or has no result. */
static void send_refusal(struct server *v, const struct mcp_id *id, enum mcp_era era,
			 const struct cj_error *why)
{
	auto_json_writer struct json_writer *w = json_writer_create(false);
	char text[CJ_ERROR_MSG_MAX + CJ_ERROR_HINT_MAX + 8];

	if (!w) {
		v->is_over = true;
		return;
	}
	(void)snprintf(text, sizeof(text), why->hint[0] ? "%s (%s)" : "%s%s", why->msg, why->hint);
	mcp_answer_put_refusal(w, id, era, text);
	send_line(v, w, false);
}

/* --- a call: its events and its end ---------------------------------------------------- */

static void destroy_call(struct call *c)
{
	LIST_REMOVE(c, link);
	free(c);
}

static void on_event(struct mcp_run *r, const char *line, size_t size)
{
	struct call *c = watch_owner(r, struct call, run);
	auto_json_writer struct json_writer *w = json_writer_create(false);

	if (w && !c->is_cancelled && mcp_progress_note(&c->progress, line, size, clock_ms(), w))
		send_line(c->server, w, true);
}

static int read_result(const char *text, size_t size, struct arena *a, const struct json_node **out,
		       struct cj_error *err)
{
	if (json_parse_capped("the result", text, size, a, out, err) < 0)
		return -err->code;
	return json_get_text(*out, "status") ? 0 : cj_reject(err, "the result has no status");
}

/* Once for each kind, on standard error. */
static void warn_user(struct server *v, const struct json_node *result)
{
	const struct json_node *list = json_get_typed(result, "warnings", JSON_ARRAY);

	for (const struct json_node *m = list ? list->child : NULL; m; m = m->next) {
		if (m->type != JSON_STRING || !mcp_answer_is_for_user(m->text) ||
		    v->has_warned[degraded_of(m->text)])
			continue;
		v->has_warned[degraded_of(m->text)] = true;
		log_warning("%s", m->text);
	}
}

static void send_result(struct call *c, const char *text, size_t size)
{
	auto_arena struct arena a = { 0 };
	auto_json_writer struct json_writer *w = json_writer_create(false);
	struct mcp_answer answer = { .id = c->id, .era = c->era, .tool = c->tool };
	struct mcp_stored stored;
	struct cj_error err = { 0 };

	if (!w || read_result(text, size, &a, &answer.result, &err) < 0) {
		if (!w)
			(void)!cj_fail(&err, ENOMEM, "write the answer");
		send_refusal(c->server, &c->id, c->era, &err);
		return;
	}
	warn_user(c->server, answer.result);
	mcp_files_store(&c->server->files, answer.result, &a, &stored);
	answer.directory = stored.directory;
	answer.stored = &stored.paths;
	answer.warnings = &stored.warnings;
	mcp_answer_put(w, &answer);
	send_line(c->server, w, false);
}

static void on_done(struct mcp_run *r, const char *result, size_t size, const char *why)
{
	struct call *c = watch_owner(r, struct call, run);
	struct cj_error err = { 0 };

	if (!c->is_cancelled && result) {
		send_result(c, result, size);
	} else if (!c->is_cancelled) {
		(void)!cj_reject(&err, "the run has no result: %s", why);
		send_refusal(c->server, &c->id, c->era, &err);
	}
	destroy_call(c);
}

/* --- a call: its start ------------------------------------------------------------------ */

static int write_request(struct server *v, const struct mcp_asked *asked, const char *run_id,
			 char **out, size_t *out_size, struct cj_error *err)
{
	auto_json_writer struct json_writer *w = json_writer_create(false);
	const char *text = NULL;

	if (!w)
		return cj_fail(err, ENOMEM, "read the arguments");
	if (mcp_arguments_write(w, asked->tool, v->given, asked->arguments, run_id, err) < 0 ||
	    json_writer_take(w, &text, out_size, err) < 0)
		return -err->code;
	*out = strndup(text, *out_size);
	return *out ? 0 : cj_fail(err, ENOMEM, "read the arguments");
}

static struct call *create_call(struct server *v, const struct mcp_asked *asked)
{
	struct call *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->server = v;
	c->id = asked->id;
	c->era = asked->era;
	c->tool = asked->tool;
	mcp_progress_init(&c->progress, &asked->progress, asked->tool->wall_ms, clock_ms());
	c->run = (struct mcp_run){ .profile = asked->tool->profile,
				   .wants_events = asked->progress.kind != MCP_ID_NONE,
				   .wall_ms = asked->tool->wall_ms,
				   .output_bytes = asked->tool->output_bytes,
				   .traceparent = asked->traceparent,
				   .event = on_event,
				   .done = on_done };
	LIST_INSERT_HEAD(&v->calls, c, link);
	return c;
}

static int begin_call(struct server *v, const struct mcp_asked *asked, struct cj_error *err)
{
	char run_id[PLAN_ID_MAX], *request = NULL;
	size_t size = 0;

	if (plan_mint_id(run_id, err) < 0 ||
	    write_request(v, asked, run_id, &request, &size, err) < 0)
		return -err->code;
	struct call *c = create_call(v, asked);
	if (!c) {
		free(request);
		return cj_fail(err, ENOMEM, "start the run");
	}
	memcpy(c->run.id, run_id, sizeof(run_id));
	int rc = v->place.start(v->place.context, &c->run, request, size, err);
	if (rc < 0)
		destroy_call(c);
	return rc;
}

static struct call *find_call(struct server *v, const struct mcp_id *id)
{
	struct call *c;

	LIST_FOREACH(c, &v->calls, link)
	if (!c->is_cancelled && mcp_id_equals(&c->id, id))
		return c;
	return NULL;
}

static void start_call(struct server *v, const struct mcp_asked *asked, struct json_writer *w)
{
	struct cj_error err = { 0 };
	struct mcp_fault fault;

	if (find_call(v, &asked->id)) {
		(void)!mcp_refuse(&fault, MCP_INVALID_REQUEST,
				  "a request with this id is not answered yet");
		mcp_put_fault(w, &asked->id, &fault);
		send_line(v, w, false);
		return;
	}
	if (begin_call(v, asked, &err) < 0)
		send_refusal(v, &asked->id, asked->era, &err);
}

static void cancel_call(struct server *v, const struct mcp_id *id)
{
	struct call *c = find_call(v, id);

	if (!c)
		return; /* answered already, or never asked */
	c->is_cancelled = true;
	v->place.cancel(v->place.context, &c->run);
}

/* --- lines from the client --------------------------------------------------------------- */

static void refuse_long_line(struct server *v, struct json_writer *w)
{
	const struct mcp_id none = { .kind = MCP_ID_NONE };
	struct mcp_fault fault;

	(void)!mcp_refuse(&fault, MCP_INVALID_REQUEST, "a message is larger than %u bytes",
			  MCP_LINE_MAX);
	mcp_put_fault(w, &none, &fault);
	send_line(v, w, false);
}

static void on_line(struct mcp_stdio *s, const char *text, size_t size)
{
	struct server *v = s->owner;
	auto_arena struct arena a = { 0 };
	auto_json_writer struct json_writer *w = json_writer_create(false);
	struct mcp_asked asked;

	if (!w) {
		v->is_over = true;
		return;
	}
	if (!text) {
		refuse_long_line(v, w);
		return;
	}
	if (strspn(text, " \t\r") == size)
		return;
	mcp_protocol_take(&v->protocol, text, size, &a, w, &asked);
	if (asked.action == MCP_ANSWER)
		send_line(v, w, false);
	else if (asked.action == MCP_CALL)
		start_call(v, &asked, w);
	else if (asked.action == MCP_CANCEL)
		cancel_call(v, &asked.id);
}

/* --- the loop ------------------------------------------------------------------------------ */

/* A client that counts progress does not give up on a program that is silent. */
static int tick_progress(struct server *v)
{
	uint64_t now = clock_ms();
	int wait_ms = -1;
	struct call *c;

	LIST_FOREACH(c, &v->calls, link)
	{
		auto_json_writer struct json_writer *w = json_writer_create(false);
		if (c->is_cancelled || !c->run.wants_events || !w)
			continue;
		if (mcp_progress_beat(&c->progress, now, w))
			send_line(v, w, true);
		wait_ms = loop_sooner(wait_ms, mcp_progress_wait(&c->progress, now));
	}
	return wait_ms;
}

static void on_signal(struct watch *w, uint32_t events)
{
	struct server *v = watch_owner(w, struct server, signals);

	(void)events;
	v->is_over = true;
}

static int watch_signals(struct server *v, struct cj_error *err)
{
	v->signal_fd = loop_watch_signals(&v->loop, &v->signals, on_signal, err);
	return v->signal_fd < 0 ? v->signal_fd : 0;
}

/* What a jail of these options has in common with others of its profile. */
static enum request_fit fit_of(const struct mcp_given *given)
{
	enum request_fit fit = FIT_INTERPRETER;

	for (size_t i = 0; i < settings_count; i++)
		if (given->wanted[i] && request_fit_of(&settings[i]) > fit)
			fit = request_fit_of(&settings[i]);
	return fit;
}

static int open_place(struct server *v, const struct mcp_setup *setup, struct spawner *spawner,
		      struct cj_error *err)
{
	const struct mcp_local_options local = { &v->loop, spawner, fit_of(v->given) };

	if (setup->socket)
		return mcp_remote_open(&v->loop, setup->socket, &v->place, err);
	return mcp_local_open(&local, &v->place, err);
}

static int open_server(struct server *v, const struct mcp_options *o, const struct mcp_setup *setup,
		       struct spawner *spawner, struct cj_error *err)
{
	if (o->files && mcp_files_open(&v->files, o->files, &v->arena, err) < 0)
		return -err->code;
	if (loop_open(&v->loop, err) < 0 || watch_signals(v, err) < 0 ||
	    open_place(v, setup, spawner, err) < 0)
		return -err->code;
	v->stdio.loop = &v->loop;
	v->stdio.owner = v;
	v->stdio.line = on_line;
	return mcp_stdio_open(&v->stdio, err);
}

static void close_server(struct server *v)
{
	struct call *c;

	LIST_FOREACH(c, &v->calls, link)
	c->is_cancelled = true;
	if (v->stdio.loop)
		mcp_stdio_close(&v->stdio);
	if (v->place.close)
		v->place.close(v->place.context);
	while ((c = LIST_FIRST(&v->calls)) != NULL)
		destroy_call(c);
	mcp_files_close(&v->files);
	loop_unwatch(&v->loop, &v->signals);
	cj_close(&v->signal_fd);
	loop_close(&v->loop);
	arena_fini(&v->arena);
}

static int turn_until_over(struct server *v, struct cj_error *err)
{
	while (!v->is_over && !v->stdio.is_over) {
		int wait_ms = v->place.tick(v->place.context);
		wait_ms = loop_sooner(wait_ms, tick_progress(v));
		if (loop_turn(&v->loop, wait_ms, err) < 0)
			return -err->code;
	}
	return 0;
}

int mcp_server_run(const struct mcp_options *o, const struct mcp_setup *setup,
		   struct spawner *spawner, struct cj_error *err)
{
	struct server v = { .given = &o->given,
			    .loop = LOOP_NULL,
			    .protocol = { .tools = setup->tools, .ntools = setup->count },
			    .files = { .dir_fd = -1 },
			    .signals = WATCH_NULL,
			    .signal_fd = -1 };

	LIST_INIT(&v.calls);
	int rc = open_server(&v, o, setup, spawner, err);
	if (rc == 0)
		rc = turn_until_over(&v, err);
	close_server(&v);
	spawner_end(spawner); /* unless it was taken */
	return rc;
}
