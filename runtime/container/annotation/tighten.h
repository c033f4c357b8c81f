/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tighten - the annotation io.cejail.profile: what a profile adds to config.json.
 *
 * The profile's seccomp filter is loaded besides the one of config.json, so that a call must pass
 * both.  A call that `cejail run` would report to its supervisor is refused with EPERM.  Landlock
 * refuses programs from outside of the container's tree, and device nodes.  no_new_privs is set.
 * Nothing else of the profile applies: limits and mounts are the engine's.
 */
#pragma once

#include <linux/filter.h>

#include "runtime/base/arena.h"
#include "runtime/base/error.h"

/*
 * tighten_prepare - outside: finds the profile, and compiles its filter into the arena.
 *
 * A kernel without Landlock is a warning.
 */
int tighten_prepare(const char *profile, struct arena *a, struct sock_fprog *out,
		    struct strings *warnings, struct cj_error *err);

/* Inside, before any filter: Landlock. */
int tighten_tree(struct cj_error *err);

/* Inside, after the filter of config.json, which must allow seccomp(2). */
int tighten_load(const struct sock_fprog *filter, struct cj_error *err);
