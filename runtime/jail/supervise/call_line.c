/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/jail/supervise/call_line.h"

#include <stdio.h>
#include <string.h>

#include "runtime/base/json/json.h"

#define ID_NUMBER_MAX "9007199254740991" /* 2^53-1: every language counts to it */

/* An integer, or a short string. */
static bool is_id(const struct json_node *node)
{
	if (node->type == JSON_STRING)
		return strlen(node->text) <= CALL_ID_MAX;
	const size_t size = node->type == JSON_NUMBER ? strlen(node->text) : 0;
	const size_t most = strlen(ID_NUMBER_MAX);
	return size > 0 && strspn(node->text, "0123456789") == size &&
	       (size < most || (size == most && strcmp(node->text, ID_NUMBER_MAX) <= 0));
}

static struct blob bytes_of(const struct json_node *node, const char *line)
{
	return (struct blob){ line + node->begin, node->end - node->begin };
}

void call_line_flatten(char *text, size_t size)
{
	for (char *at = text; (at = memchr(at, '\r', (size_t)(text + size - at))); at++)
		*at = ' ';
}

int call_line_read(char *line, size_t size, struct arena *a, struct written_call *out,
		   struct cj_error *err)
{
	const struct json_node *root;
	*out = (struct written_call){ .id = "null", .arguments = { "{}", 2 } };
	if (json_parse_capped("call", line, size, a, &root, err) < 0)
		return -err->code;
	call_line_flatten(line, size);
	if (root->type != JSON_OBJECT)
		return cj_reject(err, "a call is one JSON object");
	const struct json_node *id = json_get(root, "id"), *name = json_get(root, "name");
	const struct json_node *arguments = json_get(root, "arguments");
	if (!id || !is_id(id))
		return cj_reject(err,
				 "\"id\" must be an integer from 0 to " ID_NUMBER_MAX
				 ", or a string of at most %d bytes",
				 CALL_ID_MAX);
	struct blob written = bytes_of(id, line);
	(void)snprintf(out->id, sizeof(out->id), "%.*s", (int)written.size, written.bytes);
	if (!name || name->type != JSON_STRING)
		return cj_reject(err, "\"name\" must be the name of a tool");
	out->name = name->text;
	if (arguments && arguments->type != JSON_OBJECT)
		return cj_reject(err, "\"arguments\" must be a JSON object");
	if (root->count != (size_t)(arguments ? 3 : 2))
		return cj_reject(err, "a call has the members \"id\", \"name\" and \"arguments\", "
				      "and no other");
	if (arguments)
		out->arguments = bytes_of(arguments, line);
	return 0;
}
