/* SPDX-License-Identifier: Apache-2.0 */
/* Opens a running container.  Acts. */
#include "runtime/container/control/control_target.h"

#include "runtime/container/state/state_status.h"

void control_target_close(struct control_target *t)
{
	container_cgroup_close(&t->cgroup);
	state_close(&t->state);
}

int control_target_open(const struct oci_call *call, bool is_locked, struct control_target *out,
			struct cj_error *err)
{
	int rc = state_open(call->options, is_locked, call->arena, &out->state, err);
	if (rc < 0)
		return rc;
	enum state_status status = state_status_of(&out->state);
	if (status == STATE_STOPPED)
		return cj_reject_as(err, ESRCH, "container not running");
	if (status == STATE_CREATING)
		return cj_reject_as(err, EBUSY, "container '%s' is not created yet",
				    call->options->id);
	return container_cgroup_open(&out->state.record.cgroup, &out->cgroup, err);
}
