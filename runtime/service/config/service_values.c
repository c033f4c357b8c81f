/* SPDX-License-Identifier: Apache-2.0 */
/* Readers of the values in the service's tables. */
#include "runtime/service/config/service_values.h"

#include <arpa/inet.h>
#include <assert.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/text.h"

#define LIST_MAX  256
#define UNLIMITED "unlimited"

/* --- values ----------------------------------------------------------------- */

static int keep_text(struct service_config *c, const char *text, const char **out,
		     struct cj_error *err)
{
	const char *copy = arena_strdup(&c->arena, text);
	if (!copy)
		return cj_fail(err, ENOMEM, "keep a setting");
	*out = copy;
	return 0;
}

static void *field_of(const struct service_key *k, void *base)
{
	return (char *)base + k->offset;
}

int service_set_count(struct service_config *c, const struct service_key *k, void *base,
		      const char *text, struct cj_error *err)
{
	uint64_t count;
	(void)c;
	assert(k->max <= UINT_MAX);
	int rc = parse_u64(text, k->min, k->max, &count, err);
	if (rc < 0)
		return rc;
	*(unsigned *)field_of(k, base) = (unsigned)count;
	return 0;
}

int service_set_flag(struct service_config *c, const struct service_key *k, void *base,
		     const char *text, struct cj_error *err)
{
	(void)c;
	return parse_bool(text, field_of(k, base), err);
}

int service_set_duration(struct service_config *c, const struct service_key *k, void *base,
			 const char *text, struct cj_error *err)
{
	uint64_t ms;
	(void)c;
	int rc = parse_duration(text, &ms, err);
	if (rc < 0)
		return rc;

	char bound[32];
	text_format_duration(ms < k->min ? k->min : k->max, bound, sizeof(bound));
	if (ms < k->min)
		return cj_reject(err, "'%s' is too short, %s is the least", text, bound);
	if (ms > k->max)
		return cj_reject(err, "'%s' is too long, %s is the most", text, bound);
	*(uint64_t *)field_of(k, base) = ms;
	return 0;
}

int service_set_bytes(struct service_config *c, const struct service_key *k, void *base,
		      const char *text, struct cj_error *err)
{
	uint64_t bytes;
	(void)c;
	int rc = parse_size_within(text, k->min, k->max, &bytes, err);
	if (rc == 0)
		*(size_t *)field_of(k, base) = (size_t)bytes;
	return rc;
}

/* The name of a socket fits its address, that of a file nearly everywhere. */
int service_set_path(struct service_config *c, const struct service_key *k, void *base,
		     const char *text, struct cj_error *err)
{
	size_t size = strlen(text);
	if (text[0] != '/')
		return cj_reject(err, "'%s' is not an absolute path", text);
	if (size > k->max)
		return cj_reject(err, "the path has %zu characters, %u are the most", size,
				 (unsigned)k->max);
	return keep_text(c, text, field_of(k, base), err);
}

int service_set_mode(struct service_config *c, const struct service_key *k, void *base,
		     const char *text, struct cj_error *err)
{
	static const struct {
		const char *text;
		unsigned mode;
	} modes[] = { { "0600", 0600 }, { "0660", 0660 }, { "0666", 0666 } };
	(void)c;
	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		if (strcmp(modes[i].text, text) != 0)
			continue;
		*(unsigned *)field_of(k, base) = modes[i].mode;
		return 0;
	}
	return cj_reject(err, "'%s' is no mode of a socket: 0600, 0660 or 0666", text);
}

int service_set_group(struct service_config *c, const struct service_key *k, void *base,
		      const char *text, struct cj_error *err)
{
	size_t size = strcspn(text, ":/, \t\n");
	if (size == 0 || text[size] != '\0' || size > k->max)
		return cj_reject(err, "'%s' is not a group's name", text);
	return keep_text(c, text, field_of(k, base), err);
}

int tcp_address_parse(const char *text, union tcp_address *out, socklen_t *out_size,
		      struct cj_error *err)
{
	const char *colon = strrchr(text, ':');
	size_t size = colon ? (size_t)(colon - text) : 0;
	char host[INET6_ADDRSTRLEN + 2];
	union tcp_address a = { 0 };
	uint64_t port;
	int rc = 0;

	if (!colon || size >= sizeof(host)) {
		rc = cj_reject(err, "'%s' is not ADDRESS:PORT", text);
		cj_hint(err, "\"127.0.0.1:8090\" or \"[::1]:8090\"");
		return rc;
	}
	(void)snprintf(host, sizeof(host), "%.*s", (int)size, text);
	rc = parse_u64(colon + 1, 1, 65535, &port, err);
	if (rc < 0)
		return cj_wrap(err, "the port");
	if (strcmp(host, "[::1]") == 0) {
		a.v6.sin6_family = AF_INET6;
		a.v6.sin6_addr = (struct in6_addr)IN6ADDR_LOOPBACK_INIT;
		a.v6.sin6_port = htons((uint16_t)port);
		*out_size = sizeof(a.v6);
	} else if (inet_pton(AF_INET, host, &a.v4.sin_addr) == 1 &&
		   ntohl(a.v4.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET) {
		a.v4.sin_family = AF_INET;
		a.v4.sin_port = htons((uint16_t)port);
		*out_size = sizeof(a.v4);
	} else {
		rc = cj_reject(err, "'%s' is not an address of the loopback", host);
		cj_hint(err, "write 127.0.0.1 or [::1]; for other hosts, put a proxy with TLS "
			     "before it");
		return rc;
	}
	*out = a;
	return 0;
}

int service_set_tcp(struct service_config *c, const struct service_key *k, void *base,
		    const char *text, struct cj_error *err)
{
	union tcp_address address;
	socklen_t size;
	int rc = tcp_address_parse(text, &address, &size, err);
	return rc < 0 ? rc : keep_text(c, text, field_of(k, base), err);
}

static int check_profile(const char *text, struct cj_error *err)
{
	if (!is_name(text))
		return cj_reject(err, "'%s' is not a profile's name (a-z 0-9 _ -)", text);
	return 0;
}

int service_set_profile(struct service_config *c, const struct service_key *k, void *base,
			const char *text, struct cj_error *err)
{
	int rc = check_profile(text, err);
	return rc < 0 ? rc : keep_text(c, text, field_of(k, base), err);
}

int service_add_profile(struct service_config *c, const struct service_key *k, void *base,
			const char *text, struct cj_error *err)
{
	struct strings *list = field_of(k, base);
	const char *copy = NULL;
	int rc = check_profile(text, err);
	if (rc == 0 && list->count >= LIST_MAX)
		rc = cj_reject(err, "more than %d of them", LIST_MAX);
	if (rc == 0)
		rc = keep_text(c, text, &copy, err);
	if (rc == 0 && strings_add(list, &c->arena, copy) < 0)
		rc = cj_fail(err, ENOMEM, "keep a setting");
	return rc;
}

/* A PiB, as in profiles: more is a slip of the pen. */
int service_parse_bytes(const char *text, uint64_t *out, struct cj_error *err)
{
	uint64_t bytes;
	int rc = parse_size(text, &bytes, err);
	if (rc < 0)
		return rc;
	if (bytes > 1ull << 50)
		return cj_reject(err, "'%s' is too much, write \"" UNLIMITED "\"", text);
	*out = bytes;
	return 0;
}

int service_parse_number(const char *text, uint64_t *out, struct cj_error *err)
{
	return parse_u64(text, 1, INT_MAX, out, err);
}

/* 0, the profile's own value, is what nobody writes. */
int service_set_ceiling(struct service_config *c, const struct service_key *k, void *base,
			const char *text, struct cj_error *err)
{
	uint64_t value = CEILING_NONE;
	int rc = strcmp(text, UNLIMITED) == 0 ? 0 : k->parse(text, &value, err);
	(void)c;
	if (rc == 0)
		*(uint64_t *)field_of(k, base) = value;
	return rc;
}

/* The place of `text` among the names; `count`: it is none of them. */
static unsigned find_name(const char *const names[], unsigned count, const char *text)
{
	unsigned i = 0;

	while (i < count && strcmp(names[i], text) != 0)
		i++;
	return i;
}

int service_set_network_right(struct service_config *c, const struct service_key *k, void *base,
			      const char *text, struct cj_error *err)
{
	static const char *const names[NETWORK_RIGHT_COUNT] = {
		[NETWORK_AS_PROFILE] = "profile",
		[NETWORK_NEVER] = "none",
		[NETWORK_ANY] = "public",
	};
	(void)c;
	unsigned found = find_name(names, NETWORK_RIGHT_COUNT, text);
	if (found == NETWORK_RIGHT_COUNT)
		return cj_reject(err, "'%s' is neither 'none' nor 'profile' nor 'public'", text);
	*(enum network_right *)field_of(k, base) = found;
	return 0;
}

int service_set_session_reserve(struct service_config *c, const struct service_key *k, void *base,
				const char *text, struct cj_error *err)
{
	static const char *const names[] = { [false] = "used", [true] = "limit" };
	(void)c;
	unsigned found = find_name(names, 2, text);
	if (found == 2)
		return cj_reject(err, "'%s' is neither 'used' nor 'limit'", text);
	*(bool *)field_of(k, base) = found;
	return 0;
}
