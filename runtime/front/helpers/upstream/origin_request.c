/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/front/helpers/upstream/origin.h"

#include <arpa/inet.h>
#include <strings.h>

#include "netns/upstream/http_upstream.h"
#include "runtime/base/text.h"

#define DOMAIN ".upstream.internal"

bool origin_is_hop(const char *name, const char *named)
{
	return http_upstream_is_hop(name) || (named && http_value_lists(named, name));
}

bool origin_sends(const struct origin *o, const struct http_head *head, const char *name)
{
	if (http_upstream_is_own(name))
		return false;
	for (size_t i = 0; i < o->nheaders; i++)
		if (strcasecmp(name, o->headers[i].name) == 0)
			return false;
	return !http_head_lists(head, "Connection", name) && !origin_is_hop(name, NULL);
}

/* A server may take '\' for '/', and ignore what stands behind ';'. */
static bool has_dot_segment(const char *path, size_t size)
{
	for (size_t i = 0, end; i < size; i = end + 1) {
		end = i;
		while (end < size && path[end] != '/' && path[end] != '\\')
			end++;
		size_t length = 0;
		while (i + length < end && path[i + length] == '.')
			length++;
		if ((length == 1 || length == 2) && (i + length == end || path[i + length] == ';'))
			return true;
	}
	return false;
}

/* Decodes one level in place.  Returns the new size. */
static size_t decode(char *path, size_t size)
{
	size_t to = 0;
	for (size_t i = 0; i < size; i++, to++) {
		path[to] = path[i];
		if (path[i] != '%' || i + 2 >= size)
			continue;
		const int high = text_hex_digit(path[i + 1]), low = text_hex_digit(path[i + 2]);
		if (high < 0 || low < 0)
			continue;
		path[to] = (char)(high * 16 + low);
		i += 2;
	}
	return to;
}

/*
 * The beginning of the path is compared as it came: no encoding of it, and so no encoded slash, is
 * the prefix.  Behind it, no number of decodings makes a segment '.' or '..', so the path is its
 * own normal form (RFC 3986, 5.2.4), whatever server reads it.
 */
static int check_path(const struct origin *o, struct origin_request *r, struct cj_error *err)
{
	char path[UPSTREAM_HEAD_MAX];
	size_t size = strcspn(r->target, "?"), before = 0;
	const size_t prefix = strlen(o->path);

	r->refusal = 400;
	if (r->target[0] != '/' || strpbrk(r->target, "#\"<>"))
		return cj_reject(err, "the target of the request is not '/PATH' or '/PATH?QUERY'");
	r->refusal = 403;
	memcpy(path, r->target, size);
	do {
		if (has_dot_segment(path, size) || (before == 0 && memchr(path, '\\', size))) {
			cj_refuse(err,
				  "the path of the request has '.' or '..' as a segment, or '\\'");
			return cj_hint(err, "write the path without them");
		}
		before = size;
		size = decode(path, size);
	} while (size != before);
	if (strncmp(r->target, o->path, prefix) != 0 ||
	    (o->path[prefix - 1] != '/' && !strchr("/?", r->target[prefix]))) {
		cj_refuse(err, "the path of the request is not below '%s'", o->path);
		return cj_hint(err, "the caller of cejail chooses it with 'path=' of --upstream");
	}
	return 0;
}

/* NAME.upstream.internal, or an address of the loopback, and perhaps a port. */
static int check_host(const struct origin *o, struct origin_request *r, struct cj_error *err)
{
	const char *host = http_head_get(&r->head, "Host");
	const size_t size = host ? strcspn(host, ":") : 0, name = strlen(o->name);
	char address[INET_ADDRSTRLEN] = "";
	struct in_addr ip;
	bool is_right = size > 0;

	if (is_right && host[size] == ':')
		is_right = host[size + 1] && strspn(host + size + 1, "0123456789") < 6 &&
			   host[size + 1 + strspn(host + size + 1, "0123456789")] == '\0';
	if (is_right && size < sizeof(address))
		memcpy(address, host, size);
	if (is_right)
		is_right =
		    (inet_pton(AF_INET, address, &ip) == 1 && ntohl(ip.s_addr) >> 24 == 127) ||
		    (size == name + strlen(DOMAIN) && strncasecmp(host, o->name, name) == 0 &&
		     strncasecmp(host + name, DOMAIN, strlen(DOMAIN)) == 0);
	r->refusal = 400;
	if (is_right)
		return 0;
	cj_refuse(err, "the header Host does not name this upstream");
	return cj_hint(err, "write http://%s%s/ in the URL", o->name, DOMAIN);
}

int origin_check(const struct origin *o, char *bytes, size_t size, struct origin_request *out,
		 struct cj_error *err)
{
	const char *begin = memchr(bytes, ' ', size), *line = memchr(bytes, '\r', size);
	const char *end = begin ? memchr(begin + 1, ' ', size - (size_t)(begin + 1 - bytes)) : NULL;

	out->refusal = size > UPSTREAM_HEAD_MAX ? 431 : 400;
	out->target[0] = out->head.method[0] = '\0';
	if (size > UPSTREAM_HEAD_MAX)
		return cj_reject(err, "the head of the request has more than %d bytes",
				 UPSTREAM_HEAD_MAX);
	if (end && line && end < line) { /* otherwise the head is refused */
		memcpy(out->target, begin + 1, (size_t)(end - begin - 1));
		out->target[end - begin - 1] = '\0';
	}
	const int rc = http_head_parse(bytes, size, &out->head, err);
	if (rc == -EFBIG)
		out->refusal = 431;
	if (rc == 0 && out->head.length > INT64_MAX) {
		out->refusal = 413;
		return cj_reject(err, "the body of the request is too large");
	}
	if (rc < 0)
		return -err->code;
	const char *upgrade = http_head_get(&out->head, "Upgrade");
	out->refusal = 405;
	if (strcmp(out->head.method, "CONNECT") == 0 || strcmp(out->head.method, "TRACE") == 0)
		return cj_reject(err, "an upstream has no method %s", out->head.method);
	out->refusal = 400;
	if (upgrade && strcasecmp(upgrade, "h2c") != 0) /* which a client offers to any server */
		return cj_reject(err, "an upstream speaks HTTP/1.1 only: no Upgrade");
	out->refusal = 417;
	if (http_head_get(&out->head, "Expect") && !out->head.expects_continue)
		return cj_reject(err, "the header Expect is not '100-continue'");
	if (check_path(o, out, err) < 0 || check_host(o, out, err) < 0)
		return -err->code;
	return 0;
}
