/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as lines of an MCP client, as headers over HTTP, or as replies of the service.  Each
 * answer is one line of JSON; a call that is taken becomes a request that the service's parser
 * reads, without a host path.
 */
#undef NDEBUG
#include <assert.h>

#include "profiles/settings.h"
#include "runtime/base/scope.h"
#include "runtime/run/mcp/mcp_answer.h"
#include "runtime/run/mcp/mcp_request.h"
#include "runtime/run/mcp/mcp_message.h"
#include "runtime/run/mcp/mcp_protocol.h"
#include "runtime/run/mcp/mcp_request.h"
#include "runtime/run/request/request.h"
#include "tests/fuzz/bytes.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static const struct mcp_tool tool = { .name = "run_python",
				      .profile = "python",
				      .about = "Python",
				      .limits = { .wall_ms = 30000, .memory_bytes = 512u << 20 },
				      .has_network = true };

static const char *stored_paths[] = { "a.png", "b", "", NULL };

/* One line of JSON with a version. */
static void check_message(struct json_writer *w)
{
	auto_arena struct arena a = { 0 };
	const struct json_node *root = NULL;
	struct cj_error err = { 0 };
	struct blob text = { 0 };

	int rc = json_writer_take(w, &text, &err);
	assert(rc == 0 && !memchr(text.bytes, '\n', text.size));
	rc = json_parse_capped("answer", text.bytes, text.size, &a, &root, &err);
	assert(rc == 0 && strcmp(json_get_text(root, "jsonrpc"), "2.0") == 0);
	assert(json_get(root, "result") || json_get(root, "error") || json_get(root, "method"));
}

/* The service's parser reads it. */
static void check_request(const char *text, size_t size, enum request_kind kind)
{
	const struct request_caps caps = { .body_bytes = SIZE_MAX,
					   .code_bytes = SIZE_MAX,
					   .file_bytes = SIZE_MAX,
					   .stdin_bytes = SIZE_MAX,
					   .kind = kind,
					   .profile = kind == REQUEST_EXEC ? "python" : NULL };
	auto_arena struct arena a = { 0 };
	struct request r;
	struct cj_error err = { 0 };
	struct config c;

	if (request_parse((struct blob){ text, size }, &caps, &a, &r, &err) < 0) {
		assert(err.msg[0]); /* too large, or a path that cannot be: the model reads why */
		return;
	}
	assert(strcmp(r.profile, "python") == 0);
	if (kind != REQUEST_SESSION)
		assert(strcmp(r.id, "ID") == 0 && r.has_code != r.is_command);
	config_init(&c);
	int rc = request_apply(&r, false, &c, &err);
	assert(rc == 0);
	assert(c.run_limits.wall_ms <= 30000 && c.limits.memory_bytes <= 512u << 20);
	config_fini(&c);
}

/* Nothing of it can end the line of an HTTP request, or leave the path of its session. */
static void check_target(const char *target)
{
	assert(strncmp(target, "/v1/", 4) == 0 && strlen(target) < MCP_TARGET_MAX);
	for (; *target; target++)
		assert(*target > ' ' && *target < 0x7f && *target != '#');
}

static enum request_kind kind_of(const struct mcp_request *r)
{
	if (r->kind == MCP_TOOL_SESSION_CREATE)
		return REQUEST_SESSION;
	return r->kind == MCP_TOOL_RUN ? REQUEST_RUN : REQUEST_EXEC;
}

static void check_call(const struct mcp_asked *asked)
{
	auto_free bool *wanted = calloc(settings_count, sizeof(*wanted));
	struct config options;
	const struct mcp_given given = { &options, wanted };
	struct mcp_request request;
	char target[MCP_TARGET_MAX];
	const char *type = NULL;
	struct cj_error err = { 0 };

	config_init(&options);
	if (mcp_request_write(&request, asked->tool, &given, asked->arguments, "ID", &err) < 0) {
		assert(err.code > 0 && err.msg[0]);
	} else {
		const char *method = mcp_request_put_http(&request, target, &type);
		check_target(target);
		if (strcmp(method, "POST") == 0)
			check_request(request.body, request.size, kind_of(&request));
	}
	cj_free(&request.body);
	config_fini(&options);
}

/* Wherever a message is cut, no other id than its own is found. */
static void check_id(const char *text, size_t size)
{
	auto_arena struct arena a = { 0 };
	struct mcp_message message;
	struct mcp_fault fault;
	struct mcp_id id;

	if (mcp_message_read(text, size, &a, &message, &fault) < 0)
		return;
	for (size_t cut = size / 4; cut <= size; cut += size / 4 + 1) {
		mcp_id_find((struct blob){ text, cut }, (struct blob){ text + cut, size - cut },
			    &id);
		assert(id.kind == MCP_ID_NONE || mcp_id_equals(&id, &message.id));
	}
}

static void take_lines(struct bytes in)
{
	struct mcp_tool tools[MCP_TOOL_KIND_COUNT] = { tool };
	struct mcp_protocol p = { .tools = tools, .ntools = MCP_TOOL_KIND_COUNT };

	tools[0].has_sessions = true;
	for (size_t i = 1; i < MCP_TOOL_KIND_COUNT; i++)
		mcp_tool_init_session(&tools[i], (enum mcp_tool_kind)i, "", &tool, 1);
	while (in.left > 0) {
		auto_arena struct arena a = { 0 };
		auto_json_writer struct json_writer *w = json_writer_create(false);
		struct bytes line = bytes_until(&in, '\n');
		auto_free char *text = bytes_text(line);
		struct mcp_asked asked;
		check_id(text, line.left);
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
	const struct mcp_stored stored = { .directory = in.left % 2 ? "/srv/files" : NULL,
					   .paths = { stored_paths, 3 } };
	struct mcp_answer answer = { .id = { MCP_ID_NUMBER, "1" },
				     .tool = &tool,
				     .stored = &stored };
	struct cj_error err = { 0 };

	answer.era = in.left % 3;
	if (json_parse("result", text, in.left, &a, &answer.result, &err) < 0)
		return;
	mcp_answer_put(w, &answer);
	check_message(w);
}

/* Three headers and Accept, a line each, then a message. */
static void take_headers(struct bytes in)
{
	auto_free char *version = bytes_text(bytes_until(&in, '\n'));
	auto_free char *method = bytes_text(bytes_until(&in, '\n'));
	auto_free char *name = bytes_text(bytes_until(&in, '\n'));
	auto_free char *accept = bytes_text(bytes_until(&in, '\n'));
	auto_free char *text = bytes_text(in);
	const struct mcp_headers headers = { version, method, name };
	struct mcp_protocol p = { .tools = &tool, .ntools = 1, .headers = &headers };
	auto_arena struct arena a = { 0 };
	auto_json_writer struct json_writer *w = json_writer_create(false);
	struct mcp_asked asked;

	(void)mcp_headers_accept(accept, "application/json");
	mcp_protocol_take(&p, text, in.left, &a, w, &asked);
	assert(asked.http_status == 200 || asked.http_status == 202 || asked.http_status == 400 ||
	       asked.http_status == 404);
	if (asked.action == MCP_ANSWER)
		check_message(w);
}

/* The kind of a tool, then a reply of the service. */
static void take_reply(struct bytes in)
{
	uint8_t kind = bytes_u8(&in) % MCP_TOOL_KIND_COUNT;
	auto_free char *text = bytes_text(in);
	auto_json_writer struct json_writer *w = json_writer_create(false);
	const struct mcp_session_answer answer = { .id = { MCP_ID_NUMBER, "1" },
						   .era = in.left % 3,
						   .kind = kind,
						   .session = "S",
						   .path = "/box/a" };
	struct cj_error err = { 0 };

	if (kind == MCP_TOOL_RUN || kind == MCP_TOOL_SESSION_EXEC)
		return;
	if (mcp_session_answer_put(w, &answer, text, in.left, &err) == 0)
		check_message(w);
	else
		assert(err.msg[0]);
}

static void take_event(struct bytes in)
{
	auto_json_writer struct json_writer *w = json_writer_create(false);
	auto_free char *text = bytes_text(in);
	const struct mcp_id token = { MCP_ID_STRING, "t" };
	struct mcp_progress p;

	mcp_progress_init(&p, &token, 1000, 0);
	mcp_progress_note(&p, text, in.left);
	assert(!mcp_progress_beat(&p, MCP_PROGRESS_PAUSE_MS - 1, w));
	if (mcp_progress_beat(&p, MCP_PROGRESS_PAUSE_MS, w))
		check_message(w);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct bytes in = { bytes, size };
	uint8_t mode = bytes_u8(&in);

	if (mode == 'H')
		take_headers(in);
	else if (mode == 'S')
		take_reply(in);
	else if (mode == 'R')
		take_result(in);
	else if (mode == 'E')
		take_event(in);
	else
		take_lines(in);
	return 0;
}
