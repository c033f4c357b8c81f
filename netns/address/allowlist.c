/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses --allow and --deny, looks up their names, and checks each address.
 *
 * What is looked up here is not looked up again, so a name that changes its address (DNS
 * rebinding) has no effect: the rules and the jail's hosts(5) have the addresses found here.
 * names.h has those that the program looks up.
 */
#include "netns/address/allowlist.h"

#include "netns/address/name_lookup.h"
#include "netns/address/ranges.h"
#include "runtime/base/scope.h"
#include "runtime/base/text.h"

#define CLASS_TEXT_MAX 160 /* the names of all classes of addresses in a row */
#define NAME_SIZE_MAX  253 /* RFC 1035 2.3.4, without the dot of the root */
#define LABEL_SIZE_MAX 63

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS  "0123456789"

/* The text in parts; `host` without its brackets. */
struct parts {
	char *host;
	const char *port; /* NULL: none was given */
	bool has_brackets;
};

static int split_brackets(const char *text, char *copy, struct parts *out, struct cj_error *err)
{
	char *end = strchr(copy, ']');

	if (!end)
		return cj_reject(err,
				 "'%.100s' has no closing bracket; write it as in "
				 "[2001:db8::1]:443",
				 text);
	*end++ = '\0';
	if (*end != '\0' && *end != ':')
		return cj_reject(err, "'%.100s': only ':PORT' may follow ']'", text);
	out->host = copy + 1;
	out->port = *end == ':' ? end + 1 : NULL;
	out->has_brackets = true;
	return 0;
}

/* More than one colon and no brackets: all of it is an IPv6 address. */
static int split(const char *text, char *copy, struct parts *out, struct cj_error *err)
{
	char *colon = strchr(copy, ':');
	const size_t address = strspn(text, DIGITS "abcdefABCDEF:.[]*");

	if (strstr(text, "://"))
		return cj_reject(
		    err, "'%.100s' is a URL; write its host alone, as in example.com:443", text);
	if (strchr(text, '/') && (address == 0 || text[address] != '/'))
		return cj_reject(err,
				 "'%.100s': only an address has a '/' behind it; write a host "
				 "alone, as in example.com:443",
				 text);
	if (copy[0] == '[')
		return split_brackets(text, copy, out, err);
	out->host = copy;
	if (colon && !strchr(colon + 1, ':')) {
		*colon = '\0';
		out->port = colon + 1;
	}
	return 0;
}

static int parse_port(const char *text, const char *port, struct allowlist_entry *out,
		      struct cj_error *err)
{
	struct cj_error ignored = { 0 };
	uint64_t number = 0;

	if (!port) {
		out->last_port = UINT16_MAX;
		return 0;
	}
	if (parse_u64(port, 1, UINT16_MAX, &number, &ignored) < 0)
		return cj_reject(
		    err, "'%.100s': a port is a number from 1 to 65535, as in example.com:443",
		    text);
	out->first_port = out->last_port = (uint16_t)number;
	return 0;
}

static bool is_label(const char *label, size_t size)
{
	return size >= 1 && size <= LABEL_SIZE_MAX && strspn(label, LETTERS DIGITS "-") >= size &&
	       label[0] != '-' && label[size - 1] != '-';
}

/* RFC 1123 2.1; stricter than the DNS, because the name is written to a hosts(5) file. */
static bool is_host_name(const char *name)
{
	if (strlen(name) > NAME_SIZE_MAX)
		return false;
	for (;;) {
		size_t size = strcspn(name, ".");

		if (!is_label(name, size))
			return false;
		if (name[size] == '\0')
			return true;
		name += size + 1;
	}
}

/* Resolvers parse "127.1", "0x7f000001" and the like as addresses: the last label decides. */
static bool is_legacy_address(const char *name)
{
	const char *dot = strrchr(name, '.'), *last = dot ? dot + 1 : name;

	if (last[0] == '0' && (last[1] == 'x' || last[1] == 'X'))
		return last[2 + strspn(last + 2, DIGITS "abcdefABCDEF")] == '\0';
	return last[0] != '\0' && last[strspn(last, DIGITS)] == '\0';
}

static int check_name(const char *text, const char *name, struct cj_error *err)
{
	if (name[0] == '\0')
		return cj_reject(err,
				 "'%.100s' names no host; write HOST, ADDRESS or CIDR, with "
				 "or without ':PORT' after it",
				 text);
	if (strchr(name, '*'))
		return cj_reject(err,
				 "'%.100s': a '*' stands for whole names only at the beginning, "
				 "as in *.example.com",
				 text);
	if (strchr(name, ','))
		return cj_reject(err,
				 "'%.100s' has a comma; name one destination, and each other one "
				 "by itself",
				 text);
	if (is_legacy_address(name))
		return cj_reject(err,
				 "'%.100s' is no address in the accepted form; write four decimal "
				 "numbers, as in 192.0.2.1",
				 text);
	if (name[strlen(name) - 1] == '.')
		return cj_reject(err, "'%.100s' is no host name here; leave out the dot at its end",
				 text);
	if (!is_host_name(name))
		return cj_reject(err,
				 "'%.100s' is no host name: parts of letters, digits and '-', "
				 "at most %d long, with '.' between them, at most %d in all; other "
				 "letters are written in Punycode",
				 text, LABEL_SIZE_MAX, NAME_SIZE_MAX);
	return 0;
}

static int parse_host(const char *text, const struct parts *parts, struct allowlist_entry *out,
		      struct cj_error *err)
{
	/* split() found a host, or else it failed;
	 * NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker) */
	bool has_colon = strchr(parts->host, ':') != NULL;

	if (parts->has_brackets && !has_colon)
		return cj_reject(err, "'%.100s': only an IPv6 address may be in brackets", text);
	if (ip_net_parse(parts->host, &out->net))
		return 0;
	if (strchr(parts->host, '/'))
		return cj_reject(
		    err,
		    "'%.100s' is no network: write the length of the prefix after '/', "
		    "and set no bit after the prefix, as in 10.0.0.0/8",
		    text);
	if (has_colon)
		return cj_reject(err,
				 "'%.100s' is no IPv6 address; with a port write it in "
				 "brackets, as in [2001:db8::1]:443",
				 text);
	char *name = parts->host;
	out->is_wildcard = out->is_live = strncmp(name, "*.", 2) == 0;
	if (out->is_wildcard)
		name += 2;
	out->name = name;
	if (check_name(text, name, err) < 0)
		return -err->code;
	if (out->is_wildcard && !strchr(name, '.'))
		return cj_reject(err,
				 "'%.100s' is all of a public suffix; name a domain in it, "
				 "as in *.example.%.40s",
				 text, name);
	for (; *name != '\0'; name++)
		if (*name >= 'A' && *name <= 'Z')
			*name = (char)(*name - 'A' + 'a');
	return 0;
}

int allowlist_parse(const char *text, struct arena *a, struct allowlist_entry *out,
		    struct cj_error *err)
{
	struct allowlist_entry entry = { .text = arena_strdup(a, text) };
	struct parts parts = { 0 };
	char *copy = arena_strdup(a, text);

	if (!entry.text || !copy)
		return cj_fail(err, ENOMEM, "read '%.100s'", text);
	if (split(text, copy, &parts, err) < 0 || parse_port(text, parts.port, &entry, err) < 0 ||
	    parse_host(text, &parts, &entry, err) < 0)
		return -err->code;
	*out = entry;
	return 0;
}

int allowlist_parse_denied(const char *text, struct arena *a, struct allowlist_entry *out,
			   struct cj_error *err)
{
	struct allowlist_entry entry = { 0 };

	if (allowlist_parse(text, a, &entry, err) < 0)
		return -err->code;
	if (entry.name && entry.first_port > 0)
		return cj_reject(err,
				 "'%.100s': a name is denied with all of its ports; write %s%s",
				 text, entry.is_wildcard ? "*." : "", entry.name);
	*out = entry;
	return 0;
}

int allowlist_parse_all(const struct strings *texts, allowlist_parser *parse, struct arena *a,
			struct allowlist_entry **out, struct cj_error *err)
{
	if (texts->count > ALLOWLIST_MAX)
		return cj_reject(err, "more than %d destinations", ALLOWLIST_MAX);
	struct allowlist_entry *list = arena_array(a, texts->count + 1, sizeof(*list));
	if (!list)
		return cj_fail(err, ENOMEM, "read the destinations");
	for (size_t i = 0; i < texts->count; i++)
		if (parse(texts->items[i], a, &list[i], err) < 0)
			return -err->code;
	*out = list;
	return 0;
}

const struct allowlist_entry *allowlist_wildcard(const struct allowlist_entry *entries, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (entries[i].is_wildcard)
			return &entries[i];
	return NULL;
}

bool allowlist_has_wildcard(const struct allowlist_entry *entries, size_t n)
{
	return allowlist_wildcard(entries, n) != NULL;
}

void allowlist_make_live(struct allowlist_entry *entries, size_t n)
{
	for (size_t i = 0; i < n; i++)
		entries[i].is_live = entries[i].name != NULL;
}

struct resolving {
	struct arena *arena;
	struct endpoints *out;
	bool may_be_private;
	char *hosts; /* ALLOWLIST_HOSTS_MAX bytes; NULL before the first name */
	size_t hosts_size;
};

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
	return ip_compare(&i->first, &e->last) <= 0 && ip_compare(&i->last, &e->first) >= 0;
}

/* Refuses: names the closed address and its class. */
static int refuse(const struct allowlist_entry *t, const struct endpoint *e,
		  const struct range_interval *i, struct cj_error *err)
{
	bool begins_before = ip_compare(&e->first, &i->first) < 0;
	const struct ip *ip = begins_before ? &i->first : &e->first;
	const char *remedy = never_opened(i->class), *class = net_class_names[i->class];
	const char *never = remedy ? ", and --allow can't open that" : "";
	char text[IP_TEXT_MAX];

	if (t->name)
		cj_refuse(err, "it points to %s, which is %s%s", ip_format(ip, text), class, never);
	else if (ip_equal(&e->first, &e->last))
		cj_refuse(err, "the address is %s%s", class, never);
	else
		cj_refuse(err, "it has %s in it, which is %s%s", ip_format(ip, text), class, never);
	return cj_hint(err, "%s",
		       remedy ? remedy : "add --allow-private if the program is to reach it");
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

/* One warning for each entry, with all its classes. */
static int warn_opened(struct resolving *r, const struct allowlist_entry *t, unsigned classes,
		       struct cj_error *err)
{
	char text[CLASS_TEXT_MAX] = "";

	if (classes == 0)
		return 0;
	for (unsigned class = 0; class < NET_RANGE_CLASSES; class ++) {
		if (classes & 1u << class)
			text_append(text, sizeof(text), "%s%s", text[0] ? ", " : "",
				    net_class_names[class]);
	}
	const char *warning = arena_printf(
	    r->arena, "--allow '%.100s' opens addresses that are closed by default: %s", t->text,
	    text);
	if (!warning || strings_add(&r->out->warnings, r->arena, warning) < 0)
		return cj_fail(err, ENOMEM, "keep a warning");
	return 0;
}

bool endpoint_covers(const struct endpoint *wide, const struct endpoint *e)
{
	return wide->first.family == e->first.family && ip_compare(&wide->first, &e->first) <= 0 &&
	       ip_compare(&wide->last, &e->last) >= 0 && wide->first_port <= e->first_port &&
	       wide->last_port >= e->last_port;
}

/* Adds `e` unless an item covers it, and removes the items that it covers. */
static int keep(struct resolving *r, const struct endpoint *e, struct cj_error *err)
{
	struct endpoint *items = r->out->items;
	size_t kept = 0;

	for (size_t i = 0; i < r->out->count; i++) {
		if (endpoint_covers(&items[i], e))
			return 0; /* open already */
	}
	for (size_t i = 0; i < r->out->count; i++) {
		if (!endpoint_covers(e, &items[i]))
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

/* Opens the addresses from `first` to `last`. */
static int take(struct resolving *r, const struct allowlist_entry *t, struct ip first,
		struct ip last, unsigned *classes, struct cj_error *err)
{
	const struct endpoint e = { first, last, t->first_port, t->last_port };
	int rc = check_endpoint(r, t, &e, classes, err);
	return rc < 0 ? rc : keep(r, &e, err);
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
		if (take(r, t, found[i], found[i], classes, err) < 0 ||
		    add_host(r, t->name, &found[i], err) < 0)
			return -err->code;
	}
	return 0;
}

static int resolve(struct resolving *r, const struct allowlist_entry *t, struct cj_error *err)
{
	unsigned classes = 0;
	int rc = t->name ? resolve_name(r, t, &classes, err)
			 : take(r, t, t->net.ip, ip_net_last(&t->net), &classes, err);

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
		if (!entries[i].is_live && resolve(&r, &entries[i], err) < 0)
			return -err->code;
	}
	if (r.hosts)
		found.hosts = r.hosts;
	*out = found;
	return 0;
}

static int deny(struct resolving *r, const struct allowlist_entry *t, struct cj_error *err)
{
	struct endpoint e = { t->net.ip, ip_net_last(&t->net), t->first_port, t->last_port };
	size_t count = 0;

	if (!t->name)
		return keep(r, &e, err);
	auto_free struct ip *found = calloc(NAME_ADDRESSES_MAX, sizeof(*found));
	if (!found)
		return cj_fail(err, ENOMEM, "look up the name");
	if (name_ask(t->name, found, &count, err) < 0 && err->code != ENOENT)
		return -err->code;
	*err = (struct cj_error){ 0 }; /* the caller may look at it alone */
	for (size_t i = 0; i < count; i++) {
		e.first = e.last = found[i];
		if (keep(r, &e, err) < 0)
			return -err->code;
	}
	return 0;
}

int allowlist_deny(const struct allowlist_entry *entries, size_t n, struct arena *a,
		   struct endpoints *out, struct cj_error *err)
{
	struct endpoints found = { 0 };
	struct resolving r = { .arena = a, .out = &found };

	if (n > 0)
		found.items = arena_array(a, ENDPOINTS_MAX, sizeof(*found.items));
	if (n > 0 && !found.items)
		return cj_fail(err, ENOMEM, "resolve --deny");
	for (size_t i = 0; i < n; i++)
		if (!entries[i].is_wildcard && deny(&r, &entries[i], err) < 0)
			return cj_wrap(err, "'%.100s'", entries[i].text);
	out->denied = found.items;
	out->ndenied = found.count;
	return 0;
}
