/* SPDX-License-Identifier: Apache-2.0 */
/* The filter of destinations, and the handling of refused packets.  Pure. */
#include "netns/firewall/firewall_rules.h"

#include "netns/firewall/firewall_allowed.h"
#include "netns/address/ranges.h"

#define DATA_TYPE_MARK 19

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

static void add_jump_to_report(struct nft_batch *b, const char *chain)
{
	nft_rule_begin(b, chain);
	nft_verdict(b, NFT_JUMP, "report");
	nft_rule_end(b);
}

static void add_answers(struct nft_batch *b, const char *chain)
{
	nft_rule_begin(b, chain);
	firewall_match_protocol(b, IPPROTO_TCP);
	nft_reject_tcp(b);
	nft_rule_end(b);

	nft_rule_begin(b, chain);
	nft_reject_admin(b);
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
	add_jump_to_report(b, "refuse");
	add_answers(b, "refuse");

	nft_add_chain(b, "discard");
	add_jump_to_report(b, "discard");
	nft_rule_begin(b, "discard");
	nft_verdict(b, NF_DROP, NULL);
	nft_rule_end(b);
}

/* --- sets of destinations --- */

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

/* False: `ip` is the last address. */
static bool next_ip(struct ip *ip)
{
	for (size_t i = ip_size(ip); i > 0; i--) {
		if (++ip->bytes[i - 1] != 0)
			return true;
	}
	return false;
}

/* An interval is two elements: its first address, and the first address after it. */
static void add_interval(struct nft_batch *b, const struct ip *first, const struct ip *last,
			 const uint32_t *data)
{
	struct ip after = *last;

	add_element_of(b, first, 0, data);
	if (next_ip(&after))
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

/* --- the filter of destinations --- */

static void refuse_host(struct nft_batch *b, const struct firewall_family *f)
{
	nft_rule_begin(b, "filter");
	firewall_match_family(b, f);
	firewall_load_destination(b, f);
	nft_match_set(b, f->host);
	firewall_end_refused(b, "refuse", NET_HOST);
	nft_rule_end(b);
}

void firewall_refuse_closed(struct nft_batch *b, const char *chain, const struct firewall_family *f)
{
	nft_rule_begin(b, chain);
	firewall_match_family(b, f);
	firewall_load_destination(b, f);
	nft_lookup_map(b, f->closed, NFT_REG32_00);
	nft_set_mark(b, NFT_REG32_00);
	nft_verdict(b, NFT_GOTO, "refuse");
	nft_rule_end(b);
}

static void end_open(struct nft_batch *b, bool is_list)
{
	if (is_list)
		firewall_end_refused(b, "refuse", NET_NOT_ALLOWED);
	else
		nft_verdict(b, NFT_RETURN, NULL);
	nft_rule_end(b);
}

/* The families that the jail has no addresses of: no rule above checked their destinations. */
static void refuse_families_from(struct nft_batch *b, size_t first)
{
	for (size_t i = first; i < FIREWALL_FAMILIES; i++) {
		nft_rule_begin(b, "filter");
		firewall_match_family(b, &firewall_families[i]);
		firewall_end_refused(b, "refuse", NET_PROTOCOL);
		nft_rule_end(b);
	}
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
	nft_rule_end(b);
}

void firewall_add_rules(struct nft_batch *b, const struct firewall_spec *spec)
{
	const size_t families = firewall_families_of(&spec->addresses.jail6);

	nft_add_chain(b, "filter");
	for (size_t i = 0; i < families; i++) {
		const struct firewall_family *f = &firewall_families[i];
		add_host_set(b, f, spec);
		firewall_add_closed_map(b, f);
		if (spec->is_list)
			firewall_add_allowed_set(b, f, spec->allowed, spec->nallowed);

		refuse_host(b, f);
		if (spec->is_list)
			firewall_add_allowed_rules(b, "filter", f, spec->allowed, spec->nallowed);
		firewall_refuse_closed(b, "filter", f);
	}
	refuse_families_from(b, families);
	filter_protocol(b, families, spec->is_list);
}
