/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the tap device of a helper.  Acts. */
#include "netns/uplink/uplink_tap.h"

#include <fcntl.h>
#include <net/if.h> /* before linux/: the kernel's headers then leave its types out */

#include <linux/if_tun.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "netns/address/addresses.h"
#include "runtime/base/scope.h"

#define TUN "/dev/net/tun"

int uplink_tap_make(int netns_fd, struct cj_error *err)
{
	/* as pasta and slirp4netns ask for it: with other flags they could not attach */
	struct ifreq request = { .ifr_name = LINK_UPLINK };
	request.ifr_flags = IFF_TAP | IFF_NO_PI;

	if (setns(netns_fd, CLONE_NEWNET) < 0)
		return cj_fail(err, errno, "join the gateway's network namespace");
	/* it belongs to the network namespace that it is opened in */
	auto_fd int fd = open(TUN, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return cj_fail(err, errno, "open '" TUN "'");
	if (ioctl(fd, TUNSETIFF, &request) < 0)
		return cj_fail(err, errno, "create the tap device '" LINK_UPLINK "'");
	/* The owner attaches without a capability, other users only with CAP_NET_ADMIN. */
	if (ioctl(fd, TUNSETOWNER, (unsigned long)geteuid()) < 0)
		return cj_fail(err, errno, "set the owner of '" LINK_UPLINK "'");
	if (ioctl(fd, TUNSETPERSIST, 1UL) < 0)
		return cj_fail(err, errno, "make '" LINK_UPLINK "' persistent");
	return 0;
}
