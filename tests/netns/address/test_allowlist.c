/* SPDX-License-Identifier: Apache-2.0 */
/* targets: what --allow takes, and what becomes of it.  The names are the test's own. */
/* WRAP: getaddrinfo freeaddrinfo name_ask */
#include "netns/address/allowlist.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "netns/address/name_lookup.h"

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))
#define MANY         600 /* more than ENDPOINTS_MAX */
#define SEVERAL      300 /* of a long name: more than ALLOWLIST_HOSTS_MAX */

/* --- a resolver of our own ---------------------------------------------------------- */

/* Each address twice and in a row, as getaddrinfo(3) does for several kinds of sockets. */
static const struct zone {
	const char *name;
	int code;
	const char *addresses[5];
} zones[] = {
	{ "public.example", 0, { "1.1.1.1", "1.1.1.1", "2606:4700::1111", NULL } },
	{ "second.example", 0, { "1.1.1.1", "9.9.9.9", NULL } },
	{ "intern.example", 0, { "10.1.2.3", NULL } },
	{ "mixed.example", 0, { "1.1.1.1", "169.254.169.254", NULL } },
	{ "v6.intern.example", 0, { "fd12:3456::1", NULL } },
	{ "localhost", 0, { "127.0.0.1", "::1", NULL } },
	{ "mapped.example", 0, { "::ffff:10.1.2.3", NULL } },
	{ "nat64.example", 0, { "64:ff9b::a01:203", NULL } },
	{ "unix.example", 0, { "none", NULL } },
	{ "nodata.example", EAI_NODATA, { NULL } },
	{ "slow.example", EAI_AGAIN, { NULL } },
	{ "broken.example", EAI_FAIL, { NULL } },
	{ "memory.example", EAI_MEMORY, { NULL } },
	{ "system.example", EAI_SYSTEM, { NULL } },
	{ "many.example", 0, { NULL } },
	{ "several.example", 0, { NULL } },
};

static struct {
	struct addrinfo infos[MANY];
	struct sockaddr_storage addresses[MANY];
	size_t count;
	int unfreed, calls;
} answer;

int __wrap_getaddrinfo(const char *name, const char *service, const struct addrinfo *wanted,
		       struct addrinfo **out);
void __wrap_freeaddrinfo(struct addrinfo *infos);

static void add_answer(const char *text)
{
	struct sockaddr_in *in = (struct sockaddr_in *)&answer.addresses[answer.count];
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&answer.addresses[answer.count];
	struct addrinfo *info = &answer.infos[answer.count];

	memset(in6, 0, sizeof(*in6));
	if (inet_pton(AF_INET, text, &in->sin_addr) == 1)
		in->sin_family = AF_INET;
	else if (inet_pton(AF_INET6, text, &in6->sin6_addr) == 1)
		in6->sin6_family = AF_INET6;
	else
		in->sin_family = AF_UNIX;
	*info = (struct addrinfo){ .ai_addr = (struct sockaddr *)in };
	if (answer.count++ > 0)
		info[-1].ai_next = info;
}

static void fill_answer(const struct zone *zone)
{
	size_t generated = strcmp(zone->name, "many.example") == 0      ? MANY
			   : strcmp(zone->name, "several.example") == 0 ? SEVERAL
									: 0;

	answer.count = 0;
	for (size_t i = 0; zone->addresses[i]; i++)
		add_answer(zone->addresses[i]);
	for (unsigned i = 0; answer.count < generated; i++) {
		char text[32];

		(void)snprintf(text, sizeof(text), "8.0.%u.%u", i / 200, i % 200);
		add_answer(text);
	}
}

int __wrap_getaddrinfo(const char *name, const char *service, const struct addrinfo *wanted,
		       struct addrinfo **out)
{
	assert_null(service);
	assert_int_equal(wanted->ai_family, AF_UNSPEC);
	assert_int_equal(wanted->ai_socktype, SOCK_STREAM);
	answer.calls++;
	if (strlen(name) > 200)
		name = "several.example";
	for (size_t i = 0; i < COUNT(zones); i++) {
		if (strcmp(zones[i].name, name) != 0)
			continue;
		errno = EMFILE;
		if (zones[i].code == 0) {
			fill_answer(&zones[i]);
			answer.unfreed++;
			*out = answer.infos;
		}
		return zones[i].code;
	}
	return EAI_NONAME;
}

void __wrap_freeaddrinfo(struct addrinfo *infos)
{
	assert_ptr_equal(infos, answer.infos);
	answer.unfreed--;
}

/* Without the helper: what it would do, here. */
int __wrap_name_ask(const char *name, struct ip *out, size_t *out_count, struct cj_error *err);
int __wrap_name_ask(const char *name, struct ip *out, size_t *out_count, struct cj_error *err)
{
	return name_lookup(name, out, out_count, err);
}

/* --- helpers ------------------------------------------------------------------------ */

static struct arena arena;

static int forget(void **state)
{
	(void)state;
	arena_fini(&arena);
	memset(&answer, 0, sizeof(answer));
	return 0;
}

static struct allowlist_entry target_of(const char *text)
{
	struct allowlist_entry target = { 0 };
	struct cj_error err = { 0 };

	if (allowlist_parse(text, &arena, &target, &err) != 0)
		fail_msg("'%s': %s", text, err.msg);
	return target;
}

static int resolve(const char *const *texts, size_t n, bool may_be_private, struct endpoints *out,
		   struct cj_error *err)
{
	struct allowlist_entry targets[ALLOWLIST_MAX];

	for (size_t i = 0; i < n; i++)
		targets[i] = target_of(texts[i]);
	int rc = allowlist_resolve(targets, n, may_be_private, &arena, out, err);
	assert_int_equal(answer.unfreed, 0);
	return rc;
}

static struct endpoints resolved(const char *const *texts, size_t n, bool may_be_private)
{
	struct endpoints out = { 0 };
	struct cj_error err = { 0 };

	if (resolve(texts, n, may_be_private, &out, &err) != 0)
		fail_msg("%s", err.msg);
	return out;
}

#define RESOLVED(may_be_private, ...)                                                              \
	resolved((const char *const[]){ __VA_ARGS__ },                                             \
		 COUNT(((const char *const[]){ __VA_ARGS__ })), may_be_private)

/* "FIRST-LAST FIRST_PORT-LAST_PORT" */
static void expect_endpoint(const struct endpoint *e, const char *expected)
{
	char first[IP_TEXT_MAX], last[IP_TEXT_MAX], text[128];

	(void)snprintf(text, sizeof(text), "%s-%s %u-%u", ip_format(&e->first, first),
		       ip_format(&e->last, last), (unsigned)e->first_port, (unsigned)e->last_port);
	assert_string_equal(text, expected);
}

struct refusal {
	const char *text, *message, *hint; /* the whole message, words of the hint */
	int code;
};

static void expect_refusals(const struct refusal *rows, size_t count, bool may_be_private)
{
	for (size_t i = 0; i < count; i++) {
		struct endpoints out = { .count = 42 };
		struct cj_error err = { 0 };
		int rc = resolve(&rows[i].text, 1, may_be_private, &out, &err);

		if (rc != -rows[i].code || err.code != rows[i].code)
			fail_msg("'%s': %d: %s", rows[i].text, rc, err.msg);
		assert_string_equal(err.msg, rows[i].message);
		if (!strstr(err.hint, rows[i].hint) || (rows[i].hint[0] == '\0' && err.hint[0]))
			fail_msg("'%s': hint '%s'", rows[i].text, err.hint);
		assert_int_equal(out.count, 42); /* written only on success */
	}
}

/* --- text --------------------------------------------------------------------------- */

static void a_target_is_a_name_an_address_or_a_network_with_a_port_or_without(void **state)
{
	static const struct {
		const char *text, *name, *net;
		unsigned first_port, last_port;
	} rows[] = {
		{ "example.com", "example.com", NULL, 0, 65535 },
		{ "example.com:443", "example.com", NULL, 443, 443 },
		{ "EXAMPLE.com:1", "example.com", NULL, 1, 1 },
		{ "localhost", "localhost", NULL, 0, 65535 },
		{ "xn--bcher-kva.example", "xn--bcher-kva.example", NULL, 0, 65535 },
		{ "3com.com", "3com.com", NULL, 0, 65535 },
		{ "1.2.3.4.example", "1.2.3.4.example", NULL, 0, 65535 },
		{ "0xcafe.example", "0xcafe.example", NULL, 0, 65535 },
		{ "192.0.2.1", NULL, "192.0.2.1/32", 0, 65535 },
		{ "192.0.2.1:65535", NULL, "192.0.2.1/32", 65535, 65535 },
		{ "10.0.0.0/8", NULL, "10.0.0.0/8", 0, 65535 },
		{ "10.0.0.0/8:80", NULL, "10.0.0.0/8", 80, 80 },
		{ "2001:db8::1", NULL, "2001:db8::1/128", 0, 65535 },
		{ "2001:db8::1:443", NULL, "2001:db8::1:443/128", 0, 65535 },
		{ "::1", NULL, "::1/128", 0, 65535 },
		{ "[2001:db8::1]", NULL, "2001:db8::1/128", 0, 65535 },
		{ "[2001:db8::1]:443", NULL, "2001:db8::1/128", 443, 443 },
		{ "2001:db8::/32", NULL, "2001:db8::/32", 0, 65535 },
		{ "[2001:db8::/32]:443", NULL, "2001:db8::/32", 443, 443 },
	};
	(void)state;

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct allowlist_entry t = target_of(rows[i].text);
		char net[NET_TEXT_MAX];

		assert_string_equal(t.text, rows[i].text);
		assert_int_equal(t.first_port, rows[i].first_port);
		assert_int_equal(t.last_port, rows[i].last_port);
		if (rows[i].name) {
			assert_string_equal(t.name, rows[i].name);
			assert_false(t.is_wildcard);
		} else {
			assert_null(t.name);
			assert_string_equal(ip_net_format(&t.net, net), rows[i].net);
		}
	}
}

static void a_wildcard_stands_for_every_name_below_one_of_two_parts(void **state)
{
	static const struct {
		const char *text, *name;
		unsigned first_port, last_port;
	} rows[] = {
		{ "*.example.com", "example.com", 0, 65535 },
		{ "*.example.com:443", "example.com", 443, 443 },
		{ "*.API.Example.COM:1", "api.example.com", 1, 1 },
		{ "*.co.uk", "co.uk", 0, 65535 }, /* a public suffix of two parts is not known */
		{ "*.xn--bcher-kva.example", "xn--bcher-kva.example", 0, 65535 },
		{ "*.1.2.3.4.example", "1.2.3.4.example", 0, 65535 },
	};
	(void)state;

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct allowlist_entry t = target_of(rows[i].text);

		assert_string_equal(t.text, rows[i].text);
		assert_string_equal(t.name, rows[i].name);
		assert_true(t.is_wildcard);
		assert_int_equal(t.first_port, rows[i].first_port);
		assert_int_equal(t.last_port, rows[i].last_port);
	}
}

static const struct {
	const char *text, *message;
} no_targets[] = {
	{ "", "'' names no host" },
	{ ":443", "':443' names no host" },
	{ "example.com:", "a port is a number from 1 to 65535" },
	{ "example.com:0", "'example.com:0': a port is a number" },
	{ "example.com:65536", "from 1 to 65535" },
	{ "example.com:-1", "from 1 to 65535" },
	{ "example.com:http", "from 1 to 65535" },
	{ "192.0.2.1:0", "from 1 to 65535" },
	{ "https://example.com/", "is a URL; write its host alone" },
	{ "example.com/path", "only an address has a '/' behind it; write a host alone" },
	{ "//example.com", "only an address has a '/' behind it; write a host alone" },
	{ "/8", "only an address has a '/' behind it; write a host alone" },
	{ "10.0.0.0/x", "is no network: write the length of the prefix" },
	{ "example.com:80-90", "from 1 to 65535, as in example.com:443" },
	{ "a.example,b.example", "has a comma; name one destination" },
	{ "192.0.2.1,192.0.2.2", "has a comma; name one destination" },
	{ "example.com.", "leave out the dot at its end" },
	{ "[2001:db8::1", "has no closing bracket; write it as in [2001:db8::1]:443" },
	{ "*", "a '*' stands for whole names only at the beginning" },
	{ "*:443", "a '*' stands for whole names only at the beginning" },
	{ "*example.com", "a '*' stands for whole names only at the beginning" },
	{ "a*.example.com", "a '*' stands for whole names only at the beginning" },
	{ "api.*.com", "a '*' stands for whole names only at the beginning" },
	{ "example.*", "a '*' stands for whole names only at the beginning" },
	{ "*.*.example.com", "a '*' stands for whole names only at the beginning" },
	{ "**.example.com", "a '*' stands for whole names only at the beginning" },
	{ "*.", "names no host" },
	{ "*..example.com", "is no host name" },
	{ "*.example.com.", "is no host name" },
	{ "*._tcp.example.com", "is no host name" },
	{ "*.b\xc3\xbc"
	  "cher.example",
	  "other letters are written in Punycode" },
	{ "*.com", "is all of a public suffix; name a domain in it, as in *.example.com" },
	{ "*.COM:443", "is all of a public suffix; name a domain in it" },
	{ "*.192.0.2.1", "is no address in the accepted form" },
	{ "*.2130706433", "is no address in the accepted form" },
	{ "*.10.0.0.0/8", "is no network" },
	{ "*.example.com:0", "a port is a number" },
	{ "https://*.example.com/", "is a URL" },
	{ "exam ple", "is no host name" },
	{ "exam_ple", "is no host name" },
	{ "ex\nample", "is no host name" },
	{ "ex\tample", "is no host name" },
	{ "example.com\n10.0.0.1 a", "is no host name" },
	{ "ex#ample", "is no host name" },
	{ "b\xc3\xbc"
	  "cher.example",
	  "is no host name" },
	{ "-a.example", "is no host name" },
	{ "a-.example", "is no host name" },
	{ "a..example", "is no host name" },
	{ ".example", "is no host name" },
	{ "example.", "is no host name" },
	{ "a@example", "is no host name" },
	{ "0x7f.1", "is no address in the accepted form" },
	{ "0x7f000001", "is no address in the accepted form" },
	{ "0x", "is no address in the accepted form" },
	{ "010.0.0.1", "is no address in the accepted form" },
	{ "2130706433", "is no address in the accepted form" },
	{ "127.1", "is no address in the accepted form" },
	{ "1.2.3.4.5", "is no address in the accepted form" },
	{ "256.1.1.1:80", "is no address in the accepted form" },
	{ "example.0x10", "is no address in the accepted form" },
	{ "10.0.0.1/8", "is no network: write the length" },
	{ "10.0.0.0/33", "is no network" },
	{ "10.0.0.0/", "is no network" },
	{ "example.com/24", "only an address has a '/' behind it" },
	{ "2001:db8::1/32", "is no network" },
	{ "[192.0.2.1]:80", "only an IPv6 address may be in brackets" },
	{ "[example.com]:80", "only an IPv6 address may be in brackets" },
	{ "[]:80", "only an IPv6 address may be in brackets" },
	{ "[2001:db8::1", "has no closing bracket" },
	{ "[2001:db8::1]443", "only ':PORT' may follow ']'" },
	{ "[2001:db8::1]/64", "only ':PORT' may follow ']'" },
	{ "[2001:db8::1]:", "a port is a number" },
	{ "[fe80::1%eth0]:80", "is no IPv6 address" },
	{ "fe80::1%eth0", "is no IPv6 address" },
	{ "2001:db8::1::443", "is no IPv6 address; with a port write it in brackets" },
};

static void an_invalid_entry_is_refused_with_the_accepted_form(void **state)
{
	(void)state;

	for (size_t i = 0; i < COUNT(no_targets); i++) {
		struct allowlist_entry t = { .first_port = 42 };
		struct cj_error err = { 0 };

		if (allowlist_parse(no_targets[i].text, &arena, &t, &err) != -EINVAL)
			fail_msg("'%s' is taken", no_targets[i].text);
		if (!strstr(err.msg, no_targets[i].message))
			fail_msg("'%s': %s", no_targets[i].text, err.msg);
		assert_int_equal(t.first_port, 42); /* written only on success */
	}
}

/* "aaa...a.aaa...a" of `size` bytes, with a dot behind each `label` of them. */
static void make_name(char *out, size_t size, size_t label)
{
	for (size_t i = 0; i < size; i++)
		out[i] = i % (label + 1) == label ? '.' : 'a';
	out[size] = '\0';
}

static void a_name_has_253_bytes_and_its_labels_63(void **state)
{
	static const struct {
		size_t size, label;
		bool is_good;
	} rows[] = {
		{ 63, 63, true },   { 64, 64, false },  { 253, 63, true },
		{ 254, 62, false }, { 255, 63, false }, { 300, 60, false },
	};
	(void)state;

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct allowlist_entry t;
		struct cj_error err = { 0 };
		char name[512];

		make_name(name, rows[i].size, rows[i].label);
		assert_int_equal(allowlist_parse(name, &arena, &t, &err),
				 rows[i].is_good ? 0 : -EINVAL);
	}
}

/* --- addresses ---------------------------------------------------------------------- */

static void only_a_wildcard_is_live_until_the_whole_list_is_made_so(void **state)
{
	struct allowlist_entry list[] = { target_of("example.com"), target_of("10.0.0.0/8"),
					  target_of("*.example.com") };
	(void)state;

	assert_false(allowlist_has_wildcard(NULL, 0));
	assert_false(allowlist_has_wildcard(list, 2));
	assert_true(allowlist_has_wildcard(list, 3));
	assert_true(!list[0].is_live && !list[1].is_live && list[2].is_live);
	allowlist_make_live(list, 3);
	assert_true(list[0].is_live && !list[1].is_live && list[2].is_live);
	assert_false(allowlist_has_wildcard(list, 2)); /* a name of its own is none */
}

static int deny(const char *const *texts, size_t count, struct endpoints *out, struct cj_error *err)
{
	struct allowlist_entry list[4];

	for (size_t i = 0; i < count; i++)
		assert_int_equal(allowlist_parse_denied(texts[i], &arena, &list[i], err), 0);
	return allowlist_deny(list, count, &arena, out, err);
}

static void what_is_denied_is_any_address_and_each_that_a_name_has(void **state)
{
	static const char *const some[] = { "10.0.0.0/8:80", "mixed.example", "second.example",
					    "*.public.example" };
	static const char *const unknown[] = { "no.example", "nodata.example", "0.0.0.0/0" };
	struct endpoints out = RESOLVED(false, "9.9.9.9:853");
	struct cj_error err = { 0 };
	(void)state;

	assert_int_equal(deny(some, 4, &out, &err), 0);
	assert_int_equal(out.count, 1); /* it stays: deny wins in the rules */
	assert_int_equal(out.ndenied, 4);
	assert_true(out.denied[0].first_port == 80 && out.denied[0].last_port == 80);
	for (size_t i = 1; i < 4; i++)
		assert_true(ip_equal(&out.denied[i].first, &out.denied[i].last) &&
			    out.denied[i].first_port == 0 && out.denied[i].last_port == 65535);
	assert_int_equal(deny(unknown, 3, &out, &err), 0);
	assert_int_equal(err.code, 0); /* no failure is left in it */
	assert_int_equal(out.ndenied, 1);
	assert_int_equal(deny(NULL, 0, &out, &err), 0);
	assert_int_equal(out.ndenied, 0);
}

static void a_denied_name_that_nobody_answers_for_is_a_failure(void **state)
{
	static const char *const slow[] = { "8.8.8.8", "slow.example" }, *const many[] = {
		"many.example"
	};
	struct endpoints out = { 0 };
	struct cj_error err = { 0 };
	(void)state;

	assert_int_equal(deny(slow, 2, &out, &err), -EAGAIN);
	assert_non_null(strstr(err.msg, "'slow.example': this host's name servers"));
	assert_int_equal(deny(many, 1, &out, &err), -E2BIG);
	assert_int_equal(out.ndenied, 0);
}

/* The name server of the jail answers for the wildcard, while it runs. */
static void beside_a_wildcard_a_name_is_resolved_ahead_as_without_one(void **state)
{
	struct endpoints out =
	    RESOLVED(false, "public.example:443", "9.9.9.9:853", "*.public.example", "8.8.0.0/16");
	struct endpoints alone = RESOLVED(false, "public.example:443", "9.9.9.9:853", "8.8.0.0/16");
	(void)state;

	assert_true(answer.calls > 0);
	assert_int_equal(out.count, alone.count);
	for (size_t i = 0; i < out.count; i++) {
		assert_true(ip_equal(&out.items[i].first, &alone.items[i].first));
		assert_true(ip_equal(&out.items[i].last, &alone.items[i].last));
		assert_int_equal(out.items[i].first_port, alone.items[i].first_port);
		assert_int_equal(out.items[i].last_port, alone.items[i].last_port);
	}
	assert_string_equal(out.hosts, alone.hosts);
	assert_int_equal(out.warnings.count, 0);
}

static void no_name_of_a_live_list_is_resolved_ahead(void **state)
{
	struct allowlist_entry list[] = { target_of("public.example:443"), target_of("9.9.9.9:853"),
					  target_of("*.public.example"),
					  target_of("broken.example"), target_of("8.8.0.0/16") };
	struct endpoints out;
	struct cj_error err = { 0 };
	(void)state;

	allowlist_make_live(list, COUNT(list));
	answer.calls = 0;
	if (allowlist_resolve(list, COUNT(list), false, &arena, &out, &err) < 0)
		fail_msg("%s", err.msg);
	assert_int_equal(answer.calls, 0);
	assert_int_equal(out.count, 2);
	expect_endpoint(&out.items[0], "9.9.9.9-9.9.9.9 853-853");
	expect_endpoint(&out.items[1], "8.8.0.0-8.8.255.255 0-65535");
	assert_string_equal(out.hosts, "");
	assert_int_equal(out.warnings.count, 0);
}

/* An address beside a wildcard is checked like any other one. */
static void with_a_wildcard_a_closed_address_is_refused(void **state)
{
	const char *const texts[] = { "*.public.example", "10.1.2.3" };
	struct endpoints out = { .count = 42 };
	struct cj_error err = { 0 };
	(void)state;

	assert_int_equal(resolve(texts, 2, false, &out, &err), -EINVAL);
	assert_non_null(strstr(err.msg, "10.1.2.3"));
	assert_int_equal(out.count, 42);
}

static void without_allow_entries_nothing_is_opened(void **state)
{
	struct endpoints out = { .count = 42 };
	struct cj_error err = { 0 };
	(void)state;

	assert_int_equal(allowlist_resolve(NULL, 0, false, &arena, &out, &err), 0);
	assert_int_equal(out.count, 0);
	assert_int_equal(out.warnings.count, 0);
	assert_string_equal(out.hosts, "");
}

static void a_name_resolves_to_its_addresses_and_lines_of_hosts(void **state)
{
	struct endpoints out = RESOLVED(false, "public.example:443");
	(void)state;

	assert_int_equal(out.count, 2);
	expect_endpoint(&out.items[0], "1.1.1.1-1.1.1.1 443-443");
	expect_endpoint(&out.items[1], "2606:4700::1111-2606:4700::1111 443-443");
	assert_string_equal(out.hosts,
			    "1.1.1.1\tpublic.example\n2606:4700::1111\tpublic.example\n");
	assert_int_equal(out.warnings.count, 0);
	assert_false(out.opens_closed_range);
}

static void an_address_or_network_needs_no_name_server(void **state)
{
	struct endpoints out = RESOLVED(false, "9.9.9.9:853", "8.8.0.0/16", "[2606:4700::/32]:443");
	(void)state;

	assert_int_equal(answer.calls, 0);
	assert_int_equal(out.count, 3);
	expect_endpoint(&out.items[0], "9.9.9.9-9.9.9.9 853-853");
	expect_endpoint(&out.items[1], "8.8.0.0-8.8.255.255 0-65535");
	expect_endpoint(&out.items[2],
			"2606:4700::-2606:4700:ffff:ffff:ffff:ffff:ffff:ffff 443-443");
	assert_string_equal(out.hosts, "");
}

static void an_address_that_is_open_adds_no_endpoint(void **state)
{
	struct endpoints out = RESOLVED(false, "1.1.1.1:443", "public.example:443",
					"second.example", "9.9.0.0/16", "9.9.9.9:53");
	(void)state;

	assert_int_equal(out.count, 3);
	expect_endpoint(&out.items[0], "2606:4700::1111-2606:4700::1111 443-443");
	expect_endpoint(&out.items[1], "1.1.1.1-1.1.1.1 0-65535");
	expect_endpoint(&out.items[2], "9.9.0.0-9.9.255.255 0-65535");
	assert_string_equal(out.hosts, "1.1.1.1\tpublic.example\n2606:4700::1111\tpublic.example\n"
				       "1.1.1.1\tsecond.example\n9.9.9.9\tsecond.example\n");
}

static void a_name_with_two_ports_is_once_in_hosts(void **state)
{
	struct endpoints out = RESOLVED(false, "second.example:80", "second.example:443");
	(void)state;

	assert_int_equal(out.count, 4);
	assert_string_equal(out.hosts, "1.1.1.1\tsecond.example\n9.9.9.9\tsecond.example\n");
}

static void a_closed_address_is_refused_with_its_class(void **state)
{
	static const struct refusal rows[] = {
		{ "intern.example",
		  "--allow 'intern.example': it points to 10.1.2.3, which is private",
		  "--allow-private", EINVAL },
		{ "v6.intern.example:80",
		  "--allow 'v6.intern.example:80': it points to fd12:3456::1, which is private",
		  "--allow-private", EINVAL },
		{ "mixed.example",
		  "--allow 'mixed.example': it points to 169.254.169.254, which is metadata",
		  "--allow-private", EINVAL },
		{ "192.168.1.1:80", "--allow '192.168.1.1:80': the address is private",
		  "--allow-private", EINVAL },
		{ "168.63.129.16", "--allow '168.63.129.16': the address is metadata",
		  "--allow-private", EINVAL },
		{ "8.0.0.0/6", "--allow '8.0.0.0/6': it has 10.0.0.0 in it, which is private",
		  "--allow-private", EINVAL },
		{ "10.1.0.0/16", "--allow '10.1.0.0/16': it has 10.1.0.0 in it, which is private",
		  "--allow-private", EINVAL },
		{ "168.63.129.0/24",
		  "--allow '168.63.129.0/24': it has 168.63.129.16 in it, which is metadata",
		  "--allow-private", EINVAL },
		{ "2001:db8::/32",
		  "--allow '2001:db8::/32': it has 2001:db8:: in it, which is documentation",
		  "--allow-private", EINVAL },
	};
	(void)state;

	expect_refusals(rows, COUNT(rows), false);
}

static void loopback_multicast_and_translated_addresses_are_never_opened(void **state)
{
	static const struct refusal rows[] = {
		{ "localhost",
		  "--allow 'localhost': it points to 127.0.0.1, which is loopback, and "
		  "--allow can't open that",
		  "--connect tcp:127.0.0.1:PORT", EINVAL },
		{ "0.0.0.0",
		  "--allow '0.0.0.0': the address is loopback, and --allow can't open that",
		  "--connect", EINVAL },
		{ "[::1]:80",
		  "--allow '[::1]:80': the address is loopback, and --allow can't open "
		  "that",
		  "--connect", EINVAL },
		{ "224.0.0.1",
		  "--allow '224.0.0.1': the address is multicast, and --allow can't open that",
		  "one machine", EINVAL },
		{ "255.255.255.255",
		  "--allow '255.255.255.255': the address is multicast, and "
		  "--allow can't open that",
		  "one machine", EINVAL },
		{ "mapped.example",
		  "--allow 'mapped.example': it points to ::ffff:10.1.2.3, which is "
		  "mapped, and --allow can't open that",
		  "IPv4", EINVAL },
		{ "nat64.example",
		  "--allow 'nat64.example': it points to 64:ff9b::a01:203, which is "
		  "translated, and --allow can't open that",
		  "IPv4", EINVAL },
		{ "2002::/16",
		  "--allow '2002::/16': it has 2002:: in it, which is translated, and "
		  "--allow can't open that",
		  "IPv4", EINVAL },
		{ "0.0.0.0/0",
		  "--allow '0.0.0.0/0': it has 0.0.0.0 in it, which is loopback, and "
		  "--allow can't open that",
		  "--connect", EINVAL },
		{ "8000::/1",
		  "--allow '8000::/1': it has ff00:: in it, which is multicast, and "
		  "--allow can't open that",
		  "one machine", EINVAL },
	};
	(void)state;

	expect_refusals(rows, COUNT(rows), false);
	expect_refusals(rows, COUNT(rows), true);
}

static void a_name_without_an_address_is_an_error_with_the_reason(void **state)
{
	static const struct refusal rows[] = {
		{ "unknown.example:80",
		  "--allow 'unknown.example:80': this host's resolver knows no such name", "",
		  ENOENT },
		{ "nodata.example", "--allow 'nodata.example': the name has no address", "",
		  ENOENT },
		{ "unix.example", "--allow 'unix.example': the name has no address", "", ENOENT },
		{ "slow.example", "--allow 'slow.example': this host's name servers gave no answer",
		  "getent ahosts", EAGAIN },
		{ "broken.example",
		  "--allow 'broken.example': this host's name servers gave no answer",
		  "getent ahosts", EAGAIN },
		{ "memory.example",
		  "--allow 'memory.example': look up the name: Cannot allocate memory", "",
		  ENOMEM },
		{ "system.example",
		  "--allow 'system.example': look up the name: Too many open files", "ulimit -n",
		  EMFILE },
		{ "many.example",
		  "--allow 'many.example': all of them together are more than 512 addresses", "",
		  E2BIG },
	};
	(void)state;

	expect_refusals(rows, COUNT(rows), false);
}

static void hosts_lines_that_fill_64_kib_are_refused(void **state)
{
	struct endpoints out = { .count = 42 };
	struct cj_error err = { 0 };
	char name[512];
	const char *text = name;
	(void)state;

	make_name(name, 250, 60);
	assert_int_equal(resolve(&text, 1, false, &out, &err), -E2BIG);
	assert_non_null(strstr(err.msg, "its addresses don't fit into /etc/hosts (65536 bytes)"));
	text = "several.example";
	assert_int_equal(resolve(&text, 1, false, &out, &err), 0);
	assert_int_equal(out.count, SEVERAL);
}

static void allow_private_opens_closed_ranges_with_one_warning_each(void **state)
{
	struct endpoints out = RESOLVED(true, "intern.example", "public.example",
					"169.254.0.0/16:80", "[fd00:ec2::254]:80");
	(void)state;

	assert_int_equal(out.count, 5);
	expect_endpoint(&out.items[0], "10.1.2.3-10.1.2.3 0-65535");
	assert_int_equal(out.warnings.count, 3);
	assert_true(out.opens_closed_range);
	assert_string_equal(
	    out.warnings.items[0],
	    "--allow 'intern.example' opens addresses that are closed by default: private");
	assert_string_equal(
	    out.warnings.items[1],
	    "--allow '169.254.0.0/16:80' opens addresses that are closed by default: link_local, metadata");
	assert_string_equal(
	    out.warnings.items[2],
	    "--allow '[fd00:ec2::254]:80' opens addresses that are closed by default: metadata");
	assert_non_null(strstr(out.hosts, "10.1.2.3\tintern.example\n"));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(
		    a_target_is_a_name_an_address_or_a_network_with_a_port_or_without, forget),
		cmocka_unit_test_teardown(a_wildcard_stands_for_every_name_below_one_of_two_parts,
					  forget),
		cmocka_unit_test_teardown(an_invalid_entry_is_refused_with_the_accepted_form,
					  forget),
		cmocka_unit_test_teardown(a_name_has_253_bytes_and_its_labels_63, forget),
		cmocka_unit_test_teardown(only_a_wildcard_is_live_until_the_whole_list_is_made_so,
					  forget),
		cmocka_unit_test_teardown(what_is_denied_is_any_address_and_each_that_a_name_has,
					  forget),
		cmocka_unit_test_teardown(a_denied_name_that_nobody_answers_for_is_a_failure,
					  forget),
		cmocka_unit_test_teardown(beside_a_wildcard_a_name_is_resolved_ahead_as_without_one,
					  forget),
		cmocka_unit_test_teardown(no_name_of_a_live_list_is_resolved_ahead, forget),
		cmocka_unit_test_teardown(with_a_wildcard_a_closed_address_is_refused, forget),
		cmocka_unit_test_teardown(without_allow_entries_nothing_is_opened, forget),
		cmocka_unit_test_teardown(a_name_resolves_to_its_addresses_and_lines_of_hosts,
					  forget),
		cmocka_unit_test_teardown(an_address_or_network_needs_no_name_server, forget),
		cmocka_unit_test_teardown(an_address_that_is_open_adds_no_endpoint, forget),
		cmocka_unit_test_teardown(a_name_with_two_ports_is_once_in_hosts, forget),
		cmocka_unit_test_teardown(a_closed_address_is_refused_with_its_class, forget),
		cmocka_unit_test_teardown(
		    loopback_multicast_and_translated_addresses_are_never_opened, forget),
		cmocka_unit_test_teardown(a_name_without_an_address_is_an_error_with_the_reason,
					  forget),
		cmocka_unit_test_teardown(hosts_lines_that_fill_64_kib_are_refused, forget),
		cmocka_unit_test_teardown(allow_private_opens_closed_ranges_with_one_warning_each,
					  forget),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
