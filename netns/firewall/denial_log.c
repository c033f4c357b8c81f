/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the kernel's log of denied packets; by libmnl, in the gateway's program alone.
 *
 * The attributes come from the kernel, but one of them has a packet of the payload.  Its length
 * fields are untrusted and checked.  A field that does not fit ends the parsing; the fields before
 * it are kept.
 */
#include "netns/firewall/denials.h"

#include <arpa/inet.h>
#include <libmnl/libmnl.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_log.h>
#include <netinet/in.h>
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

static void read_port(const struct view *packet, size_t offset, struct denial *out)
{
	if (denial_has_port(out->protocol))
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

/* The first attribute of each of these types. */
struct logged {
	struct view mark, packet;
};

static int take_attribute(const struct nlattr *attribute, void *data)
{
	struct logged *logged = data;
	const uint16_t type = mnl_attr_get_type(attribute);
	struct view *view = type == NFULA_MARK      ? &logged->mark
			    : type == NFULA_PAYLOAD ? &logged->packet
						    : NULL;
	if (view && !view->bytes)
		*view = (struct view){ mnl_attr_get_payload(attribute),
				       mnl_attr_get_payload_len(attribute) };
	return MNL_CB_OK;
}

bool denial_parse(const uint8_t *bytes, size_t size, struct denial *out)
{
	struct logged logged = { 0 };
	struct denial found = { .count = 1 };

	(void)mnl_attr_parse_payload(bytes, size, take_attribute, &logged);
	if (!read_class(&logged.mark, &found.class) || !read_packet(&logged.packet, &found))
		return false;
	*out = found;
	return true;
}

/* One request: bind the group, copy the head of each packet, send each message at once. */
static struct nlmsghdr *put_request(void *buffer)
{
	const struct nfulnl_msg_config_cmd command = { .command = NFULNL_CFG_CMD_BIND };
	const struct nfulnl_msg_config_mode mode = { .copy_range = htonl(FIREWALL_LOG_BYTES),
						     .copy_mode = NFULNL_COPY_PACKET };
	struct nlmsghdr *request = mnl_nlmsg_put_header(buffer);
	request->nlmsg_type = NFNL_SUBSYS_ULOG << 8 | NFULNL_MSG_CONFIG;
	request->nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
	request->nlmsg_seq = CONFIG_SEQ;
	struct nfgenmsg *head = mnl_nlmsg_put_extra_header(request, sizeof(*head));
	*head = (struct nfgenmsg){ .nfgen_family = AF_UNSPEC,
				   .version = NFNETLINK_V0,
				   .res_id = htons(FIREWALL_LOG_GROUP) };
	mnl_attr_put(request, NFULA_CFG_CMD, sizeof(command), &command);
	mnl_attr_put(request, NFULA_CFG_MODE, sizeof(mode), &mode);
	mnl_attr_put_u32(request, NFULA_CFG_NLBUFSIZ, htonl(SKB_BYTES));
	mnl_attr_put_u32(request, NFULA_CFG_QTHRESH, htonl(1));
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
		if (mnl_nlmsg_ok(message, (int)size) && message->nlmsg_type == NLMSG_ERROR &&
		    message->nlmsg_seq == CONFIG_SEQ)
			return -nfnl_error(message);
	}
	return -ENODATA;
}

int denials_listen(int log_fd, struct cj_error *err)
{
	_Alignas(struct nlmsghdr) uint8_t buffer[256] = { 0 };
	const struct nlmsghdr *request = put_request(buffer);

	/* Messages may be lost when a jail is faster than this reader; that is no error.  Without
	 * NETLINK_NO_ENOBUFS the kernel would stop logging after the first loss until the queue is
	 * empty. */
	const int bytes = WAITING_MAX, on = 1;
	if (setsockopt(log_fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes)) < 0)
		return cj_fail(err, errno, "limit the queue of the log of denied packets");
	if (setsockopt(log_fd, SOL_NETLINK, NETLINK_NO_ENOBUFS, &on, sizeof(on)) < 0)
		return cj_fail(err, errno, "let the log of denied packets lose messages");
	int rc = nfnl_send(log_fd, request, request->nlmsg_len);
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

struct reading {
	struct denials *denials;
	void (*each)(void *context, const struct denial *d);
	void *context;
};

/* A message that is none of a packet of ours is ignored: the counters have them all. */
static int take_message(const struct nlmsghdr *message, void *data)
{
	const struct reading *r = data;
	const size_t size = mnl_nlmsg_get_payload_len(message), head = sizeof(struct nfgenmsg);
	struct denial one;
	/* libmnl takes a length above INT_MAX for a small one */
	if (message->nlmsg_type != (NFNL_SUBSYS_ULOG << 8 | NFULNL_MSG_PACKET) || size < head ||
	    size > MESSAGE_MAX ||
	    !denial_parse(mnl_nlmsg_get_payload_offset(message, head), size - head, &one))
		return MNL_CB_OK;
	const struct denial *row = denials_add(r->denials, &one);
	if (row && r->each)
		r->each(r->context, row);
	return MNL_CB_OK;
}

int denials_receive(int log_fd, struct denials *d,
		    void (*each)(void *context, const struct denial *d), void *context,
		    struct cj_error *err)
{
	_Alignas(struct nlmsghdr) uint8_t buffer[MESSAGE_MAX];
	struct reading reading = { d, each, context };
	int count = 0;

	for (; count < DENIALS_AT_ONCE; count++) {
		ssize_t size = receive(log_fd, buffer, sizeof(buffer));
		if (size < 0)
			return cj_fail(err, (int)-size, "read the log of denied packets");
		if (size == 0)
			break;
		/* it ends at a malformed message, which the counters have */
		(void)mnl_cb_run(buffer, (size_t)size, 0, 0, take_message, &reading);
	}
	return count;
}
