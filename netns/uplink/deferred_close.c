/* SPDX-License-Identifier: Apache-2.0 */
/* An io_uring of one entry that is never used for input or output.  Acts. */
#include "netns/uplink/deferred_close.h"

#include <linux/io_uring.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/base/scope.h"

int deferred_close(const int *fds, size_t count)
{
	struct io_uring_params params = { 0 };
	auto_fd int ring_fd = (int)syscall(SYS_io_uring_setup, 1, &params);
	if (ring_fd < 0 ||
	    syscall(SYS_io_uring_register, ring_fd, IORING_REGISTER_FILES, fds, count) < 0)
		return -1;
	return take_fd(&ring_fd);
}
