/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The descriptors and values that sweep_memory.c tries with every option, command and request.
 * A value with a counter in it (an address, a group, an offset) makes a new object each time.
 */
#pragma once
#include <fcntl.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef SOL_NETLINK
#define SOL_NETLINK 270
#endif

enum {
	KIND_TCP,
	KIND_TCP6,
	KIND_UDP,
	KIND_UDP6,
	KIND_PING,
	KIND_STREAM,
	KIND_DATAGRAM,
	KIND_NETLINK,
	KIND_PIPE,
	KIND_FILE,
	KIND_TERMINAL,
	KINDS,
};

/* The high bytes of requests: terminals, sockets and interfaces, files, pseudo-terminals. */
static const unsigned int requests[] = { 0x54, 0x89, 0x66, 0x52, 0x5456, 0x8B };

static inline int open_pipe(void)
{
	int ends[2];
	if (pipe(ends) < 0)
		return -1;
	(void)close(ends[0]);
	return ends[1];
}

static inline int open_kind(int kind)
{
	static const int sockets[][3] = {
		[KIND_TCP] = { AF_INET, SOCK_STREAM, 0 },
		[KIND_TCP6] = { AF_INET6, SOCK_STREAM, 0 },
		[KIND_UDP] = { AF_INET, SOCK_DGRAM, 0 },
		[KIND_UDP6] = { AF_INET6, SOCK_DGRAM, 0 },
		[KIND_PING] = { AF_INET6, SOCK_DGRAM, IPPROTO_ICMPV6 },
		[KIND_STREAM] = { AF_UNIX, SOCK_STREAM, 0 },
		[KIND_DATAGRAM] = { AF_UNIX, SOCK_DGRAM, 0 },
		[KIND_NETLINK] = { AF_NETLINK, SOCK_RAW, 0 },
	};
	if (kind <= KIND_NETLINK)
		return socket(sockets[kind][0], sockets[kind][1] | SOCK_NONBLOCK, sockets[kind][2]);
	if (kind == KIND_PIPE)
		return open_pipe();
	if (kind == KIND_TERMINAL)
		return posix_openpt(O_RDWR | O_NOCTTY);
	return memfd_create("sweep", MFD_ALLOW_SEALING);
}

enum {
	VALUE_INT,
	VALUE_BYTES, /* 256 of them */
	VALUE_GROUP,
	VALUE_GROUP6,
	VALUE_GROUP_OF_EITHER,
	VALUE_SOURCE,
	VALUE_LOCK,
	VALUE_FILTER,
	VALUE_HEADER, /* a destination options header of IPv6, as long as they may be */
	VALUE_KEY,
	VALUE_KEY6,
	VALUE_NAME,
	VALUES,
};

struct sweep_value {
	_Alignas(16) char at[4096];
	socklen_t size;
};

static inline struct sockaddr_in address_of(uint32_t high, uint32_t n)
{
	return (struct sockaddr_in){ .sin_family = AF_INET, .sin_addr = { htonl(high + n) } };
}

static inline struct sockaddr_in6 address6_of(uint32_t n)
{
	struct sockaddr_in6 it = { .sin6_family = AF_INET6 };
	it.sin6_addr.s6_addr[0] = 0xff;
	it.sin6_addr.s6_addr[1] = 0x02;
	n = htonl(n);
	memcpy(&it.sin6_addr.s6_addr[12], &n, sizeof(n));
	return it;
}

#define PUT(value, what) (memcpy((value)->at, &(what), sizeof(what)), (value)->size = sizeof(what))

static inline void make_group(struct sweep_value *value, int which, uint32_t n)
{
	const struct sockaddr_in group = address_of(0xe8000000u, n),
				 source = address_of(0x0a000000u, n);
	struct ip_mreqn four = { .imr_multiaddr = group.sin_addr, .imr_ifindex = 1 };
	struct ipv6_mreq six = { .ipv6mr_multiaddr = address6_of(n).sin6_addr,
				 .ipv6mr_interface = 1 };
	struct group_req either = { .gr_interface = 1 };
	struct group_source_req from = { .gsr_interface = 1 };
	memcpy(&either.gr_group, &group, sizeof(group));
	memcpy(&from.gsr_group, &group, sizeof(group));
	memcpy(&from.gsr_source, &source, sizeof(source));
	if (which == VALUE_GROUP)
		PUT(value, four);
	else if (which == VALUE_GROUP6)
		PUT(value, six);
	else if (which == VALUE_GROUP_OF_EITHER)
		PUT(value, either);
	else
		PUT(value, from);
}

static inline void make_key(struct sweep_value *value, int which, uint32_t n)
{
	const struct sockaddr_in four = address_of(0, n);
	const struct sockaddr_in6 six = address6_of(n);
	struct tcp_md5sig key = { .tcpm_keylen = 1 };
	if (which == VALUE_KEY)
		memcpy(&key.tcpm_addr, &four, sizeof(four));
	else
		memcpy(&key.tcpm_addr, &six, sizeof(six));
	PUT(value, key);
}

static inline void make_filter(struct sweep_value *value)
{
	static struct sock_filter code[2048];
	const struct sock_fprog program = { 2048, code };
	for (int i = 0; i < 2047; i++)
		code[i] = (struct sock_filter)BPF_STMT(BPF_ALU | BPF_ADD | BPF_K, 0x12345678u);
	code[2047] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, 0xffff);
	PUT(value, program);
}

/* The n-th value of a kind: only what a call copies is filled, the rest is zero. */
static inline void make_value(struct sweep_value *value, int which, uint32_t n)
{
	const struct flock lock = { .l_type = F_WRLCK, .l_start = (off_t)n * 2, .l_len = 1 };
	memset(value, 0, sizeof(*value));
	value->size = which == VALUE_BYTES ? 256 : which == VALUE_HEADER ? 2048 : 4;
	memcpy(value->at, &n, sizeof(n));
	if (which >= VALUE_GROUP && which <= VALUE_SOURCE)
		make_group(value, which, n);
	else if (which == VALUE_LOCK)
		PUT(value, lock);
	else if (which == VALUE_FILTER)
		make_filter(value);
	else if (which == VALUE_HEADER)
		memcpy(value->at, "\0\377\1\375", 4);
	else if (which == VALUE_KEY || which == VALUE_KEY6)
		make_key(value, which, n);
	else if (which == VALUE_NAME)
		PUT(value, "lo");
}
