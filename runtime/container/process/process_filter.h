/* SPDX-License-Identifier: Apache-2.0 */
/*
 * process_filter - "linux.seccomp" compiled by libseccomp.  No system call but those on a memfd.
 *
 * Names that libseccomp does not know are skipped: each engine's profile names calls of other
 * architectures and newer kernels.  Several rules for a call are alternatives; the conditions of
 * one rule must all be true.  If two of them are about the same argument, each condition of the
 * rule is an alternative: other runtimes read it so, and engines write their profiles for these.
 */
#pragma once

#include <linux/filter.h>

#include "runtime/base/arena.h"
#include "runtime/base/error.h"
#include "runtime/container/config/oci_seccomp.h"

/*
 * process_filter_compile - the program, in the arena.
 *
 * Fails: EINVAL for an action that takes no errnoRet; an architecture that this libseccomp lacks;
 *        a call with two rules of which libseccomp would ignore one.
 */
int process_filter_compile(const struct oci_seccomp *seccomp, struct arena *a,
			   struct sock_fprog *out, struct cj_error *err);
