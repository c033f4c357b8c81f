/* SPDX-License-Identifier: Apache-2.0 */
/* Moves network devices.  Acts. */
#include "runtime/container/create/net_devices.h"

#include <fcntl.h>
#include <linux/netlink.h>
#include <sched.h>
#include <sys/socket.h>

#include "netns/rtnetlink/links.h"
#include "runtime/base/scope.h"

#define OWN_NETNS "/proc/self/ns/net"

static int open_route(struct cj_error *err)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	return fd < 0 ? cj_fail(err, errno, "open a NETLINK_ROUTE socket") : fd;
}

static int open_there(int *out_netns_fd, int *out_route_fd, struct cj_error *err)
{
	*out_netns_fd = open(OWN_NETNS, O_RDONLY | O_CLOEXEC);
	if (*out_netns_fd < 0)
		return cj_fail(err, errno, "open '" OWN_NETNS "'");
	*out_route_fd = open_route(err);
	return *out_route_fd < 0 ? *out_route_fd : 0;
}

/* This process has one thread, and nothing is done there but to open two descriptors. */
static int enter_and_open(int init_pidfd, int *out_netns_fd, int *out_route_fd,
			  struct cj_error *err)
{
	auto_fd int home_fd = open(OWN_NETNS, O_RDONLY | O_CLOEXEC);
	if (home_fd < 0)
		return cj_fail(err, errno, "open '" OWN_NETNS "'");
	if (setns(init_pidfd, CLONE_NEWNET) < 0)
		return cj_fail(err, errno, "join the container's network namespace");
	int rc = open_there(out_netns_fd, out_route_fd, err);
	if (setns(home_fd, CLONE_NEWNET) < 0)
		return cj_fail(err, errno, "go back to the caller's network namespace");
	return rc;
}

int net_devices_move(const struct oci_linux *config, int init_pidfd, struct arena *a,
		     struct net_devices *out, struct cj_error *err)
{
	auto_fd int from_fd = -1, netns_fd = -1;

	if (config->nnet_devices == 0)
		return 0;
	out->indexes = arena_array(a, config->nnet_devices, sizeof(*out->indexes));
	if (!out->indexes)
		return cj_fail(err, ENOMEM, "linux.netDevices");
	from_fd = open_route(err);
	if (from_fd < 0 || enter_and_open(init_pidfd, &netns_fd, &out->there_fd, err) < 0)
		return cj_wrap(err, "linux.netDevices");
	const struct links_move where = { from_fd, out->there_fd, netns_fd };
	for (size_t i = 0; i < config->nnet_devices; i++) {
		const struct oci_net_device *d = &config->net_devices[i];
		if (links_move(&where, d->host_name, d->name, &out->indexes[i], err) < 0)
			return cj_wrap(err, "linux.netDevices");
	}
	return 0;
}

int net_devices_return(const struct oci_linux *config, const struct net_devices *moved,
		       struct cj_error *err)
{
	auto_fd int here_fd = -1, netns_fd = -1;

	if (moved->there_fd < 0)
		return 0;
	if (open_there(&netns_fd, &here_fd, err) < 0)
		return cj_wrap(err, "linux.netDevices");
	const struct links_move where = { moved->there_fd, here_fd, netns_fd };
	for (size_t i = 0; i < config->nnet_devices; i++) {
		const struct oci_net_device *d = &config->net_devices[i];
		struct cj_error failed = { 0 };
		int index = moved->indexes[i];
		if (index > 0 && links_move(&where, d->name, d->host_name, &index, &failed) < 0)
			*err = failed;
	}
	return err->code != 0 ? cj_wrap(err, "linux.netDevices: give them back") : 0;
}
