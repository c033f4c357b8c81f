/* SPDX-License-Identifier: Apache-2.0 */
/* container_delete - removes all that a container has: for delete and run. */
#pragma once

#include "runtime/container/state/state.h"

/*
 * container_delete_all - kill what runs, remove the cgroup, run the hooks poststop, remove the
 * state.  Needs the lock.  What was removed already is no error, so it can be repeated.
 */
int container_delete_all(const struct oci_options *o, struct state *s, struct arena *a,
			 struct cj_error *err);
