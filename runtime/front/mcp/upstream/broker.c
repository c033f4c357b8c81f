/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/front/mcp/upstream/broker.h"

#include "runtime/base/clock.h"
#include "runtime/base/json/json.h"
#include "runtime/base/log.h"

#define CLOSE_MS 5000 /* for all servers: longer than server_process needs */

int broker_open(struct broker *b, struct loop *loop, const char *path, struct cj_error *err)
{
	b->loop = loop;
	if (servers_file_read(&b->file, path, err) < 0)
		return -err->code;
	b->servers = calloc(b->file.count, sizeof(*b->servers));
	if (!b->servers)
		return cj_fail(err, ENOMEM, "read '%s'", path);
	for (size_t i = 0; i < b->file.count; i++) {
		const struct server_spec *spec = &b->file.servers[i];
		upstream_init(&b->servers[i], loop, spec,
			      spec->command ? &upstream_stdio : &upstream_http);
	}
	return 0;
}

static bool are_closed(struct broker *b)
{
	bool all = true;

	for (size_t i = 0; i < b->file.count; i++)
		all = upstream_is_closed(&b->servers[i]) && all;
	return all;
}

void broker_close(struct broker *b)
{
	uint64_t end_ms = clock_ms() + CLOSE_MS;
	struct cj_error ignored = { 0 };

	for (size_t i = 0; b->servers && i < b->file.count; i++)
		upstream_close(&b->servers[i]);
	while (b->servers && !are_closed(b) && clock_ms() < end_ms &&
	       loop_turn(b->loop, clock_ms_until(end_ms), &ignored) == 0)
		;
	for (size_t i = 0; b->servers && i < b->file.count; i++)
		upstream_fini(&b->servers[i]);
	free(b->servers);
	b->servers = NULL;
	json_writer_destroy(&b->catalogue);
	arena_fini(&b->arena);
	arena_fini(&b->file.arena);
}

void broker_want_list(struct broker *b)
{
	for (size_t i = 0; i < b->file.count; i++)
		upstream_want_list(&b->servers[i]);
}

bool broker_is_listed(const struct broker *b)
{
	for (size_t i = 0; i < b->file.count; i++)
		if (b->servers[i].is_wanted)
			return false;
	return true;
}

const struct upstream *broker_find_failed(const struct broker *b)
{
	for (size_t i = 0; i < b->file.count; i++)
		if (!b->servers[i].is_listed)
			return &b->servers[i];
	return NULL;
}

const struct broker_tool *broker_find(const struct broker *b, const char *full_name)
{
	for (size_t i = 0; i < b->ntools; i++)
		if (strcmp(b->tools[i].full_name, full_name) == 0)
			return &b->tools[i];
	return NULL;
}

static bool is_taken(const void *context, const char *name)
{
	return broker_find(context, name) != NULL;
}

static void put_tool(struct json_writer *w, const char *full_name, const struct json_node *node)
{
	static const struct {
		const char *key;
		enum json_type type;
	} kept[] = { { "description", JSON_STRING },
		     { "inputSchema", JSON_OBJECT },
		     { "outputSchema", JSON_OBJECT },
		     { "annotations", JSON_OBJECT } };

	json_open_object(w);
	json_member_text(w, "name", full_name);
	for (size_t i = 0; i < COUNT_OF(kept); i++) {
		const struct json_node *value = json_get_typed(node, kept[i].key, kept[i].type);
		if (value)
			json_member_node(w, kept[i].key, value);
	}
	json_close_object(w);
}

/* What the list has room for. */
struct room {
	size_t tools, values, bytes;
};

/* NULL: the tools of this server fit, up to their bytes. */
static const char *take_room(const struct upstream *u, struct room *r)
{
	struct room needed = { 0 };

	for (size_t i = 0; i < u->ntools; i++)
		if (u->tools[i].is_offered) {
			needed.tools++;
			needed.values += u->tools[i].values;
		}
	if (needed.tools > r->tools)
		return "tools";
	if (needed.values > r->values)
		return "values";
	r->tools -= needed.tools;
	r->values -= needed.values;
	return NULL;
}

/* *w becomes an array of the tools of this server. */
static int write_server(struct broker *b, struct upstream *u, struct json_writer *w,
			struct blob *out, struct cj_error *err)
{
	json_open_array(w);
	for (size_t i = 0; i < u->ntools; i++) {
		const struct upstream_tool *t = &u->tools[i];
		if (!t->is_offered)
			continue;
		struct broker_tool tool = { .server = u, .name = arena_strdup(&b->arena, t->name) };
		tool.full_name = tool_choice_name(u->spec->name, t->name, &b->arena, is_taken, b);
		if (!tool.name || !tool.full_name)
			return cj_fail(err, ENOMEM, "list the tools of '%s'", u->spec->name);
		b->tools[b->ntools++] = tool;
		put_tool(w, tool.full_name, t->node);
	}
	json_close_array(w);
	return w ? json_writer_take(w, out, err)
		 : cj_fail(err, ENOMEM, "list the tools of '%s'", u->spec->name);
}

/* A server that does not fit is left out: it must not cost the tools of the others. */
static int add_server(struct broker *b, struct upstream *u, struct room *r, struct json_writer *all,
		      struct cj_error *err)
{
	auto_json_writer struct json_writer *w = json_writer_create(false);
	const struct room before = *r;
	const size_t ntools = b->ntools;
	const char *full = take_room(u, r);
	struct blob text = { 0 };

	if (!full && write_server(b, u, w, &text, err) < 0)
		return -err->code;
	if (text.size > r->bytes)
		full = "bytes";
	if (full) {
		*r = before;
		b->ntools = ntools;
		log_warning("the list of tools has no room for the %s of the server '%s'; its "
			    "tools are left out; leave some out with \"deny\"",
			    full, u->spec->name);
	} else if (text.size > 2) { /* without the brackets, and with a comma */
		json_put_raw(all, text.bytes + 1, text.size - 2);
		r->bytes -= text.size;
	}
	return 0;
}

/* The arena keeps the names of an earlier list: calls in progress have them. */
int broker_catalogue(struct broker *b, struct blob *out, struct cj_error *err)
{
	json_writer_destroy(&b->catalogue);
	struct json_writer *w = b->catalogue = json_writer_create(false);

	struct room room = { BROKER_TOOLS_MAX, UPSTREAM_LIST_VALUES, JSON_BYTES_MAX - 64 };

	b->ntools = 0;
	json_open_object(w);
	json_member_array(w, "tools");
	for (size_t i = 0; i < b->file.count; i++)
		if (b->servers[i].is_listed && add_server(b, &b->servers[i], &room, w, err) < 0)
			return -err->code;
	json_close_array(w);
	json_close_object(w);
	if (!w)
		return cj_fail(err, ENOMEM, "list the tools");
	return json_writer_take(w, out, err);
}

int broker_tick(struct broker *b)
{
	uint64_t now_ms = clock_ms();
	int wait_ms = -1;

	for (size_t i = 0; i < b->file.count; i++)
		wait_ms = loop_sooner(wait_ms, upstream_tick(&b->servers[i], now_ms));
	return wait_ms;
}
