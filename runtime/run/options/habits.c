/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/run/options/habits.h"

#include "runtime/base/text.h"

struct habit {
	const char *name, *answer;
};

/* clang-format off */
static const struct habit option_habits[] = {
	{ "--volume", "write --bind SRC:DST, or --ro-bind SRC:DST for a read-only view" },
	{ "--mount", "write --bind SRC:DST, --ro-bind SRC:DST or --tmpfs DST" },
	{ "--read-only", "not needed: the root is read-only, unless --writable is given" },
	{ "--rm", "not needed: every jail is removed at its end" },
	{ "--name", "write --id ID" },
	{ "--user", "not needed: the program is user 'jail' with id 1000, and has no privileges on the host" },
	{ "-u", "not needed: the program is user 'jail' with id 1000, and has no privileges on the host" },
	{ "-d", "not available: cejail waits for the program; add '&' in the shell, or see cejail-serve(8)" },
	{ "--privileged", "not available: no program in a jail has a capability" },
	{ "--cap-add", "not available: no program in a jail has a capability" },
	{ "--cap-drop", "not needed: no program in a jail has a capability" },
	{ "--gpus", "not available: a jail has only the devices null, zero, full, random and urandom" },
	{ "--publish", "not available: no process outside can connect to a jail; see --connect for the other direction" },
	{ "--entrypoint", "write the command after '--': cejail run [OPTION...] -- COMMAND [ARG...]" },
};

static const struct habit verb_habits[] = {
	{ "exec", "a jail runs one program: write 'cejail run' or 'cejail shell'" },
	{ "stop", "write 'cejail kill ID'" },
	{ "rm", "not needed: every jail is removed at its end" },
	{ "ls", "write 'cejail ps'" },
	{ "images", "write 'cejail image list'" },
	{ "pull", "not available: get images with skopeo, then 'cejail image import': cejail-image(1)" },
};

/* Images whose names are not commands.  habit_is_image() recognises a tag itself. */
static const char *const image_names[] = { "ubuntu", "debian", "alpine", "fedora", "hello-world", NULL };
/* clang-format on */

static const char *find_answer(const struct habit *table, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(table[i].name, name) == 0)
			return table[i].answer;
	return NULL;
}

const char *habit_for_option(const char *named)
{
	return find_answer(option_habits, COUNT_OF(option_habits), named);
}

const char *habit_for_verb(const char *verb)
{
	return find_answer(verb_habits, COUNT_OF(verb_habits), verb);
}

/* "8080:80" */
static bool is_published_port(const char *text)
{
	size_t digits = strspn(text, "0123456789");
	return digits > 0 && text[digits] == ':' && text[digits + 1] != '\0' &&
	       strspn(text + digits + 1, "0123456789") == strlen(text + digits + 1);
}

const char *habit_for_value(const char *option, const char *value)
{
	if (strcmp(option, "profile") == 0 && is_published_port(value))
		return "-p names a profile here, and no process outside can connect to a jail";
	if (strcmp(option, "network") == 0 && strcmp(value, "host") == 0)
		return "a jail never has the host's network; write --network public, and "
		       "--connect tcp:127.0.0.1:PORT for a port of the host's loopback";
	if (strcmp(option, "network") == 0 && strcmp(value, "bridge") == 0)
		return "write --network public";
	if (strcmp(option, "timeout") == 0 && (value[0] < '0' || value[0] > '9'))
		return "-t is --timeout here; write --tty -i for a terminal";
	return NULL;
}

bool habit_is_volume(const char *word)
{
	const char *colon = strchr(word, ':');
	return colon && colon != word && colon[1] == '/' && !text_begins_with(colon, "://");
}

bool habit_is_image(const char *word)
{
	const char *colon = strrchr(word, ':');
	bool has_tag = colon && colon != word && colon[1] != '\0' && !strchr(colon, '/');
	return text_is_one_of(word, image_names) || (has_tag && word[0] != '/' && word[0] != '.');
}
