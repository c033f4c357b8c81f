/* SPDX-License-Identifier: Apache-2.0 */
/* A session whose interpreter waits before there is a job.  Acts. */
#include "runtime/service/keeper/keeper_ahead.h"

#include <limits.h>
#include <poll.h>

#include "runtime/base/clock.h"
#include "runtime/base/files/fd.h"
#include "runtime/service/worker/job.h"
#include "runtime/jail/jail.h"

struct ahead {
	struct session *session;
	struct keeper_repl *repl;
};

enum source { SOURCE_JOB, SOURCE_CONTROL, SOURCE_SIGNALS, SOURCE_REPL };
#define SOURCE_COUNT (SOURCE_REPL + INTERPRETER_FDS)

static bool has_job(const struct work *w)
{
	return fd_await(w->sock_fd, POLLIN, 0);
}

static int begin(struct work *w, struct ahead *a, struct cj_error *err)
{
	if (session_begin(w->driver.jail, &a->session, err) < 0) {
		cj_stage(err, "session");
		return -err->code;
	}
	return keeper_repl_create(w, a->session, &a->repl, err);
}

static int tell_once(const struct work *w, bool *is_told, struct cj_error *err)
{
	if (*is_told)
		return 0;
	*is_told = true;
	return ready_tell(w->sock_fd, false, NULL, err);
}

static int timeout_ms(const struct ahead *a)
{
	uint64_t now_ms = clock_ms(), at_ms = keeper_repl_at_ms(a->repl);

	if (at_ms == UINT64_MAX)
		return -1;
	uint64_t wait_ms = at_ms > now_ms ? at_ms - now_ms : 0;
	return wait_ms < INT_MAX ? (int)wait_ms : INT_MAX;
}

/* A job that has come already gets a new jail, as one without a pool does. */
static int lose_jail(struct work *w, struct ahead *a, struct cj_error *err)
{
	keeper_repl_destroy(&a->repl);
	session_finish(&a->session);
	jail_destroy(&w->driver.jail);
	if (!has_job(w))
		return -err->code;
	w->tier = TIER_COLD;
	return 1;
}

/* One round.  Returns 1 when it is over. */
static int wait_round(struct work *w, int signal_fd, struct ahead *a, struct cj_error *err)
{
	enum session_end end = SESSION_LIVES;
	struct pollfd fds[SOURCE_COUNT] = {
		[SOURCE_JOB] = { .fd = w->sock_fd, .events = POLLIN },
		[SOURCE_CONTROL] = { .fd = w->control_fd },
		[SOURCE_SIGNALS] = { .fd = signal_fd, .events = POLLIN },
	};

	keeper_repl_watch(a->repl, &fds[SOURCE_REPL]);
	if (session_serve(a->session, fds, SOURCE_COUNT, timeout_ms(a), &end, err) < 0)
		return -err->code;
	return fds[SOURCE_JOB].revents || fds[SOURCE_CONTROL].revents ||
	       fds[SOURCE_SIGNALS].revents;
}

/* Returns 1 when there is a job, 0 when nobody wants the session. */
static int wait_for_job(struct work *w, int signal_fd, struct ahead *a, struct cj_error *err)
{
	bool is_told = false;

	if (begin(w, a, err) < 0)
		return -err->code;
	for (bool is_asked = false;;) {
		int rc = keeper_repl_prepare(a->repl, err);
		if (rc < 0)
			return lose_jail(w, a, err);
		if (is_asked) /* a job that is cancelled at once is still read */
			return has_job(w);
		if (rc > 0 && tell_once(w, &is_told, err) < 0)
			return -err->code;
		rc = wait_round(w, signal_fd, a, err);
		if (rc < 0)
			return lose_jail(w, a, err);
		is_asked = rc > 0;
	}
}

bool keeper_ahead_take(struct work *w, int signal_fd, struct session **session,
		       struct keeper_repl **repl, struct cj_error *early)
{
	struct ahead a = { 0 };
	struct cj_error err = { 0 };
	int rc = wait_for_job(w, signal_fd, &a, &err);

	*session = a.session;
	*repl = a.repl;
	if (rc < 0)
		unready_tell(w->sock_fd, &err);
	if (rc <= 0 || (work_read_job(w, early) < 0 && early->code == EPIPE))
		return false;
	if (early->code == 0 && w->job.kind != JOB_SESSION)
		(void)!cj_reject(early, "a session was prepared, the job is another");
	return true;
}
