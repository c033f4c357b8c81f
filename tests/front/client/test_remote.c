/* SPDX-License-Identifier: Apache-2.0 */
/* What is asked of a service says what the caller said; what it answers is a run's outcome. */
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <signal.h>

#include "runtime/base/scope.h"
#include "runtime/run/options/options.h"
#include "runtime/front/client/remote_request.h"
#include "runtime/run/report/remote_result.h"

/* --- requests --------------------------------------------------------------- */

static void assert_request(const struct remote_request *r, const char *wanted)
{
	auto_json_writer struct json_writer *w = json_writer_create(false);
	struct cj_error err = { 0 };
	struct blob text = { 0 };

	assert_non_null(w);
	remote_request_write(w, r);
	assert_int_equal(json_writer_take(w, &text, &err), 0);
	assert_string_equal(text.bytes, wanted);
}

static void only_given_settings_are_sent(void **state)
{
	(void)state;
	struct config c;
	struct cj_error err = { 0 };
	bool *wanted = calloc(settings_count, sizeof(*wanted));
	const char *const args[] = { "a", "\xc3\xa9", NULL };
	static const char *const given[][2] = { { "timeout", "1500ms" },
						{ "allow", "example.org" },
						{ "network", "public" },
						{ "env", "A=b=c" },
						{ "writable", NULL } };

	config_init(&c);
	assert_non_null(wanted);
	for (size_t i = 0; i < sizeof(given) / sizeof(given[0]); i++) {
		const struct setting *s = setting_by_option(given[i][0]);
		assert_int_equal(setting_set(&c, s, "x", given[i][1], &err), 0);
		wanted[s - settings] = true;
	}
	const struct remote_request r = { .profile = "python",
					  .id = "ID",
					  .config = &c,
					  .wanted = wanted,
					  .code = { "print(1)", 8 },
					  .args = args };
	assert_request(&r, "{\"profile\":\"python\",\"id\":\"ID\",\"code\":\"print(1)\","
			   "\"args\":[\"a\",\"\xc3\xa9\"],\"timeout\":\"1500ms\","
			   "\"env\":{\"A\":\"b=c\"},"
			   "\"network\":{\"mode\":\"public\",\"allow\":[\"example.org\"]},"
			   "\"writable\":true}");
	free(wanted);
	config_fini(&c);
}

static void bytes_that_are_not_utf8_are_sent_as_base64(void **state)
{
	(void)state;
	struct config c;
	bool *wanted = calloc(settings_count, sizeof(*wanted));
	const char *const words[] = { "cat", NULL };
	const struct copy_spec files[] = {
		{ .target = "/box/a", .bytes = "x", .size = 1 },
		{ .target = "/box/b", .bytes = "\xff", .size = 1, .is_executable = true },
	};

	config_init(&c);
	assert_non_null(wanted);
	const struct remote_request r = { .profile = "base",
					  .id = "ID",
					  .config = &c,
					  .wanted = wanted,
					  .is_command = true,
					  .args = words,
					  .input = { "a\0b", 3 },
					  .files = files,
					  .nfiles = 2,
					  .artifacts_bytes = ARTIFACTS_INLINE_MAX };
	assert_request(&r, "{\"profile\":\"base\",\"id\":\"ID\",\"command\":[\"cat\"],"
			   "\"stdin\":{\"base64\":\"YQBi\"},"
			   "\"files\":[{\"path\":\"/box/a\",\"text\":\"x\"},"
			   "{\"path\":\"/box/b\",\"base64\":\"/w==\",\"executable\":true}],"
			   "\"artifacts\":true}");
	const struct remote_request few = { .profile = "base",
					    .id = "ID",
					    .config = &c,
					    .wanted = wanted,
					    .is_command = true,
					    .args = words,
					    .artifacts_bytes = 9 };
	assert_request(&few, "{\"profile\":\"base\",\"id\":\"ID\",\"command\":[\"cat\"],"
			     "\"artifacts\":\"inline:9\"}");
	free(wanted);
	config_fini(&c);
}

static void a_relative_host_path_starts_at_the_callers_directory(void **state)
{
	(void)state;
	auto_arena struct arena a = { 0 };
	static const struct {
		const char *text, *dir, *wanted;
		size_t skip;
		bool each_part;
	} rows[] = {
		{ "x:/y", "/d", "/d/x:/y", 0, false },
		{ "x:y", "/d", "/d/x:y", 0, false },
		{ "/x:y", "/d", "/x:y", 0, false },
		{ "a:/b:c", "/d", "/d/a:/b:/d/c", 0, true },
		{ "a\\:b:c", "/d", "/d/a\\:b:/d/c", 0, true },
		{ "unix:s", "/d", "unix:/d/s", 5, false },
		{ "unix:/s:t", "/d", "unix:/s:t", 5, false },
		{ "x", "/d:e\\f", "/d\\:e\\\\f/x", 0, false },
		{ "x", "", "/x", 0, false },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_string_equal(remote_request_absolute(rows[i].text, rows[i].skip,
							    rows[i].each_part, rows[i].dir, &a),
				    rows[i].wanted);
}

/* --- results ---------------------------------------------------------------- */

struct answer {
	struct arena arena;
	const struct json_node *root;
	struct outcome outcome;
	struct cj_error err;
	int rc;
};
#define auto_answer __attribute__((cleanup(answer_fini)))

static void answer_fini(struct answer *a)
{
	outcome_fini(&a->outcome);
	arena_fini(&a->arena);
}

static struct answer answer_of(const char *text)
{
	struct answer a = { .rc = 0 };

	outcome_init(&a.outcome, "ID", 16);
	assert_int_equal(json_parse("test", text, strlen(text), &a.arena, &a.root, &a.err), 0);
	a.rc = remote_result_read(a.root, &a.outcome, &a.err);
	return a;
}

#define RESULT(members) "{\"schema\":\"cejail.result/1\"," members "}"

static void the_exit_status_equals_that_of_a_local_run(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		int status;
	} rows[] = {
		{ RESULT("\"status\":\"exited\",\"exit_code\":42,\"error\":null"), 42 },
		{ RESULT("\"status\":\"signaled\",\"signal\":9"), 137 },
		{ RESULT("\"status\":\"timeout\""), 124 },
		{ RESULT("\"status\":\"cpu_limit\""), 124 },
		{ RESULT("\"status\":\"oom\",\"signal\":9"), 137 },
		{ RESULT("\"status\":\"output_limit\""), 137 },
		{ RESULT("\"status\":\"cancelled\""), 128 + SIGPIPE },
		{ RESULT("\"status\":\"setup_error\",\"error\":{\"message\":\"m\"}"), 125 },
		{ RESULT("\"status\":\"exited\",\"exit_code\":127,"
			 "\"error\":{\"stage\":\"exec\",\"message\":\"m\"}"),
		  127 },
		{ RESULT("\"status\":\"exited\",\"exit_code\":126,"
			 "\"error\":{\"stage\":\"exec\",\"message\":\"m\"}"),
		  126 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		auto_answer struct answer a = answer_of(rows[i].text);
		assert_int_equal(a.rc, 0);
		assert_int_equal(outcome_exit_status(&a.outcome), rows[i].status);
	}
}

static void the_state_of_the_network_is_read_back(void **state)
{
	(void)state;
	auto_answer struct answer failed =
	    answer_of(RESULT("\"status\":\"timeout\",\"network\":{\"mode\":\"public\","
			     "\"state\":\"failed\",\"reason\":\"r\",\"uplink\":\"none\"}"));
	assert_int_equal(failed.outcome.network.state, NETWORK_FAILED);
	assert_int_equal(failed.outcome.network.uplink, UPLINK_NONE);
	assert_string_equal(failed.outcome.network.why, "r");
	auto_answer struct answer ready =
	    answer_of(RESULT("\"status\":\"timeout\",\"network\":{\"mode\":\"public\","
			     "\"state\":\"ready\",\"reason\":null,\"uplink\":\"pasta\"}"));
	assert_int_equal(ready.outcome.network.state, NETWORK_READY);
	assert_int_equal(ready.outcome.network.uplink, UPLINK_PASTA);
	assert_null(ready.outcome.network.why);
	auto_answer struct answer none = answer_of(
	    RESULT("\"status\":\"timeout\",\"network\":{\"mode\":\"none\",\"state\":null}"));
	assert_int_equal(none.outcome.network.state, NETWORK_UNUSED);
}

/* As long as there is room for. */
#define LONG_NAME "abcdefgh.abcdefgh.abcdefgh.abcdefgh.abcdefgh.abcdefgh.abcdefgh."

static void limits_denials_and_warnings_are_read_back(void **state)
{
	(void)state;
	auto_answer struct answer a = answer_of(RESULT(
	    "\"status\":\"setup_error\",\"error\":{\"stage\":\"exec\",\"message\":\"100% m\","
	    "\"hint\":\"h\"},\"limits\":{\"memory\":{\"value\":1048576,\"hit\":true},"
	    "\"pids\":{\"value\":5,\"hit\":null},\"wall\":{\"value\":6,\"hit\":false}},"
	    "\"denied_syscalls\":[{\"name\":\"mount\",\"count\":3}],"
	    "\"network\":{\"denied\":[{\"class\":\"metadata\",\"protocol\":\"tcp\","
	    "\"address\":\"169.254.169.254\",\"port\":80,\"count\":2},{\"class\":\"private\","
	    "\"protocol\":null,\"address\":null,\"port\":null,\"count\":7},"
	    "{\"class\":\"one of tomorrow\",\"count\":1},{\"class\":\"name\",\"protocol\":null,"
	    "\"address\":null,\"port\":null,\"name\":\"a.example.org\",\"count\":4},"
	    "{\"class\":\"name\",\"name\":\"" LONG_NAME "x\",\"count\":1}]},"
	    "\"warnings\":[\"w\"]"));
	const struct outcome *o = &a.outcome;

	assert_int_equal(a.rc, 0);
	assert_string_equal(o->error.stage, "exec");
	assert_string_equal(o->error.msg, "100% m");
	assert_string_equal(o->error.hint, "h");
	assert_int_equal(o->limits[LIMIT_MEMORY].value, 1048576);
	assert_int_equal(o->limits[LIMIT_MEMORY].hit, HIT_YES);
	assert_int_equal(o->limits[LIMIT_PIDS].hit, HIT_UNKNOWN);
	assert_int_equal(o->limits[LIMIT_WALL].hit, HIT_NO);
	assert_int_equal(o->ndenied, 1);
	assert_string_equal(o->denied[0].name, "mount");
	assert_int_equal(o->denied[0].count, 3);
	assert_int_equal(o->network.ndenied, 4);
	assert_int_equal(o->network.denied[0].class, NET_METADATA);
	assert_string_equal(denial_protocol_name(o->network.denied[0].protocol), "tcp");
	assert_int_equal(o->network.denied[0].port, 80);
	assert_int_equal(o->network.denied[1].address.family, 0);
	assert_int_equal(o->network.denied[1].count, 7);
	assert_string_equal(o->network.denied[1].name, "");
	assert_int_equal(o->network.denied[2].class, NET_NAME);
	assert_string_equal(o->network.denied[2].name, "a.example.org");
	assert_int_equal(o->network.denied[2].count, 4);
	assert_string_equal(o->network.denied[3].name, LONG_NAME);
	assert_string_equal(o->warnings.items[0], "w");
}

static void json_that_is_not_a_result_is_refused(void **state)
{
	(void)state;
	static const char *const texts[] = {
		"{}",
		"[]",
		"{\"schema\":\"cejail.result/2\",\"status\":\"exited\"}",
		RESULT("\"status\":\"one of tomorrow\""),
		RESULT("\"status\":7"),
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		auto_answer struct answer a = answer_of(texts[i]);
		assert_true(a.rc < 0);
	}
}

static void the_delivered_result_has_the_artefacts_stored_here(void **state)
{
	(void)state;
	auto_answer struct answer a = answer_of(
	    RESULT("\"status\":\"exited\",\"exit_code\":0,\"cpus\":0.25,\"request_id\":\"r\","
		   "\"artifacts\":[{\"path\":\"a\",\"text\":\"x\"},{\"path\":\"b\","
		   "\"text\":\"y\"}],\"warnings\":[\"theirs\"]"));
	auto_json_writer struct json_writer *w = json_writer_create(false);
	struct artifact stored = { .path = "b", .bytes = 1, .sha256 = "h", .type = "t" };
	struct cj_error err = { 0 };
	struct blob text = { 0 };

	assert_non_null(w);
	a.outcome.artifacts.items = &stored;
	a.outcome.artifacts.count = 1;
	outcome_warn(&a.outcome, "ours");
	remote_result_write(w, a.root, &a.outcome, false);
	assert_int_equal(json_writer_take(w, &text, &err), 0);
	assert_string_equal(
	    text.bytes,
	    RESULT("\"status\":\"exited\",\"exit_code\":0,\"cpus\":0.25,\"request_id\":\"r\","
		   "\"artifacts\":[{\"path\":\"b\",\"bytes\":1,\"sha256\":\"h\",\"type\":\"t\"}],"
		   "\"warnings\":[\"theirs\",\"ours\"]"));
}

static void artefacts_in_the_result_are_passed_on_with_their_content(void **state)
{
	(void)state;
	static const char sent[] =
	    RESULT("\"status\":\"exited\",\"artifacts\":[{\"path\":\"a\",\"text\":\"x\"}],"
		   "\"warnings\":[]");
	auto_answer struct answer a = answer_of(sent);
	auto_json_writer struct json_writer *w = json_writer_create(false);
	struct cj_error err = { 0 };
	struct blob text = { 0 };

	assert_non_null(w);
	remote_result_write(w, a.root, &a.outcome, true);
	assert_int_equal(json_writer_take(w, &text, &err), 0);
	assert_string_equal(text.bytes, sent);
}

static void a_refusal_is_one_error_with_code_and_hint(void **state)
{
	(void)state;
	static const struct {
		const char *body;
		uint64_t retry_after;
		const char *msg, *hint;
	} rows[] = {
		{ "{\"error\":{\"code\":\"queue_full\",\"message\":\"all wait\",\"hint\":null}}", 3,
		  "the service: all wait [queue_full]", "try again in 3 s" },
		{ "{\"error\":{\"code\":\"above_ceiling\",\"message\":\"too much\",\"hint\":\"less\"}}",
		  0, "the service: too much [above_ceiling]", "less" },
		{ "{\"error\":{\"code\":\"rate_limited\",\"message\":\"m\",\"hint\":\"h\"}}", 1,
		  "the service: m [rate_limited]", "h; try again in 1 s" },
		{ "{\"error\":{\"code\":\"internal\",\"message\":\"m\",\"request_id\":\"r7\"}}", 0,
		  "the service: m [internal]", "see request r7 in the log of the service" },
		{ "<html>", 0,
		  "the service answered with HTTP status 500, but not with an error of cejail",
		  "check that 'cejail serve' listens on this socket" },
		{ "", 0,
		  "the service answered with HTTP status 500, but not with an error of cejail",
		  "check that 'cejail serve' listens on this socket" },
		{ "{\"error\":7}", 0,
		  "the service answered with HTTP status 500, but not with an error of cejail",
		  "check that 'cejail serve' listens on this socket" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct cj_error err = { 0 };
		assert_true(remote_refusal_read(500, rows[i].retry_after, rows[i].body,
						strlen(rows[i].body), &err) < 0);
		assert_string_equal(err.msg, rows[i].msg);
		assert_string_equal(err.hint, rows[i].hint);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_given_settings_are_sent),
		cmocka_unit_test(bytes_that_are_not_utf8_are_sent_as_base64),
		cmocka_unit_test(a_relative_host_path_starts_at_the_callers_directory),
		cmocka_unit_test(the_exit_status_equals_that_of_a_local_run),
		cmocka_unit_test(the_state_of_the_network_is_read_back),
		cmocka_unit_test(limits_denials_and_warnings_are_read_back),
		cmocka_unit_test(json_that_is_not_a_result_is_refused),
		cmocka_unit_test(the_delivered_result_has_the_artefacts_stored_here),
		cmocka_unit_test(artefacts_in_the_result_are_passed_on_with_their_content),
		cmocka_unit_test(a_refusal_is_one_error_with_code_and_hint),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
