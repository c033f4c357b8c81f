/* SPDX-License-Identifier: Apache-2.0 */
/* The table of sessions: who may have one, for how long, and what is remembered. */
#include "runtime/service/sessions/sessions_parts.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "netns/address/allowlist.h"

#define MIB (1u << 20)

struct world {
	struct sessions sessions;
	struct rights rights;
	struct account a, b;
	struct runs runs;
	struct trace trace;
	unsigned minted;
};

static int set_up(void **state)
{
	static struct world w;

	w = (struct world){ .rights = { .sessions = 3 },
			    .trace = { .request_id = "r", .traceparent = "t" } };
	TAILQ_INIT(&w.sessions.entries);
	runs_init(&w.runs);
	sessions_set_limits(
	    &w.sessions, &(struct sessions_limits){
			     .count = 4, .memory_bytes = 1000, .lease_ms = 10000, .idle_ms = 600 });
	w.a = (struct account){ .name = "uid:1", .rights = &w.rights };
	w.b = (struct account){ .name = "uid:2", .rights = &w.rights };
	*state = &w;
	return 0;
}

static int tear_down(void **state)
{
	struct world *w = *state;

	runs_fini(&w->runs);
	sessions_fini(&w->sessions);
	assert_int_equal(w->a.sessions + w->b.sessions, 0);
	assert_int_equal(w->sessions.results_bytes, 0);
	assert_int_equal(w->sessions.memory.bytes + w->sessions.memory.limits_bytes, 0);
	return 0;
}

static struct session_entry *add(struct world *w, struct account *a, uint64_t lease_ms,
				 uint64_t idle_ms)
{
	char id[PLAN_ID_MAX];
	(void)snprintf(id, sizeof(id), "s%u", w->minted++);
	const struct sessions_request o = { .id = id,
					    .profile = "python",
					    .account = a,
					    .memory_bytes = 100,
					    .lease_ms = lease_ms,
					    .idle_ms = idle_ms,
					    .now_ms = 1000,
					    .epoch_ms = 5000 };
	struct session_entry *e = sessions_add(&w->sessions, &o);
	assert_non_null(e);
	return e;
}

static struct session_entry *add_live(struct world *w, struct account *a, uint64_t lease_ms,
				      uint64_t idle_ms)
{
	struct session_entry *e = add(w, a, lease_ms, idle_ms);
	sessions_set_live(e, 1000);
	return e;
}

static void end(struct world *w, struct session_entry *e)
{
	sessions_set_ending(e, SESSION_CLOSED, NULL);
	sessions_end(&w->sessions, e, 9000);
}

static struct exec_entry *begin(struct world *w, struct session_entry *e, const char *id)
{
	struct run_order o = { .job.trace = w->trace,
			       .profile = "python",
			       .account = e->account,
			       .gate = &e->exec_gate };
	struct exec_entry *x = sessions_add_exec(e, id);
	assert_non_null(x);
	(void)snprintf(o.job.id, sizeof(o.job.id), "%s", id);
	(void)snprintf(o.caller, sizeof(o.caller), "%s", e->account->name);
	x->run = runs_add(&w->runs, &o, 0, 0);
	assert_non_null(x->run);
	return x;
}

static void finish(struct world *w, struct exec_entry *x, const char *result, size_t size,
		   uint64_t now_ms)
{
	struct run *run = x->run;
	sessions_finish_exec(&w->sessions, x, result, size, API_OK, now_ms, 7000);
	runs_finish(&w->runs, run, 7000);
}

/* --- ceilings ----------------------------------------------------------------- */

static void a_caller_has_as_many_as_its_rights_say(void **state)
{
	struct world *w = *state;
	struct session_entry *first = add(w, &w->a, 0, 0);

	add(w, &w->a, 0, 0);
	assert_int_equal(sessions_admit(&w->sessions, &w->a, 1), API_OK);
	add(w, &w->a, 0, 0);
	assert_int_equal(sessions_admit(&w->sessions, &w->a, 1), API_TOO_MANY_SESSIONS);
	assert_int_equal(sessions_admit(&w->sessions, &w->b, 1), API_OK);
	sessions_set_ending(first, SESSION_CLOSED, NULL);
	assert_int_equal(sessions_admit(&w->sessions, &w->a, 1), API_TOO_MANY_SESSIONS);
	sessions_end(&w->sessions, first, 1);
	assert_int_equal(sessions_admit(&w->sessions, &w->a, 1), API_OK);
	w->rights.sessions = 0;
	assert_int_equal(sessions_admit(&w->sessions, &w->b, 1), API_TOO_MANY_SESSIONS);
}

static void the_service_has_as_many_as_its_limits_say(void **state)
{
	struct world *w = *state;

	for (int i = 0; i < 4; i++)
		add(w, i % 2 ? &w->a : &w->b, 0, 0);
	assert_int_equal(sessions_admit(&w->sessions, &w->a, 1), API_SESSIONS_FULL);
	w->sessions.limits.count = 100;
	assert_int_equal(sessions_admit(&w->sessions, &w->a, 600), API_OK);
	assert_int_equal(sessions_admit(&w->sessions, &w->a, 601), API_SESSIONS_FULL);
	assert_int_equal(sessions_admit(&w->sessions, &w->a, UINT64_MAX), API_SESSIONS_FULL);
	w->sessions.memory.most_bytes = 300; /* a reload: less than is reserved already */
	assert_int_equal(sessions_admit(&w->sessions, &w->a, 0), API_SESSIONS_FULL);
}

static void a_dropped_session_counts_no_more(void **state)
{
	struct world *w = *state;

	sessions_drop(&w->sessions, add(w, &w->a, 0, 0));
	assert_int_equal(w->a.sessions, 0);
	assert_int_equal(w->sessions.live, 0);
	assert_int_equal(w->sessions.memory.bytes, 0);
}

static void what_is_above_the_limits_is_refused(void **state)
{
	struct world *w = *state;
	struct sessions_request o = { .lease_ms = 10000, .idle_ms = 600 };
	struct cj_error err = { 0 };

	assert_int_equal(sessions_check_ceilings(&w->sessions, &o, &err), 0);
	o.lease_ms = 10001;
	assert_int_equal(sessions_check_ceilings(&w->sessions, &o, &err), -EPERM);
	assert_non_null(strstr(err.msg, "lease: "));
	o.lease_ms = 1;
	o.idle_ms = 601;
	assert_int_equal(sessions_check_ceilings(&w->sessions, &o, &err), -EPERM);
	assert_non_null(strstr(err.msg, "idle: "));
	o.idle_ms = 1;
	o.memory_bytes = 1000;
	assert_int_equal(sessions_check_ceilings(&w->sessions, &o, &err), 0);
	o.memory_bytes = 1001;
	assert_int_equal(sessions_check_ceilings(&w->sessions, &o, &err), -EPERM);
	assert_non_null(strstr(err.msg, "memory: "));
	assert_non_null(strstr(err.hint, "less memory"));
}

/* --- the memory that sessions reserve ------------------------------------------- */

static void limit_memory(struct world *w, uint64_t bytes, bool reserves_limits)
{
	struct sessions_limits limits = w->sessions.limits;

	limits.memory_bytes = bytes;
	limits.reserves_limits = reserves_limits;
	sessions_set_limits(&w->sessions, &limits);
}

static struct session_entry *add_of(struct world *w, const char *id, uint64_t memory_bytes)
{
	const struct sessions_request o = { .id = id,
					    .profile = "python",
					    .account = &w->a,
					    .memory_bytes = memory_bytes,
					    .now_ms = 1000 };
	struct session_entry *e = sessions_add(&w->sessions, &o);
	assert_non_null(e);
	return e;
}

static void measure(struct session_entry *e, uint64_t used_bytes)
{
	sessions_note_usage(e, &(struct keeper_line){ .used_bytes = used_bytes });
}

static struct run *start_next(struct world *w)
{
	struct run *run = runs_next(&w->runs, 10);
	if (run)
		runs_start(&w->runs, run, 1);
	return run;
}

static void an_idle_session_reserves_what_it_uses(void **state)
{
	struct world *w = *state;
	limit_memory(w, 200 * MIB, false);
	struct session_entry *e = add_of(w, "s", 100 * MIB);

	assert_int_equal(w->sessions.memory.bytes, 100 * MIB); /* while it is created */
	sessions_set_live(e, 1000);
	measure(e, UINT64_MAX); /* not known */
	assert_int_equal(e->memory.bytes, 100 * MIB);
	measure(e, 20 * MIB);
	assert_int_equal(e->memory.bytes, 20 * MIB);
	measure(e, 0);
	assert_int_equal(e->memory.bytes, RESERVATION_MIN);
	measure(e, 101 * MIB);
	assert_int_equal(e->memory.bytes, 100 * MIB);
	assert_int_equal(w->sessions.memory.bytes, 100 * MIB);
	measure(add_of(w, "small", MIB), 1);
	assert_int_equal(w->sessions.memory.bytes, 101 * MIB);
	assert_int_equal(w->sessions.memory.limits_bytes, 101 * MIB);
}

static void an_exec_reserves_the_limit_until_the_next_measurement(void **state)
{
	struct world *w = *state;
	limit_memory(w, 200 * MIB, false);
	struct session_entry *e = add_of(w, "s", 100 * MIB);
	measure(e, 20 * MIB);
	struct exec_entry *x = begin(w, e, "x"), *y = begin(w, e, "y");

	assert_int_equal(e->memory.bytes, 20 * MIB); /* they are queued */
	assert_ptr_equal(start_next(w), x->run);
	assert_ptr_equal(start_next(w), y->run);
	assert_int_equal(w->sessions.memory.bytes, 100 * MIB);
	measure(e, 30 * MIB);
	finish(w, x, NULL, 0, 2000);
	measure(e, 30 * MIB);
	assert_int_equal(e->memory.bytes, 100 * MIB); /* the other one runs */
	finish(w, y, NULL, 0, 2000);
	assert_int_equal(e->memory.bytes, 100 * MIB);
	measure(e, 40 * MIB);
	assert_int_equal(e->memory.bytes, 40 * MIB);
}

static void an_exec_waits_while_its_limit_cannot_be_reserved(void **state)
{
	struct world *w = *state;
	limit_memory(w, 150 * MIB, false);
	struct session_entry *e = add_of(w, "e", 100 * MIB);
	measure(e, 10 * MIB);
	struct session_entry *f = add_of(w, "f", 100 * MIB);
	measure(f, 10 * MIB);
	struct exec_entry *x = begin(w, e, "x"), *y = begin(w, f, "y"), *z = begin(w, e, "z");

	assert_ptr_equal(start_next(w), x->run);
	assert_ptr_equal(start_next(w), z->run); /* its session has the memory already */
	assert_null(start_next(w));
	assert_int_equal(sessions_admit(&w->sessions, &w->a, 41 * MIB), API_SESSIONS_FULL);
	assert_int_equal(sessions_admit(&w->sessions, &w->a, 40 * MIB), API_OK);
	finish(w, x, NULL, 0, 2000);
	finish(w, z, NULL, 0, 2000);
	assert_null(start_next(w)); /* until it is measured */
	measure(e, 50 * MIB);
	assert_ptr_equal(start_next(w), y->run);
	assert_int_equal(w->sessions.memory.bytes, 150 * MIB);
	finish(w, y, NULL, 0, 2000);
}

static void the_end_of_a_session_lets_a_waiting_exec_run(void **state)
{
	struct world *w = *state;
	limit_memory(w, 110 * MIB, false);
	struct session_entry *e = add_of(w, "e", 100 * MIB);
	measure(e, 20 * MIB);
	struct session_entry *f = add_of(w, "f", 100 * MIB);
	measure(f, 20 * MIB);
	struct exec_entry *x = begin(w, e, "x");

	assert_null(start_next(w));
	end(w, f);
	assert_ptr_equal(start_next(w), x->run);
	finish(w, x, NULL, 0, 2000);
}

static void a_session_that_reserves_its_limit_does_so_all_the_time(void **state)
{
	struct world *w = *state;
	limit_memory(w, 200 * MIB, true);
	struct session_entry *e = add_of(w, "e", 100 * MIB), *f = add_of(w, "f", 100 * MIB);
	measure(e, 20 * MIB);
	measure(f, 20 * MIB);
	struct exec_entry *x = begin(w, e, "x"), *y = begin(w, f, "y");

	assert_int_equal(w->sessions.memory.bytes, 200 * MIB);
	assert_int_equal(sessions_admit(&w->sessions, &w->a, 1), API_SESSIONS_FULL);
	assert_ptr_equal(start_next(w), x->run); /* no exec waits for memory */
	assert_ptr_equal(start_next(w), y->run);
	finish(w, x, NULL, 0, 2000);
	measure(e, 30 * MIB);
	assert_int_equal(w->sessions.memory.bytes, 200 * MIB);
	limit_memory(w, 200 * MIB, false); /* a reload; the exec of the other one runs */
	assert_int_equal(w->sessions.memory.bytes, 130 * MIB);
	limit_memory(w, 100 * MIB, true); /* less than is reserved */
	assert_int_equal(w->sessions.memory.bytes, 200 * MIB);
	struct exec_entry *z = begin(w, e, "z");
	assert_ptr_equal(start_next(w), z->run); /* what its session has, it keeps */
	finish(w, y, NULL, 0, 2000);
	finish(w, z, NULL, 0, 2000);
}

static void a_session_that_ends_reserves_memory_until_its_jail_is_gone(void **state)
{
	struct world *w = *state;
	limit_memory(w, 200 * MIB, false);
	struct session_entry *e = add_of(w, "e", 100 * MIB);
	measure(e, 20 * MIB);

	sessions_set_ending(e, SESSION_CLOSED, NULL);
	assert_int_equal(w->sessions.memory.bytes, 20 * MIB);
	sessions_end(&w->sessions, e, 9000);
	assert_int_equal(w->sessions.memory.bytes, 0);
	measure(e, 20 * MIB); /* a late line */
	limit_memory(w, 200 * MIB, true);
	assert_int_equal(w->sessions.memory.bytes, 0);
}

/* --- time --------------------------------------------------------------------- */

static void assert_due(struct world *w, uint64_t now_ms, const struct session_entry *expected,
		       enum session_end reason)
{
	enum session_end found = SESSION_END_COUNT;
	uint64_t wait_ms = UINT64_MAX;

	assert_ptr_equal(sessions_due(&w->sessions, now_ms, &found, &wait_ms), expected);
	assert_int_equal(found, reason);
}

static void a_lease_and_an_idle_time_end(void **state)
{
	struct world *w = *state;
	struct session_entry *leased = add_live(w, &w->a, 300, 500);
	struct session_entry *idle = add_live(w, &w->a, 900, 400);
	enum session_end reason;
	uint64_t wait_ms = UINT64_MAX;

	assert_null(sessions_due(&w->sessions, 1000, &reason, &wait_ms));
	assert_int_equal(wait_ms, 300);
	assert_due(w, 1300, leased, SESSION_LEASE);
	end(w, leased);
	assert_due(w, 1399, NULL, SESSION_END_COUNT);
	assert_due(w, 1400, idle, SESSION_IDLE);
}

static void a_renewed_session_lives_on(void **state)
{
	struct world *w = *state;
	struct session_entry *e = add_live(w, &w->a, 300, 600);

	sessions_renew(e, 500, 1200);
	assert_due(w, 1699, NULL, SESSION_END_COUNT);
	assert_due(w, 1700, e, SESSION_LEASE);
}

static void a_use_renews_the_lease_if_the_session_wants_it(void **state)
{
	struct world *w = *state;
	struct session_entry *other = add_live(w, &w->a, 300, 600);
	struct session_entry *e = add_live(w, &w->a, 300, 600);

	e->renew_on_use = true;
	sessions_touch(other, 1200);
	sessions_touch(e, 1200);
	assert_due(w, 1300, other, SESSION_LEASE);
	end(w, other);
	struct exec_entry *x = begin(w, e, "x");
	assert_due(w, 1500, NULL, SESSION_END_COUNT); /* in use */
	finish(w, x, NULL, 0, 2000);
	assert_due(w, 2299, NULL, SESSION_END_COUNT);
	assert_due(w, 2300, e, SESSION_LEASE);
}

static void a_use_renews_by_no_more_than_the_limits_of_a_reload(void **state)
{
	struct world *w = *state;
	struct session_entry *e = add_live(w, &w->a, 300, 600);
	struct sessions_limits lower = w->sessions.limits;

	e->renew_on_use = true;
	lower.lease_ms = 200;
	lower.idle_ms = 100;
	sessions_set_limits(&w->sessions, &lower);
	assert_due(w, 1200, NULL, SESSION_END_COUNT); /* what it has, it keeps */
	struct exec_entry *x = begin(w, e, "x");
	finish(w, x, NULL, 0, 1250);
	assert_due(w, 1349, NULL, SESSION_END_COUNT);
	assert_due(w, 1350, e, SESSION_IDLE);
	e->idle_until_ms = 9000;
	assert_due(w, 1449, NULL, SESSION_END_COUNT);
	assert_due(w, 1450, e, SESSION_LEASE);
}

static void an_exec_keeps_a_session_from_being_idle(void **state)
{
	struct world *w = *state;
	struct session_entry *e = add_live(w, &w->a, 5000, 400);
	struct exec_entry *x = begin(w, e, "x");

	assert_due(w, 2000, NULL, SESSION_END_COUNT);
	finish(w, x, NULL, 0, 2000);
	assert_due(w, 2399, NULL, SESSION_END_COUNT);
	assert_due(w, 2400, e, SESSION_IDLE);
	e->files = 1;
	assert_due(w, 2400, NULL, SESSION_END_COUNT);
	assert_due(w, 6000, e, SESSION_LEASE);
}

static void a_session_that_starts_or_ends_is_not_due(void **state)
{
	struct world *w = *state;

	add(w, &w->a, 1, 1);
	sessions_set_ending(add_live(w, &w->a, 1, 1), SESSION_CLOSED, NULL);
	end(w, add_live(w, &w->a, 1, 1));
	assert_due(w, 100000, NULL, SESSION_END_COUNT);
}

/* --- memory ------------------------------------------------------------------- */

static void the_first_reason_stays(void **state)
{
	struct world *w = *state;
	struct session_entry *e = add_live(w, &w->a, 0, 0);

	sessions_set_ending(e, SESSION_OOM, NULL);
	sessions_set_ending(e, SESSION_CLOSED, "no");
	assert_int_equal(e->reason, SESSION_OOM);
	assert_string_equal(e->message, session_ends[SESSION_OOM].text);
	sessions_end(&w->sessions, e, 9000);
	assert_ptr_equal(sessions_find(&w->sessions, "uid:1", e->id), e);
	assert_int_equal(e->ended_ms, 9000);
}

static void the_session_of_another_caller_is_not_found(void **state)
{
	struct world *w = *state;
	struct session_entry *e = add_live(w, &w->a, 0, 0);

	assert_ptr_equal(sessions_find(&w->sessions, "uid:1", e->id), e);
	assert_null(sessions_find(&w->sessions, "uid:2", e->id));
	assert_null(sessions_find(&w->sessions, "uid:1", "S0"));
}

static void ended_sessions_are_forgotten_in_their_order_and_caller_by_caller(void **state)
{
	struct world *w = *state;
	struct session_entry *of_b = add_live(w, &w->b, 0, 0);

	end(w, of_b);
	for (int i = 0; i < 40; i++) {
		struct session_entry *e = add_live(w, &w->a, 0, 0);
		sessions_set_ending(e, SESSION_FAILED, "its own message");
		sessions_end(&w->sessions, e, 9000);
	}
	assert_int_equal(w->sessions.ended, SESSIONS_OF_A_CALLER_MAX + 1);
	assert_null(sessions_find(&w->sessions, "uid:1", "s8"));
	assert_non_null(sessions_find(&w->sessions, "uid:1", "s9"));
	assert_non_null(sessions_find(&w->sessions, "uid:2", of_b->id));
}

/* Its end is being told to the caller, who finds it if it asks again. */
static void an_ended_session_is_not_forgotten_while_a_caller_waits_for_its_end(void **state)
{
	struct world *w = *state;
	struct session_entry *first = add_live(w, &w->a, 0, 0);
	struct session_waiter waiter = { .session = first };

	TAILQ_INSERT_TAIL(&first->waiters, &waiter, link);
	for (unsigned i = 0; i < SESSIONS_OF_A_CALLER_MAX + 1; i++)
		end(w, add_live(w, &w->a, 0, 0));
	end(w, first);
	assert_ptr_equal(sessions_find(&w->sessions, "uid:1", "s0"), first);
	TAILQ_REMOVE(&first->waiters, &waiter, link);
	end(w, add_live(w, &w->a, 0, 0));
	assert_null(sessions_find(&w->sessions, "uid:1", "s0"));
}

/* --- execs -------------------------------------------------------------------- */

static void a_session_has_a_bounded_number_of_execs(void **state)
{
	struct world *w = *state;
	struct session_entry *e = add_live(w, &w->a, 0, 0);
	struct exec_entry *x = NULL;
	char id[16];

	for (unsigned i = 0; i < SESSION_EXECS_AT_ONCE + SESSION_EXECS_WAITING; i++) {
		assert_int_equal(sessions_admit_exec(e), API_OK);
		(void)snprintf(id, sizeof(id), "x%u", i);
		x = begin(w, e, id);
	}
	assert_int_equal(sessions_admit_exec(e), API_TOO_MANY_WAITING);
	finish(w, x, NULL, 0, 1);
	assert_int_equal(sessions_admit_exec(e), API_OK);
}

static void only_some_execs_are_remembered(void **state)
{
	struct world *w = *state;
	struct session_entry *e = add_live(w, &w->a, 0, 0);
	struct exec_entry *kept = NULL;
	char id[16];

	for (unsigned i = 0; i < SESSION_EXECS_REMEMBERED + 5; i++) {
		(void)snprintf(id, sizeof(id), "x%u", i);
		struct exec_entry *x = begin(w, e, id);
		if (i == 0) { /* somebody waits for it */
			x->waiting = 1;
			kept = x;
		}
		finish(w, x, NULL, 0, 1);
	}
	assert_ptr_equal(sessions_find_exec(e, "x0"), kept);
	assert_null(sessions_find_exec(e, "x5"));
	assert_non_null(sessions_find_exec(e, "x6"));
	assert_int_equal(e->finished, SESSION_EXECS_REMEMBERED);
	kept->waiting = 0;
}

static void the_newest_exec_of_an_id_is_found(void **state)
{
	struct world *w = *state;
	struct session_entry *e = add_live(w, &w->a, 0, 0);

	finish(w, begin(w, e, "x"), NULL, 0, 1);
	struct exec_entry *second = begin(w, e, "x");
	assert_ptr_equal(sessions_find_exec(e, "x"), second);
	assert_null(sessions_find_exec(e, "y"));
}

static void only_the_result_of_a_detached_exec_is_kept(void **state)
{
	struct world *w = *state;
	struct session_entry *e = add_live(w, &w->a, 0, 0);
	struct exec_entry *x = begin(w, e, "x"), *y = begin(w, e, "y");

	y->is_detached = true;
	finish(w, x, "{}", 2, 1);
	finish(w, y, "{}", 2, 1);
	assert_null(x->result);
	assert_memory_equal(y->result, "{}", 2);
	assert_int_equal(w->sessions.results_bytes, 2);
	end(w, e);
	assert_non_null(y->result); /* for a while */
}

static void results_are_bounded_and_the_oldest_goes_first(void **state)
{
	struct world *w = *state;
	struct session_entry *e = add_live(w, &w->a, 0, 0), *other = add_live(w, &w->b, 0, 0);
	static char large[12 * MIB];
	struct exec_entry *x[4], *of_other = begin(w, other, "x");

	of_other->is_detached = true;
	finish(w, of_other, large, sizeof(large), 1);
	for (unsigned i = 0; i < 4; i++) {
		x[i] = begin(w, e, "x");
		x[i]->is_detached = true;
		finish(w, x[i], large, sizeof(large), 10 + i);
	}
	assert_null(x[0]->result);
	assert_null(x[1]->result);
	assert_non_null(x[2]->result);
	assert_non_null(x[3]->result);
	assert_non_null(of_other->result); /* one caller's do not push out another's */
}

static void a_result_is_dropped_after_a_while(void **state)
{
	struct world *w = *state;
	struct session_entry *e = add_live(w, &w->a, 0, 0);
	struct exec_entry *x = begin(w, e, "x");
	uint64_t wait_ms = UINT64_MAX;

	x->is_detached = true;
	finish(w, x, "{}", 2, 1000);
	sessions_expire_results(&w->sessions, 1000 + SESSION_RESULT_MS - 1, &wait_ms);
	assert_non_null(x->result);
	assert_int_equal(wait_ms, 1);
	sessions_expire_results(&w->sessions, 1000 + SESSION_RESULT_MS, &wait_ms);
	assert_null(x->result);
}

static void what_waits_for_programs_is_bounded(void **state)
{
	struct world *w = *state;
	struct session_entry *e = add_live(w, &w->a, 0, 0), *other = add_live(w, &w->b, 0, 0);
	struct exec_entry *x = begin(w, e, "x"), *y = begin(w, e, "y"), *z = begin(w, other, "z");

	assert_int_equal(sessions_hold(&w->sessions, x, SESSION_HELD_MAX - 1), API_OK);
	assert_int_equal(sessions_hold(&w->sessions, y, 2), API_TOO_MANY_WAITING);
	assert_int_equal(sessions_hold(&w->sessions, y, SIZE_MAX), API_TOO_MANY_WAITING);
	assert_int_equal(sessions_hold(&w->sessions, z, SESSION_HELD_MAX), API_OK);
	sessions_release(&w->sessions, x, MIB);
	assert_int_equal(sessions_hold(&w->sessions, y, MIB + 1), API_OK);
	finish(w, x, NULL, 0, 1);
	assert_int_equal(w->sessions.held_bytes, SESSION_HELD_MAX + MIB + 1);
	sessions_drop_exec(&w->sessions, y);
	finish(w, z, NULL, 0, 1);
	assert_int_equal(w->sessions.held_bytes, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

static struct session_network *rules_of(const struct config *c, const struct session_network *now)
{
	struct session_network *n = NULL;
	struct cj_error err = { 0 };

	if (session_network_create(c, now, &n, &err) < 0)
		fail_msg("%s", err.msg);
	return n;
}

static void the_rules_of_a_network_are_a_list_or_everything(void **state)
{
	const char *items[] = { "*.example.com", "8.8.8.8:53" };
	struct config c = { .network = NETWORK_PUBLIC };
	(void)state;

	struct session_network *n = rules_of(&c, NULL);
	assert_false(n->rules.is_list);
	assert_int_equal(n->rules.allow.count, 0);
	session_network_destroy(&n);
	assert_null(n);
	session_network_destroy(&n);

	c.allow = (struct strings){ .items = items, .count = 2 };
	n = rules_of(&c, NULL);
	assert_true(n->rules.is_list);
	assert_int_equal(n->rules.allow.count, 2);
	for (size_t i = 0; i < 2; i++) {
		assert_string_equal(n->rules.allow.items[i], items[i]);
		assert_ptr_not_equal(n->rules.allow.items[i], items[i]); /* a copy */
	}
	session_network_destroy(&n);

	/* what the profile allows is replaced, and what it denies stays */
	c.profile_allow = 1;
	c.deny = (struct strings){ .items = items, .count = 2 };
	n = rules_of(&c, NULL);
	assert_int_equal(n->rules.allow.count, 1);
	assert_string_equal(n->rules.allow.items[0], items[1]);
	assert_int_equal(n->rules.deny.count, 2);
	assert_string_equal(n->rules.deny.items[0], items[0]);
	session_network_destroy(&n);

	c.network = NETWORK_NONE; /* a list that opens nothing, whatever the settings name */
	n = rules_of(&c, NULL);
	assert_true(n->rules.is_list);
	assert_int_equal(n->rules.allow.count + n->rules.deny.count, 0);
	session_network_destroy(&n);
}

/* `now` is narrowed by the settings, and is the result afterwards. */
static void narrow(struct session_network **now, const struct config *c)
{
	struct session_network *next = rules_of(c, *now);

	session_network_destroy(now);
	*now = next;
}

static void assert_refused(const struct session_network *now, const struct config *c,
			   const char *message, const char *hint)
{
	struct session_network *n = NULL;
	struct cj_error err = { 0 };

	assert_int_equal(session_network_create(c, now, &n, &err), -EPERM);
	assert_null(n);
	assert_non_null(strstr(err.msg, message));
	assert_non_null(strstr(err.hint, hint));
}

static void a_network_that_is_narrowed_opens_nothing_more(void **state)
{
	const char *lists[] = { "a.example", "b.example", "c.example" };
	const char *many[ALLOWLIST_MAX];
	struct config c = { .network = NETWORK_PUBLIC };
	struct session_network *n = rules_of(&c, NULL);
	(void)state;

	/* everything: a list narrows it, and so does what is denied */
	c.deny = (struct strings){ .items = lists, .count = 1 };
	narrow(&n, &c);
	assert_false(n->rules.is_list);
	assert_int_equal(n->rules.deny.count, 1);
	c.deny.count = 0;
	c.allow = (struct strings){ .items = lists, .count = 2 };
	narrow(&n, &c);
	assert_true(n->rules.is_list);
	assert_int_equal(n->rules.allow.count, 2);
	assert_int_equal(n->rules.deny.count, 1); /* it stays */

	/* a part of the list; one that is not in it is refused, and the list is named */
	c.allow.count = 3;
	assert_refused(n, &c, "'c.example' is not one of the destinations that are open",
		       "'a.example', 'b.example'");
	c.allow.items = lists + 1;
	c.allow.count = 1;
	narrow(&n, &c);
	assert_int_equal(n->rules.allow.count, 1);
	assert_string_equal(n->rules.allow.items[0], "b.example");

	/* without a list of its own, the one in force stays, and not the profile's */
	c.allow = (struct strings){ .items = lists, .count = 2 };
	c.profile_allow = 2;
	c.deny = (struct strings){ .items = lists, .count = 2 }; /* one is denied already */
	narrow(&n, &c);
	assert_int_equal(n->rules.allow.count, 1);
	assert_int_equal(n->rules.deny.count, 2);
	for (size_t i = 0; i < ALLOWLIST_MAX; i++)
		many[i] = i == 0 ? "a.example" : "z.example";
	c.deny = (struct strings){ .items = many, .count = ALLOWLIST_MAX };
	assert_refused(n, &c, "more than 64 destinations would be denied", "close the network");

	/* closed: it stays so */
	c.deny.count = 0;
	c.network = NETWORK_NONE;
	narrow(&n, &c);
	assert_true(n->rules.is_list && n->rules.allow.count == 0);
	narrow(&n, &c);
	c.network = NETWORK_PUBLIC;
	assert_refused(n, &c, "is closed, and this call can't open it", "ask the user");
	session_network_destroy(&n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_caller_has_as_many_as_its_rights_say),
		TEST(the_service_has_as_many_as_its_limits_say),
		TEST(a_dropped_session_counts_no_more),
		TEST(what_is_above_the_limits_is_refused),
		TEST(an_idle_session_reserves_what_it_uses),
		TEST(an_exec_reserves_the_limit_until_the_next_measurement),
		TEST(an_exec_waits_while_its_limit_cannot_be_reserved),
		TEST(the_end_of_a_session_lets_a_waiting_exec_run),
		TEST(a_session_that_reserves_its_limit_does_so_all_the_time),
		TEST(a_session_that_ends_reserves_memory_until_its_jail_is_gone),
		TEST(a_lease_and_an_idle_time_end),
		TEST(a_renewed_session_lives_on),
		TEST(a_use_renews_the_lease_if_the_session_wants_it),
		TEST(a_use_renews_by_no_more_than_the_limits_of_a_reload),
		TEST(an_exec_keeps_a_session_from_being_idle),
		TEST(a_session_that_starts_or_ends_is_not_due),
		TEST(the_first_reason_stays),
		TEST(the_session_of_another_caller_is_not_found),
		TEST(ended_sessions_are_forgotten_in_their_order_and_caller_by_caller),
		TEST(an_ended_session_is_not_forgotten_while_a_caller_waits_for_its_end),
		TEST(a_session_has_a_bounded_number_of_execs),
		TEST(only_some_execs_are_remembered),
		TEST(the_newest_exec_of_an_id_is_found),
		TEST(only_the_result_of_a_detached_exec_is_kept),
		TEST(results_are_bounded_and_the_oldest_goes_first),
		TEST(a_result_is_dropped_after_a_while),
		TEST(what_waits_for_programs_is_bounded),
		cmocka_unit_test(the_rules_of_a_network_are_a_list_or_everything),
		TEST(a_network_that_is_narrowed_opens_nothing_more),
	};
	return cmocka_run_group_tests_name("sessions", tests, NULL, NULL);
}
