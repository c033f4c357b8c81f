/* SPDX-License-Identifier: Apache-2.0 */
/* Which options of `cejail run` a verb of `cejail session` takes. */
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* the front end is in no library */
#include "runtime/front/cli/session_options.c"

static const struct setting *setting(const char *option)
{
	const struct setting *s = setting_by_option(option);
	assert_non_null(s);
	return s;
}

static void the_jail_belongs_to_create_and_the_program_to_exec(void **state)
{
	(void)state;
	static const char *const of_jail[] = { "memory",  "pids-limit", "network", "allow",
					       "ro-bind", "rootfs",     "connect", "profile" };
	static const char *const of_program[] = { "code",      "interactive", "file",
						  "args-json", "id",          "artifacts",
						  "file-text", "tools",       "calls-fd" };
	static const char *const of_both[] = { "timeout", "env",  "workdir",  "max-output",
					       "remote",  "json", "calls-max" };
	static const char *const of_none[] = { "tty", "dry-run", "request-fd", "tools-from" };

	for (size_t i = 0; i < sizeof(of_jail) / sizeof(of_jail[0]); i++) {
		assert_true(session_options_of_create(setting(of_jail[i])));
		assert_false(session_options_of_exec(setting(of_jail[i])));
	}
	for (size_t i = 0; i < sizeof(of_program) / sizeof(of_program[0]); i++) {
		assert_false(session_options_of_create(setting(of_program[i])));
		assert_true(session_options_of_exec(setting(of_program[i])));
	}
	for (size_t i = 0; i < sizeof(of_both) / sizeof(of_both[0]); i++) {
		assert_true(session_options_of_create(setting(of_both[i])));
		assert_true(session_options_of_exec(setting(of_both[i])));
	}
	for (size_t i = 0; i < sizeof(of_none) / sizeof(of_none[0]); i++) {
		assert_false(session_options_of_create(setting(of_none[i])));
		assert_false(session_options_of_exec(setting(of_none[i])));
		assert_false(session_options_of_wait(setting(of_none[i])));
	}
}

static void other_verbs_take_the_service_and_how_much_is_printed(void **state)
{
	(void)state;
	size_t count = 0;

	for (size_t i = 0; i < settings_count; i++)
		count += settings[i].option && session_options_of_verb(&settings[i]);
	assert_int_equal(count, 4);
	assert_true(session_options_of_verb(setting("remote")));
}

static void the_network_s_verb_takes_a_mode_and_lists_and_nothing_else_of_a_jail(void **state)
{
	(void)state;
	size_t count = 0;

	for (size_t i = 0; i < settings_count; i++)
		count += settings[i].option && session_options_of_network(&settings[i]);
	assert_int_equal(count, 4 + 3);
	assert_true(session_options_of_network(setting("network")));
	assert_true(session_options_of_network(setting("allow")));
	assert_true(session_options_of_network(setting("deny")));
}

static int check(const char *const *words, enum remote_exec_kind kind, struct cj_error *err)
{
	auto_arena struct arena a = { 0 };
	const struct remote_exec exec = { .kind = kind, .session = "S" };
	struct options o;

	assert_int_equal(options_scan("session exec", words, &a, &o, err), 0);
	return session_options_check(&o, &exec, err);
}

static void an_option_of_the_jail_is_refused_with_the_verb_that_takes_it(void **state)
{
	(void)state;
	const char *const jail[] = { "-m", "64M", NULL }, *const none[] = { "--tty", NULL };
	struct cj_error err = { 0 };

	assert_int_equal(check(jail, REMOTE_EXEC_STREAMED, &err), -EINVAL);
	assert_string_equal(err.msg, "option '-m' is not for 'cejail session exec'");
	assert_non_null(strstr(err.hint, "cejail session create"));
	err = (struct cj_error){ 0 };
	assert_int_equal(check(none, REMOTE_EXEC_AWAITED, &err), -EINVAL);
	assert_string_equal(err.msg, "option '--tty' is not for 'cejail session wait'");
	assert_string_equal(err.hint, "see 'cejail session wait --help'");
}

static void a_detached_exec_has_no_input_and_no_calls_to_forward(void **state)
{
	(void)state;
	const char *const input[] = { "-i", NULL }, *const tools[] = { "--tools", "x", NULL };

	for (size_t i = 0; i < 2; i++) {
		const char *const *words = i == 0 ? input : tools;
		struct cj_error err = { 0 };
		assert_int_equal(check(words, REMOTE_EXEC_STREAMED, &err), 0);
		assert_int_equal(check(words, REMOTE_EXEC_DETACHED, &err), -EINVAL);
		assert_non_null(strstr(err.msg, i == 0 ? "the input" : "the calls"));
	}
}

static void servers_of_the_caller_are_refused_with_what_an_exec_takes_instead(void **state)
{
	(void)state;
	const char *const words[] = { "--tools-from", "x", NULL };
	struct cj_error err = { 0 };

	assert_int_equal(check(words, REMOTE_EXEC_STREAMED, &err), -EINVAL);
	assert_non_null(strstr(err.hint, "give --tools FILE"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_jail_belongs_to_create_and_the_program_to_exec),
		cmocka_unit_test(
		    the_network_s_verb_takes_a_mode_and_lists_and_nothing_else_of_a_jail),
		cmocka_unit_test(other_verbs_take_the_service_and_how_much_is_printed),
		cmocka_unit_test(an_option_of_the_jail_is_refused_with_the_verb_that_takes_it),
		cmocka_unit_test(a_detached_exec_has_no_input_and_no_calls_to_forward),
		cmocka_unit_test(servers_of_the_caller_are_refused_with_what_an_exec_takes_instead),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
