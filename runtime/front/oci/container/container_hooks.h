/* SPDX-License-Identifier: Apache-2.0 */
/*
 * container_hooks - programs that config.json has run at points of a container's life.
 *
 * Each gets the container's state as JSON on its standard input.  What it prints goes to the error
 * message when it fails, because the streams of create are the container's.  At its timeout it is
 * killed with its process group.
 */
#pragma once

#include "runtime/base/error.h"
#include "runtime/front/oci/config/oci_config.h"
#include "runtime/front/oci/state/state_status.h"

/*
 * container_hooks_run - run the hooks of one kind in order; the first that fails ends it.
 *
 * Their working directory is the bundle.
 * Runs in:  the runtime's namespaces, or for createContainer in init's before pivot_root(2), where
 *           s->record.pid is init's own pid, as init sees it.
 * Fails:    EPROTO with the hook's path, its exit status and its last line; ETIMEDOUT.
 */
int container_hooks_run(const struct oci_config *config, enum oci_hook_kind kind,
			const struct state *s, enum state_status status, struct cj_error *err);

/* The same for startContainer: inside the root, where there is no bundle. */
int container_hooks_run_inside(const struct oci_config *config, enum oci_hook_kind kind,
			       const struct state *s, enum state_status status,
			       struct cj_error *err);

/*
 * container_hooks_wait_ms - how long to wait for a step of an init that runs hooks of `kind`: 30 s,
 * and the timeouts of these hooks.  0, no limit: one of them has no timeout.
 */
unsigned container_hooks_wait_ms(const struct oci_config *config, enum oci_hook_kind kind);
