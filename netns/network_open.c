/* SPDX-License-Identifier: Apache-2.0 */
/* Init's part: the two namespaces, and sockets in both.  Acts. */
#include <fcntl.h>
#include <linux/netlink.h>
#include <sched.h>
#include <stdio.h>
#include <sys/socket.h>

#include "netns/addresses.h"
#include "netns/dns/resolver.h"
#include "netns/forward.h"
#include "netns/network.h"
#include "netns/rtnetlink/loopback.h"
#include "runtime/base/files/fd.h"
#include "runtime/base/scope.h"

void network_handles_init(struct network_handles *h)
{
	for (size_t i = 0; i < SLOT_COUNT; i++)
		h->fds[i] = -1;
	h->has_ipv6 = false;
}

void network_handles_fini(struct network_handles *h)
{
	for (size_t i = 0; i < SLOT_COUNT; i++)
		cj_close(&h->fds[i]);
}

static int open_netlink(int protocol, const char *what, int *out, struct cj_error *err)
{
	*out = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol);
	return *out < 0 ? cj_fail(err, errno, "open a socket for %s", what) : 0;
}

/* A netlink socket acts also with the capabilities of the process that opened it: netlink(7). */
static int open_trio(int *route, int *rules, int *log, struct cj_error *err)
{
	if (open_netlink(NETLINK_ROUTE, "links", route, err) < 0 ||
	    open_netlink(NETLINK_NETFILTER, "rules", rules, err) < 0 ||
	    open_netlink(NETLINK_NETFILTER, "denials", log, err) < 0)
		return -err->code;
	return 0;
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

static int open_gateway(const struct network_spec *spec, struct network_handles *h,
			struct cj_error *err)
{
	int *fds = h->fds;
	if (open_trio(&fds[SLOT_GATEWAY_ROUTE], &fds[SLOT_GATEWAY_RULES], &fds[SLOT_GATEWAY_LOG],
		      err) < 0)
		return -err->code;
	int rc = set_up_routing(err);
	if (rc < 0)
		return rc;
	h->has_ipv6 = rc > 0;
	/* With an allow list the jail has no DNS: names in queries could carry data out. */
	if (spec->nallow == 0 &&
	    resolver_listen(&address_gateway4, &fds[SLOT_DNS_UDP], &fds[SLOT_DNS_TCP], err) < 0)
		return -err->code;
	if (unshare(CLONE_NEWNET) < 0)
		return cj_fail(err, errno, "create the jail's network namespace");
	return open_trio(&fds[SLOT_JAIL_ROUTE], &fds[SLOT_JAIL_RULES], &fds[SLOT_JAIL_LOG], err);
}

static int open_listeners(const struct network_spec *spec, struct network_handles *h,
			  struct cj_error *err)
{
	for (size_t i = 0; i < spec->nports; i++) {
		h->fds[SLOT_LISTENERS + i] = forward_listen(spec->ports[i], err);
		if (h->fds[SLOT_LISTENERS + i] < 0)
			return -err->code;
	}
	return 0;
}

static int open_all(const struct network_spec *spec, struct network_handles *h,
		    struct cj_error *err)
{
	if (spec->mode == NETWORK_PUBLIC && open_gateway(spec, h, err) < 0)
		return cj_wrap(err, "make the gateway");
	if (loopback_up(err) < 0)
		return -err->code;
	return open_listeners(spec, h, err);
}

int network_open(const struct network_spec *spec, struct network_handles *out, struct cj_error *err)
{
	network_handles_init(out);
	if (open_all(spec, out, err) == 0)
		return 0;
	network_handles_fini(out);
	return -err->code;
}

int network_allow_ping(unsigned gid, struct cj_error *err)
{
	char range[32];
	(void)snprintf(range, sizeof(range), "%u %u", gid, gid);
	return fd_put_file(AT_FDCWD, "/proc/sys/net/ipv4/ping_group_range", range, err);
}
