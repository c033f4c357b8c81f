/* SPDX-License-Identifier: Apache-2.0 */
/* The options of a verb that also takes options of `cejail run`. */
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "runtime/run/options/option_syntax.h"

struct verb {
	const char *lease, *signal;
	bool detach;
};

static const struct own_option rows[] = {
	{ "lease", 0, "DUR", "", offsetof(struct verb, lease) },
	{ "signal", 's', "SIGNAL", "", offsetof(struct verb, signal) },
	{ "detach", 'd', NULL, "", offsetof(struct verb, detach) },
};

struct fixture {
	struct arena arena;
	struct verb verb;
	struct own_rest rest, all;
	const char *const *next;
	struct cj_error err;
	int rc;
};
#define auto_fixture __attribute__((cleanup(fixture_fini)))

static void fixture_fini(struct fixture *f)
{
	arena_fini(&f->arena);
}

#define TAKE(...) take_words((const char *const[]){ __VA_ARGS__, NULL })

static struct fixture take_words(const char *const *words)
{
	struct fixture f = { .next = words };
	const struct own_options own = {
		.verb = "v", .rows = rows, .count = sizeof(rows) / sizeof(rows[0]), .out = &f.verb
	};

	assert_int_equal(own_rest_init(&f.rest, words, &f.arena, &f.err), 0);
	assert_int_equal(own_rest_init(&f.all, words, &f.arena, &f.err), 0);
	f.rest.all = f.all.args;
	f.rest.left_out = "lease";
	f.rc = own_options_take(&own, &f.next, &f.rest, &f.err);
	return f;
}

static void assert_words(const char *const *seen, size_t count, const char *wanted)
{
	char text[256] = "";

	for (size_t i = 0; i < count; i++)
		(void)snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s",
			       i ? " " : "", seen[i]);
	assert_string_equal(text, wanted);
}

static void own_options_are_taken_and_those_of_run_are_left(void **state)
{
	(void)state;
	auto_fixture struct fixture f =
	    TAKE("--lease", "5m", "-m", "64M", "-d", "--env=A=b", "-s", "INT", "-q");

	assert_int_equal(f.rc, 0);
	assert_string_equal(f.verb.lease, "5m");
	assert_string_equal(f.verb.signal, "INT");
	assert_true(f.verb.detach);
	assert_null(*f.next);
	assert_words(f.rest.args, f.rest.count, "-m 64M --env=A=b -q");
}

static void a_value_of_run_is_no_operand_and_no_own_option(void **state)
{
	(void)state;
	auto_fixture struct fixture f =
	    TAKE("-qm", "--detach", "--env", "-d", "-e", "--", "--remote", "x.sock", "ID", "-d");

	assert_int_equal(f.rc, 0);
	assert_false(f.verb.detach);
	assert_words(f.rest.args, f.rest.count, "-qm --detach --env -d -e -- --remote x.sock");
	assert_string_equal(*f.next, "ID");
}

static void an_optional_value_is_not_the_next_argument(void **state)
{
	(void)state;
	auto_fixture struct fixture f = TAKE("--json", "ID");
	auto_fixture struct fixture attached = TAKE("-m64M", "ID");

	assert_string_equal(*f.next, "ID");
	assert_string_equal(*attached.next, "ID");
}

static void taking_stops_at_an_operand_and_at_two_dashes(void **state)
{
	(void)state;
	static const char *const stops[] = { "ID", "--", "-" };

	for (size_t i = 0; i < sizeof(stops) / sizeof(stops[0]); i++) {
		auto_fixture struct fixture f = TAKE("-d", stops[i], "--lease", "1m");
		assert_int_equal(f.rc, 0);
		assert_string_equal(*f.next, stops[i]);
		assert_null(f.verb.lease);
	}
}

static void all_arguments_but_one_option_are_kept_apart(void **state)
{
	(void)state;
	auto_fixture struct fixture f = TAKE("-m", "1G", "--lease=5m", "-d", "--lease", "6m", "-q");

	assert_words(f.rest.all, f.rest.nall, "-m 1G -d -q");
	assert_string_equal(f.verb.lease, "6m");
}

static void a_missing_value_and_a_value_of_a_flag_are_errors(void **state)
{
	(void)state;
	auto_fixture struct fixture missing = TAKE("--lease");
	auto_fixture struct fixture flag = TAKE("--detach=yes");

	assert_int_equal(missing.rc, -EINVAL);
	assert_string_equal(missing.err.msg, "option '--lease' needs a value (DUR)");
	assert_string_equal(missing.err.hint, "see 'cejail v --help'");
	assert_int_equal(flag.rc, -EINVAL);
	assert_string_equal(flag.err.msg, "option '--detach' takes no value");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(own_options_are_taken_and_those_of_run_are_left),
		cmocka_unit_test(a_value_of_run_is_no_operand_and_no_own_option),
		cmocka_unit_test(an_optional_value_is_not_the_next_argument),
		cmocka_unit_test(taking_stops_at_an_operand_and_at_two_dashes),
		cmocka_unit_test(all_arguments_but_one_option_are_kept_apart),
		cmocka_unit_test(a_missing_value_and_a_value_of_a_flag_are_errors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
