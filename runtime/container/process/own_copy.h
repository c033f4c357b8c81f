/* SPDX-License-Identifier: Apache-2.0 */
/*
 * own_copy - cejail-oci runs from a sealed copy in memory when a process of it enters a container.
 *
 * There a hostile process may find /proc/PID/exe, or have /proc/self/exe executed in the place of
 * the program.  What it reaches is a memfd that nobody can write, not the file on the host
 * (CVE-2019-5736).  Non-dumpability hides /proc/PID/exe as well, but not from a process that has
 * CAP_SYS_PTRACE in the host's user namespace.
 */
#pragma once

#include <stdbool.h>

#include "runtime/base/error.h"

/*
 * own_copy_enter - for create, run and exec: the first thing main() does, before any descriptor is
 * opened.
 *
 * Executes the copy with the same arguments and environment.  Returns 0 when this process runs from
 * it already, which is read from the seals of its executable.  This process is not dumpable
 * afterwards.  Follows: memfd_create(2), fexecve(3), PR_SET_DUMPABLE in prctl(2).
 */
int own_copy_enter(char *const argv[], struct cj_error *err);
