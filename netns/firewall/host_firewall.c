/* SPDX-License-Identifier: Apache-2.0 */
/* Lists chains and rules of nf_tables, each list through a socket of its own, because an answer may
 * be left partly unread. */
#include "netns/firewall/host_firewall.h"

#include <netinet/in.h> /* before linux/: they agree in this order only */

#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>

#include "netns/nftables/nfnl.h"
#include "runtime/base/scope.h"

#define ANSWER_BYTES 16384
#define ANSWERS_MAX  16 /* rules after these are not read */

const char *host_firewall_family_name(uint8_t family)
{
	return family == NFPROTO_IPV4 ? "ip" : family == NFPROTO_IPV6 ? "ip6" : "inet";
}

/* False: no attribute of this type, or not `size` bytes of it. */
static bool read_u32(const struct nlattr *attr, uint32_t *out)
{
	if (nla_len(attr) != sizeof(uint32_t))
		return false;
	*out = ntohl(nla_get_u32(attr));
	return true;
}

static bool is_forward_hook(const struct nlattr *nest)
{
	const struct nlattr *attr = nla_find(nla_data(nest), nla_len(nest), NFTA_HOOK_HOOKNUM);
	uint32_t number = 0;
	return attr && read_u32(attr, &number) && number == NF_INET_FORWARD;
}

/* A name that does not fit is ignored: it could be neither shown nor looked up. */
static void read_name(const struct nlattr *attr, char out[static HOST_FIREWALL_NAME_MAX])
{
	size_t size = (size_t)nla_len(attr);
	const char *name = nla_data(attr);
	if (size > 0 && size <= HOST_FIREWALL_NAME_MAX && name[size - 1] == '\0')
		memcpy(out, name, size);
}

static bool drops_forwarded(const struct nlmsghdr *header, struct host_firewall_chain *out)
{
	const struct nfgenmsg *about = nlmsg_data(header);
	const struct nlattr *attr;
	int left;
	bool is_forward = false;
	uint32_t policy = NF_ACCEPT;

	*out = (struct host_firewall_chain){ .family = about->nfgen_family };
	nlmsg_for_each_attr(attr, header, sizeof(*about), left)
	{
		switch (nla_type(attr)) {
		case NFTA_CHAIN_TABLE:
			read_name(attr, out->table);
			break;
		case NFTA_CHAIN_NAME:
			read_name(attr, out->chain);
			break;
		case NFTA_CHAIN_HOOK:
			is_forward = is_forward_hook(attr);
			break;
		case NFTA_CHAIN_POLICY:
			(void)read_u32(attr, &policy); /* stays "accept" when malformed */
			break;
		}
	}
	return is_forward && policy == NF_DROP && out->table[0] != '\0' && out->chain[0] != '\0' &&
	       (out->family == NFPROTO_IPV4 || out->family == NFPROTO_IPV6 ||
		out->family == NFPROTO_INET);
}

enum host_firewall_read host_firewall_read_chains(struct host_firewall_chains *chains,
						  const void *bytes, size_t size)
{
	const uint16_t new_chain = NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_NEWCHAIN;
	int left = (int)size;
	const struct nlmsghdr *at = bytes;

	for (; nfnl_is_message(at, left); at = nfnl_next(at, &left)) {
		if (at->nlmsg_type == NLMSG_DONE)
			return HOST_FIREWALL_END;
		if (at->nlmsg_type == NLMSG_ERROR)
			return HOST_FIREWALL_BROKEN;
		if (at->nlmsg_type != new_chain || chains->count == HOST_FIREWALL_CHAINS_MAX ||
		    nlmsg_datalen(at) < (int)sizeof(struct nfgenmsg))
			continue;
		if (drops_forwarded(at, &chains->items[chains->count]))
			chains->count++;
	}
	return left > 0 ? HOST_FIREWALL_BROKEN : HOST_FIREWALL_MORE;
}

bool host_firewall_names_us(const void *bytes, size_t size)
{
	/* the kernel stores "cj*" or iptables' "cj+" as the first bytes of a name */
	struct {
		struct nlattr attr;
		char value[sizeof(HOST_FIREWALL_LINKS) - 1];
	} pattern = {
		.attr = { sizeof(pattern.attr) + sizeof(pattern.value), NFTA_DATA_VALUE },
	};
	memcpy(pattern.value, HOST_FIREWALL_LINKS, sizeof(pattern.value));
	return memmem(bytes, size, &pattern, sizeof(pattern.attr) + sizeof(pattern.value));
}

static int ask(uint8_t message, uint8_t family, const char *table, struct cj_error *err)
{
	auto_nl_msg *request = nfnl_create(&(struct nfnl_head){ .subsystem = NFNL_SUBSYS_NFTABLES,
								.message = message,
								.flags = NLM_F_DUMP,
								.family = family });
	if (!request || (table && nla_put_string(request, NFTA_RULE_TABLE, table) < 0))
		return cj_fail(err, ENOMEM, "look at the nftables rules of this host");

	auto_fd int fd = nfnl_socket(NETLINK_NETFILTER, err);
	if (fd < 0)
		return fd;
	int rc = nfnl_send(fd, nlmsg_hdr(request), nlmsg_hdr(request)->nlmsg_len);
	if (rc < 0)
		return cj_fail(err, -rc, "look at the nftables rules of this host");
	return take_fd(&fd);
}

static int receive(int fd, void *bytes, size_t *out_size, struct cj_error *err)
{
	ssize_t size = nfnl_receive(fd, bytes, ANSWER_BYTES, 0);
	int code = size < 0 ? (int)-size : 0;
	const struct nlmsghdr *header = bytes;
	if (code == 0 && nfnl_is_message(header, (int)size) && header->nlmsg_type == NLMSG_ERROR)
		code = nfnl_error(header);
	if (code != 0)
		return cj_fail(err, code, "look at the nftables rules of this host");
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
