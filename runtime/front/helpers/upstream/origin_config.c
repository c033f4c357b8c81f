/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/front/helpers/upstream/origin.h"

#include <arpa/inet.h>

#include "netns/upstream/http_upstream.h"
#include "runtime/base/json/json.h"
#include "runtime/base/text.h"

#define CONFIG_NAME "the configuration"

/* A number that may be absent. */
static uint64_t number_or(const struct json_node *object, const char *key, uint64_t otherwise)
{
	uint64_t value;
	return json_get_u64(object, key, &value) ? value : otherwise;
}

/* A text that may be absent. */
static const char *text_or(const struct json_node *object, const char *key, const char *otherwise)
{
	const char *text = json_get_text(object, key);
	return text ? text : otherwise;
}

static bool has_part(CURLU *url, CURLUPart part)
{
	char *text = NULL;
	const bool has = curl_url_get(url, part, &text, 0) == CURLUE_OK;
	curl_free(text);
	return has;
}

/* Scheme, host and port, and nothing else. */
static int read_url(CURLU *url, struct origin *o, struct cj_error *err)
{
	char *port = NULL, *path = NULL, *host = NULL;
	struct in_addr ip;
	uint64_t number = 0;
	const bool is_web = strncmp(o->url, "https://", 8) == 0 ||
			    strncmp(o->url, "http://", 7) == 0;
	bool is_right = is_web && !strpbrk(strstr(o->url, "//") + 2, "/?#@\\") &&
			curl_url_set(url, CURLUPART_URL, o->url, 0) == CURLUE_OK &&
			curl_url_get(url, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT) == CURLUE_OK &&
			curl_url_get(url, CURLUPART_PATH, &path, 0) == CURLUE_OK &&
			curl_url_get(url, CURLUPART_HOST, &host, 0) == CURLUE_OK &&
			strlen(host) < sizeof(o->host) && strcmp(path, "/") == 0 &&
			!has_part(url, CURLUPART_USER) &&
			parse_u64(port, 1, UINT16_MAX, &number, err) == 0;
	curl_free(port);
	curl_free(path);
	if (is_right && host[0] != '[' && inet_pton(AF_INET, host, &ip) != 1)
		(void)snprintf(o->host, sizeof(o->host), "%s", host);
	curl_free(host);
	o->port = (uint16_t)number;
	return is_right
		   ? 0
		   : cj_reject(err, "the URL of '%s' is not SCHEME://HOST[:PORT] of http or https",
			       o->name);
}

static int read_header(const struct json_node *n, struct origin *o, struct cj_error *err)
{
	struct origin_header *h = &o->headers[o->nheaders];
	h->name = json_get_text(n, "name");
	h->file = json_get_text(n, "file");
	h->prefix = text_or(n, "prefix", "");
	bool is_right = h->name && h->name[0] && h->file && h->file[0] == '/' &&
			strlen(h->prefix) < UPSTREAM_VALUE_MAX;
	for (const char *c = h->name; is_right && *c; c++)
		is_right = *c > ' ' && *c < 0x7f && !strchr("()<>@,;:\\\"/[]?={}", *c);
	for (const char *c = h->prefix; is_right && *c; c++)
		is_right = (unsigned char)*c >= ' ' && *c != 0x7f;
	if (!is_right || http_upstream_is_hop(h->name) || http_upstream_is_own(h->name))
		return cj_reject(err, "a header of '%s' has no fit name, prefix or absolute file",
				 o->name);
	o->nheaders++;
	return 0;
}

static int read_origin(const struct json_node *n, struct origin *o, struct cj_error *err)
{
	const struct json_node *headers = json_get_typed(n, "headers", JSON_ARRAY);
	o->name = json_get_text(n, "name");
	o->url = json_get_text(n, "url");
	o->path = text_or(n, "path", "/");
	o->requests_max = number_or(n, "requests_max", UINT64_MAX);
	o->bytes_max = number_or(n, "bytes_max", UINT64_MAX);
	if (!o->name || !is_name(o->name) || !o->url || o->path[0] != '/')
		return cj_reject(err, "an upstream has no fit name, url or path");
	CURLU *url = curl_url();
	int rc = url ? read_url(url, o, err) : cj_fail(err, ENOMEM, "read a URL");
	curl_url_cleanup(url);
	if (rc == 0 && headers && headers->count > UPSTREAM_HEADERS_MAX)
		return cj_reject(err, "'%s' has more than %d headers", o->name,
				 UPSTREAM_HEADERS_MAX);
	for (n = headers ? headers->child : NULL; rc == 0 && n; n = n->next)
		rc = read_header(n, o, err);
	return rc;
}

int origin_read_config(const char *text, size_t size, struct arena *a, struct origin_set *out,
		       struct cj_error *err)
{
	const struct json_node *root = NULL;
	if (json_parse(CONFIG_NAME, text, size, a, &root, err) < 0)
		return -err->code;
	const struct json_node *list = json_get_typed(root, "upstreams", JSON_ARRAY);
	if (!list || list->count == 0 || list->count > UPSTREAMS_MAX)
		return cj_reject(err, "there is not one to %d 'upstreams'", UPSTREAMS_MAX);
	out->head_ms = number_or(root, "head_ms", UPSTREAM_HEAD_MS);
	out->stall_ms = number_or(root, "stall_ms", UPSTREAM_STALL_MS);
	out->origins = arena_array(a, list->count, sizeof(*out->origins));
	if (!out->origins)
		return cj_fail(err, ENOMEM, "read the configuration");
	for (const struct json_node *n = list->child; n; n = n->next)
		if (read_origin(n, &out->origins[out->count++], err) < 0)
			return -err->code;
	return 0;
}
