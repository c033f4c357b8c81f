/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Resolves the allow list: looks up names and checks each address.  Acts.
 *
 * No name is looked up again later, so a name that changes its address (DNS rebinding) has no
 * effect: the rules and the jail's hosts(5) have the addresses found here.
 */
#include "netns/address/allowlist.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "netns/address/name_lookup.h"
#include "netns/address/ranges.h"
#include "runtime/base/scope.h"
#include "runtime/base/text.h"

#define CLASS_TEXT_MAX 160 /* the names of all classes of addresses in a row */

struct resolving {
	struct arena *arena;
	struct endpoints *out;
	bool may_be_private;
	char *hosts; /* ALLOWLIST_HOSTS_MAX bytes; NULL before the first name */
	size_t hosts_size;
};

/* --- checking ----------------------------------------------------------------------- */

/* Classes that no option opens: each would lead to this host, to many hosts, or around the
 * table. */
static const char *never_opened(enum net_class class)
{
	switch (class) {
	case NET_LOOPBACK:
		return "--connect tcp:127.0.0.1:PORT shows the program one port of this host";
	case NET_MULTICAST:
		return "name the address of one machine";
	case NET_MAPPED:
	case NET_TRANSLATED:
		return "write the IPv4 address that it stands for";
	default:
		return NULL;
	}
}

static bool overlaps(const struct range_interval *i, const struct endpoint *e)
{
	return memcmp(i->first.bytes, e->last.bytes, sizeof(i->first.bytes)) <= 0 &&
	       memcmp(i->last.bytes, e->first.bytes, sizeof(i->last.bytes)) >= 0;
}

/* Refuses: names the closed address and its class. */
static int refuse(const struct allowlist_entry *t, const struct endpoint *e,
		  const struct range_interval *i, struct cj_error *err)
{
	bool begins_before = memcmp(e->first.bytes, i->first.bytes, sizeof(i->first.bytes)) < 0;
	const struct ip *ip = begins_before ? &i->first : &e->first;
	const char *remedy = never_opened(i->class), *class = net_class_names[i->class];
	const char *never = remedy ? ", and --allow can't open that" : "";
	char text[IP_TEXT_MAX];
	int rc;

	if (t->name)
		rc = cj_reject(err, "it points to %s, which is %s%s", ip_format(ip, text), class,
			       never);
	else if (ip_equal(&e->first, &e->last))
		rc = cj_reject(err, "the address is %s%s", class, never);
	else
		rc = cj_reject(err, "it has %s in it, which is %s%s", ip_format(ip, text), class,
			       never);
	cj_hint(err, "%s", remedy ? remedy : "add --allow-private if the program is to reach it");
	return rc;
}

/* Adds the classes of the closed ranges that `e` touches to *out_classes, a bit each. */
static int check_endpoint(const struct resolving *r, const struct allowlist_entry *t,
			  const struct endpoint *e, unsigned *out_classes, struct cj_error *err)
{
	struct range_interval flat[RANGE_INTERVALS_MAX];
	size_t count = ranges_flatten(e->first.family, flat);
	const struct range_interval *closed = NULL;

	for (size_t i = 0; i < count; i++) {
		if (!overlaps(&flat[i], e))
			continue;
		*out_classes |= 1u << flat[i].class;
		/* report a range that can never be opened, else the first one */
		if (!closed || (never_opened(flat[i].class) && !never_opened(closed->class)))
			closed = &flat[i];
	}
	if (closed && (!r->may_be_private || never_opened(closed->class)))
		return refuse(t, e, closed, err);
	return 0;
}

static void join_classes(unsigned classes, char out[static CLASS_TEXT_MAX])
{
	size_t used = 0;

	for (unsigned class = 0; class < NET_RANGE_CLASSES; class ++) {
		if (classes & 1u << class)
			used += (size_t)snprintf(out + used, CLASS_TEXT_MAX - used, "%s%s",
						 used > 0 ? ", " : "", net_class_names[class]);
	}
}

/* One warning for each entry, with all its classes. */
static int warn_opened(struct resolving *r, const struct allowlist_entry *t, unsigned classes,
		       struct cj_error *err)
{
	char text[CLASS_TEXT_MAX] = "";

	if (classes == 0)
		return 0;
	join_classes(classes, text);
	const char *warning = arena_printf(
	    r->arena, "--allow '%.100s' opens addresses that are closed by default: %s", t->text,
	    text);
	if (!warning || strings_add(&r->out->warnings, r->arena, warning) < 0)
		return cj_fail(err, ENOMEM, "keep a warning");
	return 0;
}

/* --- keeping ------------------------------------------------------------------------ */

static bool covers(const struct endpoint *wide, const struct endpoint *e)
{
	return wide->first.family == e->first.family &&
	       memcmp(wide->first.bytes, e->first.bytes, sizeof(e->first.bytes)) <= 0 &&
	       memcmp(wide->last.bytes, e->last.bytes, sizeof(e->last.bytes)) >= 0 &&
	       wide->first_port <= e->first_port && wide->last_port >= e->last_port;
}

/* Adds `e` unless an item covers it, and removes the items that it covers. */
static int keep(struct resolving *r, const struct endpoint *e, struct cj_error *err)
{
	struct endpoint *items = r->out->items;
	size_t kept = 0;

	for (size_t i = 0; i < r->out->count; i++) {
		if (covers(&items[i], e))
			return 0; /* open already */
	}
	for (size_t i = 0; i < r->out->count; i++) {
		if (!covers(e, &items[i]))
			items[kept++] = items[i];
	}
	if (kept == ENDPOINTS_MAX)
		return cj_reject_as(err, E2BIG, "all of them together are more than %d addresses",
				    ENDPOINTS_MAX);
	items[kept] = *e;
	r->out->count = kept + 1;
	return 0;
}

/* `name` has only letters, digits, '-' and '.': allowlist_parse() checked it. */
static int add_host(struct resolving *r, const char *name, const struct ip *ip,
		    struct cj_error *err)
{
	char address[IP_TEXT_MAX], line[IP_TEXT_MAX + 256 + sizeof("\t")];

	(void)snprintf(line, sizeof(line), "%s\t%s", ip_format(ip, address), name);
	if (text_has_line(r->hosts, line))
		return 0;

	const size_t size = strlen(line) + 1, room = ALLOWLIST_HOSTS_MAX - r->hosts_size;
	if (size >= room)
		return cj_reject_as(err, E2BIG,
				    "its addresses don't fit into /etc/hosts (%d bytes)",
				    ALLOWLIST_HOSTS_MAX);
	(void)snprintf(r->hosts + r->hosts_size, room, "%s\n", line);
	r->hosts_size += size;
	return 0;
}

/* --- looking up --------------------------------------------------------------------- */

static int take_address(struct resolving *r, const struct allowlist_entry *t, const struct ip *ip,
			unsigned *classes, struct cj_error *err)
{
	const struct endpoint e = { *ip, *ip, t->first_port, t->last_port };
	int rc = check_endpoint(r, t, &e, classes, err);

	if (rc == 0)
		rc = keep(r, &e, err);
	return rc < 0 ? rc : add_host(r, t->name, ip, err);
}

static int resolve_name(struct resolving *r, const struct allowlist_entry *t, unsigned *classes,
			struct cj_error *err)
{
	size_t count = 0;

	if (!r->hosts)
		r->hosts = arena_alloc(r->arena, ALLOWLIST_HOSTS_MAX);
	if (!r->hosts)
		return cj_fail(err, ENOMEM, "write /etc/hosts");
	auto_free struct ip *found = calloc(NAME_ADDRESSES_MAX, sizeof(*found));
	if (!found)
		return cj_fail(err, ENOMEM, "look up the name");
	if (name_ask(t->name, found, &count, err) < 0)
		return -err->code;
	for (size_t i = 0; i < count; i++) {
		if (take_address(r, t, &found[i], classes, err) < 0)
			return -err->code;
	}
	return 0;
}

static int resolve_net(struct resolving *r, const struct allowlist_entry *t, unsigned *classes,
		       struct cj_error *err)
{
	const struct endpoint e = { t->net.ip, ip_net_last(&t->net), t->first_port, t->last_port };
	int rc = check_endpoint(r, t, &e, classes, err);

	return rc < 0 ? rc : keep(r, &e, err);
}

static int resolve(struct resolving *r, const struct allowlist_entry *t, struct cj_error *err)
{
	unsigned classes = 0;
	int rc = t->name ? resolve_name(r, t, &classes, err) : resolve_net(r, t, &classes, err);

	r->out->opens_closed_range |= classes != 0;
	if (rc == 0)
		rc = warn_opened(r, t, classes, err);
	return rc < 0 ? cj_wrap(err, "--allow '%.100s'", t->text) : 0;
}

int allowlist_resolve(const struct allowlist_entry *entries, size_t n, bool may_be_private,
		      struct arena *a, struct endpoints *out, struct cj_error *err)
{
	struct endpoints found = { .hosts = "" };
	struct resolving r = { .arena = a, .out = &found, .may_be_private = may_be_private };

	if (n > 0)
		found.items = arena_array(a, ENDPOINTS_MAX, sizeof(*found.items));
	if (n > 0 && !found.items)
		return cj_fail(err, ENOMEM, "resolve --allow");
	for (size_t i = 0; i < n; i++) {
		if (resolve(&r, &entries[i], err) < 0)
			return -err->code;
	}
	if (r.hosts)
		found.hosts = r.hosts;
	*out = found;
	return 0;
}
