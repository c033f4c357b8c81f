/* SPDX-License-Identifier: Apache-2.0 */
/* Parses answers of nf_tables about the chains and rules of this host.  Pure. */
#include "netns/firewall/host_firewall.h"

#include <netinet/in.h> /* before linux/: they agree in this order only */

#include <arpa/inet.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <string.h>

#include "netns/nftables/nfnl.h"

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
