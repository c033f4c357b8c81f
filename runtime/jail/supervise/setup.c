/* SPDX-License-Identifier: Apache-2.0 */
/*
 * setup - the command of --setup: a first program in the jail, whose end is not the jail's.
 *
 * It is supervised as any program is, with the same limits.  When it has exited, init has killed
 * what it left (init/intake.c), and the network is changed before the program is sent in.
 */

#include "runtime/base/text.h"
#include "runtime/jail/jail_state.h"
#include "runtime/jail/outcome.h"
#include "runtime/jail/supervise/bind_watch.h"
#include "runtime/kernel/cgroup/cgroup.h"

/* Where init is not alone, or did not say so, the jail ends as it does for a program. */
static bool end_setup(struct jail *j, const struct ended *ended, bool has_ended_itself)
{
	return (has_ended_itself && ended->is_alone) ||
	       jail_run_ops.end(j, ended, has_ended_itself);
}

/* What the command has used does not count as the program's; the peak of memory does. */
static void begin_anew(struct jail *j, const struct outcome *setup)
{
	for (size_t i = 0; i < RELAY_COUNT; i++)
		relay_fini(&j->run.relays[i]);
	j->run = (struct jail_run){ .binds = j->run.binds,
				    .network_reported = j->run.network_reported,
				    .master_fd = -1 };
	for (size_t i = 0; i < RELAY_COUNT; i++)
		relay_init(&j->run.relays[i]);
	cgroup_read_usage(&j->cgroup, &j->warm.before);
	j->warm.cpu_us = 1000 * (setup->usage.cpu_user_ms + setup->usage.cpu_system_ms);
	j->was_set_up = true;
}

static int explain(const struct jail *j, const struct outcome *out, struct cj_error *err)
{
	char limit[32];
	if (out->exec_errno != 0) {
		(void)!cj_fail(err, out->exec_errno, "execute '/bin/sh'");
		return cj_hint(err, "the jail needs a shell for --setup");
	}
	if (out->status == STATUS_CANCELLED)
		return cj_reject_as(err, ECANCELED, "the command was cancelled");
	if (out->status == STATUS_TIMEOUT) {
		cj_refuse(err, "the command did not end within %s",
			  text_format_duration(j->plan->setup.wall_ms, limit, sizeof(limit)));
		return cj_hint(err, "give it more time with --setup-timeout");
	}
	if (out->status == STATUS_EXITED)
		cj_refuse(err, "the command ended with exit status %d", out->exit_code);
	else
		cj_refuse(err, "the command ended with status '%s'", status_names[out->status]);
	return cj_hint(err, "the program has not run; what the command wrote says why");
}

static int run_command(struct jail *j, const struct program *setup, const struct jail_io *io,
		       struct outcome *out, struct cj_error *err)
{
	if (jail_start(j, setup, io, err) < 0)
		return -err->code;
	/* its changes are the run's: they are named once, at the end */
	struct bind_watch *binds = j->run.binds;
	j->run.binds = NULL;
	int rc = jail_wait(j, out, err);
	j->run.binds = binds;
	if (rc < 0)
		return rc;
	return out->status == STATUS_EXITED && out->exit_code == 0 && out->exec_errno == 0
		   ? 0
		   : explain(j, out, err);
}

int jail_set_up(struct jail *j, const struct program *setup, const struct jail_io *io,
		struct outcome *out, struct cj_error *err)
{
	const struct setup_spec *spec = &j->plan->setup;
	const struct jail_ops *run_ops = j->ops;
	struct jail_ops ops = *run_ops;

	ops.end = end_setup;
	j->ops = &ops;
	j->is_setting_up = true;
	int rc = run_command(j, setup, io, out, err);
	j->ops = run_ops;
	j->is_setting_up = false;
	if (rc == 0 && spec->has_network)
		rc = network_change(j->network, &spec->lists, err);
	if (rc < 0) {
		cj_stage(err, "setup");
		(void)!cj_wrap(err, "--setup '%s'", spec->command);
		return -err->code;
	}
	begin_anew(j, out);
	return 0;
}
