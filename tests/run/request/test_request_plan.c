/* SPDX-License-Identifier: Apache-2.0 */
/* WRAP: arena_alloc arena_array arena_strdup arena_strndup arena_printf strings_add */
/* A request's plan and program; and a request without the memory for it. */
#include "tests/run/request/asked.h"

#include "runtime/base/scope.h"
#include "tests/no_memory.h"

static void give_command(struct config *c)
{
	static const char *const words[] = { "run", "{file}", "{args}" };
	struct cj_error err;
	for (size_t i = 0; i < COUNT(words); i++)
		assert_int_equal(
		    setting_set(c, setting_by_key("command"), "command", words[i], &err), 0);
}

static int make_plan(struct asked *a, struct plan *plan, struct program *program)
{
	int rc = request_apply(&a->request, true, &a->config, &a->err);
	return rc < 0 ? rc : request_plan(&a->request, &a->config, plan, program, &a->err);
}

static void a_request_becomes_a_plan_and_a_program(void **state)
{
	struct asked *a = *state;
	struct plan plan;
	struct program program;
	give_command(&a->config);
	assert_taken(a,
		     "{\"profile\": \"p\", \"id\": \"mine\", \"code\": {\"base64\": \"AGE=\"},"
		     " \"args\": [\"-x\"], \"stdin\": \"in\", \"artifacts\": true, \"timeout\": 2,"
		     " \"args_json\": [1], \"files\": [{\"path\": \"f\", \"text\": \"abc\"}]}");
	if (make_plan(a, &plan, &program) < 0)
		fail_msg("%s", a->err.msg);
	assert_string_equal(program.id, "mine");
	assert_int_equal(program.code_source, CODE_STRING);
	assert_int_equal(program.code_size, 2);
	assert_memory_equal(program.code_text, "\0a", 2);
	assert_int_equal(program.argv.count, 3);
	assert_string_equal(program.argv.items[2], "-x");
	assert_true(program.interactive && program.collect_artifacts);
	assert_int_equal(program.limits.wall_ms, 2000);
	assert_string_equal(program.args_json, "[1]");
	assert_int_equal(program.nfiles, 1);
	assert_null(program.files[0].source);
	assert_string_equal(program.files[0].target, "/box/f");
	assert_memory_equal(program.files[0].bytes, "abc", 3);
}

static void a_command_is_run_unchanged(void **state)
{
	struct asked *a = *state;
	struct plan plan;
	struct program program;
	assert_taken(a, "{\"profile\": \"p\", \"command\": [\"ls\", \"{file}\"]}");
	if (make_plan(a, &plan, &program) < 0)
		fail_msg("%s", a->err.msg);
	assert_int_equal(program.code_source, CODE_NONE);
	assert_string_equal(program.argv.items[1], "{file}");
	assert_false(program.interactive || program.collect_artifacts);
	assert_int_equal(strlen(program.id), 26);
}

static void a_request_without_a_profile_has_the_callers_default(void **state)
{
	struct asked *a = *state;
	static const char text[] = "{\"command\": [\"ls\"]}";
	struct request_caps with_default = caps;
	assert_int_equal(parse(a, text), -EINVAL);
	assert_non_null(strstr(a->err.msg, "profile is missing"));
	with_default.profile = "./mine.json";
	assert_int_equal(request_parse((struct blob){ text, strlen(text) }, &with_default,
				       &a->arena, &a->request, &a->err),
			 0);
	assert_string_equal(a->request.profile, "./mine.json");
}

/* For a command line beside the request, whose own arguments as JSON and input stay. */
static void a_request_is_made_an_invocation_that_leaves_other_settings_alone(void **state)
{
	struct asked *a = *state;
	struct invocation inv;
	a->config.interactive = true;
	a->config.args_json = "@FILE";
	assert_taken(a, "{\"profile\": \"p\", \"command\": [\"ls\"], \"artifacts\": true}");
	assert_int_equal(request_invoke(&a->request, &a->config, &inv, &a->err), 0);
	assert_true(inv.is_command && inv.keeps_artifacts && a->config.interactive);
	assert_string_equal(inv.args[0], "ls");
	assert_string_equal(a->config.args_json, "@FILE");
	assert_taken(a, "{\"profile\": \"p\", \"command\": [\"ls\"], \"args_json\": null}");
	assert_int_equal(request_invoke(&a->request, &a->config, &inv, &a->err), 0);
	assert_string_equal(a->config.args_json, "null");
}

/* What a profile says for the command line is not the API's. */
static void a_terminal_and_the_callers_input_are_not_for_requests(void **state)
{
	struct asked *a = *state;
	struct plan plan;
	struct program program;
	a->config.interactive = true;
	assert_taken(a, "{\"profile\": \"p\", \"command\": [\"ls\"]}");
	assert_int_equal(make_plan(a, &plan, &program), 0);
	assert_false(program.interactive);
	a->config.tty = true;
	a->config.profile_name = "p";
	assert_int_equal(make_plan(a, &plan, &program), -EINVAL);
	assert_non_null(strstr(a->err.msg, "profile 'p' wants a terminal"));
}

/* The environment of the service is nobody's. */
static void a_variable_without_a_value_is_refused(void **state)
{
	struct asked *a = *state;
	struct plan plan;
	struct program program;
	assert_int_equal(setting_set(&a->config, setting_by_key("env"), "env", "PATH", &a->err), 0);
	assert_taken(a, "{\"profile\": \"p\", \"command\": [\"ls\"]}");
	assert_int_equal(make_plan(a, &plan, &program), -EINVAL);
	assert_non_null(strstr(a->err.msg, "'PATH' is not set here"));
}

static void files_do_not_replace_other_files(void **state)
{
	struct asked *a = *state;
	struct plan plan;
	struct program program;
	give_command(&a->config);
	assert_taken(a, with(a, "\"files\": [{\"path\": \"main\", \"text\": \"\"}]"));
	assert_int_equal(make_plan(a, &plan, &program), -EINVAL);
	assert_non_null(strstr(a->err.msg, "both want '/box/main'"));
}

static char *shown(const struct plan *plan, const struct program *program)
{
	auto_json_writer struct json_writer *w = json_writer_create(true);
	struct blob text;
	struct cj_error err;
	assert_non_null(w);
	plan_write(w, plan, program);
	assert_int_equal(json_writer_take(w, &text, &err), 0);
	return strdup(text.bytes);
}

static void a_jail_is_planned_before_its_request(void **state)
{
	struct asked *a = *state;
	struct plan ahead, later;
	struct program program;
	give_command(&a->config);
	assert_int_equal(request_plan_jail(&a->config, &ahead, &a->err), 0);
	assert_taken(a, with(a, "\"timeout\": 1, \"files\": [{\"path\": \"a\", \"text\": \"\"}]"));
	assert_int_equal(make_plan(a, &later, &program), 0);
	auto_free char *one = shown(&ahead, &program), *other = shown(&later, &program);
	assert_string_equal(one, other);
}

/* --- without memory -----------------------------------------------------------------------------
 */

static int read_anew(void *context, struct cj_error *err)
{
	const char *text = context;
	auto_arena struct arena arena = { 0 };
	struct request r;
	struct config c;
	struct plan plan;
	struct program program;
	config_init(&c);
	int rc = request_parse((struct blob){ text, strlen(text) }, &caps, &arena, &r, err);
	if (rc == 0)
		rc = request_apply(&r, true, &c, err);
	if (rc == 0)
		rc = request_plan(&r, &c, &plan, &program, err);
	config_fini(&c);
	return rc;
}

static void a_request_is_read_whole_or_not_at_all(void **state)
{
	(void)state;
	fail_each_allocation(
	    read_anew,
	    (void *)"{\"profile\": \"p\", \"command\": [\"a\"], \"id\": \"x\","
		    " \"stdin\": {\"base64\": \"AA==\"}, \"args_json\": [1, {\"a\": null}],"
		    " \"files\": [{\"path\": \"a\", \"text\": \"x\"}, {\"path\": \"b\","
		    " \"base64\": \"AA==\"}], \"env\": {\"A\": \"b\"}, \"memory\": \"64M\"}");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_request_becomes_a_plan_and_a_program),
		TEST(a_command_is_run_unchanged),
		TEST(a_request_without_a_profile_has_the_callers_default),
		TEST(a_request_is_made_an_invocation_that_leaves_other_settings_alone),
		TEST(a_terminal_and_the_callers_input_are_not_for_requests),
		TEST(a_variable_without_a_value_is_refused),
		TEST(files_do_not_replace_other_files),
		TEST(a_jail_is_planned_before_its_request),
		TEST(a_request_is_read_whole_or_not_at_all),
	};
	return cmocka_run_group_tests_name("request_plan", tests, NULL, NULL);
}
