/* SPDX-License-Identifier: Apache-2.0 */
/* A worker without a jail.  Acts: writes to its socket, waits for as long as the file says. */
#include "runtime/service/fake/fake.h"

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "profiles/profile.h"
#include "runtime/base/clock.h"
#include "runtime/base/files/fd.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"
#include "runtime/run/report/events.h"
#include "runtime/run/report/result.h"
#include "runtime/service/http/http.h"

#define DENIED_MAX 100 /* different names in one result */

int fake_open(const char *path, struct fake_file *out, struct cj_error *err)
{
	char *text = NULL;
	size_t size = 0;

	*out = (struct fake_file){ .count = 0 };
	int rc = fd_read_file(AT_FDCWD, path, FAKE_FILE_BYTES_MAX, &out->arena, &text, &size, err);
	if (rc == 0)
		rc = fake_file_read(out, path, text, size, err);
	if (rc < 0)
		arena_fini(&out->arena);
	return rc < 0 ? cj_wrap(err, "--fake") : 0;
}

/* --- one run ---------------------------------------------------------------- */

struct fake_run {
	const struct fake_answer *answer;
	const struct job *job;
	struct request request;
	struct config config;
	struct outcome outcome;
	struct events events;
	uint64_t setup_us;
	int sock_fd, control_fd;
};

/* False: the run was cancelled meanwhile. */
static bool wait_for(const struct fake_run *r, uint64_t ms)
{
	struct pollfd control = { .fd = r->control_fd };
	return poll(&control, 1, (int)ms) == 0;
}

static int note_denied(struct outcome *o, const char *name, struct cj_error *err)
{
	if (!o->denied)
		o->denied = arena_array(&o->arena, DENIED_MAX, sizeof(*o->denied));
	if (!o->denied)
		return cj_fail(err, ENOMEM, "make a fake run");
	for (size_t i = 0; i < o->ndenied; i++) {
		if (strcmp(o->denied[i].name, name) == 0) {
			o->denied[i].count++;
			return 0;
		}
	}
	if (o->ndenied < DENIED_MAX)
		o->denied[o->ndenied++] = (struct denied_syscall){ name, 1 };
	return 0;
}

static int happen(struct fake_run *r, const struct fake_event *e, struct cj_error *err)
{
	static const char *const types[] = { "stdout", "stderr", "denied" };

	if (r->job->wants_events)
		events_add(&r->events, types[e->kind], e->bytes.bytes, e->bytes.size);
	if (e->kind == FAKE_DENIED)
		return note_denied(&r->outcome, e->bytes.bytes, err);
	if (capture_add(&r->outcome.output[e->kind], e->bytes.bytes, e->bytes.size) < 0)
		return cj_fail(err, ENOMEM, "make a fake run");
	return 0;
}

static int perform(struct fake_run *r, struct cj_error *err)
{
	const struct fake_answer *a = r->answer;
	struct outcome *o = &r->outcome;
	bool goes_on = true;

	if (a->status == STATUS_SETUP_ERROR) {
		outcome_fail(o, &a->error);
		return 0;
	}
	r->setup_us = clock_us() - r->job->sent_us;
	r->events.timeout_ms = r->config.wall_ms;
	if (r->job->wants_events)
		events_add(&r->events, "start", r->job->id, strlen(r->job->id));
	for (size_t i = 0; goes_on && i < a->nevents; i++) {
		goes_on = wait_for(r, a->events[i].after_ms);
		if (goes_on && happen(r, &a->events[i], err) < 0)
			return -err->code;
	}
	goes_on = goes_on && wait_for(r, a->delay_ms);
	outcome_decide(o, goes_on ? a->status : STATUS_CANCELLED);
	o->exit_code = a->exit_code;
	o->signal = goes_on ? a->signal : 0;
	o->value = goes_on ? a->value : NULL;
	if (r->request.wants_artifacts && goes_on) {
		o->artifacts.items = (struct artifact *)a->artifacts;
		o->artifacts.count = a->nartifacts;
	}
	return 0;
}

static struct summary summarize(const struct fake_run *r)
{
	const struct outcome *o = &r->outcome;
	struct summary s = {
		.status = o->status,
		.exit_code = o->status == STATUS_EXITED ? o->exit_code : -1,
		.signal = o->signal,
		.is_callers_own =
		    true, /* its message comes from the file, so the caller may read it */
		.usage = o->usage,
		.setup_us = r->setup_us,
		.stdout_bytes = o->output[0].total,
		.stderr_bytes = o->output[1].total,
		.artifacts = o->artifacts.count
	};

	for (size_t i = 0; i < o->ndenied; i++)
		s.denied_syscalls += o->denied[i].count;
	memcpy(s.profile_sha256, r->config.profile_sha256, sizeof(s.profile_sha256));
	memcpy(s.code_sha256, o->code_sha256, sizeof(s.code_sha256));
	if (o->status == STATUS_SETUP_ERROR)
		memcpy(s.error_message, o->error.msg, sizeof(s.error_message));
	return s;
}

static int deliver(struct fake_run *r, struct cj_error *err)
{
	const struct result_about about = { .profile_name = r->config.profile_name,
					    .profile_sha256 = r->config.profile_sha256,
					    .network = r->config.network,
					    .request_id = r->job->trace.request_id,
					    .traceparent = r->job->trace.traceparent };
	const struct summary s = summarize(r);
	auto_json_writer struct json_writer *line = json_writer_create(false);
	auto_json_writer struct json_writer *result = json_writer_create(false);
	const char *text = NULL;
	size_t size = 0;

	if (!line || !result)
		return cj_fail(err, ENOMEM, "make a fake result");
	summary_write(line, &s);
	if (events_add_line(&r->events, line, err) < 0 ||
	    result_write(result, &r->outcome, &about, err) < 0 ||
	    json_writer_take(result, &text, &size, err) < 0)
		return -err->code;
	return events_finish(&r->events, text, size, err);
}

static void note_limits(struct fake_run *r, uint64_t began_us)
{
	const struct config *c = &r->config;
	const struct limit_state states[LIMIT_COUNT] = {
		[LIMIT_MEMORY] = { .value = c->memory_bytes },
		[LIMIT_CPUS] = { .value = c->millicpus },
		[LIMIT_PIDS] = { .value = c->pids },
		[LIMIT_WALL] = { .value = c->wall_ms },
		[LIMIT_CPU_TIME] = { .value = c->cpu_ms },
		[LIMIT_DISK] = { .value = c->disk_bytes },
		[LIMIT_NOFILE] = { .value = c->nofile },
		[LIMIT_OUTPUT] = { .value = c->output_bytes },
	};

	memcpy(r->outcome.limits, states, sizeof(states));
	r->outcome.usage.wall_ms = (clock_us() - began_us) / 1000;
}

/* Reads the request as a real worker does, so that the same requests are refused. */
static int run(struct fake_run *r, const struct fake_file *f, const char *profile,
	       struct cj_error *err)
{
	static const struct request_caps none = { SIZE_MAX, SIZE_MAX, SIZE_MAX, SIZE_MAX };
	uint64_t began_us = clock_us();

	if (profile_load(&r->config, profile, err) < 0 ||
	    request_parse((struct blob){ r->job->body, r->job->body_size }, &none, &r->config.arena,
			  &r->request, err) < 0 ||
	    request_apply(&r->request, r->job->may_name_host_paths, &r->config, err) < 0)
		return -err->code;
	r->answer = fake_file_find(f, &r->request);
	outcome_fini(&r->outcome);
	outcome_init(&r->outcome, r->job->id, r->config.output_bytes);
	(void)clock_gettime(CLOCK_REALTIME, &r->outcome.started_at); /* cannot fail */
	if (r->request.has_code)
		sha256_hex(r->request.code.bytes, r->request.code.size, r->outcome.code_sha256);
	if (perform(r, err) < 0)
		return -err->code;
	note_limits(r, began_us);
	outcome_warn(&r->outcome, "no jail was built: the answer is from a file (--fake)");
	for (size_t i = 0; i < r->answer->warnings.count; i++)
		outcome_warn(&r->outcome, "%s", r->answer->warnings.items[i]);
	return 0;
}

static int serve_one(const struct fake_file *f, const char *profile, int sock_fd, int control_fd,
		     struct cj_error *err)
{
	auto_arena struct arena a = { 0 };
	struct job job = { 0 };
	struct fake_run r = { .job = &job, .sock_fd = sock_fd, .control_fd = control_fd };

	auto_fd int memfd = job_receive(sock_fd, err);
	if (memfd < 0 || job_read(memfd, &a, &job, err) < 0)
		return -err->code;
	config_init(&r.config);
	outcome_init(&r.outcome, job.id, 0);
	events_init(&r.events, sock_fd);
	r.events.patience_ms = -1; /* as a worker's */
	if (run(&r, f, profile, err) < 0)
		outcome_fail(&r.outcome, err);
	int rc = deliver(&r, err);
	events_fini(&r.events);
	outcome_fini(&r.outcome);
	config_fini(&r.config);
	return rc;
}

void fake_main(void *context, const struct worker_order *order)
{
	struct cj_error err = { 0 };
	int rc = order->tier == TIER_COLD ? 0 : ready_tell(order->sock_fd, false, NULL, &err);

	if (rc == 0)
		rc = serve_one(context, order->profile, order->sock_fd, order->control_fd, &err);
	_exit(rc < 0 ? EXIT_FAILURE : EXIT_SUCCESS);
}

bool fake_refuses(void *context, struct exchange *x, const struct request *r)
{
	if (r->kind == REQUEST_SESSION) {
		exchange_refuse(x, API_BAD_REQUEST, "--fake has no sessions", NULL, 0);
		return true;
	}
	const struct fake_answer *a = fake_file_find(context, r);
	if (a->is_refusal)
		exchange_refuse(x, a->code, a->message, a->hint, a->retry_after_ms);
	return a->is_refusal;
}
