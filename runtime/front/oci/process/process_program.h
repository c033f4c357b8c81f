/* SPDX-License-Identifier: Apache-2.0 */
/*
 * process_program - which file args[0] is, for this process' user and root.
 *
 * The result is for an early error and a path for execve(2), which checks everything again.
 */
#pragma once

#include <limits.h>

#include "runtime/base/arena.h"
#include "runtime/base/error.h"

/*
 * process_program_find - `name` itself if it has a slash, else in the PATH of `env`.
 *
 * Fails: ENOENT, "executable file not found in $PATH: 'NAME'" or "open executable 'NAME': ...";
 *        EACCES.  podman turns these texts into the status 127 and 126.
 */
int process_program_find(const char *name, const struct strings *env,
			 char out_path[static PATH_MAX], struct cj_error *err);
