/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of tools, and the loop. */

#include "runtime/front/mcp/mcp_server.h"

#include <fcntl.h>
#include <sys/queue.h>
#include <sys/stat.h>

#include "profiles/paths.h"
#include "profiles/setting_types.h"
#include "profiles/settings.h"
#include "runtime/base/log.h"
#include "runtime/base/scope.h"
#include "runtime/run/mcp/calls/mcp_call.h"
#include "runtime/run/mcp/mcp_answer.h"
#include "runtime/run/mcp/mcp_protocol.h"
#include "runtime/run/report/remote_result.h"
#include "runtime/jail/outcome.h"

struct server_call {
	LIST_ENTRY(server_call) link;
	struct mcp_server *server;
	struct mcp_call of;
};

struct mcp_server {
	struct mcp_given given;
	struct broker *broker; /* of --tools-from; NULL: none */
	bool is_listing;       /* its servers start, and the client's messages wait */
	struct loop loop;
	struct mcp_stdio stdio;
	struct mcp_protocol protocol;
	struct mcp_setup *setup; /* borrowed */
	struct mcp_place place;
	struct mcp_tasks tasks;
	int files_fd;           /* --files; -1: no directory was given */
	const char *files_path; /* absolute */
	struct arena arena;
	LIST_HEAD(, server_call) calls;
	struct watch signals;
	int signal_fd;
	bool is_over;
	struct cj_error failure; /* why it is over; code 0: a signal ended it */
	bool has_warned[DEGRADED_COUNT];
};

/* No memory for an answer: the client would wait for ever. */
static void fail_answer(struct mcp_server *v)
{
	v->is_over = true;
	(void)!cj_fail(&v->failure, ENOMEM, "answer");
}

/* A new directory: an id is used once. */
static int open_run_dir(const struct mcp_server *v, const char *id, struct cj_error *err)
{
	if (mkdirat(v->files_fd, id, 0755) < 0)
		return cj_fail(err, errno, "--files: create '%s/%s'", v->files_path, id);
	int fd = openat(v->files_fd, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? cj_fail(err, errno, "--files: open '%s/%s'", v->files_path, id) : fd;
}

static void keep(struct strings *list, struct arena *a, const char *text)
{
	(void)!strings_add(list, a, arena_strdup(a, text)); /* without memory: one less */
}

/*
 * Stores the files of a result in DIR/RUN_ID.  The rules of remote_result_store() apply: no path
 * leads out of the directory, links in it are not followed, and a file that is not stored causes a
 * warning.
 */
static void store_files(const struct mcp_server *v, const struct json_node *result, struct arena *a,
			struct mcp_stored *out)
{
	const struct json_node *list = json_get_typed(result, "artifacts", JSON_ARRAY);
	const char *id = json_get_text(result, "id");
	struct cj_error err = { 0 };
	struct outcome o;

	*out = (struct mcp_stored){ .directory = NULL };
	if (v->files_fd < 0 || !list || list->count == 0 || !id || strchr(id, '/'))
		return;
	auto_fd int run_fd = open_run_dir(v, id, &err);
	if (run_fd < 0) {
		keep(&out->warnings, a, err.msg);
		return;
	}
	outcome_init(&o, id, 0);
	(void)remote_result_store(result, run_fd, &o); /* a failure is a warning */
	for (size_t i = 0; i < o.artifacts.count; i++)
		keep(&out->paths, a, o.artifacts.items[i].path);
	for (size_t i = 0; i < o.warnings.count; i++)
		keep(&out->warnings, a, o.warnings.items[i]);
	outcome_fini(&o);
	out->directory = arena_printf(a, "%s/%s", v->files_path, id);
}

static void send_line(struct mcp_server *v, struct json_writer *w, bool may_drop)
{
	struct cj_error err = { 0 };
	struct blob text = { 0 };

	if (json_writer_take(w, &text, &err) < 0)
		fail_answer(v);
	else
		mcp_stdio_put(&v->stdio, text.bytes, text.size, may_drop);
}

static struct server_call *call_of(struct mcp_call *c)
{
	return watch_owner(c, struct server_call, of);
}

static void on_message(struct mcp_call *c, struct json_writer *w, bool may_drop)
{
	send_line(call_of(c)->server, w, may_drop);
}

static void on_result(struct mcp_call *c, const struct json_node *result, struct arena *a,
		      struct mcp_stored *stored)
{
	struct mcp_server *v = call_of(c)->server;

	/* Warns the user about this host: once for each kind, on standard error. */
	for (const struct json_node *m = json_get_items(result, "warnings"); m; m = m->next) {
		if (m->type != JSON_STRING || !mcp_answer_is_for_user(m->text) ||
		    v->has_warned[degraded_of(m->text)])
			continue;
		v->has_warned[degraded_of(m->text)] = true;
		log_warning("%s", m->text);
	}
	store_files(v, result, a, stored);
}

static void on_over(struct mcp_call *c)
{
	struct server_call *call = call_of(c);

	LIST_REMOVE(call, link);
	free(call);
}

static const struct mcp_call_ops call_ops = { on_message, on_result, on_over };

static struct server_call *find_call(struct mcp_server *v, const struct mcp_id *id)
{
	struct server_call *c;

	LIST_FOREACH(c, &v->calls, link)
	if (!c->of.is_cancelled && !c->of.task && mcp_id_equals(&c->of.id, id))
		return c;
	return NULL;
}

static void start_call(struct mcp_server *v, const struct mcp_asked *asked, struct json_writer *w)
{
	struct mcp_fault fault;

	if (find_call(v, &asked->id)) {
		(void)!mcp_refuse(&fault, MCP_INVALID_REQUEST,
				  "a request with this id is not answered yet");
		mcp_put_fault(w, &asked->id, &fault);
		send_line(v, w, false);
		return;
	}
	struct server_call *c = calloc(1, sizeof(*c));
	if (!c) {
		fail_answer(v);
		return;
	}
	c->server = v;
	c->of = (struct mcp_call){
		.ops = &call_ops, .place = &v->place, .tasks = &v->tasks, .caller = ""
	};
	LIST_INSERT_HEAD(&v->calls, c, link);
	mcp_call_begin(&c->of, asked, &v->given);
}

static void on_cut(struct mcp_stdio *s, struct blob head, struct blob tail)
{
	struct mcp_server *v = s->owner;
	auto_json_writer struct json_writer *w = json_writer_create(false);
	struct mcp_fault fault;
	struct mcp_id id;

	(void)!mcp_refuse_size(&fault);
	mcp_id_find(head, tail, &id);
	mcp_put_fault(w, &id, &fault);
	send_line(v, w, false);
}

static void on_line(struct mcp_stdio *s, const char *text, size_t size)
{
	struct mcp_server *v = s->owner;
	auto_arena struct arena a = { 0 };
	auto_json_writer struct json_writer *w = json_writer_create(false);
	struct mcp_asked asked;
	struct server_call *c = NULL;

	if (!w) {
		fail_answer(v);
		return;
	}
	if (strspn(text, " \t\r") == size)
		return;
	mcp_protocol_take(&v->protocol, text, size, &a, w, &asked);
	if (v->is_listing) {
		mcp_stdio_hold(s, true);
		return;
	}
	if (asked.action == MCP_CALL)
		start_call(v, &asked, w);
	else if (asked.action == MCP_CANCEL) /* else it is answered already, or was never asked */
		c = find_call(v, &asked.id);
	else if (asked.action == MCP_TASK)
		mcp_tasks_answer(&v->tasks, "", &asked, w);
	if (c)
		mcp_call_cancel(&c->of);
	if (asked.action == MCP_ANSWER || asked.action == MCP_TASK)
		send_line(v, w, false);
}

static void on_signal(struct watch *w, uint32_t events)
{
	struct mcp_server *v = watch_owner(w, struct mcp_server, signals);

	(void)events;
	v->is_over = true;
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

/* The first message that needs the tools starts the servers, and waits for them. */
static int want_tools(struct mcp_protocol *p, struct cj_error *err)
{
	struct mcp_server *v = watch_owner(p, struct mcp_server, protocol);

	v->is_listing = true;
	broker_want_list(v->broker);
	return cj_reject_as(err, EAGAIN, "the servers are starting");
}

/* A server that has failed is left out; a call of the client then cannot reach its tools. */
static int take_tools(struct mcp_server *v, struct cj_error *err)
{
	struct blob tools;

	mcp_broker_warn(v->broker);
	if (broker_catalogue(v->broker, &tools, err) < 0)
		return -err->code;
	v->given.tools = tools.bytes;
	const char *text = mcp_broker_describe(v->broker, &v->arena);
	for (size_t i = 0; text && i < v->setup->count; i++)
		v->setup->tools[i].calls = text;
	v->is_listing = false;
	v->protocol.tools = v->setup->tools;
	mcp_stdio_hold(&v->stdio, false);
	return 0;
}

static int open_server(struct mcp_server *v, const struct mcp_options *o, struct mcp_setup *setup,
		       struct spawner *spawner, struct cj_error *err)
{
	if (o->files) {
		if (paths_absolute(o->files, &v->arena, &v->files_path, err) < 0)
			return -err->code;
		if (mkdir(v->files_path, 0700) < 0 && errno != EEXIST)
			return cj_fail(err, errno, "--files: create '%s'", v->files_path);
		v->files_fd = open(v->files_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (v->files_fd < 0)
			return cj_fail(err, errno, "--files: open '%s'", v->files_path);
	}
	if (loop_open(&v->loop, err) < 0)
		return -err->code;
	v->signal_fd = loop_watch_signals(&v->loop, &v->signals, on_signal, err);
	if (v->signal_fd < 0)
		return v->signal_fd;
	if (o->tools_from) {
		v->broker = calloc(1, sizeof(*v->broker));
		if (!v->broker)
			return cj_fail(err, ENOMEM, "read the list of servers");
		v->protocol.tools = NULL;
		v->protocol.load = want_tools;
		if (broker_open(v->broker, &v->loop, o->tools_from, err) < 0)
			return -err->code;
	}
	const struct mcp_local_options local = { &v->loop, spawner, fit_of(&v->given), v->broker,
						 o->config.trace_file };
	if ((setup->socket ? mcp_remote_open(&v->loop, setup->socket, v->broker, &v->place, err)
			   : mcp_local_open(&local, &v->place, err)) < 0)
		return -err->code;
	v->stdio.loop = &v->loop;
	v->stdio.owner = v;
	v->stdio.line = on_line;
	v->stdio.cut = on_cut;
	return mcp_stdio_open(&v->stdio, err);
}

static void close_server(struct mcp_server *v)
{
	struct server_call *c;

	LIST_FOREACH(c, &v->calls, link)
	c->of.is_cancelled = true;
	if (v->stdio.loop)
		mcp_stdio_close(&v->stdio);
	if (v->place.close)
		v->place.close(v->place.context);
	while ((c = LIST_FIRST(&v->calls)) != NULL)
		on_over(&c->of);
	mcp_tasks_fini(&v->tasks);
	if (v->broker)
		broker_close(v->broker);
	free(take_ptr(v->broker));
	cj_close(&v->files_fd);
	loop_unwatch(&v->loop, &v->signals);
	cj_close(&v->signal_fd);
	loop_close(&v->loop);
	arena_fini(&v->arena);
}

static int turn_until_over(struct mcp_server *v, struct cj_error *err)
{
	struct server_call *c;

	while (!v->is_over && !v->stdio.is_over) {
		v->place.hold(v->place.context, v->stdio.is_paused);
		int wait_ms = v->place.tick ? v->place.tick(v->place.context) : -1;
		if (v->is_listing && broker_is_listed(v->broker)) {
			if (take_tools(v, err) < 0)
				return -err->code;
			continue;
		}
		LIST_FOREACH(c, &v->calls, link)
		wait_ms = loop_sooner(wait_ms, mcp_call_beat(&c->of));
		if (loop_turn(&v->loop, wait_ms, err) < 0)
			return -err->code;
	}
	if (v->failure.code == 0)
		v->failure = v->stdio.failure;
	*err = v->failure;
	return -v->failure.code;
}

int mcp_server_run(const struct mcp_options *o, struct mcp_setup *setup, struct spawner *spawner,
		   struct cj_error *err)
{
	struct mcp_server v = { .given = o->given,
				.loop = LOOP_NULL,
				.protocol = { .tools = setup->tools, .ntools = setup->count },
				.setup = setup,
				.files_fd = -1,
				.signals = WATCH_NULL,
				.signal_fd = -1 };

	LIST_INIT(&v.calls);
	for (size_t i = 0; i < DEGRADED_COUNT; i++)
		v.has_warned[i] = strings_has(&setup->accepted, degraded_names[i]);
	int rc = open_server(&v, o, setup, spawner, err);
	if (rc == 0)
		rc = turn_until_over(&v, err);
	close_server(&v);
	spawner_end(spawner); /* unless it was taken */
	return rc;
}
