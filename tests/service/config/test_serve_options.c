/* SPDX-License-Identifier: Apache-2.0 */
/* The words behind `cejail serve`. */
#include "runtime/service/config/serve_options.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define WORDS(...)                                                                                 \
	(const char *const[])                                                                      \
	{                                                                                          \
		__VA_ARGS__, NULL                                                                  \
	}

static void assert_refused(const char *const *words, const char *said)
{
	struct serve_options o = { 0 };
	struct cj_error err = { 0 };
	assert_int_equal(serve_options_parse(words, &o, &err), -EINVAL);
	if (!strstr(err.msg, said) && !strstr(err.hint, said))
		fail_msg("'%s (%s)' does not say '%s'", err.msg, err.hint, said);
	assert_int_equal(o.count, 0);
}

static struct serve_options parse(const char *const *words)
{
	struct serve_options o;
	struct cj_error err = { 0 };
	if (serve_options_parse(words, &o, &err) < 0)
		fail_msg("%s", err.msg);
	return o;
}

static void no_arguments_give_no_options(void **state)
{
	static const char *const none[] = { NULL };
	(void)state;
	struct serve_options o = parse(none);
	assert_null(o.config);
	assert_false(o.wants_help || o.check_only);
	assert_int_equal(o.count, 0);
}

static void both_spellings_of_a_value_are_taken(void **state)
{
	(void)state;
	struct serve_options o = parse(WORDS("--config=c.json", "--check"));
	assert_string_equal(o.config, "c.json");
	assert_true(o.check_only);
	assert_true(parse(WORDS("--help")).wants_help);
	assert_true(parse(WORDS("-h")).wants_help);
	assert_string_equal(parse(WORDS("--config=a", "--config", "--odd")).config, "--odd");
}

static void an_option_holds_against_the_file_each_time_it_is_read(void **state)
{
	static const char file[] = "{\"socket\": \"/from/file\", \"queue\": 7}";
	static struct service_config c;
	struct cj_error err = { 0 };
	(void)state;
	struct serve_options o = parse(WORDS("--socket", "/first", "--socket=/second",
					     "--tcp=[::1]:8090", "--token-file", "/t"));
	for (unsigned i = 0; i < 2; i++) {
		service_config_init(&c);
		assert_int_equal(service_config_read(&c, "f", file, strlen(file), &err), 0);
		assert_int_equal(serve_options_apply(&o, &c, &err), 0);
		assert_string_equal(c.socket, "/second");
		assert_string_equal(c.tcp, "[::1]:8090");
		assert_string_equal(c.token_file, "/t");
		assert_int_equal(c.queue, 7);
		service_config_fini(&c);
	}
}

static void a_value_that_cannot_work_names_the_option(void **state)
{
	static struct service_config c;
	struct cj_error err = { 0 };
	(void)state;
	struct serve_options o = parse(WORDS("--tcp", "0.0.0.0:80"));
	service_config_init(&c);
	assert_int_equal(serve_options_apply(&o, &c, &err), -EINVAL);
	assert_memory_equal(err.msg, "--tcp: ", 7);
	assert_null(c.tcp);
	service_config_fini(&c);
}

static void unknown_arguments_are_refused(void **state)
{
	(void)state;
	assert_refused(WORDS("--sokcet", "/x"), "did you mean '--socket'?");
	assert_refused(WORDS("--zzzzzzzzzzzzzzz"), "cejail serve --help");
	assert_refused(WORDS("--queue", "7"), "unknown option '--queue'");
	assert_refused(WORDS("--audit", "7"), "unknown option '--audit'");
	assert_refused(WORDS("--socket"), "option '--socket' needs a value (PATH)");
	assert_refused(WORDS("--check", "--config"), "option '--config' needs a value (FILE)");
	assert_refused(WORDS("--check=1"), "takes no value");
	assert_refused(WORDS("--"), "unknown argument '--'");
	assert_refused(WORDS("x"), "unknown argument 'x'");
	assert_refused(WORDS("-x"), "unknown argument '-x'");
	assert_refused(WORDS(""), "unknown argument");
	assert_refused(WORDS("--check", "/run/x"), "unknown argument");
}

static void there_is_an_end_to_options(void **state)
{
	const char *words[SERVE_OPTIONS_MAX + 2] = { NULL };
	(void)state;
	for (size_t i = 0; i < SERVE_OPTIONS_MAX; i++)
		words[i] = "--socket=/x";
	assert_int_equal(parse(words).count, SERVE_OPTIONS_MAX);
	words[SERVE_OPTIONS_MAX] = "--socket=/x";
	assert_refused(words, "more than 64 options");
}

/* What --help prints. */
static void capture_help(char *out, size_t size)
{
	char path[] = "/tmp/cejail-test-help-XXXXXX";
	int fd = mkstemp(path), saved = dup(STDOUT_FILENO);
	assert_true(fd >= 0 && saved >= 0);
	(void)unlink(path);
	(void)fflush(stdout);
	(void)dup2(fd, STDOUT_FILENO);
	serve_options_print_help();
	(void)fflush(stdout);
	(void)dup2(saved, STDOUT_FILENO);
	(void)close(saved);
	ssize_t got = pread(fd, out, size - 1, 0);
	assert_true(got > 0);
	out[got] = '\0';
	(void)close(fd);
}

static void help_names_every_row_in_eighty_columns(void **state)
{
	static char help[32768];
	(void)state;
	capture_help(help, sizeof(help));
	for (size_t t = 0; t < service_tables_count; t++) {
		for (size_t i = 0; i < service_tables[t].count; i++) {
			const struct service_key *k = &service_tables[t].keys[i];
			char entry[64];
			(void)snprintf(entry, sizeof(entry), "\n  %s ", k->json.name);
			assert_non_null(strstr(help, entry));
			(void)snprintf(entry, sizeof(entry), "--%s ",
				       k->option ? k->option : "help");
			assert_non_null(strstr(help, entry));
		}
	}
	for (const char *line = help; *line; line += strcspn(line, "\n") + 1)
		assert_in_range(strcspn(line, "\n"), 0, 80);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_arguments_give_no_options),
		cmocka_unit_test(both_spellings_of_a_value_are_taken),
		cmocka_unit_test(an_option_holds_against_the_file_each_time_it_is_read),
		cmocka_unit_test(a_value_that_cannot_work_names_the_option),
		cmocka_unit_test(unknown_arguments_are_refused),
		cmocka_unit_test(there_is_an_end_to_options),
		cmocka_unit_test(help_names_every_row_in_eighty_columns),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
