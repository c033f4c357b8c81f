/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as lines of an MCP client, or as the result of a run.  Each answer is one line of JSON;
 * a call that is taken becomes a request that the service's parser reads, without a host path.
 */
#undef NDEBUG
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "profiles/settings.h"
#include "runtime/base/scope.h"
#include "runtime/front/mcp/protocol/mcp_answer.h"
#include "runtime/front/mcp/protocol/mcp_arguments.h"
#include "runtime/front/mcp/protocol/mcp_progress.h"
#include "runtime/front/mcp/protocol/mcp_protocol.h"
#include "runtime/front/request/request.h"
#include "tests/fuzz/bytes.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static const struct mcp_tool tool = { .name = "run_python",
				      .profile = "python",
				      .about = "Python",
				      .wall_ms = 30000,
				      .memory_bytes = 512u << 20,
				      .has_network = true };

static const char *stored_paths[] = { "a.png", "b", "", NULL };
static const struct strings stored = { stored_paths, 3 };

/* One line of JSON with a version. */
static void check_message(struct json_writer *w)
{
	auto_arena struct arena a = { 0 };
	const struct json_node *root = NULL;
	struct cj_error err = { 0 };
	const char *text = NULL;
	size_t size = 0;

	int rc = json_writer_take(w, &text, &size, &err);
	assert(rc == 0 && !memchr(text, '\n', size));
	rc = json_parse_capped("answer", text, size, &a, &root, &err);
	assert(rc == 0 && strcmp(json_get_text(root, "jsonrpc"), "2.0") == 0);
	assert(json_get(root, "result") || json_get(root, "error") || json_get(root, "method"));
}

static void check_request(const char *text, size_t size)
{
	static const struct request_caps caps = { SIZE_MAX, SIZE_MAX, SIZE_MAX, SIZE_MAX };
	auto_arena struct arena a = { 0 };
	struct request r;
	struct cj_error err = { 0 };
	struct config c;

	if (request_parse((struct blob){ text, size }, &caps, &a, &r, &err) < 0) {
		assert(err.msg[0]); /* too large, or a path that cannot be: the model reads why */
		return;
	}
	assert(strcmp(r.profile, "python") == 0 && strcmp(r.id, "ID") == 0 && r.has_code);
	config_init(&c);
	int rc = request_apply(&r, false, &c, &err);
	assert(rc == 0 && c.wall_ms <= 30000 && c.memory_bytes <= 512u << 20);
	config_fini(&c);
}

static void check_call(const struct mcp_asked *asked)
{
	auto_json_writer struct json_writer *w = json_writer_create(false);
	auto_free bool *wanted = calloc(settings_count, sizeof(*wanted));
	struct config options;
	const struct mcp_given given = { &options, wanted };
	struct cj_error err = { 0 };
	const char *text = NULL;
	size_t size = 0;

	config_init(&options);
	if (mcp_arguments_write(w, asked->tool, &given, asked->arguments, "ID", &err) < 0) {
		assert(err.code > 0 && err.msg[0]);
	} else {
		int rc = json_writer_take(w, &text, &size, &err);
		assert(rc == 0);
		check_request(text, size);
	}
	config_fini(&options);
}

static void take_lines(struct bytes in)
{
	struct mcp_protocol p = { .tools = &tool, .ntools = 1 };

	while (in.left > 0) {
		auto_arena struct arena a = { 0 };
		auto_json_writer struct json_writer *w = json_writer_create(false);
		struct bytes line = bytes_until(&in, '\n');
		auto_free char *text = bytes_text(line);
		struct mcp_asked asked;
		mcp_protocol_take(&p, text, line.left, &a, w, &asked);
		if (asked.action == MCP_ANSWER)
			check_message(w);
		else if (asked.action == MCP_CALL)
			check_call(&asked);
	}
}

static void take_result(struct bytes in)
{
	auto_arena struct arena a = { 0 };
	auto_json_writer struct json_writer *w = json_writer_create(false);
	auto_free char *text = bytes_text(in);
	struct mcp_answer answer = { .id = { MCP_ID_NUMBER, "1" }, .tool = &tool };
	struct cj_error err = { 0 };

	answer.era = in.left % 3;
	answer.directory = in.left % 2 ? "/srv/files" : NULL;
	answer.stored = &stored;
	if (json_parse("result", text, in.left, &a, &answer.result, &err) < 0)
		return;
	mcp_answer_put(w, &answer);
	check_message(w);
}

static void take_event(struct bytes in)
{
	auto_json_writer struct json_writer *w = json_writer_create(false);
	auto_free char *text = bytes_text(in);
	const struct mcp_id token = { MCP_ID_STRING, "t" };
	struct mcp_progress p;

	mcp_progress_init(&p, &token, 1000, 0);
	if (mcp_progress_note(&p, text, in.left, 500, w))
		check_message(w);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct bytes in = { bytes, size };
	uint8_t mode = bytes_u8(&in);

	if (mode == 'R')
		take_result(in);
	else if (mode == 'E')
		take_event(in);
	else
		take_lines(in);
	return 0;
}
