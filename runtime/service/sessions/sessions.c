/* SPDX-License-Identifier: Apache-2.0 */
/* The table of sessions. */
#include "runtime/service/sessions/sessions.h"

#include <assert.h>

#include "netns/address/allowlist.h"
#include "runtime/run/report/result.h"
#include "runtime/base/scope.h"
#include "runtime/base/text.h"

const char *const entry_state_names[] = {
	[ENTRY_STARTING] = "starting",
	[ENTRY_LIVE] = "live",
	[ENTRY_ENDING] = "ending",
	[ENTRY_ENDED] = "ended",
};
static_assert(COUNT_OF(entry_state_names) == ENTRY_STATE_COUNT, "every state has a name");

/* Of lists: those that are open are named as far as the message has room. */
static int refuse_wider(const struct network_lists *now, const char *target, struct cj_error *err)
{
	char open[256];
	size_t used = 0;

	for (size_t i = 0; i < now->allow.count && used < sizeof(open); i++)
		used += (size_t)snprintf(open + used, sizeof(open) - used, "%s'%s'",
					 i > 0 ? ", " : "", now->allow.items[i]);
	if (used == 0) {
		cj_refuse_as(err, EPERM,
			     "the network of this session is closed, and this call "
			     "can't open it again");
		return cj_hint(err, "work without a network, or ask the user to open it");
	}
	cj_refuse_as(err, EPERM,
		     "'%.128s' is not one of the destinations that are open, and this "
		     "call can't open more",
		     target);
	return cj_hint(err, "choose from these: %s%s", open, used < sizeof(open) ? "" : "...");
}

static int check_narrower(const struct config *c, size_t first, const struct network_lists *now,
			  struct cj_error *err)
{
	size_t ndeny = c->deny.count;

	if (now->is_list && now->allow.count == 0)
		return refuse_wider(now, "", err);
	for (size_t i = first; i < c->allow.count && now->is_list; i++)
		if (!strings_has(&now->allow, c->allow.items[i]))
			return refuse_wider(now, c->allow.items[i], err);
	for (size_t i = 0; i < now->deny.count; i++)
		ndeny += !strings_has(&c->deny, now->deny.items[i]);
	if (ndeny <= ALLOWLIST_MAX)
		return 0;
	cj_refuse_as(err, EPERM, "more than %d destinations would be denied", ALLOWLIST_MAX);
	return cj_hint(err, "allow a list of destinations, or close the network");
}

/* What is denied comes to what the profile denies, and to what is denied now. */
static int copy_lists(const struct config *c, const struct network_lists *now,
		      struct session_network *n, struct cj_error *err)
{
	const bool has_own = c->allow.count > c->profile_allow; /* a part of the profile's */
	struct strings allow = now && !has_own ? now->allow : c->allow;
	struct strings *deny = &n->rules.deny;

	if (now && check_narrower(c, c->profile_allow, now, err) < 0)
		return -err->code;
	if (has_own) {
		allow.items += c->profile_allow;
		allow.count -= c->profile_allow;
	}
	if (strings_add_all(&n->rules.allow, &n->arena, &allow) < 0 ||
	    strings_add_all(deny, &n->arena, &c->deny) < 0)
		return cj_fail(err, ENOMEM, "change the network");
	for (size_t i = 0; now && i < now->deny.count; i++)
		if (!strings_has(deny, now->deny.items[i]) &&
		    strings_add(deny, &n->arena, arena_strdup(&n->arena, now->deny.items[i])) < 0)
			return cj_fail(err, ENOMEM, "change the network");
	return 0;
}

int session_network_create(const struct config *c, const struct session_network *now,
			   struct session_network **out, struct cj_error *err)
{
	struct session_network *n = calloc(1, sizeof(*n));

	if (!n)
		return cj_fail(err, ENOMEM, "change the network");
	if (c->network == NETWORK_PUBLIC && copy_lists(c, now ? &now->rules : NULL, n, err) < 0) {
		session_network_destroy(&n);
		return -err->code;
	}
	n->rules.is_list = c->network == NETWORK_NONE || n->rules.allow.count > 0;
	*out = n;
	return 0;
}

void session_network_destroy(struct session_network **n)
{
	if (*n)
		arena_fini(&(*n)->arena);
	cj_free(n);
}

static void drop_result(struct sessions *s, struct exec_entry *x)
{
	s->results_bytes -= x->result_size;
	x->result_size = 0;
	cj_free(&x->result);
}

void sessions_release(struct sessions *s, struct exec_entry *x, size_t bytes)
{
	assert(bytes <= x->held_bytes);
	x->held_bytes -= bytes;
	s->held_bytes -= bytes;
}

void sessions_drop_exec(struct sessions *s, struct exec_entry *x)
{
	struct session_entry *e = x->session;

	TAILQ_REMOVE(&e->execs, x, link);
	if (x->is_finished)
		e->finished--;
	else
		e->unfinished--;
	drop_result(s, x);
	sessions_release(s, x, x->held_bytes);
	free(x);
}

void sessions_drop(struct sessions *s, struct session_entry *e)
{
	struct exec_entry *x, *next;

	for (x = TAILQ_FIRST(&e->execs); x; x = next) {
		next = TAILQ_NEXT(x, link);
		sessions_drop_exec(s, x);
	}
	TAILQ_REMOVE(&s->entries, e, link);
	if (e->state == ENTRY_ENDED) {
		s->ended--;
	} else {
		s->live--;
		reservation_end(&e->memory);
		e->account->sessions--;
	}
	if (e->is_own_message)
		free((char *)e->message);
	session_network_destroy(&e->network);
	session_network_destroy(&e->next_network);
	free(e);
}

void sessions_fini(struct sessions *s)
{
	struct session_entry *e;

	while ((e = TAILQ_FIRST(&s->entries)) != NULL)
		sessions_drop(s, e);
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

void sessions_set_limits(struct sessions *s, const struct sessions_limits *limits)
{
	struct session_entry *e;

	s->limits = *limits;
	s->memory.most_bytes = limits->memory_bytes;
	s->memory.is_strict = limits->reserves_limits;
	TAILQ_FOREACH(e, &s->entries, link) {
		if (e->state != ENTRY_ENDED)
			reservation_renew(&e->memory);
		e->lease_ms = least(e->lease_ms, limits->lease_ms);
		e->idle_ms = least(e->idle_ms, limits->idle_ms);
	}
}

static int check_time(const char *name, uint64_t ms, uint64_t most_ms, struct cj_error *err)
{
	char asked[32], most[32];

	if (ms <= most_ms)
		return 0;
	text_format_duration(ms, asked, sizeof(asked));
	text_format_duration(most_ms, most, sizeof(most));
	return cj_reject_as(err, EPERM, "%s: %s is more than %s, the most that a session may have",
			    name, asked, most);
}

int sessions_check_ceilings(const struct sessions *s, const struct sessions_request *o,
			    struct cj_error *err)
{
	uint64_t most_bytes = s->limits.memory_bytes;
	char asked[32], most[32];

	if (check_time("lease", o->lease_ms, s->limits.lease_ms, err) < 0 ||
	    check_time("idle", o->idle_ms, s->limits.idle_ms, err) < 0)
		return -err->code;
	if (o->memory_bytes <= most_bytes)
		return 0;
	/* were it told to wait for room, the caller would try again and again */
	text_format_size(o->memory_bytes, asked, sizeof(asked));
	text_format_size(most_bytes, most, sizeof(most));
	cj_refuse_as(err, EPERM,
		     "memory: %s is more than %s, the most that all sessions may reserve", asked,
		     most);
	return cj_hint(err,
		       "ask for less memory; session_memory in cejail-serve(8) is the maximum");
}

enum api_code sessions_admit(const struct sessions *s, const struct account *a,
			     uint64_t memory_bytes)
{
	const struct sessions_limits *l = &s->limits;

	if (a->sessions >= a->rights->sessions)
		return API_TOO_MANY_SESSIONS;
	return s->live >= l->count || !reservations_have_room(&s->memory, memory_bytes)
		   ? API_SESSIONS_FULL
		   : API_OK;
}

struct session_entry *sessions_add(struct sessions *s, const struct sessions_request *o)
{
	struct session_entry *e = calloc(1, sizeof(*e));

	if (!e)
		return NULL;
	(void)snprintf(e->id, sizeof(e->id), "%s", o->id);
	(void)snprintf(e->caller, sizeof(e->caller), "%s", o->account->name);
	(void)snprintf(e->profile, sizeof(e->profile), "%s", o->profile);
	TAILQ_INIT(&e->execs);
	TAILQ_INIT(&e->waiters);
	TAILQ_INIT(&e->operations);
	e->all = s;
	e->is_repl = o->is_repl;
	e->has_tools = o->has_tools;
	e->account = o->account;
	e->memory_bytes = o->memory_bytes;
	e->renew_on_use = o->renew_on_use;
	e->lease_ms = o->lease_ms;
	if (e->lease_ms == 0)
		e->lease_ms = least(o->renew_on_use ? s->limits.idle_ms : SESSION_LEASE_MS,
				    s->limits.lease_ms);
	e->idle_ms = o->idle_ms ? o->idle_ms : s->limits.idle_ms;
	e->created_ms = o->epoch_ms;
	e->lease_until_ms = o->now_ms + e->lease_ms;
	e->idle_until_ms = o->now_ms + e->idle_ms;
	e->exec_gate = (struct run_gate){ .most = SESSION_EXECS_AT_ONCE, .memory = &e->memory };
	e->cell_gate = (struct run_gate){ .most = 1, .memory = &e->memory };
	TAILQ_INSERT_TAIL(&s->entries, e, link);
	s->live++;
	reservation_begin(&e->memory, &s->memory, e->memory_bytes);
	e->account->sessions++;
	return e;
}

struct session_entry *sessions_find(const struct sessions *s, const char *caller, const char *id)
{
	struct session_entry *e;

	TAILQ_FOREACH(e, &s->entries, link)
		if (strcmp(e->id, id) == 0 && strcmp(e->caller, caller) == 0)
			return e;
	return NULL;
}

void sessions_set_live(struct session_entry *e, uint64_t now_ms)
{
	assert(e->state == ENTRY_STARTING);
	e->state = ENTRY_LIVE;
	sessions_renew(e, e->lease_ms, now_ms);
}

void sessions_note_usage(struct session_entry *e, const struct keeper_line *status)
{
	e->usage = *status;
	e->has_usage = true;
	if (e->memory.all)
		reservation_measure(&e->memory, status->used_bytes);
}

void sessions_touch(struct session_entry *e, uint64_t now_ms)
{
	e->idle_until_ms = now_ms + e->idle_ms;
	if (e->renew_on_use)
		e->lease_until_ms = now_ms + e->lease_ms;
}

void sessions_renew(struct session_entry *e, uint64_t lease_ms, uint64_t now_ms)
{
	e->lease_ms = lease_ms;
	e->lease_until_ms = now_ms + lease_ms;
	sessions_touch(e, now_ms);
}

void sessions_set_ending(struct session_entry *e, enum session_end reason, const char *message)
{
	if (e->state >= ENTRY_ENDING)
		return;
	char *own = message ? strdup(message) : NULL;
	e->state = ENTRY_ENDING;
	e->reason = reason;
	e->message = own ? own : session_ends[reason].text;
	e->is_own_message = own != NULL;
}

/*
 * An ended session of this caller, if it has too many; else the oldest, if there are too many.  One
 * that callers wait for stays.
 */
static void forget_one(struct sessions *s, const char *caller)
{
	struct session_entry *e, *oldest = NULL, *callers_oldest = NULL;
	size_t same = 0;

	TAILQ_FOREACH(e, &s->entries, link) {
		if (e->state != ENTRY_ENDED || !TAILQ_EMPTY(&e->waiters))
			continue;
		bool is_same = strcmp(e->caller, caller) == 0;
		oldest = oldest ? oldest : e;
		callers_oldest = callers_oldest || !is_same ? callers_oldest : e;
		same += is_same;
	}
	if (callers_oldest && same > SESSIONS_OF_A_CALLER_MAX)
		sessions_drop(s, callers_oldest);
	else if (oldest && s->ended > SESSIONS_REMEMBERED_MAX)
		sessions_drop(s, oldest);
}

void sessions_end(struct sessions *s, struct session_entry *e, uint64_t epoch_ms)
{
	char caller[CALLER_NAME_MAX];

	assert(e->state == ENTRY_ENDING && e->unfinished == 0);
	e->state = ENTRY_ENDED;
	e->ended_ms = epoch_ms;
	e->account->sessions--;
	e->account = NULL;
	s->live--;
	s->ended++;
	reservation_end(&e->memory);
	(void)snprintf(caller, sizeof(caller), "%s", e->caller);
	forget_one(s, caller);
}

/* While an exec is unfinished or a file is in use, the session is not idle. */
static bool is_busy(const struct session_entry *e)
{
	return e->unfinished > 0 || e->files > 0;
}

struct session_entry *sessions_due(const struct sessions *s, uint64_t now_ms,
				   enum session_end *out_reason, uint64_t *wait_ms)
{
	struct session_entry *e;

	TAILQ_FOREACH(e, &s->entries, link) {
		if (e->state != ENTRY_LIVE || (e->renew_on_use && is_busy(e)))
			continue;
		bool is_lease = is_busy(e) || e->lease_until_ms <= e->idle_until_ms;
		uint64_t until_ms = is_lease ? e->lease_until_ms : e->idle_until_ms;
		if (until_ms <= now_ms) {
			*out_reason = is_lease ? SESSION_LEASE : SESSION_IDLE;
			return e;
		}
		*wait_ms = least(*wait_ms, until_ms - now_ms);
	}
	return NULL;
}

enum api_code sessions_admit_exec(const struct session_entry *e)
{
	return e->unfinished >= SESSION_EXECS_AT_ONCE + SESSION_EXECS_WAITING ? API_TOO_MANY_WAITING
									      : API_OK;
}

struct exec_entry *sessions_add_exec(struct session_entry *e, const char *id)
{
	struct exec_entry *x = calloc(1, sizeof(*x));

	if (!x)
		return NULL;
	x->session = e;
	x->error = API_OK;
	(void)snprintf(x->id, sizeof(x->id), "%s", id);
	TAILQ_INSERT_TAIL(&e->execs, x, link);
	e->unfinished++;
	return x;
}

struct exec_entry *sessions_find_exec(const struct session_entry *e, const char *id)
{
	struct exec_entry *x;

	TAILQ_FOREACH_REVERSE(x, &e->execs, exec_list, link)
		if (strcmp(x->id, id) == 0)
			return x;
	return NULL;
}

static uint64_t held_of(const struct sessions *s, const char *caller)
{
	const struct session_entry *e;
	const struct exec_entry *x;
	uint64_t bytes = 0;

	TAILQ_FOREACH(e, &s->entries, link)
		if (e->unfinished > 0 && strcmp(e->caller, caller) == 0)
			TAILQ_FOREACH(x, &e->execs, link)
				bytes += x->held_bytes;
	return bytes;
}

enum api_code sessions_hold(struct sessions *s, struct exec_entry *x, size_t bytes)
{
	if (bytes > SESSION_HELD_MAX || held_of(s, x->session->caller) + bytes > SESSION_HELD_MAX)
		return API_TOO_MANY_WAITING;
	if (s->held_bytes + bytes > SESSION_ALL_HELD_MAX)
		return API_QUEUE_FULL;
	x->held_bytes += bytes;
	s->held_bytes += bytes;
	return API_OK;
}

/* NULL caller: of all.  The result that was kept first, or NULL. */
static struct exec_entry *oldest_result(const struct sessions *s, const char *caller,
					uint64_t *out_bytes)
{
	struct session_entry *e;
	struct exec_entry *x, *oldest = NULL;

	*out_bytes = 0;
	TAILQ_FOREACH(e, &s->entries, link) {
		if (caller && strcmp(e->caller, caller) != 0)
			continue;
		TAILQ_FOREACH(x, &e->execs, link) {
			*out_bytes += x->result_size;
			if (x->result && (!oldest || x->kept_until_ms < oldest->kept_until_ms))
				oldest = x;
		}
	}
	return oldest;
}

static void bound_results(struct sessions *s, const char *caller, uint64_t most)
{
	struct exec_entry *x;
	uint64_t bytes;

	while ((x = oldest_result(s, caller, &bytes)) != NULL && bytes > most)
		drop_result(s, x);
}

static void keep_result(struct sessions *s, struct exec_entry *x, const char *result, size_t size,
			uint64_t now_ms)
{
	x->kept_until_ms = now_ms + SESSION_RESULT_MS;
	x->result = malloc(size);
	if (!x->result)
		return;
	memcpy(x->result, result, size);
	x->result_size = size;
	s->results_bytes += size;
	bound_results(s, x->session->caller, KEPT_RESULTS_MAX);
	if (s->results_bytes > KEPT_ALL_RESULTS_MAX)
		bound_results(s, NULL, KEPT_ALL_RESULTS_MAX);
}

void sessions_finish_exec(struct sessions *s, struct exec_entry *x, const char *result, size_t size,
			  enum api_code error, uint64_t now_ms, uint64_t epoch_ms)
{
	const struct run *run = x->run;
	struct session_entry *e = x->session;

	x->created_ms = run->created_ms;
	x->started_ms = run->started_ms;
	x->ended_ms = epoch_ms;
	x->has_summary = run->has_summary;
	x->status = run->summary.totals.status;
	x->exit_code = run->summary.totals.exit_code;
	x->error = error;
	x->last_call = run->last_call;
	x->run = NULL;
	x->is_finished = true;
	e->unfinished--;
	e->finished++;
	sessions_release(s, x, x->held_bytes);
	sessions_touch(e, now_ms);
	if (result && x->is_detached)
		keep_result(s, x, result, size, now_ms);
	struct exec_entry *other = TAILQ_FIRST(&e->execs), *next;
	for (; other && e->finished > SESSION_EXECS_REMEMBERED; other = next) {
		next = TAILQ_NEXT(other, link);
		if (other->is_finished && other->waiting == 0) /* callers wait for the others */
			sessions_drop_exec(s, other);
	}
}

void sessions_expire_results(struct sessions *s, uint64_t now_ms, uint64_t *wait_ms)
{
	struct session_entry *e;
	struct exec_entry *x;

	if (s->results_bytes == 0)
		return;
	TAILQ_FOREACH(e, &s->entries, link)
		TAILQ_FOREACH(x, &e->execs, link) {
			if (!x->result)
				continue;
			if (x->kept_until_ms <= now_ms)
				drop_result(s, x);
			else
				*wait_ms = least(*wait_ms, x->kept_until_ms - now_ms);
		}
}
