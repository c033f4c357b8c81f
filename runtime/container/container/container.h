/* SPDX-License-Identifier: Apache-2.0 */
/* container - the verbs that act on a container which exists, and what they share with create. */
#pragma once

#include "runtime/container/call/oci_log.h"
#include "runtime/container/cgroup/container_cgroup.h"
#include "runtime/container/config/oci_config.h"
#include "runtime/container/state/state.h"

/* Each is the verb of its name: cejail-oci(8). */
oci_verb container_state, container_list, container_kill, container_delete;

/* These act through the cgroup of a container that runs, or waits for start. */
oci_verb container_pause, container_resume, container_ps, container_update, container_events;

/* What create read: later verbs never look at the bundle, which may have changed. */
int container_config_stored(const struct state *s, struct arena *a, struct oci_config *out,
			    struct cj_error *err);

/*
 * container_delete_all - kill what runs, remove the cgroup, run the hooks poststop, remove the
 * state.  Needs the lock.  What was removed already is no error, so it can be repeated.
 */
int container_delete_all(const struct oci_options *o, struct state *s, struct arena *a,
			 struct cj_error *err);

/* "9", "KILL", "SIGKILL", "RTMIN+3"; any case.  Fails for 0 and for what is no signal. */
int container_signal_parse(const char *text, int *out, struct cj_error *err);

/*
 * container_update_read - the options of `update` that are given, as limits into *out.
 *
 * Sizes may have a unit ("64M"); -1 stands for no limit.  *out_any: at least one is given.
 * Fails: EINVAL, naming the option; for what cgroup v2 does not have, too.
 */
int container_update_read(const struct oci_options *o, struct oci_resources *out, bool *out_any,
			  struct cj_error *err);

/* The container that a verb names, with its cgroup. */
struct container_target {
	struct state state;
	struct container_cgroup cgroup;
};
#define CONTAINER_TARGET_NULL                                                                      \
	{                                                                                          \
		.state = STATE_NULL, .cgroup = {.dir_fd = -1 }                                     \
	}
void container_target_close(struct container_target *t);
#define auto_container_target __attribute__((cleanup(container_target_close)))

/*
 * container_target_open - the container of call->options->id.  `is_locked`: the verb changes it.
 *
 * Fails: ENOENT "container 'ID' does not exist"; ESRCH "container not running"; EBUSY while create
 *        makes it.
 */
int container_target_open(const struct oci_call *call, bool is_locked, struct container_target *out,
			  struct cj_error *err);
