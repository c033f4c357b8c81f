/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proc - the jail's /proc: its own processes, and no more about the machine than programs need.
 */
#pragma once

#include "runtime/base/error.h"

/*
 * proc_attach - a new procfs of the calling process' pid namespace at root_fd/proc.
 *
 * Must not: run after the old root is detached.  The kernel compares the new procfs with an
 * existing one: it must not show what is masked outside (mount_too_revealing).
 */
int proc_attach(int root_fd, struct cj_error *err);

/* Makes the settings in "/proc" read-only and masks information about the machine. */
int proc_mask(struct cj_error *err);
