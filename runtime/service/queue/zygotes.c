/* SPDX-License-Identifier: Apache-2.0 */
/* Zygotes: which there are, and which there should be. */
#include "runtime/service/queue/zygotes.h"

#include "profiles/plan/plan.h"
#include "runtime/base/clock.h"
#include "runtime/base/scope.h"
#include "runtime/service/config/profile_cache.h"
#include "runtime/service/log/slog.h"
#include "runtime/service/worker/zygote_keeper.h"

#define PROFILE_CHECK_MS 1000 /* how often the profiles' files are checked without a request */

static void count(const struct zygote_row *row, enum zygote_event event)
{
	metrics_count_zygote(row->zygotes->metrics, row->profile, event);
}

/* Workers that still have its socket get their jails; then the zygote reads end of file. */
static void end(struct zygote_slot **z)
{
	if (!*z)
		return;
	worker_conn_destroy(&(*z)->conn);
	cj_close(&(*z)->sock_fd);
	cj_free(z);
}

static void report(const struct zygote_row *row, const char *why)
{
	slog(SLOG_WARNING, "",
	     "without a zygote, each interpreter of profile '%s' starts in its own jail: %s",
	     row->profile, why);
}

static void fail(struct zygote_row *row, const char *why)
{
	if (backoff_fail(&row->backoff, clock_ms(), why))
		report(row, why);
}

/* No profile has this stamp: zygotes_tick() ends it and starts another. */
static void become_stale(struct zygote_slot *z)
{
	z->stamp = ~z->stamp;
}

static void become_ready(struct zygote_row *row)
{
	struct zygote_slot *z = row->starting;
	struct cj_error err = { 0 };

	z->sock_fd = job_receive(z->conn->worker.control_fd, NULL, &err);
	if (z->sock_fd < 0) {
		fail(row, err.msg);
		become_stale(z);
		return;
	}
	end(&row->serving);
	row->serving = take_ptr(row->starting);
	backoff_succeed(&row->backoff);
	count(row, ZYGOTE_STARTED);
}

static void on_line(struct worker_conn *w, const char *text, size_t size)
{
	struct zygote_slot *z = w->owner;
	struct zygote_row *row = z->row;
	struct readiness_line said;
	enum worker_line line = worker_conn_line(text);

	if (line == WORKER_READY && z == row->starting) {
		become_ready(row);
	} else if (line == WORKER_STALE && z == row->serving) {
		become_stale(z);
	} else if (line == WORKER_UNREADY) {
		ready_read(text, size, &said);
		if (strcmp(said.stage, ZYGOTE_STAGE_UNSUITABLE) == 0)
			row->is_unsuitable = true;
		fail(row, said.why);
	}
}

static void on_ended(struct worker_conn *w, const char *why)
{
	struct zygote_slot *z = w->owner;
	struct zygote_row *row = z->row;
	bool is_told = !backoff_is_over(&row->backoff, clock_ms());

	end(z == row->serving ? &row->serving : &row->starting);
	if (!is_told)
		fail(row, why[0] ? why : "it ended by itself");
}

static bool is_wanted(const struct zygote_row *row)
{
	const struct config *c;
	struct cj_error ignored = { 0 }; /* the pool's workers report it */

	return profile_cache_get(row->zygotes->profiles, row->profile, &c, &ignored) == 0 &&
	       plan_wants_zygote(c);
}

static void check_profile(struct zygote_row *row)
{
	uint64_t stamp = profile_cache_stamp(row->zygotes->profiles, row->profile);

	if (stamp == row->stamp)
		return;
	row->stamp = stamp;
	row->is_wanted = is_wanted(row);
	row->is_unsuitable = false;
}

static void start(struct zygote_row *row, uint64_t now_ms)
{
	struct cj_error err = { 0 };
	struct zygote_slot *z = calloc(1, sizeof(*z));
	const struct worker_order wanted = { .profile = row->profile, .is_zygote = true };

	if (!z) {
		fail(row, "no memory");
		return;
	}
	/* the stamp is from before the keeper reads: if the files change meanwhile, it is stale */
	*z = (struct zygote_slot){
		.row = row, .sock_fd = -1, .born_ms = now_ms, .stamp = row->stamp
	};
	if (zygotes_spawn(row->zygotes, &wanted, &z->conn, &err) < 0) {
		cj_free(&z);
		fail(row, err.msg);
		return;
	}
	z->conn->owner = z;
	z->conn->line = on_line;
	z->conn->ended = on_ended;
	row->starting = z;
}

/* Its successor is due. */
static bool is_old(const struct zygote_slot *z, uint64_t now_ms, uint64_t times)
{
	const struct zygotes_limits *limits = &z->row->zygotes->limits;
	return z->children >= times * limits->children ||
	       now_ms - z->born_ms >= times * limits->age_ms;
}

static void end_stale(struct zygote_row *row, uint64_t now_ms)
{
	if (row->starting && row->starting->stamp != row->stamp)
		end(&row->starting);
	/* even if no successor gets ready, an old one does not serve for ever */
	if (row->serving && (row->serving->stamp != row->stamp || is_old(row->serving, now_ms, 2)))
		end(&row->serving);
}

static bool may_start(const struct zygote_row *row, uint64_t now_ms)
{
	return row->is_wanted && !row->is_unsuitable && backoff_is_over(&row->backoff, now_ms);
}

void zygotes_tick(struct zygotes *z)
{
	uint64_t now_ms = clock_ms();

	/* zygotes_ask() checks the profile that it is asked about in any case */
	bool checks = now_ms >= z->checked_ms + PROFILE_CHECK_MS;
	if (checks)
		z->checked_ms = now_ms;
	for (size_t i = 0; i < z->count; i++) {
		struct zygote_row *row = &z->rows[i];
		if (checks)
			check_profile(row);
		end_stale(row, now_ms);
		bool is_due = !row->serving || is_old(row->serving, now_ms, 1);
		if (is_due && !row->starting && may_start(row, now_ms))
			start(row, now_ms);
	}
}

static struct zygote_row *find(struct zygotes *z, const char *profile)
{
	for (size_t i = 0; i < z->count; i++)
		if (strcmp(z->rows[i].profile, profile) == 0)
			return &z->rows[i];
	return NULL;
}

enum zygote_answer zygotes_ask(struct zygotes *z, const char *profile, int *out_fd)
{
	struct zygote_row *row = find(z, profile);
	uint64_t now_ms = clock_ms();

	if (!row)
		return ZYGOTE_NONE;
	check_profile(row);
	end_stale(row, now_ms);
	if (row->serving) {
		row->serving->children++;
		*out_fd = row->serving->sock_fd;
		return ZYGOTE_READY;
	}
	if (row->starting || may_start(row, now_ms))
		return ZYGOTE_SOON;
	if (row->is_unsuitable || row->is_wanted)
		count(row, row->is_unsuitable ? ZYGOTE_UNSUITABLE : ZYGOTE_MISSING);
	return ZYGOTE_NONE;
}

void zygotes_child_ready(struct zygotes *z, const char *profile, const char *why)
{
	struct zygote_row *row = find(z, profile);

	if (!row)
		return;
	count(row, why[0] ? ZYGOTE_FAILED : ZYGOTE_CHILD);
	if (why[0] && backoff_note(&row->backoff, why))
		report(row, why);
	if (!row->serving)
		return;
	row->serving->failures = why[0] ? row->serving->failures + 1 : 0;
	if (row->serving->failures < ZYGOTE_FAILURES_MAX)
		return;
	end(&row->serving);
	fail(row, why);
}

int zygotes_spawn(struct zygotes *z, const struct worker_order *wanted, struct worker_conn **out,
		  struct cj_error *err)
{
	struct worker_order order = *wanted;
	struct worker worker = WORKER_NULL;

	order.zygote_fd = -1;
	if (order.tier == TIER_INTERPRETER) {
		enum zygote_answer has = zygotes_ask(z, order.profile, &order.zygote_fd);
		if (has == ZYGOTE_SOON || (order.has_job && has != ZYGOTE_READY))
			return cj_fail(err, ZYGOTES_NOT_YET, "wait for the zygote");
	}
	if (spawner_ask(z->spawner, &order, &worker, err) < 0)
		return -err->code;
	*out = worker_conn_create(z->loop, &worker, err);
	return *out ? 0 : -err->code;
}

void zygotes_add(struct zygotes *z, const struct pool_config *from)
{
	struct zygote_row *row = &z->rows[z->count];

	if (from->interpreters == 0 || find(z, from->profile) || z->count == POOLS_MAX)
		return;
	*row = (struct zygote_row){ .zygotes = z };
	(void)snprintf(row->profile, sizeof(row->profile), "%s", from->profile);
	z->count++;
	z->checked_ms = 0;
}

void zygotes_configure(struct zygotes *z, const struct pool_config *rows, size_t count,
		       const struct zygotes_limits *limits)
{
	for (size_t i = 0; i < z->count; i++) {
		end(&z->rows[i].serving);
		end(&z->rows[i].starting);
	}
	z->count = 0;
	z->checked_ms = 0;
	z->limits = *limits;
	for (size_t i = 0; i < count; i++)
		zygotes_add(z, &rows[i]);
}

size_t zygotes_alive(const struct zygotes *z)
{
	size_t alive = 0;

	for (size_t i = 0; i < z->count; i++)
		alive += z->rows[i].serving != NULL;
	return alive;
}
