/* SPDX-License-Identifier: Apache-2.0 */
/* names: which names a live list has, and which addresses their answers open, and for how long. */
#include "netns/address/names.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))
#define START_MS     1000000
#define OPEN_MS      (NAMES_OPEN_S * UINT64_C(1000))
#define ANSWER_MS    (NAMES_ANSWER_S * UINT64_C(1000))

static struct arena arena;
static struct names names; /* its table is large */
static struct allowlist_entry entries[ALLOWLIST_MAX];
static struct endpoint listed_items[4];
static struct endpoints listed;
static const struct endpoints nothing;

static void parse_list(const char *const *texts, size_t count, struct allowlist_entry *out)
{
	struct cj_error err = { 0 };

	for (size_t i = 0; i < count; i++)
		if (allowlist_parse(texts[i], &arena, &out[i], &err) < 0)
			fail_msg("'%s': %s", texts[i], err.msg);
}

static void use_list(const char *const *texts, size_t count)
{
	memset(&names, 0, sizeof(names));
	listed = (struct endpoints){ .items = listed_items };
	parse_list(texts, count, entries);
	names.has_ipv6 = true;
	names.rules = (struct names_rules){
		.is_list = true, .allow = entries, .nallow = count, .endpoints = &listed
	};
}

#define USE_LIST(...)                                                                              \
	use_list((const char *const[]){ __VA_ARGS__ },                                             \
		 COUNT(((const char *const[]){ __VA_ARGS__ })))

static int forget(void **state)
{
	(void)state;
	arena_fini(&arena);
	return 0;
}

static struct ip ip_of(const char *text)
{
	struct ip ip;

	if (!ip_parse(text, &ip))
		fail_msg("'%s' is no address", text);
	return ip;
}

static enum names_end take_end(const char *name, const char *address, uint64_t now_ms)
{
	const struct ip ip = ip_of(address);
	return names_take(&names, &(struct names_answer){ .name = name }, &ip, now_ms);
}

static bool take(const char *name, const char *address, uint64_t now_ms)
{
	const enum names_end end = take_end(name, address, now_ms);
	assert_int_not_equal(end, NAMES_FULL);
	return end == NAMES_OPEN;
}

static bool is_full(const char *name, const char *address, uint64_t now_ms)
{
	return take_end(name, address, now_ms) == NAMES_FULL;
}

/* "ADDRESS FIRST_PORT-LAST_PORT", in the order of the table. */
static void expect_open(size_t at, const char *expected)
{
	const struct endpoint *e = &names.open[at].endpoint;
	char ip[IP_TEXT_MAX], text[96];

	assert_true(at < names.count);
	assert_true(ip_equal(&e->first, &e->last));
	(void)snprintf(text, sizeof(text), "%s %u-%u", ip_format(&e->first, ip),
		       (unsigned)e->first_port, (unsigned)e->last_port);
	assert_string_equal(text, expected);
}

/* --- which names -------------------------------------------------------------------- */

static void a_wildcard_has_every_name_below_it_and_not_its_own(void **state)
{
	static const struct {
		const char *name;
		bool is_listed;
	} rows[] = {
		{ "api.example.com", true },
		{ "a.b.c.example.com", true },
		{ "_dmarc.example.com", true },
		{ "example.com.example.com", true },
		{ "example.com", false },
		{ ".example.com", false },
		{ "notexample.com", false },
		{ "api.notexample.com", false },
		{ "api.example.com.", false }, /* the caller has cut the dot off */
		{ "api.example.com.evil.org", false },
		{ "example.com.evil.org", false },
		{ "api.example.co", false },
		{ "api.EXAMPLE.com", false }, /* the caller writes lower case */
		{ "com", false },
		{ "", false },
		{ "plain.example.org", true },
		{ "sub.plain.example.org", false },
		{ "example.org", false },
		{ "lain.example.org", false },
		{ "mixed.example.net", true },
		{ "a.mixed-too.example.net", true },
		{ "192.0.2.1", false }, /* listed by address: that is no name */
	};
	(void)state;

	USE_LIST("*.example.com:443", "plain.example.org", "MIXED.Example.NET",
		 "*.Mixed-Too.example.net", "192.0.2.1");
	for (size_t i = 0; i < COUNT(rows); i++)
		if (names_has(entries, 5, rows[i].name) != rows[i].is_listed)
			fail_msg("'%s' is %slisted", rows[i].name, rows[i].is_listed ? "not " : "");
	assert_false(names_has(entries, 0, "api.example.com"));
}

/* --- which addresses ---------------------------------------------------------------- */

static void an_answer_opens_the_ports_of_each_entry_with_its_name(void **state)
{
	(void)state;
	USE_LIST("*.example.com:443", "api.example.com:80", "*.example.com", "*.other.example:22");

	assert_true(take("api.example.com", "93.184.216.34", START_MS));
	assert_int_equal(names.count, 3);
	expect_open(0, "93.184.216.34 443-443");
	expect_open(1, "93.184.216.34 80-80");
	expect_open(2, "93.184.216.34 0-65535");
	for (size_t i = 0; i < 3; i++) {
		assert_true(names.open[i].is_new);
		assert_int_equal(names.open[i].until_ms, START_MS + OPEN_MS);
	}
	assert_true(take("www.example.com", "2606:4700::1111", START_MS));
	assert_int_equal(names.count, 5); /* not port 80 */
	expect_open(3, "2606:4700::1111 443-443");
	expect_open(4, "2606:4700::1111 0-65535");
}

static void an_address_that_two_names_have_is_open_once(void **state)
{
	(void)state;
	USE_LIST("*.example.com:443", "*.example.org:443", "*.example.net:80");

	assert_true(take("a.example.com", "93.184.216.34", START_MS));
	assert_true(take("b.example.com", "93.184.216.34", START_MS));
	assert_true(take("c.example.org", "93.184.216.34", START_MS));
	assert_int_equal(names.count, 1);
	assert_true(take("d.example.net", "93.184.216.34", START_MS));
	assert_true(take("a.example.com", "93.184.216.35", START_MS));
	assert_int_equal(names.count, 3);
}

static void a_name_that_is_not_listed_opens_no_address(void **state)
{
	(void)state;
	USE_LIST("*.example.com", "93.184.216.34");

	assert_false(take("example.com", "93.184.216.40", START_MS));
	assert_false(take("a.example.org", "93.184.216.40", START_MS));
	assert_false(take("", "93.184.216.40", START_MS));
	assert_int_equal(names.count, 0);
}

static void no_name_opens_an_address_in_a_closed_range(void **state)
{
	static const char *const closed[] = {
		"127.0.0.1",   "10.1.2.3",        "169.254.169.254", "192.168.0.1",
		"100.64.0.1",  "0.0.0.0",         "224.0.0.1",       "255.255.255.255",
		"::1",         "fd12::1",         "fe80::1",         "64:ff9b::a01:203",
		"2002:a00::1", "::ffff:10.0.0.1",
	};
	(void)state;

	USE_LIST("*.example.com");
	for (size_t i = 0; i < COUNT(closed); i++)
		if (take("a.example.com", closed[i], START_MS))
			fail_msg("%s is in the answer", closed[i]);
	assert_int_equal(names.count, 0);
}

static void an_answer_may_have_a_closed_address_that_the_list_opens_itself(void **state)
{
	(void)state;
	USE_LIST("*.example.com:443", "10.1.2.0/24", "fd12::5");
	listed_items[0] = (struct endpoint){ ip_of("10.1.2.0"), ip_of("10.1.2.255"), 80, 80 };
	listed_items[1] = (struct endpoint){ ip_of("fd12::5"), ip_of("fd12::5"), 0, 65535 };
	listed.count = 2;

	assert_true(take("a.example.com", "10.1.2.0", START_MS));
	assert_true(take("a.example.com", "10.1.2.255", START_MS));
	assert_true(take("a.example.com", "fd12::5", START_MS));
	assert_false(take("a.example.com", "10.1.1.255", START_MS));
	assert_false(take("a.example.com", "10.1.3.0", START_MS));
	assert_false(take("a.example.com", "fd12::4", START_MS));
	assert_false(take("a.example.com", "fd12::6", START_MS));
	assert_false(take("a.example.org", "10.1.2.3", START_MS));
	assert_int_equal(names.count, 0); /* by the name none of them gets another port */
}

static void without_ipv6_no_address_of_it_is_open(void **state)
{
	(void)state;
	USE_LIST("*.example.com", "fd12::5");
	listed_items[0] = (struct endpoint){ ip_of("fd12::5"), ip_of("fd12::5"), 0, 65535 };
	listed.count = 1;
	names.has_ipv6 = false;

	assert_false(take("a.example.com", "2606:4700::1111", START_MS));
	assert_false(take("a.example.com", "fd12::5", START_MS));
	assert_int_equal(names.count, 0);
	assert_true(take("a.example.com", "93.184.216.34", START_MS));
}

/* --- what is denied ----------------------------------------------------------------- */

static struct allowlist_entry denied[4];
static struct endpoint denied_items[4];

static void deny(size_t count, const char *const *texts, size_t addresses)
{
	parse_list(texts, count, denied);
	names.rules.deny = denied;
	names.rules.ndeny = count;
	listed.denied = denied_items;
	listed.ndenied = addresses;
}

static void a_denied_name_may_not_be_asked_for_whatever_is_allowed(void **state)
{
	static const char *const texts[] = { "secret.example.com", "*.in.example.com" };
	static const char *const closed[] = { "secret.example.com", "a.in.example.com",
					      "a.b.in.example.com", "other.example.org" };
	static const char *const open[] = { "a.secret.example.com", "in.example.com",
					    "secrets.example.com", "not.in.exampl.example.com" };
	(void)state;
	USE_LIST("*.example.com", "secret.example.com");
	deny(2, texts, 0);

	for (size_t i = 0; i < COUNT(closed); i++)
		if (names_may_ask(&names.rules, closed[i]) || take(closed[i], "8.8.8.8", START_MS))
			fail_msg("'%s' is open", closed[i]);
	assert_int_equal(names.count, 0);
	for (size_t i = 0; i < COUNT(open); i++)
		if (!names_may_ask(&names.rules, open[i]) || !take(open[i], "8.8.8.8", START_MS))
			fail_msg("'%s' is closed", open[i]);

	names.rules.is_list = false;
	assert_true(names_may_ask(&names.rules, "other.example.org"));
	assert_false(names_may_ask(&names.rules, "secret.example.com"));
	assert_true(names_are_filtered(&names.rules));
	names.rules.ndeny = 0;
	assert_false(names_are_filtered(&names.rules));
}

static void no_answer_has_a_denied_address(void **state)
{
	(void)state;
	USE_LIST("*.example.com:443", "*.example.com:80", "10.1.2.0/24");
	listed_items[0] = (struct endpoint){ ip_of("10.1.2.0"), ip_of("10.1.2.255"), 0, 65535 };
	listed.count = 1;
	deny(0, NULL, 4);
	denied_items[0] = (struct endpoint){ ip_of("8.8.0.0"), ip_of("8.8.255.255"), 0, 65535 };
	denied_items[1] = (struct endpoint){ ip_of("9.9.9.9"), ip_of("9.9.9.9"), 80, 80 };
	denied_items[2] =
	    (struct endpoint){ ip_of("2606:4700::"), ip_of("2606:4700::f"), 0, 65535 };
	denied_items[3] = (struct endpoint){ ip_of("10.1.2.7"), ip_of("10.1.2.7"), 0, 65535 };

	assert_false(take("a.example.com", "8.8.0.0", START_MS));
	assert_false(take("a.example.com", "8.8.255.255", START_MS));
	assert_false(take("a.example.com", "2606:4700::f", START_MS));
	assert_false(take("a.example.com", "10.1.2.7", START_MS));
	assert_int_equal(names.count, 0);
	assert_true(take("a.example.com", "10.1.2.8", START_MS));
	assert_true(take("a.example.com", "9.9.9.9", START_MS)); /* its other port */
	assert_int_equal(names.count, 1);
	expect_open(0, "9.9.9.9 443-443");
	assert_true(take("a.example.com", "2606:4700::10", START_MS));
	assert_true(take("a.example.com", "8.9.0.0", START_MS));
	assert_int_equal(names.count, 5);
}

static void without_a_list_an_answer_has_what_is_neither_closed_nor_denied(void **state)
{
	static const char *const texts[] = { "secret.example.com" };
	(void)state;
	USE_LIST("8.8.8.8");
	deny(1, texts, 1);
	denied_items[0] = (struct endpoint){ ip_of("8.8.0.0"), ip_of("8.8.255.255"), 0, 65535 };
	names.rules.is_list = false;
	names.rules.nallow = 0;

	assert_true(take("any.example", "9.9.9.9", START_MS));
	assert_false(take("any.example", "8.8.8.8", START_MS));
	assert_false(take("any.example", "10.0.0.1", START_MS));
	assert_false(take("secret.example.com", "9.9.9.9", START_MS));
	assert_int_equal(names.count, 0); /* the rules have nothing to open */
}

static void other_rules_keep_nothing_that_they_deny(void **state)
{
	static const char *const texts[] = { "b.example.com" };
	struct endpoints now = { .denied = denied_items, .ndenied = 1 };
	const struct names_rules rules = { .is_list = true,
					   .allow = entries,
					   .nallow = 1,
					   .deny = denied,
					   .ndeny = 1,
					   .endpoints = &now };
	(void)state;
	USE_LIST("*.example.com:443");
	assert_true(take("a.example.com", "8.8.8.1", START_MS));
	assert_true(take("b.example.com", "8.8.8.2", START_MS));
	assert_true(take("c.example.com", "8.8.8.3", START_MS));
	names_loaded(&names, true);
	parse_list(texts, 1, denied);
	denied_items[0] = (struct endpoint){ ip_of("8.8.8.3"), ip_of("8.8.8.3"), 443, 443 };

	names_change(&names, &rules, START_MS);
	assert_int_equal(names.count, 1);
	expect_open(0, "8.8.8.1 443-443");
}

/* What the address of a name was looked up through is denied later. */
static void other_rules_keep_no_address_whose_alias_they_deny(void **state)
{
	static const char *const texts[] = { "*.edge.example" };
	static char aliases[3][NAMES_SIZE_MAX] = { "x.example.net", "a.edge.example", "" };
	struct names_rules rules = {
		.is_list = true, .allow = entries, .nallow = 1, .endpoints = &nothing
	};
	const struct ip ips[] = { ip_of("8.8.8.1"), ip_of("8.8.8.2"), ip_of("8.8.8.3") };
	(void)state;
	USE_LIST("*.example.com:443");
	parse_list(texts, 1, denied);
	memset(aliases[2], 'z', NAMES_SIZE_MAX - 1);
	const struct names_answer answers[] = { { "a.example.com", aliases[0], 1 },
						{ "b.example.com", aliases[0], 2 },
						{ "c.example.com", aliases[0], 3 } };

	for (size_t i = 0; i < 3; i++)
		assert_int_equal(names_take(&names, &answers[i], &ips[i], START_MS), NAMES_OPEN);
	assert_true(!names.open[1].has_more && !names.open[2].has_more);
	memset(aliases[0], 'y', NAMES_SIZE_MAX - 1); /* now they have no room together */
	assert_int_equal(names_take(&names, &answers[2], &ips[2], START_MS), NAMES_OPEN);
	assert_true(names.open[2].has_more);
	names_loaded(&names, true);

	names_change(&names, &rules, START_MS);
	assert_int_equal(names.count, 3); /* nothing is denied */
	rules.deny = denied;
	rules.ndeny = 1;
	names_change(&names, &rules, START_MS);
	assert_int_equal(names.count, 1);
	expect_open(0, "8.8.8.1 443-443");
}

/* --- for how long ------------------------------------------------------------------- */

static void an_address_is_loaded_again_when_its_time_is_nearly_over(void **state)
{
	const uint64_t over_ms = START_MS + OPEN_MS, soon_ms = over_ms - 2 * ANSWER_MS;
	(void)state;
	USE_LIST("*.example.com");

	assert_true(take("a.example.com", "93.184.216.34", START_MS));
	names_loaded(&names, true);
	assert_true(take("a.example.com", "93.184.216.34", START_MS));
	assert_true(take("a.example.com", "93.184.216.34", soon_ms - 1));
	assert_false(names.open[0].is_new); /* an answer can be used until its own end */
	assert_int_equal(names.open[0].until_ms, over_ms);

	assert_true(take("a.example.com", "93.184.216.34", soon_ms));
	assert_true(names.open[0].is_new);
	assert_int_equal(names.open[0].until_ms, soon_ms + OPEN_MS);
	assert_int_equal(names.count, 1);
	names_loaded(&names, true);

	assert_true(take("a.example.com", "93.184.216.34", soon_ms + 2 * OPEN_MS));
	assert_true(names.open[0].is_new);
	assert_int_equal(names.open[0].until_ms, soon_ms + 3 * OPEN_MS);
	assert_int_equal(names.count, 1);
}

static void fill(uint64_t now_ms)
{
	for (unsigned i = 0; i < NAMES_OPEN_MAX; i++) {
		char text[IP_TEXT_MAX];

		(void)snprintf(text, sizeof(text), "8.0.%u.%u", i / 256, i % 256);
		assert_true(take("a.example.com", text, now_ms + i));
	}
	names_loaded(&names, true);
}

static void a_full_table_takes_another_address_when_the_time_of_one_is_over(void **state)
{
	const uint64_t over_ms = START_MS + OPEN_MS;
	(void)state;
	USE_LIST("*.example.com:443", "b.example.com:80");

	fill(START_MS);
	assert_int_equal(names.count, NAMES_OPEN_MAX);
	assert_true(is_full("a.example.com", "9.9.9.9", START_MS));
	assert_true(is_full("a.example.com", "9.9.9.9", over_ms - 1));
	assert_true(take("a.example.com", "8.0.0.0", START_MS)); /* it is open already */
	for (size_t i = 0; i < NAMES_OPEN_MAX; i++)
		assert_false(names.open[i].is_new);

	/* the two first ones are over: there is room for one name with two ports, and no more */
	assert_true(take("b.example.com", "9.9.9.9", over_ms + 1));
	assert_int_equal(names.count, NAMES_OPEN_MAX);
	expect_open(0, "9.9.9.9 80-80");
	expect_open(1, "9.9.9.9 443-443");
	expect_open(2, "8.0.0.2 443-443");
	assert_true(names.open[0].is_new && names.open[1].is_new && !names.open[2].is_new);
	assert_true(is_full("a.example.com", "9.9.9.10", over_ms + 1));
	assert_true(is_full("b.example.com", "9.9.9.10", over_ms + 2)); /* for one of its ports */
}

static void what_could_not_be_loaded_is_not_open(void **state)
{
	(void)state;
	USE_LIST("*.example.com");

	assert_true(take("a.example.com", "93.184.216.34", START_MS));
	names_loaded(&names, true);
	assert_true(take("a.example.com", "93.184.216.35", START_MS));
	names_loaded(&names, false);
	assert_int_equal(names.open[0].until_ms, START_MS + OPEN_MS);
	assert_int_equal(names.open[1].until_ms, 0);
	assert_false(names.open[0].is_new || names.open[1].is_new);

	assert_true(take("b.example.com", "93.184.216.35", START_MS)); /* so it is tried again */
	assert_int_equal(names.count, 2);
	assert_true(names.open[1].is_new);
}

/* --- another list ------------------------------------------------------------------- */

static struct allowlist_entry others[ALLOWLIST_MAX];

static void change(const char *const *texts, size_t count, uint64_t now_ms)
{
	const struct names_rules rules = {
		.is_list = true, .allow = others, .nallow = count, .endpoints = &nothing
	};

	parse_list(texts, count, others);
	names_change(&names, &rules, now_ms);
}

#define CHANGE(now_ms, ...)                                                                        \
	change((const char *const[]){ __VA_ARGS__ },                                               \
	       COUNT(((const char *const[]){ __VA_ARGS__ })), now_ms)

static void another_list_keeps_what_its_names_have_opened_for_its_ports(void **state)
{
	const uint64_t later_ms = START_MS + 1000;
	(void)state;
	USE_LIST("*.example.com:443", "b.example.com:80", "*.example.org", "c.example.net:22");
	assert_true(take("a.example.com", "8.8.8.1", START_MS)); /* 443 */
	assert_true(take("b.example.com", "8.8.8.2", START_MS)); /* 443, 80 */
	assert_true(take("c.example.org", "8.8.8.3", START_MS)); /* all ports */
	assert_true(take("c.example.net", "8.8.8.4", START_MS)); /* 22 */
	assert_int_equal(names.count, 5);
	names_loaded(&names, true);

	/* one entry is narrower, one is wider, one has other ports, and one is gone */
	CHANGE(later_ms, "b.example.com:443", "*.b.example.com:80", "*.example.org:443",
	       "*.example.net:22");
	assert_ptr_equal(names.rules.allow, others);
	assert_int_equal(names.rules.nallow, 4);
	assert_ptr_equal(names.rules.endpoints, &nothing);
	assert_int_equal(names.count, 2);
	expect_open(0, "8.8.8.2 443-443");
	expect_open(1, "8.8.8.4 22-22");
	for (size_t i = 0; i < 2; i++) {
		assert_true(names.open[i].is_new); /* the tables have new sets */
		assert_int_equal(names.open[i].until_ms, later_ms + OPEN_MS);
	}
	assert_string_equal(names.open[0].name, "b.example.com");
	assert_string_equal(names.open[1].name, "c.example.net");
	names_loaded(&names, true);

	assert_false(take("a.example.com", "8.8.8.1", later_ms));
	assert_true(take("d.example.org", "8.8.8.3", later_ms));
	expect_open(2, "8.8.8.3 443-443");
}

static void an_address_is_kept_for_the_last_name_that_had_it(void **state)
{
	(void)state;
	USE_LIST("*.example.com:443", "*.example.org:443");
	assert_true(take("a.example.com", "8.8.8.1", START_MS));
	names_loaded(&names, true);
	assert_true(take("a.example.org", "8.8.8.1", START_MS));
	assert_false(names.open[0].is_new);

	CHANGE(START_MS, "*.example.org:443");
	assert_int_equal(names.count, 1);
	CHANGE(START_MS, "*.example.com:443");
	assert_int_equal(names.count, 0);
}

static void a_list_without_names_keeps_no_address(void **state)
{
	(void)state;
	USE_LIST("*.example.com:443");
	assert_true(take("a.example.com", "8.8.8.1", START_MS));
	names_loaded(&names, true);
	CHANGE(START_MS, "8.8.8.1:443");
	assert_int_equal(names.count, 0);
	assert_false(take("a.example.com", "8.8.8.1", START_MS));

	USE_LIST("*.example.com:443");
	assert_true(take("a.example.com", "8.8.8.1", START_MS));
	names_change(&names, &(struct names_rules){ .is_list = true, .endpoints = &nothing },
		     START_MS);
	assert_int_equal(names.count, 0);
	assert_false(names_may_ask(&names.rules, "a.example.com"));
}

static void an_address_whose_time_is_over_is_not_kept(void **state)
{
	const uint64_t over_ms = START_MS + OPEN_MS;
	(void)state;
	USE_LIST("*.example.com:443");
	assert_true(take("a.example.com", "8.8.8.1", START_MS));
	assert_true(take("a.example.com", "8.8.8.2", START_MS + 1));
	names_loaded(&names, true);
	assert_true(take("a.example.com", "8.8.8.3", START_MS + 2));
	names_loaded(&names, false);

	CHANGE(over_ms, "*.example.com:443");
	assert_int_equal(names.count, 1);
	expect_open(0, "8.8.8.2 443-443");
}

static void another_list_keeps_so_many_addresses_and_no_more(void **state)
{
	(void)state;
	USE_LIST("*.example.com:443");
	fill(START_MS);

	CHANGE(START_MS + NAMES_OPEN_MAX, "*.example.com:443");
	assert_int_equal(names.count, NAMES_KEPT_MAX);
	expect_open(0, "8.0.0.0 443-443");
	expect_open(NAMES_KEPT_MAX - 1, "8.0.3.255 443-443");
	names_loaded(&names, true);
	assert_true(take("a.example.com", "8.0.4.0", START_MS + NAMES_OPEN_MAX));
	assert_int_equal(names.count, NAMES_KEPT_MAX + 1);
}

static void
a_connection_states_a_name_of_the_list_for_its_port_and_none_that_is_denied(void **state)
{
	struct allowlist_entry secret[1];
	(void)state;
	USE_LIST("*.example.com:443", "b.example.org", "8.8.8.8");
	assert_true(names_may_reach(&names.rules, "a.example.com", 443));
	assert_false(names_may_reach(&names.rules, "a.example.com", 80));
	assert_false(names_may_reach(&names.rules, "example.com", 443));
	assert_true(names_may_reach(&names.rules, "b.example.org", 80));
	assert_false(names_may_reach(&names.rules, "a.b.example.org", 80));
	assert_false(names_may_reach(&names.rules, "", 443)); /* it states none */

	parse_list((const char *const[]){ "secret.example.com" }, 1, secret);
	names.rules.deny = secret;
	names.rules.ndeny = 1;
	assert_false(names_may_reach(&names.rules, "secret.example.com", 443));
	assert_true(names_may_reach(&names.rules, "a.example.com", 443));
	names.rules.is_list = false;
	names.rules.nallow = 0;
	assert_true(names_may_reach(&names.rules, "example.net", 443));
	assert_false(names_may_reach(&names.rules, "secret.example.com", 443));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_wildcard_has_every_name_below_it_and_not_its_own),
		cmocka_unit_test(an_answer_opens_the_ports_of_each_entry_with_its_name),
		cmocka_unit_test(an_address_that_two_names_have_is_open_once),
		cmocka_unit_test(a_name_that_is_not_listed_opens_no_address),
		cmocka_unit_test(no_name_opens_an_address_in_a_closed_range),
		cmocka_unit_test(an_answer_may_have_a_closed_address_that_the_list_opens_itself),
		cmocka_unit_test(without_ipv6_no_address_of_it_is_open),
		cmocka_unit_test(a_denied_name_may_not_be_asked_for_whatever_is_allowed),
		cmocka_unit_test(no_answer_has_a_denied_address),
		cmocka_unit_test(without_a_list_an_answer_has_what_is_neither_closed_nor_denied),
		cmocka_unit_test(other_rules_keep_nothing_that_they_deny),
		cmocka_unit_test(other_rules_keep_no_address_whose_alias_they_deny),
		cmocka_unit_test(an_address_is_loaded_again_when_its_time_is_nearly_over),
		cmocka_unit_test(a_full_table_takes_another_address_when_the_time_of_one_is_over),
		cmocka_unit_test(what_could_not_be_loaded_is_not_open),
		cmocka_unit_test(another_list_keeps_what_its_names_have_opened_for_its_ports),
		cmocka_unit_test(an_address_is_kept_for_the_last_name_that_had_it),
		cmocka_unit_test(a_list_without_names_keeps_no_address),
		cmocka_unit_test(an_address_whose_time_is_over_is_not_kept),
		cmocka_unit_test(another_list_keeps_so_many_addresses_and_no_more),
		cmocka_unit_test(
		    a_connection_states_a_name_of_the_list_for_its_port_and_none_that_is_denied),
	};
	return cmocka_run_group_tests(tests, NULL, forget);
}
