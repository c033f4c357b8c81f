/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A worker: one jail, one request, one result.  Acts.
 *
 * Everything that a request does not decide happens before it: the profile is read, the plan is
 * made, and depending on the tier the jail is sealed and its interpreter waits.  Every failure
 * after the job arrives is an outcome with STATUS_SETUP_ERROR, so each job has exactly one result.
 * The worker sends it before it destroys the jail, so that the caller does not wait for that.
 *
 * The jail has its own name for its record and cgroup, because the run's id may be used again as
 * soon as its result is sent.
 */
#include "runtime/front/serve/worker/worker.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "profiles/profile.h"
#include "runtime/base/clock.h"
#include "runtime/base/files/fd.h"
#include "runtime/base/scope.h"
#include "runtime/front/drive/run_driver.h"
#include "runtime/front/report/explain.h"
#include "runtime/front/report/result.h"
#include "runtime/front/request/request.h"

/* For ending, draining and reporting after the time limit; a worker that takes longer is stuck. */
#define GRACE_MS 60000

struct work {
	const char *profile;
	enum tier tier;
	bool has_job; /* before it is prepared */
	int sock_fd, control_fd, zygote_fd, signal_fd, stdin_fd;
	char jail_name[PLAN_ID_MAX]; /* of the record and the cgroup */

	/* before the job */
	struct config config;
	struct plan plan; /* what the driver's jail was prepared from */
	struct program launcher;
	struct cj_error early;          /* of a cold worker: the result of its job */
	struct cj_error zygote_failure; /* why the interpreter is not the zygote's */

	/* the job */
	struct arena arena;
	struct job job;
	struct request request;
	struct plan asked; /* with the request's settings */
	struct program program;
	struct events events;
	struct run_driver driver; /* its jail may be prepared before the job */
	struct outcome outcome;
	uint64_t setup_us;
	bool is_callers_own; /* what kept it from being started */
};

/* --- before the job --- */

/* `cejail kill` ends a waiting worker; during a run jail_wait() receives the signal. */
static int watch_signals(struct work *w, struct cj_error *err)
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
static int warm_from_zygote(struct work *w, struct cj_error *err)
{
	w->plan.uses_zygote = true;
	int rc = plan_zygote(&w->config, &w->plan, &w->launcher, err);
	if (rc == 0)
		rc = jail_prepare(&w->plan, w->jail_name, &w->driver.jail, err);
	if (rc == 0)
		rc = jail_warm_from(w->driver.jail, w->zygote_fd, &w->launcher, err);
	if (rc < 0)
		jail_destroy(&w->driver.jail);
	cj_close(&w->zygote_fd); /* it ends when nobody has its socket */
	w->plan.uses_zygote = rc == 0;
	return rc;
}

static int start_interpreter(struct work *w, struct cj_error *err)
{
	if (plan_launcher(&w->config, &w->plan, &w->launcher, err) < 0) {
		cj_stage(err, "plan");
		return -err->code;
	}
	if (w->launcher.argv.count == 0) {
		(void)!cj_reject(err, "profile '%s' has no interpreter that can wait", w->profile);
		return cj_stage(err, "plan");
	}
	return jail_warm(w->driver.jail, &w->launcher, err);
}

static int prepare_ahead(struct work *w, struct cj_error *err)
{
	if (request_plan_jail(&w->config, &w->plan, err) < 0) {
		cj_stage(err, "plan");
		return -err->code;
	}
	w->plan.is_ahead = true;
	if (w->tier == TIER_INTERPRETER && w->zygote_fd >= 0 &&
	    warm_from_zygote(w, &w->zygote_failure) == 0)
		return 0;
	if (w->has_job) {
		w->tier = TIER_COLD; /* to start an interpreter ahead would take longer */
		return 0;
	}
	if (jail_prepare(&w->plan, w->jail_name, &w->driver.jail, err) < 0)
		return -err->code;
	return w->tier < TIER_INTERPRETER ? 0 : start_interpreter(w, err);
}

static int get_ready(struct work *w, struct cj_error *err)
{
	if (watch_signals(w, err) < 0) {
		cj_stage(err, "worker");
		return -err->code;
	}
	if (plan_mint_id(w->jail_name, err) < 0)
		return -err->code;
	if (profile_load(&w->config, w->profile, err) < 0) {
		cj_stage(err, "profile");
		return -err->code;
	}
	return w->tier == TIER_COLD ? 0 : prepare_ahead(w, err);
}

static bool is_readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	return poll(&p, 1, 0) > 0;
}

/* False: the server does not want this worker any more, or its prepared jail has ended. */
static bool await_job(struct work *w)
{
	struct pollfd sources[] = {
		{ .fd = w->sock_fd, .events = POLLIN },
		{ .fd = w->control_fd },
		{ .fd = w->signal_fd, .events = POLLIN },
		{ .fd = w->driver.jail ? jail_waiting_fd(w->driver.jail) : -1, .events = POLLIN },
	};

	while (poll(sources, sizeof(sources) / sizeof(sources[0]), -1) < 0 && errno == EINTR)
		;
	/*
	 * A job that is cancelled at once is still read: it was sent before the control pipe
	 * closed.
	 */
	return is_readable(w->sock_fd);
}

/* --- the job --- */

static int read_job(struct work *w, struct cj_error *err)
{
	auto_fd int memfd = job_receive(w->sock_fd, err);
	if (memfd < 0 || job_read(memfd, &w->arena, &w->job, err) < 0) {
		cj_stage(err, "worker");
		return -err->code;
	}
	return 0;
}

/* The server has checked the sizes of the same bytes already. */
static const struct request_caps no_caps = { SIZE_MAX, SIZE_MAX, SIZE_MAX, SIZE_MAX };

static int configure(struct work *w, struct cj_error *err)
{
	const struct job *job = &w->job;
	struct config *c = &w->config;

	if (request_parse((struct blob){ job->body, job->body_size }, &no_caps, &w->arena,
			  &w->request, err) < 0 ||
	    request_apply(&w->request, job->may_name_host_paths, c, err) < 0) {
		cj_stage(err, "options");
		return -err->code;
	}
	rights_clamp_apply(&job->clamp, c);
	return 0;
}

/* The settings that a jail is prepared with; a request that changes one needs a cold worker. */
#define SHAPE(member)                                                                              \
	{                                                                                          \
#member, offsetof(struct config, member), sizeof(((struct config *)0)->member)     \
	}
static const struct part {
	const char *name;
	size_t offset, size;
} shape[] = {
	SHAPE(memory_bytes), SHAPE(millicpus),     SHAPE(pids),     SHAPE(cpu_ms),
	SHAPE(disk_bytes),   SHAPE(nofile),        SHAPE(rootfs),   SHAPE(writable),
	SHAPE(noexec),       SHAPE(ro_binds),      SHAPE(binds),    SHAPE(connects),
	SHAPE(overlays),     SHAPE(tmpfs),         SHAPE(hostname), SHAPE(network),
	SHAPE(uplink),       SHAPE(network_start), SHAPE(allow),    SHAPE(allow_private),
	SHAPE(seccomp),      SHAPE(strict),        SHAPE(tty),      SHAPE(cgroup_parent),
	SHAPE(env),          SHAPE(workdir),       SHAPE(command),
};
#define PARTS             (sizeof(shape) / sizeof(shape[0]))
#define INTERPRETER_PARTS 3 /* the last ones: the started interpreter uses them already */

/* The server chooses the tier; this fails only if it chose wrongly. */
static int check_shape(const struct work *w, const struct config *before, struct cj_error *err)
{
	size_t parts = w->tier == TIER_INTERPRETER ? PARTS : PARTS - INTERPRETER_PARTS;

	for (size_t i = 0; w->tier != TIER_COLD && i < parts; i++)
		if (memcmp((const char *)before + shape[i].offset,
			   (const char *)&w->config + shape[i].offset, shape[i].size) != 0)
			return cj_reject(err, "the jail was prepared with another '%s'",
					 shape[i].name);
	return 0;
}

/* The server has validated the request against the profile with this hash. */
static int check_profile(const struct work *w, struct cj_error *err)
{
	const char *validated = w->job.profile_sha256;

	if (validated[0] == '\0' || strcmp(validated, w->config.profile_sha256) == 0)
		return 0;
	(void)!cj_reject_as(err, ESTALE, "profile '%s' has changed since the request was validated",
			    w->profile);
	cj_hint(err, "send the request again");
	return cj_stage(err, "profile");
}

static int plan_job(struct work *w, struct cj_error *err)
{
	const struct config before = w->config;

	if (check_profile(w, err) < 0 || configure(w, err) < 0)
		return -err->code;
	if (check_shape(w, &before, err) < 0) {
		cj_stage(err, "worker");
		return -err->code;
	}
	if (request_plan(&w->request, &w->config, &w->asked, &w->program, err) < 0) {
		cj_stage(err, "plan");
		return -err->code;
	}
	return 0;
}

/* The kernel kills a worker that hangs; the server notices the end of its socket. */
static int limit_own_life(const struct work *w, struct cj_error *err)
{
	struct sigevent kill = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGKILL };
	uint64_t wall_ms = w->program.limits.wall_ms;
	const struct itimerspec when = { .it_value.tv_sec = (time_t)((wall_ms + GRACE_MS) / 1000) };
	timer_t timer;

	if (wall_ms == 0)
		return 0;
	if (timer_create(CLOCK_MONOTONIC, &kill, &timer) < 0 ||
	    timer_settime(timer, 0, &when, NULL) < 0)
		return cj_fail(err, errno, "limit the worker's lifetime");
	return 0;
}

static int open_stdin(struct work *w, struct cj_error *err)
{
	const struct blob *bytes = &w->request.stdin_bytes;

	if (!w->program.interactive)
		return 0;
	w->stdin_fd = fd_memfd_sealed("stdin", bytes->bytes, bytes->size, err);
	return w->stdin_fd < 0 ? -err->code : 0;
}

/* --- the run --- */

static void set_driver(struct work *w)
{
	struct jail *prepared = w->driver.jail;

	w->driver = (struct run_driver){
		.plan = &w->asked,
		.program = &w->program,
		.run_id = w->job.id,
		.jail_name = w->jail_name,
		.jail = prepared,
		.events = w->job.wants_events ? &w->events : NULL,
		/* The server stops reading when its caller does. */
		.waits_for_events = true,
		.wants_value = true,
		.artifacts_fd = -1,
		.artifacts_memory_bytes = w->request.artifacts_bytes,
	};
}

static struct jail_io make_io(const struct work *w)
{
	return (struct jail_io){
		.stdin_fd = w->stdin_fd,
		.stdout_fd = -1,
		.stderr_fd = -1,
		.tty_fd = -1,
		.room_fd = w->sock_fd,
		.hangup_fd = w->control_fd,
	};
}

static int run(struct work *w, struct cj_error *err)
{
	struct outcome *o = &w->outcome;
	bool is_collected;

	if (limit_own_life(w, err) < 0 || open_stdin(w, err) < 0) {
		cj_stage(err, "worker");
		return -err->code;
	}
	w->driver.io = make_io(w);
	if (run_driver_start(&w->driver, err) < 0)
		return -err->code;
	w->setup_us = clock_us() - w->job.sent_us;
	if (run_driver_finish(&w->driver, o, &is_collected, err) < 0)
		return -err->code;
	if (o->exec_errno != 0)
		explain_exec_failure(o, w->program.argv.items[0]);
	return 0;
}

/* --- the result --- */

static struct summary summarize(const struct work *w)
{
	const struct outcome *o = &w->outcome;
	struct summary s = {
		.status = o->status,
		.exit_code = o->status == STATUS_EXITED ? outcome_exit_status(o) : -1,
		.signal = o->signal,
		.usage = o->usage,
		.has_network = w->asked.network.mode == NETWORK_PUBLIC,
		.network_state = o->network.state,
		.setup_us = w->setup_us,
		.is_callers_own = w->is_callers_own,
		.stdout_bytes = o->output[0].total,
		.stderr_bytes = o->output[1].total,
		.artifacts = o->artifacts.count,
	};

	(void)snprintf(s.error_stage, sizeof(s.error_stage), "%s", o->error.stage);
	(void)snprintf(s.error_message, sizeof(s.error_message), "%s", o->error.msg);
	memcpy(s.profile_sha256, w->config.profile_sha256, sizeof(s.profile_sha256));
	memcpy(s.code_sha256, o->code_sha256, sizeof(s.code_sha256));
	for (size_t i = 0; i < o->network.ndenied; i++)
		s.denied_packets += o->network.denied[i].count;
	for (size_t i = 0; i < o->ndenied; i++)
		s.denied_syscalls += o->denied[i].count;
	return s;
}

/*
 * Is the request the reason that the plan failed?  Not if the profile alone fails as well, and not
 * if the message has the host's name of something that the profile shows.
 */
static bool is_requests_plan(const struct work *w, const struct cj_error *e)
{
	struct cj_error ignored = { 0 };
	struct config c;
	struct plan plan = { 0 };

	config_init(&c);
	bool is_requests = profile_load(&c, w->profile, &ignored) == 0 &&
			   request_plan_jail(&c, &plan, &ignored) == 0;
	for (size_t i = 0; is_requests && i < plan.root.nbinds; i++)
		is_requests = !strstr(e->msg, plan.root.binds[i].source);
	config_fini(&c);
	return is_requests;
}

/* Does the text have the host path of a file that is copied in? */
static bool names_copied(const struct work *w, const char *text)
{
	for (size_t i = 0; i < w->program.nfiles; i++)
		if (w->program.files[i].source && strstr(text, w->program.files[i].source))
			return true;
	return false;
}

static bool names_shown(const struct work *w, const char *text)
{
	for (size_t i = 0; i < w->asked.root.nbinds; i++)
		if (strstr(text, w->asked.root.binds[i].source))
			return true;
	return false;
}

/*
 * Does the message quote something from the request, and nothing else of the host?  A host path may
 * be part of what the request says: '/usr/none'.
 */
static bool is_about_request(const struct work *w, const struct cj_error *e)
{
	char rest[CJ_ERROR_MSG_MAX];
	bool is_about = false;

	(void)snprintf(rest, sizeof(rest), "%s", e->msg);
	for (char *open = strchr(rest, '\''); open; open = strchr(open + 1, '\'')) {
		char *end = strchr(open + 1, '\'');
		if (!end)
			break;
		*end = '\0';
		if (request_names(&w->request, open + 1)) {
			is_about = true;
			memset(open + 1, ' ', (size_t)(end - open) - 1);
		}
		*end = '\'';
		open = end;
	}
	return is_about && !names_copied(w, e->msg) && !names_shown(w, rest);
}

/* Is it the caller's mistake: what it asked for, or input that did not fit? */
static bool is_callers_own(const struct work *w, const struct cj_error *e)
{
	if (strcmp(e->stage, "plan") == 0)
		return is_requests_plan(w, e);
	if (strcmp(e->stage, "profile") == 0)
		return e->code == ESTALE;
	if (strcmp(e->stage, "program") == 0 || strcmp(e->stage, "names") == 0)
		return e->code == ENOSPC || e->code == EFBIG || is_about_request(w, e);
	return strcmp(e->stage, "options") == 0 || strcmp(e->stage, "exec") == 0;
}

/* The summary still has the message, for the log. */
static void hide_host(struct work *w)
{
	struct cj_error *e = &w->outcome.error;

	if (w->outcome.status != STATUS_SETUP_ERROR || w->job.may_name_host_paths ||
	    w->is_callers_own)
		return;
	(void)snprintf(e->msg, sizeof(e->msg),
		       "the jail could not be built; the service's log says why, "
		       "under request %s",
		       w->job.trace.request_id);
	e->hint[0] = '\0';
}

static int add_summary(struct work *w, struct cj_error *err)
{
	const struct summary s = summarize(w);
	auto_json_writer struct json_writer *line = json_writer_create(false);
	if (!line)
		return cj_fail(err, ENOMEM, "write the summary");
	summary_write(line, &s);
	return events_add_line(&w->events, line, err);
}

static int deliver(struct work *w, struct cj_error *err)
{
	const struct result_about about = {
		.profile_name = w->config.profile_name,
		.profile_sha256 = w->config.profile_sha256,
		.network = w->config.network,
		.request_id = w->job.trace.request_id,
		.traceparent = w->job.trace.traceparent,
	};
	auto_json_writer struct json_writer *result = json_writer_create(false);
	const char *text = NULL;
	size_t size = 0;

	if (!result)
		return cj_fail(err, ENOMEM, "write the result");
	if (add_summary(w, err) < 0)
		return -err->code;
	hide_host(w);
	if (result_write(result, &w->outcome, &about, err) < 0 ||
	    json_writer_take(result, &text, &size, err) < 0)
		return -err->code;
	return events_finish(&w->events, text, size, err);
}

/* If the result can't be sent, the socket ends without one, which the server handles. */
static void serve(struct work *w)
{
	struct cj_error err = { 0 }, undelivered = { 0 };

	int rc = read_job(w, &err);
	if (rc < 0 && err.code == EPIPE)
		return;
	outcome_init(&w->outcome, w->job.id, 0);
	events_init(&w->events, w->sock_fd);
	w->events.patience_ms = -1; /* no limit: the server reads to the end, or ends this worker */
	if (rc == 0 && w->early.code != 0) {
		err = w->early;
		rc = -err.code;
	}
	if (rc == 0)
		rc = plan_job(w, &err);
	if (rc == 0) {
		set_driver(w);
		run_driver_begin(&w->driver, &w->outcome);
		rc = run(w, &err);
	}
	if (rc < 0) {
		outcome_fail(&w->outcome, &err);
		w->is_callers_own = is_callers_own(w, &err);
	}
	(void)!deliver(w, &undelivered);
}

_Noreturn void worker_main(void *context, const struct worker_order *order)
{
	struct work w = {
		.profile = order->profile,
		.tier = order->tier,
		.has_job = order->has_job,
		.sock_fd = order->sock_fd,
		.control_fd = order->control_fd,
		.zygote_fd = order->zygote_fd,
		.signal_fd = -1,
		.stdin_fd = -1,
	};
	struct cj_error err = { 0 };

	(void)context;
	config_init(&w.config);
	int rc = get_ready(&w, &w.early);
	if (rc < 0 && w.tier != TIER_COLD) {
		unready_tell(w.sock_fd, &w.early);
		_exit(EXIT_FAILURE);
	}
	const struct cj_error *failure = w.zygote_failure.code ? &w.zygote_failure : NULL;
	if (ready_tell(w.sock_fd, w.plan.uses_zygote, failure, &err) == 0 && await_job(&w))
		serve(&w);
	cj_close(&w.sock_fd); /* the server can answer now and does not wait for the clean-up */
	jail_destroy(&w.driver.jail);
	_exit(EXIT_SUCCESS);
}
