/* SPDX-License-Identifier: Apache-2.0 */
/* fd: whole files, sealed memory, and sources that are not what they seem. */
/* WRAP: write pwritev memfd_create */
#include "runtime/base/files/fd.h"

#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>

#include <cmocka.h>

#include "runtime/base/scope.h"
#include "runtime/base/sys.h"
#include "tests/forked.h"
#include "tests/temp_dir.h"

#define NOEXEC_SEAL 0x0008U /* MFD_NOEXEC_SEAL */

static int write_errno;        /* not 0: the next write(2) to a file fails with it, once */
static size_t write_limit;     /* not 0: no write(2) takes more */
static bool is_noexec_unknown; /* memfd_create(2) as before Linux 6.3 */

ssize_t __real_write(int fd, const void *bytes, size_t size);
ssize_t __wrap_write(int fd, const void *bytes, size_t size);
ssize_t __wrap_write(int fd, const void *bytes, size_t size)
{
	if (fd > STDERR_FILENO && write_errno != 0) {
		errno = write_errno;
		write_errno = 0;
		return -1;
	}
	if (fd > STDERR_FILENO && write_limit > 0 && size > write_limit)
		size = write_limit;
	return __real_write(fd, bytes, size);
}

/* To a memfd; write_limit cuts it within a part, too. */
ssize_t __real_pwritev(int fd, const struct iovec *parts, int count, off_t at);
ssize_t __wrap_pwritev(int fd, const struct iovec *parts, int count, off_t at);
ssize_t __wrap_pwritev(int fd, const struct iovec *parts, int count, off_t at)
{
	if (write_errno != 0) {
		errno = write_errno;
		write_errno = 0;
		return -1;
	}
	if (write_limit == 0)
		return __real_pwritev(fd, parts, count, at);
	struct iovec first = parts[0];
	if (first.iov_len > write_limit)
		first.iov_len = write_limit;
	return __real_pwritev(fd, &first, 1, at);
}

int __real_memfd_create(const char *name, unsigned flags);
int __wrap_memfd_create(const char *name, unsigned flags);
int __wrap_memfd_create(const char *name, unsigned flags)
{
	if (is_noexec_unknown && (flags & NOEXEC_SEAL)) {
		errno = EINVAL;
		return -1;
	}
	return __real_memfd_create(name, flags);
}

static int forget(void **state)
{
	(void)state;
	write_errno = 0;
	write_limit = 0;
	is_noexec_unknown = false;
	return 0;
}

/* The path of a name in the directory; good until the next call. */
static const char *in_dir(const char *name)
{
	static char path[96];

	(void)snprintf(path, sizeof(path), "%s/%s", temp_dir, name);
	return path;
}

static void make_file(const char *name, const char *text)
{
	auto_fd int fd = openat(temp_dir_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(__real_write(fd, text, strlen(text)), strlen(text));
}

/* In a child: closes the streams of the mask, claims, and says what it found. */
static int claim_without(unsigned closed)
{
	pid_t pid = test_fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		struct cj_error err;
		unsigned were_open = 0;

		for (int fd = 0; fd <= 2; fd++) {
			if (closed & 1u << fd)
				(void)close(fd);
		}
		if (fd_claim_stdio(&were_open, &err) < 0)
			_exit(100);
		for (int fd = 0; fd <= 2; fd++) {
			if (fcntl(fd, F_GETFD) != 0) /* open, and not to be closed by execve */
				_exit(101);
			if ((closed & 1u << fd) && (fcntl(fd, F_GETFL) & O_ACCMODE) != O_RDWR)
				_exit(102);
		}
		_exit((int)were_open);
	}
	int status = 0;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void closed_standard_streams_become_dev_null(void **state)
{
	(void)state;

	for (unsigned closed = 0; closed < 8; closed++)
		assert_int_equal(claim_without(closed), 7 & ~closed);
}

/* poll(2) calls it closed. */
static void a_standard_stream_that_is_only_a_path_stays(void **state)
{
	(void)state;
	pid_t pid = test_fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		struct cj_error err;
		unsigned were_open = 0;
		struct stat before, after;
		(void)close(STDIN_FILENO);
		if (open("/", O_PATH) != STDIN_FILENO || fstat(STDIN_FILENO, &before) < 0)
			_exit(100);
		if (fd_claim_stdio(&were_open, &err) < 0 || fstat(STDIN_FILENO, &after) < 0)
			_exit(101);
		_exit(before.st_ino == after.st_ino && were_open == 7 ? 0 : 102);
	}
	int status = 0;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void a_child_is_ended_and_reaped_with_its_scope(void **state)
{
	pid_t pid = test_fork();
	(void)state;

	assert_true(pid >= 0);
	if (pid == 0) {
		(void)raise(SIGSTOP); /* does not help it */
		_exit(0);
	}
	int pidfd = sys_pidfd_open(pid);
	assert_true(pidfd >= 0);
	errno = EDOM;
	cj_end_child(&pidfd);
	assert_int_equal(errno, EDOM);
	assert_int_equal(pidfd, -1);
	assert_int_equal(waitpid(pid, NULL, 0), -1);
	assert_int_equal(errno, ECHILD);
	cj_end_child(&pidfd);
	assert_int_equal(pidfd, -1);
}

static void a_file_is_read_whole_with_a_nul_behind(void **state)
{
	auto_arena struct arena a = { 0 };
	struct cj_error err = { 0 };
	char *text = NULL;
	size_t size = 0;
	(void)state;

	make_file("small", "hello\n");
	assert_int_equal(fd_read_file(temp_dir_fd, "small", 6, &a, &text, &size, &err), 0);
	assert_int_equal(size, 6);
	assert_string_equal(text, "hello\n");
	make_file("empty", "");
	assert_int_equal(fd_read_file(temp_dir_fd, "empty", 0, &a, &text, &size, &err), 0);
	assert_int_equal(size, 0);
	assert_string_equal(text, "");
	assert_int_equal(fd_read_file(AT_FDCWD, "/proc/self/stat", 4096, &a, &text, &size, &err),
			 0);
	assert_true(size > 0 && text[size] == '\0');
}

static void a_large_file_is_read_up_to_its_limit(void **state)
{
	enum { SIZE = 100000 };
	auto_arena struct arena a = { 0 };
	auto_free char *bytes = calloc(1, SIZE + 1);
	struct cj_error err = { 0 };
	char *text = NULL;
	size_t size = 0;
	(void)state;

	memset(bytes, 'x', SIZE);
	make_file("large", bytes);
	assert_int_equal(fd_read_file(temp_dir_fd, "large", SIZE, &a, &text, &size, &err), 0);
	assert_int_equal(size, SIZE);
	assert_int_equal(fd_read_file(temp_dir_fd, "large", SIZE - 1, &a, &text, &size, &err),
			 -EFBIG);
	assert_string_equal(err.msg, "read 'large', of which 97.6K are allowed: File too large");
	assert_int_equal(fd_read_file(temp_dir_fd, "large", 1, &a, &text, &size, &err), -EFBIG);
	assert_int_equal(size, SIZE); /* set only on success */
}

static void a_file_that_cannot_be_read_is_named(void **state)
{
	auto_arena struct arena a = { 0 };
	struct cj_error err = { 0 };
	char *text = NULL, expected[512];
	size_t size = 0;
	(void)state;

	assert_int_equal(fd_read_file(temp_dir_fd, "none", 1, &a, &text, &size, &err), -ENOENT);
	(void)snprintf(expected, sizeof(expected), "open '%s': No such file or directory",
		       in_dir("none"));
	assert_string_equal(err.msg, expected);

	assert_int_equal(symlinkat("small", temp_dir_fd, "link"), 0);
	assert_int_equal(fd_read_file(temp_dir_fd, "link", 100, &a, &text, &size, &err), -ELOOP);

	assert_int_equal(mkdirat(temp_dir_fd, "directory", 0755), 0);
	assert_int_equal(fd_read_file(temp_dir_fd, "directory", 100, &a, &text, &size, &err),
			 -EISDIR);
	assert_string_equal(err.msg, "read 'directory': Is a directory");
}

/* A child that writes `text` in two parts, with a pause; the read end is non-blocking. */
static int slow_pipe(const char *text, pid_t *out_pid)
{
	int ends[2];

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	*out_pid = test_fork();
	assert_true(*out_pid >= 0);
	if (*out_pid == 0) {
		struct timespec pause = { .tv_nsec = 20000000 };

		(void)nanosleep(&pause, NULL);
		(void)__real_write(ends[1], text, 1);
		(void)nanosleep(&pause, NULL);
		(void)__real_write(ends[1], text + 1, strlen(text) - 1);
		_exit(0);
	}
	(void)close(ends[1]);
	fd_set_nonblocking(ends[0]);
	return ends[0];
}

static void a_non_blocking_pipe_is_waited_for(void **state)
{
	auto_arena struct arena a = { 0 };
	struct cj_error err = { 0 };
	char *text = NULL;
	size_t size = 0;
	pid_t pid;
	(void)state;

	auto_fd int fd = slow_pipe("late news", &pid);
	assert_int_equal(fd_read_all(fd, 100, &a, &text, &size, "pipe", &err), 0);
	assert_string_equal(text, "late news");
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void a_full_non_blocking_pipe_is_waited_for(void **state)
{
	enum { SIZE = 1 << 20 };
	auto_free char *bytes = calloc(1, SIZE);
	struct cj_error err = { 0 };
	int ends[2], status = 0;
	(void)state;

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	pid_t pid = test_fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		size_t total = 0;
		ssize_t got;

		(void)close(ends[1]);
		while ((got = read(ends[0], bytes, 65536)) > 0)
			total += (size_t)got;
		_exit(total == SIZE ? 0 : 1);
	}
	(void)close(ends[0]);
	fd_set_nonblocking(ends[1]);
	assert_true(fcntl(ends[1], F_GETFL) & O_NONBLOCK);
	assert_int_equal(fd_write_all(ends[1], bytes, SIZE, "pipe", &err), 0);
	(void)close(ends[1]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void writing_goes_on_after_a_part_and_an_interruption(void **state)
{
	auto_arena struct arena a = { 0 };
	struct cj_error err = { 0 };
	char *text = NULL;
	size_t size = 0;
	(void)state;

	auto_fd int fd = openat(temp_dir_fd, "parts", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	write_limit = 3;
	write_errno = EINTR;
	assert_int_equal(fd_write_all(fd, "0123456789", 10, "parts", &err), 0);
	assert_int_equal(fd_read_file(temp_dir_fd, "parts", 100, &a, &text, &size, &err), 0);
	assert_string_equal(text, "0123456789");

	write_errno = ENOSPC;
	assert_int_equal(fd_write_all(fd, "x", 1, "parts", &err), -ENOSPC);
	assert_string_equal(err.msg, "write 'parts': No space left on device");
	assert_int_equal(fd_write_all(fd, NULL, 0, "parts", &err), 0);
}

static void a_kernel_file_takes_its_text_in_one_write(void **state)
{
	auto_arena struct arena a = { 0 };
	struct cj_error err = { 0 };
	char *text = NULL, expected[512];
	size_t size = 0;
	(void)state;

	make_file("memory.max", "max");
	assert_int_equal(fd_put_file(temp_dir_fd, "memory.max", "100", &err), 0);
	assert_int_equal(fd_read_file(temp_dir_fd, "memory.max", 100, &a, &text, &size, &err), 0);
	assert_string_equal(text, "100");

	write_limit = 2;
	assert_int_equal(fd_put_file(temp_dir_fd, "memory.max", "12345\n", &err), -EIO);
	(void)snprintf(expected, sizeof(expected),
		       "write '12345' to '%s': only 2 of 6 bytes: Input/output error",
		       in_dir("memory.max"));
	assert_string_equal(err.msg, expected);

	write_errno = EBUSY;
	assert_int_equal(fd_put_file(temp_dir_fd, "memory.max", "5\n", &err), -EBUSY);
	(void)snprintf(expected, sizeof(expected), "write '5' to '%s': Device or resource busy",
		       in_dir("memory.max"));
	assert_string_equal(err.msg, expected);

	assert_int_equal(fd_put_file(temp_dir_fd, "pids.max", "5", &err), -ENOENT);
	assert_int_equal(faccessat(temp_dir_fd, "pids.max", F_OK, 0), -1); /* not created */
	assert_int_equal(symlinkat("memory.max", temp_dir_fd, "alias"), 0);
	assert_int_equal(fd_put_file(temp_dir_fd, "alias", "5", &err), -ELOOP);
}

static void expect_sealed(int fd, const char *text)
{
	char bytes[64] = "";

	assert_true(fd >= 0);
	assert_int_equal(lseek(fd, 0, SEEK_CUR), 0);
	assert_int_equal(read(fd, bytes, sizeof(bytes)), strlen(text));
	assert_string_equal(bytes, text);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	assert_int_equal(__real_write(fd, "x", 1), -1);
	assert_int_equal(errno, EPERM);
	assert_int_equal(ftruncate(fd, text[0] ? 1 : 2), -1);
	assert_int_equal(ftruncate(fd, 100), -1);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), -1);
	assert_ptr_equal(mmap(NULL, 1, PROT_WRITE, MAP_SHARED, fd, 0), MAP_FAILED);
}

static void a_sealed_memfd_can_not_change(void **state)
{
	struct cj_error err = { 0 };
	(void)state;

	auto_fd int fd = fd_memfd_sealed("code", "print(1)", 8, &err);
	expect_sealed(fd, "print(1)");
	auto_fd int empty = fd_memfd_sealed("code", NULL, 0, &err);
	expect_sealed(empty, "");
	write_errno = ENOSPC;
	assert_int_equal(fd_memfd_sealed("code", "x", 1, &err), -ENOSPC);
	write_errno = EINTR;
	auto_fd int interrupted = fd_memfd_sealed("code", "print(1)", 8, &err);
	expect_sealed(interrupted, "print(1)");
}

static void a_memfd_of_parts_has_all_of_each_when_writes_are_short(void **state)
{
	struct cj_error err = { 0 };
	char first[] = "first", second[] = "second", third[] = "3";
	const struct iovec parts[] = {
		{ first, 5 }, { NULL, 0 }, { second, 6 }, { third, 1 }, { NULL, 0 }
	};
	(void)state;

	for (write_limit = 0; write_limit < 7; write_limit++) {
		auto_fd int fd = fd_memfd_sealed_parts("code", parts, 5, &err);
		expect_sealed(fd, "firstsecond3");
	}
	write_limit = 0;
}

static void a_kernel_before_6_3_gets_a_memfd_too(void **state)
{
	struct cj_error err = { 0 };
	(void)state;

	is_noexec_unknown = true;
	auto_fd int fd = fd_memfd_sealed("code", "print(1)", 8, &err);
	expect_sealed(fd, "print(1)");
}

static void a_copy_is_complete_or_refused(void **state)
{
	struct cj_error err = { 0 };
	(void)state;

	make_file("source", "0123456789");
	auto_fd int in_fd = openat(temp_dir_fd, "source", O_RDONLY | O_CLOEXEC);
	assert_int_equal(fd_memfd_copy("code", in_fd, 9, "source", &err), -EFBIG);
	assert_string_equal(err.msg, "read 'source', of which 9 are allowed: File too large");

	assert_int_equal(lseek(in_fd, 0, SEEK_SET), 0);
	auto_fd int fd = fd_memfd_copy("code", in_fd, 10, "source", &err);
	expect_sealed(fd, "0123456789");
}

static void a_copy_from_a_pipe_waits_for_its_end(void **state)
{
	struct cj_error err = { 0 };
	pid_t pid;
	(void)state;

	auto_fd int in_fd = slow_pipe("from a pipe", &pid);
	auto_fd int fd = fd_memfd_copy("code", in_fd, 100, "standard input", &err);
	expect_sealed(fd, "from a pipe");
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* The message is "BEFORE'PATH'AFTER". */
static void expect_no_source(const char *path, int rc, const char *before, const char *after)
{
	struct cj_error err = { 0 };
	char expected[512];

	assert_int_equal(fd_open_regular(path, &err), rc);
	(void)snprintf(expected, sizeof(expected), "%s'%s'%s", before, path, after);
	assert_string_equal(err.msg, expected);
}

static void a_regular_file_is_opened(void **state)
{
	struct cj_error err = { 0 };
	char bytes[16] = "";
	(void)state;

	make_file("code.py", "pass");
	auto_fd int fd = fd_open_regular(in_dir("code.py"), &err);
	assert_true(fd >= 0);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	assert_int_equal(read(fd, bytes, sizeof(bytes)), 4);
	assert_string_equal(bytes, "pass");
}

static void a_link_on_the_way_is_followed_but_not_at_the_end(void **state)
{
	struct cj_error err = { 0 };
	(void)state;

	make_file("code.py", "pass");
	assert_int_equal(symlinkat(".", temp_dir_fd, "here"), 0);
	auto_fd int fd = fd_open_regular(in_dir("here/code.py"), &err);
	assert_true(fd >= 0);

	assert_int_equal(symlinkat("code.py", temp_dir_fd, "alias.py"), 0);
	expect_no_source(in_dir("alias.py"), -EINVAL, "",
			 " is a symbolic link to 'code.py'; name the file itself");
	assert_int_equal(symlinkat("nowhere", temp_dir_fd, "dangling"), 0);
	expect_no_source(in_dir("dangling"), -EINVAL, "",
			 " is a symbolic link to 'nowhere'; name the file itself");
	assert_int_equal(symlinkat("loop", temp_dir_fd, "loop"), 0);
	expect_no_source(in_dir("loop/x"), -EINVAL, "",
			 " leads through a link of /proc, or in circles");
}

static void a_linked_file_is_opened_and_its_real_path_is_given(void **state)
{
	struct cj_error err = { 0 };
	char real[PATH_MAX], expected[PATH_MAX];
	struct stat st;
	(void)state;

	make_file("code.py", "pass");
	assert_int_equal(symlinkat("code.py", temp_dir_fd, "first.py"), 0);
	assert_int_equal(symlinkat("first.py", temp_dir_fd, "second.py"), 0);
	auto_fd int fd = fd_open_linked(in_dir("second.py"), &err);
	assert_true(fd >= 0);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_size, 4);
	assert_non_null(realpath(in_dir("code.py"), expected));
	assert_string_equal(fd_real_path(fd, real), expected);

	assert_int_equal(symlinkat("nowhere", temp_dir_fd, "gone"), 0);
	assert_int_equal(fd_open_linked(in_dir("gone"), &err), -EINVAL);
	assert_non_null(strstr(err.msg, "is a symbolic link to 'nowhere'"));
	assert_int_equal(symlinkat(".", temp_dir_fd, "to_folder"), 0);
	assert_int_equal(fd_open_linked(in_dir("to_folder"), &err), -EINVAL);
	assert_non_null(strstr(err.msg, "is a directory"));
	assert_int_equal(symlinkat("/proc/self/exe", temp_dir_fd, "magic"), 0);
	assert_int_equal(fd_open_linked(in_dir("magic"), &err), -EINVAL);
	assert_int_equal(fd_open_linked(in_dir("missing"), &err), -ENOENT);
}

static void another_type_of_file_is_named(void **state)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	(void)state;

	expect_no_source(in_dir("directory"), -EINVAL, "", " is a directory, not a regular file");
	assert_int_equal(mkfifoat(temp_dir_fd, "fifo", 0600), 0);
	expect_no_source(in_dir("fifo"), -EINVAL, "", " is a fifo, not a regular file");
	expect_no_source("/dev/null", -EINVAL, "", " is a device, not a regular file");

	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", in_dir("socket"));
	auto_fd int sock_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(sock_fd, (struct sockaddr *)&address, sizeof(address)), 0);
	expect_no_source(in_dir("socket"), -EINVAL, "", " is a socket, not a regular file");
}

static void a_missing_source_is_named(void **state)
{
	char path[PATH_MAX + 2];
	struct cj_error err = { 0 };
	(void)state;

	expect_no_source(in_dir("none.py"), -ENOENT, "open ", ": No such file or directory");
	expect_no_source("", -ENOENT, "open ", ": No such file or directory");
	expect_no_source(in_dir("code.py/x"), -ENOTDIR, "open ", ": Not a directory");
	memset(path, 'x', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	assert_int_equal(fd_open_regular(path, &err), -ENAMETOOLONG);
}

static void standard_input_by_its_path_gets_the_hint(void **state)
{
	static const char *const paths[] = { "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0" };
	struct cj_error err = { 0 };
	(void)state;

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		if (access(paths[i], F_OK) < 0)
			continue; /* a small /dev */
		assert_int_equal(fd_open_regular(paths[i], &err), -EINVAL);
		assert_non_null(strstr(err.msg, "is a symbolic link to '"));
		assert_string_equal(err.hint, "'-' stands for standard input");
	}
	assert_int_equal(fd_open_regular("/proc/self/cwd/x", &err), -EINVAL);
	assert_non_null(strstr(err.msg, "leads through a link of /proc"));
}

static void expect_no_descriptor(int rc, const struct cj_error *err)
{
	assert_int_equal(rc, -EMFILE);
	assert_string_equal(err->hint, "raise the limit of open files: ulimit -n");
}

static void too_few_descriptors_get_the_hint(void **state)
{
	auto_arena struct arena a = { 0 };
	struct cj_error err = { 0 };
	struct rlimit before, none;
	char *text;
	size_t size;
	(void)state;

	make_file("code.py", "pass");
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	auto_fd int next_fd = dup(temp_dir_fd);
	none = (struct rlimit){ (rlim_t)next_fd, before.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	expect_no_descriptor(fd_open_regular(in_dir("code.py"), &err), &err);
	expect_no_descriptor(fd_memfd_sealed("code", "x", 1, &err), &err);
	expect_no_descriptor(fd_read_file(temp_dir_fd, "code.py", 9, &a, &text, &size, &err), &err);

	none.rlim_cur++; /* one to look at it, none to read it */
	cj_close(&next_fd);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	expect_no_descriptor(fd_open_regular(in_dir("code.py"), &err), &err);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

/* In a child with the user id of nobody. */
static void an_unreadable_source_is_named(void **state)
{
	int status = 0;
	(void)state;

	make_file("secret.py", "pass");
	assert_int_equal(fchmodat(temp_dir_fd, "secret.py", 0, 0), 0);
	assert_int_equal(fchmod(temp_dir_fd, 0755), 0);
	pid_t pid = test_fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		struct cj_error err = { 0 };

		if (geteuid() == 0 && setresuid(65534, 65534, 65534) < 0)
			_exit(77); /* a user namespace without that id */
		int rc = fd_open_regular(in_dir("secret.py"), &err);
		_exit(rc == -EACCES && strstr(err.msg, "secret.py': Permission denied") ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
		print_message("skip: cannot become uid 65534 here\n");
		skip();
	}
	assert_int_equal(status, 0);
}

/* Enough names for several calls of getdents64(2). */
#define LISTED 3000

static unsigned count_entries(struct fd_dir *dir, off_t *out_middle, unsigned middle)
{
	unsigned count = 0;
	for (const struct dirent *e; (e = fd_next_entry(dir)) != NULL;) {
		assert_int_equal(strncmp(e->d_name, "entry-", 6), 0);
		if (++count == middle)
			*out_middle = dir->place;
	}
	assert_int_equal(errno, 0);
	return count;
}

static void a_large_directory_is_listed_whole_and_from_any_place(void **state)
{
	(void)state;
	char name[64];
	off_t middle = 0;
	assert_int_equal(mkdirat(temp_dir_fd, "listed", 0700), 0);
	int dir_fd = openat(temp_dir_fd, "listed", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (unsigned i = 0; i < LISTED; i++) {
		(void)snprintf(name, sizeof(name), "entry-%020u", i);
		assert_int_equal(symlinkat("x", dir_fd, name), 0);
	}
	{
		auto_fd_dir struct fd_dir *dir = fd_open_dir(dir_fd, ".");
		assert_non_null(dir);
		assert_int_equal(count_entries(dir, &middle, 1000), LISTED);
		assert_null(fd_next_entry(dir));
		fd_seek_dir(dir, middle);
		assert_int_equal(count_entries(dir, &middle, 0), LISTED - 1000);
		fd_seek_dir(dir, 0);
		assert_int_equal(count_entries(dir, &middle, 0), LISTED);
	}
	for (unsigned i = 0; i < LISTED; i++) {
		(void)snprintf(name, sizeof(name), "entry-%020u", i);
		assert_int_equal(unlinkat(dir_fd, name, 0), 0);
	}
	/* Removed meanwhile: an end, not an error. */
	auto_fd_dir struct fd_dir *removed = fd_take_dir(dir_fd);
	assert_int_equal(unlinkat(temp_dir_fd, "listed", AT_REMOVEDIR), 0);
	assert_null(fd_next_entry(removed));
	assert_int_equal(errno, 0);
}

static void what_is_no_directory_is_not_listed(void **state)
{
	(void)state;
	assert_null(fd_open_dir(AT_FDCWD, "/dev/null"));
	assert_int_equal(errno, ENOTDIR);
	auto_fd_dir struct fd_dir *file = fd_take_dir(open("/dev/null", O_RDONLY | O_CLOEXEC));
	assert_null(fd_next_entry(file));
	assert_int_equal(errno, ENOTDIR);
}

/* The descriptors 300 to 305 are open, as is `lowest`, which lies below the first to close. */
static int check_kept(int lowest)
{
	const int kept[] = { 304, -1, lowest, 301, 304 };
	for (int fd = 300; fd < 306; fd++)
		if (dup2(lowest, fd) != fd)
			return 1;
	if (fd_close_others(300, kept, sizeof(kept) / sizeof(kept[0])) != 0)
		return 2;
	for (int fd = 300; fd < 306; fd++)
		if ((fcntl(fd, F_GETFD) >= 0) != (fd == 301 || fd == 304))
			return 3;
	if (fcntl(lowest, F_GETFD) < 0)
		return 4;
	return fd_close_others(300, NULL, 0) == 0 && fcntl(304, F_GETFD) < 0 ? 0 : 5;
}

static void all_descriptors_but_the_kept_are_closed(void **state)
{
	(void)state;
	int how = 0;
	auto_fd int lowest = open("/dev/null", O_RDONLY | O_CLOEXEC);
	assert_in_range(lowest, 0, 299);
	pid_t pid = test_fork();
	if (pid == 0)
		_exit(check_kept(lowest));
	assert_int_equal(waitpid(pid, &how, 0), pid);
	assert_true(WIFEXITED(how));
	assert_int_equal(WEXITSTATUS(how), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(closed_standard_streams_become_dev_null),
		cmocka_unit_test(a_standard_stream_that_is_only_a_path_stays),
		cmocka_unit_test(a_child_is_ended_and_reaped_with_its_scope),
		cmocka_unit_test_setup(a_file_is_read_whole_with_a_nul_behind, forget),
		cmocka_unit_test_setup(a_large_file_is_read_up_to_its_limit, forget),
		cmocka_unit_test_setup(a_file_that_cannot_be_read_is_named, forget),
		cmocka_unit_test_setup(a_non_blocking_pipe_is_waited_for, forget),
		cmocka_unit_test_setup(a_full_non_blocking_pipe_is_waited_for, forget),
		cmocka_unit_test_setup(writing_goes_on_after_a_part_and_an_interruption, forget),
		cmocka_unit_test_setup(a_kernel_file_takes_its_text_in_one_write, forget),
		cmocka_unit_test_setup(a_sealed_memfd_can_not_change, forget),
		cmocka_unit_test_setup(a_memfd_of_parts_has_all_of_each_when_writes_are_short,
				       forget),
		cmocka_unit_test_setup(a_kernel_before_6_3_gets_a_memfd_too, forget),
		cmocka_unit_test_setup(a_copy_is_complete_or_refused, forget),
		cmocka_unit_test_setup(a_copy_from_a_pipe_waits_for_its_end, forget),
		cmocka_unit_test_setup(a_regular_file_is_opened, forget),
		cmocka_unit_test_setup(a_link_on_the_way_is_followed_but_not_at_the_end, forget),
		cmocka_unit_test_setup(a_linked_file_is_opened_and_its_real_path_is_given, forget),
		cmocka_unit_test_setup(another_type_of_file_is_named, forget),
		cmocka_unit_test_setup(a_missing_source_is_named, forget),
		cmocka_unit_test_setup(standard_input_by_its_path_gets_the_hint, forget),
		cmocka_unit_test_setup(too_few_descriptors_get_the_hint, forget),
		cmocka_unit_test_setup(an_unreadable_source_is_named, forget),
		cmocka_unit_test(a_large_directory_is_listed_whole_and_from_any_place),
		cmocka_unit_test(what_is_no_directory_is_not_listed),
		cmocka_unit_test(all_descriptors_but_the_kept_are_closed),
	};

	return cmocka_run_group_tests_name("fd", tests, temp_dir_make, temp_dir_remove);
}
