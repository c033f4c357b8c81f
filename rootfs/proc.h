/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proc - the jail's /proc: its own processes, and as little of the machine as programs bear.
 */
#pragma once

#include "runtime/base/error.h"

/*
 * proc_attach - a new procfs of the calling process' pid namespace at root_fd/proc.
 *
 * Must not: run after the old root is gone, for the kernel compares the new procfs with one
 * that is there: nothing may become visible that is masked outside (mount_too_revealing).
 */
int proc_attach(int root_fd, struct cj_error *err);

/* Makes the settings of "/proc" read-only and masks what tells about the machine. */
int proc_mask(struct cj_error *err);
