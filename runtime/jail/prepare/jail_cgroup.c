/* SPDX-License-Identifier: Apache-2.0 */
/* The stages of the jail's cgroup.  Acts. */
#include "runtime/jail/prepare/jail_cgroup.h"

#include "runtime/jail/jail_state.h"

int jail_cgroup_find_enter(struct jail *j, struct cj_error *err)
{
	return cgroup_find(j->plan->cgroup_parent, j->id, &j->cgroup, err);
}

int jail_cgroup_enter(struct jail *j, struct cj_error *err)
{
	const struct cgroup_limits limits = {
		.memory_bytes = j->plan->limits.memory_bytes,
		.millicpus = j->plan->limits.millicpus,
		.pids = j->plan->limits.pids > 0 ? j->plan->limits.pids + 1 : 0, /* and init */
	};
	if (cgroup_make(&j->cgroup, &limits, err) < 0)
		return -err->code;
	if (j->plan->is_divided)
		cgroup_divide(&j->cgroup); /* before init is in it */
	return 0;
}

void jail_cgroup_leave(struct jail *j)
{
	j->leaf_stays |= !cgroup_destroy(&j->cgroup);
}
