/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tools of a program: their names for the supervisor, their descriptions as files for the
 * program.  Reads the file of --tools and our modules.
 */
#include <stdio.h>
#include <string.h>

#include "profiles/plan/plan_parts.h"
#include "profiles/profile.h"
#include "runtime/base/byte_queue.h"
#include "runtime/base/files/fd.h"
#include "runtime/base/scope.h"

#define TOOLS_MAX         1024
#define ALIKE_MAX         64 /* names that are the same in code but for a number */
#define TOOLS_MODULES_DIR "tools"

#define LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_"

/* The rule is in the manual, too: cejail-tools(7). */
static bool is_tool_name(const char *name)
{
	size_t size = strlen(name);
	return size > 0 && size <= TOOL_NAME_MAX && strspn(name, LETTERS) > 0 &&
	       strspn(name, LETTERS "./-") == size;
}

size_t tool_list_find(const struct tool_list *tools, const char *name)
{
	size_t i = 0;
	while (i < tools->names.count && strcmp(tools->names.items[i], name) != 0)
		i++;
	return i;
}

static int add_tool(struct tool_list *tools, const char *file, const struct json_node *node,
		    struct json_writer *w, struct arena *a, struct cj_error *err)
{
	const char *name = json_get_text(node, "name");
	if (!name)
		return json_reject(file, node, err, "a tool is an object with a \"name\"");
	if (!is_tool_name(name)) {
		(void)!json_reject(file, node, err, "'%.64s' is no name of a tool", name);
		return cj_hint(err,
			       "use at most %d of A-Z a-z 0-9 _ . / -, the first of them a "
			       "letter, a digit or _",
			       TOOL_NAME_MAX);
	}
	if (tools->names.count == TOOLS_MAX)
		return json_reject(file, node, err, "more than %d tools", TOOLS_MAX);
	if (tool_list_find(tools, name) < tools->names.count)
		return json_reject(file, node, err, "there are two tools '%s'", name);
	json_put_node(w, node);
	return strings_add(&tools->names, a, name) < 0 ? cj_fail(err, ENOMEM, "read the tools") : 0;
}

/*
 * Reserved in Python or in JavaScript, or a name of the modules' own.  JavaScript would take a
 * module that exports "then" for a promise; tools.mjs finds what it needs in "globalThis".
 */
static const char taken_names[] =
    " False None True and arguments as assert async await break case catch class "
    "const continue debugger def default del delete do elif else enum eval except "
    "export extends false finally for from function global globalThis if "
    "implements import in instanceof interface is lambda let match new nonlocal "
    "not null or package pass private protected public raise return static super "
    "switch then this throw true try type typeof undefined var void while with "
    "yield "
    "ToolError acall call describe main stub tools ";

static bool is_taken(const char *name)
{
	char word[TOOL_NAME_MAX + 4];
	(void)snprintf(word, sizeof(word), " %s ", name);
	return strstr(taken_names, word) || strncmp(name, "__", 2) == 0;
}

/* What a name of the catalogue is called in code.  tools.py and tools.mjs find the same names.
 * NULL: no memory, or too many names are alike. */
static const char *code_name(const char *head, size_t size, const struct strings *used,
			     struct arena *a)
{
	bool is_digit = head[0] >= '0' && head[0] <= '9';
	char *name = arena_printf(a, "%s%.*s", is_digit ? "_" : "", (int)size, head);
	for (char *at = name; at && *at; at++)
		if (*at == '/' || *at == '-' || *at == '.')
			*at = '_';
	if (name && is_taken(name))
		name = arena_printf(a, "%s_", name);
	const char *plain = name;
	for (unsigned n = 2; name && strings_has(used, name); n++)
		name = n <= ALIKE_MAX ? arena_printf(a, "%s_%u", plain, n) : NULL;
	return name;
}

/* Up to the first dot a name is the server's; one without a dot is the tool's own. */
static int add_export(const char *name, struct strings *heads, struct strings *used,
		      struct byte_queue *lines, struct arena *a, struct cj_error *err)
{
	size_t size = strcspn(name, ".");
	const char *head = arena_strndup(a, name, size + (name[size] == '.'));
	if (head && strings_has(heads, head))
		return 0;
	const char *code = head ? code_name(name, size, used, a) : NULL;
	if (!code && head && used->count >= ALIKE_MAX)
		return cj_reject(err, "'%s' and %d other tools have the same name in code", name,
				 ALIKE_MAX);
	const char *line = code ? arena_printf(a, "export const %s = tools.%s;\n", code, code)
				: NULL;
	if (!line || strings_add(heads, a, head) < 0 || strings_add(used, a, code) < 0 ||
	    byte_queue_add(lines, line, strlen(line)) < 0)
		return cj_fail(err, ENOMEM, "name the tools");
	return 0;
}

/* The module with a line for each name behind it. */
static int add_exports(const struct tool_list *tools, struct copy_spec *module, struct arena *a,
		       struct cj_error *err)
{
	struct byte_queue text = { 0 };
	struct strings heads = { 0 }, used = { 0 };
	int rc = byte_queue_add(&text, module->bytes, module->size);
	if (rc < 0)
		rc = cj_fail(err, ENOMEM, "name the tools");
	for (size_t i = 0; rc == 0 && i < tools->names.count; i++)
		rc = add_export(tools->names.items[i], &heads, &used, &text, a, err);
	module->size = byte_queue_size(&text);
	module->bytes = rc == 0 ? arena_strndup(a, text.bytes, module->size) : NULL;
	byte_queue_fini(&text);
	return rc == 0 && !module->bytes ? cj_fail(err, ENOMEM, "name the tools") : rc;
}

int tool_list_read(const char *file, const struct json_node *root, struct arena *a,
		   struct tool_list *out, struct cj_error *err)
{
	auto_json_writer struct json_writer *w = json_writer_create(false);
	const struct json_node *list =
	    root->type == JSON_OBJECT ? json_get_typed(root, "tools", JSON_ARRAY) : root;
	const char *text;
	*out = (struct tool_list){ .catalogue = NULL };
	if (!list || list->type != JSON_ARRAY)
		return json_reject(file, root, err,
				   "tools are an array, or an object with the array \"tools\"");
	json_open_object(w);
	json_member_array(w, "tools");
	for (const struct json_node *node = list->child; node; node = node->next)
		if (add_tool(out, file, node, w, a, err) < 0)
			return -err->code;
	json_close_array(w);
	json_close_object(w);
	if (json_writer_take(w, &text, &out->catalogue_size, err) < 0)
		return -err->code;
	out->catalogue = arena_strndup(a, text, out->catalogue_size);
	return out->catalogue ? 0 : cj_fail(err, ENOMEM, "read the tools");
}

int plan_read_tools(struct config *c, const char *text, struct tool_list *out, struct cj_error *err)
{
	struct arena *a = &c->arena;
	const struct json_node *root = NULL;
	const char *file = c->tools;
	size_t size = text ? strlen(text) : 0;
	if (file) {
		char *bytes;
		auto_fd int fd = fd_open_regular(file, err);
		if (fd < 0 || fd_read_all(fd, JSON_BYTES_MAX, a, &bytes, &size, file, err) < 0)
			return cj_wrap(err, "--tools");
		text = bytes;
	}
	if (json_parse_capped(file ? file : "tools", text, size, a, &root, err) < 0 ||
	    tool_list_read(file ? file : "tools", root, a, out, err) < 0)
		return cj_wrap(err, c->tools_from ? "--tools-from" : "--tools");
	return 0;
}

static int read_module(struct planner *p, const char *name, struct copy_spec *out,
		       struct cj_error *err)
{
	struct arena *a = &p->c->arena;
	struct profile_source source;
	const char *path =
	    arena_printf(a, "%s/" TOOLS_MODULES_DIR "/%s", profile_shipped_dir(), name);
	const char *target = arena_printf(a, PLACE_BOX "/%s", name);
	if (!path || !target)
		return cj_fail(err, ENOMEM, "plan the program's tools");
	if (profile_source_read(path, 0, a, &source, err) < 0)
		return cj_wrap(err, "the module of the program's tools");
	*out = (struct copy_spec){ .target = target, .bytes = source.text, .size = source.size };
	return 0;
}

int plan_tools(struct planner *p, struct cj_error *err)
{
	if (!p->c->tools && !p->inv->tools_json)
		return 0;
	struct copy_spec *files = p->program.tool_files;
	struct tool_list *tools = arena_alloc(&p->c->arena, sizeof(*tools));
	if (!tools)
		return cj_fail(err, ENOMEM, "plan the program's tools");
	if (plan_read_tools(p->c, p->inv->tools_json, tools, err) < 0)
		return -err->code;
	p->program.tools = tools;
	files[0] = (struct copy_spec){ .target = PLACE_BOX "/tools.json",
				       .bytes = tools->catalogue,
				       .size = tools->catalogue_size };
	if (read_module(p, "tools.py", &files[1], err) < 0 ||
	    read_module(p, "tools.mjs", &files[2], err) < 0)
		return -err->code;
	return add_exports(tools, &files[2], &p->c->arena, err);
}
