/* SPDX-License-Identifier: Apache-2.0 */
/* /v1/sessions: created, listed, renewed, ended. */
#include "runtime/service/api/api_parts.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "profiles/plan/plan.h"
#include "profiles/profile.h"
#include "runtime/base/clock.h"
#include "runtime/base/json/json.h"
#include "runtime/base/scope.h"
#include "runtime/base/text.h"
#include "runtime/service/access/account.h"
#include "runtime/service/sessions/keeper_conn.h"
#include "runtime/service/sessions/sessions.h"

/* --- which session ------------------------------------------------------------ */

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

/* --- a new one ---------------------------------------------------------------- */

/* The cache may replace its profile at any time; a session keeps its own. */
static bool keep_profile(struct posted *p, struct config *own)
{
	const char *sha256 = p->profile->profile_sha256;
	struct cj_error err = { 0 };

	if (profile_load(own, p->request.profile, &err) < 0) {
		posted_fail(p, &err, "read a profile");
		return false;
	}
	if (strcmp(own->profile_sha256, sha256) != 0) {
		cj_refuse(&err, "the profile changes; send the request again");
		posted_refuse(p, API_BAD_REQUEST, &err);
		return false;
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
	posted_refuse(p, API_BAD_REQUEST, &err);
	return false;
}

static bool has_room(struct posted *p, const struct sessions_request *o)
{
	struct sessions *sessions = &p->call->api->sessions;
	struct cj_error err = { 0 };

	if (sessions_check_ceilings(sessions, o, &err) < 0) {
		posted_refuse(p, API_ABOVE_CEILING, &err);
		return false;
	}
	enum api_code why = sessions_admit(sessions, o->account, o->memory_bytes);
	if (why != API_OK)
		posted_refuse(p, why, NULL);
	return why == API_OK;
}

static void create(struct posted *p, struct config *own)
{
	struct api_call *c = p->call;
	struct cj_error err = { 0 };
	struct sessions_order order = {
		.exchange = c->exchange,
		.session = { .account = c->account,
			     .is_repl = p->request.wants_repl,
			     .memory_bytes = p->asked.memory_bytes,
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

	if (!has_room(p, &order.session))
		return;
	int rc = plan_mint_id(id, &err);
	if (rc == 0) {
		order.run = posted_order(p, JOB_SESSION, id);
		rc = sessions_begin(&c->api->sessions, &order, &err);
		free(order.run.job.body);
	}
	if (rc < 0)
		posted_fail(p, &err, "create a session");
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

/* --- the others --------------------------------------------------------------- */

static void reply(struct api_call *c, const struct session_entry *e)
{
	auto_json_writer struct json_writer *w = json_writer_create(false);
	const struct sessions_now now = { clock_ms(), clock_epoch_ms() };

	if (w)
		sessions_json_put(w, e, &now);
	exchange_reply_json(c->exchange, 200, w);
}

void api_list_sessions(struct api_call *c)
{
	auto_json_writer struct json_writer *w = json_writer_create(false);
	const struct sessions_now now = { clock_ms(), clock_epoch_ms() };
	const struct session_entry *e;

	if (w) {
		json_open_object(w);
		json_member_array(w, "sessions");
		TAILQ_FOREACH(e, &c->api->sessions.entries, link)
			if (strcmp(e->caller, c->account->name) == 0)
				sessions_json_put(w, e, &now);
		json_close_array(w);
		json_close_object(w);
	}
	exchange_reply_json(c->exchange, 200, w);
}

void api_show_session(struct api_call *c)
{
	const struct session_entry *e = api_find_session(c);

	if (e)
		reply(c, e);
}

void api_end_session(struct api_call *c)
{
	struct session_entry *e = api_find_session(c);

	if (e && e->state == ENTRY_ENDED)
		reply(c, e);
	else if (e)
		sessions_close(e, SESSION_CLOSED, c->exchange);
}

void api_renew_session(struct api_call *c)
{
	struct session_entry *e = api_find_live_session(c);
	struct sessions_request asked = { 0 };
	struct cj_error err = { 0 };
	size_t size = 0;

	if (!e)
		return;
	auto_free char *body = exchange_take_body(c->exchange, &size);
	if (session_body_lease((struct blob){ body, size }, &asked.lease_ms, &err) < 0) {
		exchange_refuse(c->exchange, API_BAD_REQUEST, err.msg, err.hint);
		return;
	}
	if (sessions_check_ceilings(&c->api->sessions, &asked, &err) < 0) {
		exchange_refuse(c->exchange, API_ABOVE_CEILING, err.msg, NULL);
		return;
	}
	sessions_renew(e, asked.lease_ms, clock_ms());
	reply(c, e);
}

/* --- the small bodies of the routes of sessions ---------------------------------------------- */

#define NAME       "request"
#define AT(member) .offset = offsetof(struct small, member)

/* What the four bodies have. */
struct small {
	uint64_t lease_ms;
	int signo;
	size_t stdin_max;
	struct session_stdin in;
	struct session_change_order change;
};

static int set_lease(const struct json_reader *in, const struct json_key *k, const char *text,
		     void *record, struct cj_error *err)
{
	(void)in;
	return parse_duration(text, json_field(k, record), err);
}

static int set_signal(const struct json_reader *in, const struct json_key *k, const char *text,
		      void *record, struct cj_error *err)
{
	static const struct {
		const char *name;
		int signo;
	} rows[] = {
		{ "HUP", SIGHUP },     { "INT", SIGINT },   { "QUIT", SIGQUIT },
		{ "KILL", SIGKILL },   { "USR1", SIGUSR1 }, { "USR2", SIGUSR2 },
		{ "TERM", SIGTERM },   { "CONT", SIGCONT }, { "STOP", SIGSTOP },
		{ "WINCH", SIGWINCH },
	};
	const char *name = strncmp(text, "SIG", 3) == 0 ? text + 3 : text;
	(void)in;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (strcmp(rows[i].name, name) != 0)
			continue;
		*(int *)json_field(k, record) = rows[i].signo;
		return 0;
	}
	cj_refuse(err, "'%.32s' is not a signal that can be sent", text);
	return cj_hint(err, "HUP, INT, QUIT, KILL, USR1, USR2, TERM, CONT, STOP or WINCH");
}

static int read_bytes(const struct json_reader *in, const struct json_key *k,
		      const struct json_node *node, void *record, struct cj_error *err)
{
	struct json_key capped = *k;

	capped.max = ((const struct small *)record)->stdin_max;
	return k->detail ? json_read_base64(in, &capped, node, record, err)
			 : json_read_blob(in, &capped, node, record, err);
}

static const struct json_key lease_keys[] = {
	{ "lease", JSON_TAKES_STRING | JSON_TAKES_NUMBER, .is_required = true, .set = set_lease,
	  AT(lease_ms) },
};
static const struct json_key signal_keys[] = {
	{ "signal", JSON_TAKES_STRING, .is_required = true, .set = set_signal, AT(signo) },
};
static const struct json_key stdin_keys[] = {
	{ "text", JSON_TAKES_STRING, .read = read_bytes, AT(in.text) },
	{ "base64", JSON_TAKES_STRING, .read = read_bytes, AT(in.base64), .detail = "base64" },
	{ "eof", JSON_TAKES_BOOL, .set = json_set_bool, AT(in.is_end) },
};
static const struct json_key change_keys[] = {
	{ "mkdir", JSON_TAKES_BOOL, .set = json_set_bool, AT(change.is_mkdir) },
	{ "rename", JSON_TAKES_STRING, .set = json_set_string, AT(change.to) },
};
static const struct json_record change_record = JSON_RECORD(change_keys, NAME);
static const struct json_record lease_record = JSON_RECORD(lease_keys, NAME);
static const struct json_record signal_record = JSON_RECORD(signal_keys, NAME);
static const struct json_record stdin_record = JSON_RECORD(stdin_keys, NAME);

static int read_small(struct blob body, const struct json_record *record, struct arena *a,
		      struct small *out, struct cj_error *err)
{
	const struct json_node *root = NULL;
	const struct json_reader in = { .file = NAME, .arena = a };

	if (json_parse_capped(NAME, body.bytes ? body.bytes : "", body.size, a, &root, err) < 0)
		return -err->code;
	return json_record_read(&in, root, record, out, err);
}

int session_body_lease(struct blob body, uint64_t *out_ms, struct cj_error *err)
{
	auto_arena struct arena a = { 0 };
	struct small got = { 0 };

	if (read_small(body, &lease_record, &a, &got, err) < 0)
		return -err->code;
	*out_ms = got.lease_ms;
	return 0;
}

int session_body_change(struct blob body, struct arena *a, struct session_change_order *out,
			struct cj_error *err)
{
	struct small got = { 0 };

	if (read_small(body, &change_record, a, &got, err) < 0)
		return -err->code;
	if (got.change.is_mkdir == (got.change.to != NULL))
		return cj_reject(err, NAME ": either \"mkdir\": true or rename must be there");
	*out = got.change;
	return 0;
}

int session_body_signal(struct blob body, int *out_signo, struct cj_error *err)
{
	auto_arena struct arena a = { 0 };
	struct small got = { 0 };

	if (read_small(body, &signal_record, &a, &got, err) < 0)
		return -err->code;
	*out_signo = got.signo;
	return 0;
}

int session_body_stdin(struct blob body, size_t max, struct arena *a, struct session_stdin *out,
		       struct cj_error *err)
{
	struct small got = { .stdin_max = max };

	if (read_small(body, &stdin_record, a, &got, err) < 0)
		return -err->code;
	if (got.in.text.bytes && got.in.base64.bytes)
		return cj_reject(err, NAME ": text and base64 exclude each other");
	if (!got.in.text.bytes && !got.in.base64.bytes && !got.in.is_end)
		return cj_reject(err, NAME ": text, base64 or eof is missing");
	*out = got.in;
	out->bytes = got.in.text.bytes ? got.in.text : got.in.base64;
	return 0;
}
