/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The job of a worker.
 *
 * Every failure after the job arrives is an outcome with STATUS_SETUP_ERROR, so each job has
 * exactly one result.
 */
#include "runtime/service/worker/work.h"

#include <poll.h>
#include <signal.h>
#include <time.h>

#include "profiles/profile.h"
#include "runtime/base/clock.h"
#include "runtime/base/files/fd.h"
#include "runtime/base/json/json.h"
#include "runtime/base/scope.h"
#include "runtime/run/report/result.h"

bool work_await_job(const struct work *w, int signal_fd)
{
	struct pollfd sources[] = {
		{ .fd = w->sock_fd, .events = POLLIN },
		{ .fd = w->control_fd },
		{ .fd = signal_fd, .events = POLLIN },
		{ .fd = w->driver.jail ? jail_waiting_fd(w->driver.jail) : -1, .events = POLLIN },
	};

	while (poll(sources, COUNT_OF(sources), -1) < 0 && errno == EINTR)
		;
	/*
	 * A job that is cancelled at once is still read: it was sent before the control pipe
	 * closed.
	 */
	return fd_await(w->sock_fd, POLLIN, 0);
}

int work_read_job(struct work *w, struct cj_error *err)
{
	int calls_fd = -1;
	auto_fd int memfd = job_receive(w->sock_fd, &calls_fd, err);
	w->calls_fd = calls_fd > 0 ? calls_fd : 0;
	if (memfd < 0 || job_read(memfd, &w->arena, &w->job, err) < 0)
		return cj_stage(err, "worker");
	return 0;
}

static const enum request_kind request_kinds[JOB_KIND_COUNT] = {
	[JOB_RUN] = REQUEST_RUN,
	[JOB_SESSION] = REQUEST_SESSION,
	[JOB_EXEC] = REQUEST_EXEC,
};

static int apply(struct work *w, struct cj_error *err)
{
	const struct job *job = &w->job;
	const struct ceilings *c = &job->clamp.ceilings;
	/* what the jail of a session has is decided already */
	const struct rights_clamp of_exec = {
		.ceilings = { .wall_ms = c->wall_ms, .output_bytes = c->output_bytes },
	};
	/* The server has checked the sizes of the same bytes already. */
	const struct request_caps caps = { SIZE_MAX,
					   SIZE_MAX,
					   SIZE_MAX,
					   SIZE_MAX,
					   .profile = job->kind == JOB_EXEC ? w->profile : NULL,
					   .kind = request_kinds[job->kind] };

	if (request_parse((struct blob){ job->body, job->body_size }, &caps, &w->arena, &w->request,
			  err) < 0 ||
	    request_apply(&w->request, job->may_name_host_paths, &w->config, err) < 0)
		return cj_stage(err, "options");
	if (job->session_tools && !w->request.tools_json)
		w->request.tools_json = w->session_tools;
	rights_clamp_apply(job->kind == JOB_EXEC ? &of_exec : &job->clamp, &w->config);
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
	SHAPE(limits),        SHAPE(rootfs),    SHAPE(writable),      SHAPE(noexec),
	SHAPE(ro_binds),      SHAPE(binds),     SHAPE(connects),      SHAPE(overlays),
	SHAPE(tmpfs),         SHAPE(hostname),  SHAPE(network),       SHAPE(uplink),
	SHAPE(network_start), SHAPE(allow),     SHAPE(allow_private), SHAPE(seccomp),
	SHAPE(allow_by),      SHAPE(deny),      SHAPE(strict),        SHAPE(tty),
	SHAPE(cgroup_parent), SHAPE(upstreams), SHAPE(network_names), SHAPE(env),
	SHAPE(workdir),       SHAPE(command),
};
#define PARTS             COUNT_OF(shape)
#define INTERPRETER_PARTS 3 /* the last ones: the started interpreter uses them already */

int work_configure(struct work *w, struct cj_error *err)
{
	const struct config before = w->config;
	const char *validated = w->job.profile_sha256;
	size_t parts = w->tier >= TIER_INTERPRETER ? PARTS : PARTS - INTERPRETER_PARTS;
	/* The server has validated the request against the profile with this hash. */
	if (validated[0] != '\0' && strcmp(validated, w->config.profile_sha256) != 0) {
		cj_refuse_as(err, ESTALE,
			     "profile '%s' has changed since the request was validated",
			     w->profile);
		cj_hint(err, "send the request again");
		return cj_stage(err, "profile");
	}
	if (apply(w, err) < 0)
		return -err->code;
	/* The server chooses the tier; this fails only if it chose wrongly. */
	for (size_t i = 0; w->tier != TIER_COLD && i < parts; i++)
		if (memcmp((const char *)&before + shape[i].offset,
			   (const char *)&w->config + shape[i].offset, shape[i].size) != 0) {
			cj_refuse(err, "the jail was prepared with another '%s'", shape[i].name);
			return cj_stage(err, "worker");
		}
	return 0;
}

/*
 * Execs that run at once share /box, so the code of each has another name: main.py, main-1.py.  The
 * name that a request itself asks for stays.
 */
static int name_code(struct work *w, struct cj_error *err)
{
	struct config *c = &w->config;

	if (w->exec_number == 0 || !w->request.has_code || json_get(w->request.root, "file_name"))
		return 0;
	const char *name = plan_code_name(c, NULL, &c->arena);
	const char *dot = strrchr(name, '.');
	size_t stem = dot ? (size_t)(dot - name) : strlen(name);
	c->file_name =
	    arena_printf(&c->arena, "%.*s-%u%s", (int)stem, name, w->exec_number, dot ? dot : "");
	return c->file_name ? 0 : cj_fail(err, ENOMEM, "name the code's file");
}

static int plan_job(struct work *w, struct cj_error *err)
{
	if (w->job.kind != JOB_RUN && w->job.kind != JOB_EXEC) {
		cj_refuse(err, "a job of the kind '%s' has no program",
			  job_kind_names[w->job.kind]);
		return cj_stage(err, "worker");
	}
	if (work_configure(w, err) < 0)
		return -err->code;
	if (name_code(w, err) < 0 ||
	    request_plan(&w->request, &w->config, &w->asked, &w->program, err) < 0)
		return cj_stage(err, "plan");
	w->program.limits.interrupts = w->request.interrupt;
	return 0;
}

/* The kernel kills a worker that hangs; the server notices the end of its socket. */
int work_limit_life(uint64_t wall_ms, struct cj_error *err)
{
	struct sigevent kill = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGKILL };
	const struct itimerspec when = { .it_value.tv_sec =
					     (time_t)((wall_ms + WORK_GRACE_MS) / 1000) };
	timer_t timer;

	if (wall_ms == 0)
		return 0;
	if (timer_create(CLOCK_MONOTONIC, &kill, &timer) < 0 ||
	    timer_settime(timer, 0, &when, NULL) < 0)
		return cj_fail(err, errno, "limit the worker's lifetime");
	return 0;
}

static int run(struct work *w, struct cj_error *err)
{
	struct outcome *o = &w->outcome;
	bool is_collected;

	if (work_limit_life(w->program.limits.wall_ms, err) < 0)
		return cj_stage(err, "worker");
	if (w->program.interactive && w->stdin_fd < 0 && !w->interpreter) {
		const struct blob *bytes = &w->request.stdin_bytes;
		w->stdin_fd = fd_memfd_sealed("stdin", bytes->bytes, bytes->size, err);
		if (w->stdin_fd < 0)
			return cj_stage(err, "worker");
	}
	w->driver.io = (struct jail_io){
		.stdin_fd = w->stdin_fd,
		.stdout_fd = -1,
		.stderr_fd = -1,
		.tty_fd = -1,
		.room_fd = w->sock_fd,
		.hangup_fd = w->control_fd,
		.calls_fd = w->calls_fd,
		.calls_brief = w->job.calls_brief,
		.calls_quoted = w->job.calls_quoted,
	};
	/* what an earlier exec left there is not the value of this one */
	if (w->session_id && w->program.value_path)
		jail_forget_value(w->driver.jail, w->program.value_path);
	if (run_driver_start(&w->driver, err) < 0)
		return -err->code;
	w->setup_us = clock_us() - w->job.sent_us;
	if (run_driver_finish(&w->driver, o, &is_collected, err) < 0)
		return -err->code;
	if (o->exec_errno != 0)
		result_explain_exec(o, w->program.argv.items[0]);
	return 0;
}

/* The text has the host path of something that the jail shows. */
static bool names_bind(const struct plan *plan, const char *text)
{
	for (size_t i = 0; i < plan->root.nbinds; i++)
		if (strstr(text, plan->root.binds[i].source))
			return true;
	return false;
}

/*
 * The request is the reason that the plan failed: not if the profile alone fails as well, and not
 * if the message has the host's name of something that the profile shows.
 */
static bool is_requests_plan(const struct work *w, const struct cj_error *e)
{
	struct cj_error ignored = { 0 };
	struct config c;
	struct plan plan = { 0 };

	if (w->session_id) /* its jail is there, so its profile alone does not fail */
		return !names_bind(&w->plan, e->msg);
	config_init(&c);
	bool is_requests = profile_load(&c, w->profile, &ignored) == 0 &&
			   request_plan_jail(&c, &plan, &ignored) == 0;
	if (is_requests)
		is_requests = !names_bind(&plan, e->msg);
	config_fini(&c);
	return is_requests;
}

/*
 * The message quotes something from the request, and nothing else of the host.  A host path may
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
	for (size_t i = 0; i < w->program.nfiles; i++) /* host paths of files that are copied in */
		if (w->program.files[i].source && strstr(e->msg, w->program.files[i].source))
			return false;
	return is_about && !names_bind(&w->asked, rest);
}

bool work_is_callers_own(const struct work *w, const struct cj_error *e)
{
	if (strcmp(e->stage, "plan") == 0)
		return is_requests_plan(w, e);
	if (strcmp(e->stage, "profile") == 0)
		return e->code == ESTALE;
	if (strcmp(e->stage, "program") == 0 || strcmp(e->stage, "names") == 0)
		return e->code == ENOSPC || e->code == EFBIG || is_about_request(w, e);
	return strcmp(e->stage, "options") == 0 || strcmp(e->stage, "exec") == 0;
}

/* Replaces the message of an error that is not the caller's own and may name the host. */
static void hide_host(const struct work *w, struct cj_error *e)
{
	if (w->job.may_name_host_paths || work_is_callers_own(w, e))
		return;
	(void)snprintf(e->msg, sizeof(e->msg),
		       "the jail could not be built; the service's log says why, "
		       "under request %s",
		       w->job.trace.request_id);
	e->hint[0] = '\0';
}

/* Sends the summary and the result. */
static int deliver(struct work *w, struct cj_error *err)
{
	const struct result_about about = {
		.profile_name = w->config.profile_name,
		.profile_sha256 = w->config.profile_sha256,
		.network = w->config.network,
		.request_id = w->job.trace.request_id,
		.traceparent = w->job.trace.traceparent,
		.session = w->session_id,
	};
	const struct outcome *o = &w->outcome;
	struct summary summary = {
		.totals = outcome_totals(o),
		.has_network = w->asked.network.mode == NETWORK_PUBLIC,
		.network_state = o->network.state,
		.setup_us = w->setup_us,
		.is_callers_own = w->is_callers_own,
	};
	(void)snprintf(summary.error_stage, sizeof(summary.error_stage), "%s", o->error.stage);
	(void)snprintf(summary.error_message, sizeof(summary.error_message), "%s", o->error.msg);
	memcpy(summary.profile_sha256, w->config.profile_sha256, sizeof(summary.profile_sha256));
	memcpy(summary.code_sha256, o->code_sha256, sizeof(summary.code_sha256));
	auto_json_writer struct json_writer *line = json_writer_create(false);
	auto_json_writer struct json_writer *result = json_writer_create(false);
	struct blob text = { 0 };

	if (!result || !line)
		return cj_fail(err, ENOMEM, "write the result");
	summary_write(line, &summary);
	if (events_add_line(&w->events, line, err) < 0)
		return -err->code;
	if (w->outcome.status == STATUS_SETUP_ERROR)
		hide_host(w, &w->outcome.error); /* the summary has it, for the log */
	if (result_write(result, &w->outcome, &about, err) < 0 ||
	    json_writer_take(result, &text, err) < 0)
		return -err->code;
	return events_finish(&w->events, text.bytes, text.size, err);
}

void work_serve(struct work *w, const struct cj_error *early)
{
	struct cj_error err = { 0 }, undelivered = { 0 };

	outcome_init(&w->outcome, w->job.id, 0);
	events_init(&w->events, w->sock_fd);
	w->events.patience_ms = -1; /* no limit: the server reads to the end, or ends this worker */
	if (early && early->code != 0)
		err = *early;
	int rc = err.code != 0 ? -err.code : plan_job(w, &err);
	if (rc == 0) {
		struct jail *prepared = w->driver.jail;
		w->program.collects_changed = w->request.wants_changed;
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
			.interpreter = w->interpreter,
			.cell = SESSION_CELL_NULL,
		};
		if (w->program.interactive)
			w->driver.cell_input = w->request.stdin_bytes;
		run_driver_begin(&w->driver, &w->outcome);
		rc = run(w, &err);
	}
	if (rc < 0) {
		outcome_fail(&w->outcome, &err);
		w->is_callers_own = work_is_callers_own(w, &err);
	}
	(void)!deliver(w, &undelivered);
}
