/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deferred_close - let the kernel close a descriptor behind our back.  Acts.
 *
 * The last close of a socket that owns an nftables table waits for an RCU grace period, 5 to 20 ms,
 * and an exit waits with it.  What an io_uring holds is given back by a kernel worker after the
 * ring is closed, so who holds only the ring need not wait; it is as safe, because the ring is a
 * descriptor like another and goes when its process does, killed or not.
 */
#pragma once

/*
 * deferred_close - a descriptor that holds fd open in its stead.  Takes fd.
 *
 * Returns fd itself where this kernel or sandbox has no io_uring: then closing takes its time.
 * Follows: io_uring_setup(2), io_uring_register(2) IORING_REGISTER_FILES.
 */
int deferred_close(int fd);
