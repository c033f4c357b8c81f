/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions from their request to their end. */
#include "runtime/service/sessions/keeper_conn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/clock.h"
#include "runtime/base/scope.h"
#include "runtime/service/operations/audit.h"
#include "runtime/service/http/http.h"
#include "runtime/service/operations/metrics.h"
#include "runtime/service/log/slog.h"
#include "runtime/service/sessions/sessions_parts.h"
#include "runtime/service/sessions/sessions.h"

#define RETRY_SOON_MS 1000

struct keeper_conns *keeper_conns_create(const struct keeper_conns_context *c)
{
	struct keeper_conns *all = calloc(1, sizeof(*all));

	if (!all)
		return NULL;
	all->context = *c;
	TAILQ_INIT(&all->list);
	return all;
}

const struct config *sessions_profile(const struct session_entry *e)
{
	return &e->keeper->profile;
}

const struct config *sessions_config(const struct session_entry *e)
{
	return &e->keeper->config;
}

bool sessions_is_audit_required(const struct session_entry *e)
{
	return e->keeper->order.audit_required;
}

/* --- callers that wait ---------------------------------------------------------- */

static void remove_waiter(struct session_waiter *waiter)
{
	TAILQ_REMOVE(&waiter->keeper->waiters, waiter, link);
	free(waiter);
}

static void on_waiter_gone(void *holder)
{
	struct session_waiter *waiter = holder;
	struct keeper_conn *k = waiter->keeper;
	bool is_creator = waiter->is_creator;

	remove_waiter(waiter);
	if (is_creator) /* nobody knows the id */
		sessions_close(k->all, k->entry, SESSION_CLOSED, NULL);
}

/* False: there is no memory for it, and it was told so. */
static bool hold(struct keeper_conn *k, struct exchange *x, bool is_creator)
{
	struct session_waiter *waiter = calloc(1, sizeof(*waiter));

	if (!waiter) {
		exchange_refuse(x, API_INTERNAL, NULL, NULL, 0);
		return false;
	}
	*waiter = (struct session_waiter){ .keeper = k, .exchange = x, .is_creator = is_creator };
	TAILQ_INSERT_TAIL(&k->waiters, waiter, link);
	exchange_hold(x, on_waiter_gone, waiter);
	return true;
}

static void reply(struct exchange *x, unsigned status, const struct session_entry *e)
{
	auto_json_writer struct json_writer *w = json_writer_create(false);
	const struct sessions_now now = { clock_ms(), clock_epoch_ms() };

	if (w)
		sessions_json_put(w, e, &now);
	exchange_reply_json(x, status, w);
}

/* Why the session was not created.  Only its caller's own mistake is in the message. */
static void refuse_creator(const struct keeper_conn *k, struct exchange *x)
{
	const struct session_entry *e = k->entry;

	if (e->reason == SESSION_DRAIN)
		exchange_refuse(x, API_DRAINING, NULL, NULL, RETRY_SOON_MS);
	else if (k->is_callers_own)
		exchange_refuse(x, API_BAD_REQUEST, e->message, NULL, 0);
	else if (e->reason == SESSION_FAILED)
		exchange_refuse(x, API_INTERNAL, e->is_own_message ? e->message : NULL, NULL, 0);
	else
		exchange_refuse(x, API_SESSION_ENDED, e->message, NULL, 0);
}

static void answer_waiters(struct keeper_conn *k)
{
	struct session_waiter *waiter, *next;

	for (waiter = TAILQ_FIRST(&k->waiters); waiter; waiter = next) {
		next = TAILQ_NEXT(waiter, link);
		struct exchange *x = waiter->exchange;
		bool is_creator = waiter->is_creator;
		if (k->entry->state == ENTRY_LIVE && !is_creator)
			continue;
		remove_waiter(waiter);
		if (k->entry->state == ENTRY_LIVE)
			reply(x, 201, k->entry);
		else if (is_creator)
			refuse_creator(k, x);
		else
			reply(x, 200, k->entry);
	}
}

/* --- the audit ------------------------------------------------------------------ */

/* False: the line is required and could not be written. */
static bool write_audit(struct keeper_conn *k, const char *reason)
{
	const struct session_entry *e = k->entry;
	struct audit *audit = k->all->context.audit;
	const struct audit_session line = { .order = &k->order,
					    .context = e->is_repl ? "repl" : "none",
					    .reason = reason,
					    .execs = k->execs,
					    .duration_ms = clock_ms() - k->begun_ms,
					    .cpu_ms = e->usage.cpu_ms };
	struct cj_error err = { 0 };

	if (!audit_is_on(audit))
		return !k->order.audit_required;
	if (audit_session(audit, &line, &err) == 0)
		return true;
	slog_failure(SLOG_ERROR, k->order.job.trace.request_id, &err,
		     "write the audit line of a session");
	return !k->order.audit_required;
}

/* --- the keeper's lines --------------------------------------------------------- */

static void on_session(struct keeper_conn *k, const struct keeper_line *line)
{
	struct session_entry *e = k->entry;

	if (e->state != ENTRY_STARTING)
		return; /* it is about to end already */
	e->is_isolated = line->is_isolated;
	k->deadline_ms = 0;
	sessions_set_live(e, clock_ms());
	answer_waiters(k);
}

static void log_end(const struct keeper_conn *k, enum session_end reason, const char *message)
{
	enum slog_level level = reason == SESSION_FAILED || reason == SESSION_STUCK ? SLOG_ERROR
										    : SLOG_INFO;

	slog(level, k->order.job.trace.request_id, "session %s (%s) ended: %s%s%s", k->entry->id,
	     k->entry->profile, session_ends[reason].name, message[0] ? ": " : "", message);
}

/* The jail has ended, or never lived. */
static void fail(struct keeper_conn *k, enum session_end reason, const char *message,
		 bool is_for_caller)
{
	log_end(k, reason, message);
	bool is_shown = message[0] && (is_for_caller || k->order.job.may_name_host_paths);
	sessions_set_ending(k->entry, reason, is_shown ? message : NULL);
	keeper_conn_end_execs(k, true);
	k->deadline_ms = clock_ms() + SESSIONS_END_MS;
}

static void on_end_line(struct keeper_conn *k, const struct keeper_line *line)
{
	k->is_callers_own = line->reason == SESSION_FAILED && line->is_callers_own;
	fail(k, line->reason, line->message, k->is_callers_own);
}

static void on_line(struct worker_conn *conn, const char *text, size_t size)
{
	struct keeper_conn *k = conn->owner;
	struct readiness_line said;
	struct keeper_line line;
	enum worker_line type = worker_conn_line(text);

	if (type == WORKER_READY)
		return;
	if (type == WORKER_UNREADY) {
		ready_read(text, size, &said);
		fail(k, SESSION_FAILED, said.why, false);
		return;
	}
	keeper_line_read(text, size, &line);
	if (line.type == KEEPER_LINE_LIVES) {
		on_session(k, &line);
	} else if (line.type == KEEPER_LINE_STATUS) {
		sessions_note_usage(k->entry, &line);
	} else if (line.type == KEEPER_LINE_ENDED) {
		on_end_line(k, &line);
	} else {
		fail(k, SESSION_FAILED, "its keeper sent a line that the protocol does not have",
		     false);
		worker_conn_close_control(conn);
	}
}

static void on_ended(struct worker_conn *conn, const char *why)
{
	struct keeper_conn *k = conn->owner;

	if (k->entry->state < ENTRY_ENDING)
		fail(k, SESSION_FAILED, why[0] ? why : "its keeper has ended", false);
	else
		keeper_conn_end_execs(k, true);
	worker_conn_destroy(&k->conn);
}

/* --- begin ------------------------------------------------------------------------ */

/* A prepared session or jail, else a cold worker. */
static int find_worker(struct keeper_conn *k, const struct run_order *o, struct cj_error *err)
{
	struct pool *pool = k->all->context.pool;
	enum tier best = o->fit == FIT_COLD                               ? TIER_COLD
			 : k->entry->is_repl && o->fit == FIT_INTERPRETER ? TIER_REPL
									  : TIER_JAIL;
	enum tier tier = TIER_COLD;

	if (pool_find(pool, o->profile, best, &k->conn, &tier, err) < 0 ||
	    pool_send_job(pool, o->profile, best, &o->job, &k->conn, &tier, err) < 0)
		return -err->code;
	k->conn->owner = k;
	k->conn->line = on_line;
	k->conn->ended = on_ended;
	return 0;
}

static void destroy(struct keeper_conn *k)
{
	TAILQ_REMOVE(&k->all->list, k, link);
	worker_conn_destroy(&k->conn);
	config_fini(&k->config);
	config_fini(&k->profile);
	arena_fini(&k->arena);
	free(k);
}

static struct keeper_conn *create(struct keeper_conns *all, const struct sessions_order *o)
{
	struct keeper_conn *k = calloc(1, sizeof(*k));
	struct sessions_request session = o->session;

	session.id = o->run.job.id;
	session.profile = o->run.profile;
	struct session_entry *e = k ? sessions_add(all->context.sessions, &session) : NULL;

	if (!e) {
		free(k);
		return NULL;
	}
	k->all = all;
	k->entry = e;
	e->keeper = k;
	TAILQ_INIT(&k->waiters);
	TAILQ_INIT(&k->files);
	k->order = o->run;
	k->order.job.body = NULL;
	k->begun_ms = o->session.now_ms;
	k->deadline_ms = k->begun_ms + SESSIONS_START_MS;
	k->profile = *o->profile;
	k->config = *o->config;
	k->arena = *o->arena;
	config_init(o->profile);
	config_init(o->config);
	*o->arena = (struct arena){ 0 };
	if (audit_is_on(all->context.audit))
		sha256_hex(o->run.job.body, o->run.job.body_size, k->order.request_sha256);
	TAILQ_INSERT_TAIL(&all->list, k, link);
	return k;
}

int sessions_begin(struct keeper_conns *all, const struct sessions_order *order,
		   struct cj_error *err)
{
	struct sessions *sessions = all->context.sessions;
	struct keeper_conn *k = create(all, order);

	if (!k)
		return cj_fail(err, ENOMEM, "create a session");
	if (!write_audit(k, NULL)) {
		sessions_drop(sessions, k->entry);
		destroy(k);
		exchange_refuse(order->exchange, API_AUDIT_UNAVAILABLE, NULL, NULL, RETRY_SOON_MS);
		return 0;
	}
	if (find_worker(k, &order->run, err) < 0) {
		(void)write_audit(k, session_ends[SESSION_FAILED].name);
		sessions_drop(sessions, k->entry);
		destroy(k);
		return cj_wrap(err, "create a session");
	}
	metrics_count_session(all->context.metrics, k->entry->profile);
	if (!hold(k, order->exchange, true)) /* nobody knows the id */
		sessions_close(all, k->entry, SESSION_CLOSED, NULL);
	return 0;
}

/* --- the end ---------------------------------------------------------------------- */

void sessions_close(struct keeper_conns *all, struct session_entry *e, enum session_end reason,
		    struct exchange *x)
{
	struct keeper_conn *k = e->keeper;

	(void)all;
	if (x)
		(void)hold(k, x, false);
	if (e->state >= ENTRY_ENDING)
		return;
	slog(SLOG_INFO, k->order.job.trace.request_id, "session %s (%s) ends: %s", e->id,
	     e->profile, session_ends[reason].name);
	sessions_set_ending(e, reason, NULL);
	k->deadline_ms = clock_ms() + SESSIONS_END_MS;
	if (k->conn)
		worker_conn_close_control(k->conn);
	keeper_conn_end_execs(k, false);
}

void sessions_close_all(struct keeper_conns *all, enum session_end reason)
{
	struct keeper_conn *k;

	TAILQ_FOREACH(k, &all->list, link)
		sessions_close(all, k->entry, reason, NULL);
}

/* Nothing of the session is left. */
static void settle(struct keeper_conn *k)
{
	struct keeper_conns *all = k->all;
	struct session_entry *e = k->entry;

	keeper_conn_close_files(k);
	(void)write_audit(k, session_ends[e->reason].name); /* it logs and counts its failure */
	metrics_count_session_end(all->context.metrics, e->reason);
	/* before the waiters are answered: a next session may be created at once */
	sessions_end(all->context.sessions, e, clock_epoch_ms());
	answer_waiters(k);
	destroy(k);
}

/* --- time --------------------------------------------------------------------------- */

static void enforce_deadline(struct keeper_conn *k)
{
	if (k->entry->state == ENTRY_STARTING) {
		fail(k, SESSION_FAILED, "its jail was not built in time", false);
		worker_conn_close_control(k->conn);
		return;
	}
	slog(SLOG_ERROR, k->order.job.trace.request_id,
	     "session %s: its keeper did not end in time", k->entry->id);
	keeper_conn_end_execs(k, true);
	worker_conn_destroy(&k->conn);
}

static void tick_keeper(struct keeper_conn *k, bool is_draining, uint64_t now_ms, int *wait_ms)
{
	struct session_entry *e = k->entry;

	if (is_draining && e->unfinished == 0 && e->files == 0)
		sessions_close(k->all, e, SESSION_DRAIN, NULL);
	if (k->conn && k->deadline_ms > 0 && k->deadline_ms <= now_ms)
		enforce_deadline(k);
	else if (k->conn && k->deadline_ms > 0)
		*wait_ms = loop_sooner(*wait_ms, (int)(k->deadline_ms - now_ms));
	keeper_conn_tick_execs(k, now_ms, wait_ms);
	keeper_conn_tick_files(k, now_ms, wait_ms);
	if (!k->conn && e->unfinished == 0) {
		settle(k);
		*wait_ms = 0; /* an exec of another session may wait for its memory */
	}
}

static int tick_leases(struct keeper_conns *all, uint64_t now_ms)
{
	struct sessions *sessions = all->context.sessions;
	struct session_entry *e;
	enum session_end reason = SESSION_LEASE;
	uint64_t wait_ms = 60000;

	while ((e = sessions_due(sessions, now_ms, &reason, &wait_ms)) != NULL)
		sessions_close(all, e, reason, NULL);
	sessions_expire_results(sessions, now_ms, &wait_ms);
	return (int)wait_ms;
}

int sessions_tick(struct keeper_conns *all, bool is_draining, uint64_t now_ms)
{
	struct keeper_conn *k, *next;
	int wait_ms = -1;

	if (TAILQ_EMPTY(&all->context.sessions->entries))
		return -1;
	wait_ms = tick_leases(all, now_ms);
	for (k = TAILQ_FIRST(&all->list); k; k = next) {
		next = TAILQ_NEXT(k, link);
		tick_keeper(k, is_draining, now_ms, &wait_ms);
	}
	return wait_ms;
}

void keeper_conns_destroy(struct keeper_conns **all)
{
	struct keeper_conn *k;

	if (!*all)
		return;
	while ((k = TAILQ_FIRST(&(*all)->list)) != NULL) {
		sessions_set_ending(k->entry, SESSION_DRAIN, NULL);
		worker_conn_destroy(&k->conn);
		settle(k);
	}
	cj_free(all);
}
