/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as servers.json, or as lines of an MCP server.  A server's lines never close their link
 * themselves; each call ends once; what is sent to the server is one line of JSON each.
 */
#undef NDEBUG
#include <assert.h>

#include "runtime/base/clock.h"
#include "runtime/base/scope.h"
#include "runtime/front/mcp/upstream/upstream.h"
#include "tests/fuzz/bytes.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

#define CALLS 4

static bool is_open;

static int open_link(struct upstream *u, struct cj_error *err)
{
	(void)u;
	(void)err;
	is_open = true;
	return 0;
}

static void send_line(struct upstream *u, const struct upstream_message *m)
{
	auto_arena struct arena a = { 0 };
	const struct json_node *root = NULL;
	struct cj_error err = { 0 };

	(void)u;
	assert(is_open && !memchr(m->line.bytes, '\n', m->line.size));
	assert(json_parse_capped("line", m->line.bytes, m->line.size, &a, &root, &err) == 0);
	assert(strcmp(json_get_text(root, "jsonrpc"), "2.0") == 0);
}

static bool is_busy(const struct upstream *u)
{
	(void)u;
	return false;
}

static int tick(struct upstream *u, uint64_t now_ms)
{
	(void)u;
	(void)now_ms;
	return -1;
}

static void close_link(struct upstream *u)
{
	(void)u;
	is_open = false;
}

static bool is_closed(struct upstream *u)
{
	(void)u;
	return true;
}

static const struct upstream_link link_of_test = { .open = open_link,
						   .send = send_line,
						   .is_busy = is_busy,
						   .tick = tick,
						   .close = close_link,
						   .is_closed = is_closed };

static unsigned ended;

static void on_done(struct upstream_call *c, const struct json_node *value, const char *error)
{
	assert(!c->server && (value == NULL) == (error != NULL));
	assert(!error || (error[0] && strlen(error) < 32768));
	ended++;
}

static void take_lines(struct bytes in)
{
	static const struct server_spec spec = { .name = "far" };
	auto_free struct upstream *u = calloc(1, sizeof(*u));
	struct upstream_call calls[CALLS];
	uint64_t now_ms = clock_ms();
	unsigned begun = 0;

	assert(u);
	ended = 0;
	upstream_init(u, NULL, &spec, &link_of_test);
	upstream_want_list(u);
	(void)upstream_tick(u, now_ms);
	while (in.left > 0) {
		struct bytes line = bytes_until(&in, '\n');
		auto_free char *text = bytes_text(line);
		bool was_open = is_open;
		if (begun < CALLS) {
			calls[begun] = (struct upstream_call){
				.tool = "read", .arguments = "{}", .size = 2, .done = on_done
			};
			upstream_call(u, &calls[begun++]);
		}
		upstream_take(u, text, line.left);
		assert(is_open == was_open);
		(void)upstream_tick(u, now_ms);
	}
	upstream_close(u);
	assert(ended == begun && TAILQ_EMPTY(&u->calls));
	upstream_fini(u);
}

static void take_file(struct bytes in)
{
	auto_free char *text = bytes_text(in);
	struct servers_file f;
	struct cj_error err = { 0 };
	struct server_address address;

	if (servers_file_parse(&f, "servers.json", text, in.left, &err) < 0) {
		assert(err.code > 0 && err.msg[0]);
	} else {
		assert(f.count > 0 && f.count <= SERVERS_MAX);
		for (size_t i = 0; i < f.count; i++) {
			const struct server_spec *s = &f.servers[i];
			assert(!s->command != !s->url);
			assert(!s->url || servers_file_split_url(s->url, &address, &err) == 0);
		}
	}
	arena_fini(&f.arena);
}

/* A pattern, then names, a line each. */
static void take_names(struct bytes in)
{
	auto_free char *pattern = bytes_text(bytes_until(&in, '\n'));

	while (in.left > 0) {
		auto_free char *name = bytes_text(bytes_until(&in, '\n'));
		if (tool_choice_is_pattern(pattern) && tool_choice_matches(pattern, name))
			assert(tool_choice_matches("*", name));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct bytes in = { bytes, size };
	uint8_t mode = bytes_u8(&in);

	if (mode == 'F')
		take_file(in);
	else if (mode == 'N')
		take_names(in);
	else
		take_lines(in);
	return 0;
}
