/* SPDX-License-Identifier: Apache-2.0 */
/* POST /mcp: calls of tools, and the messages that need no run. */
#include "runtime/service/api/api_parts.h"

#include "profiles/settings.h"
#include "runtime/base/clock.h"
#include "runtime/base/loop.h"
#include "runtime/base/scope.h"
#include "runtime/run/mcp/calls/mcp_call.h"
#include "runtime/run/mcp/mcp_tool.h"
#include "runtime/service/access/account.h"
#include "runtime/service/config/profile_cache.h"
#include "runtime/service/sessions/sessions.h"

#define JSON_TYPE "application/json"
#define STREAM_MS 15000 /* then a reply that has not come becomes a stream, and says so again */

/* One message as an event of the stream.  False: the client is too slow. */
static bool put_event(struct exchange *x, struct json_writer *w, bool must)
{
	struct cj_error ignored = { 0 };
	struct blob text = { 0 };
	auto_free char *event = NULL;

	if (json_writer_take(w, &text, &ignored) < 0)
		return false;
	int length = asprintf(&event, "event: message\ndata: %s\n\n", text.bytes);
	if (length < 0) {
		event = NULL;
		return false;
	}
	return exchange_put(x, event, (size_t)length, must);
}

/* The whole reply with a message; its exchange is answered. */
static void reply_message(struct exchange *x, unsigned status, struct json_writer *w)
{
	if (mcp_headers_accept(exchange_header(x, "Accept"), JSON_TYPE)) {
		exchange_reply_json(x, status, w);
		return;
	}
	exchange_begin_stream(x, API_MCP_EVENTS, NULL);
	(void)put_event(x, w, true);
	exchange_end_stream(x);
}

struct api_mcp_call {
	LIST_ENTRY(api_mcp_call) link;
	struct api *api;
	struct exchange *outer; /* NULL: answered, or the client is gone */
	struct api_asked inner;
	struct mcp_place place;
	struct mcp_call of;
	bool has_ended; /* answered; it is freed when `inner` has ended */
	bool takes_events;
	uint64_t quiet_until_ms;
	struct arena arena; /* the texts of its tool */
	char caller[CALLER_NAME_MAX], label[API_MCP_SESSION_MAX];
};

static struct api_mcp_call *call_of(struct mcp_call *c)
{
	return watch_owner(c, struct api_mcp_call, of);
}

/*
 * The handler still uses the exchange: a run that is done here is freed only when `ended` is
 * called.
 */
static void on_inner_piece(void *context, const char *bytes, size_t size)
{
	struct api_asked *i = context;
	struct cj_error err = { 0 };

	if (mcp_reply_keep(&i->reply, 200, bytes, size, &err) < 0)
		mcp_reply_fail(&i->reply, &err);
}

static void on_inner_replied(void *context, const struct http_reply *reply)
{
	struct api_asked *i = context;
	struct cj_error err = { 0 };

	if (reply->text && mcp_reply_keep(&i->reply, reply->status, reply->text + reply->skip,
					  reply->size, &err) < 0)
		mcp_reply_fail(&i->reply, &err);
	mcp_reply_end(&i->reply, reply->status, (reply->retry_after_ms + 999) / 1000);
	i->exchange = NULL;
	i->ended(i);
}

static const struct operation {
	void (*handle)(struct api_call *c);
	unsigned parameters; /* enum api_parameter */
} operations[MCP_TOOL_KIND_COUNT] = {
	[MCP_TOOL_RUN] = { api_post_run, 0 },
	[MCP_TOOL_SESSION_CREATE] = { api_post_session, 0 },
	[MCP_TOOL_SESSION_EXEC] = { api_post_exec, 0 },
	[MCP_TOOL_SESSION_PUT_FILE] = { api_put_file, 0 },
	[MCP_TOOL_SESSION_GET_FILE] = { api_get_file, PARAMETER_OFFSET | PARAMETER_LENGTH },
	[MCP_TOOL_SESSION_LIST_FILES] = { api_get_file, PARAMETER_LIST },
	[MCP_TOOL_SESSION_NETWORK] = { api_change_network, PARAMETER_NARROW },
	[MCP_TOOL_SESSION_END] = { api_end_session, 0 },
};

static void carry_out(struct api *api, struct exchange *x, const struct exchange *outer,
		      const struct mcp_run *r)
{
	const struct mcp_request *asked = r->request;
	const struct operation *o = &operations[asked->kind];
	const bool is_part = asked->kind == MCP_TOOL_SESSION_GET_FILE;
	const struct api_query query = {
		.given = o->parameters | (asked->is_executable ? PARAMETER_EXECUTABLE : 0),
		.offset = is_part ? asked->offset : 0,
		.length = is_part ? asked->length : 0,
	};
	struct api_call call = { .api = api,
				 .exchange = x,
				 .account = api_find_account(api, x, outer ? outer : x),
				 .names.rest = asked->path,
				 .wants_events = r->wants_events,
				 .query = &query };

	if (!call.account)
		return;
	(void)snprintf(call.names.ids[0], sizeof(call.names.ids[0]), "%s", asked->session);
	o->handle(&call);
	http_settle_inner(x);
}

int api_asked_ask(struct api_asked *i, struct api *api, const struct exchange *outer,
		  struct mcp_run *r, char *body, size_t size, struct cj_error *err)
{
	struct http_inner ask = {
		.outer = outer,
		.traceparent = r->traceparent,
		.body_size = size,
		.piece = on_inner_piece,
		.replied = on_inner_replied,
		.context = i,
	};

	ask.body = body;
	i->reply.run = r;
	if (http_open_inner(api->http, &ask, &i->exchange, err) < 0)
		return -err->code;
	carry_out(api, i->exchange, outer, r);
	return 0;
}

/* Dropping the request cancels its run. */
void api_asked_cancel(struct api_asked *i)
{
	struct cj_error err = { 0 };

	http_drop_inner(&i->exchange);
	cj_refuse(&err, "cancelled");
	mcp_reply_fail(&i->reply, &err);
}

void api_asked_fini(struct api_asked *i)
{
	http_drop_inner(&i->exchange);
	mcp_reply_fini(&i->reply);
}

static void begin_stream(struct api_mcp_call *call)
{
	if (exchange_is_streaming(call->outer))
		return;
	exchange_add_header(call->outer, "X-Accel-Buffering", "no");
	exchange_begin_stream(call->outer, API_MCP_EVENTS, NULL);
}

static void put_answer(struct api_mcp_call *call, struct json_writer *w)
{
	struct exchange *x = take_ptr(call->outer);

	if (!exchange_is_streaming(x)) {
		reply_message(x, 200, w);
		return;
	}
	if (!put_event(x, w, true)) {
		/* The answer does not fit, as the client has not read others: this one does. */
		auto_json_writer struct json_writer *refusal = json_writer_create(false);
		struct mcp_fault fault;
		(void)!mcp_refuse(&fault, MCP_INTERNAL_ERROR,
				  "there is no room for the answer; read earlier answers first");
		mcp_put_fault(refusal, &call->of.id, &fault);
		(void)put_event(x, refusal, true);
	}
	exchange_end_stream(x);
}

static void on_message(struct mcp_call *c, struct json_writer *w, bool may_drop)
{
	struct api_mcp_call *call = call_of(c);

	if (!call->outer)
		return;
	if (!may_drop) {
		put_answer(call, w);
	} else if (call->takes_events && !exchange_is_behind(call->outer)) {
		begin_stream(call);
		(void)put_event(call->outer, w, false);
		call->quiet_until_ms = clock_ms() + STREAM_MS;
	}
}

static void destroy(struct api_mcp_call *call)
{
	LIST_REMOVE(call, link);
	api_asked_fini(&call->inner);
	arena_fini(&call->arena);
	free(call);
}

static void on_over(struct mcp_call *c)
{
	struct api_mcp_call *call = call_of(c);

	if (call->outer) { /* cancelled, so without an answer: a stream that ends */
		begin_stream(call);
		exchange_end_stream(take_ptr(call->outer));
	}
	call->has_ended = true;
	if (!call->inner.exchange)
		destroy(call);
}

static const struct mcp_call_ops call_ops = { .send = on_message, .over = on_over };

static void on_ended(struct api_asked *i)
{
	destroy(watch_owner(i, struct api_mcp_call, inner));
}

static int start(void *context, struct mcp_run *r, char *request, size_t size, struct cj_error *err)
{
	struct api_mcp_call *call = context;
	return api_asked_ask(&call->inner, call->api, call->outer, r, request, size, err);
}

static void cancel(void *context, struct mcp_run *r)
{
	struct api_mcp_call *call = context;

	(void)r;
	api_asked_cancel(&call->inner);
}

static const char *profile_of(void *context, const char *session)
{
	const struct api_mcp_call *call = context;
	const struct session_entry *e = sessions_find(&call->api->sessions, call->caller, session);
	return e ? e->profile : NULL;
}

static void on_client_gone(void *holder)
{
	struct api_mcp_call *call = holder;

	call->outer = NULL;
	if (!call->has_ended)
		mcp_call_cancel(&call->of);
}

static const char *label_of(const struct exchange *x)
{
	const char *label = exchange_header(x, "Mcp-Session-Id");
	return label && strlen(label) < API_MCP_SESSION_MAX ? label : "";
}

/* The profile's name belongs to a configuration that a reload may free. */
static bool keep_texts(struct api_mcp_call *call, struct mcp_tool *tool)
{
	const char **texts[] = { &tool->profile, &tool->about, &tool->value_path };

	for (size_t i = 0; i < COUNT_OF(texts); i++) {
		const char *text = *texts[i];
		*texts[i] = text ? arena_strdup(&call->arena, text) : NULL;
		if (text && !*texts[i])
			return false;
	}
	return true;
}

static struct api_mcp_call *create(struct api_call *c, struct mcp_tool *tool)
{
	struct api_mcp_call *call = calloc(1, sizeof(*call));
	const char *accept = exchange_header(c->exchange, "Accept");

	if (!call)
		return NULL;
	*call = (struct api_mcp_call){
		.api = c->api,
		.outer = c->exchange,
		.inner = { .ended = on_ended },
		.place = { .context = call,
			   .start = start,
			   .cancel = cancel,
			   .profile_of = profile_of },
		.of = { .ops = &call_ops,
			.place = &call->place,
			.tasks = &c->api->mcp_tasks,
			.caller = call->caller },
		.takes_events = accept && mcp_headers_accept(accept, API_MCP_EVENTS),
		.quiet_until_ms = clock_ms() + STREAM_MS,
	};
	memcpy(call->caller, c->account->name, sizeof(call->caller));
	memcpy(call->label, label_of(c->exchange), strlen(label_of(c->exchange)));
	LIST_INSERT_HEAD(&c->api->mcp_calls, call, link);
	if (keep_texts(call, tool))
		return call;
	destroy(call);
	return NULL;
}

/* The call that the message asks for; the exchange of `c` is answered later. */
static void begin_call(struct api_call *c, const struct mcp_asked *asked)
{
	auto_free bool *wanted = calloc(settings_count, sizeof(*wanted));
	struct mcp_tool tool = *asked->tool;
	struct mcp_asked kept = *asked;
	struct api_mcp_call *call = wanted ? create(c, &tool) : NULL;

	if (!call) {
		exchange_refuse(c->exchange, API_INTERNAL, NULL, NULL);
		return;
	}
	kept.tool = &tool;
	exchange_hold(c->exchange, on_client_gone, call);
	/* the API gives nothing of its own to a run */
	struct config none;
	config_init(&none);
	const struct mcp_given given = { .config = &none, .wanted = wanted };
	mcp_call_begin(&call->of, &kept, &given);
	config_fini(&none);
}

/* Cancels the calls of this caller with this label and id. */
static void cancel_call(struct api_call *c, const struct mcp_id *id)
{
	const char *label = label_of(c->exchange);
	struct api_mcp_call *call, *next;

	for (call = LIST_FIRST(&c->api->mcp_calls); call; call = next) {
		next = LIST_NEXT(call, link);
		if (label[0] && !call->has_ended && !call->of.task &&
		    strcmp(call->label, label) == 0 &&
		    strcmp(call->caller, c->account->name) == 0 && mcp_id_equals(&call->of.id, id))
			mcp_call_cancel(&call->of);
	}
}

/* A reply that takes long becomes a stream: a client or a proxy gives up on a silent connection. */
static int break_silence(struct api_mcp_call *call, uint64_t now_ms)
{
	static const char comment[] = ": the tool is running\n\n";

	if (!call->outer || !call->takes_events)
		return -1;
	if (now_ms >= call->quiet_until_ms) {
		begin_stream(call);
		if (!exchange_is_behind(call->outer))
			(void)exchange_put(call->outer, comment, sizeof(comment) - 1, false);
		call->quiet_until_ms = now_ms + STREAM_MS;
	}
	return (int)(call->quiet_until_ms - now_ms);
}

int api_mcp_tick(struct api *a, uint64_t now_ms)
{
	int wait_ms = mcp_tasks_tick(&a->mcp_tasks, now_ms);
	struct api_mcp_call *call;

	LIST_FOREACH(call, &a->mcp_calls, link)
	{
		if (call->has_ended)
			continue;
		wait_ms = loop_sooner(wait_ms, mcp_call_beat(&call->of));
		wait_ms = loop_sooner(wait_ms, break_silence(call, now_ms));
	}
	return wait_ms;
}

/* A message while it is answered. */
struct message {
	struct mcp_protocol protocol;
	struct api_call *call;
	struct arena arena;
	struct mcp_tool tools[API_MCP_TOOLS_MAX + MCP_SESSION_TOOLS];
};

/* A profile that cannot be read has no tool; the service's log says why when it is listed. */
static int add_tool(struct message *p, const char *name, bool is_standard, struct cj_error *err)
{
	struct api_call *c = p->call;
	const struct config *profile = NULL;
	struct cj_error ignored = { 0 };
	struct rights_clamp ceilings;
	struct config config;
	if (p->protocol.ntools == API_MCP_TOOLS_MAX ||
	    !rights_has_profile(c->account->rights, name) ||
	    profile_cache_get(c->api->profiles, name, &profile, &ignored) < 0 ||
	    (is_standard && !mcp_profiles_has_interpreter(profile)))
		return 0;
	/* What the profile gives, within the ceilings of the caller. */
	config_init(&config);
	int rc = config_copy(&config, profile, err);
	if (rc == 0)
		rc = rights_validate(c->account->rights, &config, profile, &ceilings, err);
	if (rc == 0)
		rights_clamp_apply(&ceilings, &config);
	p->tools[p->protocol.ntools].text_max = c->api->config->mcp.text_max;
	p->tools[p->protocol.ntools].lacks_uplink = !mcp_profiles_has_uplink(&config);
	if (rc == 0)
		rc = mcp_profiles_describe(&p->tools[p->protocol.ntools++], "", name, &config,
					   profile->description, &p->arena, err);
	config_fini(&config);
	return rc;
}

static int load_tools(struct mcp_protocol *protocol, struct cj_error *err)
{
	struct message *p = watch_owner(protocol, struct message, protocol);
	const struct strings *chosen = &p->call->api->config->mcp.profiles;
	int rc = 0;

	protocol->tools = p->tools;
	for (size_t i = 0; i < chosen->count && rc == 0; i++)
		rc = add_tool(p, chosen->items[i], false, err);
	for (size_t i = 0; chosen->count == 0 && mcp_profiles_standard[i] && rc == 0; i++)
		rc = add_tool(p, mcp_profiles_standard[i], true, err);
	bool may_have_sessions = p->call->api->config->sessions > 0 &&
				 p->call->account->rights->sessions > 0;
	if (rc == 0 && protocol->ntools > 0 && may_have_sessions)
		mcp_profiles_add_sessions(p->tools, &protocol->ntools, "");
	return rc;
}

static bool is_acceptable(struct exchange *x)
{
	const char *accept = exchange_header(x, "Accept");
	const char *type = exchange_header(x, "Content-Type");

	if (!type || !posted_is_type(type, JSON_TYPE)) {
		exchange_refuse(x, API_UNSUPPORTED_MEDIA_TYPE, NULL, NULL);
		return false;
	}
	if (mcp_headers_accept(accept, JSON_TYPE) || mcp_headers_accept(accept, API_MCP_EVENTS))
		return true;
	exchange_refuse(x, API_NOT_ACCEPTABLE, NULL,
			"accept application/json and text/event-stream");
	return false;
}

static void answer(struct message *p, const struct mcp_asked *asked, struct json_writer *w)
{
	struct exchange *x = p->call->exchange;
	char label[PLAN_ID_MAX]; /* of the client's calls: nobody else can guess it */
	struct cj_error ignored = { 0 };
	if (p->protocol.was_opened && plan_mint_id(label, &ignored) < 0) {
		exchange_refuse(x, API_INTERNAL, NULL, NULL);
		return;
	}
	if (p->protocol.was_opened)
		exchange_add_header(x, "Mcp-Session-Id", label);
	reply_message(x, asked->http_status, w);
}

static void act(struct message *p, const char *body, size_t size, struct json_writer *w)
{
	struct mcp_asked asked;

	mcp_protocol_take(&p->protocol, body, size, &p->arena, w, &asked);
	if (asked.action == MCP_ANSWER) {
		answer(p, &asked, w);
	} else if (asked.action == MCP_TASK) {
		mcp_tasks_answer(&p->call->api->mcp_tasks, p->call->account->name, &asked, w);
		answer(p, &asked, w);
	} else if (asked.action == MCP_CALL) {
		begin_call(p->call, &asked);
	} else {
		if (asked.action == MCP_CANCEL)
			cancel_call(p->call, &asked.id);
		/* a notification has no answer */
		exchange_reply(p->call->exchange,
			       &(struct http_reply){ .status = 202,
						     .content_type = "text/plain",
						     .text = strdup("") });
	}
}

void api_post_mcp(struct api_call *c)
{
	struct exchange *x = c->exchange;
	const struct mcp_headers headers = { .version = exchange_header(x, "MCP-Protocol-Version"),
					     .method = exchange_header(x, "Mcp-Method"),
					     .name = exchange_header(x, "Mcp-Name") };
	auto_json_writer struct json_writer *w = json_writer_create(false);
	struct message *p = calloc(1, sizeof(*p));
	size_t size = 0;

	if (!p || !w) {
		exchange_refuse(x, API_INTERNAL, NULL, NULL);
	} else if (is_acceptable(x)) {
		auto_free char *body = exchange_take_body(x, &size);
		p->call = c;
		p->protocol.load = load_tools;
		p->protocol.headers = &headers;
		act(p, body ? body : "", size, w);
	}
	if (p)
		arena_fini(&p->arena);
	free(p);
}
