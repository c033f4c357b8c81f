/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tools of a program: their names for the supervisor, their descriptions as files for the
 * program.  Reads the file of --tools.
 */

#include "profiles/plan/plan_parts.h"
#include "runtime/base/byte_queue.h"
#include "runtime/base/files/fd.h"
#include "runtime/base/scope.h"

#define TOOLS_MAX 1024

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

/* Reserved in Python or in JavaScript.  JavaScript would take a module that exports "then" for a
 * promise; tools.mjs finds what it needs in "globalThis". */
static const char reserved_names[] =
    " False None True and arguments as assert async await break case catch class "
    "const continue debugger def default del delete do elif else enum eval except "
    "export extends false finally for from function global globalThis if "
    "implements import in instanceof interface is lambda let match new nonlocal "
    "not null or package pass private protected public raise return static super "
    "switch then this throw true try type typeof undefined var void while with "
    "yield ";
/* The modules' own. */
static const char own_names[] = " ToolError acall call describe main stub tools ";

/* A name in code: a tool's, or a server's, which has its tools as members. */
struct code_name {
	struct code_name *next, *members; /* the last one comes first */
	const char *text;                 /* of the list of tools; a server's ends with its dot */
	const char *plain, *name;         /* without and with the number */
	unsigned number;
};

static struct code_name *find_name(struct code_name *space, const char *text)
{
	struct code_name *n = space->members;
	while (n && strcmp(n->text, text) != 0)
		n = n->next;
	return n;
}

static bool is_used(const struct code_name *space, const char *name)
{
	const struct code_name *n = space->members;
	while (n && strcmp(n->name, name) != 0)
		n = n->next;
	return n != NULL;
}

static const char *plain_name(const char *text, size_t size, bool is_top, struct arena *a)
{
	char word[TOOL_NAME_MAX + 4];
	bool is_none = size == 0 || (text[0] >= '0' && text[0] <= '9');
	char *name = arena_printf(a, "%s%.*s", is_none ? "_" : "", (int)size, text);
	for (char *at = name; at && *at; at++)
		if (*at == '/' || *at == '-' || *at == '.')
			*at = '_';
	(void)snprintf(word, sizeof(word), " %s ", name ? name : "");
	bool is_taken = strncmp(word, " __", 3) == 0 || strstr(reserved_names, word) ||
			(is_top && strstr(own_names, word));
	return name && is_taken ? arena_printf(a, "%s_", name) : name;
}

/* Names that would be the same get "_2", "_3", ...  NULL: no memory. */
static struct code_name *add_name(struct code_name *space, const char *text, struct arena *a)
{
	struct code_name *added = arena_alloc(a, sizeof(*added));
	bool is_top = !space->text;
	const char *plain = plain_name(text, is_top ? strcspn(text, ".") : strlen(text), is_top, a);
	if (!added || !plain)
		return NULL;
	*added = (struct code_name){ space->members, NULL, text, plain, plain, 1 };
	for (const struct code_name *n = space->members; n && added->number == 1; n = n->next)
		if (strcmp(n->plain, plain) == 0)
			added->number = n->number + 1;
	for (;; added->number++) {
		if (added->number > 1)
			added->name = arena_printf(a, "%s_%u", plain, added->number);
		if (!added->name)
			return NULL;
		if (!is_used(space, added->name))
			break;
	}
	space->members = added;
	return added;
}

/* What the modules call a tool: up to the first dot its name is the server's.  NULL: no memory. */
static const char *code_path(struct tool_list *tools, struct code_name *top, const char *name,
			     struct arena *a)
{
	size_t size = strcspn(name, ".");
	const char *text = arena_strndup(a, name, size + (name[size] == '.'));
	struct code_name *head = text ? find_name(top, text) : NULL;
	if (text && !head) {
		head = add_name(top, text, a);
		if (head && strings_add(&tools->exports, a, head->name) < 0)
			return NULL;
	}
	if (!head || name[size] == '\0')
		return head ? head->name : NULL;
	const struct code_name *tool = add_name(head, name + size + 1, a);
	return tool ? arena_printf(a, "%s.%s", head->name, tool->name) : NULL;
}

static int put_names(struct tool_list *tools, struct json_writer *w, struct arena *a,
		     struct cj_error *err)
{
	struct code_name top = { .text = NULL };
	json_member_array(w, "names");
	for (size_t i = 0; i < tools->names.count; i++) {
		const char *path = code_path(tools, &top, tools->names.items[i], a);
		if (!path)
			return cj_fail(err, ENOMEM, "name the tools");
		json_put_string(w, path);
	}
	json_close_array(w);
	return 0;
}

/* A line for each name, behind the module's own. */
static int write_exports(const struct tool_list *tools, struct copy_spec *module, struct arena *a,
			 struct cj_error *err)
{
	struct byte_queue text = { 0 };
	int rc = 0;
	for (size_t i = 0; rc == 0 && i < tools->exports.count; i++) {
		const char *name = tools->exports.items[i];
		const char *line = arena_printf(a, "export const %s = tools.%s;\n", name, name);
		rc = line ? byte_queue_add(&text, line, strlen(line)) : -ENOMEM;
	}
	module->size = byte_queue_size(&text);
	module->bytes = arena_strndup(a, text.bytes, module->size);
	byte_queue_fini(&text);
	return rc == 0 && module->bytes ? 0 : cj_fail(err, ENOMEM, "name the tools");
}

int tool_list_read(const char *file, const struct json_node *root, struct arena *a,
		   struct tool_list *out, struct cj_error *err)
{
	auto_json_writer struct json_writer *w = json_writer_create(false);
	const struct json_node *list =
	    root->type == JSON_OBJECT ? json_get_typed(root, "tools", JSON_ARRAY) : root;
	struct blob text;
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
	if (put_names(out, w, a, err) < 0)
		return -err->code;
	json_close_object(w);
	if (json_writer_take(w, &text, err) < 0)
		return -err->code;
	out->catalogue = arena_strndup(a, text.bytes, text.size);
	out->catalogue_size = text.size;
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
	files[1] = (struct copy_spec){ .target = PLACE_BOX "/tools.py", .own = OWN_FILE_TOOLS_PY };
	files[2] =
	    (struct copy_spec){ .target = PLACE_BOX "/tools.mjs", .own = OWN_FILE_TOOLS_MJS };
	return write_exports(tools, &files[2], &p->c->arena, err);
}
