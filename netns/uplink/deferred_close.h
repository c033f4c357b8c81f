/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deferred_close - let a kernel worker close descriptors, so that this process need not wait.
 * Acts.
 *
 * The last close of a socket that owns an nftables table waits for an RCU grace period of 5 to
 * 20 ms, and so does the exit of its process.  An io_uring releases its registered files in a
 * kernel worker after the ring is closed.  So the process closes its own descriptors first, which
 * are not the last then, and the ring after them: both are fast.  It is as safe: the kernel closes
 * the ring with its process, however the process ends.
 */
#pragma once

#include <stddef.h>

/*
 * deferred_close - returns an io_uring that keeps fds[] open, too.  Borrows fds[].
 *
 * Returns -1 if this kernel or sandbox has no io_uring: then the last close waits.
 * Follows: io_uring_setup(2), io_uring_register(2) IORING_REGISTER_FILES.
 */
int deferred_close(const int *fds, size_t count);
