/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes a jail's gateway: the network namespace between the jail and the host.
 *
 *	supervisor              opener
 *	clone3 ---------------> keeps the jail's socket and the link, dies with the supervisor
 *	                        joins the user namespace that owns the jail's network namespace
 *	                        creates the gateway, and opens sockets in it
 *	                        enters the jail's network namespace, and opens sockets in it
 *	<--- opened, sockets -- ends
 *	reaps the opener
 *
 * A process that has joined a user namespace can't leave it, so a process of its own does this.
 * The sockets keep the gateway alive, and the supervisor works through them: it never enters a
 * namespace of the jail.
 */
#include "netns/network_parts.h"

#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/sockios.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "netns/address/addresses.h"
#include "netns/nftables/nfnl.h"
#include "netns/uplink/uplink_parts.h"
#include "runtime/base/child.h"
#include "runtime/base/files/fd.h"
#include "runtime/base/scope.h"
#include "runtime/base/step.h"

#define OPEN_TIMEOUT_MS 10000

enum gateway_step { GATEWAY_OPENED, GATEWAY_STEPS };
static const char *const gateway_steps[GATEWAY_STEPS] = {
	[GATEWAY_OPENED] = "gateway is open",
};

/* With GATEWAY_OPENED. */
struct gateway_opened {
	uint32_t slots; /* network_handles_pack() */
	uint32_t has_ipv6;
};

/* From here: the opener. */

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

static int open_gateway(bool has_dns, struct network_handles *h, struct cj_error *err)
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

static int open_jail(int netns_fd, struct network_handles *h, struct cj_error *err)
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
	int rc = open_gateway(has_dns, h, err);
	return rc < 0 ? rc : open_jail(netns_fd, h, err);
}

static int opener_run(int jail_fd, bool has_dns, struct step_link *link, struct cj_error *err)
{
	int kept[] = { jail_fd, link->sock_fd }, fds[SLOT_COUNT];
	size_t count = 0;
	struct network_handles h;
	network_handles_init(&h);
	if (child_reset(kept, 2, err) < 0)
		return -err->code;
	link->sock_fd = kept[1];
	int netns_fd = uplink_join_owner(kept[0], err);
	/* After the join: a change of credentials clears the request. */
	if (netns_fd < 0 || child_die_with_parent(link->sock_fd, err) < 0 ||
	    open_gateway(has_dns, &h, err) < 0 || open_jail(netns_fd, &h, err) < 0)
		return -err->code;
	const struct gateway_opened opened = {
		.slots = network_handles_pack(&h, fds, &count),
		.has_ipv6 = h.has_ipv6,
	};
	return step_tell(link, GATEWAY_OPENED, &opened, sizeof(opened), fds, count, err);
}

static int await_opened(int sock_fd, struct network_handles *h, struct cj_error *err)
{
	const struct step_link link = { sock_fd, "the gateway's opener", gateway_steps };
	auto_step_msg struct step_msg msg = { 0 };
	struct gateway_opened opened;
	if (step_await(&link, GATEWAY_OPENED, &msg, err) < 0)
		return -err->code;
	if (msg.size != sizeof(opened))
		return cj_fail(err, EPROTO, "receive the gateway's sockets");
	memcpy(&opened, msg.data, sizeof(opened));
	network_handles_unpack(h, opened.slots & ((1u << SLOT_JAIL) - 1), msg.fds, msg.nfds);
	h->has_ipv6 = opened.has_ipv6;
	cj_close(&h->fds[SLOT_JAIL]);
	return 0;
}

int gateway_open(bool has_dns, struct network_handles *h, struct cj_error *err)
{
	int ends[2];
	auto_child int opener_fd = -1;
	if (step_pair(ends, OPEN_TIMEOUT_MS, err) < 0)
		return -err->code;

	pid_t pid = child_fork(&opener_fd);
	if (pid == 0) {
		struct step_link link = { ends[1], "the supervisor", gateway_steps };
		if (opener_run(h->fds[SLOT_JAIL], has_dns, &link, err) < 0)
			step_abort(&link, err);
		_exit(0); /* closes the rest */
	}
	int code = errno;
	cj_close(&ends[1]);
	int rc = pid < 0 ? cj_fail(err, code, "create the gateway's opener")
			 : await_opened(ends[0], h, err);
	cj_close(&ends[0]);
	return rc;
}
