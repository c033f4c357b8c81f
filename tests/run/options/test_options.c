/* SPDX-License-Identifier: Apache-2.0 */
/* The words of `cejail run`: which are options, which are values, which are operands. */
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "runtime/base/scope.h"
#include "runtime/run/options/options.c" /* its tables */

struct fixture {
	struct arena arena;
	struct options options;
	struct cj_error err;
	int rc;
};

#define auto_fixture __attribute__((cleanup(fixture_fini)))

static void fixture_fini(struct fixture *f)
{
	arena_fini(&f->arena);
}

#define SCAN(...) scan_words((const char *const[]){ __VA_ARGS__, NULL })

static struct fixture scan_words(const char *const *words)
{
	struct fixture f = { .rc = 0 };
	f.rc = options_scan("session put", words, &f.arena, &f.options, &f.err);
	return f;
}

static void assert_given(const struct fixture *f, size_t i, const char *option, const char *named,
			 const char *value)
{
	assert_true(i < f->options.count);
	const struct given *g = &f->options.items[i];
	assert_string_equal(g->setting->option, option);
	assert_string_equal(g->named, named);
	if (value)
		assert_string_equal(g->value, value);
	else
		assert_null(g->value);
}

static void no_arguments_are_no_options(void **state)
{
	(void)state;
	const char *const words[] = { NULL };
	auto_fixture struct fixture f = scan_words(words);
	assert_int_equal(f.rc, 0);
	assert_int_equal(f.options.count, 0);
	assert_null(f.options.operands[0]);
}

static void a_value_follows_a_blank_or_an_equals_sign(void **state)
{
	(void)state;
	auto_fixture struct fixture f = SCAN("--memory", "64M", "--memory=1G", "--env=A=B=C");
	assert_int_equal(f.rc, 0);
	assert_int_equal(f.options.count, 3);
	assert_given(&f, 0, "memory", "--memory", "64M");
	assert_given(&f, 1, "memory", "--memory", "1G");
	assert_given(&f, 2, "env", "--env", "A=B=C");
}

static void letters_are_bundled_and_carry_their_value(void **state)
{
	(void)state;
	auto_fixture struct fixture f = SCAN("-iv", "-m64M", "-im", "1G", "-p", "python");
	assert_int_equal(f.rc, 0);
	assert_int_equal(f.options.count, 6);
	assert_given(&f, 0, "interactive", "-i", NULL);
	assert_given(&f, 1, "verbose", "-v", NULL);
	assert_given(&f, 2, "memory", "-m", "64M");
	assert_given(&f, 3, "interactive", "-i", NULL);
	assert_given(&f, 4, "memory", "-m", "1G");
	assert_given(&f, 5, "profile", "-p", "python");
}

static void options_end_at_the_first_operand(void **state)
{
	(void)state;
	auto_fixture struct fixture f = SCAN("-i", "job.py", "--memory", "1G");
	assert_int_equal(f.rc, 0);
	assert_int_equal(f.options.count, 1);
	assert_false(f.options.has_separator);
	assert_string_equal(f.options.operands[0], "job.py");
	assert_string_equal(f.options.operands[1], "--memory");
}

static void options_end_at_two_dashes(void **state)
{
	(void)state;
	auto_fixture struct fixture f = SCAN("-i", "--", "-v", "--");
	assert_int_equal(f.rc, 0);
	assert_int_equal(f.options.count, 1);
	assert_true(f.options.has_separator);
	assert_string_equal(f.options.operands[0], "-v");
	assert_string_equal(f.options.operands[1], "--");
}

static void a_lone_dash_is_an_operand(void **state)
{
	(void)state;
	auto_fixture struct fixture f = SCAN("-p", "python", "-", "-i");
	assert_int_equal(f.rc, 0);
	assert_int_equal(f.options.count, 1);
	assert_string_equal(f.options.operands[0], "-");
}

static void a_value_may_look_like_an_option(void **state)
{
	(void)state;
	auto_fixture struct fixture f = SCAN("-c", "--", "-e", "-x=1", "--env", "--");
	assert_int_equal(f.rc, 0);
	assert_given(&f, 0, "code", "-c", "--");
	assert_given(&f, 1, "env", "-e", "-x=1");
	assert_given(&f, 2, "env", "--env", "--");
	assert_false(f.options.has_separator);
}

static void an_optional_value_needs_the_equals_sign(void **state)
{
	(void)state;
	auto_fixture struct fixture f = SCAN("--json", "job.py");
	assert_int_equal(f.rc, 0);
	assert_given(&f, 0, "json", "--json", NULL);
	assert_string_equal(f.options.operands[0], "job.py");

	auto_fixture struct fixture with = SCAN("--json=out.json");
	assert_given(&with, 0, "json", "--json", "out.json");
}

static void a_value_may_be_empty_but_not_missing(void **state)
{
	(void)state;
	auto_fixture struct fixture empty = SCAN("--memory=", "-c", "");
	assert_int_equal(empty.rc, 0);
	assert_given(&empty, 0, "memory", "--memory", "");
	assert_given(&empty, 1, "code", "-c", "");

	auto_fixture struct fixture missing = SCAN("--memory");
	assert_int_equal(missing.rc, -EINVAL);
	assert_string_equal(missing.err.msg, "option '--memory' needs a value (SIZE)");

	auto_fixture struct fixture letter = SCAN("-im");
	assert_int_equal(letter.rc, -EINVAL);
	assert_string_equal(letter.err.msg, "option '-m' needs a value (SIZE)");
}

static void an_unknown_option_names_the_nearest(void **state)
{
	(void)state;
	auto_fixture struct fixture f = SCAN("--memroy=1G");
	assert_int_equal(f.rc, -EINVAL);
	assert_string_equal(f.err.msg, "unknown option '--memroy'");
	assert_string_equal(f.err.hint, "did you mean '--memory'?");

	auto_fixture struct fixture far = SCAN("--xyzzyplugh");
	assert_string_equal(far.err.hint, "see 'cejail session put --help'");

	auto_fixture struct fixture letter = SCAN("-iX");
	assert_string_equal(letter.err.msg, "unknown option '-X' in '-iX'");

	/* a prefix is no option: what it means would change with the next one added */
	auto_fixture struct fixture prefix = SCAN("--memor=1G");
	assert_int_equal(prefix.rc, -EINVAL);
	assert_string_equal(prefix.err.hint, "did you mean '--memory'?");
	auto_fixture struct fixture two = SCAN("--allow-p=x");
	assert_string_equal(two.err.hint, "did you mean '--allow-private'?");
}

static void an_option_of_another_program_is_answered(void **state)
{
	(void)state;
	auto_fixture struct fixture f = SCAN("--rm", "job.py");
	assert_int_equal(f.rc, -EINVAL);
	assert_string_equal(f.err.msg, "unknown option '--rm': not needed: every jail is removed "
				       "at its end");
	auto_fixture struct fixture letter = SCAN("-iu", "1000");
	assert_memory_equal(letter.err.msg, "unknown option '-u': not needed: ", 32);
}

#define auto_config __attribute__((cleanup(config_fini)))

static void a_docker_terminal_option_is_not_a_duration(void **state)
{
	(void)state;
	auto_config struct config c;
	config_init(&c);
	auto_fixture struct fixture swallowed = SCAN("-it", "-p", "python");
	assert_int_equal(options_apply_rest(&swallowed.options, &c, &swallowed.err), -EINVAL);
	assert_string_equal(swallowed.err.hint,
			    "-t is --timeout here; write --tty -i for a terminal");
	auto_fixture struct fixture letters = SCAN("-ti", "image");
	assert_int_equal(options_apply_rest(&letters.options, &c, &letters.err), -EINVAL);
	auto_fixture struct fixture last = SCAN("-it");
	assert_int_equal(last.rc, -EINVAL);
	auto_fixture struct fixture meant = SCAN("-it", "5s");
	assert_int_equal(meant.rc, 0);
	assert_given(&meant, 1, "timeout", "-t", "5s");
}

static void a_profile_key_that_is_no_option_is_unknown(void **state)
{
	(void)state;
	auto_fixture struct fixture f = SCAN("--command=x");
	assert_int_equal(f.rc, -EINVAL);
}

static void options_before_a_mistake_are_kept(void **state)
{
	(void)state;
	auto_fixture struct fixture f = SCAN("--json", "--id=a", "--nonsense", "--quiet");
	assert_int_equal(f.rc, -EINVAL);
	assert_int_equal(f.options.count, 2);
	assert_given(&f, 0, "json", "--json", NULL);
}

static void help_is_recognised_in_every_form(void **state)
{
	(void)state;
	auto_fixture struct fixture longer = SCAN("-i", "--help");
	assert_true(longer.options.wants_help);
	auto_fixture struct fixture letter = SCAN("-ih");
	assert_true(letter.options.wants_help);
	auto_fixture struct fixture none = SCAN("job.py", "--help");
	assert_false(none.options.wants_help);
}

static void the_last_value_is_the_one_found(void **state)
{
	(void)state;
	auto_fixture struct fixture f = SCAN("-p", "python", "-i", "--profile=node");
	assert_string_equal(options_find(&f.options, "profile"), "node");
	assert_null(options_find(&f.options, "memory"));
}

static void many_options_are_all_kept(void **state)
{
	(void)state;
	const char *words[202] = { NULL };
	for (size_t i = 0; i < 200; i++)
		words[i] = i % 2 ? "-v" : "-q";
	auto_fixture struct fixture f = scan_words(words);
	assert_int_equal(f.rc, 0);
	assert_int_equal(f.options.count, 200);
	for (size_t i = 0; i < 200; i++)
		assert_given(&f, i, i % 2 ? "verbose" : "quiet", i % 2 ? "-v" : "-q", NULL);
}

static void delivery_options_are_applied_separately(void **state)
{
	(void)state;
	auto_fixture struct fixture f =
	    SCAN("--json=x", "--memory=64M", "--id=me", "-q", "--result-fd=7", "-p", "python");
	auto_config struct config c;
	config_init(&c);
	uint64_t before = c.limits.memory_bytes;

	assert_int_equal(options_apply_delivery(&f.options, &c, &f.err), 0);
	assert_true(c.json && c.quiet);
	assert_string_equal(c.json_file, "x");
	assert_string_equal(c.id, "me");
	assert_int_equal(c.result_fd, 7);
	assert_int_equal(c.limits.memory_bytes, before);

	assert_int_equal(options_apply_rest(&f.options, &c, &f.err), 0);
	assert_int_equal(c.limits.memory_bytes, 64u << 20);
	assert_string_equal(c.profile_name, ""); /* the profile's reader says what it is called */
}

static void a_bad_value_is_named_as_the_user_wrote_it(void **state)
{
	(void)state;
	auto_config struct config c;
	config_init(&c);
	auto_fixture struct fixture f = SCAN("-m", "lots");
	assert_int_equal(options_apply_rest(&f.options, &c, &f.err), -EINVAL);
	assert_memory_equal(f.err.msg, "-m: ", 4);
	assert_non_null(strstr(f.err.msg, "'lots'"));

	auto_fixture struct fixture g = SCAN("--result-fd=x");
	assert_int_equal(options_apply_delivery(&g.options, &c, &g.err), -EINVAL);
	assert_memory_equal(g.err.msg, "--result-fd: ", 13);
}

static void every_delivery_option_is_a_setting(void **state)
{
	(void)state;
	for (size_t i = 0; delivery_options[i]; i++)
		assert_non_null(setting_by_option(delivery_options[i]));
}

/* The text itself is compared with the table by tests/documents/test_manual.sh. */
static void the_help_fits_80_columns(void **state)
{
	(void)state;
	char line[256];
	int saved = dup(STDOUT_FILENO);
	FILE *file = tmpfile();
	assert_non_null(file);
	(void)fflush(stdout);
	assert_true(dup2(fileno(file), STDOUT_FILENO) >= 0);
	options_print_help(NULL);
	(void)fflush(stdout);
	assert_true(dup2(saved, STDOUT_FILENO) >= 0);
	(void)close(saved);

	size_t lines = 0;
	rewind(file);
	for (; fgets(line, sizeof(line), file); lines++) {
		size_t size = strcspn(line, "\n");
		if (size > 80 || size == 0 || line[size - 1] == ' ')
			fail_msg("%zu columns: '%.*s'", size, (int)size, line);
	}
	(void)fclose(file);
	assert_true(lines > 30);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_arguments_are_no_options),
		cmocka_unit_test(a_value_follows_a_blank_or_an_equals_sign),
		cmocka_unit_test(letters_are_bundled_and_carry_their_value),
		cmocka_unit_test(options_end_at_the_first_operand),
		cmocka_unit_test(options_end_at_two_dashes),
		cmocka_unit_test(a_lone_dash_is_an_operand),
		cmocka_unit_test(a_value_may_look_like_an_option),
		cmocka_unit_test(an_optional_value_needs_the_equals_sign),
		cmocka_unit_test(a_value_may_be_empty_but_not_missing),
		cmocka_unit_test(an_unknown_option_names_the_nearest),
		cmocka_unit_test(an_option_of_another_program_is_answered),
		cmocka_unit_test(a_docker_terminal_option_is_not_a_duration),
		cmocka_unit_test(a_profile_key_that_is_no_option_is_unknown),
		cmocka_unit_test(options_before_a_mistake_are_kept),
		cmocka_unit_test(help_is_recognised_in_every_form),
		cmocka_unit_test(the_last_value_is_the_one_found),
		cmocka_unit_test(many_options_are_all_kept),
		cmocka_unit_test(delivery_options_are_applied_separately),
		cmocka_unit_test(a_bad_value_is_named_as_the_user_wrote_it),
		cmocka_unit_test(every_delivery_option_is_a_setting),
		cmocka_unit_test(the_help_fits_80_columns),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
