/* SPDX-License-Identifier: Apache-2.0 */
/* packets - datagrams as bytes, right in every checksum, and put on the jail's link past its rules.
 */
#pragma once

#include <arpa/inet.h>

#include "tests/netns/lab.h"

#define IPV4_SIZE 20
#define IPV6_SIZE 40
#define UDP_SIZE  8
#define DATA_SIZE 16

struct packet {
	uint8_t bytes[256];
	size_t size, head; /* what stands before UDP */
};

static inline uint16_t get16(const uint8_t *at)
{
	return (uint16_t)(at[0] << 8 | at[1]);
}

static inline void put16(uint8_t *at, unsigned value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
}

static inline uint16_t checksum(uint32_t sum, const uint8_t *bytes, size_t size)
{
	for (size_t i = 0; i + 1 < size; i += 2)
		sum += get16(bytes + i);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

/* RFC 768, RFC 8200 8.1: addresses, length and protocol are part of the sum. */
static inline void put_udp(struct packet *p, uint16_t port, const uint8_t *addresses,
			   size_t address_bytes)
{
	uint8_t *udp = p->bytes + p->head;
	const size_t size = UDP_SIZE + DATA_SIZE;

	put16(udp, 40000);
	put16(udp + 2, port);
	put16(udp + 4, (unsigned)size);
	const uint16_t partial =
	    (uint16_t)~checksum((uint32_t)size + IPPROTO_UDP, addresses, 2 * address_bytes);
	put16(udp + 6, checksum(partial, udp, size));
	p->size = p->head + size;
}

static inline void put_total4(struct packet *p)
{
	put16(p->bytes + 2, (unsigned)p->size);
	put16(p->bytes + 10, 0);
	put16(p->bytes + 10, checksum(0, p->bytes, p->head));
}

/* `options`: bytes of IP options, all "no operation". */
static inline struct packet udp4(const char *from, const char *to, uint16_t port, size_t options)
{
	struct packet p = { .head = IPV4_SIZE + options };
	const struct ip source = lab_address(from), destination = lab_address(to);

	p.bytes[0] = (uint8_t)(0x40 | p.head / 4);
	p.bytes[8] = 64;
	p.bytes[9] = IPPROTO_UDP;
	memcpy(p.bytes + 12, source.bytes, 4);
	memcpy(p.bytes + 16, destination.bytes, 4);
	memset(p.bytes + IPV4_SIZE, 1, options);
	put_udp(&p, port, p.bytes + 12, 4);
	put_total4(&p);
	return p;
}

/* `extension`: number of a header of eight bytes before UDP, or 0. */
static inline struct packet udp6(const char *from, const char *to, uint8_t extension)
{
	static const uint8_t padding[8] = { IPPROTO_UDP, 0, 1, 4 };
	static const uint8_t routing[8] = { IPPROTO_UDP, 0, 4, 0 };
	static const uint8_t fragment[8] = { IPPROTO_UDP };
	struct packet p = { .head = IPV6_SIZE };
	const struct ip source = lab_address(from), destination = lab_address(to);

	p.bytes[0] = 0x60;
	p.bytes[6] = IPPROTO_UDP;
	p.bytes[7] = 64;
	memcpy(p.bytes + 8, source.bytes, 16);
	memcpy(p.bytes + 24, destination.bytes, 16);
	if (extension != IPPROTO_UDP) {
		memcpy(p.bytes + p.head,
		       extension == IPPROTO_ROUTING    ? routing
		       : extension == IPPROTO_FRAGMENT ? fragment
						       : padding,
		       8);
		p.bytes[6] = extension;
		p.head += 8;
	}
	put_udp(&p, LAB_PORT, p.bytes + 8, 16);
	put16(p.bytes + 4, (unsigned)(p.size - IPV6_SIZE));
	return p;
}

/* An ICMPv6 message with nothing in it but its type. */
static inline struct packet icmp6(const char *to, uint8_t type)
{
	struct packet p = udp6("fdce:6a11::2", to, IPPROTO_UDP);
	uint8_t *icmp = p.bytes + p.head;
	const size_t size = p.size - p.head;

	memset(icmp, 0, size);
	icmp[0] = type;
	p.bytes[6] = IPPROTO_ICMPV6;
	const uint16_t partial =
	    (uint16_t)~checksum((uint32_t)size + IPPROTO_ICMPV6, p.bytes + 8, 2 * 16);
	put16(icmp + 2, checksum(partial, icmp, size));
	return p;
}

/* The part of a packet from byte `from` of what follows its IP header. */
static inline struct packet fragment4(const struct packet *whole, size_t from, size_t size,
				      bool is_last)
{
	struct packet p = *whole;

	memmove(p.bytes + p.head, whole->bytes + whole->head + from, size);
	p.size = p.head + size;
	put16(p.bytes + 4, 0x1234);
	put16(p.bytes + 6, (unsigned)(from / 8) | (is_last ? 0 : 0x2000));
	put_total4(&p);
	return p;
}

/* The same of an IPv6 packet: what follows the IPv6 header, whose first header is `next`. */
static inline struct packet fragment6(const struct packet *whole, size_t from, size_t size,
				      bool is_last)
{
	struct packet p = *whole;
	uint8_t *header = p.bytes + IPV6_SIZE;

	memmove(header + 8, whole->bytes + IPV6_SIZE + from, size);
	memset(header, 0, 8);
	header[0] = whole->bytes[6];
	p.bytes[6] = IPPROTO_FRAGMENT; /* RFC 8200 4.5 */
	put16(header + 2, (unsigned)from | !is_last);
	put16(header + 6, 0x1234);
	p.size = IPV6_SIZE + 8 + size;
	put16(p.bytes + 4, (unsigned)(8 + size));
	return p;
}

/* To the gateway. */
static inline void put_on_wire(const struct lab *lab, const struct packet *p)
{
	const uint16_t type = htons(p->bytes[0] >> 4 == 6 ? ETH_P_IPV6 : ETH_P_IP);
	auto_fd int fd = lab_socket(lab->jail, AF_PACKET, SOCK_DGRAM, 0);
	struct sockaddr_ll to = { .sll_family = AF_PACKET,
				  .sll_protocol = type,
				  .sll_ifindex = (int)if_nametoindex("eth0"),
				  .sll_halen = 6,
				  .sll_addr = { 2, 0, 0, 0, 0, 3 } };

	if (sendto(fd, p->bytes, p->size, 0, (void *)&to, sizeof(to)) < 0)
		lab_die("send a packet");
}
