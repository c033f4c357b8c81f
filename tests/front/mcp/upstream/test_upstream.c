/* SPDX-License-Identifier: Apache-2.0 */
/* One server behind a link that the test plays: both eras, calls, and what a bad server sends. */
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "runtime/base/clock.h"
#include "runtime/front/mcp/upstream/upstream.h"

/* --- the link ------------------------------------------------------------------------ */

static char sent[1 << 16]; /* the lines since the last look */
static unsigned opened;
static bool is_open, is_full, cannot_open;

static int open_fake(struct upstream *u, struct cj_error *err)
{
	(void)u;
	opened++;
	is_open = !cannot_open;
	return cannot_open ? cj_reject(err, "no") : 0;
}

static void send_fake(struct upstream *u, const struct upstream_message *m)
{
	size_t size = strlen(sent);

	(void)u;
	assert_true(is_open && m->line.bytes[m->line.size] == '\0');
	(void)snprintf(sent + size, sizeof(sent) - size, "%s\n", m->line.bytes);
}

static bool is_busy(const struct upstream *u)
{
	(void)u;
	return is_full;
}

static int tick(struct upstream *u, uint64_t now_ms)
{
	(void)u;
	(void)now_ms;
	return -1;
}

static void close_fake(struct upstream *u)
{
	(void)u;
	is_open = false;
}

static bool is_closed(struct upstream *u)
{
	(void)u;
	return true;
}

static const struct upstream_link fake = { .open = open_fake,
					   .send = send_fake,
					   .is_busy = is_busy,
					   .tick = tick,
					   .close = close_fake,
					   .is_closed = is_closed };

/* --- the calls ----------------------------------------------------------------------- */

struct tried {
	struct upstream_call of;
	unsigned ended;
	char value[512], error[1024];
};

static void on_done(struct upstream_call *of, const struct json_node *value, const char *error)
{
	struct tried *t = (struct tried *)(void *)((char *)of - offsetof(struct tried, of));
	struct json_writer *w = json_writer_create(false);
	struct cj_error err = { 0 };
	struct blob text;

	t->ended++;
	assert_true((value == NULL) != (error == NULL));
	if (value) {
		json_put_node(w, value);
		assert_int_equal(json_writer_take(w, &text, &err), 0);
		(void)snprintf(t->value, sizeof(t->value), "%s", text.bytes);
	} else {
		(void)snprintf(t->error, sizeof(t->error), "%s", error);
	}
	json_writer_destroy(&w);
}

static void begin(struct upstream *u, struct tried *t, const char *tool)
{
	*t = (struct tried){
		.of = { .tool = tool, .arguments = "{\"a\": 1.0}", .size = 10, .done = on_done }
	};
	upstream_call(u, &t->of);
}

/* --- the server ------------------------------------------------------------------------ */

static const struct server_spec spec = { .name = "far" };

static struct upstream *make(const struct server_spec *s)
{
	struct upstream *u = calloc(1, sizeof(*u));

	assert_non_null(u);
	upstream_init(u, NULL, s, &fake);
	sent[0] = '\0';
	opened = 0;
	is_open = is_full = cannot_open = false;
	return u;
}

static void destroy(struct upstream **u)
{
	upstream_close(*u);
	upstream_fini(*u);
	free(*u);
}

#define auto_upstream __attribute__((cleanup(destroy)))

static void take(struct upstream *u, const char *text)
{
	sent[0] = '\0';
	upstream_take(u, text, strlen(text));
	(void)upstream_tick(u, clock_ms());
}

static const char initialized[] =
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"protocolVersion\":\"2025-06-18\","
    "\"capabilities\":{\"tools\":{}},\"serverInfo\":{\"name\":\"x\",\"version\":\"1\"}}}";
static const char listed[] =
    "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"tools\":["
    "{\"name\":\"read\",\"annotations\":{\"readOnlyHint\":true}},{\"name\":\"write\"}]}}";

static struct upstream *make_ready(const struct server_spec *s)
{
	struct upstream *u = make(s);

	upstream_want_list(u);
	(void)upstream_tick(u, clock_ms());
	assert_non_null(strstr(sent, "\"method\":\"initialize\""));
	take(u, initialized);
	assert_non_null(strstr(sent, "\"method\":\"notifications/initialized\""));
	assert_non_null(strstr(sent, "\"id\":2,\"method\":\"tools/list\""));
	take(u, listed);
	assert_true(u->is_listed && !u->is_wanted);
	assert_int_equal(u->state, UPSTREAM_READY);
	return u;
}

static void assert_failed(struct upstream *u, const char *why)
{
	if (!strstr(u->failure.msg, why) || is_open)
		fail_msg("'%s' lacks '%s'", u->failure.msg, why);
	assert_non_null(strstr(u->failure.msg, "the server 'far' "));
}

/* --- what works ------------------------------------------------------------------------- */

static void a_server_is_not_opened_before_it_is_needed(void **state)
{
	struct tried t;
	auto_upstream struct upstream *u = make(&spec);

	(void)state;
	assert_int_equal(upstream_tick(u, clock_ms()), -1);
	assert_int_equal(opened, 0);
	begin(u, &t, "read");
	assert_int_not_equal(upstream_tick(u, clock_ms()), -1);
	assert_int_equal(opened, 1);
	take(u, initialized);
	take(u, listed);
	assert_non_null(strstr(sent, "\"method\":\"tools/call\",\"params\":{\"name\":\"read\","
				     "\"arguments\":{\"a\": 1.0}}"));
}

static void calls_are_answered_in_any_order(void **state)
{
	struct tried a, b;
	auto_upstream struct upstream *u = make_ready(&spec);

	(void)state;
	begin(u, &a, "read");
	begin(u, &b, "read");
	(void)upstream_tick(u, clock_ms());
	take(u, "{\"jsonrpc\":\"2.0\",\"id\":4,\"result\":{\"structuredContent\":{\"n\":1.50}}}");
	assert_string_equal(b.value, "{\"n\":1.50}");
	assert_int_equal(a.ended, 0);
	take(u, "{\"jsonrpc\":\"2.0\",\"id\":3,\"error\":{\"code\":-32602,\"message\":\"bad\"}}");
	assert_string_equal(a.error, "the server 'far' refused the call: bad");
	assert_int_equal(a.ended + b.ended, 2);
}

static void a_result_becomes_a_value(void **state)
{
	static const struct {
		const char *result, *value, *error;
	} rows[] = {
		{ "{\"content\":[{\"type\":\"text\",\"text\":\"a\"}]}", "\"a\"", "" },
		{ "{\"content\":[{\"type\":\"text\",\"text\":\"a\"}],\"structuredContent\":{}}",
		  "{}", "" },
		{ "{\"content\":[{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"text\",\"text\":\"b\"}]}",
		  "[{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"text\",\"text\":\"b\"}]", "" },
		{ "{\"content\":[{\"type\":\"image\",\"data\":\"\"}]}",
		  "[{\"type\":\"image\",\"data\":\"\"}]", "" },
		{ "{\"content\":[]}", "[]", "" },
		{ "{}", "null", "" },
		{ "{\"isError\":true,\"content\":[{\"type\":\"text\",\"text\":\"a\"},"
		  "{\"type\":\"text\",\"text\":\"b\"}]}",
		  "", "a\nb" },
		{ "{\"isError\":true}", "", "the tool failed, and did not say why" },
		{ "{\"resultType\":\"input_required\"}", "",
		  "the tool asks for something that only a person can answer; call another tool" },
	};
	auto_upstream struct upstream *u = make_ready(&spec);

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct tried t;
		char line[1024];
		begin(u, &t, "read");
		(void)upstream_tick(u, clock_ms());
		(void)snprintf(line, sizeof(line), "{\"jsonrpc\":\"2.0\",\"id\":%zu,\"result\":%s}",
			       3 + i, rows[i].result);
		take(u, line);
		assert_int_equal(t.ended, 1);
		assert_string_equal(t.value, rows[i].value);
		assert_string_equal(t.error, rows[i].error);
	}
}

static void a_server_of_the_other_era_is_found(void **state)
{
	struct tried t;
	auto_upstream struct upstream *u = make(&spec);

	(void)state;
	begin(u, &t, "read");
	(void)upstream_tick(u, clock_ms());
	take(u, "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32601,\"message\":\"no\"}}");
	assert_non_null(strstr(sent, "\"method\":\"server/discover\""));
	assert_non_null(strstr(sent, "\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\""));
	take(u, "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"resultType\":\"complete\","
		"\"supportedVersions\":[\"2026-07-28\"],\"capabilities\":{\"tools\":{}}}}");
	assert_non_null(strstr(sent, "\"io.modelcontextprotocol/clientCapabilities\":{}"));
	take(u, "{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{\"tools\":["
		"{\"name\":\"read\",\"annotations\":{\"readOnlyHint\":true}}]}}");
	assert_non_null(strstr(sent, "\"method\":\"tools/call\""));
	assert_non_null(strstr(sent, "\"_meta\":{"));
	take(u, "{\"jsonrpc\":\"2.0\",\"id\":4,\"result\":{\"resultType\":\"complete\","
		"\"structuredContent\":7}}");
	assert_string_equal(t.value, "7");
}

static void pages_are_read_to_the_last(void **state)
{
	auto_upstream struct upstream *u = make(&spec);

	(void)state;
	upstream_want_list(u);
	(void)upstream_tick(u, clock_ms());
	take(u, initialized);
	take(u, "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"tools\":[{\"name\":\"a\"}],"
		"\"nextCursor\":\"p\\u0041ge\"}}");
	assert_non_null(strstr(sent, "\"params\":{\"cursor\":\"pAge\"}"));
	assert_false(u->is_listed);
	take(u, "{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{\"tools\":[{\"name\":\"b\"}]}}");
	assert_int_equal(u->ntools, 2);
}

static void a_changed_list_is_read_again_before_the_next_call(void **state)
{
	struct tried t, gone;
	auto_upstream struct upstream *u = make_ready(&spec);

	(void)state;
	take(u, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}");
	assert_string_equal(sent, "");
	begin(u, &t, "new");
	begin(u, &gone, "read");
	(void)upstream_tick(u, clock_ms());
	assert_non_null(strstr(sent, "tools/list"));
	take(u, "{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{\"tools\":["
		"{\"name\":\"new\",\"annotations\":{\"readOnlyHint\":true}}]}}");
	assert_non_null(strstr(sent, "\"name\":\"new\""));
	assert_non_null(strstr(gone.error, "no longer offers this tool"));
}

static void requests_of_the_server_are_answered_or_refused(void **state)
{
	auto_upstream struct upstream *u = make_ready(&spec);

	(void)state;
	take(u, "{\"jsonrpc\":\"2.0\",\"id\":\"p\",\"method\":\"ping\"}");
	assert_string_equal(sent, "{\"jsonrpc\":\"2.0\",\"id\":\"p\",\"result\":{}}\n");
	take(u,
	     "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"sampling/createMessage\",\"params\":{}}");
	assert_non_null(strstr(sent, "\"id\":7,\"error\":{\"code\":-32601"));
	take(u, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{}}");
	assert_string_equal(sent, "");
}

static void a_forgotten_call_is_cancelled_and_its_late_answer_ignored(void **state)
{
	struct tried t;
	auto_upstream struct upstream *u = make_ready(&spec);

	(void)state;
	begin(u, &t, "read");
	(void)upstream_tick(u, clock_ms());
	sent[0] = '\0';
	upstream_forget(&t.of, "timeout");
	assert_non_null(strstr(sent, "\"method\":\"notifications/cancelled\",\"params\":"
				     "{\"requestId\":3,\"reason\":\"timeout\"}"));
	take(u, "{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{}}");
	assert_int_equal(t.ended, 0);
	assert_int_equal(u->state, UPSTREAM_READY);
}

static void a_server_that_does_not_read_gets_no_more_calls(void **state)
{
	struct tried t;
	auto_upstream struct upstream *u = make_ready(&spec);

	(void)state;
	is_full = true;
	sent[0] = '\0';
	begin(u, &t, "read");
	(void)upstream_tick(u, clock_ms());
	take(u, "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"ping\"}");
	assert_string_equal(sent, "");
	is_full = false;
	(void)upstream_tick(u, clock_ms());
	assert_non_null(strstr(sent, "tools/call"));
}

/* --- what does not ---------------------------------------------------------------------- */

static void a_tool_that_is_not_offered_is_never_called(void **state)
{
	struct tried t;
	auto_upstream struct upstream *u = make_ready(&spec);

	(void)state;
	sent[0] = '\0';
	begin(u, &t, "write");
	(void)upstream_tick(u, clock_ms());
	assert_int_equal(t.ended, 1);
	assert_string_equal(sent, "");
}

static void what_breaks_the_protocol_ends_the_server_and_its_calls(void **state)
{
	static char deep[256] = "{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":";
	static const struct {
		const char *line, *why;
	} rows[] = {
		{ "hello", "no message of MCP" },
		{ "{\"jsonrpc\":\"2.0\",\"id\":3", "no message of MCP" },
		{ "[]", "no message of MCP" },
		{ deep, "no message of MCP" },
		{ "{\"jsonrpc\":\"2.0\",\"id\":9,\"result\":{}}", "'9', which was never sent" },
		{ "{\"jsonrpc\":\"2.0\",\"id\":\"3\",\"result\":{}}", "never sent" },
		{ "{\"jsonrpc\":\"2.0\",\"id\":-3,\"result\":{}}", "never sent" },
		{ "{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{}}", "never sent" },
		{ "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"message\":\"what\"}}",
		  "did not understand a message: what" },
	};

	(void)state;
	memset(deep + strlen(deep), '[', 100);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		auto_upstream struct upstream *u = make_ready(&spec);
		struct tried t;
		begin(u, &t, "read");
		(void)upstream_tick(u, clock_ms());
		take(u, rows[i].line);
		assert_failed(u, rows[i].why);
		assert_int_equal(t.ended, 1);
		assert_non_null(strstr(t.error, "call again"));
	}
}

static void a_start_that_goes_wrong_ends_the_server(void **state)
{
	static const struct {
		const char *lines[3], *why;
	} rows[] = {
		{ { "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"protocolVersion\":\"1999\"}}" },
		  "the version '1999'" },
		{ { "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{}}",
		    "{\"jsonrpc\":\"2.0\",\"id\":2,\"error\":{\"message\":\"no\"}}" },
		  "refused initialize and server/discover: no" },
		{ { "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{}}",
		    "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"supportedVersions\":[\"3000\"]}}" },
		  "no version of MCP" },
		{ { initialized, "{\"jsonrpc\":\"2.0\",\"id\":2,\"error\":{\"message\":\"no\"}}" },
		  "refused tools/list" },
		{ { initialized, "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}}" },
		  "without \"tools\"" },
		{ { initialized, "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"tools\":[{}]}}" },
		  "a tool whose name" },
		{ { initialized, "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"tools\":["
				 "{\"name\":\"a\"},{\"name\":\"a\"}]}}" },
		  "'a' twice" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		auto_upstream struct upstream *u = make(&spec);
		upstream_want_list(u);
		(void)upstream_tick(u, clock_ms());
		for (size_t k = 0; k < 3 && rows[i].lines[k]; k++)
			take(u, rows[i].lines[k]);
		assert_failed(u, rows[i].why);
		assert_false(u->is_wanted || u->is_listed);
	}
}

static void pages_without_end_end_the_server(void **state)
{
	auto_upstream struct upstream *u = make(&spec);

	(void)state;
	upstream_want_list(u);
	(void)upstream_tick(u, clock_ms());
	take(u, initialized);
	for (unsigned i = 2; is_open && i < 1000; i++) {
		char line[128];
		(void)snprintf(line, sizeof(line),
			       "{\"jsonrpc\":\"2.0\",\"id\":%u,\"result\":"
			       "{\"tools\":[],\"nextCursor\":\"a\"}}",
			       i);
		take(u, line);
	}
	assert_failed(u, "more than 64 pages");
}

static void a_list_that_is_too_large_ends_the_server(void **state)
{
	auto_upstream struct upstream *u = make(&spec);
	size_t size = UPSTREAM_LIST_BYTES + 1;
	char *bomb = malloc(size + 200);

	(void)state;
	assert_non_null(bomb);
	upstream_want_list(u);
	(void)upstream_tick(u, clock_ms());
	take(u, initialized);
	int used = snprintf(bomb, 200,
			    "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"tools\":["
			    "{\"name\":\"a\",\"description\":\"");
	memset(bomb + used, 'x', size);
	(void)snprintf(bomb + used + size, 100, "\"}]}}");
	take(u, bomb);
	free(bomb);
	assert_failed(u, "in more than 1048576 bytes");
}

static void a_list_of_too_many_values_ends_the_server(void **state)
{
	auto_upstream struct upstream *u = make(&spec);
	size_t size = (size_t)2 * UPSTREAM_LIST_VALUES;
	char *bomb = malloc(size + 200);

	(void)state;
	assert_non_null(bomb);
	upstream_want_list(u);
	(void)upstream_tick(u, clock_ms());
	take(u, initialized);
	int used = snprintf(bomb, 200,
			    "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"tools\":["
			    "{\"name\":\"a\",\"inputSchema\":{\"enum\":[");
	for (size_t i = 0; i < size; i += 2)
		memcpy(bomb + used + i, "1,", 2);
	(void)snprintf(bomb + used + size, 100, "1]}}]}}");
	take(u, bomb);
	free(bomb);
	assert_failed(u, "with more than 100000 values");
}

static void a_flood_of_notifications_ends_the_server(void **state)
{
	static const char note[] = "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\"}";
	auto_upstream struct upstream *u = make_ready(&spec);
	unsigned count = 0;

	(void)state;
	u->unasked_ms = clock_ms() + 3600000; /* they count together, however slowly they come */
	while (is_open && count++ < 3 * UPSTREAM_UNASKED_MAX)
		take(u, note);
	assert_failed(u, "messages that nobody asked for");
}

static void a_silent_server_is_given_up(void **state)
{
	static const struct server_spec hasty = { .name = "far", .timeout_ms = 500 };
	auto_upstream struct upstream *u = make(&hasty);
	uint64_t now_ms = clock_ms();
	struct tried t;

	(void)state;
	upstream_want_list(u);
	int wait_ms = upstream_tick(u, now_ms);
	assert_in_range(wait_ms, 1, 500);
	(void)upstream_tick(u, now_ms + 501);
	assert_failed(u, "did not answer initialize within 500ms");

	struct upstream *ready = make_ready(&hasty);
	begin(ready, &t, "read");
	(void)upstream_tick(ready, now_ms);
	(void)upstream_tick(ready, clock_ms() + 501);
	assert_non_null(strstr(t.error, "did not answer within 500ms"));
	assert_non_null(strstr(sent, "notifications/cancelled"));
	assert_true(is_open);
	destroy(&ready);
}

static void a_server_that_fails_again_and_again_has_to_wait(void **state)
{
	auto_upstream struct upstream *u = make(&spec);
	uint64_t now_ms = clock_ms();
	struct tried t;

	(void)state;
	cannot_open = true;
	for (unsigned i = 0; i < 2; i++) {
		begin(u, &t, "read");
		(void)upstream_tick(u, now_ms);
		assert_int_equal(t.ended, 1);
		assert_non_null(strstr(t.error, "cannot be started: no"));
	}
	assert_int_equal(opened, 2);
	begin(u, &t, "read");
	assert_int_equal(t.ended, 1);
	assert_non_null(strstr(t.error, "starts it anew in "));
	(void)upstream_tick(u, now_ms + 10);
	assert_int_equal(opened, 2);
	cannot_open = false;
	upstream_want_list(u);
	(void)upstream_tick(u, now_ms + UPSTREAM_RETRY_MS + 1);
	assert_int_equal(opened, 3);
	assert_true(is_open);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_server_is_not_opened_before_it_is_needed),
		cmocka_unit_test(calls_are_answered_in_any_order),
		cmocka_unit_test(a_result_becomes_a_value),
		cmocka_unit_test(a_server_of_the_other_era_is_found),
		cmocka_unit_test(pages_are_read_to_the_last),
		cmocka_unit_test(a_changed_list_is_read_again_before_the_next_call),
		cmocka_unit_test(requests_of_the_server_are_answered_or_refused),
		cmocka_unit_test(a_forgotten_call_is_cancelled_and_its_late_answer_ignored),
		cmocka_unit_test(a_server_that_does_not_read_gets_no_more_calls),
		cmocka_unit_test(a_tool_that_is_not_offered_is_never_called),
		cmocka_unit_test(what_breaks_the_protocol_ends_the_server_and_its_calls),
		cmocka_unit_test(a_start_that_goes_wrong_ends_the_server),
		cmocka_unit_test(pages_without_end_end_the_server),
		cmocka_unit_test(a_list_that_is_too_large_ends_the_server),
		cmocka_unit_test(a_list_of_too_many_values_ends_the_server),
		cmocka_unit_test(a_flood_of_notifications_ends_the_server),
		cmocka_unit_test(a_silent_server_is_given_up),
		cmocka_unit_test(a_server_that_fails_again_and_again_has_to_wait),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
