/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lists in the filter of destinations: what is allowed or denied, and what names have opened.
 *
 * The elements of the set are (address, port) rectangles, which must not overlap.  So an endpoint
 * within an earlier one is left out, and one that overlaps an earlier one gets rules of its own.
 * An echo request has no port: it is looked up with port 0, which only endpoints of all ports
 * include.
 */
#include "netns/firewall/firewall_parts.h"

#include <assert.h>

#include "netns/address/names.h"

#define DATA_TYPE_PORT 13 /* nft(8)'s numbers */
#define DATA_TYPE_BITS 6  /* of each field of a concatenation */

#define PORT_BYTES  ((uint32_t)sizeof(uint16_t))
#define KEY_MAX     (16 + 4)
#define ELEMENT_MAX (4 + 2 * (4 + 4 + KEY_MAX)) /* attributes: list item, two keys */
static_assert(ENDPOINTS_MAX * ELEMENT_MAX <= UINT16_MAX, "the elements fit into one attribute");

enum place { PLACE_SET, PLACE_RULES, PLACE_NONE };

static bool do_meet(const struct endpoint *a, const struct endpoint *b)
{
	return a->first.family == b->first.family && ip_compare(&a->last, &b->first) >= 0 &&
	       ip_compare(&b->last, &a->first) >= 0 && a->first_port <= b->last_port &&
	       b->first_port <= a->last_port;
}

static enum place place_of(const struct endpoint *list, size_t at)
{
	enum place place = PLACE_SET;

	for (size_t i = 0; i < at; i++) {
		if (endpoint_covers(&list[i], &list[at]))
			return PLACE_NONE;
		if (do_meet(&list[at], &list[i]))
			place = PLACE_RULES;
	}
	return place;
}

static void make_key(const struct ip *ip, uint16_t port, uint8_t out[static KEY_MAX])
{
	const uint16_t big = htons(port);

	memset(out, 0, KEY_MAX);
	memcpy(out, ip->bytes, ip_size(ip));
	memcpy(out + ip_size(ip), &big, sizeof(big));
}

void firewall_add_list_set(struct nft_batch *b, const struct firewall_family *f, const char *set,
			   const struct endpoint *list, size_t count)
{
	nft_add_set(b,
		    &(struct nft_set){ .name = set,
				       .flags = NFT_SET_INTERVAL | NFT_SET_CONCAT,
				       .key_type = f->key_type << DATA_TYPE_BITS | DATA_TYPE_PORT,
				       .key_bytes = f->ip_bytes + 4,
				       .fields = { (uint8_t)f->ip_bytes, PORT_BYTES } });
	nft_elements_begin(b, set);
	for (size_t i = 0; i < count; i++) {
		if (list[i].first.family == f->number && place_of(list, i) == PLACE_SET) {
			uint8_t first[KEY_MAX], last[KEY_MAX];
			make_key(&list[i].first, list[i].first_port, first);
			make_key(&list[i].last, list[i].last_port, last);
			nft_element(b, &(struct nft_element){
					   .key = first,
					   .key_end = last,
					   .key_bytes = (uint32_t)ip_size(&list[i].first) + 4 });
		}
	}
	nft_elements_end(b);
}

/* Two sets of addresses that names have opened: for all ports, and for one. */
void firewall_add_named_sets(struct nft_batch *b, const struct firewall_family *f)
{
	nft_add_set(b, &(struct nft_set){ .name = f->named,
					  .key_type = f->key_type,
					  .key_bytes = f->ip_bytes,
					  .size = NAMES_OPEN_MAX,
					  .timeout_ms = NAMES_OPEN_S * 1000 });
	nft_add_set(b,
		    &(struct nft_set){ .name = f->named_ports,
				       .flags = NFT_SET_CONCAT,
				       .key_type = f->key_type << DATA_TYPE_BITS | DATA_TYPE_PORT,
				       .key_bytes = f->ip_bytes + 4,
				       .fields = { (uint8_t)f->ip_bytes, PORT_BYTES },
				       .size = NAMES_OPEN_MAX,
				       .timeout_ms = NAMES_OPEN_S * 1000 });
}

/* Of one set: a message has room for so many. */
#define NAMED_AT_ONCE 512

static void put_named(struct nft_batch *b, const struct firewall_family *f, bool has_port,
		      const struct endpoint *named, size_t n,
		      void (*begin)(struct nft_batch *b, const char *set))
{
	const char *set = has_port ? f->named_ports : f->named;
	unsigned count = 0;
	uint8_t key[KEY_MAX];

	for (size_t i = 0; i < n; i++) {
		const struct endpoint *e = &named[i];
		if (e->first.family != f->number || (e->first_port == e->last_port) != has_port)
			continue;
		if (count++ % NAMED_AT_ONCE == 0) {
			if (count > 1)
				nft_elements_end(b);
			begin(b, set);
		}
		make_key(&e->first, e->first_port, key);
		nft_element(b, &(struct nft_element){
				   .key = key, .key_bytes = f->ip_bytes + (has_port ? 4 : 0) });
	}
	if (count > 0)
		nft_elements_end(b);
}

static void put_all_named(struct nft_batch *b, const struct endpoint *named, size_t n,
			  void (*begin)(struct nft_batch *b, const char *set))
{
	for (size_t i = 0; i < FIREWALL_FAMILIES; i++) {
		put_named(b, &firewall_families[i], false, named, n, begin);
		put_named(b, &firewall_families[i], true, named, n, begin);
	}
}

void firewall_add_named(struct nft_batch *b, const struct endpoint *named, size_t n)
{
	put_all_named(b, named, n, nft_elements_begin);
}

void firewall_delete_named(struct nft_batch *b, const struct endpoint *named, size_t n)
{
	put_all_named(b, named, n, nft_elements_delete);
}

struct firewall_rule {
	const char *chain;
	const struct firewall_family *family;
	uint8_t protocol;
	bool is_denial; /* else it returns for what it matches */
};

static void begin_rule(struct nft_batch *b, const struct firewall_rule *r)
{
	nft_rule_begin(b, r->chain);
	firewall_match_family(b, r->family);
	firewall_match_protocol(b, r->protocol);
	if (r->protocol == r->family->icmp)
		firewall_match_echo(b, r->family);
}

static void load_port(struct nft_batch *b, const struct firewall_rule *r, uint32_t reg)
{
	static const uint16_t none = 0;

	if (r->protocol == r->family->icmp)
		nft_load_value(b, &none, sizeof(none), reg);
	else
		nft_load_payload(b, NFT_PAYLOAD_TRANSPORT_HEADER, 2, PORT_BYTES, reg);
}

static void end_rule(struct nft_batch *b, const struct firewall_rule *r)
{
	if (r->is_denial)
		firewall_end_refused(b, "refuse", NET_NOT_ALLOWED);
	else
		nft_rule_end_with(b, NFT_RETURN, NULL);
}

static void add_rule_of_endpoint(struct nft_batch *b, const struct firewall_rule *r,
				 const struct endpoint *e)
{
	const uint16_t first = htons(e->first_port), last = htons(e->last_port);

	begin_rule(b, r);
	firewall_load_destination(b, r->family);
	nft_match_range(b, e->first.bytes, e->last.bytes, r->family->ip_bytes);
	load_port(b, r, NFT_REG32_00);
	nft_match_range(b, &first, &last, PORT_BYTES);
	end_rule(b, r);
}

static void add_rules(struct nft_batch *b, const struct firewall_rule *how,
		      const struct endpoint *list, size_t count)
{
	const struct firewall_family *f = how->family;
	const uint8_t protocols[] = { IPPROTO_TCP, IPPROTO_UDP, f->icmp };

	for (size_t p = 0; p < sizeof(protocols); p++) {
		struct firewall_rule rule = *how;

		rule.protocol = protocols[p];
		begin_rule(b, &rule);
		firewall_load_destination(b, rule.family);
		load_port(b, &rule, NFT_REG32_00 + rule.family->ip_bytes / 4);
		nft_match_set(b, rule.is_denial ? rule.family->denied : rule.family->allowed);
		end_rule(b, &rule);
		for (size_t i = 0; i < count; i++) {
			if (list[i].first.family == f->number && place_of(list, i) == PLACE_RULES)
				add_rule_of_endpoint(b, &rule, &list[i]);
		}
	}
}

void firewall_add_allowed_rules(struct nft_batch *b, const char *chain,
				const struct firewall_family *f, const struct endpoint *allowed,
				size_t count)
{
	add_rules(b, &(struct firewall_rule){ .chain = chain, .family = f }, allowed, count);
}

void firewall_add_denied_rules(struct nft_batch *b, const char *chain,
			       const struct firewall_family *f, const struct endpoint *denied,
			       size_t count)
{
	const struct firewall_rule rule = { .chain = chain, .family = f, .is_denial = true };
	add_rules(b, &rule, denied, count);
}

/* The ClientHello of QUIC, which is TLS over UDP, is not read. */
static void match_unchecked_ports(struct nft_batch *b)
{
	for (size_t i = 0; i < FIREWALL_CHECKED_PORTS; i++) {
		const uint16_t port = htons(firewall_checked_ports[i]);
		nft_match_payload(b, NFT_PAYLOAD_TRANSPORT_HEADER, 2, NFT_CMP_NEQ, &port,
				  sizeof(port));
	}
}

/* A packet to an address that a name has opened passes, and keeps it open. */
void firewall_add_named_rules(struct nft_batch *b, const char *chain,
			      const struct firewall_family *f, bool is_checked)
{
	const uint8_t protocols[] = { IPPROTO_TCP, IPPROTO_UDP, f->icmp };

	for (size_t p = 0; p < sizeof(protocols); p++) {
		const struct firewall_rule rule = { chain, f, protocols[p] };
		const bool is_udp = is_checked && protocols[p] == IPPROTO_UDP;
		const int sets = protocols[p] == f->icmp ? 1 : 2;

		for (int i = 0; i < sets; i++) {
			const bool has_port = i == 1;
			const char *set = has_port ? f->named_ports : f->named;
			begin_rule(b, &rule);
			if (is_udp)
				match_unchecked_ports(b);
			firewall_load_destination(b, f);
			if (has_port)
				load_port(b, &rule, NFT_REG32_00 + f->ip_bytes / 4);
			nft_match_set(b, set);
			nft_refresh(b, set);
			nft_rule_end_with(b, NFT_RETURN, NULL);
		}
	}
}
