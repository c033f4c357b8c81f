/* SPDX-License-Identifier: Apache-2.0 */
/* Compares namespaces, then NFT_MSG_GETTABLE.  Acts. */
#include "netns/uplink/host_table_owner.h"

#include <netinet/in.h> /* before linux/: they agree in this order only */

#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <sys/socket.h>

#include "netns/nftables/nfnl.h"
#include "runtime/base/scope.h"

#ifndef SO_NETNS_COOKIE
#define SO_NETNS_COOKIE 71
#endif

#define ANSWER_BYTES 4096

static int refuse_socket(struct cj_error *err)
{
	return cj_reject_as(err, EPERM, "the holder's socket does not own the host's table");
}

static int cookie_of(int fd, uint64_t *out, struct cj_error *err)
{
	socklen_t size = sizeof(*out);
	if (getsockopt(fd, SOL_SOCKET, SO_NETNS_COOKIE, out, &size) < 0)
		return cj_fail(err, errno, "identify the network namespace of a socket");
	return 0;
}

/* A netlink port means something in one namespace and one protocol only. */
static int check_place(int rules_fd, int own_fd, struct cj_error *err)
{
	uint64_t theirs = 0, ours = 0;
	int domain = 0, protocol = 0;
	socklen_t size = sizeof(int);
	if (cookie_of(rules_fd, &theirs, err) < 0 || cookie_of(own_fd, &ours, err) < 0)
		return -err->code;
	if (getsockopt(rules_fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) < 0 ||
	    getsockopt(rules_fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &size) < 0)
		return cj_fail(err, errno, "identify the holder's socket");
	if (theirs != ours || domain != AF_NETLINK || protocol != NETLINK_NETFILTER)
		return refuse_socket(err);
	return 0;
}

static int ask_table(int own_fd, const char *name, struct cj_error *err)
{
	auto_nl_msg *request = nfnl_create(&(struct nfnl_head){ .subsystem = NFNL_SUBSYS_NFTABLES,
								.message = NFT_MSG_GETTABLE,
								.family = NFPROTO_INET });
	if (!request || nla_put_string(request, NFTA_TABLE_NAME, name) < 0)
		return cj_fail(err, ENOMEM, "look at the table '%s'", name);
	if (send(own_fd, nlmsg_hdr(request), nlmsg_hdr(request)->nlmsg_len, 0) < 0)
		return cj_fail(err, errno, "look at the table '%s'", name);
	return 0;
}

/* The kernel answers within send(2). */
static int receive_owner(int own_fd, const char *name, uint32_t *out, struct cj_error *err)
{
	_Alignas(struct nlmsghdr) char bytes[ANSWER_BYTES];
	const struct nlmsghdr *answer = (const struct nlmsghdr *)bytes;
	ssize_t size = recv(own_fd, bytes, sizeof(bytes), MSG_DONTWAIT);
	if (size < 0)
		return cj_fail(err, errno, "look at the table '%s'", name);
	if (!nfnl_is_message(answer, (int)size))
		return cj_fail(err, EBADMSG, "look at the table '%s'", name);
	if (answer->nlmsg_type == NLMSG_ERROR)
		return cj_fail(err, nfnl_error(answer), "look at the table '%s'", name);
	if (answer->nlmsg_type != (NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_NEWTABLE) ||
	    nlmsg_datalen(answer) < (int)sizeof(struct nfgenmsg))
		return cj_fail(err, EBADMSG, "look at the table '%s'", name);

	const struct nlattr *owner = nfnl_find(answer, NFTA_TABLE_OWNER);
	if (!owner || nla_len(owner) != sizeof(uint32_t))
		return refuse_socket(err);
	*out = ntohl(nla_get_u32(owner));
	return 0;
}

int host_table_check_owner(int rules_fd, const char *name, struct cj_error *err)
{
	struct sockaddr_nl port = { 0 };
	socklen_t size = sizeof(port);
	uint32_t owner = 0;
	auto_fd int own_fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER);
	if (own_fd < 0)
		return cj_fail(err, errno, "open a NETLINK_NETFILTER socket");
	if (check_place(rules_fd, own_fd, err) < 0 || ask_table(own_fd, name, err) < 0 ||
	    receive_owner(own_fd, name, &owner, err) < 0)
		return -err->code;
	if (getsockname(rules_fd, (struct sockaddr *)&port, &size) < 0)
		return cj_fail(err, errno, "getsockname of the holder's socket");
	return owner != 0 && port.nl_pid == owner ? 0 : refuse_socket(err);
}
