/* SPDX-License-Identifier: Apache-2.0 */
/* The summary and the result of a job.  Acts. */
#include "runtime/service/worker/work_result.h"

#include <stdio.h>
#include <string.h>

#include "profiles/profile.h"
#include "runtime/base/json/json.h"
#include "runtime/run/report/result.h"

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

/* Does the text have the host path of something that the jail shows? */
static bool names_bind(const struct plan *plan, const char *text)
{
	for (size_t i = 0; i < plan->root.nbinds; i++)
		if (strstr(text, plan->root.binds[i].source))
			return true;
	return false;
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

/* Does the text have the host path of a file that is copied in? */
static bool names_copied(const struct work *w, const char *text)
{
	for (size_t i = 0; i < w->program.nfiles; i++)
		if (w->program.files[i].source && strstr(text, w->program.files[i].source))
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
	return is_about && !names_copied(w, e->msg) && !names_bind(&w->asked, rest);
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

void work_hide_host(const struct work *w, struct cj_error *e)
{
	if (w->job.may_name_host_paths || work_is_callers_own(w, e))
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

int work_deliver(struct work *w, struct cj_error *err)
{
	const struct result_about about = {
		.profile_name = w->config.profile_name,
		.profile_sha256 = w->config.profile_sha256,
		.network = w->config.network,
		.request_id = w->job.trace.request_id,
		.traceparent = w->job.trace.traceparent,
		.session = w->session_id,
	};
	auto_json_writer struct json_writer *result = json_writer_create(false);
	const char *text = NULL;
	size_t size = 0;

	if (!result)
		return cj_fail(err, ENOMEM, "write the result");
	if (add_summary(w, err) < 0)
		return -err->code;
	if (w->outcome.status == STATUS_SETUP_ERROR)
		work_hide_host(w, &w->outcome.error); /* the summary has it, for the log */
	if (result_write(result, &w->outcome, &about, err) < 0 ||
	    json_writer_take(result, &text, &size, err) < 0)
		return -err->code;
	return events_finish(&w->events, text, size, err);
}
