/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Receives the kernel's log of denied packets and fills the table of them.  Acts on one netlink
 * socket; the table is pure.
 */
#include "netns/firewall/denials.h"

#include <arpa/inet.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_log.h>
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

/* --- the table -------------------------------------------------------------- */

static bool is_same(const struct denial *a, const struct denial *b)
{
	return a->class == b->class && a->protocol == b->protocol && a->port == b->port &&
	       a->is_shared == b->is_shared && ip_equal(&a->address, &b->address);
}

static struct denial *find_row(struct denials *d, const struct denial *one)
{
	for (size_t i = 0; i < d->count; i++) {
		if (is_same(&d->items[i], one))
			return &d->items[i];
	}
	return NULL;
}

/* NULL: the table is full. */
static struct denial *row_of(struct denials *d, const struct denial *one)
{
	struct denial *row = find_row(d, one);

	if (!row && d->count < DENIALS_MAX) {
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
		struct denial *row = one.address.family != 0 ? row_of(into, &one) : NULL;
		if (!row)
			row = remainder_row(into, one.class, is_shared);
		row->count += one.count;
		into->counted[one.class] += one.count;
	}
}

/* --- the socket ------------------------------------------------------------- */

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

/*
 * Reads the next message of the kernel; messages of other senders are dropped.  Returns its size;
 * 0 when none waits, or when messages were lost (the counters have them); or -errno.
 */
static ssize_t receive(int fd, void *buffer, size_t size)
{
	for (unsigned i = 0; i < SKIPPED_MAX; i++) {
		struct sockaddr_nl from = { 0 };
		socklen_t from_size = sizeof(from);
		ssize_t got =
		    recvfrom(fd, buffer, size, MSG_DONTWAIT, (struct sockaddr *)&from, &from_size);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return errno == EAGAIN || errno == ENOBUFS ? 0 : -errno;
		if (from_size == sizeof(from) && from.nl_pid == 0)
			return got;
	}
	return 0;
}

/* The kernel answers within sendto(2), so the answer is in the socket.  Messages about refused
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

/*
 * Messages may be lost when a jail is faster than this reader; that is no error.  Without
 * NETLINK_NO_ENOBUFS the kernel would stop logging after the first loss until the queue is empty.
 */
static int bound_queue(int fd, struct cj_error *err)
{
	const int bytes = WAITING_MAX, on = 1;

	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes)) < 0)
		return cj_fail(err, errno, "limit the queue of the log of denied packets");
	if (setsockopt(fd, SOL_NETLINK, NETLINK_NO_ENOBUFS, &on, sizeof(on)) < 0)
		return cj_fail(err, errno, "let the log of denied packets lose messages");
	return 0;
}

static int fail_to_bind(int code, struct cj_error *err)
{
	int rc = cj_fail(err, code, "bind the log of denied packets, group %d", FIREWALL_LOG_GROUP);
	if (code == EINVAL || code == EOPNOTSUPP)
		cj_hint(err, "this kernel lacks nfnetlink_log: modprobe nfnetlink_log");
	return rc;
}

int denials_listen(int log_fd, struct cj_error *err)
{
	auto_nl_msg *request = make_request();
	const struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };

	if (!request)
		return cj_fail(err, ENOMEM, "ask for the log of denied packets");
	if (bound_queue(log_fd, err) < 0)
		return -err->code;
	if (sendto(log_fd, nlmsg_hdr(request), nlmsg_hdr(request)->nlmsg_len, 0,
		   (const struct sockaddr *)&kernel, sizeof(kernel)) < 0)
		return fail_to_bind(errno, err);
	int rc = read_answer(log_fd);
	if (rc < 0)
		return fail_to_bind(-rc, err);
	fd_set_nonblocking(log_fd);
	return 0;
}

struct receiver {
	struct denials *denials;
	void (*each)(void *context, const struct denial *d);
	void *context;
};

static void receive_message(const struct nlmsghdr *message, const struct receiver *r)
{
	size_t size = (size_t)nlmsg_datalen(message);
	const uint8_t *payload = nlmsg_data(message);
	struct denial one;

	if (message->nlmsg_type != (NFNL_SUBSYS_ULOG << 8 | NFULNL_MSG_PACKET) ||
	    size < sizeof(struct nfgenmsg) ||
	    !denial_parse(payload + sizeof(struct nfgenmsg), size - sizeof(struct nfgenmsg), &one))
		return;
	const struct denial *row = denials_add(r->denials, &one);
	if (row && r->each)
		r->each(r->context, row);
}

int denials_receive(int log_fd, struct denials *d,
		    void (*each)(void *context, const struct denial *d), void *context,
		    struct cj_error *err)
{
	_Alignas(struct nlmsghdr) uint8_t buffer[MESSAGE_MAX];
	const struct receiver receiver = { d, each, context };
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
		for (; nfnl_is_message(message, left); message = nfnl_next(message, &left))
			receive_message(message, &receiver);
	}
	return count;
}
