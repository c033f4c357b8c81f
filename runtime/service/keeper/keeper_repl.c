/* SPDX-License-Identifier: Apache-2.0 */
/* The next cell of a session and its interpreter. */
#include "runtime/service/keeper/keeper_repl.h"

#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/clock.h"
#include "runtime/base/files/fd.h"
#include "runtime/base/scope.h"
#include "runtime/jail/jail.h"
#include "runtime/service/keeper/keeper_signals.h"
#include "runtime/service/worker/job.h"
#include "runtime/session/session.h"

struct keeper_repl {
	struct session *session; /* borrowed */
	struct program launcher;
	struct session_interpreter *interpreter; /* NULL: none now */
	bool is_wanted;                          /* start one without a cell that waits for it */
	bool had_cell;           /* an earlier one had a cell: the next is a replacement */
	bool has_cell;           /* a worker runs */
	struct cj_error failure; /* of the last start; code 0: none */
	bool is_waiting;         /* the next cell has come */
	struct keeper_request waiting;
	uint64_t signals; /* for it */
};

int keeper_repl_create(struct work *keeper, struct session *s, struct keeper_repl **out,
		       struct cj_error *err)
{
	struct keeper_repl *r = calloc(1, sizeof(*r));

	if (!r)
		return cj_fail(err, ENOMEM, "keep an interpreter");
	r->session = s;
	r->is_wanted = true;
	if (plan_repl(&keeper->config, &keeper->plan, &r->launcher, err) < 0) {
		free(r);
		return cj_stage(err, "options");
	}
	*out = r;
	return 0;
}

/* --- the cell that waits ---------------------------------------------------------------------- */

static void refuse(struct keeper_request *request, const struct cj_error *why)
{
	fd_set_nonblocking(request->sock_fd);
	unready_tell(request->sock_fd, why);
	keeper_request_fini(request);
}

static void refuse_waiting(struct keeper_repl *r, const char *why)
{
	struct cj_error err = { 0 };

	cj_refuse_as(&err, ECANCELED, "%s", why);
	cj_stage(&err, "session");
	refuse(&r->waiting, &err);
	r->is_waiting = false;
	r->signals = 0;
}

/* The code of a cell that nobody waits for any more does not run. */
static void drop_cancelled(struct keeper_repl *r)
{
	if (r->is_waiting && fd_await(r->waiting.control_fd, 0, 0))
		refuse_waiting(r, "the cell was cancelled before it began");
}

/*
 * The server sends a cell when the one before it has its result (cell_gate).  Its worker may not
 * have exited, so one waits here.  A cancelled one may wait, too: the server forgets it earlier.
 */
int keeper_repl_add(struct keeper_repl *r, struct keeper_request *request, struct cj_error *err)
{
	drop_cancelled(r);
	if (r->is_waiting)
		return cj_reject_as(err, EBUSY, "a cell of the session waits already");
	r->is_waiting = true;
	r->waiting = *request;
	*request = (struct keeper_request)KEEPER_REQUEST_NULL;
	return 0;
}

bool keeper_repl_add_signals(struct keeper_repl *r, const char *id, uint64_t signals)
{
	if (!r || !r->is_waiting || strcmp(r->waiting.id, id) != 0)
		return false;
	r->signals = keeper_signals_join(r->signals, signals);
	return true;
}

bool keeper_repl_runs_code(const struct keeper_repl *r)
{
	return r->interpreter && session_interpreter_runs_code(r->interpreter);
}

/* --- the interpreter ------------------------------------------------------------------------ */

static enum interpreter_state state_of(const struct keeper_repl *r)
{
	return r->interpreter ? session_interpreter_state(r->interpreter) : INTERPRETER_ENDED;
}

static void fail(struct keeper_repl *r, const struct cj_error *why)
{
	r->failure = *why;
	cj_stage(&r->failure, "session");
	r->is_wanted = false;
	session_interpreter_end(&r->interpreter);
}

static void start(struct keeper_repl *r)
{
	struct cj_error err = { 0 };

	if (session_interpreter_start(r->session, &r->launcher, r->had_cell, &r->interpreter,
				      &err) < 0)
		fail(r, &err);
}

/*
 * One that ended while it loaded its modules is a failure of the next cell.  One that ended between
 * two cells, by a thread of its program, is replaced.
 */
static void look_at(struct keeper_repl *r)
{
	struct cj_error why = { 0 };
	bool was_starting = state_of(r) == INTERPRETER_STARTS;

	if (!r->interpreter)
		return;
	session_interpreter_turn(r->interpreter, &why);
	if (state_of(r) != INTERPRETER_ENDED)
		return;
	if (was_starting) {
		fail(r, &why);
		return;
	}
	session_interpreter_end(&r->interpreter);
	r->is_wanted = true;
}

void keeper_repl_watch(const struct keeper_repl *r, struct pollfd out[INTERPRETER_FDS])
{
	for (int i = 0; i < INTERPRETER_FDS; i++)
		out[i] = (struct pollfd){ .fd = -1 };
	if (r->interpreter)
		session_interpreter_watch(r->interpreter, out);
}

/* A cell that has come, and an interpreter that is wanted, have their turn at once. */
uint64_t keeper_repl_at_ms(const struct keeper_repl *r)
{
	bool can_begin = r->is_waiting && !r->has_cell && state_of(r) != INTERPRETER_STARTS;

	if (can_begin || (r->is_wanted && !r->interpreter))
		return 0;
	return r->interpreter ? session_interpreter_at_ms(r->interpreter) : UINT64_MAX;
}

int keeper_repl_prepare(struct keeper_repl *r, struct cj_error *err)
{
	r->failure = (struct cj_error){ 0 };
	look_at(r);
	if (!r->interpreter && r->failure.code == 0)
		start(r);
	*err = r->failure;
	return r->failure.code != 0 ? -r->failure.code : state_of(r) == INTERPRETER_WAITS;
}

bool keeper_repl_turn(struct keeper_repl *r, struct repl_cell *out)
{
	look_at(r);
	if (r->has_cell)
		return false;
	drop_cancelled(r);
	bool has_failed = r->failure.code != 0;
	if (!r->interpreter && !has_failed && (r->is_wanted || r->is_waiting))
		start(r);
	has_failed = r->failure.code != 0;
	if (!r->is_waiting || (!has_failed && state_of(r) != INTERPRETER_WAITS))
		return false;

	*out = (struct repl_cell){ .request = r->waiting,
				   .interpreter = r->interpreter,
				   .signals = r->signals };
	r->is_waiting = false;
	r->signals = 0;
	r->has_cell = true;
	if (has_failed) {
		out->early = &r->failure;
		out->slot = SESSION_NO_SLOT;
		out->signals = 0; /* it has its result */
		return true;
	}
	out->slot = session_interpreter_slot(r->interpreter);
	r->had_cell = true;
	session_interpreter_begin_cell(r->interpreter);
	return true;
}

void keeper_repl_end_cell(struct keeper_repl *r, bool is_kept)
{
	r->has_cell = false;
	r->failure = (struct cj_error){ 0 };
	if (!r->interpreter)
		return;
	session_interpreter_end_cell(r->interpreter, is_kept);
	if (is_kept)
		return;
	session_interpreter_end(&r->interpreter);
	r->is_wanted = true;
}

void keeper_repl_refuse(struct keeper_repl *r)
{
	if (r && r->is_waiting)
		refuse_waiting(r, "the session ended before the cell began");
}

void keeper_repl_destroy(struct keeper_repl **r)
{
	if (!*r)
		return;
	keeper_repl_refuse(*r);
	session_interpreter_end(&(*r)->interpreter);
	free(*r);
	*r = NULL;
}

/* --- a session whose interpreter waits before there is a job --------------------------------- */

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
	if (session_begin(w->driver.jail, &a->session, err) < 0)
		return cj_stage(err, "session");
	return keeper_repl_create(w, a->session, &a->repl, err);
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
		if (rc > 0 && !is_told && ready_tell(w->sock_fd, false, NULL, err) < 0)
			return -err->code;
		is_told |= rc > 0;
		rc = wait_round(w, signal_fd, a, err);
		if (rc < 0)
			return lose_jail(w, a, err);
		is_asked = rc > 0;
	}
}

bool keeper_repl_take_ahead(struct work *w, int signal_fd, struct session **session,
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
		cj_refuse(early, "a session was prepared, the job is another");
	return true;
}
