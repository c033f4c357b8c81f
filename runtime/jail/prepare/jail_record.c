/* SPDX-License-Identifier: Apache-2.0 */
/* The stages of the record.  Acts. */
#include "runtime/jail/prepare/jail_record.h"

#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/base/scope.h"
#include "runtime/jail/jail_state.h"

/* Without it an ordinary caller's run is only not listed.  Root needs it to choose ids. */
int jail_record_directory_enter(struct jail *j, struct cj_error *err)
{
	j->runtime_dir_fd = record_open_dir(err);
	if (j->runtime_dir_fd >= 0)
		return 0;
	if (geteuid() == 0)
		return -err->code;
	const bool has_hint = err->hint[0] != '\0';
	jail_degrade(j, DEGRADED_RECORD,
		     "'cejail ps', 'kill' and 'gc' won't see this run: %s%s%s%s", err->msg,
		     has_hint ? " (" : "", err->hint, has_hint ? ")" : "");
	return 0;
}

void jail_record_directory_leave(struct jail *j)
{
	cj_close(&j->runtime_dir_fd);
}

bool jail_record_is_wanted(const struct jail *j)
{
	return j->runtime_dir_fd >= 0;
}

int jail_record_enter(struct jail *j, struct cj_error *err)
{
	j->record = (struct record){
		.id = j->id,
		.profile = j->plan->profile_name,
		.cgroup_path = j->cgroup.path,
		.started_ms = clock_epoch_ms(),
		.is_ready = j->plan->is_ahead,
	};
	j->record_fd = record_create(j->runtime_dir_fd, &j->record, err);
	return j->record_fd < 0 ? j->record_fd : 0;
}

void jail_record_leave(struct jail *j)
{
	if (j->leaf_stays)
		cj_close(&j->record_fd); /* the record stays: unlocked, it marks a dead run */
	else if (j->record_fd >= 0)
		record_remove(j->runtime_dir_fd, j->id, &j->record_fd);
}

/* It changes only what 'cejail ps' shows, so a failure does not end the run. */
void jail_record_started(struct jail *j)
{
	struct cj_error ignored;
	if (j->record_fd < 0 || !j->record.is_ready)
		return;
	j->record.is_ready = false;
	j->record.started_ms = clock_epoch_ms();
	(void)record_complete(j->record_fd, &j->record, &ignored);
}

int jail_record_complete_enter(struct jail *j, struct cj_error *err)
{
	j->record.init_pid = j->init_pid;
	j->record.cgroup_inode = cgroup_inode(&j->cgroup);
	return record_complete(j->record_fd, &j->record, err);
}

/* What can't be removed now is left to the next run. */
int jail_record_sweep_enter(struct jail *j, struct cj_error *err)
{
	struct cj_error ignored;
	(void)err;
	(void)record_sweep(j->runtime_dir_fd, &ignored);
	return 0;
}
