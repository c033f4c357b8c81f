/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/front/mcp/upstream/tool_choice.h"

#include "runtime/run/mcp/mcp_message.h"

bool tool_choice_is_pattern(const char *text)
{
	for (const char *at = text; *at; at++)
		if (*at <= ' ' || *at >= 0x7f || strchr("[]{}\\", *at))
			return false;
	return *text != '\0';
}

/* When a part does not match, the last '*' takes one more character: no recursion. */
bool tool_choice_matches(const char *pattern, const char *name)
{
	const char *star = NULL, *from = NULL;

	while (*name) {
		if (*pattern == '*') {
			star = ++pattern;
			from = name;
		} else if (*pattern == '?' || *pattern == *name) {
			pattern++;
			name++;
		} else if (star) {
			pattern = star;
			name = ++from;
		} else {
			return false;
		}
	}
	return pattern[strspn(pattern, "*")] == '\0';
}

/* The first pattern that matches, or NULL. */
static const char *find_pattern(const struct strings *patterns, const char *name)
{
	for (size_t i = 0; i < patterns->count; i++)
		if (tool_choice_matches(patterns->items[i], name))
			return patterns->items[i];
	return NULL;
}

static int check_used(const struct server_spec *s, const struct strings *patterns, const char *key,
		      const struct upstream_tool *tools, size_t count, struct cj_error *err)
{
	for (size_t i = 0; i < patterns->count; i++) {
		size_t k = 0;
		while (k < count && !tool_choice_matches(patterns->items[i], tools[k].name))
			k++;
		if (k < count)
			continue;
		cj_refuse(err, "the server '%s' has no tool that the \"%s\" pattern '%s' matches",
			  s->name, key, patterns->items[i]);
		if (count == 0)
			return cj_hint(err, "remove the pattern: the server has no tools");
		return cj_hint(err,
			       "correct or remove the pattern; one of its %zu tools is '%.100s'",
			       count, tools[0].name);
	}
	return 0;
}

int tool_choice_make(const struct server_spec *server, struct upstream_tool *tools, size_t count,
		     struct cj_error *err)
{
	if (check_used(server, &server->allow, "allow", tools, count, err) < 0 ||
	    check_used(server, &server->deny, "deny", tools, count, err) < 0)
		return -err->code;
	for (size_t i = 0; i < count; i++) {
		const char *allowed = find_pattern(&server->allow, tools[i].name);
		const char *denied = find_pattern(&server->deny, tools[i].name);
		if (allowed && denied) {
			cj_refuse(err,
				  "the tool '%.128s' of the server '%s' is allowed by '%s' and "
				  "denied by '%s'",
				  tools[i].name, server->name, allowed, denied);
			return cj_hint(err, "change one of the two patterns, so that only one "
					    "matches");
		}
		const struct json_node *hints =
		    json_get_typed(tools[i].node, "annotations", JSON_OBJECT);
		tools[i].is_offered = allowed || (!denied && json_is_true(hints, "readOnlyHint"));
	}
	return 0;
}

static const char allowed_chars[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				    "0123456789_/-.";

/* Appends the text with '_' for what may not be; `has_dots`: a dot may. */
static void append(char *out, size_t room, const char *text, bool has_dots)
{
	size_t size = strlen(out);

	for (; *text && size + 1 < room; text++) {
		bool is_fine = strchr(allowed_chars, *text) && (*text != '.' || has_dots);
		if ((*text & 0xc0) != 0x80) /* one '_' for a character of several bytes */
			out[size++] = is_fine ? *text : '_';
	}
	out[size] = '\0';
}

const char *tool_choice_name(const char *server, const char *tool, struct arena *a,
			     bool (*is_taken)(const void *context, const char *name),
			     const void *context)
{
	char name[TOOL_CHOICE_NAME_MAX + 1] = "", suffix[16] = "";

	if (strchr("-/.", server[0]))
		name[0] = '_';
	append(name, sizeof(name), server, false);
	append(name, sizeof(name), ".", true);
	append(name, sizeof(name), tool, true);
	size_t size = strlen(name);
	for (unsigned n = 2; is_taken(context, name); n++) {
		size_t more = (size_t)snprintf(suffix, sizeof(suffix), "_%u", n);
		size_t keep = size + more < sizeof(name) ? size : sizeof(name) - 1 - more;
		memcpy(name + keep, suffix, more + 1);
	}
	return arena_strdup(a, name);
}
