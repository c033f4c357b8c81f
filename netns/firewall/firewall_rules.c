/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules that several places share: the handling of refused packets, and the filter of
 * destinations.
 */
#include "netns/firewall/firewall_parts.h"

#include <assert.h>
#include <net/if.h>

#define DATA_TYPE_IPV4 7 /* nft(8)'s numbers */
#define DATA_TYPE_IPV6 8
#define DATA_TYPE_MARK 19

/* Offsets: RFC 791 3.1, RFC 8200 3.  Types: RFC 792, RFC 4443 4.1. */
/* clang-format off */
const struct firewall_family firewall_families[FIREWALL_FAMILIES] = {
	{ 4, NFPROTO_IPV4, IPPROTO_ICMP,   8,   4,  12, 16, DATA_TYPE_IPV4, "host4", "closed4", "allowed4", "denied4", "named4", "ports4" },
	{ 6, NFPROTO_IPV6, IPPROTO_ICMPV6, 128, 16, 8,  24, DATA_TYPE_IPV6, "host6", "closed6", "allowed6", "denied6", "named6", "ports6" },
};
/* clang-format on */

size_t firewall_families_of(const struct ip *ip6)
{
	return ip6->family == 6 ? 2 : 1;
}

void firewall_match_family(struct nft_batch *b, const struct firewall_family *f)
{
	nft_match_meta(b, NFT_META_NFPROTO, NFT_CMP_EQ, &f->nfproto, sizeof(f->nfproto));
}

void firewall_match_source(struct nft_batch *b, const struct ip *ip)
{
	firewall_match_source_network(b, ip, firewall_families[ip->family == 6].ip_bytes);
}

void firewall_match_source_network(struct nft_batch *b, const struct ip *ip, uint32_t bytes)
{
	const struct firewall_family *f = &firewall_families[ip->family == 6];

	firewall_match_family(b, f);
	nft_match_payload(b, NFT_PAYLOAD_NETWORK_HEADER, f->source_offset, NFT_CMP_EQ, ip->bytes,
			  bytes);
}

void firewall_match_destination_network(struct nft_batch *b, const struct ip *ip, uint32_t bytes)
{
	const struct firewall_family *f = &firewall_families[ip->family == 6];

	firewall_match_family(b, f);
	nft_match_payload(b, NFT_PAYLOAD_NETWORK_HEADER, f->destination_offset, NFT_CMP_EQ,
			  ip->bytes, bytes);
}

void firewall_match_protocol(struct nft_batch *b, uint8_t protocol)
{
	nft_match_meta(b, NFT_META_L4PROTO, NFT_CMP_EQ, &protocol, sizeof(protocol));
}

void firewall_match_echo(struct nft_batch *b, const struct firewall_family *f)
{
	nft_match_payload(b, NFT_PAYLOAD_TRANSPORT_HEADER, 0, NFT_CMP_EQ, &f->echo_request,
			  sizeof(f->echo_request));
}

void firewall_match_name(struct nft_batch *b, enum nft_meta_keys key, enum nft_cmp_ops op,
			 const char *link)
{
	char name[IFNAMSIZ] = { 0 };
	(void)snprintf(name, sizeof(name), "%s", link);
	nft_match_meta(b, key, op, name, sizeof(name));
}

void firewall_match_name_prefix(struct nft_batch *b, enum nft_meta_keys key, enum nft_cmp_ops op,
				const char *prefix)
{
	nft_match_meta(b, key, op, prefix, (uint32_t)strlen(prefix));
}

void firewall_load_destination(struct nft_batch *b, const struct firewall_family *f)
{
	nft_load_payload(b, NFT_PAYLOAD_NETWORK_HEADER, f->destination_offset, f->ip_bytes,
			 NFT_REG32_00);
}

void firewall_end_refused(struct nft_batch *b, const char *chain, enum net_class class)
{
	const uint32_t mark = (uint32_t) class + 1;

	nft_load_value(b, &mark, sizeof(mark), NFT_REG32_00);
	nft_set_mark(b, NFT_REG32_00);
	nft_rule_end_with(b, NFT_GOTO, chain);
}

void firewall_add_states(struct nft_batch *b, const char *chain, uint32_t states, int verdict)
{
	nft_rule_begin(b, chain);
	nft_match_ct_state(b, states);
	nft_rule_end_with(b, verdict, NULL);
}

void firewall_add_dns(struct nft_batch *b, const char *chain, const struct ip *server,
		      bool is_tracked)
{
	static const uint8_t protocols[] = { IPPROTO_UDP, IPPROTO_TCP };
	const uint16_t port = htons(53);

	for (size_t i = 0; i < sizeof(protocols); i++) {
		nft_rule_begin(b, chain);
		firewall_match_destination_network(b, server,
						   firewall_families[server->family == 6].ip_bytes);
		firewall_match_protocol(b, protocols[i]);
		nft_match_payload(b, NFT_PAYLOAD_TRANSPORT_HEADER, 2, NFT_CMP_EQ, &port,
				  sizeof(port));
		if (is_tracked)
			nft_verdict(b, NF_ACCEPT, NULL);
		else
			nft_notrack(b);
		nft_rule_end(b);
	}
}

void firewall_accept_loopback(struct nft_batch *b, const char *chain, enum nft_meta_keys key)
{
	const uint32_t index = 1; /* of `lo` in every namespace: linux/net.h LOOPBACK_IFINDEX */

	nft_rule_begin(b, chain);
	nft_match_meta(b, key, NFT_CMP_EQ, &index, sizeof(index));
	nft_rule_end_with(b, NF_ACCEPT, NULL);
}

void firewall_drop_kernel_icmp(struct nft_batch *b, const struct firewall_family *f)
{
	nft_rule_begin(b, "output");
	firewall_match_family(b, f);
	firewall_match_protocol(b, f->icmp);
	nft_match_payload(b, NFT_PAYLOAD_TRANSPORT_HEADER, 0, NFT_CMP_NEQ, &f->echo_request,
			  sizeof(f->echo_request));
	nft_rule_end_with(b, NF_DROP, NULL);
}

/* More than HOSTADDRS_MAX and the gateway's own; the kernel clears a table of 512 for it. */
#define HOST_SET_SIZE 300

static void add_counters(struct nft_batch *b)
{
	static const struct nft_set set = { .name = FIREWALL_COUNTERS,
					    .key_type = DATA_TYPE_MARK,
					    .key_bytes = sizeof(uint32_t),
					    .has_counters = true,
					    .size = NET_CLASS_COUNT };
	nft_add_set(b, &set);

	nft_elements_begin(b, FIREWALL_COUNTERS);
	for (uint32_t mark = 1; mark <= NET_CLASS_COUNT; mark++)
		nft_element(b, &(struct nft_element){ .key = &mark, .key_bytes = sizeof(mark) });
	nft_elements_end(b);
}

static void add_report(struct nft_batch *b)
{
	nft_add_chain(b, "report");

	nft_rule_begin(b, "report");
	nft_load_meta(b, NFT_META_MARK, NFT_REG32_00);
	nft_match_set(b, FIREWALL_COUNTERS); /* the lookup counts */
	nft_rule_end(b);

	nft_rule_begin(b, "report");
	nft_match_rate(b, FIREWALL_LOG_SECOND, FIREWALL_LOG_SECOND, false);
	nft_log(b, &(struct nft_log){ .group = FIREWALL_LOG_GROUP,
				      .packet_bytes = FIREWALL_LOG_BYTES,
				      .prefix = FIREWALL_LOG_PREFIX });
	nft_rule_end(b);
}

static void add_answers(struct nft_batch *b, const char *chain)
{
	nft_rule_begin(b, chain);
	firewall_match_protocol(b, IPPROTO_TCP);
	nft_reject(b, NFT_REJECT_TCP_RST, 0);
	nft_rule_end(b);

	nft_rule_begin(b, chain);
	nft_reject(b, NFT_REJECT_ICMPX_UNREACH, NFT_REJECT_ICMPX_ADMIN_PROHIBITED);
	nft_rule_end(b);
}

void firewall_add_answers(struct nft_batch *b, const char *chain)
{
	nft_add_chain(b, chain);
	add_answers(b, chain);
}

void firewall_add_refusal(struct nft_batch *b)
{
	add_counters(b);
	add_report(b);

	nft_add_chain(b, "refuse");
	nft_add_verdict(b, "refuse", NFT_JUMP, "report");
	add_answers(b, "refuse");

	nft_add_chain(b, "discard");
	nft_add_verdict(b, "discard", NFT_JUMP, "report");
	nft_add_verdict(b, "discard", NF_DROP, NULL);

	nft_add_chain(b, "filter");
}

static void add_element_of(struct nft_batch *b, const struct ip *ip, uint32_t flags,
			   const uint32_t *data)
{
	nft_element(b, &(struct nft_element){ .key = ip->bytes,
					      .key_bytes = (uint32_t)ip_size(ip),
					      .data = data,
					      .flags = flags });
}

static void add_host_set(struct nft_batch *b, const struct firewall_family *f,
			 const struct firewall_spec *spec)
{
	const struct ip *gateway = f->number == 6 ? &spec->addresses.gateway6
						  : &spec->addresses.gateway4;

	nft_add_set(b, &(struct nft_set){ .name = f->host,
					  .key_type = f->key_type,
					  .key_bytes = f->ip_bytes,
					  .size = HOST_SET_SIZE });
	nft_elements_begin(b, f->host);
	add_element_of(b, gateway, 0, NULL);
	for (size_t i = 0; i < spec->nhost; i++) {
		if (spec->host[i].family == f->number)
			add_element_of(b, &spec->host[i], 0, NULL);
	}
	nft_elements_end(b);
}

/* An interval is two elements: its first address, and the first address after it. */
static void add_interval(struct nft_batch *b, const struct ip *first, const struct ip *last,
			 const uint32_t *data)
{
	const struct ip after = ip_step(*last, 1);

	add_element_of(b, first, 0, data);
	if (after.family != 0)
		add_element_of(b, &after, NFT_SET_ELEM_INTERVAL_END, NULL);
}

void firewall_add_closed_map(struct nft_batch *b, const struct firewall_family *f)
{
	struct range_interval intervals[RANGE_INTERVALS_MAX];
	size_t count = ranges_flatten(f->number, intervals);

	nft_add_set(b, &(struct nft_set){ .name = f->closed,
					  .flags = NFT_SET_INTERVAL,
					  .key_type = f->key_type,
					  .key_bytes = f->ip_bytes,
					  .has_data = true });
	nft_elements_begin(b, f->closed);
	for (size_t i = 0; i < count; i++) {
		const uint32_t mark = (uint32_t)intervals[i].class + 1;
		add_interval(b, &intervals[i].first, &intervals[i].last, &mark);
	}
	nft_elements_end(b);
}

void firewall_refuse_closed(struct nft_batch *b, const char *chain, const struct firewall_family *f)
{
	nft_rule_begin(b, chain);
	firewall_match_family(b, f);
	firewall_load_destination(b, f);
	nft_lookup_map(b, f->closed, NFT_REG32_00);
	nft_set_mark(b, NFT_REG32_00);
	nft_rule_end_with(b, NFT_GOTO, "refuse");
}

static void end_open(struct nft_batch *b, bool is_list)
{
	if (is_list)
		firewall_end_refused(b, "refuse", NET_NOT_ALLOWED);
	else
		nft_rule_end_with(b, NFT_RETURN, NULL);
}

/* The remaining packets go to open destinations, or, with an allow list, to ones that are not on
 * it. */
static void filter_protocol(struct nft_batch *b, size_t families, bool is_list)
{
	static const uint8_t protocols[] = { IPPROTO_TCP, IPPROTO_UDP };

	for (size_t i = 0; i < sizeof(protocols); i++) {
		nft_rule_begin(b, "filter");
		firewall_match_protocol(b, protocols[i]);
		end_open(b, is_list);
	}
	for (size_t i = 0; i < families; i++) {
		const struct firewall_family *f = &firewall_families[i];
		nft_rule_begin(b, "filter");
		firewall_match_family(b, f);
		firewall_match_protocol(b, f->icmp);
		firewall_match_echo(b, f);
		end_open(b, is_list);
	}
	nft_rule_begin(b, "filter");
	firewall_end_refused(b, "refuse", NET_PROTOCOL);
}

void firewall_add_rules(struct nft_batch *b, const struct firewall_spec *spec)
{
	const size_t families = firewall_families_of(&spec->addresses.jail6);

	for (size_t i = 0; i < families; i++) {
		const struct firewall_family *f = &firewall_families[i];
		add_host_set(b, f, spec);
		firewall_add_closed_map(b, f);
		if (spec->ndenied > 0)
			firewall_add_list_set(b, f, f->denied, spec->denied, spec->ndenied);
		if (spec->is_list)
			firewall_add_list_set(b, f, f->allowed, spec->allowed, spec->nallowed);
		if (spec->has_names)
			firewall_add_named_sets(b, f);

		nft_rule_begin(b, "filter");
		firewall_match_family(b, f);
		firewall_load_destination(b, f);
		nft_match_set(b, f->host);
		firewall_end_refused(b, "refuse", NET_HOST);
		if (spec->ndenied > 0) /* before what opens any of it */
			firewall_add_denied_rules(b, "filter", f, spec->denied, spec->ndenied);
		if (spec->is_list)
			firewall_add_allowed_rules(b, "filter", f, spec->allowed, spec->nallowed);
		firewall_refuse_closed(b, "filter", f);
		if (spec->has_names)
			firewall_add_named_rules(b, "filter", f, spec->checks_names);
	}
	/* The families that the jail has no addresses of: no rule above checked their
	 * destinations. */
	for (size_t i = families; i < FIREWALL_FAMILIES; i++) {
		nft_rule_begin(b, "filter");
		firewall_match_family(b, &firewall_families[i]);
		firewall_end_refused(b, "refuse", NET_PROTOCOL);
	}
	filter_protocol(b, families, spec->is_list);
	if (spec->has_names)
		firewall_add_named(b, spec->named, spec->nnamed);
}

void firewall_delete_rules(struct nft_batch *b, const struct firewall_spec *spec)
{
	nft_empty_chain(b, "filter");
	for (size_t i = 0; i < firewall_families_of(&spec->addresses.jail6); i++) {
		const struct firewall_family *f = &firewall_families[i];
		nft_delete_set(b, f->host);
		nft_delete_set(b, f->closed);
		if (spec->ndenied > 0)
			nft_delete_set(b, f->denied);
		if (spec->is_list)
			nft_delete_set(b, f->allowed);
		if (spec->has_names) {
			nft_delete_set(b, f->named);
			nft_delete_set(b, f->named_ports);
		}
	}
}
