/* SPDX-License-Identifier: Apache-2.0 */
/* The id of a message that no parser reads: the message's own one, or none.  And progress. */
#include "runtime/run/mcp/mcp_message.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "runtime/base/scope.h"

static struct blob blob_of(const char *text)
{
	return (struct blob){ text, strlen(text) };
}

struct row {
	const char *head, *tail; /* tail "": the head is all of it */
	enum mcp_id_kind kind;
	const char *id;
};

static void check(const struct row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct mcp_id id;
		mcp_id_find(blob_of(rows[i].head), blob_of(rows[i].tail), &id);
		if (id.kind != rows[i].kind || strcmp(id.text, rows[i].id) != 0)
			fail_msg("the id of %s...%s is '%s'", rows[i].head, rows[i].tail, id.text);
	}
}
#define CHECK(rows) check(rows, sizeof(rows) / sizeof((rows)[0]))

static void the_id_of_a_refused_message_is_found_wherever_it_stands(void **state)
{
	static const struct row rows[] = {
		{ "{\"id\":1,\"method\":\"m\\u0000\"}", "", MCP_ID_NUMBER, "1" },
		{ " { \"method\" : \"m\" , \"params\" : [[{\"a\":1,\"a\":2}]] , \"id\" : \"x\" } ",
		  "", MCP_ID_STRING, "x" },
		{ "{\"params\":{\"id\":7},\"id\":-3}", "", MCP_ID_NUMBER, "-3" },
		{ "{\"params\":\"\\\"id\\\":7,\",\"id\":\"\\u0041\\\"\"}", "", MCP_ID_STRING,
		  "A\"" },
		{ "{\"id\":5,\"method\":\"m\",\"params\":{\"x\":\"", "", MCP_ID_NUMBER, "5" },
	};
	(void)state;
	CHECK(rows);
}

static void the_id_is_found_at_either_end_of_a_message_that_is_too_long(void **state)
{
	static const struct row rows[] = {
		{ "{\"id\":1,\"params\":\"", "yyy\"}}", MCP_ID_NUMBER, "1" },
		{ "{\"params\":\"", "y\"},\"jsonrpc\":\"2.0\",\"id\":12}", MCP_ID_NUMBER, "12" },
		{ "{\"params\":\"", "y\"}, \"id\" : \"\\\\\\\"\" , \"jsonrpc\":\"2.0\" }\r",
		  MCP_ID_STRING, "\\\"" },
		{ "{\"method\":\"m\",\"params\":", "y\",\"id\":\"a\"}", MCP_ID_STRING, "a" },
	};
	(void)state;
	CHECK(rows);
}

static void in_doubt_no_id_is_found(void **state)
{
	static const struct row rows[] = {
		{ "", "", MCP_ID_NONE, "" },
		{ "{", "", MCP_ID_NONE, "" },
		{ "[{\"id\":1}]", "", MCP_ID_NONE, "" },
		{ "{\"params\":{\"id\":1}}", "", MCP_ID_NONE, "" },
		{ "{\"params\":\"\\\"id\\\":1\"}", "", MCP_ID_NONE, "" },
		{ "{\"id\":1,\"id\":2}", "", MCP_ID_NONE, "" },
		{ "{\"id\":1,\"\\u0069d\":2}", "", MCP_ID_NONE, "" },
		{ "{\"id\":1,\"result\":{}}", "", MCP_ID_NONE, "" },
		{ "{\"error\":\"\\u0000\",\"id\":1}", "", MCP_ID_NONE, "" },
		{ "{\"id\":1", "", MCP_ID_NONE, "" }, /* or 12 */
		{ "{\"id\":1.5,\"a\":0}", "", MCP_ID_NONE, "" },
		{ "{\"id\":{\"id\":1},\"a\":0}", "", MCP_ID_NONE, "" },
		{ "{\"id\":null,\"a\":0}", "", MCP_ID_NONE, "" },
		{ "{\"id\":1,\"params\":\"", "\",\"id\":2}", MCP_ID_NONE, "" },
		{ "{\"result\":\"", "\",\"id\":2}", MCP_ID_NONE, "" },
		{ "{\"params\":\"", "\\\"id\":2}", MCP_ID_NONE, "" },
		{ "{\"params\":\"", "\\\\\",\"a\":{\"id\":2}}", MCP_ID_NONE, "" },
		{ "{\"params\":\"", "2}", MCP_ID_NONE, "" },
		{ "{\"params\":\"", "id\":2}", MCP_ID_NONE, "" },
		{ "{\"params\":\"", "\",\"id\":2", MCP_ID_NONE, "" },
	};
	(void)state;
	CHECK(rows);
}

static void a_response_has_its_result_or_its_error(void **state)
{
	auto_arena struct arena a = { 0 };
	struct mcp_message m;
	struct mcp_fault fault;
	static const char result[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}";
	static const char error[] = "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{}}";

	(void)state;
	assert_int_equal(mcp_message_read(result, sizeof(result) - 1, &a, &m, &fault), 0);
	assert_true(m.kind == MCP_RESPONSE && m.result && !m.error);
	assert_int_equal(mcp_message_read(error, sizeof(error) - 1, &a, &m, &fault), 0);
	assert_true(m.kind == MCP_RESPONSE && m.error && m.id.kind == MCP_ID_NONE);
}

static void note(struct mcp_progress *p, const char *event)
{
	mcp_progress_note(p, event, strlen(event));
}

/* The notification that is sent at this time; "": none. */
static const char *beat(struct mcp_progress *p, uint64_t now_ms)
{
	static char sent[1024];
	auto_json_writer struct json_writer *w = json_writer_create(false);
	struct cj_error err = { 0 };
	struct blob text = { "", 0 };

	if (mcp_progress_beat(p, now_ms, w))
		assert_int_equal(json_writer_take(w, &text, &err), 0);
	(void)snprintf(sent, sizeof(sent), "%.*s", (int)text.size, text.bytes);
	return sent;
}

static void the_last_line_of_a_pause_is_sent_after_it(void **state)
{
	const struct mcp_id token = { MCP_ID_STRING, "t" };
	struct mcp_progress p;

	(void)state;
	mcp_progress_init(&p, &token, 0, 1000);
	assert_int_equal(mcp_progress_wait(&p, 1000), MCP_PROGRESS_BEAT_MS);
	note(&p, "{\"type\":\"stdout\",\"text\":\"a\\nfirst\\n\"}");
	note(&p, "{\"type\":\"stdout\",\"text\":\"last\\r\\n\\n\"}");
	note(&p, "{\"type\":\"stdout\",\"text\":\"\\n\"}");
	note(&p, "{\"type\":\"usage\"}");
	assert_string_equal(beat(&p, 1099), "");
	assert_int_equal(mcp_progress_wait(&p, 1099), 1);
	assert_non_null(strstr(beat(&p, 1100), "\"progress\":100,\"message\":\"last\"}"));
	assert_string_equal(beat(&p, 6099), "");
	assert_int_equal(mcp_progress_wait(&p, 6099), 1);
	assert_non_null(strstr(beat(&p, 6100), "\"progress\":5100}"));
}

static void a_long_line_is_cut_and_stays_utf_8(void **state)
{
	const struct mcp_id token = { MCP_ID_NUMBER, "1" };
	char event[600];
	struct mcp_progress p;

	(void)state;
	mcp_progress_init(&p, &token, 0, 0);
	(void)snprintf(event, sizeof(event), "{\"text\":\"%0199d\xc3\xa9%0200d\"}", 1, 2);
	note(&p, event);
	assert_non_null(strstr(beat(&p, MCP_PROGRESS_PAUSE_MS), "01\xef\xbf\xbd\"}"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_id_of_a_refused_message_is_found_wherever_it_stands),
		cmocka_unit_test(the_id_is_found_at_either_end_of_a_message_that_is_too_long),
		cmocka_unit_test(in_doubt_no_id_is_found),
		cmocka_unit_test(a_response_has_its_result_or_its_error),
		cmocka_unit_test(the_last_line_of_a_pause_is_sent_after_it),
		cmocka_unit_test(a_long_line_is_cut_and_stays_utf_8),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
