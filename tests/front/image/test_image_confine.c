/* SPDX-License-Identifier: Apache-2.0 */
/* What the unpacker can still do, tried by a child. */
#include "runtime/front/image/image_parts.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>

#include "runtime/base/files/empty_dir.h"
#include "runtime/base/scope.h"
#include "runtime/kernel/process/landlock.h"
#include "tests/forked.h"

static char top[32];

static int setup(void **state)
{
	char path[64];
	(void)state;
	(void)snprintf(top, sizeof(top), "/tmp/cejail-confine-XXXXXX");
	if (!mkdtemp(top))
		return -1;
	static const char *const names[] = { "work", "layers", "source", "other" };
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", top, names[i]);
		if (mkdir(path, 0700) < 0)
			return -1;
	}
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	return empty_dir(AT_FDCWD, top) < 0 ? -1 : rmdir(top);
}

static int open_at(const char *name, int flags)
{
	char path[64];
	(void)snprintf(path, sizeof(path), "%s/%s", top, name);
	return open(path, flags | O_CLOEXEC, 0600);
}

static bool is_refused(int rc)
{
	bool refused = rc < 0 && (errno == EACCES || errno == EPERM || errno == ENOSYS);
	if (rc >= 0)
		(void)close(rc);
	return refused;
}

#define TRY(condition)                                                                             \
	do {                                                                                       \
		if (!(condition))                                                                  \
			_exit(__LINE__ % 256);                                                     \
	} while (0)

static void try_files(int work_fd)
{
	int fd = openat(work_fd, "f", O_RDWR | O_CREAT, 0600);
	TRY(fd >= 0 && write(fd, "x", 1) == 1 && ftruncate(fd, 0) == 0);
	TRY(mkdirat(work_fd, "d", 0700) == 0);
	TRY(linkat(work_fd, "f", work_fd, "d/h", 0) == 0);
	TRY(symlinkat("f", work_fd, "l") == 0);
	TRY(mknodat(work_fd, "w", S_IFCHR, makedev(0, 0)) == 0);
	TRY(is_refused(mknodat(work_fd, "null", S_IFCHR, makedev(1, 3))));
	TRY(is_refused(mknodat(work_fd, "disk", S_IFBLK, makedev(8, 0))));
	TRY(is_refused(mknodat(work_fd, "pipe", S_IFIFO, 0)));
	TRY(is_refused(mknodat(work_fd, "socket", S_IFSOCK, 0)));
	fd = open_at("source", O_RDONLY | O_DIRECTORY);
	TRY(fd >= 0);
	TRY(is_refused(openat(fd, "new", O_WRONLY | O_CREAT, 0600)));
	TRY(is_refused(openat(work_fd, "../other", O_RDONLY | O_DIRECTORY)));
	TRY(is_refused(open_at("other/new", O_WRONLY | O_CREAT)));
	TRY(is_refused(open_at("layers/new", O_WRONLY | O_CREAT)));
	TRY(is_refused(open("/etc/passwd", O_RDONLY)));
	TRY(is_refused(fchmodat(AT_FDCWD, "/etc/passwd", 0600, 0)));
}

static void try_processes(void)
{
	char name[] = "true", *const argv[] = { name, NULL };
	TRY(is_refused(socket(AF_INET, SOCK_STREAM, 0)));
	TRY(is_refused(socket(AF_UNIX, SOCK_STREAM, 0)));
	TRY(is_refused(fork()));
	TRY(is_refused(kill(getppid(), 0)));
	TRY(is_refused(execve("/bin/true", argv, NULL)));
	TRY(is_refused(setuid(0)));
	TRY(is_refused(unlink("/etc/nothing")));
	void *memory =
	    mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	TRY(memory != MAP_FAILED);
}

static _Noreturn void child_main(uint64_t cpu_s)
{
	struct cj_error err = { 0 };
	const struct image_confinement c = {
		.work_fd = open_at("work", O_RDONLY | O_DIRECTORY),
		.layers_fd = open_at("layers", O_RDONLY | O_DIRECTORY),
		.source_fd = open_at("source", O_RDONLY | O_DIRECTORY),
		.file_bytes = 1 << 20,
		.cpu_s = cpu_s,
	};
	TRY(image_confine(&c, &err) == 0);
	for (volatile bool spins = cpu_s == 1; spins;)
		;
	try_files(c.work_fd);
	try_processes();
	_exit(0);
}

/* How a confined process ends. */
static int status_of_child(uint64_t cpu_s)
{
	int status = 0;
	if (landlock_abi() < 3)
		skip();
	pid_t pid = test_fork();
	assert_true(pid >= 0);
	if (pid == 0)
		child_main(cpu_s);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void a_confined_process_has_its_two_directories_and_nothing_else(void **state)
{
	(void)state;
	int status = status_of_child(60);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0); /* else the line that failed */
}

static void too_much_cpu_time_ends_it_with_a_signal_of_its_own(void **state)
{
	(void)state;
	int status = status_of_child(1);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGXCPU);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
		    a_confined_process_has_its_two_directories_and_nothing_else, setup, teardown),
		cmocka_unit_test_setup_teardown(too_much_cpu_time_ends_it_with_a_signal_of_its_own,
						setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
