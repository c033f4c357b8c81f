/* SPDX-License-Identifier: Apache-2.0 */
/*
 * process_program - which file args[0] is, for this process' user and root, and the user's home.
 *
 * The file is for an early error and a path for execve(2), which checks everything again.
 */
#pragma once

#include <limits.h>
#include <stdint.h>

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

/*
 * process_program_home - the home directory of `uid` by the container's /etc/passwd; "/" where that
 * has none, or can't be read.
 *
 * Runs in: the process with the user and the rights of the program, so a hostile file in that place
 *          gives nothing to the program that it does not have.
 */
void process_program_home(uint32_t uid, char out_path[static PATH_MAX]);
