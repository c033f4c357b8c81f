/* SPDX-License-Identifier: Apache-2.0 */
/* The gateway's namespace, and the sockets there and in the jail's: for the gateway's process, and
 * for a trial. */
#include "netns/gateway_parts.h"

#include <fcntl.h>
#include <linux/sockios.h>
#include <sched.h>
#include <sys/ioctl.h>

#include "netns/address/addresses.h"
#include "netns/nftables/nfnl.h"
#include "netns/relay/resolver.h"
#include "runtime/base/files/fd.h"
#include "runtime/base/scope.h"

/* A netlink socket acts also with the capabilities of the process that opened it: netlink(7). */
static int open_trio(int *route, int *rules, int *log, struct cj_error *err)
{
	*route = nfnl_socket(NETLINK_ROUTE, err);
	*rules = *route < 0 ? -1 : nfnl_socket(NETLINK_NETFILTER, err);
	*log = *rules < 0 ? -1 : nfnl_socket(NETLINK_NETFILTER, err);
	return *log < 0 ? -err->code : 0;
}

/* Returns 1; 0 where this host has no such sysctl, or forbids writing it. */
static int set(const char *sysctl_path, const char *value, struct cj_error *err)
{
	int rc = fd_put_file(AT_FDCWD, sysctl_path, value, err);
	if (rc == -ENOENT || rc == -EACCES || rc == -EPERM || rc == -EROFS)
		return 0;
	return rc < 0 ? rc : 1;
}

/*
 * The gateway answers only the jail, so every ICMP error of its routing may be sent: by default the
 * kernel sends one per second.  Without IPv6 in the kernel, or in a container with a read-only
 * /proc/sys, the jail has only IPv4, and some failures are slow.  Returns as set(), for IPv6.
 */
static int set_up_routing(struct cj_error *err)
{
	if (set("/proc/sys/net/ipv4/icmp_ratelimit", "0", err) < 0 ||
	    set("/proc/sys/net/ipv6/icmp/ratelimit", "0", err) < 0)
		return -err->code;
	return set("/proc/sys/net/ipv6/conf/all/forwarding", "1", err);
}

int gateway_open_own(bool has_dns, struct network_handles *h, struct cj_error *err)
{
	int *fds = h->fds;
	if (unshare(CLONE_NEWNET) < 0)
		return cj_fail(err, errno, "create a network namespace");
	if (open_trio(&fds[SLOT_GATEWAY_ROUTE], &fds[SLOT_GATEWAY_RULES], &fds[SLOT_GATEWAY_LOG],
		      err) < 0)
		return -err->code;
	int rc = set_up_routing(err);
	if (rc < 0)
		return rc;
	h->has_ipv6 = rc > 0;
	return has_dns
		   ? resolver_listen(&address_gateway4, &fds[SLOT_DNS_UDP], &fds[SLOT_DNS_TCP], err)
		   : 0;
}

int gateway_open_jail(int netns_fd, struct network_handles *h, struct cj_error *err)
{
	int *fds = h->fds;
	if (setns(netns_fd, CLONE_NEWNET) < 0)
		return cj_fail(err, errno, "enter the jail's network namespace");
	return open_trio(&fds[SLOT_JAIL_ROUTE], &fds[SLOT_JAIL_RULES], &fds[SLOT_JAIL_LOG], err);
}

int gateway_open_here(bool has_dns, struct network_handles *h, struct cj_error *err)
{
	auto_fd int netns_fd = ioctl(h->fds[SLOT_JAIL], SIOCGSKNS);
	if (netns_fd < 0)
		return cj_fail(err, errno, "open the jail's network namespace");
	int rc = gateway_open_own(has_dns, h, err);
	return rc < 0 ? rc : gateway_open_jail(netns_fd, h, err);
}
