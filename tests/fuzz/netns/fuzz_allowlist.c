/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_allowlist - any bytes as an --allow or a --deny, an address, a prefix.
 *
 * Asserted: a refusal has a message and writes nothing; a name has only what may stand in a
 * hosts(5) file, in lower case, and that of a wildcard has two parts; what was read is written and
 * read again as the same; what is denied is closed, also when all of it is allowed; and what a
 * target opens, without a look at any name, is open by the table at both ends and has no closed
 * range within.
 */
#include <assert.h>

#include "netns/address/names.h"
#include "netns/address/ranges.h"
#include "netns/address/allowlist.h"
#include "runtime/base/scope.h"
#include "tests/fuzz/bytes.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void check_ip(const char *text)
{
	struct ip ip = { 0 }, again = { 0 };
	char written[IP_TEXT_MAX];

	if (!ip_parse(text, &ip)) {
		assert(ip.family == 0);
		return;
	}
	bool ok = ip_parse(ip_format(&ip, written), &again);
	assert(ok && ip_equal(&ip, &again));
}

static void check_net(const struct ip_net *net)
{
	struct ip_net again = { 0 };
	struct ip last = ip_net_last(net);
	char written[NET_TEXT_MAX];
	bool ok = ip_net_parse(ip_net_format(net, written), &again);

	assert(ok && ip_equal(&net->ip, &again.ip) && net->bits == again.bits);
	assert(ip_net_has(net, &net->ip) && ip_net_has(net, &last));
}

static void check_name(const char *name)
{
	size_t size = strlen(name);

	assert(size >= 1 && size <= 253);
	for (size_t i = 0; i < size; i++) {
		assert(name[i] > ' ' && name[i] < 0x7f && !strchr("#:/[]%_*@", name[i]));
		assert(name[i] < 'A' || name[i] > 'Z');
	}
}

/* A list of this entry has the names below a wildcard, or the name itself, and no other. */
static void check_listed(const struct allowlist_entry *t)
{
	char name[512];

	assert(allowlist_has_wildcard(t, 1) == t->is_wildcard);
	assert(names_has(t, 1, t->name) == !t->is_wildcard);
	(void)snprintf(name, sizeof(name), "a.%s", t->name);
	assert(names_has(t, 1, name) == t->is_wildcard);
	(void)snprintf(name, sizeof(name), "a%s", t->name);
	assert(!names_has(t, 1, name));
	(void)snprintf(name, sizeof(name), "%s.a", t->name);
	assert(!names_has(t, 1, name));
	if (t->is_wildcard) {
		const char *dot = strchr(t->name, '.');
		assert(dot && dot != t->name && dot[1] != '\0' && strncmp(t->text, "*.", 2) == 0);
	}
}

/* By the intervals, which the judgement does not need to be right about one by one. */
static void check_is_open(const struct endpoint *e)
{
	struct range_interval flat[RANGE_INTERVALS_MAX];
	size_t count = ranges_flatten(e->first.family, flat);
	enum net_class class;

	assert(!ranges_find(&e->first, &class) && !ranges_find(&e->last, &class));
	for (size_t i = 0; i < count; i++)
		assert(memcmp(flat[i].last.bytes, e->first.bytes, 16) < 0 ||
		       memcmp(flat[i].first.bytes, e->last.bytes, 16) > 0);
}

static void check_resolved(const struct allowlist_entry *t, struct arena *a)
{
	struct endpoints out = { 0 };
	struct cj_error err = { 0 };

	if (allowlist_resolve(t, 1, false, a, &out, &err) < 0) {
		assert(err.code == EINVAL && err.hint[0] != '\0');
		return;
	}
	assert(out.count == 1 && out.warnings.count == 0 && out.hosts[0] == '\0');
	check_is_open(&out.items[0]);
}

/* With --allow of the same: deny wins. */
static void check_denied(const struct allowlist_entry *t, struct arena *a)
{
	struct endpoints out = { 0 };
	struct cj_error err = { 0 };
	static struct names names; /* its table is large */

	assert(!t->name || t->last_port == UINT16_MAX);
	if (!t->name) {
		int rc = allowlist_deny(t, 1, a, &out, &err);
		assert(rc == 0 && out.ndenied == 1);
	}
	names.has_ipv6 = true;
	names.rules = (struct names_rules){
		.is_list = true, .allow = t, .nallow = 1, .deny = t, .ndeny = 1, .endpoints = &out
	};
	if (t->name)
		assert(!names_may_ask(&names.rules, t->name) &&
		       !names_may_reach(&names.rules, t->name, 443));
	else if (t->first_port == 0)
		assert(names_take(&names, &(struct names_answer){ .name = "a.example" }, &t->net.ip,
				  1) == NAMES_CLOSED);
	assert(names.count == 0);
}

static void check_target(const char *text)
{
	struct arena arena auto_arena = { 0 };
	struct allowlist_entry t = { 0 }, denied = { 0 };
	struct cj_error err = { 0 };

	if (allowlist_parse(text, &arena, &t, &err) < 0) {
		assert(err.code == EINVAL && err.msg[0] == '\'' && !t.text);
		return;
	}
	if (allowlist_parse_denied(text, &arena, &denied, &err) == 0)
		check_denied(&denied, &arena);
	else
		assert(t.name && t.first_port > 0 && err.msg[0] == '\'' && !denied.text);
	assert(strcmp(t.text, text) == 0 && t.first_port <= t.last_port && t.last_port > 0);
	if (t.name) {
		check_name(t.name);
		check_listed(&t);
	} else {
		assert(!t.is_wildcard);
		check_net(&t.net);
		check_resolved(&t, &arena);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	auto_free char *text = bytes_text((struct bytes){ bytes, size });

	check_ip(text);
	check_target(text);
	return 0;
}
