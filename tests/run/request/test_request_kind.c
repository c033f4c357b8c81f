/* SPDX-License-Identifier: Apache-2.0 */
/* The bodies of a session and of an exec in it: which members each takes. */
#include "tests/run/request/asked.h"

#include <fcntl.h>

#include "runtime/base/scope.h"
#include "tests/json_file.h"

static int parse_as(struct asked *a, enum request_kind kind, const char *text)
{
	struct request_caps of_kind = caps;

	of_kind.kind = kind;
	of_kind.profile = kind == REQUEST_EXEC ? "python" : NULL;
	a->err = (struct cj_error){ 0 };
	return request_parse((struct blob){ text, strlen(text) }, &of_kind, &a->arena, &a->request,
			     &a->err);
}

static void assert_refused_as(struct asked *a, enum request_kind kind, const char *text,
			      const char *message)
{
	assert_int_equal(parse_as(a, kind, text), -EINVAL);
	assert_string_equal(a->err.msg, message);
}

static void a_session_has_a_profile_settings_and_times(void **state)
{
	struct asked *a = *state;

	assert_int_equal(parse_as(a, REQUEST_SESSION,
				  "{\"profile\": \"python\", \"context\": \"repl\", "
				  "\"lease\": \"10m\", \"idle\": 90, \"memory\": \"64M\"}"),
			 0);
	assert_true(a->request.wants_repl);
	assert_int_equal(a->request.lease_ms, 600000);
	assert_int_equal(a->request.idle_ms, 90000);
	assert_int_equal(a->request.fit, FIT_COLD);
	assert_int_equal(request_apply(&a->request, false, &a->config, &a->err), 0);
	assert_int_equal(a->config.limits.memory_bytes, 64 << 20);
	assert_int_equal(
	    parse_as(a, REQUEST_SESSION, "{\"profile\": \"python\", \"context\": \"none\"}"), 0);
	assert_false(a->request.wants_repl);
	assert_false(a->request.renew_on_use);
	assert_int_equal(
	    parse_as(a, REQUEST_SESSION, "{\"profile\": \"python\", \"renew_on_use\": true}"), 0);
	assert_true(a->request.renew_on_use);
}

static void a_session_has_no_program(void **state)
{
	static const char *const members[] = { "code",  "command",   "args", "args_json", "stdin",
					       "files", "artifacts", "id",   "detach" };
	char text[128];

	for (size_t i = 0; i < COUNT(members); i++) {
		(void)snprintf(text, sizeof(text), "{\"profile\": \"python\", \"%s\": \"x\"}",
			       members[i]);
		assert_int_equal(parse_as(*state, REQUEST_SESSION, text), -EINVAL);
		assert_non_null(strstr(((struct asked *)*state)->err.msg, members[i]));
	}
	assert_refused_as(*state, REQUEST_SESSION,
			  "{\"profile\": \"python\", \"context\": \"new\"}",
			  "request:1:34: context: 'new' is neither 'none' nor 'repl'");
	assert_refused_as(*state, REQUEST_SESSION, "{}", "request:1:1: profile is missing");
}

static void an_exec_has_a_program_and_the_profile_of_its_session(void **state)
{
	struct asked *a = *state;

	assert_int_equal(parse_as(a, REQUEST_EXEC,
				  "{\"code\": \"1\", \"detach\": true, \"interrupt\": true, "
				  "\"open_stdin\": true, \"timeout\": \"1s\"}"),
			 0);
	assert_string_equal(a->request.profile, "python");
	assert_true(a->request.detach && a->request.interrupt && a->request.open_stdin);
	assert_int_equal(request_apply(&a->request, false, &a->config, &a->err), 0);
	assert_int_equal(
	    parse_as(a, REQUEST_EXEC, "{\"profile\": \"python\", \"command\": [\"true\"]}"), 0);
	assert_false(a->request.detach || a->request.interrupt || a->request.open_stdin);
	assert_refused_as(a, REQUEST_EXEC, "{\"profile\": \"node\", \"code\": \"1\"}",
			  "request:1:13: profile: the session's is 'python'");
	assert_refused_as(a, REQUEST_EXEC, "{\"detach\": true}",
			  "request:1:1: code or command is missing");
	assert_refused_as(a, REQUEST_EXEC,
			  "{\"code\": \"1\", \"stdin\": \"x\", \"open_stdin\": true}",
			  "request:1:24: stdin and open_stdin exclude each other");
}

static void an_exec_can_not_change_the_jail(void **state)
{
	struct asked *a = *state;

	assert_refused_as(a, REQUEST_EXEC, "{\"code\": \"1\", \"memory\": \"1G\"}",
			  "request:1:15: memory: it would change the session's jail");
	assert_string_equal(a->err.hint, "set it when the session is created");
	assert_int_equal(
	    parse_as(a, REQUEST_EXEC, "{\"code\": \"1\", \"network\": {\"mode\": \"none\"}}"),
	    -EINVAL);
	assert_int_equal(parse_as(a, REQUEST_EXEC, "{\"code\": \"1\", \"ro_bind\": [\"/etc\"]}"),
			 -EINVAL);
	assert_int_equal(parse_as(a, REQUEST_EXEC,
				  "{\"code\": \"1\", \"env\": {\"A\": \"1\"}, "
				  "\"workdir\": \"/tmp\"}"),
			 0);
}

static void a_run_has_nothing_of_a_session(void **state)
{
	static const char *const members[] = { "context", "lease",     "idle",      "renew_on_use",
					       "detach",  "interrupt", "open_stdin" };
	char text[128];

	for (size_t i = 0; i < COUNT(members); i++) {
		(void)snprintf(text, sizeof(text), "\"%s\": \"1\"", members[i]);
		assert_int_equal(parse(*state, with(*state, text)), -EINVAL);
	}
}

/* --- the schemas ------------------------------------------------------------------ */

static const struct json_node *properties_of(const char *path, struct arena *a)
{
	return json_get(json_of_file(path, a), "properties");
}

/* The own keys, then the settings that such a request may have. */
static void check_schema(const char *path, const char *const *own, size_t count,
			 enum request_fit coldest)
{
	auto_arena struct arena arena = { 0 };
	const struct json_node *keys = properties_of(path, &arena);

	for (size_t i = 0; i < count; i++)
		if (!json_get(keys, own[i]))
			fail_msg("%s has no '%s'", path, own[i]);
	bool has_network = false, has_calls = false;
	for (size_t i = 0; i < settings_count; i++) {
		const struct setting *s = &settings[i];
		if (s->scope == SCOPE_NO_REQUEST || request_fit_of(s) > coldest)
			continue;
		bool is_network = strncmp(s->key, "network.", 8) == 0;
		bool is_call = strncmp(s->key, "calls.", 6) == 0;
		if (!json_get(keys, is_network ? "network" : is_call ? "calls" : s->key))
			fail_msg("%s has no '%s'", path, s->key);
		count += is_network ? !has_network : is_call ? !has_calls : 1;
		has_network |= is_network;
		has_calls |= is_call;
	}
	assert_int_equal(keys->count, count);
}

static void the_schemas_name_each_key_and_nothing_more(void **state)
{
	static const char *const session[] = { "profile", "context",      "lease",
					       "idle",    "renew_on_use", "tools" };
	static const char *const exec[] = { "profile",   "id",     "code",      "command",
					    "args",      "stdin",  "args_json", "files",
					    "artifacts", "detach", "interrupt", "open_stdin",
					    "tools" };
	(void)state;
	check_schema("profiles/schema/session-request.json", session, COUNT(session), FIT_COLD);
	check_schema("profiles/schema/exec-request.json", exec, COUNT(exec), FIT_JAIL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_session_has_a_profile_settings_and_times),
		TEST(a_session_has_no_program),
		TEST(an_exec_has_a_program_and_the_profile_of_its_session),
		TEST(an_exec_can_not_change_the_jail),
		TEST(a_run_has_nothing_of_a_session),
		TEST(the_schemas_name_each_key_and_nothing_more),
	};
	return cmocka_run_group_tests_name("request_kind", tests, NULL, NULL);
}
