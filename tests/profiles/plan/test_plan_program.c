/* SPDX-License-Identifier: Apache-2.0 */
/* A plan's program: code, arguments, environment, data, and what excludes what. */
#include "rootfs/files/inputs.h"
#include "profiles/plan/env_file.h"
#include "tests/profiles/plan/plan_request.h"

static void a_file_takes_its_place_in_the_command(void **state)
{
	struct request *r = *state;
	const char *const args[] = { "-v", "{file}", "a b", NULL };
	const char *const expected[] = { "run", "-x", "/box/main.py", "-v", "{file}", "a b", NULL };
	use_interpreter(r);
	r->inv.file = "some/tool.py";
	r->inv.args = args;
	assert_made(r);
	assert_words(&r->program.argv, expected);
	assert_int_equal(r->program.code_source, CODE_FILE);
	assert_string_equal(r->program.code_name, "some/tool.py");
	assert_string_equal(r->program.code_path, "/box/main.py");
	assert_string_equal(r->program.workdir, "/box");
}

static void code_can_be_a_string_or_standard_input(void **state)
{
	struct request *r = *state;
	use_interpreter(r);
	r->inv.file = "-";
	assert_made(r);
	assert_int_equal(r->program.code_source, CODE_STDIN);
	assert_string_equal(r->program.code_path, "/box/main.py");
	r->inv.file = NULL;
	set(r, "code", "print(1)");
	assert_made(r);
	assert_int_equal(r->program.code_source, CODE_STRING);
	assert_string_equal(r->program.code_text, "print(1)");
	assert_int_equal(r->program.code_size, 8);
	assert_string_equal(r->program.code_name, "-c");
}

static void a_file_keeps_an_extension_the_profile_knows(void **state)
{
	struct request *r = *state;
	use_interpreter(r);
	r->inv.file = "a.pyw";
	assert_made(r);
	assert_string_equal(r->program.code_path, "/box/main.pyw");
	r->inv.file = "a.rb";
	assert_made(r);
	assert_string_equal(r->program.code_path, "/box/main.py");
	r->inv.file = "a.pyw/x";
	assert_made(r);
	assert_string_equal(r->program.code_path, "/box/main.py");
}

static void a_command_is_taken_as_it_is(void **state)
{
	struct request *r = *state;
	const char *const args[] = { "echo", "{file}", "{args}", "", NULL };
	r->inv.is_command = true;
	r->inv.args = args;
	assert_made(r);
	assert_words(&r->program.argv, args);
	assert_int_equal(r->program.code_source, CODE_NONE);
	assert_null(r->program.code_path);
}

static const char *env_of(const struct request *r, const char *name)
{
	const char *pair = env_find(r->program.env.items, name);
	return pair ? pair + strlen(name) + 1 : NULL;
}

static void a_shell_has_a_terminal_and_input(void **state)
{
	struct request *r = *state;
	const char *const expected[] = { "sh", NULL };
	set_key(r, "shell", "sh");
	r->inv.use_shell = true;
	assert_made(r);
	assert_words(&r->program.argv, expected);
	assert_true(r->plan.tty);
	assert_true(r->plan.root.tty);
	assert_true(r->program.interactive);
}

static void a_run_without_a_program_is_refused_with_the_choices(void **state)
{
	struct request *r = *state;
	const char *const args[] = { "x", NULL };
	const char *const nothing[] = { NULL };
	r->inv.file = "a.py";
	assert_refused(r, "has no 'command'");
	use_interpreter(r);
	r->inv.file = NULL;
	assert_refused(r, "there is nothing to run");
	assert_refused(r, "give FILE");
	r->inv.use_shell = true;
	assert_refused(r, "has no 'shell'");
	set_key(r, "shell", "sh");
	r->inv.args = args;
	assert_refused(r, "no place for {args}");
	r->inv = (struct invocation){ .is_command = true, .args = nothing };
	assert_refused(r, "'--' is followed by no command");
}

static void a_command_without_a_place_for_the_file_is_refused(void **state)
{
	struct request *r = *state;
	set_key(r, "command", "run");
	r->inv.file = "a.py";
	assert_refused(r, "no place for {file}");
}

static void a_file_s_own_interpreter_replaces_the_arguments_before_it(void **state)
{
	const char *const args[] = { "a", NULL };
	const char *const expected[] = { "sh", "-e", "/box/main.py", "a", NULL };
	static const char *const arguments[] = { "{interpreter}", "sh", "-e", "{file}", "{args}" };
	struct request *r = *state;
	use_interpreter(r);
	r->inv.file = "a.py";
	assert_made(r);
	assert_false(r->program.own_interpreter);

	r->c.command = (struct strings){ 0 };
	for (size_t i = 0; i < sizeof(arguments) / sizeof(arguments[0]); i++)
		set_key(r, "command", arguments[i]);
	r->inv.args = args;
	assert_made(r);
	assert_true(r->program.own_interpreter);
	assert_words(&r->program.argv, expected);

	r->c.command = (struct strings){ 0 };
	set_key(r, "command", "{interpreter}");
	set_key(r, "command", "{file}");
	assert_refused(r, "nothing between {interpreter} and {file}");
	assert_true(
	    setting_set(&r->c, setting_by_key("command"), "command", "{interpreter}", &r->err) < 0);
	assert_non_null(strstr(r->err.msg, "can only be the first argument"));
}

static void the_command_has_the_limits_in_their_places(void **state)
{
	static const struct {
		uint64_t memory, millicpus;
		const char *heap, *cpus;
	} rows[] = {
		{ 1u << 30, 1000, "-Xmx768m", "n=1" },
		{ 512u << 20, 1500, "-Xmx384m", "n=2" },
		{ 200u << 20, 500, "-Xmx104m", "n=1" },
		{ 64u << 20, 2000, "-Xmx16m", "n=2" },
	};
	struct request *r = *state;
	set_key(r, "command", "java");
	set_key(r, "command", "-Xmx{heap_mb}m");
	set_key(r, "command", "n={cpus}");
	set_key(r, "command", "{file}");
	r->inv.file = "a.jar";
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		r->c.limits.memory_bytes = rows[i].memory;
		r->c.limits.millicpus = rows[i].millicpus;
		const char *const expected[] = { "java", rows[i].heap, rows[i].cpus, "/box/main",
						 NULL };
		assert_made(r);
		assert_words(&r->program.argv, expected);
	}
}

static void an_interpreter_is_told_of_limits_by_variables_that_are_not_set(void **state)
{
	struct request *r = *state;
	set_key(r, "command", "/usr/bin/node");
	set_key(r, "command", "{file}");
	r->inv.file = "a.js";
	r->c.limits.memory_bytes = 512u << 20;
	r->c.network = NETWORK_NONE;
	assert_made(r);
	assert_string_equal(env_of(r, "NODE_OPTIONS"), "--max-old-space-size=384");
	assert_string_equal(env_of(r, "NPM_CONFIG_OFFLINE"), "true");
	assert_null(env_of(r, "PIP_INDEX_URL"));
	set_key(r, "env", "NODE_OPTIONS={heap_mb}");
	r->c.network = NETWORK_PUBLIC;
	assert_made(r);
	assert_string_equal(env_of(r, "NODE_OPTIONS"), "{heap_mb}");
	assert_null(env_of(r, "NPM_CONFIG_OFFLINE"));
}

static void node_is_asked_to_run_typescript(void **state)
{
	static const struct {
		const char *interpreter, *file, *words[4];
	} rows[] = {
		{ "node", "a.ts", { "node", "--experimental-strip-types", "/box/main.ts" } },
		{ "node", "b/a.mts", { "node", "--experimental-strip-types", "/box/main.mts" } },
		{ "node", "a.cts", { "node", "--experimental-strip-types", "/box/main.cts" } },
		{ "node", "a.tsx", { "node", "/box/main" } },
		{ "node", "ts", { "node", "/box/main" } },
		{ "other", "a.ts", { "other", "/box/main" } },
	};
	struct request *r = *state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		r->c.command = (struct strings){ 0 };
		set_key(r, "command", rows[i].interpreter);
		set_key(r, "command", "{file}");
		r->inv.file = rows[i].file;
		assert_made(r);
		assert_words(&r->program.argv, rows[i].words);
		assert_int_equal(r->program.strips_types, rows[i].words[2] != NULL);
	}
}

static void deno_is_told_its_heap(void **state)
{
	struct request *r = *state;
	set_key(r, "command", "deno");
	set_key(r, "command", "{file}");
	r->inv.file = "a.ts";
	r->c.limits.memory_bytes = 512u << 20;
	assert_made(r);
	assert_string_equal(env_of(r, "DENO_V8_FLAGS"), "--max-old-space-size=384");
	assert_null(env_of(r, "NODE_OPTIONS"));
}

static void code_longer_than_a_file_may_be_is_refused(void **state)
{
	struct request *r = *state;
	auto_free char *code = malloc(CODE_BYTES_MAX + 2);
	assert_non_null(code);
	memset(code, ' ', CODE_BYTES_MAX + 1);
	code[CODE_BYTES_MAX + 1] = '\0';
	use_interpreter(r);
	r->c.code = code;
	r->c.code_size = CODE_BYTES_MAX + 1;
	r->c.has_code = true;
	assert_refused(r, "-c: the code is longer than 16 MiB");
	r->c.code_size = CODE_BYTES_MAX;
	assert_made(r);
}

static void arguments_execve_cannot_take_are_refused(void **state)
{
	struct request *r = *state;
	static char argument[(128u << 10) + 1];
	const char *args[32] = { "x" };
	memset(argument, 'a', sizeof(argument) - 1);
	args[1] = argument;
	r->inv.is_command = true;
	r->inv.args = args;
	assert_refused(r, "longer than 128 KiB");
	argument[sizeof(argument) - 2] = '\0';
	assert_made(r);
	for (size_t i = 1; i < 10; i++)
		args[i] = argument;
	assert_refused(r, "more than 1024 KiB together");
	assert_refused(r, "--args-json");
}

static void only_named_variables_come_from_the_caller(void **state)
{
	struct request *r = *state;
	const char *const environ_list[] = { "A=1", "SECRET=x", "AB=2", NULL };
	const char *const expected[] = { "X=0", "A=1", NULL };
	use_command(r);
	r->inv.environ = environ_list;
	set(r, "env", "X=0");
	set(r, "env", "A");
	assert_made(r);
	assert_words(&r->program.env, expected);
	set(r, "env", "B");
	assert_refused(r, "--env 'B' is not set here");
	assert_refused(r, "--env B=VALUE");
}

static void a_terminal_has_a_type(void **state)
{
	struct request *r = *state;
	const char *const own[] = { "TERM=xterm", NULL };
	const char *const asked[] = { "TERM=vt100", NULL };
	use_command(r);
	set(r, "tty", NULL);
	assert_made(r);
	assert_words(&r->program.env, own);
	set(r, "env", "TERM=vt100");
	memset(&r->program, 0, sizeof(r->program));
	assert_made(r);
	assert_words(&r->program.env, asked);
}

static void arguments_as_data_are_checked_and_kept(void **state)
{
	struct request *r = *state;
	use_command(r);
	set(r, "args-json", "[1, {\"a\": null}]");
	assert_made(r);
	assert_string_equal(r->program.args_json, "[1, {\"a\": null}]");
	set(r, "args-json", "@args.json");
	assert_made(r);
	assert_string_equal(r->program.args_json, "{\"n\": 1}");
	set(r, "args-json", "{\"a\": }");
	assert_refused(r, "--args-json: JSON:1:");
	set(r, "args-json", "@bad.json");
	assert_refused(r, "--args-json: bad.json:1:");
	set(r, "args-json", "@absent.json");
	assert_refused(r, "absent.json");
	set(r, "args-json", "@fifo");
	assert_refused(r, "fifo");
	set(r, "args-json", "@");
	assert_refused(r, "--args-json");
}

static void settings_that_exclude_each_other_are_refused_by_the_plan(void **state)
{
	struct request *r = *state;
	use_interpreter(r);
	set(r, "code", "x");
	r->inv.file = "a.py";
	assert_refused(r, "'-c CODE' and 'FILE' exclude each other");
	r->inv.file = NULL;
	use_command(r);
	assert_refused(r, "'-c CODE' and '-- CMD'");
	r->c.has_code = false;
	r->inv = (struct invocation){ .file = "-" };
	set(r, "interactive", NULL);
	assert_refused(r, "'-' and '--interactive'");
	r->c.interactive = false;
	set(r, "tty", NULL);
	assert_refused(r, "'-' and '--tty'");
	r->inv.file = "a.py";
	assert_made(r); /* docker allows -t alone */
	set(r, "json", NULL);
	assert_refused(r, "use --json=FILE");
	set(r, "json", "out.json");
	assert_made(r);
	set(r, "verbose", NULL);
	set(r, "quiet", NULL);
	assert_refused(r, "'--verbose' and '--quiet'");
}

static void a_program_has_one_list_of_tools_and_one_who_answers(void **state)
{
	struct request *r = *state;
	use_command(r);
	set(r, "tools-from", "servers.json");
	set(r, "tools", "tools.json");
	assert_refused(r, "'--tools-from' and '--tools' exclude each other");
	r->c.tools = NULL;
	set(r, "calls-fd", "7");
	assert_refused(r, "'--tools-from' and '--calls-fd' exclude each other: the servers answer");
	r->c.calls_fd = -1;
	set(r, "remote", "x.sock");
	assert_refused(r, "'--remote' and '--tools-from' exclude each other");
	r->c.remote = NULL;
	set(r, "dry-run", NULL);
	assert_refused(r, "'--tools-from' and '--dry-run' exclude each other");
	r->c.tools_from = NULL;
	set(r, "tools", "tools.json");
	r->inv.tools_json = "[]";
	assert_refused(r, "'--tools' and 'the request's \"tools\"' exclude each other");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		REQUEST_TEST(a_file_takes_its_place_in_the_command),
		REQUEST_TEST(code_can_be_a_string_or_standard_input),
		REQUEST_TEST(a_file_keeps_an_extension_the_profile_knows),
		REQUEST_TEST(a_command_is_taken_as_it_is),
		REQUEST_TEST(a_shell_has_a_terminal_and_input),
		REQUEST_TEST(a_run_without_a_program_is_refused_with_the_choices),
		REQUEST_TEST(a_command_without_a_place_for_the_file_is_refused),
		REQUEST_TEST(the_command_has_the_limits_in_their_places),
		REQUEST_TEST(an_interpreter_is_told_of_limits_by_variables_that_are_not_set),
		REQUEST_TEST(a_file_s_own_interpreter_replaces_the_arguments_before_it),
		REQUEST_TEST(node_is_asked_to_run_typescript),
		REQUEST_TEST(deno_is_told_its_heap),
		REQUEST_TEST(code_longer_than_a_file_may_be_is_refused),
		REQUEST_TEST(arguments_execve_cannot_take_are_refused),
		REQUEST_TEST(only_named_variables_come_from_the_caller),
		REQUEST_TEST(a_terminal_has_a_type),
		REQUEST_TEST(arguments_as_data_are_checked_and_kept),
		REQUEST_TEST(settings_that_exclude_each_other_are_refused_by_the_plan),
		REQUEST_TEST(a_program_has_one_list_of_tools_and_one_who_answers),
	};
	return cmocka_run_group_tests(tests, tree_setup, tree_teardown);
}
