/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One exec of a session.  Acts.
 *
 * It begins as a copy of the keeper: the config is the session's, and the request of the exec goes
 * onto it.  Its settings may differ as those of a request for a jail that was prepared ahead may.
 */
#include "runtime/service/keeper/exec_worker.h"

#include <stdio.h>
#include <string.h>

#include "runtime/base/scope.h"
#include "runtime/jail/jail.h"

static struct work make_work(const struct exec_order *order)
{
	const struct work *keeper = order->keeper;
	struct work w = {
		.profile = keeper->profile,
		.tier = TIER_JAIL,
		.sock_fd = order->request->sock_fd,
		.control_fd = order->request->control_fd,
		.stdin_fd = order->request->stdin_fd,
		.session_id = keeper->job.id,
		.exec_number = order->number,
		.config = keeper->config,
		.plan = keeper->plan,
	};

	memcpy(w.jail_name, keeper->jail_name, sizeof(w.jail_name));
	return w;
}

/* The cell had not begun, or the interpreter waits for the next one. */
static bool is_kept(const struct work *w)
{
	return !w->driver.cell.outcome.number || w->driver.cell.has_ended;
}

static int check_cell(const struct work *w, struct cj_error *err)
{
	if (w->stdin_fd < 0)
		return 0;
	(void)!cj_reject(err, "a cell can't have open_stdin: its stdin is in the request");
	return cj_stage(err, "options");
}

bool cell_worker_run(const struct exec_order *order)
{
	struct work w = make_work(order);
	struct cj_error early = { 0 }, err = { 0 };

	w.interpreter = order->interpreter;
	if (order->early)
		early = *order->early;
	else
		(void)!check_cell(&w, &early);
	/* An interpreter that has ended is the result of the job, which comes in any case. */
	if (!work_await_job(&w, order->signal_fd) || work_read_job(&w, &err) < 0)
		return true;
	if (early.code == 0)
		w.driver.jail = session_interpreter_jail(order->interpreter);
	work_serve(&w, &early);
	return is_kept(&w);
}

void exec_worker_run(const struct exec_order *order)
{
	struct work w = make_work(order);
	struct jail *view = NULL;
	struct cj_error early = { 0 }, err = { 0 };

	if (session_exec_open(order->session, order->slot, order->request->id, &view, &early) < 0)
		(void)snprintf(early.stage, sizeof(early.stage), "session");
	/* A reaper that has ended is the result of the job, which comes in any case. */
	if (!work_await_job(&w, order->signal_fd) || work_read_job(&w, &err) < 0)
		return;
	w.driver.jail = view;
	work_serve(&w, &early);
	cj_close(&w.sock_fd); /* the server can answer now and does not wait for the clean-up */
	jail_destroy(&w.driver.jail);
}
