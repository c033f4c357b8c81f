/* SPDX-License-Identifier: Apache-2.0 */
/* A result becomes an answer with the same facts; its files are what they say they are. */
#include "runtime/run/mcp/mcp_answer.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "runtime/base/scope.h"

#define PNG "iVBORw0KGgoAAAANSUhEUg=="

static const struct mcp_tool tool = { .name = "run_python",
				      .profile = "python",
				      .limits = { .wall_ms = 30000 } };

static const struct mcp_tool *used_tool = &tool;
static const char *stderr_text = "";

/* A result: the members that every test needs, then those of the test. */
static const char *result_of(const char *end, const char *stdout_text, const char *files)
{
	static char text[8192];

	(void)snprintf(
	    text, sizeof(text),
	    "{\"id\":\"R1\",%s,\"stdout\":{%s,\"truncated\":false},"
	    "\"stderr\":{\"text\":\"%s\",\"truncated\":false},\"usage\":{\"wall_ms\":7,"
	    "\"cpu_user_ms\":2,\"cpu_system_ms\":1,\"memory_peak_bytes\":null},"
	    "\"limits\":{\"memory\":{\"value\":67108864,\"hit\":true},"
	    "\"wall\":{\"value\":2000,\"hit\":false}},\"network\":{\"denied\":[]},"
	    "\"denied_syscalls\":[],\"artifacts\":[%s],\"warnings\":[\"limits: x\",\"other\"]}",
	    end, stdout_text, stderr_text, files);
	return text;
}

static const char *stored_paths[] = { "a b.txt", "big", NULL };

static const char *answer_to(const char *result, enum mcp_era era, const char *directory)
{
	static char out[65536];
	auto_arena struct arena a = { 0 };
	auto_json_writer struct json_writer *w = json_writer_create(false);
	const struct mcp_stored stored = { .directory = directory, .paths = { stored_paths, 2 } };
	struct mcp_answer answer = {
		.id = { MCP_ID_NUMBER, "5" },
		.era = era,
		.tool = used_tool,
		.stored = &stored,
	};
	struct cj_error err = { 0 };
	struct blob text = { 0 };

	assert_int_equal(json_parse("result", result, strlen(result), &a, &answer.result, &err), 0);
	mcp_answer_put(w, &answer);
	assert_int_equal(json_writer_take(w, &text, &err), 0);
	assert_true(text.size < sizeof(out));
	memcpy(out, text.bytes, text.size + 1);
	return out;
}

static void has(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("no %s in %s", part, text);
}

static void success_is_no_error_and_says_the_same_twice(void **state)
{
	const char *text =
	    answer_to(result_of("\"status\":\"exited\",\"exit_code\":0,\"signal\":null",
				"\"text\":\"1\\n\"", ""),
		      MCP_ERA_LEGACY, NULL);

	(void)state;
	has(text, "\"isError\":false");
	has(text, "\"structuredContent\":{\"message\":\"The program exited with status 0.\"");
	has(text, "\"text\":\"{\\\"message\\\":\\\"The program exited with status 0.\\\"");
	has(text, "\"stdout\":\"1\\n\"");
	has(text, "\"cpu_ms\":3}");
	has(text, "\"limits_hit\":[\"memory\"]");
	has(text, "\"warnings\":[\"other\"]"); /* no model can change the host */
	assert_null(strstr(text, "null"));
}

static void each_way_to_end_has_its_sentence(void **state)
{
	static const struct {
		const char *end, *part;
	} rows[] = {
		{ "\"status\":\"exited\",\"exit_code\":3",
		  "\"message\":\"The program exited with status 3.\"" },
		{ "\"status\":\"signaled\",\"signal\":11", "Signal 11 ended the program" },
		{ "\"status\":\"timeout\"", "raise timeout_seconds (at most 30s)" },
		{ "\"status\":\"oom\"", "memory limit of 64M" },
		{ "\"status\":\"cpu_limit\"", "CPU time" },
		{ "\"status\":\"output_limit\"", "print less" },
		{ "\"status\":\"cancelled\"", "cancelled" },
		{ "\"status\":\"setup_error\",\"error\":{\"message\":\"no x\",\"hint\":\"do y\"}",
		  "did not start: no x (do y)" },
		{ "\"status\":\"setup_error\",\"error\":{\"stage\":\"supervisor\","
		  "\"message\":\"no x\"}",
		  "The program ran, but the run failed: no x" },
		{ "\"status\":\"exited\",\"exit_code\":127,\"error\":{\"message\":\"no node\"}",
		  "could not be executed: no node" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *text =
		    answer_to(result_of(rows[i].end, "\"text\":\"\"", ""), MCP_ERA_MODERN, NULL);
		has(text, rows[i].part);
		has(text, "\"isError\":true");
		has(text, "\"resultType\":\"complete\"");
	}
}

static void the_sentence_names_stderr_if_there_is_one(void **state)
{
	(void)state;
	stderr_text = "no such key";
	const char *text =
	    answer_to(result_of("\"status\":\"exited\",\"exit_code\":3", "\"text\":\"\"", ""),
		      MCP_ERA_LEGACY, NULL);
	stderr_text = "";
	has(text, "exited with status 3; stderr says why.");
}

static void output_that_is_no_text_becomes_text(void **state)
{
	/* "a", a NUL, 0xff, "b" */
	const char *text = answer_to(
	    result_of("\"status\":\"exited\",\"exit_code\":0", "\"base64\":\"YQD/Yg==\"", ""),
	    MCP_ERA_LEGACY, NULL);

	(void)state;
	has(text, "\"stdout\":\"a\xef\xbf\xbd\xef\xbf\xbd"
		  "b\"");
}

static void an_image_begins_as_its_type_says(void **state)
{
	static const char file[] =
	    "{\"path\":\"a.png\",\"bytes\":16,\"type\":\"image/png\",\"base64\":\"%s\"}";
	char files[256];

	(void)state;
	(void)snprintf(files, sizeof(files), file, PNG);
	const char *text =
	    answer_to(result_of("\"status\":\"exited\",\"exit_code\":0", "\"text\":\"\"", files),
		      MCP_ERA_LEGACY, NULL);
	has(text, "{\"type\":\"image\",\"data\":\"" PNG "\",\"mimeType\":\"image/png\"}");
	(void)snprintf(files, sizeof(files), file, "/////////////////////w==");
	text = answer_to(result_of("\"status\":\"exited\",\"exit_code\":0", "\"text\":\"\"", files),
			 MCP_ERA_LEGACY, NULL);
	assert_null(strstr(text, "\"type\":\"image\","));
	has(text, "{\"type\":\"resource\",\"resource\":{\"uri\":\"cejail://run/R1/a.png\"");
}

static void small_files_are_resources_and_large_ones_are_links(void **state)
{
	static const char files[] =
	    "{\"path\":\"a b.txt\",\"bytes\":2,\"type\":\"text/plain\",\"text\":\"hi\"},"
	    "{\"path\":\"big\",\"bytes\":9000000,\"type\":\"application/octet-stream\",\"base64\":\"AA==\"}";
	const char *result =
	    result_of("\"status\":\"exited\",\"exit_code\":0", "\"text\":\"\"", files);

	(void)state;
	const char *text = answer_to(result, MCP_ERA_LEGACY, "/srv/x y/R1");
	has(text,
	    "\"uri\":\"file:///srv/x%20y/R1/a%20b.txt\",\"mimeType\":\"text/plain\",\"text\":\"hi\"");
	has(text,
	    "{\"type\":\"resource_link\",\"uri\":\"file:///srv/x%20y/R1/big\",\"name\":\"big\"");
	text = answer_to(result, MCP_ERA_LEGACY, NULL);
	assert_null(strstr(text, "resource_link"));
	has(text, "file 'big' is too large for an answer");
	stored_paths[1] = "another";
	text = answer_to(result, MCP_ERA_LEGACY, "/srv/R1"); /* it could not be stored */
	assert_null(strstr(text, "resource_link"));
	stored_paths[1] = "big";
	text = answer_to(result, MCP_ERA_OLD, "/srv/R1");
	assert_null(strstr(text, "resource_link"));
	assert_null(strstr(text, "structuredContent"));
}

static void denials_and_a_value_are_told(void **state)
{
	const char *text = answer_to(
	    "{\"id\":\"R1\",\"status\":\"exited\",\"exit_code\":1,\"value\":{\"a\":[1]},"
	    "\"stdout\":{\"text\":\"x\",\"truncated\":true},\"denied_syscalls\":[{\"name\":\"ptrace\",\"count\":2}],"
	    "\"network\":{\"denied\":[{\"class\":\"private\",\"protocol\":\"tcp\",\"address\":\"10.0.0.1\","
	    "\"port\":80,\"count\":1}]}}",
	    MCP_ERA_LEGACY, NULL);

	(void)state;
	has(text, "\"value\":{\"a\":[1]}");
	has(text,
	    "\"denied\":[\"system call: ptrace\",\"network: private, tcp to 10.0.0.1 port 80\"]");
	has(text, "the middle of the output is missing");
	has(text, "'denied' lists what the sandbox refused.");
	has(text, "\"truncated\":true");
}

static void a_long_stream_has_its_beginning_and_its_end(void **state)
{
	static const struct mcp_tool small = { .profile = "python", .text_max = 10 };
	static const struct {
		const char *in, *out;
	} rows[] = {
		{ "\"text\":\"0123456789\",\"bytes\":10", "\"stdout\":\"0123456789\"" },
		{ "\"text\":\"0123456789a\",\"bytes\":11",
		  "\"stdout\":\"01234\\n[... 1 bytes left out ...]\\n6789a\"" },
		/* no character is cut: é has two bytes */
		{ "\"text\":\"0123é----é678\",\"bytes\":15",
		  "\"0123\\n[... 6 bytes left out ...]\\né678\"" },
		{ "\"text\":\"0123--------é6789\",\"bytes\":18",
		  "\"0123-\\n[... 9 bytes left out ...]\\n6789\"" },
		{ "\"base64\":\"gICAgICAgICAgICA\",\"bytes\":12", " bytes left out ...]" },
		/* what was left out before counts, too */
		{ "\"text\":\"0123456789a\",\"bytes\":1000011", "[... 1000001 bytes" },
	};

	(void)state;
	used_tool = &small;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *text =
		    answer_to(result_of("\"status\":\"exited\",\"exit_code\":0", rows[i].in, ""),
			      MCP_ERA_MODERN, NULL);
		has(text, rows[i].out);
		has(text, i > 0 ? "\"truncated\":true" : "\"truncated\":false");
	}
	used_tool = &tool;
}

/* Of a service of another version, or of none. */
static void a_result_that_lacks_everything_is_still_an_answer(void **state)
{
	(void)state;
	has(answer_to("{}", MCP_ERA_LEGACY, NULL), "\"isError\":true");
	has(answer_to(
		"{\"stdout\":[1],\"limits\":[{}],\"network\":3,\"artifacts\":[7,{}],\"usage\":\"\"}",
		MCP_ERA_LEGACY, "/d"),
	    "\"isError\":true");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(success_is_no_error_and_says_the_same_twice),
		cmocka_unit_test(each_way_to_end_has_its_sentence),
		cmocka_unit_test(the_sentence_names_stderr_if_there_is_one),
		cmocka_unit_test(output_that_is_no_text_becomes_text),
		cmocka_unit_test(an_image_begins_as_its_type_says),
		cmocka_unit_test(small_files_are_resources_and_large_ones_are_links),
		cmocka_unit_test(denials_and_a_value_are_told),
		cmocka_unit_test(a_long_stream_has_its_beginning_and_its_end),
		cmocka_unit_test(a_result_that_lacks_everything_is_still_an_answer),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
