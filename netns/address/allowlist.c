/* SPDX-License-Identifier: Apache-2.0 */
/* Parses one --allow.  Pure; allowlist_resolve.c looks up names. */
#include "netns/address/allowlist.h"

#include <string.h>

#include "runtime/base/text.h"

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
		return cj_reject(err, "'%.100s' has no closing bracket", text);
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

	if (strstr(text, "://"))
		return cj_reject(
		    err, "'%.100s' is a URL; write its host alone, as in example.com:443", text);
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
		return cj_reject(err, "'%.100s': a port is a number from 1 to 65535", text);
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
		return cj_reject(err, "'%.100s': there are no wildcards; name each host", text);
	if (is_legacy_address(name))
		return cj_reject(err,
				 "'%.100s' is no address in the accepted form; write four decimal "
				 "numbers, as in 192.0.2.1",
				 text);
	if (!is_host_name(name))
		return cj_reject(err,
				 "'%.100s' is no host name: parts of letters, digits and '-', "
				 "at most %d long, with '.' between them, at most %d in all",
				 text, LABEL_SIZE_MAX, NAME_SIZE_MAX);
	return 0;
}

static int check_net(const char *text, const char *host, struct allowlist_entry *out,
		     struct cj_error *err)
{
	if (ip_net_parse(host, &out->net))
		return 0;
	return cj_reject(err,
			 "'%.100s' is no network: write the length of the prefix after '/', "
			 "and set no bit after the prefix, as in 10.0.0.0/8",
			 text);
}

static int parse_host(const char *text, const struct parts *parts, struct allowlist_entry *out,
		      struct cj_error *err)
{
	/* split() found a host, or else it failed;
	 * NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker) */
	bool has_colon = strchr(parts->host, ':') != NULL;

	if (parts->has_brackets && !has_colon)
		return cj_reject(err, "'%.100s': only an IPv6 address may be in brackets", text);
	if (strchr(parts->host, '/'))
		return check_net(text, parts->host, out, err);
	if (ip_net_parse(parts->host, &out->net))
		return 0;
	if (has_colon)
		return cj_reject(err,
				 "'%.100s' is no IPv6 address; with a port write it in "
				 "brackets, as in [2001:db8::1]:443",
				 text);
	out->name = parts->host;
	return check_name(text, parts->host, err);
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
