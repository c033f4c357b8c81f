/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an interpreter can't find out in a jail and is told by its arguments and environment.  No
 * system calls.
 */
#include <inttypes.h>
#include <string.h>

#include "profiles/paths.h"
#include "profiles/plan/plan_parts.h"

/* What an interpreter needs beside its heap: machine code, stacks, buffers. */
#define BESIDE_HEAP_MIN (96u << 20)
#define HEAP_MIN        (16u << 20)

static bool has_no_network(const struct planner *p)
{
	return p->c->network == NETWORK_NONE;
}

static bool has_command(const struct planner *p)
{
	return p->inv->is_command;
}

/* A variable that is set already keeps its value. */
static const struct {
	const char *interpreter;                    /* how the name of the profile's begins */
	bool (*is_wanted)(const struct planner *p); /* NULL: always */
	const char *variable;
} variables[] = {
	{ "node", NULL, "NODE_OPTIONS=--max-old-space-size={heap_mb}" },
	/* It prints a line, so the command of the profile has arguments instead. */
	{ "java", has_command, "JAVA_TOOL_OPTIONS=-Xmx{heap_mb}m -XX:ActiveProcessorCount={cpus}" },
	/* pip would try again for 8 s and npm for 70 s; neither would say why. */
	{ "python", has_no_network, "PIP_INDEX_URL=There is no network in this jail" },
	{ "node", has_no_network, "NPM_CONFIG_OFFLINE=true" },
	{ "node", has_no_network, "NPM_CONFIG_REGISTRY=http://there-is-no-network-in-this-jail" },
};

static uint64_t heap_mb(const struct config *c)
{
	uint64_t beside = c->memory_bytes / 4;
	if (beside < BESIDE_HEAP_MIN)
		beside = BESIDE_HEAP_MIN;
	uint64_t heap = c->memory_bytes > beside ? c->memory_bytes - beside : 0;
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
	return with_heap ? put_number(&c->arena, with_heap, "{cpus}", (c->millicpus + 999) / 1000)
			 : NULL;
}

static bool is_of(const struct config *c, const char *interpreter)
{
	return c->command.count > 0 &&
	       strncmp(paths_name(c->command.items[0]), interpreter, strlen(interpreter)) == 0;
}

int plan_interpreter_env(struct planner *p, struct cj_error *err)
{
	for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
		const char *text = variables[i].variable;
		if (!is_of(p->c, variables[i].interpreter) ||
		    (variables[i].is_wanted && !variables[i].is_wanted(p)) ||
		    plan_find_variable(&p->program.env, text))
			continue;
		text = plan_put_limits(p->c, text);
		if (!text || strings_add(&p->program.env, &p->c->arena, text) < 0)
			return cj_fail(err, ENOMEM, "plan the environment");
	}
	return 0;
}
