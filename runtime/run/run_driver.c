/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/run/run_driver.h"

void run_driver_begin(const struct run_driver *d, struct outcome *out)
{
	const struct plan *plan = d->plan;

	outcome_fini(out);
	outcome_init(out, d->run_id, d->program->limits.output_bytes);
	for (size_t i = 0; i < plan->warnings.count; i++)
		outcome_warn(out, "%s", plan->warnings.items[i]);
	for (size_t i = 0; plan->policy && i < plan->policy->notes.count; i++)
		outcome_warn(out, "seccomp: %s", plan->policy->notes.items[i]);
}

/* A jail that was prepared earlier has another name than the run. */
static void on_start(void *context)
{
	const struct run_driver *d = context;
	events_add_start(d->events, d->run_id);
}

static void on_output(void *context, size_t stream, const void *bytes, size_t size)
{
	const struct run_driver *d = context;
	events_add_output(d->events, stream, bytes, size);
}

static void on_denied(void *context, const struct jail_denied *denied)
{
	const struct run_driver *d = context;
	events_add_denied(d->events, denied);
}

static bool on_called(void *context, const struct jail_call *call)
{
	const struct run_driver *d = context;
	bool is_kept = d->events ? events_add_call(d->events, call, d->io.calls_brief)
				 : !d->io.calls_brief;
	if (d->spans && !call->arguments)
		spans_add_call(d->spans, call->name, call->id ? call->end : CALL_REFUSED, call->ms);
	return is_kept;
}

static void on_network(void *context, const struct network_outcome *n)
{
	const struct run_driver *d = context;
	events_add_network(d->events, n);
}

static bool has_room(void *context)
{
	const struct run_driver *d = context;
	return events_has_room(d->events);
}

/* The command's streams are the standard error of the run. */
static int set_up(struct run_driver *d, struct cj_error *err)
{
	const char *words[] = { "/bin/sh", "-c", d->plan->setup.command };
	struct program command = *d->program;
	struct jail_io io = {
		.stdin_fd = -1,
		.stdout_fd = d->io.stderr_fd,
		.stderr_fd = d->io.stderr_fd,
		.escape = { d->io.escape[1], d->io.escape[1] },
		.tty_fd = -1,
		.hangup_fd = d->io.hangup_fd,
		.denied = d->io.denied,
		.network = d->io.network,
		.context = d,
	};

	command.argv = (struct strings){ .items = words, .count = 3 };
	command.limits.wall_ms = d->plan->setup.wall_ms;
	command.code_source = CODE_NONE;
	command.code_path = command.script = NULL;
	command.own_interpreter = command.interactive = false;
	command.tools = NULL;
	outcome_init(d->setup, d->run_id, command.limits.output_bytes);
	return jail_set_up(d->jail, &command, &io, d->setup, err);
}

/* The program, and what it needs besides.  After a command it lacks only its code. */
static int start(struct run_driver *d, struct cj_error *err)
{
	if (!d->plan->setup.command)
		return jail_start(d->jail, d->program, &d->io, err);
	if (set_up(d, err) < 0)
		return -err->code;
	d->rest = *d->program;
	d->rest.nfiles = 0;
	d->rest.args_json = NULL;
	return jail_start(d->jail, &d->rest, &d->io, err);
}

int run_driver_start(struct run_driver *d, struct cj_error *err)
{
	d->io.context = d;
	d->io.started = d->events ? on_start : NULL;
	d->io.output = d->events ? on_output : NULL;
	d->io.denied = d->events ? on_denied : NULL;
	d->io.called = d->events || d->spans ? on_called : NULL;
	d->io.network = d->events ? on_network : NULL;
	d->io.has_room = d->events && d->waits_for_events ? has_room : NULL;

	if (d->interpreter)
		return session_cell_start(d->interpreter, d->program, &d->io, d->cell_input,
					  &d->cell, err);
	if (!d->jail && jail_prepare(d->plan, d->jail_name, &d->jail, err) < 0)
		return -err->code;
	if (d->events)
		d->events->timeout_ms = d->program->limits.wall_ms;
	return start(d, err);
}

static bool collect(const struct run_driver *d, struct outcome *out)
{
	struct cj_error err = { 0 };
	int rc = 0;

	if (d->artifacts_fd >= 0 || d->artifacts_memory_bytes > 0)
		rc = jail_collect(d->jail, d->artifacts_fd, d->artifacts_memory_bytes, out, &err);
	for (size_t i = 0; i < out->artifacts.skipped.count; i++)
		outcome_warn(out, "%s", out->artifacts.skipped.items[i]);
	if (rc < 0)
		outcome_warn(out, "artifacts: %s", err.msg);
	return rc == 0;
}

static void take_cell(struct run_driver *d, struct outcome *out)
{
	struct cell_outcome *cell = &d->cell.outcome;

	cell->is_lost = !d->cell.has_ended;
	cell->is_claimed = !cell->is_lost && out->status == STATUS_EXITED;
	out->cell = cell;
	if (cell->is_new)
		outcome_warn(out,
			     "the session's interpreter is a new one: the variables of earlier "
			     "cells are gone");
	if (cell->is_lost)
		outcome_warn(out,
			     "the session's interpreter has ended: its variables are gone, and "
			     "the next cell gets a new one");
	if (cell->left_out > 0)
		outcome_warn(out, "the cell showed too much: %u displays were left out",
			     cell->left_out);
}

#define NODE_BAD_OPTION 9 /* "Invalid Argument": nodejs.org/api/process.html, Exit codes */

int run_driver_finish(struct run_driver *d, struct outcome *out, bool *out_collected,
		      struct cj_error *err)
{
	if (jail_wait(d->jail, out, err) < 0)
		return -err->code;
	if (d->interpreter)
		take_cell(d, out);
	/* Only a Node.js that runs can say what it knows. */
	if (d->program && d->program->strips_types && out->status == STATUS_EXITED &&
	    out->exit_code == NODE_BAD_OPTION)
		outcome_warn(out, "Node.js before 22.6 can't run TypeScript: use the profile "
				  "deno (-p deno), or a newer Node.js");
	*out_collected = collect(d, out);
	if (d->wants_value && out->exec_errno == 0)
		jail_read_value(d->jail, out);
	return 0;
}
