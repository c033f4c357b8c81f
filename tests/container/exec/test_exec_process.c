/* SPDX-License-Identifier: Apache-2.0 */
/* What exec runs: the container's process with the flags of a command line. */
#include "runtime/container/exec/exec.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "tests/temp_dir.h"

#define TEXTS(list)                                                                                \
	{                                                                                          \
		.items = (list), .count = sizeof(list) / sizeof((list)[0]) - 1                     \
	}

static const char *command[] = { "ls", "-l", NULL };
static const char *container_args[] = { "init", NULL };
static const char *container_env[] = { "A=1", "AB=2", "B=3", NULL };
static const char *container_caps[] = { "CAP_CHOWN", NULL };
static const uint32_t container_groups[] = { 7 };

static const struct oci_process of_container = {
	.has_terminal = true,
	.user = { .uid = 5, .gid = 6, .groups = container_groups, .ngroups = 1 },
	.args = TEXTS(container_args),
	.env = TEXTS(container_env),
	.cwd = "/work",
	.capabilities = { .is_given = true,
			  .bounding = TEXTS(container_caps),
			  .permitted = TEXTS(container_caps) },
	.oom_score_adj = { true, 300 },
};

static struct arena arena;
static struct oci_process p;
static struct cj_error err;

static int merge(const struct oci_options *o)
{
	arena_fini(&arena);
	p = (struct oci_process){ .user = { .uid = 77 } };
	err = (struct cj_error){ 0 };
	return exec_process_merge(o, &of_container, &arena, &p, &err);
}

static void without_flags_it_is_the_containers_process_with_another_command(void **state)
{
	const struct oci_options o = { .operands = TEXTS(command) };
	(void)state;
	assert_int_equal(merge(&o), 0);
	assert_int_equal(p.args.count, 2);
	assert_string_equal(p.args.items[1], "-l");
	assert_ptr_not_equal(p.args.items[1], command[1]); /* the command line is wiped later */
	assert_true(!p.has_terminal && p.user.uid == 5 && p.user.ngroups == 1);
	assert_int_equal(p.env.count, 3);
	assert_string_equal(p.cwd, "/work");
	assert_true(p.oom_score_adj.is_set && !p.no_new_privileges);
}

static void a_variable_is_replaced_by_its_whole_name(void **state)
{
	static const char *more[] = { "A=new", "C=", NULL };
	const struct oci_options o = { .operands = TEXTS(command), .env = TEXTS(more) };
	(void)state;
	assert_int_equal(merge(&o), 0);
	assert_int_equal(p.env.count, 4);
	assert_string_equal(p.env.items[0], "AB=2");
	assert_string_equal(p.env.items[1], "B=3");
	assert_string_equal(p.env.items[2], "A=new");
	assert_string_equal(p.env.items[3], "C=");
}

static void an_added_capability_is_never_inheritable_or_ambient(void **state)
{
	static const char *more[] = { "CAP_KILL", NULL };
	const struct oci_options o = { .operands = TEXTS(command), .caps = TEXTS(more) };
	(void)state;
	assert_int_equal(merge(&o), 0);
	assert_int_equal(p.capabilities.bounding.count, 2);
	assert_int_equal(p.capabilities.permitted.count, 2);
	assert_int_equal(p.capabilities.effective.count, 1);
	assert_int_equal(p.capabilities.inheritable.count, 0);
	assert_int_equal(p.capabilities.ambient.count, 0);
	assert_int_equal(of_container.capabilities.bounding.count, 1); /* it is not shared */
}

static void ids_change_only_when_the_whole_text_is_right(void **state)
{
	static const char *groups[] = { "8", "9", NULL };
	static const char *bad[] = { "8", "-9", NULL };
	struct oci_options o = { .operands = TEXTS(command),
				 .user = "1:2",
				 .additional_gids = TEXTS(groups) };
	(void)state;
	assert_int_equal(merge(&o), 0);
	assert_true(p.user.uid == 1 && p.user.gid == 2 && p.user.ngroups == 3);
	assert_true(p.user.groups[0] == 7 && p.user.groups[2] == 9);
	o.user = "3";
	assert_int_equal(merge(&o), 0);
	assert_true(p.user.uid == 3 && p.user.gid == 6);

	static const char *const wrong[] = { "", "-1", "1:", ":1", "1x", "4294967295", "root" };
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		o.user = wrong[i];
		assert_true(merge(&o) < 0);
		assert_non_null(strstr(err.msg, "--user"));
		assert_int_equal(p.user.uid, 77); /* nothing is written */
	}
	o.user = NULL;
	o.additional_gids = (struct strings)TEXTS(bad);
	assert_true(merge(&o) < 0);
	assert_non_null(strstr(err.msg, "--additional-gids"));
}

static void mistakes_are_refused_by_name(void **state)
{
	static const char *nothing[] = { "NAME", NULL }, *nameless[] = { "=x", NULL };
	static const struct {
		struct oci_options o;
		const char *message;
	} rows[] = {
		{ { .cwd = "/" }, "exec needs a command" },
		{ { .operands = TEXTS(command), .cwd = "here" }, "--cwd 'here' is not absolute" },
		{ { .operands = TEXTS(command), .env = TEXTS(nothing) },
		  "'NAME' is not NAME=VALUE" },
		{ { .operands = TEXTS(command), .env = TEXTS(nameless) },
		  "'=x' is not NAME=VALUE" },
	};
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(merge(&rows[i].o), -EINVAL);
		assert_non_null(strstr(err.msg, rows[i].message));
	}
}

static void a_process_file_stands_alone(void **state)
{
	static const char text[] =
	    "{\"args\":[\"true\"],\"cwd\":\"/\",\"user\":{\"uid\":1,\"gid\":1}}";
	char path[128];
	(void)state;
	(void)snprintf(path, sizeof(path), "%s/process.json", temp_dir);
	int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	assert_int_equal(write(fd, text, sizeof(text) - 1), sizeof(text) - 1);
	(void)close(fd);

	struct oci_options o = { .process = path, .wants_tty = true };
	assert_int_equal(exec_process_file(&o, &arena, &p, &err), 0);
	assert_true(p.has_terminal && p.user.uid == 1 && p.user.ngroups == 0);
	assert_true(!p.oom_score_adj.is_set && !p.capabilities.is_given);

	o.user = "0";
	assert_int_equal(exec_process_file(&o, &arena, &p, &err), -EINVAL);
	assert_non_null(strstr(err.msg, "--process and --user exclude each other"));
	o = (struct oci_options){ .process = path, .process_label = "x" };
	assert_int_equal(exec_process_file(&o, &arena, &p, &err), -EINVAL);
	o = (struct oci_options){ .process = "/no/such/file" };
	assert_int_equal(exec_process_file(&o, &arena, &p, &err), -ENOENT);
	arena_fini(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_flags_it_is_the_containers_process_with_another_command),
		cmocka_unit_test(a_variable_is_replaced_by_its_whole_name),
		cmocka_unit_test(an_added_capability_is_never_inheritable_or_ambient),
		cmocka_unit_test(ids_change_only_when_the_whole_text_is_right),
		cmocka_unit_test(mistakes_are_refused_by_name),
		cmocka_unit_test(a_process_file_stands_alone),
	};
	return cmocka_run_group_tests(tests, temp_dir_make, temp_dir_remove);
}
