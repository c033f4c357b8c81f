/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an interpreter can't find out in a jail: cejail passes it in arguments and variables.  And
 * what cejail makes for it in the jail.  Reads symbolic links of the root.
 */
#include <inttypes.h>
#include <limits.h>

#include "profiles/paths.h"
#include "profiles/plan/env_file.h"
#include "profiles/plan/plan_parts.h"
#include "profiles/profile.h"
#include "runtime/base/text.h"

/* What an interpreter needs beside its heap: machine code, stacks, buffers. */
#define BESIDE_HEAP_MIN (96u << 20)
#define HEAP_MIN        (16u << 20)

/* A variable that is set already keeps its value. */
static const struct {
	const char *interpreter; /* how the name of the profile's begins */
	enum { ALWAYS, FOR_COMMANDS, WITHOUT_NETWORK } when;
	const char *variable;
} variables[] = {
	{ "node", ALWAYS, "NODE_OPTIONS=--max-old-space-size={heap_mb}" },
	{ "deno", ALWAYS, "DENO_V8_FLAGS=--max-old-space-size={heap_mb}" },
	/* It prints a line, so the command of the profile has arguments instead. */
	{ "java", FOR_COMMANDS,
	  "JAVA_TOOL_OPTIONS=-Xmx{heap_mb}m -XX:ActiveProcessorCount={cpus}" },
	/* pip would try again for 8 s and npm for 70 s; neither would say why. */
	{ "python", WITHOUT_NETWORK, "PIP_INDEX_URL=There is no network in this jail" },
	{ "node", WITHOUT_NETWORK, "NPM_CONFIG_OFFLINE=true" },
	{ "node", WITHOUT_NETWORK, "NPM_CONFIG_REGISTRY=http://there-is-no-network-in-this-jail" },
};

static uint64_t heap_mb(const struct config *c)
{
	uint64_t beside = c->limits.memory_bytes / 4;
	if (beside < BESIDE_HEAP_MIN)
		beside = BESIDE_HEAP_MIN;
	uint64_t heap = c->limits.memory_bytes > beside ? c->limits.memory_bytes - beside : 0;
	return (heap < HEAP_MIN ? HEAP_MIN : heap) >> 20;
}

/* Replaces the first `place` of the text; the text itself where it has none. */
static const char *put_number(struct arena *a, const char *text, const char *place, uint64_t number)
{
	const char *at = strstr(text, place);
	if (!at)
		return text;
	return arena_printf(a, "%.*s%" PRIu64 "%s", (int)(at - text), text, number,
			    at + strlen(place));
}

const char *plan_put_limits(struct config *c, const char *text)
{
	const char *with_heap = put_number(&c->arena, text, "{heap_mb}", heap_mb(c));
	return with_heap
		   ? put_number(&c->arena, with_heap, "{cpus}", (c->limits.millicpus + 999) / 1000)
		   : NULL;
}

int plan_interpreter_env(struct planner *p, struct cj_error *err)
{
	const bool is_wanted[] = {
		[ALWAYS] = true,
		[FOR_COMMANDS] = p->inv->is_command,
		[WITHOUT_NETWORK] = p->c->network == NETWORK_NONE,
	};
	for (size_t i = 0; i < COUNT_OF(variables); i++) {
		const char *text = variables[i].variable;
		if (!profile_runs(p->c, variables[i].interpreter) ||
		    !is_wanted[variables[i].when] || strings_find_variable(&p->program.env, text))
			continue;
		if (plan_add(p, &p->program.env, plan_put_limits(p->c, text), err) < 0)
			return -err->code;
	}
	return 0;
}

#define PYTHON    "python3"
#define DIGITS    "0123456789"
#define LINKS_MAX 4 /* python3 -> python3.11 */

/* "python3.11", "3.11": the file that python3 of this directory is; else NULL. */
static const char *read_version(struct planner *p, const char *layer, const char *dir)
{
	const char *name = PYTHON;
	for (int i = 0; i < LINKS_MAX; i++) {
		char target[PATH_MAX];
		const char *path = arena_printf(&p->c->arena, "%s%s/%s", layer, dir, name);
		ssize_t size = path ? readlink(path, target, sizeof(target) - 1) : -1;
		if (size < 0)
			return NULL;
		target[size] = '\0';
		name = arena_strdup(&p->c->arena, paths_name(target));
		const char *minor = name ? text_after(name, PYTHON ".") : NULL;
		if (minor && minor[0] != '\0' && minor[strspn(minor, DIGITS)] == '\0')
			return name;
	}
	return NULL;
}

/* In one directory of the jail's PATH; the root of the host shows /usr alone. */
static int find_python(struct planner *p, const char *dir, struct cj_error *err)
{
	static const char *const host[] = { "" };
	struct rootfs_spec *root = &p->plan.root;
	bool is_host = root->kind == ROOT_HOST;
	size_t count = is_host ? strncmp(dir, "/usr/", 5) == 0 : root->layers.count;
	const char *const *layers = is_host ? host : (const char *const *)root->layers.items;
	for (size_t i = 0; !root->python && i < count; i++) {
		const char *name = read_version(p, layers[i], dir);
		if (!name)
			continue;
		root->python = arena_printf(&p->c->arena, "%s/" PYTHON, dir);
		root->packages = arena_printf(&p->c->arena, ".local/lib/%s/site-packages", name);
		if (!root->python || !root->packages)
			return cj_fail(err, ENOMEM, "plan the home of Python");
	}
	return 0;
}

/* Only where the profile has Python, and the home is the jail's own. */
int plan_python_home(struct planner *p, struct cj_error *err)
{
	const char *const *env = (const char *const *)p->program.env.items;
	const char *home = env_value(env, "HOME"), *path = env_value(env, "PATH");
	if (!profile_runs(p->c, "python") || !home || strcmp(home, PLACE_BOX) != 0 || !path)
		return 0;
	char *dirs = arena_strdup(&p->c->arena, path);
	if (!dirs)
		return cj_fail(err, ENOMEM, "plan the home of Python");
	char *rest = dirs;
	for (char *dir = strsep(&rest, ":"); dir && !p->plan.root.python; dir = strsep(&rest, ":"))
		if (dir[0] == '/' && find_python(p, dir, err) < 0)
			return -err->code;
	return 0;
}
