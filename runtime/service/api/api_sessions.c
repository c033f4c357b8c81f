/* SPDX-License-Identifier: Apache-2.0 */
/* /v1/sessions: created, listed, renewed, ended. */
#include "runtime/service/api/api_parts.h"

#include "profiles/profile.h"
#include "runtime/base/clock.h"
#include "runtime/base/json/json.h"
#include "runtime/base/scope.h"
#include "runtime/base/text.h"
#include "runtime/service/access/account.h"
#include "runtime/service/sessions/keeper_conn.h"
#include "runtime/service/sessions/sessions.h"

struct session_entry *api_find_session(struct api_call *c)
{
	struct session_entry *e =
	    sessions_find(&c->api->sessions, c->account->name, c->names.ids[0]);

	if (!e)
		exchange_refuse(c->exchange, API_NOT_FOUND, "there is no session with this id",
				"create one; an ended session is forgotten after a while");
	return e;
}

struct session_entry *api_find_live_session(struct api_call *c)
{
	struct session_entry *e = api_find_session(c);

	if (!e || e->state == ENTRY_LIVE)
		return e;
	if (e->state == ENTRY_STARTING)
		exchange_refuse(c->exchange, API_NOT_RUNNING, "the session is not ready yet", NULL);
	else
		exchange_refuse(c->exchange, API_SESSION_ENDED, e->message, "create a new session");
	return NULL;
}

/* The cache may replace its profile at any time; a session keeps its own. */
static bool keep_profile(struct posted *p, struct config *own)
{
	const char *sha256 = p->profile->profile_sha256;
	struct cj_error err = { 0 };

	if (profile_load(own, p->request.profile, &err) < 0)
		return api_refuse(p->call, API_INTERNAL, &err);
	if (strcmp(own->profile_sha256, sha256) != 0) {
		cj_refuse(&err, "the profile changes; send the request again");
		return api_refuse(p->call, API_BAD_REQUEST, &err);
	}
	p->profile = own;
	return true;
}

static bool has_context(struct posted *p)
{
	struct cj_error err = { 0 };

	if (!p->request.wants_repl || plan_has_repl(&p->asked))
		return true;
	cj_refuse(&err, "context: profile '%s' has no 'repl'", p->request.profile);
	cj_hint(&err, "GET /v1/profiles lists the contexts of each profile");
	return api_refuse(p->call, API_BAD_REQUEST, &err);
}

static void create(struct posted *p, struct config *own)
{
	struct api_call *c = p->call;
	struct cj_error err = { 0 };
	struct sessions_order order = {
		.exchange = c->exchange,
		.session = { .account = c->account,
			     .is_repl = p->request.wants_repl,
			     .has_tools = p->request.ntools > 0,
			     .memory_bytes = p->asked.limits.memory_bytes,
			     .lease_ms = p->request.lease_ms,
			     .idle_ms = p->request.idle_ms,
			     .renew_on_use = p->request.renew_on_use,
			     .now_ms = clock_ms(),
			     .epoch_ms = clock_epoch_ms() },
		.profile = own,
		.config = &p->asked,
		.arena = &p->arena,
	};
	char id[PLAN_ID_MAX];

	if (sessions_check_ceilings(&c->api->sessions, &order.session, &err) < 0) {
		(void)api_refuse(c, API_ABOVE_CEILING, &err);
		return;
	}
	if (!api_is_admitted(
		c, sessions_admit(&c->api->sessions, c->account, order.session.memory_bytes)))
		return;
	int rc = plan_mint_id(id, &err);
	if (rc == 0) {
		order.run = posted_order(p, JOB_SESSION, id);
		rc = sessions_begin(&c->api->sessions, &order, &err);
		free(order.run.job.body);
	}
	if (rc < 0)
		(void)api_refuse(c, API_INTERNAL, &err);
}

void api_post_session(struct api_call *c)
{
	struct posted p;
	struct config own;

	posted_init(&p, c);
	config_init(&own);
	if (posted_is_accepted(&p) && posted_parse(&p, REQUEST_SESSION, NULL) &&
	    posted_find_profile(&p) && keep_profile(&p, &own) && posted_validate(&p, &own) &&
	    has_context(&p))
		create(&p, &own);
	posted_fini(&p);
	config_fini(&own);
}

void api_list_sessions(struct api_call *c)
{
	auto_json_writer struct json_writer *w = json_writer_create(false);
	const struct sessions_now now = { clock_ms(), clock_epoch_ms() };
	const struct session_entry *e;

	json_open_object(w);
	json_member_array(w, "sessions");
	TAILQ_FOREACH(e, &c->api->sessions.entries, link)
		if (strcmp(e->caller, c->account->name) == 0)
			sessions_json_put(w, e, &now);
	json_close_array(w);
	json_close_object(w);
	exchange_reply_json(c->exchange, 200, w);
}

void api_show_session(struct api_call *c)
{
	const struct session_entry *e = api_find_session(c);

	if (e)
		sessions_reply(e, c->exchange, 200);
}

void api_end_session(struct api_call *c)
{
	struct session_entry *e = api_find_session(c);

	if (e && e->state == ENTRY_ENDED)
		sessions_reply(e, c->exchange, 200);
	else if (e)
		sessions_close(e, SESSION_CLOSED, c->exchange);
}

void api_renew_session(struct api_call *c)
{
	auto_arena struct arena a = { 0 };
	struct session_entry *e = api_find_live_session(c);
	struct api_body body = { 0 };
	struct cj_error err = { 0 };

	if (!e || !api_body_take(c, API_BODY_LEASE, &a, &body))
		return;
	const struct sessions_request asked = { .lease_ms = body.lease_ms };
	if (sessions_check_ceilings(&c->api->sessions, &asked, &err) < 0) {
		(void)api_refuse(c, API_ABOVE_CEILING, &err);
		return;
	}
	sessions_renew(e, asked.lease_ms, clock_ms());
	sessions_reply(e, c->exchange, 200);
}

/* Of a call inside the process, they are there already.  False: it was refused. */
static bool read_query(struct api_call *c, unsigned parameters, struct api_query *out)
{
	struct cj_error err = { 0 };

	if (c->query)
		*out = *c->query;
	else if (api_query_parse(exchange_query(c->exchange), parameters, out, &err) < 0)
		return api_refuse(c, API_BAD_REQUEST, &err);
	return true;
}

/* Validated as a part of the request that would create the session. */
static bool wrap_network(struct posted *p)
{
	static const char before[] = "{\"network\":", after[] = "}";
	/* with each NUL of the body, which is no JSON then */
	const struct blob parts[] = { { before, sizeof(before) - 1 },
				      { p->body ? p->body : "", p->size },
				      { after, sizeof(after) } };
	struct byte_queue whole = { 0 };

	if (byte_queue_add_all(&whole, parts, COUNT_OF(parts)) < 0)
		return api_refuse(p->call, API_INTERNAL, NULL);
	free(p->body);
	p->body = whole.bytes;
	p->size = whole.end - 1;
	return true;
}

/* The body was that member, and nothing but its mode and its lists may change. */
static bool check_network(struct posted *p)
{
	static const char *const changeable[] = { "mode", "allow", "deny", NULL };
	const struct json_node *network = p->request.root->child;
	struct cj_error err = { 0 };

	const struct json_node *n = network->child;
	while (network->type == JSON_OBJECT && n && text_is_one_of(n->key, changeable))
		n = n->next;
	if (network->type == JSON_OBJECT && !n && !network->next)
		return true;
	if (network->type == JSON_OBJECT && n)
		cj_refuse(&err, "'%.64s' of a session's network can't be changed", n->key);
	else
		cj_refuse(&err, "a session's network is an object");
	cj_hint(&err, "send {\"mode\": \"none\"} or {\"mode\": \"public\", \"allow\": [...]}");
	return api_refuse(p->call, API_BAD_REQUEST, &err);
}

static void change_network(struct posted *p, struct session_entry *e, bool narrows)
{
	struct cj_error err = { 0 };

	if (e->config.network == NETWORK_NONE) {
		cj_refuse(&err, "the session was created without a network");
		cj_hint(&err, "%s",
			narrows ? "there is nothing to close"
				: "create it with \"network\": \"public\", and close that at "
				  "once with {\"mode\": \"none\"}");
		(void)api_refuse(p->call, API_BAD_REQUEST, &err);
		return;
	}
	enum api_code why = sessions_change_network(e, &p->asked, narrows, p->call->exchange, &err);
	if (why != API_OK)
		(void)api_refuse(p->call, why, err.code ? &err : NULL);
}

void api_change_network(struct api_call *c)
{
	struct posted p;
	struct api_query query = { 0 };

	posted_init(&p, c);
	struct session_entry *e = api_find_live_session(c);
	if (e && read_query(c, PARAMETER_NARROW, &query) && posted_is_accepted(&p) &&
	    wrap_network(&p) && posted_parse(&p, REQUEST_SESSION, e) && check_network(&p) &&
	    posted_validate(&p, &e->base))
		change_network(&p, e, (query.given & PARAMETER_NARROW) != 0);
	posted_fini(&p);
}

/* What a request for a file names.  False: it was refused. */
static bool read_target(struct api_call *c, unsigned parameters, struct api_query *out_query,
			char path[static INPUT_PATH_MAX])
{
	struct cj_error err = { 0 };

	if (!read_query(c, parameters, out_query))
		return false;
	return api_file_path(c->names.rest, (out_query->given & ~PARAMETER_EXECUTABLE) != 0, path,
			     &err) == 0 ||
	       api_refuse(c, API_BAD_REQUEST, &err);
}

static enum file_op op_of(unsigned given)
{
	static const struct {
		unsigned bits;
		enum file_op op;
	} rows[] = {
		{ PARAMETER_LIST, FILE_LIST },
		{ PARAMETER_STAT, FILE_STAT },
		{ PARAMETER_WATCH, FILE_WATCH },
		{ PARAMETER_OFFSET | PARAMETER_LENGTH, FILE_PART },
	};

	for (size_t i = 0; i < COUNT_OF(rows); i++)
		if (given & rows[i].bits)
			return rows[i].op;
	return FILE_GET;
}

/* Carries out the order on the file that the request names; takes its bytes. */
static void operate(struct api_call *c, unsigned parameters, struct file_order *o)
{
	struct session_entry *e = api_find_live_session(c);
	size_t max = c->api->config->caps.file_bytes;
	struct file_job *job = &o->job;
	struct api_query query;
	char path[INPUT_PATH_MAX];

	if (!e || !read_target(c, parameters, &query, path)) {
		free(o->bytes);
		return;
	}
	if (job->op == FILE_GET)
		job->op = op_of(query.given);
	job->path = path;
	job->to = job->to ? job->to : "";
	job->offset = query.offset;
	job->max_bytes = query.length > 0 ? query.length : max;
	job->depth = query.depth > 0 ? query.depth : FILE_LIST_DEPTH;
	job->is_executable = (query.given & PARAMETER_EXECUTABLE) != 0;
	o->wants_head = strcmp(exchange_method(c->exchange), "HEAD") == 0;
	if (o->wants_head && job->op == FILE_WATCH)
		exchange_refuse(c->exchange, API_BAD_REQUEST, "HEAD can't watch a directory",
				"use GET");
	else
		sessions_file(e, o, c->exchange);
}

void api_get_file(struct api_call *c)
{
	operate(c,
		PARAMETER_LIST | PARAMETER_STAT | PARAMETER_WATCH | PARAMETER_DEPTH |
		    PARAMETER_OFFSET | PARAMETER_LENGTH,
		&(struct file_order){ .job.op = FILE_GET });
}

/* The head of the request is there, and its body is to come. */
void api_begin_put(struct api_call *c)
{
	operate(c, PARAMETER_EXECUTABLE, &(struct file_order){ .job.op = FILE_PUT });
}

/* A request without a connection has its body from the start. */
void api_put_file(struct api_call *c)
{
	struct file_order order = { .job.op = FILE_PUT };

	if (exchange_diverted_to(c->exchange)) {
		sessions_file_whole(c->exchange);
		return;
	}
	order.bytes = exchange_take_body(c->exchange, &order.size);
	if (!order.bytes)
		order.bytes = strdup("");
	if (!order.bytes || order.size > c->api->config->caps.file_bytes) {
		(void)api_refuse(c, order.bytes ? API_TOO_LARGE : API_INTERNAL, NULL);
		free(order.bytes);
		return;
	}
	operate(c, PARAMETER_EXECUTABLE, &order);
}

void api_remove_file(struct api_call *c)
{
	operate(c, 0, &(struct file_order){ .job.op = FILE_REMOVE });
}

void api_change_file(struct api_call *c)
{
	auto_arena struct arena a = { 0 };
	struct api_body body = { 0 };

	if (!api_find_live_session(c) || !api_body_take(c, API_BODY_CHANGE, &a, &body))
		return;
	operate(c, 0,
		&(struct file_order){
		    .job = { .op = body.is_mkdir ? FILE_MKDIR : FILE_RENAME, .to = body.to } });
}
