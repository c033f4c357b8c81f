/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions from their request to their end. */
#include "runtime/service/sessions/keeper_conn.h"

#include <assert.h>

#include "runtime/base/clock.h"
#include "runtime/base/scope.h"
#include "runtime/base/text.h"
#include "runtime/jail/protocol.h"
#include "runtime/run/report/events.h"
#include "runtime/run/report/result.h"
#include "runtime/service/operations/audit.h"
#include "runtime/service/http/http.h"
#include "runtime/service/operations/metrics.h"
#include "runtime/service/log/slog.h"
#include "runtime/service/queue/run_caller.h"
#include "runtime/service/sessions/sessions_parts.h"

#define NETWORK_TEXT_MAX 4096 /* of the list in an audit line, which is cut off then */

static_assert(SESSIONS_START_MS > STEP_TIMEOUT_MS,
	      "the error of a step arrives before the session is given up");

static void remove_waiter(struct session_waiter *w)
{
	TAILQ_REMOVE(&w->session->waiters, w, link);
	if (w->exec)
		w->exec->waiting--;
	free(w);
}

static void on_waiter_gone(void *holder)
{
	struct session_waiter *w = holder;
	struct session_entry *e = w->session;
	bool is_creator = w->is_creator;

	remove_waiter(w);
	if (is_creator) /* nobody knows the id */
		sessions_close(e, SESSION_CLOSED, NULL);
}

bool sessions_wait(const struct session_waiter *waiter)
{
	struct session_waiter *w = malloc(sizeof(*w));

	if (!w) {
		exchange_refuse(waiter->exchange, API_INTERNAL, NULL, NULL);
		return false;
	}
	*w = *waiter;
	TAILQ_INSERT_TAIL(&w->session->waiters, w, link);
	if (w->exec)
		w->exec->waiting++;
	exchange_hold(w->exchange, on_waiter_gone, w);
	return true;
}

void sessions_reply(const struct session_entry *e, struct exchange *x, unsigned status)
{
	auto_json_writer struct json_writer *w = json_writer_create(false);
	const struct sessions_now now = { clock_ms(), clock_epoch_ms() };

	sessions_json_put(w, e, &now);
	exchange_reply_json(x, status, w);
}

/* Why the session was not created.  Only its caller's own mistake is in the message. */
static void refuse_creator(const struct session_entry *e, struct exchange *x)
{
	if (e->reason == SESSION_DRAIN)
		exchange_refuse(x, API_DRAINING, NULL, NULL);
	else if (e->is_callers_own)
		exchange_refuse(x, API_BAD_REQUEST, e->message, NULL);
	else if (e->reason == SESSION_FAILED)
		exchange_refuse(x, API_INTERNAL, e->is_own_message ? e->message : NULL, NULL);
	else
		exchange_refuse(x, API_SESSION_ENDED, e->message, NULL);
}

int sessions_answer(struct session_entry *e, uint64_t now_ms)
{
	struct session_waiter *w, *next;
	int wait_ms = -1;

	for (w = TAILQ_FIRST(&e->waiters); w; w = next) {
		next = TAILQ_NEXT(w, link);
		bool is_due = w->exec ? w->exec->is_finished || w->until_ms <= now_ms
				      : e->state == ENTRY_ENDED ||
					    (w->is_creator && e->state == ENTRY_LIVE) ||
					    (w->has_network && !e->next_network);
		if (!is_due && w->exec)
			wait_ms = loop_sooner(wait_ms, (int)(w->until_ms - now_ms));
		if (!is_due)
			continue;
		const struct session_waiter due = *w;
		remove_waiter(w);
		if (due.exec)
			sessions_reply_exec(due.exec, due.exchange);
		else if (due.is_creator && e->state == ENTRY_ENDED)
			refuse_creator(e, due.exchange);
		else if (due.has_network && e->state == ENTRY_ENDED)
			exchange_refuse(due.exchange, API_SESSION_ENDED, e->message, NULL);
		else
			sessions_reply(e, due.exchange, due.is_creator ? 201 : 200);
	}
	return wait_ms;
}

/*
 * Writes the line of a change of its `network`, or of its end, with the `reason`; both NULL: of its
 * start.  False: the line is required and could not be written.
 */
static bool write_audit(struct session_entry *e, const char *network, const char *reason)
{
	const struct audit_session line = { .order = &e->order,
					    .context = e->is_repl ? "repl" : "none",
					    .network = network,
					    .reason = reason,
					    .execs = e->execs_ended,
					    .duration_ms = clock_ms() - e->begun_ms,
					    .cpu_ms = e->usage.cpu_ms };

	return audit_session(e->all->executions->audit, &line);
}

/* "none", "public", or the list with blanks between, and each that is denied with '!' before it. */
static bool write_network_audit(struct session_entry *e, const struct session_network *n)
{
	const struct strings *allow = &n->rules.allow, *deny = &n->rules.deny;
	char text[NETWORK_TEXT_MAX] = "";

	if (allow->count == 0)
		text_append(text, sizeof(text), "%s",
			    network_mode_names[n->rules.is_list ? NETWORK_NONE : NETWORK_PUBLIC]);
	for (size_t i = 0; i < allow->count; i++)
		text_append(text, sizeof(text), "%s%s", i > 0 ? " " : "", allow->items[i]);
	for (size_t i = 0; i < deny->count; i++)
		text_append(text, sizeof(text), " !%s", deny->items[i]);
	return write_audit(e, text, NULL);
}

enum api_code sessions_change_network(struct session_entry *e, const struct config *asked,
				      bool narrows, struct exchange *x, struct cj_error *err)
{
	const struct session_waiter waiter = { .session = e, .exchange = x, .has_network = true };
	const struct session_network *now = narrows ? e->network : NULL;

	if (!sessions_is_live(e))
		return API_NOT_RUNNING;
	if (e->next_network)
		return API_TOO_MANY_WAITING;
	int rc = session_network_create(asked, now, &e->next_network, err);
	if (rc < 0)
		return rc == -EPERM ? API_BAD_REQUEST : API_INTERNAL;
	if (!write_network_audit(e, e->next_network)) {
		session_network_destroy(&e->next_network);
		return API_AUDIT_UNAVAILABLE;
	}
	if (keeper_send_network(&e->conn->worker, &e->next_network->rules, err) < 0) {
		session_network_destroy(&e->next_network);
		return API_INTERNAL;
	}
	sessions_touch(e, clock_ms());
	(void)sessions_wait(&waiter);
	return API_OK;
}

/* Programs that have begun: the result of a later one says it. */
static void tell_execs(const struct session_entry *e)
{
	const struct network_rules rules = { e->network->rules, true };
	struct exec_entry *x;

	TAILQ_FOREACH(x, &e->execs, link) {
		auto_json_writer struct json_writer *w = NULL;
		struct cj_error ignored;
		struct blob text;

		if (!x->run || !x->run->conn || x->run->first_event_ms == 0)
			continue;
		w = json_writer_create(false);
		json_open_object(w);
		json_member_text(w, "type", event_type_names[EVENT_NETWORK]);
		json_member_u64(w, "at_ms", clock_ms() - x->run->first_event_ms);
		result_put_rules(w, &rules);
		json_close_object(w);
		if (json_writer_take(w, &text, &ignored) == 0)
			run_caller_tell(x->run, text.bytes, text.size);
	}
}

/* They are in force, or those before still are. */
static void on_network(struct session_entry *e, const struct keeper_line *line)
{
	struct session_network *next = e->next_network;
	struct session_waiter *w;

	e->next_network = NULL;
	if (line->message[0] == '\0') {
		session_network_destroy(&e->network);
		e->network = next;
		tell_execs(e);
		(void)sessions_answer(e, clock_ms());
		return;
	}
	session_network_destroy(&next);
	slog(SLOG_WARNING, e->order.job.trace.request_id, "session %s: %s", e->id, line->message);
	TAILQ_FOREACH(w, &e->waiters, link)
		if (w->has_network) /* one, or none if it has disconnected */
			break;
	if (!w)
		return;
	struct exchange *x = w->exchange;
	remove_waiter(w);
	exchange_refuse(x, line->is_callers_own ? API_BAD_REQUEST : API_INTERNAL,
			line->is_callers_own ? line->message : NULL, NULL);
}

/* The jail has ended, or never lived. */
static void fail(struct session_entry *e, enum session_end reason, const char *message,
		 bool is_for_caller)
{
	bool is_error = reason == SESSION_FAILED || reason == SESSION_STUCK;
	bool is_shown = message[0] && (is_for_caller || e->order.job.may_name_host_paths);

	slog(is_error ? SLOG_ERROR : SLOG_INFO, e->order.job.trace.request_id,
	     "session %s (%s) ended: %s%s%s", e->id, e->profile, session_ends[reason].name,
	     message[0] ? ": " : "", message);
	sessions_set_ending(e, reason, is_shown ? message : NULL);
	sessions_end_execs(e, true);
	e->deadline_ms = clock_ms() + SESSIONS_END_MS;
}

static void on_line(struct worker_conn *conn, const char *text, size_t size)
{
	struct session_entry *e = conn->owner;
	struct readiness_line said;
	struct keeper_line line;
	enum worker_line type = worker_conn_line(text);

	if (type == WORKER_READY)
		return;
	if (type == WORKER_UNREADY) {
		ready_read(text, size, &said);
		fail(e, SESSION_FAILED, said.why, false);
		return;
	}
	keeper_line_read(text, size, &line);
	switch (line.type) {
	case KEEPER_LINE_LIVES:
		if (e->state != ENTRY_STARTING)
			break; /* it is about to end already */
		e->is_isolated = line.is_isolated;
		e->deadline_ms = 0;
		sessions_set_live(e, clock_ms());
		(void)sessions_answer(e, clock_ms());
		break;
	case KEEPER_LINE_STATUS:
		sessions_note_usage(e, &line);
		break;
	case KEEPER_LINE_NETWORK:
		if (e->next_network)
			on_network(e, &line);
		break;
	case KEEPER_LINE_ENDED:
		e->is_callers_own = line.reason == SESSION_FAILED && line.is_callers_own;
		fail(e, line.reason, line.message, e->is_callers_own);
		break;
	default:
		fail(e, SESSION_FAILED, "its keeper sent a line that the protocol does not have",
		     false);
		worker_conn_close_control(conn);
	}
}

static void on_ended(struct worker_conn *conn, const char *why)
{
	struct session_entry *e = conn->owner;

	if (e->state < ENTRY_ENDING)
		fail(e, SESSION_FAILED, why[0] ? why : "its keeper has ended", false);
	else
		sessions_end_execs(e, true);
	worker_conn_destroy(&e->conn);
}

/* A prepared session or jail, else a cold worker. */
static int find_worker(struct session_entry *e, const struct run_order *o, struct cj_error *err)
{
	struct pool *pool = e->all->executions->pool;
	enum tier best = o->fit == FIT_COLD                        ? TIER_COLD
			 : e->is_repl && o->fit == FIT_INTERPRETER ? TIER_REPL
								   : TIER_JAIL;
	enum tier tier = TIER_COLD;

	if (pool_find(pool, o->profile, best, &e->conn, &tier, err) < 0 ||
	    pool_send_job(pool, o->profile, best, &o->job, &e->conn, &tier, err) < 0)
		return -err->code;
	e->conn->owner = e;
	e->conn->line = on_line;
	e->conn->ended = on_ended;
	return 0;
}

/* Closes what only a session has that has not ended. */
static void release(struct session_entry *e)
{
	worker_conn_destroy(&e->conn);
	config_fini(&e->config);
	config_fini(&e->base);
	arena_fini(&e->arena);
}

int sessions_begin(struct sessions *s, const struct sessions_order *o, struct cj_error *err)
{
	struct sessions_request session = o->session;

	session.id = o->run.job.id;
	session.profile = o->run.profile;
	struct session_entry *e = sessions_add(s, &session);
	if (!e)
		return cj_fail(err, ENOMEM, "create a session");
	const struct session_waiter creator = { .session = e,
						.exchange = o->exchange,
						.is_creator = true };
	struct config whole = *o->config;
	whole.profile_allow = whole.allow.count; /* a list of its own comes to the profile's */
	if (session_network_create(&whole, NULL, &e->network, err) < 0) {
		sessions_drop(s, e);
		return cj_wrap(err, "create a session");
	}
	e->order = o->run;
	e->order.job.body = NULL;
	e->begun_ms = o->session.now_ms;
	e->deadline_ms = e->begun_ms + SESSIONS_START_MS;
	e->base = *o->profile;
	e->config = *o->config;
	arena_move(&e->arena, o->arena);
	config_init(o->profile);
	config_init(o->config);
	if (audit_is_on(s->executions->audit))
		sha256_hex(o->run.job.body, o->run.job.body_size, e->order.request_sha256);
	bool may_begin = write_audit(e, NULL, NULL);
	if (may_begin && find_worker(e, &o->run, err) == 0) {
		metrics_count_session(s->executions->metrics, e->profile);
		if (!sessions_wait(&creator)) /* nobody knows the id */
			sessions_close(e, SESSION_CLOSED, NULL);
		return 0;
	}
	if (may_begin)
		(void)write_audit(e, NULL, session_ends[SESSION_FAILED].name);
	else
		exchange_refuse(o->exchange, API_AUDIT_UNAVAILABLE, NULL, NULL);
	release(e);
	sessions_drop(s, e);
	return may_begin ? cj_wrap(err, "create a session") : 0;
}

void sessions_close(struct session_entry *e, enum session_end reason, struct exchange *x)
{
	if (x)
		(void)sessions_wait(&(struct session_waiter){ .session = e, .exchange = x });
	if (e->state >= ENTRY_ENDING)
		return;
	slog(SLOG_INFO, e->order.job.trace.request_id, "session %s (%s) ends: %s", e->id,
	     e->profile, session_ends[reason].name);
	sessions_set_ending(e, reason, NULL);
	e->deadline_ms = clock_ms() + SESSIONS_END_MS;
	if (e->conn)
		worker_conn_close_control(e->conn);
	sessions_end_execs(e, false);
}

void sessions_close_all(struct sessions *s, enum session_end reason)
{
	struct session_entry *e;

	TAILQ_FOREACH(e, &s->entries, link)
		sessions_close(e, reason, NULL);
}

/* Nothing of the session is left.  One that no caller waits for may be forgotten at once. */
static void settle(struct session_entry *e)
{
	struct sessions *s = e->all;
	bool is_awaited = !TAILQ_EMPTY(&e->waiters);

	sessions_close_files(e);
	(void)write_audit(e, NULL,
			  session_ends[e->reason].name); /* it logs and counts its failure */
	metrics_count_session_end(s->executions->metrics, e->reason);
	release(e);
	/* before the waiters are answered: a next session may be created at once */
	sessions_end(s, e, clock_epoch_ms());
	if (is_awaited)
		(void)sessions_answer(e, clock_ms());
}

static void enforce_deadline(struct session_entry *e)
{
	if (e->state == ENTRY_STARTING) {
		fail(e, SESSION_FAILED, "its jail was not built in time", false);
		worker_conn_close_control(e->conn);
		return;
	}
	slog(SLOG_ERROR, e->order.job.trace.request_id,
	     "session %s: its keeper did not end in time", e->id);
	sessions_end_execs(e, true);
	worker_conn_destroy(&e->conn);
}

/* A session without a keeper and execs, whose end forgets others. */
static struct session_entry *next_to_settle(const struct sessions *s)
{
	struct session_entry *e;

	TAILQ_FOREACH(e, &s->entries, link)
		if (e->state != ENTRY_ENDED && !e->conn && e->unfinished == 0)
			return e;
	return NULL;
}

int sessions_tick(struct sessions *s, uint64_t now_ms)
{
	enum session_end reason = SESSION_LEASE;
	struct session_entry *e;
	uint64_t due_ms = 60000;

	if (TAILQ_EMPTY(&s->entries))
		return -1;
	while ((e = sessions_due(s, now_ms, &reason, &due_ms)) != NULL)
		sessions_close(e, reason, NULL);
	sessions_expire_results(s, now_ms, &due_ms);
	int wait_ms = (int)due_ms;
	TAILQ_FOREACH(e, &s->entries, link) {
		if (e->state == ENTRY_ENDED)
			continue;
		if (s->executions->is_draining && e->unfinished == 0 && e->files == 0)
			sessions_close(e, SESSION_DRAIN, NULL);
		if (e->conn && e->deadline_ms > 0 && e->deadline_ms <= now_ms)
			enforce_deadline(e);
		else if (e->conn && e->deadline_ms > 0)
			wait_ms = loop_sooner(wait_ms, (int)(e->deadline_ms - now_ms));
		wait_ms = loop_sooner(wait_ms, sessions_answer(e, now_ms));
		sessions_tick_files(e, now_ms, &wait_ms);
	}
	while ((e = next_to_settle(s)) != NULL) {
		settle(e);
		wait_ms = 0; /* an exec of another session may wait for its memory */
	}
	return wait_ms;
}

void sessions_end_all(struct sessions *s)
{
	struct session_entry *e;

	TAILQ_FOREACH(e, &s->entries, link) {
		if (e->state == ENTRY_ENDED)
			continue;
		sessions_set_ending(e, SESSION_DRAIN, NULL);
		worker_conn_destroy(&e->conn);
	}
	while ((e = next_to_settle(s)) != NULL)
		settle(e);
}
