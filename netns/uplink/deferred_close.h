/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deferred_close - let a kernel worker close a descriptor, so that this process need not wait.
 * Acts.
 *
 * The last close of a socket that owns an nftables table waits for an RCU grace period of 5 to
 * 20 ms, and so does the exit of its process.  An io_uring releases its registered files in a
 * kernel worker after the ring is closed.  So the process keeps only the ring, and closing that is
 * fast. It is as safe: the kernel closes the ring with its process, however the process ends.
 */
#pragma once

/*
 * deferred_close - returns an io_uring that keeps fd open.  Takes fd.
 *
 * Returns fd itself if this kernel or sandbox has no io_uring: then closing it waits.
 * Follows: io_uring_setup(2), io_uring_register(2) IORING_REGISTER_FILES.
 */
int deferred_close(int fd);
