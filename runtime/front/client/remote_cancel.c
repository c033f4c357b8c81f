/* SPDX-License-Identifier: Apache-2.0 */
/* The URLs of a run or an exec, and what signals do to it.  Acts: asks the service. */
#include <sys/signalfd.h>

#include "runtime/base/clock.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"
#include "runtime/front/client/remote_link.h"
#include "runtime/front/client/remote_state.h"
#include "runtime/session/session.h"

/* How long to wait for the result of a cancelled run. */
#define CANCEL_MS (CELL_CANCEL_MS + 3000)

/* --- URLs --------------------------------------------------------------------------- */

/* Of the runs, or of the execs of a session. */
int remote_write_list_url(const struct remote_call *call, char url[static REMOTE_URL_MAX],
			  struct cj_error *err)
{
	url[0] = '\0';
	if (!call->exec)
		return remote_url(url, "/v1/runs", err);
	if (remote_url(url, "/v1/sessions/", err) < 0 ||
	    remote_url(url, call->exec->session, err) < 0)
		return -err->code;
	return remote_url(url, "/execs", err);
}

int remote_write_urls(struct remote *r, struct cj_error *err)
{
	if (remote_write_list_url(r->call, r->url, err) < 0 || remote_url(r->url, "/", err) < 0 ||
	    remote_url(r->url, r->outcome->id, err) < 0)
		return -err->code;
	if (!r->call->exec || !r->call->config->interactive)
		return 0;
	if (remote_url(r->stdin_url, r->url, err) < 0)
		return -err->code;
	return remote_url(r->stdin_url, "/stdin", err);
}

/* --- cancelling --------------------------------------------------------------------- */

static int ask_to_cancel(const struct remote *r, struct cj_error *err)
{
	const struct remote_fetch fetch = {
		.socket = r->call->config->remote,
		.message = { .method = "DELETE", .path = r->url, .accept = "application/json" },
		.patience_s = REMOTE_PATIENCE_S,
	};

	return remote_fetch_nothing(&fetch, err);
}

void remote_cancel(struct remote *r, int signal)
{
	struct cj_error err = { 0 };

	if (r->is_cancelled) {
		r->gave_up = signal != 0; /* the second signal */
		return;
	}
	r->is_cancelled = true;
	r->outcome->cancel_signal = signal;
	r->run_ended_ms = clock_ms();
	r->deadline_ms = r->run_ended_ms + CANCEL_MS;
	if (ask_to_cancel(r, &err) < 0)
		r->gave_up = true; /* closing the connection cancels the run, too */
}

static bool interrupt(struct remote *r)
{
	static const char body[] = "{\"signal\":\"INT\"}";
	char url[REMOTE_URL_MAX] = "";
	struct cj_error err = { 0 };

	r->is_interrupted = true;
	if (remote_url(url, r->url, &err) < 0 || remote_url(url, "/signal", &err) < 0)
		return false;
	const struct remote_fetch fetch = {
		.socket = r->call->config->remote,
		.message = { .method = "POST",
			     .path = url,
			     .accept = "application/json",
			     .body = body,
			     .size = sizeof(body) - 1 },
		.patience_s = REMOTE_PATIENCE_S,
	};
	return remote_fetch_nothing(&fetch, &err) == 0;
}

void remote_read_signals(struct remote *r)
{
	struct signalfd_siginfo info;

	while (sys_read(r->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		bool may_interrupt = r->call->exec && info.ssi_signo == SIGINT &&
				     !r->is_interrupted && !r->is_cancelled;
		if (!may_interrupt || !interrupt(r)) /* an exec that still waits takes no signal */
			remote_cancel(r, (int)info.ssi_signo);
	}
}

/* --- cancelled by others -------------------------------------------------------------- */

/* NULL: the session lives, or the service does not say. */
static const char *reason_of_session(const struct remote *r, struct arena *a)
{
	char url[REMOTE_URL_MAX] = "";
	struct cj_error ignored = { 0 };
	const struct json_node *session = NULL;

	if (!r->call->exec || remote_url(url, "/v1/sessions/", &ignored) < 0 ||
	    remote_url(url, r->call->exec->session, &ignored) < 0)
		return NULL;
	const struct remote_fetch fetch = {
		.socket = r->call->config->remote,
		.message = { .method = "GET", .path = url, .accept = "application/json" },
		.patience_s = REMOTE_PATIENCE_S,
	};
	if (remote_fetch_json(&fetch, a, &session, &ignored) < 0)
		return NULL;
	return json_get_text(session, "message");
}

/* The exit status is that of a run which `cejail kill` cancels. */
void remote_explain_cancel(struct remote *r)
{
	auto_arena struct arena a = { 0 };
	const char *why = reason_of_session(r, &a);

	r->outcome->cancel_signal = SIGTERM;
	r->outcome->is_cancelled_elsewhere = true;
	outcome_warn(r->outcome, "cancelled: %s",
		     why ? why : "another request to the service cancelled it");
}
