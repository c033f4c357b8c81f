/* SPDX-License-Identifier: Apache-2.0 */
/* The queue of a session's cells and its interpreter.  Acts. */
#include "runtime/front/serve/session/session_repl.h"

#include <stdlib.h>

#include "runtime/base/files/fd.h"
#include "runtime/base/scope.h"
#include "runtime/jail/session/session_fork.h"

struct session_repl {
	struct session *session; /* borrowed */
	struct program launcher;
	struct session_interpreter *interpreter; /* NULL: none now */
	bool is_wanted;                          /* start one without a cell that waits for it */
	bool had_cell;           /* an earlier one had a cell: the next is a replacement */
	bool has_cell;           /* a worker runs */
	struct cj_error failure; /* of the last start; code 0: none */
	struct session_request waiting[SESSION_WORKERS_MAX]; /* the oldest first */
	size_t nwaiting;
};

int session_repl_create(struct work *keeper, struct session *s, struct session_repl **out,
			struct cj_error *err)
{
	struct session_repl *r = calloc(1, sizeof(*r));

	if (!r)
		return cj_fail(err, ENOMEM, "keep an interpreter");
	r->session = s;
	r->is_wanted = true;
	if (plan_repl(&keeper->config, &keeper->plan, &r->launcher, err) < 0) {
		free(r);
		cj_stage(err, "options");
		return -err->code;
	}
	*out = r;
	return 0;
}

/* --- cells that wait ------------------------------------------------------------------------ */

static void refuse(struct session_request *request, const struct cj_error *why)
{
	fd_set_nonblocking(request->sock_fd);
	unready_tell(request->sock_fd, why);
	session_request_fini(request);
}

static struct session_request take_first(struct session_repl *r)
{
	struct session_request first = r->waiting[0];

	r->nwaiting--;
	for (size_t i = 0; i < r->nwaiting; i++)
		r->waiting[i] = r->waiting[i + 1];
	return first;
}

int session_repl_add(struct session_repl *r, struct session_request *request, struct cj_error *err)
{
	if (r->nwaiting == SESSION_WORKERS_MAX)
		return cj_reject_as(err, EBUSY, "%d cells of the session wait already",
				    SESSION_WORKERS_MAX);
	r->waiting[r->nwaiting++] = *request;
	*request = (struct session_request)SESSION_REQUEST_NULL;
	return 0;
}

static bool is_cancelled(const struct session_request *request)
{
	struct pollfd control = { .fd = request->control_fd };
	return poll(&control, 1, 0) > 0;
}

/* The code of a cell that nobody waits for any more does not run. */
static void drop_cancelled(struct session_repl *r)
{
	struct cj_error why = { 0 };

	while (r->nwaiting > 0 && is_cancelled(&r->waiting[0])) {
		struct session_request first = take_first(r);
		(void)!cj_reject_as(&why, ECANCELED, "the cell was cancelled before it began");
		cj_stage(&why, "session");
		refuse(&first, &why);
	}
}

/* --- the interpreter ------------------------------------------------------------------------ */

static enum interpreter_state state_of(const struct session_repl *r)
{
	return r->interpreter ? session_interpreter_state(r->interpreter) : INTERPRETER_ENDED;
}

static void fail(struct session_repl *r, const struct cj_error *why)
{
	r->failure = *why;
	cj_stage(&r->failure, "session");
	r->is_wanted = false;
	session_interpreter_end(&r->interpreter);
}

static void start(struct session_repl *r)
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
static void look_at(struct session_repl *r)
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

void session_repl_watch(const struct session_repl *r, struct pollfd out[INTERPRETER_FDS])
{
	for (int i = 0; i < INTERPRETER_FDS; i++)
		out[i] = (struct pollfd){ .fd = -1 };
	if (r->interpreter)
		session_interpreter_watch(r->interpreter, out);
}

/* A cell that has come, and an interpreter that is wanted, have their turn at once. */
uint64_t session_repl_at_ms(const struct session_repl *r)
{
	bool can_begin = r->nwaiting > 0 && !r->has_cell && state_of(r) != INTERPRETER_STARTS;

	if (can_begin || (r->is_wanted && !r->interpreter))
		return 0;
	return r->interpreter ? session_interpreter_at_ms(r->interpreter) : UINT64_MAX;
}

int session_repl_prepare(struct session_repl *r, struct cj_error *err)
{
	r->failure = (struct cj_error){ 0 };
	look_at(r);
	if (!r->interpreter && r->failure.code == 0)
		start(r);
	*err = r->failure;
	return r->failure.code != 0 ? -r->failure.code : state_of(r) == INTERPRETER_WAITS;
}

bool session_repl_turn(struct session_repl *r, struct repl_cell *out)
{
	look_at(r);
	if (r->has_cell)
		return false;
	drop_cancelled(r);
	bool has_failed = r->failure.code != 0;
	if (!r->interpreter && !has_failed && (r->is_wanted || r->nwaiting > 0))
		start(r);
	has_failed = r->failure.code != 0;
	if (r->nwaiting == 0 || (!has_failed && state_of(r) != INTERPRETER_WAITS))
		return false;

	*out = (struct repl_cell){ .request = take_first(r), .interpreter = r->interpreter };
	r->has_cell = true;
	if (has_failed) {
		out->early = &r->failure;
		out->slot = SESSION_NO_SLOT;
		return true;
	}
	out->slot = session_interpreter_slot(r->interpreter);
	r->had_cell = true;
	session_interpreter_begin_cell(r->interpreter);
	return true;
}

void session_repl_end_cell(struct session_repl *r, bool is_kept)
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

void session_repl_refuse(struct session_repl *r)
{
	struct cj_error why = { 0 };

	(void)!cj_reject_as(&why, ECANCELED, "the session ended before the cell began");
	cj_stage(&why, "session");
	while (r && r->nwaiting > 0) {
		struct session_request first = take_first(r);
		refuse(&first, &why);
	}
}

void session_repl_destroy(struct session_repl **r)
{
	if (!*r)
		return;
	session_repl_refuse(*r);
	session_interpreter_end(&(*r)->interpreter);
	free(*r);
	*r = NULL;
}
