/* SPDX-License-Identifier: Apache-2.0 */
/* The texts of --upstream. */
#include "netns/upstream/http_upstream.h"

#include <netinet/in.h>
#include <strings.h>

#include "runtime/base/text.h"

#define FIRST_ADDRESS 0x7f005001u /* 127.0.80.1 */

#define LOWER   "abcdefghijklmnopqrstuvwxyz"
#define LETTERS LOWER "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS  "0123456789"

#define FORM "NAME=URL[,header=NAME:[PREFIX]@FILE][,path=PREFIX][,requests=N][,bytes=SIZE]"

static bool consists_of(const char *text, const char *characters)
{
	return text[0] != '\0' && text[strspn(text, characters)] == '\0';
}

static int take_name(const char *name, struct http_upstream_spec *out, struct cj_error *err)
{
	const size_t size = strlen(name);
	if (!consists_of(name, LOWER DIGITS "-") || size > UPSTREAM_NAME_MAX || name[0] == '-' ||
	    name[size - 1] == '-')
		return cj_reject(err,
				 "'%.64s' is no name: at most %d small letters, digits and '-'",
				 name, UPSTREAM_NAME_MAX);
	out->name = name;
	return 0;
}

/* Behind the host; NULL: it is none. */
static const char *skip_host(const char *at)
{
	const bool is_ip6 = at[0] == '[';
	const size_t size = is_ip6 ? strspn(at + 1, DIGITS "abcdefABCDEF:.")
				   : strspn(at, LETTERS DIGITS "-.");
	if (size == 0 || (is_ip6 && at[1 + size] != ']'))
		return NULL;
	return at + size + (is_ip6 ? 2 : 0);
}

static int take_url(char *url, struct http_upstream_spec *out, struct cj_error *err)
{
	const bool is_https = strncmp(url, "https://", 8) == 0;
	if (!is_https && strncmp(url, "http://", 7) != 0)
		return cj_reject(err, "'%.64s' is no URL: it begins with https:// or http://", url);
	const char *end = skip_host(url + (is_https ? 8 : 7));
	uint64_t port;
	struct cj_error ignored;
	char *slash = end ? strchr(end, '/') : NULL;
	if (slash && slash[1] == '\0')
		*slash = '\0';
	else if (slash)
		return cj_reject(err, "'%.64s' has a path: write '%.*s,path=%.64s'", url,
				 (int)(slash - url), url, slash);
	if (!end || (end[0] != '\0' &&
		     (end[0] != ':' || parse_u64(end + 1, 1, UINT16_MAX, &port, &ignored) < 0)))
		return cj_reject(err, "'%.64s' is not https://HOST or https://HOST:PORT", url);
	out->url = url;
	return 0;
}

static bool is_one_of(const char *header, const char *const *headers, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strcasecmp(header, headers[i]) == 0)
			return true;
	return false;
}

bool http_upstream_is_hop(const char *header)
{
	static const char *const hops[] = { "Connection",        "Keep-Alive", "TE",      "Trailer",
					    "Transfer-Encoding", "Upgrade",    "Trailers" };
	return strncasecmp(header, "Proxy-", 6) == 0 || is_one_of(header, hops, COUNT_OF(hops));
}

bool http_upstream_is_own(const char *header)
{
	static const char *const own[] = { "Host", "Content-Length", "Expect", "Accept-Encoding" };
	return is_one_of(header, own, COUNT_OF(own));
}

static int take_header(char *text, struct http_upstream_spec *out, struct cj_error *err)
{
	char *colon = strchr(text, ':'), *at = colon ? strchr(colon, '@') : NULL;
	if (out->nheaders == UPSTREAM_HEADERS_MAX)
		return cj_reject(err, "more than %d headers", UPSTREAM_HEADERS_MAX);
	if (!at || at[1] == '\0')
		return cj_reject(err, "'header=%.64s' is not header=NAME:[PREFIX]@FILE", text);
	*colon = *at = '\0';
	if (!consists_of(text, LETTERS DIGITS "-_"))
		return cj_reject(err,
				 "'%.64s' is no name of a header, such as Authorization: letters, "
				 "digits, '-' and '_'",
				 text);
	if (http_upstream_is_hop(text) || http_upstream_is_own(text))
		return cj_reject(
		    err, "'%.64s' is cejail's own header; name another, such as Authorization",
		    text);
	for (const char *byte = colon + 1; *byte; byte++)
		if ((unsigned char)*byte < ' ' || *byte == 0x7f)
			return cj_reject(err, "the value of '%.64s' has a control character", text);
	out->headers[out->nheaders++] = (struct http_upstream_header){ text, colon + 1, at + 1 };
	return 0;
}

static int take_path(const char *path, struct http_upstream_spec *out, struct cj_error *err)
{
	if (path[0] != '/' || !consists_of(path, LETTERS DIGITS "/-._~") || strstr(path, "//") ||
	    strstr(path, "/.") != NULL)
		return cj_reject(err,
				 "'path=%.64s' is no prefix of a path, such as path=/v1/: letters, "
				 "digits, '-', '_', '~' and '.' between slashes",
				 path);
	if (strcmp(out->path, "/") != 0)
		return cj_reject(err, "'path=%.64s' is a second prefix; write one path=", path);
	out->path = path;
	return 0;
}

static int take_part(char *part, struct http_upstream_spec *out, struct cj_error *err)
{
	char *value = strchr(part, '=');
	if (!value)
		return cj_reject(err, "'%.64s' is not part of '" FORM "'", part);
	*value++ = '\0';
	if (strcmp(part, "header") == 0)
		return take_header(value, out, err);
	if (strcmp(part, "path") == 0)
		return take_path(value, out, err);
	if (strcmp(part, "requests") == 0)
		return parse_u64(value, 1, UINT32_MAX, &out->requests_max, err) < 0
			   ? cj_wrap(err, "requests=")
			   : 0;
	if (strcmp(part, "bytes") == 0)
		return parse_size(value, &out->bytes_max, err) < 0 ? cj_wrap(err, "bytes=") : 0;
	return cj_reject(err, "'%.64s=' is none of header=, path=, requests= and bytes=", part);
}

int http_upstream_parse(const char *text, struct arena *a, struct http_upstream_spec *out,
			struct cj_error *err)
{
	*out = (struct http_upstream_spec){ .path = "/",
					    .requests_max = UPSTREAM_REQUESTS,
					    .bytes_max = UPSTREAM_BYTES };
	char *rest = arena_strdup(a, text);
	if (!rest)
		return cj_fail(err, ENOMEM, "read '%.64s'", text);
	char *url = strchr(rest, '=');
	if (!url)
		return cj_reject(err, "'%.64s' is not '" FORM "'", text);
	*url++ = '\0';
	char *parts = strchr(url, ',');
	if (parts)
		*parts++ = '\0';
	if (take_name(rest, out, err) < 0 || take_url(url, out, err) < 0)
		return -err->code;
	while (parts) {
		char *part = parts;
		parts = strchr(part, ',');
		if (parts)
			*parts++ = '\0';
		if (take_part(part, out, err) < 0)
			return -err->code;
	}
	return 0;
}

uint32_t http_upstream_address(size_t i)
{
	return FIRST_ADDRESS + (uint32_t)i;
}

const char *http_upstream_hosts(const struct http_upstream_spec *specs, size_t n, struct arena *a)
{
	const char *lines = "";
	for (size_t i = 0; lines && i < n; i++) {
		const uint32_t address = http_upstream_address(i);
		lines = arena_printf(a, "%s127.0.%u.%u\t%s" UPSTREAM_DOMAIN "\n", lines,
				     address >> 8 & 0xff, address & 0xff, specs[i].name);
	}
	return lines;
}
