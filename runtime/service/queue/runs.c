/* SPDX-License-Identifier: Apache-2.0 */
/* The three lists of runs, and what sessions reserve. */
#include "runtime/service/queue/runs.h"

#include <assert.h>

#include "runtime/base/scope.h"

const char *const run_state_names[] = {
	[RUN_QUEUED] = "queued",
	[RUN_RUNNING] = "running",
	[RUN_FINISHED] = "finished",
};
static_assert(COUNT_OF(run_state_names) == RUN_STATE_COUNT, "every state has a name");

void reservation_renew(struct reservation *r)
{
	uint64_t used_bytes = r->used_bytes > RESERVATION_MIN ? r->used_bytes : RESERVATION_MIN;
	bool needs_limit = r->all->is_strict || r->runs > 0 || !r->is_measured;

	r->all->bytes -= r->bytes;
	r->bytes = needs_limit || used_bytes > r->limit_bytes ? r->limit_bytes : used_bytes;
	r->all->bytes += r->bytes;
}

void reservation_begin(struct reservation *r, struct reservations *all, uint64_t limit_bytes)
{
	*r = (struct reservation){ .all = all, .limit_bytes = limit_bytes };
	all->limits_bytes += limit_bytes;
	reservation_renew(r);
}

void reservation_end(struct reservation *r)
{
	r->all->bytes -= r->bytes;
	r->all->limits_bytes -= r->limit_bytes;
	*r = (struct reservation){ 0 };
}

bool reservations_have_room(const struct reservations *all, uint64_t bytes)
{
	return all->bytes <= all->most_bytes && bytes <= all->most_bytes - all->bytes;
}

void reservation_measure(struct reservation *r, uint64_t used_bytes)
{
	r->used_bytes = used_bytes;
	r->is_measured = r->runs == 0;
	reservation_renew(r);
}

void runs_init(struct runs *r)
{
	*r = (struct runs){ 0 };
	for (size_t i = 0; i < RUN_STATE_COUNT; i++)
		TAILQ_INIT(&r->lists[i]);
	TAILQ_INIT(&r->waiting);
}

/* Behind all whose turn was not later: mostly the last place. */
static void await_turn(struct runs *r, struct account *a)
{
	struct account *before;

	TAILQ_FOREACH_REVERSE(before, &r->waiting, account_list, turn_link)
		if (before->turn <= a->turn)
			break;
	if (before)
		TAILQ_INSERT_AFTER(&r->waiting, before, a, turn_link);
	else
		TAILQ_INSERT_HEAD(&r->waiting, a, turn_link);
}

/* Removes the run from its list and from the counts of its caller. */
static void take_out(struct runs *r, struct run *run)
{
	r->counts[run->state]--;
	if (run->state == RUN_QUEUED) {
		struct account *a = run->order.account;
		TAILQ_REMOVE(&r->lists[RUN_QUEUED], run, link);
		TAILQ_REMOVE(&a->queue, run, turn_link);
		if (--a->queued == 0)
			TAILQ_REMOVE(&r->waiting, a, turn_link);
	} else {
		TAILQ_REMOVE(&r->lists[run->state], run, link);
	}
	if (run->state == RUN_RUNNING)
		run->order.account->running--;
	struct run_gate *gate = run->order.gate;
	if (run->state != RUN_RUNNING || !gate)
		return;
	gate->running--;
	if (gate->memory)
		gate->memory->runs--;
}

static void put_into(struct runs *r, struct run *run, enum run_state state)
{
	run->state = state;
	r->counts[state]++;
	if (state == RUN_QUEUED) {
		struct account *a = run->order.account;
		struct run *before;
		/* a new configuration may let later ones wait for less */
		TAILQ_FOREACH_REVERSE(before, &r->lists[RUN_QUEUED], run_list, link)
			if (before->queued_until_ms <= run->queued_until_ms)
				break;
		if (before)
			TAILQ_INSERT_AFTER(&r->lists[RUN_QUEUED], before, run, link);
		else
			TAILQ_INSERT_HEAD(&r->lists[RUN_QUEUED], run, link);
		if (a->queued++ == 0) {
			TAILQ_INIT(&a->queue);
			await_turn(r, a);
		}
		TAILQ_INSERT_TAIL(&a->queue, run, turn_link);
	} else {
		TAILQ_INSERT_TAIL(&r->lists[state], run, link);
	}
	if (state == RUN_RUNNING)
		run->order.account->running++;
	struct run_gate *gate = run->order.gate;
	if (state != RUN_RUNNING || !gate)
		return;
	gate->running++;
	if (!gate->memory)
		return;
	gate->memory->runs++;
	gate->memory->is_measured = false;
	reservation_renew(gate->memory);
}

void runs_drop(struct runs *r, struct run *run)
{
	take_out(r, run);
	free(run->order.job.body);
	free(run);
}

void runs_fini(struct runs *r)
{
	struct run *run;

	for (size_t i = 0; i < RUN_STATE_COUNT; i++)
		while ((run = TAILQ_FIRST(&r->lists[i])) != NULL)
			runs_drop(r, run);
}

enum api_code runs_admit(const struct runs *r, const struct account *a, unsigned queue_max)
{
	if (!account_may_wait(a))
		return API_TOO_MANY_WAITING;
	return r->counts[RUN_QUEUED] >= queue_max ? API_QUEUE_FULL : API_OK;
}

struct run *runs_add(struct runs *r, const struct run_order *order, uint64_t until_ms,
		     uint64_t epoch_ms)
{
	struct run *run = calloc(1, sizeof(*run));

	if (!run)
		return NULL;
	run->order = *order;
	run->created_ms = epoch_ms;
	run->queued_until_ms = until_ms;
	put_into(r, run, RUN_QUEUED);
	return run;
}

static bool is_let_through(const struct run *run)
{
	const struct run_gate *gate = run->order.gate;
	const struct reservation *r = gate ? gate->memory : NULL;

	return (!gate || gate->running < gate->most) &&
	       (!r || r->bytes == r->limit_bytes ||
		reservations_have_room(r->all, r->limit_bytes - r->bytes));
}

struct run *runs_next(const struct runs *r, unsigned concurrency)
{
	struct account *a;
	struct run *run;

	if (r->counts[RUN_RUNNING] >= concurrency)
		return NULL;
	TAILQ_FOREACH(a, &r->waiting, turn_link) {
		if (!account_may_run(a))
			continue;
		TAILQ_FOREACH(run, &a->queue, turn_link)
			if (is_let_through(run))
				return run;
	}
	return NULL;
}

void runs_start(struct runs *r, struct run *run, uint64_t wall_ms)
{
	assert(run->state == RUN_QUEUED);
	struct account *a = run->order.account;

	take_out(r, run);
	a->turn = ++r->turns;
	if (a->queued > 0) {
		TAILQ_REMOVE(&r->waiting, a, turn_link);
		await_turn(r, a);
	}
	run->started_ms = wall_ms;
	put_into(r, run, RUN_RUNNING);
}

/* A finished run of this caller, if it has too many; else the oldest, if there are too many. */
static void forget_one(struct runs *r, const char *caller)
{
	struct run *run, *oldest = NULL;
	size_t same = 0;

	TAILQ_FOREACH(run, &r->lists[RUN_FINISHED], link) {
		if (strcmp(run->order.caller, caller) != 0)
			continue;
		oldest = oldest ? oldest : run;
		same++;
	}
	if (same > RUNS_OF_A_CALLER_MAX)
		runs_drop(r, oldest);
	else if (r->counts[RUN_FINISHED] > RUNS_REMEMBERED_MAX)
		runs_drop(r, TAILQ_FIRST(&r->lists[RUN_FINISHED]));
}

void runs_finish(struct runs *r, struct run *run, uint64_t wall_ms)
{
	assert(run->state != RUN_FINISHED);
	take_out(r, run);
	run->ended_ms = wall_ms;
	cj_free(&run->order.job.body);
	run->order.account = NULL;
	run->order.gate = NULL;
	put_into(r, run, RUN_FINISHED);
	forget_one(r, run->order.caller);
}

struct run *runs_overdue(const struct runs *r, uint64_t now_ms, uint64_t *out_wait_ms)
{
	struct run *first = TAILQ_FIRST(&r->lists[RUN_QUEUED]);

	*out_wait_ms = UINT64_MAX;
	if (!first)
		return NULL;
	*out_wait_ms = first->queued_until_ms > now_ms ? first->queued_until_ms - now_ms : 0;
	return *out_wait_ms == 0 ? first : NULL;
}

size_t runs_unfinished(const struct runs *r)
{
	return r->counts[RUN_QUEUED] + r->counts[RUN_RUNNING];
}

struct run *runs_find(const struct runs *r, const char *caller, const char *id)
{
	struct run *run;

	for (size_t i = 0; i < RUN_STATE_COUNT; i++)
		TAILQ_FOREACH_REVERSE(run, &r->lists[i], run_list, link)
			if (strcmp(run->order.job.id, id) == 0 &&
			    strcmp(run->order.caller, caller) == 0)
				return run;
	return NULL;
}

bool runs_has_live(const struct runs *r, const char *caller, const char *id)
{
	const struct run *run = runs_find(r, caller, id);

	return run && run->state != RUN_FINISHED;
}
