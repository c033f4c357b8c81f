/* SPDX-License-Identifier: Apache-2.0 */
/* The answers to tools/list, page by page, within limits.  No system calls. */
#include "runtime/front/mcp/upstream/upstream_parts.h"

#include <string.h>

#include "runtime/base/scope.h"

static void empty(struct arena *pages)
{
	for (size_t i = 0; i < UPSTREAM_PAGES_MAX; i++)
		arena_fini(&pages[i]);
}

void upstream_list_begin(struct upstream *u)
{
	empty(u->next_pages);
	u->npages = u->next_ntools = u->list_bytes = u->list_values = 0;
}

/* The depth of a message is limited. */
static size_t count_values(const struct json_node *node)
{
	size_t count = 1;

	for (const struct json_node *n = node->child; n; n = n->next)
		count += count_values(n);
	return count;
}

static int add_tool(struct upstream *u, const struct json_node *node, struct cj_error *err)
{
	const char *name = json_get_text(node, "name");

	if (!name || !*name || strlen(name) > TOOL_CHOICE_NAME_MAX)
		return cj_reject(err, "lists a tool whose name is no text of 1 to %d bytes",
				 TOOL_CHOICE_NAME_MAX);
	if (u->next_ntools == UPSTREAM_TOOLS_MAX)
		return cj_reject(err, "has more than %d tools", UPSTREAM_TOOLS_MAX);
	for (size_t i = 0; i < u->next_ntools; i++)
		if (strcmp(u->next_tools[i].name, name) == 0)
			return cj_reject(err, "lists the tool '%.128s' twice", name);
	struct upstream_tool *t = &u->next_tools[u->next_ntools++];
	*t = (struct upstream_tool){ .node = node, .name = name, .values = count_values(node) };
	u->list_values += t->values;
	if (u->list_values > UPSTREAM_LIST_VALUES)
		return cj_reject(err, "describes its tools with more than %d values",
				 UPSTREAM_LIST_VALUES);
	return 0;
}

int upstream_list_add(struct upstream *u, struct arena *a, size_t size,
		      const struct json_node *result, const char **out_cursor, struct cj_error *err)
{
	const struct json_node *tools = json_get_typed(result, "tools", JSON_ARRAY);

	if (u->npages == UPSTREAM_PAGES_MAX)
		return cj_reject(err, "lists its tools on more than %d pages", UPSTREAM_PAGES_MAX);
	arena_move(&u->next_pages[u->npages++], a);
	u->list_bytes += size;
	if (u->list_bytes > UPSTREAM_LIST_BYTES)
		return cj_reject(err, "describes its tools in more than %u bytes",
				 UPSTREAM_LIST_BYTES);
	if (!tools)
		return cj_reject(err, "answered tools/list without \"tools\"");
	for (const struct json_node *n = tools->child; n; n = n->next)
		if (add_tool(u, n, err) < 0)
			return -err->code;
	*out_cursor = json_get_text(result, "nextCursor");
	return 0;
}

int upstream_list_end(struct upstream *u, struct cj_error *err)
{
	if (tool_choice_make(u->spec, u->next_tools, u->next_ntools, err) < 0)
		return -err->code;
	empty(u->pages);
	memcpy(u->pages, u->next_pages, sizeof(u->pages));
	memset(u->next_pages, 0, sizeof(u->next_pages));
	memcpy(u->tools, u->next_tools, sizeof(u->tools));
	u->ntools = u->next_ntools;
	u->is_listed = true;
	u->is_stale = false;
	u->generation++;
	return 0;
}
