/* SPDX-License-Identifier: Apache-2.0 */
/* pid_file - a process id in a file, as engines read it: decimal, without a newline. */
#pragma once

#include <sys/types.h>

#include "runtime/base/error.h"

/*
 * pid_file_write - `path` is relative to the caller's working directory.
 *
 * The file gets its name when it is whole, by rename(2): a reader never sees a part of it.  What
 * had the name before is replaced.
 */
int pid_file_write(const char *path, pid_t pid, struct cj_error *err);
