/* SPDX-License-Identifier: Apache-2.0 */
/* The value of a call: what its program gets of a result of tools/call.  No system calls. */
#include "runtime/front/mcp/upstream/upstream_parts.h"

#include <string.h>

#include "runtime/base/text.h"

#define ERROR_TEXT_MAX (16u << 10) /* of a tool, for the program */

/* The text of a block; NULL: it has another type. */
static const char *text_of(const struct json_node *block)
{
	return strcmp(mcp_text(block, "type"), "text") == 0 ? json_get_text(block, "text") : NULL;
}

/* The texts of all blocks, a line each, cut. */
static const char *join_texts(const struct json_node *content, struct arena *a)
{
	char *joined = arena_alloc(a, ERROR_TEXT_MAX + 1);
	size_t size = 0;

	for (const struct json_node *n = content ? content->child : NULL; joined && n;
	     n = n->next) {
		const char *text = text_of(n);
		size_t room = ERROR_TEXT_MAX - size, more = text ? strlen(text) : 0;
		if (more == 0 || room < 2)
			continue;
		if (size > 0)
			joined[size++] = '\n';
		if (more > room - 1)
			more = utf8_prefix(text, room - 1);
		memcpy(joined + size, text, more);
		size += more;
	}
	return size > 0 ? joined : "the tool failed, and did not say why";
}

const struct json_node *upstream_value_of(const struct json_node *result, struct arena *a,
					  const char **out_error)
{
	static const struct json_node nothing = { .type = JSON_NULL };
	const struct json_node *structured = mcp_member(result, "structuredContent");
	const struct json_node *content = json_get_typed(result, "content", JSON_ARRAY);
	const char *type = json_get_text(result, "resultType");

	*out_error = NULL;
	if (type && strcmp(type, "complete") != 0)
		*out_error = "the tool asks for something that only a person can answer; call "
			     "another tool";
	else if (mcp_is_true(result, "isError"))
		*out_error = join_texts(content, a);
	else if (structured && structured->type != JSON_NULL)
		return structured;
	else if (content && content->count == 1 && text_of(content->child))
		return json_get(content->child, "text");
	return *out_error ? NULL : content ? content : &nothing;
}
