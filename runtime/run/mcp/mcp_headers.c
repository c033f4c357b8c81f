/* SPDX-License-Identifier: Apache-2.0 */
/* Headers compared with bodies.  Pure. */
#include "runtime/run/mcp/mcp_headers.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "runtime/base/scope.h"
#include "runtime/base/text.h"

static const char encoded_before[] = "=?base64?", encoded_after[] = "?=";

static int refuse(struct mcp_fault *fault, const char *name, const char *why)
{
	return mcp_refuse(fault, MCP_HEADER_MISMATCH, "the header %s %s", name, why);
}

static int check(const char *name, const char *value, const char *body, struct mcp_fault *fault)
{
	if (!value)
		return refuse(fault, name, "is missing");
	if (!body || strcmp(value, body) != 0)
		return refuse(fault, name, "does not match the body");
	return 0;
}

/* --- Mcp-Name, which may be encoded -------------------------------------------------- */

/* The length of the base64 in the value, whose start is *out; 0: it is not encoded. */
static size_t find_encoded(const char *value, const char **out)
{
	size_t before = sizeof(encoded_before) - 1, after = sizeof(encoded_after) - 1;
	size_t size = strlen(value);

	if (size <= before + after || strncmp(value, encoded_before, before) != 0 ||
	    strcmp(value + size - after, encoded_after) != 0)
		return 0;
	*out = value + before;
	return size - before - after;
}

static bool equals_encoded(const char *base64, size_t size, const char *body)
{
	auto_free char *bytes = malloc(TEXT_BASE64_ROOM(size) + 1);
	size_t count = 0;

	return bytes && text_base64_decode(base64, size, bytes, &count) == 0 &&
	       count == strlen(body) && memcmp(bytes, body, count) == 0;
}

/* The member of the parameters that Mcp-Name repeats; NULL: none. */
static const char *named_member(const char *method)
{
	static const char *const rows[][2] = { { "tools/call", "name" },
					       { "tasks/get", "taskId" },
					       { "tasks/update", "taskId" },
					       { "tasks/cancel", "taskId" } };

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (strcmp(rows[i][0], method) == 0)
			return rows[i][1];
	return NULL;
}

static int check_name(const struct mcp_headers *h, const struct mcp_message *m,
		      struct mcp_fault *fault)
{
	static const char name[] = "Mcp-Name";
	const char *member = named_member(m->method), *base64 = NULL;
	const char *body = member ? json_get_text(m->params, member) : NULL;

	if (!body)
		return 0;
	size_t size = h->name ? find_encoded(h->name, &base64) : 0;
	if (size == 0)
		return check(name, h->name, body, fault);
	return equals_encoded(base64, size, body) ? 0
						  : refuse(fault, name, "does not match the body");
}

int mcp_headers_check(const struct mcp_headers *h, const struct mcp_message *m, const char *version,
		      struct mcp_fault *fault)
{
	if (check("MCP-Protocol-Version", h->version, version, fault) < 0 ||
	    check("Mcp-Method", h->method, m->method, fault) < 0)
		return -EINVAL;
	return check_name(h, m, fault);
}

/* --- Accept ----------------------------------------------------------------------------- */

/* One item without its parameters; a part of it may be a star. */
static bool item_allows(const char *item, size_t size, const char *type)
{
	const char *slash = strchr(type, '/');
	size_t before = slash ? (size_t)(slash - type) + 1 : 0;

	while (size > 0 && strchr(" \t", item[size - 1]))
		size--;
	if (size == 3 && strncmp(item, "*/*", 3) == 0)
		return true;
	if (size == before + 1 && item[before] == '*')
		return strncasecmp(item, type, before) == 0;
	return size == strlen(type) && strncasecmp(item, type, size) == 0;
}

bool mcp_headers_accept(const char *accept, const char *type)
{
	if (!accept)
		return true;
	while (*accept) {
		accept += strspn(accept, " \t,");
		if (item_allows(accept, strcspn(accept, ",;"), type))
			return true;
		accept += strcspn(accept, ",");
	}
	return false;
}
