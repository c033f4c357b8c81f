/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One nflog message to one denial.  Pure.
 *
 * The attributes come from the kernel, but one of them has a packet of the payload.  Its length
 * fields are untrusted and checked.  A field that does not fit ends the parsing; the fields before
 * it are kept.
 */
#include "netns/firewall/denials.h"

#include <arpa/inet.h>
#include <linux/netfilter/nfnetlink_log.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <string.h>

#define EXTENSION_HEADERS_MAX 8

#define IPV4_HEADER_MIN      20
#define IPV4_FRAGMENT        0x1fff /* of the 16 bits at 6: the offset; RFC 791, 3.1 */
#define IPV6_HEADER          40
#define IPV6_FRAGMENT        0xfff8 /* of the 16 bits at 2 of a fragment header; RFC 8200, 4.5 */
#define IPPROTO_HIP_HEADER   139
#define IPPROTO_SHIM6_HEADER 140

/* A part of the message.  Check view_has() before each read. */
struct view {
	const uint8_t *bytes;
	size_t size;
};

static bool view_has(const struct view *v, size_t offset, size_t size)
{
	return offset <= v->size && size <= v->size - offset;
}

/* 0 past the end. */
static uint16_t view_u16(const struct view *v, size_t offset)
{
	if (!view_has(v, offset, 2))
		return 0;
	return (uint16_t)(v->bytes[offset] << 8 | v->bytes[offset + 1]);
}

/* --- the packet ------------------------------------------------------------- */

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
	for (size_t i = 0; i < sizeof(protocols) / sizeof(protocols[0]); i++) {
		if (protocols[i].number == number)
			return &protocols[i];
	}
	return NULL;
}

const char *denial_protocol_name(uint8_t protocol)
{
	const struct protocol *found = find_protocol(protocol);
	return found ? found->name : "ip";
}

static void read_port(const struct view *packet, size_t offset, struct denial *out)
{
	const struct protocol *found = find_protocol(out->protocol);
	if (found && found->has_ports)
		out->port = view_u16(packet, offset + 2);
}

static bool read_ipv4(const struct view *packet, struct denial *out)
{
	if (!view_has(packet, 0, IPV4_HEADER_MIN))
		return false;
	size_t header = (packet->bytes[0] & 0x0fu) * 4;
	if (header < IPV4_HEADER_MIN)
		return false;

	out->protocol = packet->bytes[9];
	out->address.family = 4;
	memcpy(out->address.bytes, packet->bytes + 16, 4);
	if ((view_u16(packet, 6) & IPV4_FRAGMENT) == 0) /* a later fragment has no ports */
		read_port(packet, header, out);
	return true;
}

/* The length of the extension header at `offset`, 0 if it is none; RFC 8200, 4 and RFC 4302, 2.2.
 */
static size_t extension_size(const struct view *packet, size_t offset, uint8_t header)
{
	if (!view_has(packet, offset, 8))
		return 0;
	switch (header) {
	case IPPROTO_FRAGMENT:
		return 8;
	case IPPROTO_AH:
		return (packet->bytes[offset + 1] + 2u) * 4;
	case IPPROTO_HOPOPTS:
	case IPPROTO_ROUTING:
	case IPPROTO_DSTOPTS:
	case IPPROTO_MH:
	case IPPROTO_HIP_HEADER:
	case IPPROTO_SHIM6_HEADER:
		return (packet->bytes[offset + 1] + 1u) * 8;
	default:
		return 0;
	}
}

static bool is_later_fragment(const struct view *packet, size_t offset, uint8_t header)
{
	return header == IPPROTO_FRAGMENT && (view_u16(packet, offset + 2) & IPV6_FRAGMENT) != 0;
}

static bool read_ipv6(const struct view *packet, struct denial *out)
{
	if (!view_has(packet, 0, IPV6_HEADER))
		return false;
	out->protocol = packet->bytes[6];
	out->address.family = 6;
	memcpy(out->address.bytes, packet->bytes + 24, 16);

	size_t offset = IPV6_HEADER;
	for (unsigned i = 0; i < EXTENSION_HEADERS_MAX; i++) {
		size_t size = extension_size(packet, offset, out->protocol);
		if (size == 0)
			break;
		bool has_no_ports = is_later_fragment(packet, offset, out->protocol);
		out->protocol = packet->bytes[offset];
		if (has_no_ports)
			return true;
		offset += size;
	}
	read_port(packet, offset, out);
	return true;
}

static bool read_packet(const struct view *packet, struct denial *out)
{
	if (packet->size == 0)
		return false;
	switch (packet->bytes[0] >> 4) {
	case 4:
		return read_ipv4(packet, out);
	case 6:
		return read_ipv6(packet, out);
	default:
		return false;
	}
}

/* --- the message ------------------------------------------------------------ */

/* The attribute of that type; empty when there is none.  Stops at the first invalid length. */
static struct view find_attribute(const struct view *message, uint16_t type)
{
	struct nlattr head;

	for (size_t offset = 0; view_has(message, offset, sizeof(head));) {
		memcpy(&head, message->bytes + offset, sizeof(head));
		if (head.nla_len < sizeof(head) || !view_has(message, offset, head.nla_len))
			break;
		if ((head.nla_type & NLA_TYPE_MASK) == type)
			return (struct view){ message->bytes + offset + sizeof(head),
					      head.nla_len - sizeof(head) };
		offset += NLA_ALIGN(head.nla_len);
	}
	return (struct view){ 0 };
}

/* The rules set the packet's mark to class + 1. */
static bool read_class(const struct view *mark, enum net_class *out)
{
	uint32_t number = 0;

	if (mark->size != sizeof(number))
		return false;
	memcpy(&number, mark->bytes, sizeof(number));
	number = ntohl(number);
	if (number == 0 || number > NET_CLASS_COUNT)
		return false;
	*out = (enum net_class)(number - 1);
	return true;
}

bool denial_parse(const uint8_t *bytes, size_t size, struct denial *out)
{
	const struct view message = { bytes, size };
	const struct view mark = find_attribute(&message, NFULA_MARK);
	const struct view packet = find_attribute(&message, NFULA_PAYLOAD);
	struct denial found = { .count = 1 };

	if (!read_class(&mark, &found.class) || !read_packet(&packet, &found))
		return false;
	*out = found;
	return true;
}
