/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/jail/script.h"

#define BLANK " \t"

static char *trim_end(char *text)
{
	for (size_t size = strlen(text); size > 0 && strchr(BLANK, text[size - 1]); size--)
		text[size - 1] = '\0';
	return text;
}

/* Splits "INTERPRETER ARGUMENT"; a name that may have been cut off is none. */
static void split(char *words, bool is_cut, struct script *out)
{
	size_t size = strcspn(words, BLANK);
	if (size == 0 || (is_cut && words[size] == '\0'))
		return;
	out->interpreter = words;
	if (words[size] == '\0')
		return;
	words[size] = '\0';
	char *rest = trim_end(words + size + 1 + strspn(words + size + 1, BLANK));
	out->argument = rest[0] ? rest : NULL;
}

void script_parse(const char *text, size_t size, struct script *out)
{
	memset(out, 0, sizeof(*out));
	size_t length = strnlen(text, size < SCRIPT_LINE_MAX ? size : SCRIPT_LINE_MAX);
	memcpy(out->line, text, length);
	char *end = strchr(out->line, '\n');
	if (end)
		*end = '\0';
	if (strncmp(out->line, "#!", 2) == 0)
		split(out->line + 2 + strspn(out->line + 2, BLANK),
		      !end && length == SCRIPT_LINE_MAX, out);
}

static bool is_env(const struct script *s)
{
	if (strcmp(s->interpreter, "/usr/bin/env") != 0 && strcmp(s->interpreter, "/bin/env") != 0)
		return false;
	return s->argument && s->argument[0] != '-' && !strpbrk(s->argument, BLANK "=");
}

size_t script_command(const struct script *script, const char *out[SCRIPT_ARGV_MAX])
{
	if (!script->interpreter)
		return 0;
	if (is_env(script)) {
		out[0] = script->argument;
		return 1;
	}
	out[0] = script->interpreter;
	out[1] = script->argument;
	return script->argument ? 2 : 1;
}
