/* SPDX-License-Identifier: Apache-2.0 */
/* Lists chains and rules of nf_tables, each list through a socket of its own, because an answer may
 * be left partly unread.  Acts. */
#include "netns/firewall/host_firewall.h"

#include <netinet/in.h> /* before linux/: they agree in this order only */

#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <sys/socket.h>

#include "netns/nftables/nfnl.h"
#include "runtime/base/scope.h"

#define ANSWER_BYTES 16384
#define ANSWERS_MAX  16 /* rules after these are not read */

static int ask(uint8_t message, uint8_t family, const char *table, struct cj_error *err)
{
	auto_nl_msg *request = nfnl_create(&(struct nfnl_head){ .subsystem = NFNL_SUBSYS_NFTABLES,
								.message = message,
								.flags = NLM_F_DUMP,
								.family = family });
	if (!request || (table && nla_put_string(request, NFTA_RULE_TABLE, table) < 0))
		return cj_fail(err, ENOMEM, "look at the nftables rules of this host");

	auto_fd int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER);
	if (fd < 0)
		return cj_fail(err, errno, "open a NETLINK_NETFILTER socket");
	if (send(fd, nlmsg_hdr(request), nlmsg_hdr(request)->nlmsg_len, 0) < 0)
		return cj_fail(err, errno, "look at the nftables rules of this host");
	return take_fd(&fd);
}

static int receive(int fd, void *bytes, size_t *out_size, struct cj_error *err)
{
	ssize_t size;
	do
		size = recv(fd, bytes, ANSWER_BYTES, 0);
	while (size < 0 && errno == EINTR);
	if (size < 0)
		return cj_fail(err, errno, "look at the nftables rules of this host");

	const struct nlmsghdr *header = bytes;
	if (nfnl_is_message(header, (int)size) && header->nlmsg_type == NLMSG_ERROR &&
	    nfnl_error(header) != 0)
		return cj_fail(err, nfnl_error(header), "look at the nftables rules of this host");
	*out_size = (size_t)size;
	return 0;
}

static int list_chains(struct host_firewall_chains *out, struct cj_error *err)
{
	_Alignas(4) char bytes[ANSWER_BYTES];
	auto_fd int fd = ask(NFT_MSG_GETCHAIN, NFPROTO_UNSPEC, NULL, err);
	if (fd < 0)
		return fd;

	enum host_firewall_read got = HOST_FIREWALL_MORE;
	for (int i = 0; got == HOST_FIREWALL_MORE && i < ANSWERS_MAX; i++) {
		size_t size = 0;
		int rc = receive(fd, bytes, &size, err);
		if (rc < 0)
			return rc;
		got = host_firewall_read_chains(out, bytes, size);
	}
	return 0;
}

/* The end of a list is a short message of its own, with nothing else in it. */
static bool is_end(const void *bytes, size_t size)
{
	const struct nlmsghdr *header = bytes;
	return size < sizeof(*header) || header->nlmsg_type == NLMSG_DONE;
}

/* A failure counts as "no": then there is an unneeded warning. */
static bool table_names_us(const struct host_firewall_chain *chain)
{
	_Alignas(4) char bytes[ANSWER_BYTES];
	struct cj_error ignored;
	auto_fd int fd = ask(NFT_MSG_GETRULE, chain->family, chain->table, &ignored);

	for (int i = 0; fd >= 0 && i < ANSWERS_MAX; i++) {
		size_t size = 0;
		if (receive(fd, bytes, &size, &ignored) < 0 || is_end(bytes, size))
			return false;
		if (host_firewall_names_us(bytes, size))
			return true;
	}
	return false;
}

int host_firewall_look(struct host_firewall_chain *out, struct cj_error *err)
{
	struct host_firewall_chains chains = { .count = 0 };
	int rc = list_chains(&chains, err);
	if (rc < 0)
		return rc;
	for (size_t i = 0; i < chains.count; i++) {
		if (!table_names_us(&chains.items[i])) {
			*out = chains.items[i];
			return 1;
		}
	}
	return 0;
}
