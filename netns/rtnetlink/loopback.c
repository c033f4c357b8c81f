/* SPDX-License-Identifier: Apache-2.0 */
/* Apart from links.c: what init needs for "lo" is in programs that have no libnl-route-3. */
#include "netns/rtnetlink/links.h"

#include <linux/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "runtime/base/scope.h"

int links_raise_loopback(struct cj_error *err)
{
	auto_fd int sock_fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (sock_fd < 0)
		return cj_fail(err, errno, "open a socket to set 'lo'");

	struct ifreq request = { .ifr_name = "lo", .ifr_flags = IFF_UP };
	if (ioctl(sock_fd, SIOCSIFFLAGS, &request) < 0)
		return cj_fail(err, errno, "bring up 'lo'");
	return 0;
}
