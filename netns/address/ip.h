/* SPDX-License-Identifier: Apache-2.0 */
/* ip - addresses and prefixes of both families as plain bytes. */
#pragma once

#include <sys/socket.h>

#define IP_TEXT_MAX  46 /* INET6_ADDRSTRLEN */
#define NET_TEXT_MAX (IP_TEXT_MAX + 4)

/* The null value (family 0) is "no address". */
struct ip {
	uint8_t family;    /* 4 or 6 */
	uint8_t bytes[16]; /* network order; of IPv4 the first four */
};

struct ip_net {
	struct ip ip; /* host bits are zero */
	uint8_t bits;
};

/* One spelling each: dotted quad, RFC 4291 text; no octal, no short forms, no zone. */
bool ip_parse(const char *text, struct ip *out);

/* "10.0.0.0/8", or an address, which is a prefix of full length.  Host bits must be zero. */
bool ip_net_parse(const char *text, struct ip_net *out);

const char *ip_format(const struct ip *ip, char out[static IP_TEXT_MAX]);
const char *ip_net_format(const struct ip_net *net, char out[static NET_TEXT_MAX]);

size_t ip_size(const struct ip *ip); /* 4 or 16 */
/* Its socket address with this port; returns that one's size. */
socklen_t ip_socket_address(const struct ip *ip, uint16_t port, struct sockaddr_storage *out);
bool ip_equal(const struct ip *a, const struct ip *b);
/* As memcmp(3): the order of two addresses of one family. */
int ip_compare(const struct ip *a, const struct ip *b);
/* ip + 1 or ip - 1; the null value when there is no such address. */
struct ip ip_step(struct ip ip, int by);
bool ip_net_has(const struct ip_net *net, const struct ip *ip);
/* The last address of a prefix. */
struct ip ip_net_last(const struct ip_net *net);
