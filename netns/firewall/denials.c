/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses the kernel's log of denied packets, and fills the table of them.
 *
 * The attributes come from the kernel, but one of them has a packet of the payload.  Its length
 * fields are untrusted and checked.  A field that does not fit ends the parsing; the fields before
 * it are kept.
 */
#include "netns/firewall/denials.h"

#include <arpa/inet.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_log.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "netns/firewall/firewall.h"
#include "netns/nftables/nfnl.h"
#include "runtime/base/files/fd.h"

#define MESSAGE_MAX 8192        /* one netlink message with its packet has a few hundred bytes */
#define WAITING_MAX (96u << 10) /* SO_RCVBUF: room for about a second of logging */
#define SKB_BYTES   512         /* the kernel's buffer for one message; its default is a page */
#define CONFIG_SEQ  1
#define SKIPPED_MAX 256 /* messages that may stand before the answer to our configuration */

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
		bool has_no_ports = out->protocol == IPPROTO_FRAGMENT &&
				    (view_u16(packet, offset + 2) & IPV6_FRAGMENT) != 0;
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

/* One request: bind the group, copy the head of each packet, send each message at once.  NULL: no
 * memory. */
static struct nl_msg *make_request(void)
{
	const struct nfulnl_msg_config_cmd command = { .command = NFULNL_CFG_CMD_BIND };
	const struct nfulnl_msg_config_mode mode = { .copy_range = htonl(FIREWALL_LOG_BYTES),
						     .copy_mode = NFULNL_COPY_PACKET };
	struct nl_msg *request = nfnl_create(&(struct nfnl_head){ .subsystem = NFNL_SUBSYS_ULOG,
								  .message = NFULNL_MSG_CONFIG,
								  .flags = NLM_F_ACK,
								  .seq = CONFIG_SEQ,
								  .family = AF_UNSPEC,
								  .resource = FIREWALL_LOG_GROUP });
	if (request && (nla_put(request, NFULA_CFG_CMD, sizeof(command), &command) < 0 ||
			nla_put(request, NFULA_CFG_MODE, sizeof(mode), &mode) < 0 ||
			nla_put_u32(request, NFULA_CFG_NLBUFSIZ, htonl(SKB_BYTES)) < 0 ||
			nla_put_u32(request, NFULA_CFG_QTHRESH, htonl(1)) < 0))
		nfnl_free(&request);
	return request;
}

/* As nfnl_receive(), but 0 when no message waits, or when messages were lost: the counters have
 * them. */
static ssize_t receive(int fd, void *buffer, size_t size)
{
	ssize_t got = nfnl_receive(fd, buffer, size, MSG_DONTWAIT);
	return got == -EAGAIN || got == -ENOBUFS ? 0 : got;
}

/* The kernel answers within nfnl_send(), so the answer is in the socket.  Messages about refused
 * packets may precede it. */
static int read_answer(int fd)
{
	_Alignas(struct nlmsghdr) uint8_t buffer[MESSAGE_MAX];

	for (unsigned i = 0; i < SKIPPED_MAX; i++) {
		ssize_t size = receive(fd, buffer, sizeof(buffer));
		if (size <= 0)
			return size < 0 ? (int)size : -ENODATA;
		const struct nlmsghdr *message = (const void *)buffer;
		if (nfnl_is_message(message, (int)size) && message->nlmsg_type == NLMSG_ERROR &&
		    message->nlmsg_seq == CONFIG_SEQ)
			return -nfnl_error(message);
	}
	return -ENODATA;
}

int denials_listen(int log_fd, struct cj_error *err)
{
	auto_nl_msg *request = make_request();

	if (!request)
		return cj_fail(err, ENOMEM, "ask for the log of denied packets");
	/* Messages may be lost when a jail is faster than this reader; that is no error.  Without
	 * NETLINK_NO_ENOBUFS the kernel would stop logging after the first loss until the queue is
	 * empty. */
	const int bytes = WAITING_MAX, on = 1;
	if (setsockopt(log_fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes)) < 0)
		return cj_fail(err, errno, "limit the queue of the log of denied packets");
	if (setsockopt(log_fd, SOL_NETLINK, NETLINK_NO_ENOBUFS, &on, sizeof(on)) < 0)
		return cj_fail(err, errno, "let the log of denied packets lose messages");
	int rc = nfnl_send(log_fd, nlmsg_hdr(request), nlmsg_hdr(request)->nlmsg_len);
	if (rc == 0)
		rc = read_answer(log_fd);
	if (rc < 0) {
		(void)!cj_fail(err, -rc, "bind the log of denied packets, group %d",
			       FIREWALL_LOG_GROUP);
		if (rc == -EINVAL || rc == -EOPNOTSUPP)
			cj_hint(err, "this kernel lacks nfnetlink_log: modprobe nfnetlink_log");
		return rc;
	}
	fd_set_nonblocking(log_fd);
	return 0;
}

/* False: no message about a packet of ours. */
static bool read_denial(const struct nlmsghdr *message, struct denial *out)
{
	size_t size = (size_t)nlmsg_datalen(message);
	const uint8_t *payload = nlmsg_data(message);
	return message->nlmsg_type == (NFNL_SUBSYS_ULOG << 8 | NFULNL_MSG_PACKET) &&
	       size >= sizeof(struct nfgenmsg) &&
	       denial_parse(payload + sizeof(struct nfgenmsg), size - sizeof(struct nfgenmsg), out);
}

int denials_receive(int log_fd, struct denials *d,
		    void (*each)(void *context, const struct denial *d), void *context,
		    struct cj_error *err)
{
	_Alignas(struct nlmsghdr) uint8_t buffer[MESSAGE_MAX];
	int count = 0;

	for (; count < DENIALS_AT_ONCE; count++) {
		ssize_t size = receive(log_fd, buffer, sizeof(buffer));
		if (size < 0)
			return cj_fail(err, (int)-size, "read the log of denied packets");
		if (size == 0)
			break;
		/* a malformed message is ignored: the counters have its packet */
		int left = (int)size;
		const struct nlmsghdr *message = (const void *)buffer;
		for (; nfnl_is_message(message, left); message = nfnl_next(message, &left)) {
			struct denial one;
			const struct denial *row = read_denial(message, &one) ? denials_add(d, &one)
									      : NULL;
			if (row && each)
				each(context, row);
		}
	}
	return count;
}
