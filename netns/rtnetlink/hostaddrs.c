/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The subscription and the lists.  Acts.
 *
 * Every list is read through a socket of its own, so that changes and list do not share a buffer.
 * Changes before the list began are in the list, later ones in the subscription.
 */
#include "netns/rtnetlink/hostaddrs.h"

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "runtime/base/scope.h"

#define LIST_TRIES 16 /* of a list that changes while it is read */
#define READS_MAX  64 /* at a time; the descriptor stays readable for the rest */

struct hostaddrs {
	int changes_fd;
	struct hostaddrs_set set;
	_Alignas(4) char bytes[HOSTADDRS_ANSWER_BYTES];
};

static int open_socket(uint32_t groups, int flags, struct cj_error *err)
{
	auto_fd int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | flags, NETLINK_ROUTE);
	if (fd < 0)
		return cj_fail(err, errno, "open a NETLINK_ROUTE socket");
	const struct sockaddr_nl name = { .nl_family = AF_NETLINK, .nl_groups = groups };
	if (groups != 0 && bind(fd, (const struct sockaddr *)&name, sizeof(name)) < 0)
		return cj_fail(err, errno, "subscribe to the addresses of this host");
	return take_fd(&fd);
}

int hostaddrs_ask(int route_fd)
{
	const struct {
		struct nlmsghdr header;
		struct ifaddrmsg about;
	} request = {
		.header = { .nlmsg_len = sizeof(request),
			    .nlmsg_type = RTM_GETADDR,
			    .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP },
		.about = { .ifa_family = AF_UNSPEC },
	};
	return send(route_fd, &request, sizeof(request), 0) < 0 ? -errno : 0;
}

static ssize_t receive(struct hostaddrs *h, int fd)
{
	ssize_t size;
	do
		size = recv(fd, h->bytes, sizeof(h->bytes), 0);
	while (size < 0 && errno == EINTR);
	return size;
}

static int fail_full(struct cj_error *err)
{
	int rc = cj_reject_as(err, E2BIG, "this host has more than %d addresses to close",
			      HOSTADDRS_MAX);
	(void)cj_hint(err, "run cejail in a network namespace with fewer interfaces, or with "
			   "--network none");
	return rc;
}

/* 0: complete; 1: the list changed meanwhile. */
static int list_once(struct hostaddrs *h, struct cj_error *err)
{
	auto_fd int fd = open_socket(0, 0, err);
	if (fd < 0)
		return fd;
	int rc = hostaddrs_ask(fd);
	if (rc < 0)
		return cj_fail(err, -rc, "ask for the addresses of this host");

	enum hostaddrs_read got = HOSTADDRS_MORE;
	while (got == HOSTADDRS_MORE) {
		ssize_t size = receive(h, fd);
		if (size < 0)
			return cj_fail(err, errno, "read the addresses of this host");
		got = hostaddrs_read(&h->set, h->bytes, (size_t)size);
	}
	if (got == HOSTADDRS_FULL)
		return fail_full(err);
	return got == HOSTADDRS_END ? 0 : 1;
}

static int list(struct hostaddrs *h, struct cj_error *err)
{
	for (int i = 0; i < LIST_TRIES; i++) {
		int rc = list_once(h, err);
		if (rc <= 0)
			return rc;
	}
	return cj_fail(err, EAGAIN, "read the addresses of this host: they keep changing");
}

int hostaddrs_open(struct hostaddrs **out, struct cj_error *err)
{
	struct hostaddrs *h = malloc(sizeof(*h));
	if (!h)
		return cj_fail(err, ENOMEM, "list the addresses of this host");
	h->set.count = 0;
	h->changes_fd = open_socket(RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR, SOCK_NONBLOCK, err);
	int rc = h->changes_fd < 0 ? h->changes_fd : list(h, err);
	if (rc < 0) {
		hostaddrs_close(&h);
		return rc;
	}
	*out = h;
	return 0;
}

void hostaddrs_close(struct hostaddrs **h)
{
	if (*h)
		cj_close(&(*h)->changes_fd);
	cj_free(h);
}

int hostaddrs_fd(const struct hostaddrs *h)
{
	return h->changes_fd;
}

const struct ip *hostaddrs_list(const struct hostaddrs *h, size_t *out_count)
{
	*out_count = h->set.count;
	return h->set.items;
}

/* 0: read; 1: messages were lost. */
static int receive_changes(struct hostaddrs *h, struct cj_error *err)
{
	bool has_gap = false;

	for (int i = 0; i < READS_MAX; i++) {
		ssize_t size = receive(h, h->changes_fd);
		if (size < 0 && errno == EAGAIN)
			break;
		if (size < 0 && errno != ENOBUFS)
			return cj_fail(err, errno, "read new addresses of this host");
		enum hostaddrs_read got =
		    size < 0 ? HOSTADDRS_GAP : hostaddrs_read(&h->set, h->bytes, (size_t)size);
		if (got == HOSTADDRS_FULL)
			return fail_full(err);
		has_gap = has_gap || got == HOSTADDRS_GAP;
	}
	return has_gap ? 1 : 0;
}

int hostaddrs_receive(struct hostaddrs *h, size_t *out_first, struct cj_error *err)
{
	size_t first = h->set.count;
	int rc = receive_changes(h, err);
	if (rc > 0)
		rc = list(h, err);
	if (rc == 0)
		*out_first = first;
	return rc;
}
