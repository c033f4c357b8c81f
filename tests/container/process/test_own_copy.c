/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program runs from a sealed copy of itself.  This test executes itself: with an argument it
 * enters the copy and says what it finds there.
 */
#include "runtime/container/process/process.h"

#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "runtime/base/files/libexec.h"
#include "runtime/base/scope.h"
#include "tests/forked.h"

#define INSIDE "--in-the-copy"

#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			(void)fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);      \
			return 1;                                                                  \
		}                                                                                  \
	} while (0)

/* In the copy.  argv: the program, INSIDE, its path, an empty argument. */
static int look_around(char **argv)
{
	char name[16] = "", helper[PATH_MAX], wanted[PATH_MAX];
	struct cj_error err;
	struct stat st, original;
	CHECK(strcmp(argv[1], INSIDE) == 0 && argv[3] && argv[3][0] == '\0' && !argv[4]);
	CHECK(getenv("COPY_TEST") && strcmp(getenv("COPY_TEST"), "kept") == 0);
	CHECK(fcntl(77, F_GETFD) == 0); /* what was inherited stays */

	/* not the file on the disk, and nobody writes to it: not even root, nor by another path */
	CHECK(stat("/proc/self/exe", &st) == 0 && stat(argv[2], &original) == 0);
	CHECK(st.st_dev != original.st_dev || st.st_ino != original.st_ino);
	auto_fd int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	CHECK(fcntl(fd, F_GET_SEALS) == (F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL));
	auto_fd int write_fd = open("/proc/self/exe", O_WRONLY | O_CLOEXEC);
	CHECK(write_fd < 0);
	CHECK(truncate("/proc/self/exe", 0) < 0);

	CHECK(prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 0);
	CHECK(prctl(PR_GET_NAME, name, 0, 0, 0) == 0 && strcmp(name, "cejail-oci") == 0);

	/* helpers lie where they lay */
	CHECK(libexec_find("some-helper", helper, &err) == 0);
	char *slash = strrchr(argv[2], '/');
	(void)snprintf(wanted, sizeof(wanted), "%.*s/../libexec/cejail/some-helper",
		       (int)(slash - argv[2]), argv[2]);
	CHECK(strcmp(helper, wanted) == 0);
	return 0;
}

static void the_program_runs_from_a_sealed_copy(void **state)
{
	char path[PATH_MAX];
	int status;
	(void)state;
	ssize_t size = readlink("/proc/self/exe", path, sizeof(path) - 1);
	assert_true(size > 0);
	path[size] = '\0';
	pid_t pid = test_fork();
	if (pid == 0) {
		int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
		if (dup2(fd, 77) < 0 || setenv("COPY_TEST", "kept", 1) < 0)
			_exit(2);
		(void)execl(path, path, INSIDE, path, "", (char *)NULL);
		_exit(3);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void a_seal_less_file_is_no_copy(void **state)
{
	char text[8] = "";
	int fds[2], status;
	(void)state;
	/* A memfd that anyone may write is executed: it must copy itself. */
	auto_fd int exe_fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	auto_fd int memfd = memfd_create("unsealed", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct stat st;
	assert_int_equal(fstat(exe_fd, &st), 0);
	auto_free char *bytes = malloc((size_t)st.st_size);
	assert_int_equal(read(exe_fd, bytes, (size_t)st.st_size), st.st_size);
	assert_int_equal(write(memfd, bytes, (size_t)st.st_size), st.st_size);
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	pid_t pid = test_fork();
	if (pid == 0) {
		char *argv[] = { (char *)(uintptr_t) "x", (char *)(uintptr_t) "--seals", NULL };
		(void)dup2(fds[1], STDOUT_FILENO);
		(void)execveat(memfd, "", argv, environ, AT_EMPTY_PATH);
		_exit(3);
	}
	(void)close(fds[1]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(read(fds[0], text, sizeof(text)), 2);
	assert_string_equal(text, "f\n");
	(void)close(fds[0]);
}

static int print_seals(void)
{
	auto_fd int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	(void)printf("%x\n", (unsigned)fcntl(fd, F_GET_SEALS) & 0xf);
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_program_runs_from_a_sealed_copy),
		cmocka_unit_test(a_seal_less_file_is_no_copy),
	};
	struct cj_error err;
	if (argc < 2)
		return cmocka_run_group_tests(tests, NULL, NULL);
	if (own_copy_enter(argv, &err) < 0) {
		(void)fprintf(stderr, "%s\n", err.msg);
		return 4;
	}
	return strcmp(argv[1], "--seals") == 0 ? print_seals() : look_around(argv);
}
