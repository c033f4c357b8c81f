/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of closed destinations, and the table as intervals.
 *
 * Rows are in ascending order of their first address, the wider before the narrower, IPv4 before
 * IPv6: ranges_flatten() reads them once and relies on it (a test checks).  A row with the class of
 * the row around it changes nothing for a packet: it is documentation, and tests try it.
 */
#include "netns/address/ranges.h"

#include <assert.h>

const char *const net_class_names[NET_CLASS_COUNT] = {
	[NET_LOOPBACK] = "loopback",
	[NET_PRIVATE] = "private",
	[NET_LINK_LOCAL] = "link_local",
	[NET_METADATA] = "metadata",
	[NET_SHARED] = "shared",
	[NET_MULTICAST] = "multicast",
	[NET_RESERVED] = "reserved",
	[NET_DOCUMENTATION] = "documentation",
	[NET_TRANSLATED] = "translated",
	[NET_MAPPED] = "mapped",
	[NET_HOST] = "host",
	[NET_NOT_ALLOWED] = "not_allowed",
	[NET_PROTOCOL] = "protocol",
	[NET_LIMIT] = "limit",
	[NET_SPOOFED] = "spoofed",
	[NET_NAME] = "name",
};

/* clang-format off */
const struct range ranges[] = {
	{ "0.0.0.0/8",          NET_RESERVED,      "this network: no destination",                       "RFC 1122 3.2.1.3" },
	{ "0.0.0.0/32",         NET_LOOPBACK,      "unspecified; connecting to it reaches the local host", "RFC 1122 3.2.1.3" },
	{ "10.0.0.0/8",         NET_PRIVATE,       "private use",                                        "RFC 1918" },
	{ "100.64.0.0/10",      NET_SHARED,        "carrier-grade NAT",                                  "RFC 6598" },
	{ "100.96.0.96/32",     NET_METADATA,      "Volcengine and BytePlus instance metadata",          "docs.byteplus.com" },
	{ "100.100.100.200/32", NET_METADATA,      "Alibaba Cloud instance metadata",                    "alibabacloud.com/help" },
	{ "127.0.0.0/8",        NET_LOOPBACK,      "loopback",                                           "RFC 1122 3.2.1.3" },
	{ "161.26.0.0/16",      NET_PRIVATE,       "IBM Cloud's inner services, not routed outside it",  "cloud.ibm.com/docs" },
	{ "166.8.0.0/14",       NET_PRIVATE,       "IBM Cloud's service endpoints, not routed outside it", "cloud.ibm.com/docs" },
	{ "168.63.129.16/32",   NET_METADATA,      "Azure's wire server, in public address space",       "learn.microsoft.com/azure" },
	{ "169.254.0.0/16",     NET_LINK_LOCAL,    "link local",                                         "RFC 3927" },
	{ "169.254.0.23/32",    NET_METADATA,      "Tencent Cloud instance metadata",                    "cloud.tencent.com/document" },
	{ "169.254.20.10/32",   NET_LINK_LOCAL,    "Kubernetes' name server on the node",                "kubernetes.io/docs" },
	{ "169.254.25.10/32",   NET_LINK_LOCAL,    "Kubespray's name server on the node",                "kubespray.io" },
	{ "169.254.42.42/32",   NET_METADATA,      "Scaleway instance metadata",                         "scaleway.com/docs" },
	{ "169.254.169.123/32", NET_METADATA,      "AWS time server",                                    "docs.aws.amazon.com" },
	{ "169.254.169.250/32", NET_METADATA,      "AWS licence server",                                 "docs.aws.amazon.com" },
	{ "169.254.169.251/32", NET_METADATA,      "AWS licence server",                                 "docs.aws.amazon.com" },
	{ "169.254.169.253/32", NET_METADATA,      "AWS name server",                                    "docs.aws.amazon.com" },
	{ "169.254.169.254/32", NET_METADATA,      "instance metadata of most clouds, AWS, Azure and Google among them", "docs.aws.amazon.com" },
	{ "169.254.170.2/32",   NET_METADATA,      "AWS ECS task credentials",                           "docs.aws.amazon.com" },
	{ "169.254.170.23/32",  NET_METADATA,      "AWS EKS pod credentials",                            "docs.aws.amazon.com" },
	{ "172.16.0.0/12",      NET_PRIVATE,       "private use",                                        "RFC 1918" },
	{ "192.0.0.0/24",       NET_RESERVED,      "protocol assignments",                               "RFC 6890" },
	{ "192.0.0.170/31",     NET_RESERVED,      "discovery of NAT64 and DNS64",                       "RFC 7050" },
	{ "192.0.0.192/32",     NET_METADATA,      "Oracle Cloud Classic instance metadata",             "docs.oracle.com" },
	{ "192.0.2.0/24",       NET_DOCUMENTATION, "TEST-NET-1",                                         "RFC 5737" },
	{ "192.31.196.0/24",    NET_RESERVED,      "AS112: a sink for misdirected DNS",                  "RFC 7535" },
	{ "192.52.193.0/24",    NET_RESERVED,      "automatic multicast tunnelling (AMT)",               "RFC 7450" },
	{ "192.88.99.0/24",     NET_RESERVED,      "6to4 relay, deprecated",                             "RFC 7526" },
	{ "192.168.0.0/16",     NET_PRIVATE,       "private use",                                        "RFC 1918" },
	{ "192.175.48.0/24",    NET_RESERVED,      "AS112: a sink for misdirected DNS",                  "RFC 7534" },
	{ "198.18.0.0/15",      NET_RESERVED,      "benchmarking; a jail's own link is in it",           "RFC 2544" },
	{ "198.51.100.0/24",    NET_DOCUMENTATION, "TEST-NET-2",                                         "RFC 5737" },
	{ "203.0.113.0/24",     NET_DOCUMENTATION, "TEST-NET-3",                                         "RFC 5737" },
	{ "224.0.0.0/4",        NET_MULTICAST,     "multicast",                                          "RFC 5771" },
	{ "240.0.0.0/4",        NET_RESERVED,      "reserved for the future",                            "RFC 1112 4" },
	{ "255.255.255.255/32", NET_MULTICAST,     "broadcast on the local link",                        "RFC 919" },

	/* IPv6 unicast uses only 2000::/3: the three rows that leave it out come first */
	{ "::/3",               NET_RESERVED,      "below global unicast",                               "IANA IPv6 address space" },
	{ "::/96",              NET_TRANSLATED,    "IPv4-compatible, deprecated",                        "RFC 4291 2.5.5.1" },
	{ "::/128",             NET_LOOPBACK,      "unspecified; connecting to it reaches the local host", "RFC 4291 2.5.2" },
	{ "::1/128",            NET_LOOPBACK,      "loopback",                                           "RFC 4291 2.5.3" },
	{ "::ffff:0:0/96",      NET_MAPPED,        "IPv4-mapped",                                        "RFC 4291 2.5.5.2" },
	{ "::ffff:0:0:0/96",    NET_TRANSLATED,    "IPv4-translated (SIIT)",                             "RFC 2765" },
	{ "64:ff9b::/96",       NET_TRANSLATED,    "NAT64",                                              "RFC 6052" },
	{ "64:ff9b:1::/48",     NET_TRANSLATED,    "NAT64 within a site",                                "RFC 8215" },
	{ "100::/64",           NET_RESERVED,      "discard only",                                       "RFC 6666" },
	{ "100:0:0:1::/64",     NET_RESERVED,      "dummy prefix",                                       "RFC 9780" },
	{ "2001::/23",          NET_RESERVED,      "protocol assignments: benchmarking, ORCHID, DRIP, AMT, AS112", "RFC 2928" },
	{ "2001::/32",          NET_TRANSLATED,    "Teredo: packets go on to an IPv4 address in it",     "RFC 4380" },
	{ "2001:db8::/32",      NET_DOCUMENTATION, "documentation",                                      "RFC 3849" },
	{ "2002::/16",          NET_TRANSLATED,    "6to4: packets go on to an IPv4 address in it",       "RFC 3056" },
	{ "2620:4f:8000::/48",  NET_RESERVED,      "AS112: a sink for misdirected DNS",                  "RFC 7534" },
	{ "3fff::/20",          NET_DOCUMENTATION, "documentation",                                      "RFC 9637" },
	{ "4000::/2",           NET_RESERVED,      "above global unicast",                               "IANA IPv6 address space" },
	{ "5f00::/16",          NET_RESERVED,      "segment routing",                                    "RFC 9602" },
	{ "8000::/1",           NET_RESERVED,      "above global unicast",                               "IANA IPv6 address space" },
	{ "fc00::/7",           NET_PRIVATE,       "unique local",                                       "RFC 4193" },
	{ "fd00:42::42/128",    NET_METADATA,      "Scaleway instance metadata",                         "scaleway.com/docs" },
	{ "fd00:c1::a9fe:a9fe/128", NET_METADATA,  "Oracle Cloud instance metadata",                     "docs.oracle.com" },
	{ "fd00:100::100:200/128", NET_METADATA,   "Alibaba Cloud instance metadata",                    "docs.cloud-init.io" },
	{ "fd00:ec2::/32",      NET_METADATA,      "AWS instance metadata, credentials, names and time", "docs.aws.amazon.com" },
	{ "fd00:a9fe:a9fe::1/128", NET_METADATA,   "Akamai (Linode) instance metadata",                  "docs.cloud-init.io" },
	{ "fd20:ce::254/128",   NET_METADATA,      "Google Cloud instance metadata",                     "cloud.google.com/compute/docs" },
	{ "fe80::/10",          NET_LINK_LOCAL,    "link local",                                         "RFC 4291 2.5.6" },
	{ "fe80::a9fe:a9fe/128", NET_METADATA,     "OpenStack and Hetzner instance metadata",            "specs.openstack.org" },
	{ "fec0::/10",          NET_RESERVED,      "site local, deprecated",                             "RFC 3879" },
	{ "ff00::/8",           NET_MULTICAST,     "multicast",                                          "RFC 4291 2.7" },
};
/* clang-format on */
const size_t ranges_count = COUNT_OF(ranges);

bool ranges_find(const struct ip *ip, enum net_class *out)
{
	int best = -1;

	for (size_t i = 0; i < ranges_count; i++) {
		struct ip_net net = { 0 };
		bool ok = ip_net_parse(ranges[i].prefix, &net);

		assert(ok);
		if (ip_net_has(&net, ip) && net.bits > best) {
			best = net.bits;
			*out = ranges[i].class;
		}
	}
	return best >= 0;
}

#define DEPTH_MAX 8 /* nested rows; there are 3 */

/* The state of ranges_flatten(): the rows around the current address, and the output so far. */
struct sweep {
	struct range_interval open[DEPTH_MAX]; /* the innermost is the last */
	size_t depth;
	struct ip next; /* first address not yet in `out`; null: it was the very last */
	struct range_interval *out;
	size_t count;
};

static bool adjoins(const struct range_interval *before, const struct range_interval *now)
{
	struct ip next = ip_step(before->last, 1);

	return before->class == now->class && next.family != 0 && ip_equal(&next, &now->first);
}

/* Adds an interval from `next` to `last`, if it is not empty, with the innermost row's class. */
static void emit(struct sweep *s, const struct ip *last)
{
	if (s->next.family == 0 || ip_compare(&s->next, last) > 0)
		return;

	struct range_interval now = { s->next, *last, s->open[s->depth - 1].class };
	if (s->count > 0 && adjoins(&s->out[s->count - 1], &now)) {
		s->out[s->count - 1].last = *last;
	} else {
		assert(s->count < RANGE_INTERVALS_MAX);
		s->out[s->count++] = now;
	}
	s->next = ip_step(*last, 1);
}

/* Ends the rows that lie wholly before `first`; NULL: all rows. */
static void leave(struct sweep *s, const struct ip *first)
{
	while (s->depth > 0) {
		const struct range_interval *top = &s->open[s->depth - 1];

		if (first && ip_compare(&top->last, first) >= 0)
			return;
		emit(s, &top->last);
		s->depth--;
	}
}

static void enter(struct sweep *s, const struct ip_net *net, enum net_class class)
{
	leave(s, &net->ip);
	if (s->depth > 0) {
		struct ip before = ip_step(net->ip, -1);

		if (before.family != 0)
			emit(s, &before);
	}
	assert(s->depth < DEPTH_MAX);
	s->open[s->depth++] = (struct range_interval){ net->ip, ip_net_last(net), class };
	s->next = net->ip;
}

size_t ranges_flatten(int family, struct range_interval out[static RANGE_INTERVALS_MAX])
{
	struct sweep s = { .out = out };

	for (size_t i = 0; i < ranges_count; i++) {
		struct ip_net net = { 0 };
		bool ok = ip_net_parse(ranges[i].prefix, &net);

		assert(ok);
		if (net.ip.family == family)
			enter(&s, &net, ranges[i].class);
	}
	leave(&s, NULL);
	return s.count;
}
