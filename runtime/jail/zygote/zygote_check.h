/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zygote_check - may this process be forked into jails?
 *
 * Both fail with EBUSY when it may not, and with what the kernel says when that can't be found out.
 */
#pragma once

#include "runtime/base/error.h"

/* A fork has only the thread that calls it; what the others hold stays locked for ever. */
int zygote_check_threads(struct cj_error *err);

/*
 * Memory that is mapped shared and writable, or may become so, stays common to all forks: jails
 * could exchange data through it.  Modules make such mappings with mmap(2) or shmat(2).
 */
int zygote_check_memory(struct cj_error *err);
