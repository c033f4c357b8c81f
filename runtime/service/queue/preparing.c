/* SPDX-License-Identifier: Apache-2.0 */
/* The callbacks of pool and zygotes.  Acts. */
#include "runtime/service/queue/preparing.h"

#include "runtime/base/clock.h"
#include "runtime/service/operations/slog.h"
#include "runtime/service/worker/worker_conn.h"

static int connect_worker(struct preparing *p, struct worker *worker, struct worker_conn **out,
			  struct cj_error *err)
{
	*out = worker_conn_create(p->loop, worker, err);
	return *out ? 0 : -err->code;
}

static int spawn_worker(void *context, const char *profile, enum tier tier,
			struct worker_conn **out, struct cj_error *err)
{
	struct preparing *p = context;
	struct worker worker = WORKER_NULL;
	struct worker_wish wish = { .profile = profile, .tier = tier, .zygote_fd = -1 };

	if (tier == TIER_INTERPRETER &&
	    zygotes_ask(p->zygotes, profile, &wish.zygote_fd) == ZYGOTE_SOON)
		return cj_fail(err, POOL_NOT_YET, "wait for the zygote");
	if (spawner_ask(p->spawner, &wish, &worker, err) < 0)
		return -err->code;
	return connect_worker(p, &worker, out, err);
}

static int spawn_for_job(void *context, const char *profile, struct worker_conn **out,
			 struct cj_error *err)
{
	struct preparing *p = context;
	struct worker worker = WORKER_NULL;
	struct worker_wish wish = { profile, TIER_INTERPRETER, -1, true };

	if (zygotes_ask(p->zygotes, profile, &wish.zygote_fd) != ZYGOTE_READY)
		return cj_fail(err, POOL_NOT_YET, "fork a zygote");
	if (spawner_ask(p->spawner, &wish, &worker, err) < 0)
		return -err->code;
	return connect_worker(p, &worker, out, err);
}

static void note_ready(void *context, const char *profile, enum tier tier,
		       const struct readiness_line *how)
{
	if (tier == TIER_INTERPRETER && (how->is_of_zygote || how->why[0]))
		zygotes_child_ready(((struct preparing *)context)->zygotes, profile, how->why);
}

static int spawn_zygote(void *context, const char *profile, struct worker_conn **out,
			struct cj_error *err)
{
	struct preparing *p = context;
	struct worker worker = WORKER_NULL;

	if (spawner_ask_zygote(p->spawner, profile, &worker, err) < 0)
		return -err->code;
	return connect_worker(p, &worker, out, err);
}

static int take_zygote_socket(void *context, const struct worker_conn *conn, struct cj_error *err)
{
	(void)context;
	return job_receive(conn->worker.control_fd, err);
}

static bool is_zygote_wanted(void *context, const char *profile)
{
	const struct config *c;
	struct cj_error ignored = { 0 }; /* the pool's workers report it */

	return profile_cache_get(((struct preparing *)context)->profiles, profile, &c, &ignored) ==
		   0 &&
	       plan_wants_zygote(c);
}

static void count_zygote(void *context, const char *profile, enum zygote_event event)
{
	metrics_count_zygote(((struct preparing *)context)->metrics, profile, event);
}

static void log_zygote(void *context, const char *profile, const char *why)
{
	(void)context;
	slog(SLOG_WARNING, "",
	     "without a zygote, each interpreter of profile '%s' starts in its own jail: %s",
	     profile, why);
}

static uint64_t stamp(void *context, const char *profile)
{
	return profile_cache_stamp(((struct preparing *)context)->profiles, profile);
}

static uint64_t now_ms(void *context)
{
	(void)context;
	return clock_ms();
}

static void log_unready(void *context, const char *profile, enum tier tier, const char *why)
{
	(void)context;
	slog(SLOG_WARNING, "", "no %s of profile '%s' can be prepared ahead: %s", tier_names[tier],
	     profile, why);
}

void preparing_init(struct preparing *p, struct pool *pool)
{
	const struct zygotes_ops zygotes_ops = { .spawn = spawn_zygote,
						 .take_socket = take_zygote_socket,
						 .is_wanted = is_zygote_wanted,
						 .stamp = stamp,
						 .now_ms = now_ms,
						 .count = count_zygote,
						 .failed = log_zygote,
						 .context = p };
	const struct pool_ops pool_ops = { .spawn = spawn_worker,
					   .spawn_for_job = spawn_for_job,
					   .ready = note_ready,
					   .stamp = stamp,
					   .now_ms = now_ms,
					   .failed = log_unready,
					   .context = p };

	zygotes_init(p->zygotes, &zygotes_ops);
	pool_init(pool, &pool_ops);
}
