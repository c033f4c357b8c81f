/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A worker: one jail, one request, one result; or the jail of a session.
 *
 * Everything that a request does not decide happens before it: the profile is read, the plan is
 * made, and depending on the tier the jail is sealed and its interpreter waits.  The worker sends
 * the result before it destroys the jail, so that the caller does not wait for that.
 *
 * The jail has its own name for its record and cgroup, because the run's id may be used again as
 * soon as its result is sent.
 */
#include "runtime/service/worker/work.h"

#include <signal.h>
#include <sys/signalfd.h>

#include "profiles/profile.h"
#include "runtime/base/scope.h"
#include "runtime/session/session.h"

struct waiting {
	struct work work;
	bool has_job; /* before it is prepared */
	int zygote_fd, signal_fd;
	struct program launcher;
	struct cj_error early;          /* of a cold worker: the result of its job */
	struct cj_error zygote_failure; /* why the interpreter is not the zygote's */
};

/* `cejail kill` ends a waiting worker; during a run jail_wait() receives the signal. */
static int watch_signals(struct waiting *w, struct cj_error *err)
{
	const struct sigaction ignore = { .sa_handler = SIG_IGN };
	sigset_t term;

	(void)sigaction(SIGPIPE, &ignore, NULL); /* cannot fail for this one */
	sigemptyset(&term);
	sigaddset(&term, SIGTERM);
	if (sigprocmask(SIG_BLOCK, &term, NULL) < 0)
		return cj_fail(err, errno, "block signals");
	w->signal_fd = signalfd(-1, &term, SFD_CLOEXEC);
	return w->signal_fd < 0 ? cj_fail(err, errno, "open a descriptor for signals") : 0;
}

/* A fork of the zygote's waits in the jail.  On failure there is no jail. */
static int warm_from_zygote(struct waiting *w, struct cj_error *err)
{
	w->work.plan.uses_zygote = true;
	int rc = plan_zygote(&w->work.config, &w->work.plan, &w->launcher, err);
	if (rc == 0)
		rc = jail_prepare(&w->work.plan, w->work.jail_name, &w->work.driver.jail, err);
	if (rc == 0)
		rc = jail_warm(w->work.driver.jail, w->zygote_fd, &w->launcher, err);
	if (rc < 0)
		jail_destroy(&w->work.driver.jail);
	cj_close(&w->zygote_fd); /* it ends when nobody has its socket */
	w->work.plan.uses_zygote = rc == 0;
	return rc;
}

static int get_ready(struct waiting *w, struct cj_error *err)
{
	if (watch_signals(w, err) < 0)
		return cj_stage(err, "worker");
	if (plan_mint_id(w->work.jail_name, err) < 0)
		return -err->code;
	if (profile_load(&w->work.config, w->work.profile, err) < 0)
		return cj_stage(err, "profile");
	if (w->work.tier == TIER_COLD)
		return 0;
	if (request_plan_jail(&w->work.config, &w->work.plan, err) < 0)
		return cj_stage(err, "plan");
	w->work.plan.is_ahead = true;
	if (w->work.tier != TIER_INTERPRETER)
		plan_divide(&w->work.plan);
	if (w->work.tier == TIER_INTERPRETER && w->zygote_fd >= 0 &&
	    warm_from_zygote(w, &w->zygote_failure) == 0)
		return 0;
	if (w->has_job) {
		w->work.tier = TIER_COLD; /* to start an interpreter ahead would take longer */
		return 0;
	}
	if (session_prepare(&w->work.plan, w->work.jail_name, &w->work.driver.jail, err) < 0)
		return -err->code;
	if (w->work.tier != TIER_INTERPRETER)
		return 0;
	if (plan_launcher(&w->work.config, &w->work.plan, &w->launcher, err) < 0)
		return cj_stage(err, "plan");
	if (w->launcher.argv.count == 0) {
		cj_refuse(err, "profile '%s' has no interpreter that can wait", w->work.profile);
		return cj_stage(err, "plan");
	}
	return jail_warm(w->work.driver.jail, JAIL_NO_ZYGOTE, &w->launcher, err);
}

static void await_job(struct waiting *w, const struct worker_life *life)
{
	const struct cj_error *failure = w->zygote_failure.code ? &w->zygote_failure : NULL;
	struct cj_error err = { 0 };

	if (ready_tell(w->work.sock_fd, w->work.plan.uses_zygote, failure, &err) < 0 ||
	    !work_await_job(&w->work, w->signal_fd))
		return;
	int rc = work_read_job(&w->work, &err);
	if (rc < 0 && err.code == EPIPE)
		return;
	bool is_session = rc == 0 && w->work.job.kind == JOB_SESSION;
	if (rc == 0)
		err = w->early;
	if (is_session && life->keep_session)
		life->keep_session(&w->work, w->signal_fd, &err);
	else
		work_serve(&w->work, &err);
}

_Noreturn void worker_main(const struct worker_life *life, const struct worker_order *order)
{
	struct waiting w = {
		.work = { .profile = order->profile,
			  .tier = order->tier,
			  .sock_fd = order->sock_fd,
			  .control_fd = order->control_fd,
			  .stdin_fd = -1 },
		.has_job = order->has_job,
		.zygote_fd = order->zygote_fd,
		.signal_fd = -1,
	};
	struct work *work = &w.work;

	config_init(&work->config);
	int rc = get_ready(&w, &w.early);
	if (rc < 0 && work->tier != TIER_COLD) {
		unready_tell(work->sock_fd, &w.early);
		_exit(EXIT_FAILURE);
	}
	if (work->tier != TIER_REPL)
		await_job(&w, life);
	else if (life->keep_session) /* the keeper waits for the job itself */
		life->keep_session(work, w.signal_fd, &w.early);
	cj_close(&work->sock_fd); /* the server can answer now and does not wait for the clean-up */
	jail_destroy(&work->driver.jail);
	_exit(EXIT_SUCCESS);
}
