/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lab_rules - a lab with the rules of a public network in it, and what its jail meets.
 *
 * A test program includes this once, behind <cmocka.h>, and sets no_lab from lab_enter_user().
 */
#pragma once

#include "netns/address/names.h"
#include "netns/firewall/firewall.h"
#include "netns/nftables/nft.h"
#include "tests/netns/lab.h"

#define CHECK(call)                                                                                \
	do {                                                                                       \
		struct cj_error err = { 0 };                                                       \
		if ((call) < 0)                                                                    \
			fail_msg("%s: %s", #call, err.msg);                                        \
	} while (0)

static const char *no_lab; /* why there is none */

static inline struct firewall_spec public_spec(void)
{
	return (struct firewall_spec){ .addresses = { .jail4 = lab_address("198.18.0.2"),
						      .gateway4 = lab_address("198.18.0.3"),
						      .jail6 = lab_address("fdce:6a11::2"),
						      .gateway6 = lab_address("fdce:6a11::3") },
				       .has_dns = true };
}

/* With what names have opened, as the supervisor hands it over. */
static inline struct firewall_spec with_names(struct firewall_spec spec, struct names *names)
{
	spec.has_names = true;
	spec.named = names_new(names, &spec.nnamed);
	return spec;
}

/* Nothing new is no transaction. */
static inline int open_new_names(int rules_fd, struct names *names, struct cj_error *err)
{
	size_t count = 0;
	const struct endpoint *named = names_new(names, &count);
	return count > 0 ? firewall_open_names(rules_fd, named, count, err) : 0;
}

static inline void open_lab(struct lab *lab, const struct firewall_spec *spec)
{
	if (no_lab) {
		print_message("skipped: %s\n", no_lab);
		skip();
	}
	lab_open(lab);
	CHECK(firewall_apply_jail(lab->jail_rules, spec, &err));
	CHECK(firewall_apply_gateway(lab->gateway_rules, spec, &err));
}

static inline void open_public(struct lab *lab)
{
	const struct firewall_spec spec = public_spec();
	open_lab(lab, &spec);
}

/* Without the jail's own rules the gateway's must hold alone. */
static inline void remove_jail_rules(const struct lab *lab)
{
	assert_int_equal(lab_nft(lab->jail, "delete table inet cejail\n"), 0);
}

static inline uint64_t refused(int rules_fd, enum net_class class)
{
	uint64_t counts[NET_CLASS_COUNT] = { 0 };
	CHECK(firewall_read_table(rules_fd, FIREWALL_TABLE, counts, &err));
	return counts[class];
}

/* The same, once it is `wanted`: a kernel thread may judge a packet a moment later. */
static inline uint64_t refused_soon(int rules_fd, enum net_class class, uint64_t wanted)
{
	uint64_t count = refused(rules_fd, class);
	for (int i = 0; i < LAB_WAIT_MS && count < wanted; i++) {
		(void)poll(NULL, 0, 1);
		count = refused(rules_fd, class);
	}
	return count;
}

static inline int connect_to(const struct lab *lab, const char *address, uint16_t port)
{
	const struct ip ip = lab_address(address);
	return lab_connect(lab->jail, &ip, port, LAB_WAIT_MS, NULL);
}

static inline int send_to(const struct lab *lab, const char *address, uint16_t port)
{
	const struct ip ip = lab_address(address);
	return lab_send(lab->jail, &ip, port, 1, LAB_WAIT_MS);
}
