/* SPDX-License-Identifier: Apache-2.0 */
#include "netns/firewall/denials.h"

#include <netinet/in.h>

static const struct protocol {
	uint8_t number;
	bool has_ports; /* the destination's port is the second 16 bits */
	const char *name;
} protocols[] = {
	{ IPPROTO_TCP, true, "tcp" },         { IPPROTO_UDP, true, "udp" },
	{ IPPROTO_ICMP, false, "icmp" },      { IPPROTO_ICMPV6, false, "icmpv6" },
	{ IPPROTO_SCTP, true, "sctp" },       { IPPROTO_DCCP, true, "dccp" },
	{ IPPROTO_UDPLITE, true, "udplite" }, { IPPROTO_IGMP, false, "igmp" },
	{ IPPROTO_IPIP, false, "ipip" },      { IPPROTO_IPV6, false, "ipv6" },
	{ IPPROTO_GRE, false, "gre" },        { IPPROTO_ESP, false, "esp" },
	{ IPPROTO_AH, false, "ah" },
};

static const struct protocol *find_protocol(uint8_t number)
{
	for (size_t i = 0; i < COUNT_OF(protocols); i++) {
		if (protocols[i].number == number)
			return &protocols[i];
	}
	return NULL;
}

bool denial_has_port(uint8_t protocol)
{
	const struct protocol *found = find_protocol(protocol);
	return found && found->has_ports;
}

const char *denial_protocol_name(uint8_t protocol)
{
	const struct protocol *found = find_protocol(protocol);
	return found ? found->name : "ip";
}

#define CUT_OFF "..."

struct denial denial_of_name(const char *name)
{
	struct denial d = { .class = NET_NAME, .count = 1 };
	const size_t size = strlen(name);
	if (size == 0)
		name = "."; /* the root of all names */
	const bool is_long = size >= sizeof(d.name);
	(void)snprintf(d.name, sizeof(d.name), "%s%s", is_long ? CUT_OFF : "",
		       is_long ? name + size - (sizeof(d.name) - sizeof(CUT_OFF)) : name);
	return d;
}

struct denial denial_of_nameless(const struct ip *address, uint16_t port)
{
	return (struct denial){ .class = NET_NAME,
				.protocol = IPPROTO_TCP,
				.address = *address,
				.port = port,
				.count = 1 };
}

bool denial_is_valid(const struct denial *d)
{
	if (d->class >= NET_CLASS_COUNT || !memchr(d->name, '\0', sizeof(d->name)))
		return false;
	if (d->class != NET_NAME || (d->name[0] == '\0' && d->protocol == IPPROTO_TCP))
		return d->name[0] == '\0' && (d->address.family == 4 || d->address.family == 6);
	return d->name[0] != '\0' && d->address.family == 0 && d->port == 0 && d->protocol == 0 &&
	       strspn(d->name, "abcdefghijklmnopqrstuvwxyz0123456789-_.") == strlen(d->name);
}

static bool is_same(const struct denial *a, const struct denial *b)
{
	return a->class == b->class && a->protocol == b->protocol && a->port == b->port &&
	       a->is_shared == b->is_shared && ip_equal(&a->address, &b->address) &&
	       strcmp(a->name, b->name) == 0;
}

static struct denial *find_row(struct denials *d, const struct denial *one)
{
	for (size_t i = 0; i < d->count; i++) {
		if (is_same(&d->items[i], one))
			return &d->items[i];
	}
	return NULL;
}

/* A program can make up names faster than addresses that the kernel logs. */
static bool has_room_for_name(const struct denials *d)
{
	size_t count = 0;
	for (size_t i = 0; i < d->count; i++)
		count += d->items[i].class == NET_NAME;
	return count < DENIALS_NAMES_MAX;
}

/* NULL: the table is full. */
static struct denial *row_of(struct denials *d, const struct denial *one)
{
	struct denial *row = find_row(d, one);

	if (!row && d->count < DENIALS_MAX && (one->class != NET_NAME || has_room_for_name(d))) {
		row = &d->items[d->count++];
		*row = *one;
		row->count = 0;
	}
	return row;
}

const struct denial *denials_add(struct denials *d, const struct denial *one)
{
	struct denial *row = row_of(d, one);

	if (!row)
		return NULL;
	row->count++;
	d->counted[one->class]++;
	return row;
}

/* There are at most two such rows for each class, and items[] has room for them. */
static struct denial *remainder_row(struct denials *d, enum net_class class, bool is_shared)
{
	const struct denial remainder = { .class = class, .is_shared = is_shared };
	struct denial *row = find_row(d, &remainder);

	if (!row) {
		row = &d->items[d->count++];
		*row = remainder;
	}
	return row;
}

void denials_settle(struct denials *d, const uint64_t counts[static NET_CLASS_COUNT])
{
	for (enum net_class i = 0; i < NET_CLASS_COUNT; i++) {
		if (counts[i] <= d->counted[i])
			continue;
		remainder_row(d, i, false)->count += counts[i] - d->counted[i];
		d->counted[i] = counts[i];
	}
}

void denials_merge(struct denials *into, const struct denials *from, bool is_shared)
{
	for (size_t i = 0; i < from->count; i++) {
		struct denial one = from->items[i];
		one.is_shared = is_shared;
		const bool is_told = one.address.family != 0 || one.name[0] != '\0';
		struct denial *row = is_told ? row_of(into, &one) : NULL;
		if (!row)
			row = remainder_row(into, one.class, is_shared);
		row->count += one.count;
		into->counted[one.class] += one.count;
	}
}
