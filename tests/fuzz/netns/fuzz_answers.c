/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_answers - any datagrams as what netlink answers to our requests.
 *
 * The first byte: which request (rules to nf_tables, its counters, other people's chains, links
 * through rtnetlink, the log of refused packets).  Then each datagram: a byte for who sent it, 16
 * bits of size, the bytes.  Clocks stand still, so that sequence numbers can be met.
 *
 * Asserted: rules are loaded, links are set and a log is heard only if the kernel acknowledged it;
 * a failure has a positive code and a text; counters are as they were where reading them failed;
 * nothing is waited for without end.
 */
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <poll.h>
#include <sys/socket.h>
#include <time.h>

#include "netns/firewall/denials.h"
#include "netns/firewall/firewall.h"
#include "netns/firewall/host_firewall.h"
#include "netns/nftables/nft.h"
#include "netns/rtnetlink/rtmsg.h"
#include "tests/fuzz/bytes.h"

/* WRAP: sendto recvmsg getsockname setsockopt poll socket clock_gettime */

#define PORT 7 /* ours */

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* --- the kernel's side ---------------------------------------------------------------- */

static struct bytes answers;

ssize_t __wrap_sendto(int fd, const void *bytes, size_t size, int flags, const struct sockaddr *to,
		      socklen_t to_size);
ssize_t __wrap_sendto(int fd, const void *bytes, size_t size, int flags, const struct sockaddr *to,
		      socklen_t to_size)
{
	(void)fd, (void)bytes, (void)flags, (void)to, (void)to_size;
	return (ssize_t)size;
}

/* The next datagram; its whole size, which may be more than there is room for. */
static ssize_t answer(void *out, size_t room, bool *out_ours)
{
	if (answers.left == 0) {
		errno = EAGAIN;
		return -1;
	}
	*out_ours = bytes_u8(&answers) != 255;
	struct bytes one = bytes_take(&answers, bytes_u16(&answers));
	if (one.left > 0)
		memcpy(out, one.at, one.left < room ? one.left : room);
	return (ssize_t)one.left;
}

ssize_t __wrap_recvmsg(int fd, struct msghdr *msg, int flags);
ssize_t __wrap_recvmsg(int fd, struct msghdr *msg, int flags)
{
	(void)fd, (void)flags;
	bool is_ours = false;
	ssize_t size = answer(msg->msg_iov->iov_base, msg->msg_iov->iov_len, &is_ours);
	((struct sockaddr_nl *)msg->msg_name)->nl_pid = is_ours ? 0 : 4711;
	msg->msg_flags = size > (ssize_t)msg->msg_iov->iov_len ? MSG_TRUNC : 0;
	return size > (ssize_t)msg->msg_iov->iov_len ? (ssize_t)msg->msg_iov->iov_len : size;
}

int __wrap_getsockname(int fd, struct sockaddr *out, socklen_t *size);
int __wrap_getsockname(int fd, struct sockaddr *out, socklen_t *size)
{
	(void)fd;
	assert(*size == sizeof(struct sockaddr_nl));
	((struct sockaddr_nl *)out)->nl_pid = PORT;
	return 0;
}

int __wrap_setsockopt(int fd, int level, int option, const void *value, socklen_t size);
int __wrap_setsockopt(int fd, int level, int option, const void *value, socklen_t size)
{
	(void)fd, (void)level, (void)option, (void)value, (void)size;
	return 0;
}

int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout);
int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout)
{
	assert(count == 1 && timeout >= 0);
	fds->revents = answers.left > 0 ? POLLIN : 0;
	return answers.left > 0;
}

int __wrap_socket(int domain, int type, int protocol);
int __wrap_socket(int domain, int type, int protocol)
{
	assert(domain == AF_NETLINK && type & SOCK_CLOEXEC);
	(void)protocol;
	return dup(STDIN_FILENO);
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *out);
int __wrap_clock_gettime(clockid_t clock, struct timespec *out)
{
	(void)clock;
	*out = (struct timespec){ 0 };
	return 0;
}

/* --- what is asserted ------------------------------------------------------------------ */

/* Is there a message of this kind and number in what the kernel said, with `error` behind it? */
static bool was_said(struct bytes all, uint16_t type, uint32_t seq, const int32_t *error)
{
	while (all.left > 0) {
		(void)bytes_u8(&all);
		struct bytes one = bytes_take(&all, bytes_u16(&all));
		struct nlmsghdr head;
		while (one.left >= sizeof(head)) {
			memcpy(&head, one.at, sizeof(head));
			if (head.nlmsg_len < sizeof(head) || head.nlmsg_len > one.left)
				break;
			if (head.nlmsg_type == type && head.nlmsg_seq == seq &&
			    (!error || (head.nlmsg_len >= sizeof(head) + sizeof(struct nlmsgerr) &&
					memcmp(one.at + sizeof(head), error, sizeof(*error)) == 0)))
				return true;
			(void)bytes_take(&one, NLMSG_ALIGN(head.nlmsg_len));
		}
	}
	return false;
}

static bool was_acknowledged(struct bytes all, uint32_t seq)
{
	return was_said(all, NLMSG_ERROR, seq, &(int32_t){ 0 });
}

static void check_error(int rc, const struct cj_error *err)
{
	assert(rc < 0 && err->code == -rc && err->msg[0] != '\0');
}

static void check_load(void)
{
	auto_nft_batch struct nft_batch batch = { 0 };
	struct nft_batch *b = &batch;
	struct bytes all = answers;
	struct cj_error err = { 0 };
	nft_batch_begin(b, "fuzz");
	nft_add_table(b, 0);
	nft_add_chain(b, "chain");
	nft_rule_begin(b, "chain");
	nft_verdict(b, NF_ACCEPT, NULL);
	nft_rule_end(b);
	nft_batch_end(b);
	int rc = firewall_load(STDIN_FILENO, b, &err);
	if (rc < 0)
		check_error(rc, &err);
	else
		assert(was_acknowledged(all, b->last_seq - 1));
}

static void check_counters(void)
{
	uint64_t counts[NET_CLASS_COUNT];
	struct cj_error err = { 0 };
	memset(counts, 0x5c, sizeof(counts));
	uint64_t before = counts[0];
	int rc = firewall_read_table(STDIN_FILENO, FIREWALL_TABLE, counts, &err);
	if (rc == 0)
		return;
	check_error(rc, &err);
	for (size_t i = 0; i < NET_CLASS_COUNT; i++)
		assert(counts[i] == before);
}

static void check_foreign(void)
{
	struct host_firewall_chain found = { 0 };
	struct cj_error err = { 0 };
	int rc = host_firewall_look(&found, &err);
	assert(rc <= 1);
	if (rc < 0)
		check_error(rc, &err);
	if (rc == 1)
		assert(host_firewall_family_name(found.family) && found.table[0] && found.chain[0]);
}

static void check_links(bool asks)
{
	static struct rtbatch b;
	const struct rtmsg_link link = { .name = "eth0", .index = 2 };
	struct rtbatch_link told = { .index = -1 };
	struct bytes all = answers;
	struct cj_error err = { 0 };
	b = (struct rtbatch){ .size = 0 };
	rtmsg_up(&b, &link, 1500);
	rtmsg_delete(&b, &link);
	rtbatch_tolerate(&b, ENODEV);
	if (asks)
		rtmsg_get_link(&b, &link);
	int rc = rtbatch_send(STDIN_FILENO, &b, asks ? &told : NULL, &err);
	if (rc < 0) {
		check_error(rc, &err);
		assert(told.index == -1);
		return;
	}
	uint32_t last = (uint32_t)b.count - 1;
	if (asks)
		assert(was_said(all, RTM_NEWLINK, last, NULL));
	else
		assert(was_acknowledged(all, last) ||
		       was_said(all, NLMSG_ERROR, last, &(int32_t){ -ENODEV }));
}

static void count_denial(void *context, const struct denial *d)
{
	assert(d->class < NET_CLASS_COUNT && d->count > 0);
	++*(unsigned *)context;
}

static void check_log(void)
{
	static struct denials denials;
	struct cj_error err = { 0 };
	struct bytes all = answers;
	unsigned told = 0;
	uint64_t sum = 0;
	int fd = dup(STDIN_FILENO);
	int rc = denials_listen(fd, &err);
	close(fd);
	if (rc < 0)
		check_error(rc, &err);
	else
		assert(was_acknowledged(all, 1));
	denials = (struct denials){ .count = 0 };
	rc = denials_receive(STDIN_FILENO, &denials, count_denial, &told, &err);
	assert(rc >= 0 && denials.count <= told);
	for (size_t i = 0; i < denials.count; i++)
		sum += denials.items[i].count;
	assert(sum == told);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	answers = (struct bytes){ bytes, size };
	switch (bytes_u8(&answers) % 6) {
	case 0:
		check_load();
		break;
	case 1:
		check_counters();
		break;
	case 2:
		check_foreign();
		break;
	case 3:
	case 4:
		check_links(bytes[0] % 6 == 4);
		break;
	default:
		check_log();
	}
	return 0;
}
