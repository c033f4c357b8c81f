/* SPDX-License-Identifier: Apache-2.0 */
/* WRAP: arena_alloc arena_array arena_strdup arena_strndup arena_printf strings_add */
/* Planning when there is no memory: a plan is whole or there is none. */
#include "tests/no_memory.h"
#include "tests/profiles/plan/plan_request.h"

typedef void ask(struct request *r);

/* From the settings on: their texts are copied, too. */
static int plan_anew(void *context, struct cj_error *err)
{
	static const struct {
		const char *option, *text;
	} options[] = {
		{ "env", "A=1" },
		{ "env", "HOME" },
		{ "bind", "a.txt:/data/a" },
		{ "ro-bind", "dir" },
		{ "ro-bind", "a.txt:/srv/a" },
		{ "file", "a.txt:/box/in/a" },
		{ "connect", "tcp:127.0.0.1:8080" },
		{ "allow", "192.0.2.1:443" },
		{ "rootfs", "dir:/usr" },
		{ "args-json", "@args.json" },
		{ "workdir", "/box/sub" },
		{ "network", "public" },
	};
	struct request r = { 0 };
	config_init(&r.c);
	char door[sizeof(top) + 32];
	(void)snprintf(door, sizeof(door), "unix:%s/open.sock", top);
	int rc = setting_set(&r.c, setting_by_option("connect"), "connect", door, err);
	for (size_t i = 0; rc == 0 && i < sizeof(options) / sizeof(options[0]); i++)
		rc = setting_set(&r.c, setting_by_option(options[i].option), options[i].option,
				 options[i].text, err);
	if (rc == 0)
		rc = setting_set(&r.c, setting_by_key("file_name"), "file_name", "main.py", err);
	static const char *const template[] = { "run", "{file}", "{args}" };
	for (size_t i = 0; rc == 0 && i < sizeof(template) / sizeof(template[0]); i++)
		rc = setting_set(&r.c, setting_by_key("command"), "command", template[i], err);
	((ask *)context)(&r);
	if (rc == 0)
		rc = plan_make(&r.c, &r.inv, &r.plan, &r.program, err);
	config_fini(&r.c);
	return rc;
}

static void ask_for_a_file(struct request *r)
{
	static const char *const args[] = { "x", "y", NULL };
	static const char *const environment[] = { "HOME=/home/me", NULL };
	r->inv = (struct invocation){ .file = "a.txt", .args = args, .environ = environment };
}

static void ask_for_code(struct request *r)
{
	static const char *const environment[] = { "HOME=/home/me", NULL };
	r->inv.environ = environment;
	r->c.code = "print()";
	r->c.code_size = 7;
	r->c.has_code = true;
}

static void a_plan_for_a_file_is_whole_or_there_is_none(void **state)
{
	(void)state;
	fail_each_allocation(plan_anew, (void *)ask_for_a_file);
}

static void a_plan_for_code_is_whole_or_there_is_none(void **state)
{
	(void)state;
	fail_each_allocation(plan_anew, (void *)ask_for_code);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_plan_for_a_file_is_whole_or_there_is_none),
		cmocka_unit_test(a_plan_for_code_is_whole_or_there_is_none),
	};
	return cmocka_run_group_tests(tests, tree_setup, tree_teardown);
}
