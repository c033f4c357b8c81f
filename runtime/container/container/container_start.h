/* SPDX-License-Identifier: Apache-2.0 */
/* container_start - lets init go on: for start and run. */
#pragma once

#include "runtime/container/config/oci_config.h"
#include "runtime/container/state/state.h"

/*
 * container_start_init - returns when the program is executed, or with init's error.
 *
 * Fails: EINVAL when the container is not in the state "created"; ETIMEDOUT when init does nothing
 *        for container_hooks_wait_ms().  No program runs after a failure.
 */
int container_start_init(const struct state *s, const struct oci_config *config,
			 struct cj_error *err);

/*
 * container_start_hooks - the hooks poststart.
 *
 * A failure is a warning for a configuration before version 1.3 of the specification.  From 1.3 on
 * it is an error, after which the caller kills the container.
 */
int container_start_hooks(const struct oci_options *o, const struct oci_config *config,
			  const struct state *s, struct cj_error *err);
