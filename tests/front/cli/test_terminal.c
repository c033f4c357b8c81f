/* SPDX-License-Identifier: Apache-2.0 */
/* The caller's terminal comes back as it was. */
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <fcntl.h>

#include "runtime/base/scope.h"
#include "runtime/front/cli/terminal.c" /* the front end is in no library */

/* A terminal that nobody sits at; without O_NOCTTY it could become ours. */
static int open_terminal(int *out_master_fd)
{
	*out_master_fd = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (*out_master_fd < 0 && access("/dev/ptmx", F_OK) < 0)
		skip(); /* a small /dev has no terminals */
	assert_true(*out_master_fd >= 0);
	assert_int_equal(grantpt(*out_master_fd), 0);
	assert_int_equal(unlockpt(*out_master_fd), 0);
	int fd = open(ptsname(*out_master_fd), O_RDWR | O_NOCTTY | O_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

static void raw_mode_ends_with_the_scope(void **state)
{
	(void)state;
	auto_fd int master_fd = -1;
	auto_fd int fd = open_terminal(&master_fd);
	struct termios before, during, after;
	assert_int_equal(tcgetattr(fd, &before), 0);
	assert_true(before.c_lflag & (ISIG | ICANON | ECHO));
	{
		auto_terminal struct terminal t = { .fd = -1 };
		terminal_make_raw(&t, fd);
		assert_int_equal(tcgetattr(fd, &during), 0);
		assert_int_equal(during.c_lflag & (ISIG | ICANON | ECHO), 0);
	}
	assert_int_equal(tcgetattr(fd, &after), 0);
	assert_int_equal(after.c_lflag, before.c_lflag);
	assert_int_equal(after.c_iflag, before.c_iflag);
	assert_int_equal(after.c_oflag, before.c_oflag);
}

static void a_descriptor_that_is_no_terminal_is_unchanged(void **state)
{
	(void)state;
	auto_fd int fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	struct terminal t = { .fd = -1 };
	terminal_make_raw(&t, fd);
	assert_int_equal(t.fd, -1);
	terminal_restore(&t); /* nothing to give back */
	terminal_make_raw(&t, -1);
	assert_int_equal(t.fd, -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(raw_mode_ends_with_the_scope),
		cmocka_unit_test(a_descriptor_that_is_no_terminal_is_unchanged),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
