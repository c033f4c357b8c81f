/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_denials - any bytes as an nflog message, and as the packet in one.
 *
 * Asserted: what is taken has a class, an address that stands in the packet, a count of 1, and a
 * port only where the protocol has one; a packet that is there is taken when it has a whole IP
 * header; the table of it adds up.
 */
#include <assert.h>
#include <linux/netfilter/nfnetlink_log.h>
#include <linux/netlink.h>

#include "netns/firewall/denials.h"

#define PACKET_MAX 4096

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static bool has_ports(uint8_t protocol)
{
	static const char *const names[] = { "tcp", "udp", "sctp", "dccp", "udplite" };
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(denial_protocol_name(protocol), names[i]) == 0)
			return true;
	return false;
}

static void check_table(const struct denial *d)
{
	static struct denials table;
	uint64_t counts[NET_CLASS_COUNT] = { 0 };

	table = (struct denials){ 0 };
	const struct denial *row = denials_add(&table, d);
	assert(row && row->count == 1 && denials_add(&table, d) == row && row->count == 2);
	counts[d->class] = 5;
	denials_settle(&table, counts);
	assert(table.count == 2 && table.items[1].count == 3);
}

static void check_denial(const struct denial *d)
{
	static const uint8_t zeros[16];
	assert(d->class < NET_CLASS_COUNT && d->count == 1);
	assert(d->address.family == 4 || d->address.family == 6);
	if (d->address.family == 4)
		assert(memcmp(d->address.bytes + 4, zeros, 12) == 0);
	if (d->port != 0)
		assert(has_ports(d->protocol));
	check_table(d);
}

/* A copy of exactly that size: a read past it is seen. */
static bool parse(const uint8_t *bytes, size_t size, struct denial *out)
{
	uint8_t *exact = malloc(size ? size : 1);
	assert(exact);
	if (size > 0)
		memcpy(exact, bytes, size);
	bool is_taken = denial_parse(exact, size, out);
	free(exact);
	return is_taken;
}

static size_t put(uint8_t *out, uint16_t type, const void *bytes, size_t size)
{
	const struct nlattr head = { (uint16_t)(sizeof(head) + size), type };
	memcpy(out, &head, sizeof(head));
	if (size > 0)
		memcpy(out + sizeof(head), bytes, size);
	return NLA_ALIGN(head.nla_len);
}

static bool is_whole_header(const uint8_t *packet, size_t size)
{
	if (size >= 20 && packet[0] >> 4 == 4)
		return (packet[0] & 15) >= 5;
	return size >= 40 && packet[0] >> 4 == 6;
}

static void check_packet(const uint8_t *packet, size_t size)
{
	static uint8_t message[PACKET_MAX + 64];
	const uint8_t mark[] = { 0, 0, 0, NET_METADATA + 1 };
	struct denial d = { .count = 4711 };
	size_t used = put(message, NFULA_MARK, mark, sizeof(mark));

	size = size < PACKET_MAX ? size : PACKET_MAX;
	used += put(message + used, NFULA_PAYLOAD, packet, size);
	bool is_taken = parse(message, used, &d);
	assert(is_taken == is_whole_header(packet, size));
	if (!is_taken) {
		assert(d.count == 4711);
		return;
	}
	check_denial(&d);
	assert(d.class == NET_METADATA);
	if (d.address.family == 4)
		assert(memcmp(d.address.bytes, packet + 16, 4) == 0);
	else
		assert(memcmp(d.address.bytes, packet + 24, 16) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct denial d = { 0 };

	if (parse(bytes, size, &d))
		check_denial(&d);
	check_packet(bytes, size);
	return 0;
}
