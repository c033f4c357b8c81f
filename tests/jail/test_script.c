/* SPDX-License-Identifier: Apache-2.0 */
/* The "#!" line, in every form execve(2) knows. */
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "runtime/jail/script.h"

#define TEXT(s) (s), sizeof(s) - 1

static void the_interpreter_and_one_argument_are_read(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		size_t size;
		const char *interpreter, *argument;
	} rows[] = {
		{ TEXT("#!/bin/bash\necho"), "/bin/bash", NULL },
		{ TEXT("#!/bin/bash"), "/bin/bash", NULL },
		{ TEXT("#! \t/bin/sh \t -e  -x \t\n"), "/bin/sh", "-e  -x" },
		{ TEXT("#!/usr/bin/env -S bash -e\n"), "/usr/bin/env", "-S bash -e" },
		{ TEXT("#!/bin/bash\r\n"), "/bin/bash\r", NULL },
		{ TEXT("#!/bin/a\0b\n"), "/bin/a", NULL },
		{ TEXT("#!\n/bin/sh"), NULL, NULL },
		{ TEXT("#!  \n"), NULL, NULL },
		{ TEXT("#!"), NULL, NULL },
		{ TEXT("#"), NULL, NULL },
		{ TEXT(""), NULL, NULL },
		{ TEXT("\n#!/bin/sh\n"), NULL, NULL },
		{ TEXT(" #!/bin/sh\n"), NULL, NULL },
		{ TEXT("echo #!/bin/sh\n"), NULL, NULL },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct script s;
		script_parse(rows[i].text, rows[i].size, &s);
		if (!rows[i].interpreter) {
			assert_null(s.interpreter);
			continue;
		}
		assert_string_equal(s.interpreter, rows[i].interpreter);
		if (rows[i].argument)
			assert_string_equal(s.argument, rows[i].argument);
		else
			assert_null(s.argument);
	}
}

static void a_name_that_is_cut_off_is_none(void **state)
{
	(void)state;
	char text[2 * SCRIPT_LINE_MAX];
	struct script s;
	memset(text, 'x', sizeof(text));
	memcpy(text, "#!/", 3);
	script_parse(text, sizeof(text), &s);
	assert_null(s.interpreter);

	memcpy(text, "#!/bin/sh ", 10); /* the argument is cut, as the kernel does */
	script_parse(text, sizeof(text), &s);
	assert_string_equal(s.interpreter, "/bin/sh");
	assert_int_equal(strlen(s.argument), SCRIPT_LINE_MAX - 10);

	text[SCRIPT_LINE_MAX] = '\n'; /* one byte too late */
	memset(text + 2, 'x', SCRIPT_LINE_MAX - 2);
	script_parse(text, sizeof(text), &s);
	assert_null(s.interpreter);
	text[SCRIPT_LINE_MAX - 1] = '\n';
	script_parse(text, sizeof(text), &s);
	assert_int_equal(strlen(s.interpreter), SCRIPT_LINE_MAX - 3);
}

static void env_with_a_plain_name_is_that_name(void **state)
{
	(void)state;
	static const struct {
		const char *line;
		size_t count;
		const char *words[SCRIPT_ARGV_MAX];
	} rows[] = {
		{ "#!/usr/bin/env bash", 1, { "bash" } },
		{ "#!/bin/env bash", 1, { "bash" } },
		{ "#!/usr/bin/env bash -e", 2, { "/usr/bin/env", "bash -e" } },
		{ "#!/usr/bin/env -S bash", 2, { "/usr/bin/env", "-S bash" } },
		{ "#!/usr/bin/env A=1", 2, { "/usr/bin/env", "A=1" } },
		{ "#!/usr/bin/env", 1, { "/usr/bin/env" } },
		{ "#!/bin/sh -e", 2, { "/bin/sh", "-e" } },
		{ "echo", 0, { NULL } },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct script s;
		const char *words[SCRIPT_ARGV_MAX] = { NULL };
		script_parse(rows[i].line, strlen(rows[i].line), &s);
		assert_int_equal(script_command(&s, words), rows[i].count);
		for (size_t k = 0; k < rows[i].count; k++)
			assert_string_equal(words[k], rows[i].words[k]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_interpreter_and_one_argument_are_read),
		cmocka_unit_test(a_name_that_is_cut_off_is_none),
		cmocka_unit_test(env_with_a_plain_name_is_that_name),
	};
	return cmocka_run_group_tests_name("script", tests, NULL, NULL);
}
