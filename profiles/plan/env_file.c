/* SPDX-License-Identifier: Apache-2.0 */
#include "profiles/plan/env_file.h"

const char *env_find(const char *const *env, const char *name)
{
	size_t size = strlen(name);
	for (; env && *env; env++)
		if (strncmp(*env, name, size) == 0 && (*env)[size] == '=')
			return *env;
	return NULL;
}

const char *env_value(const char *const *env, const char *name)
{
	const char *pair = env_find(env, name);
	return pair ? pair + strlen(name) + 1 : NULL;
}

/* Sets *out to the variable of the line [at, end), or to NULL for a comment. */
static int read_line(const char *at, const char *end, const char *const *caller_env,
		     struct arena *a, const char **out, struct cj_error *err)
{
	*out = NULL;
	if (end > at && end[-1] == '\r')
		end--;
	while (at < end && *at && strchr(" \t\v\f\r", *at))
		at++;
	if (at == end || *at == '#')
		return 0;

	size_t size = (size_t)(end - at);
	if (memchr(at, '\0', size))
		return cj_reject(err, "a NUL byte");
	char *copy = arena_strndup(a, at, size);
	if (!copy)
		return cj_fail(err, ENOMEM, "keep a variable");
	*out = strchr(copy, '=') ? copy : env_find(caller_env, copy);
	if (*out)
		return 0;
	cj_refuse(err, "'%s' has no value, and is not set here", copy);
	return cj_hint(err, "write %s=VALUE", copy);
}

int env_file_parse(const char *text, size_t size, const char *const *caller_env, struct arena *a,
		   struct env_line **out, size_t *out_count, struct cj_error *err)
{
	const char *end = text + size;
	size_t count = 0, lines = 1;
	for (size_t i = 0; i < size; i++)
		lines += text[i] == '\n';
	struct env_line *items = arena_array(a, lines, sizeof(*items));
	if (!items)
		return cj_fail(err, ENOMEM, "list the variables");

	unsigned number = 1;
	for (const char *at = text; number <= lines; number++) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		struct env_line line = { .number = number };
		if (read_line(at, newline ? newline : end, caller_env, a, &line.text, err) < 0)
			return cj_wrap(err, "line %u", number);
		if (line.text)
			items[count++] = line;
		at = newline ? newline + 1 : end;
	}
	*out = items;
	*out_count = count;
	return 0;
}
