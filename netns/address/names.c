/* SPDX-License-Identifier: Apache-2.0 */
#include "netns/address/names.h"

#include "netns/address/ranges.h"

static bool has_name(const struct allowlist_entry *e, const char *name)
{
	if (!e->name)
		return false;
	const size_t size = strlen(name), end = strlen(e->name);
	if (!e->is_wildcard)
		return strcmp(name, e->name) == 0;
	return size > end + 1 && name[size - end - 1] == '.' &&
	       strcmp(name + size - end, e->name) == 0;
}

bool names_has(const struct allowlist_entry *entries, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (has_name(&entries[i], name))
			return true;
	return false;
}

bool names_may_ask(const struct names_rules *rules, const char *name)
{
	return !names_has(rules->deny, rules->ndeny, name) &&
	       (!rules->is_list || names_has(rules->allow, rules->nallow, name));
}

bool names_may_reach(const struct names_rules *rules, const char *name, uint16_t port)
{
	if (names_has(rules->deny, rules->ndeny, name))
		return false;
	for (size_t i = 0; i < rules->nallow; i++)
		if (has_name(&rules->allow[i], name) && rules->allow[i].first_port <= port &&
		    port <= rules->allow[i].last_port)
			return true;
	return !rules->is_list;
}

static bool is_denied(const struct names_rules *rules, const struct endpoint *e)
{
	for (size_t i = 0; i < rules->endpoints->ndenied; i++)
		if (endpoint_covers(&rules->endpoints->denied[i], e))
			return true;
	return false;
}

static bool is_listed(const struct endpoints *listed, const struct ip *ip)
{
	for (size_t i = 0; i < listed->count; i++) {
		const struct endpoint *e = &listed->items[i];
		if (e->first.family == ip->family && ip_compare(&e->first, ip) <= 0 &&
		    ip_compare(ip, &e->last) <= 0)
			return true;
	}
	return false;
}

static bool is_same(const struct endpoint *a, const struct endpoint *b)
{
	return ip_equal(&a->first, &b->first) && a->first_port == b->first_port &&
	       a->last_port == b->last_port;
}

/* The place of `e`: its own, or one whose time is over, or a new one; NULL: there is none. */
static struct names_open *place_of(struct names *n, const struct endpoint *e, uint64_t now_ms)
{
	struct names_open *over = NULL;
	for (size_t i = 0; i < n->count; i++) {
		if (is_same(&n->open[i].endpoint, e))
			return &n->open[i];
		if (n->open[i].until_ms <= now_ms)
			over = &n->open[i];
	}
	if (!over && n->count < NAMES_OPEN_MAX)
		over = &n->open[n->count++];
	if (over)
		*over = (struct names_open){ .endpoint = *e };
	return over;
}

static void note_answer(struct names_open *o, const struct names_answer *answer)
{
	size_t used = 0;
	(void)snprintf(o->name, sizeof(o->name), "%s", answer->name);
	o->has_more = false;
	for (size_t i = 0; i < answer->naliases && !o->has_more; i++) {
		const char *alias = answer->aliases + i * NAMES_SIZE_MAX;
		const size_t size = strlen(alias) + 1;
		o->has_more = size >= sizeof(o->aliases) - used;
		if (!o->has_more)
			memcpy(o->aliases + used, alias, size);
		used += o->has_more ? 0 : size;
	}
	o->aliases[used] = '\0';
}

static bool open_one(struct names *n, const struct names_answer *answer, const struct endpoint *e,
		     uint64_t now_ms)
{
	const uint64_t soon_ms = now_ms + 2 * NAMES_ANSWER_S * 1000;
	struct names_open *o = place_of(n, e, now_ms);
	if (!o)
		return false;
	note_answer(o, answer);
	if (o->until_ms > soon_ms)
		return true;
	o->is_new = true;
	o->until_ms = now_ms + NAMES_OPEN_S * 1000;
	return true;
}

enum names_end names_take(struct names *n, const struct names_answer *answer, const struct ip *ip,
			  uint64_t now_ms)
{
	const char *name = answer->name;
	const struct names_rules *rules = &n->rules;
	const struct endpoint all = { *ip, *ip, 0, UINT16_MAX };
	enum net_class class;
	enum names_end end = NAMES_CLOSED;
	if (!names_may_ask(rules, name) || (ip->family == 6 && !n->has_ipv6) ||
	    is_denied(rules, &all))
		return NAMES_CLOSED;
	if (ranges_find(ip, &class))
		return is_listed(rules->endpoints, ip) ? NAMES_OPEN : NAMES_CLOSED;
	if (!rules->is_list)
		return NAMES_OPEN;
	for (size_t i = 0; i < rules->nallow; i++) {
		const struct allowlist_entry *entry = &rules->allow[i];
		const struct endpoint e = { *ip, *ip, entry->first_port, entry->last_port };
		if (!has_name(entry, name) || is_denied(rules, &e))
			continue;
		if (!open_one(n, answer, &e, now_ms))
			return NAMES_FULL;
		end = NAMES_OPEN;
	}
	return end;
}

const struct endpoint *names_new(struct names *n, size_t *out_count)
{
	*out_count = 0;
	for (size_t i = 0; i < n->count; i++)
		if (n->open[i].is_new)
			n->fresh[(*out_count)++] = n->open[i].endpoint;
	return n->fresh;
}

void names_loaded(struct names *n, bool are_open)
{
	for (size_t i = 0; i < n->count; i++) {
		if (n->open[i].is_new && !are_open)
			n->open[i].until_ms = 0;
		n->open[i].is_new = false;
	}
}

/* Aliases that are not known any more could be denied. */
static bool has_denied_name(const struct names_rules *rules, const struct names_open *o)
{
	if (names_has(rules->deny, rules->ndeny, o->name) || (o->has_more && rules->ndeny > 0))
		return true;
	for (const char *alias = o->aliases; *alias; alias += strlen(alias) + 1)
		if (names_has(rules->deny, rules->ndeny, alias))
			return true;
	return false;
}

static bool is_still_open(const struct names_rules *rules, const struct names_open *o)
{
	if (has_denied_name(rules, o) || is_denied(rules, &o->endpoint))
		return false;
	for (size_t i = 0; i < rules->nallow; i++)
		if (has_name(&rules->allow[i], o->name) &&
		    rules->allow[i].first_port == o->endpoint.first_port &&
		    rules->allow[i].last_port == o->endpoint.last_port)
			return true;
	return false;
}

void names_change(struct names *n, const struct names_rules *rules, uint64_t now_ms)
{
	const size_t count = n->count;
	n->rules = *rules;
	n->count = 0;
	for (size_t i = 0; i < count && n->count < NAMES_KEPT_MAX; i++) {
		struct names_open *o = &n->open[i];
		if (o->until_ms <= now_ms || !is_still_open(rules, o))
			continue;
		o->is_new = true;
		o->until_ms = now_ms + NAMES_OPEN_S * 1000;
		n->open[n->count++] = *o;
	}
}
