/* SPDX-License-Identifier: Apache-2.0 */
/* A client of the service with many requests at once. */

#include "runtime/front/mcp/mcp_server.h"

#include <sys/queue.h>

#include "runtime/base/clock.h"
#include "runtime/base/scope.h"
#include "runtime/front/client/service_calls.h"
#include "runtime/run/mcp/calls/mcp_reply.h"

#define CALLS_MAX 64

/* The calls of a program to the tools of the broker. */
struct far_calls {
	struct broker_calls calls;
	uint64_t last_id;
	char url[2 * PLAN_ID_MAX + 64]; /* of the run or the exec */
	struct call_answers answers;
};

/* One request for each call of the client. */
struct far_call {
	LIST_ENTRY(far_call) link;
	struct mcp_remote *remote;
	struct remote_exchange request;
	char *body;
	struct mcp_reply reply;
	struct far_calls calls; /* of its program */
};

struct mcp_remote {
	struct loop *loop;
	const char *path;
	struct broker *broker; /* NULL: programs have no tools */
	LIST_HEAD(, far_call) calls;
	size_t count;
	bool holds; /* answers wait in the service, which drops a reader that is too slow */
};

static void on_answer(struct broker_calls *calls, uint64_t id, const char *text, size_t size)
{
	struct far_calls *c = watch_owner(calls, struct far_calls, calls);
	call_answers_add(&c->answers, id, text, size);
}

static int begin_call(struct far_calls *c, char *line, size_t size, struct cj_error *err)
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

static int end_call(struct far_calls *c, const char *line, size_t size, struct cj_error *err)
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

/* An event of the run that is about its calls.  Fails: it is none that a service sends. */
static int far_calls_take(struct far_calls *c, char *line, size_t size, struct cj_error *err)
{
	return call_event_is(line, size) ? begin_call(c, line, size, err)
					 : end_call(c, line, size, err);
}

/* The request of `run` has the tools of the broker. */
static void far_calls_open(struct far_calls *c, struct loop *loop, const char *socket_path,
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

/* Cancels the calls.  Nothing happens if it was not opened. */
static void far_calls_close(struct far_calls *c)
{
	if (!c->calls.broker)
		return;
	broker_calls_cancel(&c->calls);
	call_answers_close(&c->answers);
}

static void destroy(struct far_call *c)
{
	LIST_REMOVE(c, link);
	c->remote->count--;
	far_calls_close(&c->calls);
	remote_exchange_close(&c->request);
	free(c->body);
	mcp_reply_fini(&c->reply);
	free(c);
}

static void fail(struct far_call *c, const char *why)
{
	struct cj_error err = { 0 };

	cj_refuse(&err, "%s", why);
	mcp_reply_fail(&c->reply, &err);
	destroy(c);
}

static void on_call_event(struct mcp_reply *r, char *line, size_t size)
{
	struct far_call *c = watch_owner(r, struct far_call, reply);
	struct cj_error err = { 0 };

	if (far_calls_take(&c->calls, line, size, &err) < 0)
		mcp_reply_fail(r, &err);
}

static int keep(struct remote_exchange *q, const char *bytes, size_t size, struct cj_error *err)
{
	struct far_call *c = watch_owner(q, struct far_call, request);
	int rc = mcp_reply_keep(&c->reply, q->answer.status, bytes, size, err);

	q->is_over = c->reply.is_done;
	return rc;
}

static void on_end(struct remote_exchange *q, const struct cj_error *err)
{
	struct far_call *c = watch_owner(q, struct far_call, request);

	if (err->code)
		mcp_reply_fail(&c->reply, err);
	else
		mcp_reply_end(&c->reply, q->answer.status, q->answer.retry_after);
	destroy(c);
}

static int send_request(struct far_call *c, size_t size, struct cj_error *err)
{
	const struct mcp_run *run = c->reply.run;
	char target[MCP_TARGET_MAX];
	struct cj_error why = { 0 };
	struct remote_message message = {
		.path = target,
		.accept = mcp_reply_has_lines(&c->reply) ? "application/x-ndjson" : "*/*",
		.body = { c->body, size },
		.agent = "cejail-mcp",
		.traceparent = run->traceparent,
	};

	message.method = mcp_request_put_http(run->request, target, &message.type);
	if (c->remote->count > CALLS_MAX)
		return cj_reject(err, "%d calls are waiting already; wait for their answers",
				 CALLS_MAX);
	int fd = remote_link_connect(c->remote->path, SOCK_NONBLOCK, &why);
	if (fd >= 0)
		return remote_exchange_start(&c->request, fd, &message, err);
	/* The message is for a model: it names no option of a command line. */
	(void)!cj_fail(err, why.code, "connect to the service at '%s'", c->remote->path);
	return cj_hint(err, "ask the user to start 'cejail serve'");
}

static int start(void *context, struct mcp_run *r, char *body, size_t size, struct cj_error *err)
{
	struct mcp_remote *remote = context;
	struct far_call *c = calloc(1, sizeof(*c));
	const enum mcp_tool_kind kind = r->request->kind;

	if (!c) {
		free(body);
		return cj_fail(err, ENOMEM, "send the request");
	}
	c->remote = remote;
	c->body = body;
	c->request = (struct remote_exchange){ .loop = remote->loop,
					       .keep = keep,
					       .end = on_end,
					       .holds = remote->holds,
					       .watch = WATCH_NULL,
					       .fd = -1 };
	c->reply.run = r;
	if (remote->broker && (kind == MCP_TOOL_RUN || kind == MCP_TOOL_SESSION_EXEC)) {
		c->reply.call_event = on_call_event;
		far_calls_open(&c->calls, remote->loop, remote->path, remote->broker, r);
	}
	LIST_INSERT_HEAD(&remote->calls, c, link);
	remote->count++;
	r->state = c;
	if (send_request(c, size, err) == 0)
		return 0;
	destroy(c);
	return -err->code;
}

static void cancel(void *context, struct mcp_run *r)
{
	struct far_call *c = r->state;

	(void)context;
	fail(c, "cancelled");
}

static void hold(void *context, bool holds)
{
	struct mcp_remote *remote = context;
	struct far_call *c;

	if (remote->holds == holds)
		return;
	remote->holds = holds;
	LIST_FOREACH(c, &remote->calls, link)
	remote_exchange_hold(&c->request, holds);
}

static int tick(void *context)
{
	struct mcp_remote *remote = context;
	int wait_ms = broker_tick(remote->broker);
	const uint64_t now_ms = clock_ms();
	struct far_call *c = LIST_FIRST(&remote->calls), *next;

	for (; c; c = next) {
		next = LIST_NEXT(c, link);
		if (c->calls.answers.has_no_memory)
			fail(c, "cejail has no memory for the answer to a call of the program");
		else
			wait_ms =
			    loop_sooner(wait_ms, call_answers_tick(&c->calls.answers, now_ms));
	}
	return wait_ms;
}

static void close_remote(void *context)
{
	struct mcp_remote *remote = context;
	struct far_call *c;

	while ((c = LIST_FIRST(&remote->calls)) != NULL)
		fail(c, "the server ends");
	free(remote);
}

int mcp_remote_open(struct loop *loop, const char *socket_path, struct broker *broker,
		    struct mcp_place *out, struct cj_error *err)
{
	struct mcp_remote *remote = calloc(1, sizeof(*remote));

	if (!remote)
		return cj_fail(err, ENOMEM, "start the server");
	remote->loop = loop;
	remote->path = socket_path;
	remote->broker = broker;
	LIST_INIT(&remote->calls);
	*out = (struct mcp_place){ .context = remote,
				   .start = start,
				   .cancel = cancel,
				   .hold = hold,
				   .tick = broker ? tick : NULL,
				   .close = close_remote };
	return 0;
}

int mcp_remote_list_profiles(const char *socket_path, struct arena *a, const struct json_node **out,
			     struct cj_error *err)
{
	const struct remote_fetch fetch = {
		.socket = socket_path,
		.message = { .method = "GET", .path = "/v1/profiles" },
		.patience_s = REMOTE_PATIENCE_S,
	};
	const struct json_node *root = NULL;

	if (remote_fetch_json(&fetch, a, &root, err) < 0)
		return -err->code;
	*out = json_get_typed(root, "profiles", JSON_ARRAY);
	return *out ? 0 : cj_reject(err, "--remote: the service sent no list of profiles");
}
