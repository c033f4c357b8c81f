/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "runtime/container/call/oci_options.h"

#define ARGS(...)                                                                                  \
	(const char *const[])                                                                      \
	{                                                                                          \
		__VA_ARGS__, NULL                                                                  \
	}

static struct arena arena;
static struct oci_options o;
static struct cj_error err;

static int parse(const char *const *args)
{
	err = (struct cj_error){ 0 };
	return oci_options_parse(args, &arena, &o, &err);
}

static int empty_arena(void **state)
{
	(void)state;
	arena_fini(&arena);
	return 0;
}

static void containerds_create_is_understood(void **state)
{
	(void)state;
	assert_int_equal(parse(ARGS("--root", "/run/r", "--log", "/b/log.json", "--log-format",
				    "json", "--systemd-cgroup", "create", "--bundle", "/b",
				    "--pid-file", "/b/init.pid", "--console-socket", "/c", "ID")),
			 0);
	assert_int_equal(o.verb, OCI_CREATE);
	assert_string_equal(o.root, "/run/r");
	assert_string_equal(o.log, "/b/log.json");
	assert_true(o.is_log_json);
	assert_true(o.uses_systemd);
	assert_string_equal(o.bundle, "/b");
	assert_string_equal(o.pid_file, "/b/init.pid");
	assert_string_equal(o.console_socket, "/c");
	assert_string_equal(o.id, "ID");
	assert_false(o.has_no_cgroup);
}

static void podmans_forms_with_an_equals_sign_are_understood(void **state)
{
	(void)state;
	assert_int_equal(
	    parse(ARGS("--log-format=json", "--log=/l", "--cgroup-manager", "disabled", "create",
		       "--bundle=/b", "--preserve-fds=3", "--no-pivot", "--no-new-keyring", "x")),
	    0);
	assert_true(o.has_no_cgroup);
	assert_int_equal(o.preserve_fds, 3);
	assert_true(o.no_new_keyring);
}

static void letters_have_their_value_attached_or_behind(void **state)
{
	(void)state;
	assert_int_equal(parse(ARGS("run", "-d", "-b/one", "x")), 0);
	assert_string_equal(o.bundle, "/one");
	assert_true(o.is_detached);
	assert_int_equal(parse(ARGS("run", "-db", "/two", "x")), 0);
	assert_string_equal(o.bundle, "/two");
	assert_int_equal(parse(ARGS("delete", "-f", "x")), 0);
	assert_true(o.force);
	assert_int_equal(parse(ARGS("kill", "-a", "x", "9")), 0);
	assert_true(o.all);
}

static void options_may_stand_behind_the_id(void **state)
{
	(void)state;
	assert_int_equal(parse(ARGS("delete", "x", "--force")), 0);
	assert_true(o.force);
	assert_int_equal(parse(ARGS("kill", "x", "KILL", "--all")), 0);
	assert_true(o.all);
	assert_string_equal(o.operands.items[0], "KILL");
}

static void the_options_of_exec_end_at_the_id(void **state)
{
	(void)state;
	assert_int_equal(
	    parse(ARGS("exec", "--tty", "-e", "A=b", "--env", "C=d", "x", "ls", "--all", "-l")), 0);
	assert_true(o.wants_tty);
	assert_false(o.all);
	assert_int_equal(o.env.count, 2);
	assert_int_equal(o.operands.count, 3);
	assert_string_equal(o.operands.items[1], "--all");
}

static void a_dash_alone_is_a_value_and_two_end_the_options(void **state)
{
	(void)state;
	assert_int_equal(parse(ARGS("update", "--resources", "-", "x")), 0);
	assert_string_equal(o.resources, "-");
	assert_int_equal(parse(ARGS("update", "--resources=-", "x")), 0);
	assert_string_equal(o.resources, "-");
	assert_int_equal(parse(ARGS("state", "--", "-x")), 0);
	assert_string_equal(o.id, "-x");
}

static void flags_take_gos_booleans(void **state)
{
	(void)state;
	assert_int_equal(parse(ARGS("delete", "--force=true", "x")), 0);
	assert_true(o.force);
	assert_int_equal(parse(ARGS("delete", "--force=false", "x")), 0);
	assert_false(o.force);
	assert_int_equal(parse(ARGS("delete", "--force=maybe", "x")), -EINVAL);
}

static void a_wrong_command_line_names_what_is_wrong(void **state)
{
	static const struct {
		const char *args[5];
		const char *says, *hints;
	} cases[] = {
		{ { NULL }, "no command", "--help" },
		{ { "creat" }, "'creat'", "'create'" },
		{ { "state" }, "no container id", "cejail-oci state --help" },
		{ { "state", "a", "b" }, "'b'", "state --help" },
		{ { "list", "a" }, "'a'", "list --help" },
		{ { "create", "--bundel", "x", "y" }, "'--bundel'", "'--bundle'" },
		{ { "create", "--bundle" }, "needs a value", "create --help" },
		{ { "--force", "delete", "x" }, "'--force'", "" },
		{ { "create", "--root", "/r", "x" }, "'--root'", "" },
		{ { "state", "-z", "x" }, "'-z'", "" },
		{ { "create", "--preserve-fds", "-1", "x" }, "--preserve-fds", "" },
		{ { "create", "--preserve-fds=9999999999", "x" }, "--preserve-fds", "" },
		{ { "--log-format", "xml", "list" }, "'xml'", "" },
		{ { "--cgroup-manager=v3", "list" }, "'v3'", "" },
		{ { "list", "--format=yaml" }, "'yaml'", "" },
	};
	(void)state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(parse(cases[i].args), -EINVAL);
		assert_non_null(strstr(err.msg, cases[i].says));
		assert_non_null(strstr(err.hint, cases[i].hints));
	}
}

static void what_stands_before_an_error_is_kept_for_its_report(void **state)
{
	(void)state;
	assert_int_equal(parse(ARGS("--log", "/l", "--log-format=json", "nonsense")), -EINVAL);
	assert_string_equal(o.log, "/l");
	assert_true(o.is_log_json);
}

static void each_limit_of_update_is_set_by_its_option(void **state)
{
	const struct oci_resources *r = &o.limits;

	(void)state;
	assert_int_equal(
	    parse(ARGS("update", "--memory", "64M", "--memory-reservation=1024", "--memory-swap",
		       "-1", "--pids-limit=32", "--cpu-quota", "-1", "--cpu-period=20000",
		       "--cpu-share", "512", "--cpu-burst=10", "--cpu-idle=1", "--cpuset-cpus=0-1",
		       "--cpuset-mems=0", "--blkio-weight=500", "x")),
	    0);
	assert_true(o.has_limits);
	assert_true(r->memory.limit.is_set && r->memory.limit.value == 64 << 20);
	assert_true(r->memory.reservation.is_set && r->memory.reservation.value == 1024);
	assert_true(r->memory.swap.is_set && r->memory.swap.value == -1);
	assert_true(r->pids_limit.is_set && r->pids_limit.value == 32);
	assert_true(r->cpu.quota.is_set && r->cpu.quota.value == -1);
	assert_true(r->cpu.period.is_set && r->cpu.period.value == 20000);
	assert_true(r->cpu.shares.is_set && r->cpu.shares.value == 512);
	assert_true(r->cpu.burst.is_set && r->cpu.burst.value == 10);
	assert_true(r->cpu.idle.is_set && r->cpu.idle.value == 1);
	assert_string_equal(r->cpu.cpus, "0-1");
	assert_string_equal(r->cpu.mems, "0");
	assert_true(r->block_io.weight.is_set && r->block_io.weight.value == 500);
}

static void without_an_option_no_limit_is_set(void **state)
{
	static const struct oci_resources none;

	(void)state;
	assert_int_equal(parse(ARGS("update", "--resources", "-", "x")), 0);
	assert_false(o.has_limits);
	assert_memory_equal(&o.limits, &none, sizeof(none));
}

static void a_malformed_limit_is_refused_with_its_option(void **state)
{
	const char *const rows[][2] = {
		{ "--memory=-2", "--memory '-2'" },
		{ "--memory=much", "--memory 'much'" },
		{ "--memory-swap=", "--memory-swap ''" },
		{ "--pids-limit=1x", "--pids-limit '1x'" },
		{ "--cpu-quota=99999999999999999999", "--cpu-quota '99999999999999999999'" },
		{ "--cpu-share=-1", "--cpu-share '-1'" },
		{ "--cpu-rt-runtime=1", "--cpu-rt-runtime '1'" },
		{ "--cpuset-cpus=", "--cpuset-cpus ''" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(parse(ARGS("update", rows[i][0], "x")), -EINVAL);
		assert_non_null(strstr(err.msg, rows[i][1]));
		assert_false(o.has_limits);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(containerds_create_is_understood),
		cmocka_unit_test(podmans_forms_with_an_equals_sign_are_understood),
		cmocka_unit_test(letters_have_their_value_attached_or_behind),
		cmocka_unit_test(options_may_stand_behind_the_id),
		cmocka_unit_test(the_options_of_exec_end_at_the_id),
		cmocka_unit_test(a_dash_alone_is_a_value_and_two_end_the_options),
		cmocka_unit_test(flags_take_gos_booleans),
		cmocka_unit_test(a_wrong_command_line_names_what_is_wrong),
		cmocka_unit_test(what_stands_before_an_error_is_kept_for_its_report),
		cmocka_unit_test(each_limit_of_update_is_set_by_its_option),
		cmocka_unit_test(without_an_option_no_limit_is_set),
		cmocka_unit_test(a_malformed_limit_is_refused_with_its_option),
	};

	return cmocka_run_group_tests(tests, NULL, empty_arena);
}
