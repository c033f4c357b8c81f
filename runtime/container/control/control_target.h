/* SPDX-License-Identifier: Apache-2.0 */
/* control_target - the container that a verb names, with its cgroup.  Acts. */
#pragma once

#include "runtime/container/cgroup/container_cgroup.h"
#include "runtime/container/oci_call.h"
#include "runtime/container/state/state.h"

struct control_target {
	struct state state;
	struct container_cgroup cgroup;
};
#define CONTROL_TARGET_NULL                                                                        \
	{                                                                                          \
		.state = STATE_NULL, .cgroup = {.dir_fd = -1 }                                     \
	}
void control_target_close(struct control_target *t);
#define auto_control_target __attribute__((cleanup(control_target_close)))

/*
 * control_target_open - the container of call->options->id.  `is_locked`: the verb changes it.
 *
 * Fails: ENOENT "container 'ID' does not exist"; ESRCH "container not running"; EBUSY while create
 *        makes it.
 */
int control_target_open(const struct oci_call *call, bool is_locked, struct control_target *out,
			struct cj_error *err);
