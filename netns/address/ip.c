/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses and prefixes: text to bytes and back. */
#include "netns/address/ip.h"

#include <arpa/inet.h>
#include <assert.h>
#include <netinet/in.h>

static int inet_family(const struct ip *ip)
{
	return ip->family == 4 ? AF_INET : AF_INET6;
}

bool ip_parse(const char *text, struct ip *out)
{
	struct ip ip = { .family = strchr(text, ':') ? 6 : 4 };

	/* takes one spelling only: four decimal bytes without leading zeros, or RFC 4291; no zone
	 */
	if (inet_pton(inet_family(&ip), text, ip.bytes) != 1)
		return false;
	*out = ip;
	return true;
}

size_t ip_size(const struct ip *ip)
{
	return ip->family == 4 ? 4 : 16;
}

/* The bits of byte `i` that a prefix of `bits` leaves to the host. */
static uint8_t host_mask(unsigned bits, size_t i)
{
	size_t first = i * 8;

	if (bits >= first + 8)
		return 0;
	if (bits <= first)
		return 0xff;
	return (uint8_t)(0xff >> (bits - first));
}

/* "0" to "128" without signs, blanks or leading zeros; -1 for anything else. */
static int parse_bits(const char *text)
{
	size_t size = strspn(text, "0123456789");
	int bits = 0;

	if (size < 1 || size > 3 || text[size] != '\0' || (size > 1 && text[0] == '0'))
		return -1;
	for (; *text; text++)
		bits = bits * 10 + (*text - '0');
	return bits;
}

bool ip_net_parse(const char *text, struct ip_net *out)
{
	char address[IP_TEXT_MAX];
	const char *slash = strchrnul(text, '/');
	size_t size = (size_t)(slash - text);
	struct ip_net net = { 0 };

	if (size >= sizeof(address))
		return false;
	memcpy(address, text, size);
	address[size] = '\0';
	if (!ip_parse(address, &net.ip))
		return false;

	int most = (int)ip_size(&net.ip) * 8;
	int bits = *slash ? parse_bits(slash + 1) : most;
	if (bits < 0 || bits > most)
		return false;
	for (size_t i = 0; i < ip_size(&net.ip); i++) {
		if (net.ip.bytes[i] & host_mask((unsigned)bits, i))
			return false;
	}
	net.bits = (uint8_t)bits;
	*out = net;
	return true;
}

const char *ip_format(const struct ip *ip, char out[static IP_TEXT_MAX])
{
	const char *text = "-"; /* the null value */

	if (ip->family != 0)
		text = inet_ntop(inet_family(ip), ip->bytes, out, IP_TEXT_MAX);
	else
		memcpy(out, text, 2);
	assert(text); /* IP_TEXT_MAX is large enough for both families */
	return out;
}

const char *ip_net_format(const struct ip_net *net, char out[static NET_TEXT_MAX])
{
	size_t size = strlen(ip_format(&net->ip, out));

	(void)snprintf(out + size, NET_TEXT_MAX - size, "/%u", (unsigned)net->bits);
	return out;
}

bool ip_equal(const struct ip *a, const struct ip *b)
{
	return a->family == b->family && memcmp(a->bytes, b->bytes, ip_size(a)) == 0;
}

int ip_compare(const struct ip *a, const struct ip *b)
{
	return memcmp(a->bytes, b->bytes, ip_size(a));
}

struct ip ip_step(struct ip ip, int by)
{
	uint8_t turn = by > 0 ? 0xff : 0; /* a byte of this value carries */

	for (size_t i = ip_size(&ip); i-- > 0;) {
		bool carries = ip.bytes[i] == turn;

		ip.bytes[i] = (uint8_t)(ip.bytes[i] + by);
		if (!carries)
			return ip;
	}
	return (struct ip){ 0 };
}

bool ip_net_has(const struct ip_net *net, const struct ip *ip)
{
	if (net->ip.family != ip->family)
		return false;
	for (size_t i = 0; i < ip_size(ip); i++) {
		if ((net->ip.bytes[i] ^ ip->bytes[i]) & (uint8_t)~host_mask(net->bits, i))
			return false;
	}
	return true;
}

struct ip ip_net_last(const struct ip_net *net)
{
	struct ip last = net->ip;

	for (size_t i = 0; i < ip_size(&last); i++)
		last.bytes[i] |= host_mask(net->bits, i);
	return last;
}

socklen_t ip_socket_address(const struct ip *ip, uint16_t port, struct sockaddr_storage *out)
{
	memset(out, 0, sizeof(*out));
	if (ip->family == 4) {
		struct sockaddr_in *in = (struct sockaddr_in *)out;
		in->sin_family = AF_INET;
		in->sin_port = htons(port);
		memcpy(&in->sin_addr, ip->bytes, 4);
		return sizeof(*in);
	}
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)out;
	in6->sin6_family = AF_INET6;
	in6->sin6_port = htons(port);
	memcpy(&in6->sin6_addr, ip->bytes, 16);
	return sizeof(*in6);
}
