/* SPDX-License-Identifier: Apache-2.0 */
/* What is seen of standard input without reading it; which argument is spelt like an option. */
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <fcntl.h>
#include <sys/socket.h>

#include "runtime/run/options/operands.h"

static void a_pipe_has_input_while_bytes_are_in_it(void **state)
{
	(void)state;
	int ends[2];
	char byte;
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	assert_false(operands_has_input(ends[0]));
	assert_int_equal(write(ends[1], "x", 1), 1);
	assert_true(operands_has_input(ends[0]));
	assert_int_equal(read(ends[0], &byte, 1), 1); /* it was not taken */
	assert_false(operands_has_input(ends[0]));
	(void)close(ends[1]);
	assert_false(operands_has_input(ends[0])); /* at its end */
	(void)close(ends[0]);
}

static void a_file_has_input_before_its_end(void **state)
{
	(void)state;
	char name[] = "/tmp/cejail-test-call-notes-XXXXXX";
	int fd = mkostemp(name, O_CLOEXEC);
	assert_true(fd >= 0);
	(void)unlink(name);
	assert_false(operands_has_input(fd));
	assert_int_equal(write(fd, "abc", 3), 3);
	assert_false(operands_has_input(fd)); /* behind what was written */
	assert_int_equal(lseek(fd, 1, SEEK_SET), 1);
	assert_true(operands_has_input(fd));
	assert_int_equal(lseek(fd, 0, SEEK_CUR), 1); /* it stayed where it was */
	(void)close(fd);
}

static void terminals_and_sockets_count_as_no_input(void **state)
{
	(void)state;
	int ends[2];
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	assert_int_equal(write(ends[1], "x", 1), 1);
	assert_false(operands_has_input(ends[0]));
	(void)close(ends[0]), (void)close(ends[1]);

	int zero_fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	assert_true(zero_fd >= 0);
	assert_false(operands_has_input(zero_fd));
	(void)close(zero_fd);
	assert_false(operands_has_input(-1));
}

#define STRAY(...) operands_stray((const char *const[]){ __VA_ARGS__, NULL })

static void a_long_option_of_cejail_is_stray(void **state)
{
	(void)state;
	assert_string_equal(STRAY("a", "--network", "none"), "--network");
	assert_string_equal(STRAY("--memory=64M"), "--memory=64M");
	assert_null(STRAY("--netw", "none"));
	assert_null(STRAY("--command"));
	assert_null(STRAY("--=x", "-", "--help-me"));
	assert_null(STRAY("a", "--", "--network", "none"));
}

static void a_letter_is_stray_with_a_size_or_a_duration(void **state)
{
	(void)state;
	assert_string_equal(STRAY("-m", "64M"), "-m");
	assert_string_equal(STRAY("-t", "5s"), "-t");
	assert_null(STRAY("-m", "http.server"));
	assert_null(STRAY("-t", "5"));
	assert_null(STRAY("-m"));
	assert_null(STRAY("-v", "-q", "-i", "-p", "80"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_pipe_has_input_while_bytes_are_in_it),
		cmocka_unit_test(a_file_has_input_before_its_end),
		cmocka_unit_test(terminals_and_sockets_count_as_no_input),
		cmocka_unit_test(a_long_option_of_cejail_is_stray),
		cmocka_unit_test(a_letter_is_stray_with_a_size_or_a_duration),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
