/* SPDX-License-Identifier: Apache-2.0 */
/* hook_env - the environment of createContainer hooks without "env": container_hooks.h says why. */
#pragma once

#include "runtime/base/arena.h"
#include "runtime/base/error.h"

/* Adds copies of the caller's variables that lead to nothing in the working directory. */
int hook_env_read(struct arena *a, struct strings *out, struct cj_error *err);
