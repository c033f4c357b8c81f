/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The terminal of a container, in a mount namespace of its own: what it should be, and each way in
 * which a hostile root tries to pass off something else.
 */
#include "runtime/container/process/console.h"

#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <termios.h>

#include <cmocka.h>

#include "runtime/base/scope.h"
#include "tests/forked.h"
#include "tests/temp_dir.h"

#define NO_NAMESPACE 255

/* What a child's trial comes to; it leaves by _exit. */
#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			(void)fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #condition,   \
				      err.msg);                                                    \
			_exit(1);                                                                  \
		}                                                                                  \
	} while (0)

static struct cj_error err;
static const struct oci_process process = { .console_height = 33, .console_width = 101 };

static bool make_root(void)
{
	return mount("none", temp_dir, "tmpfs", 0, "mode=755") == 0 && chdir(temp_dir) == 0 &&
	       mkdir("dev", 0755) == 0 && mkdir("dev/pts", 0755) == 0 && mkdir("other", 0755) == 0;
}

static bool mount_devpts(void)
{
	return mount("devpts", "dev/pts", "devpts", MS_NOSUID | MS_NOEXEC,
		     "newinstance,ptmxmode=0666,mode=0620") == 0;
}

static int own_namespaces(void)
{
	return geteuid() == 0 ? unshare(CLONE_NEWNS) : unshare(CLONE_NEWUSER | CLONE_NEWNS);
}

/* An ordinary user's id inside is 0, as /proc/self/uid_map will say. */
static bool map_self(uid_t uid, gid_t gid)
{
	static const char *const files[] = { "setgroups", "uid_map", "gid_map" };
	char texts[3][64] = { "deny" };
	if (uid == 0)
		return true;
	(void)snprintf(texts[1], sizeof(texts[1]), "0 %u 1", uid);
	(void)snprintf(texts[2], sizeof(texts[2]), "0 %u 1", gid);
	for (int i = 0; i < 3; i++) {
		char path[64];
		(void)snprintf(path, sizeof(path), "/proc/self/%s", files[i]);
		auto_fd int fd = open(path, O_WRONLY | O_CLOEXEC);
		if (write(fd, texts[i], strlen(texts[i])) < 0)
			return false;
	}
	return true;
}

static void in_child(void (*trial)(int root_fd))
{
	int status;
	pid_t pid = test_fork();
	if (pid == 0) {
		uid_t uid = geteuid();
		gid_t gid = getegid();
		if (own_namespaces() < 0)
			_exit(NO_NAMESPACE);
		if (!map_self(uid, gid) || mount(NULL, "/", NULL, MS_PRIVATE | MS_REC, NULL) < 0 ||
		    !make_root())
			_exit(254);
		int root_fd = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
		trial(root_fd);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == NO_NAMESPACE)
		skip();
	assert_int_equal(status, 0);
}

static void use_it(int root_fd)
{
	auto_console struct console c = CONSOLE_NULL;
	struct stat slave, mounted;
	struct winsize size;
	CHECK(mount_devpts());
	CHECK(console_open(root_fd, &process, &c, &err) == 0);
	CHECK(ioctl(c.slave_fd, TIOCGWINSZ, &size) == 0 && size.ws_row == 33 && size.ws_col == 101);
	CHECK(fcntl(c.master_fd, F_GETFD) == FD_CLOEXEC &&
	      fcntl(c.slave_fd, F_GETFD) == FD_CLOEXEC);
	CHECK(console_mount(root_fd, &c, &err) == 0);
	CHECK(fstat(c.slave_fd, &slave) == 0 && stat("dev/console", &mounted) == 0);
	CHECK(slave.st_rdev == mounted.st_rdev && slave.st_ino == mounted.st_ino);

	pid_t pid = test_fork();
	if (pid == 0) {
		CHECK(console_enter(&c, &err) == 0);
		CHECK(tcgetsid(STDIN_FILENO) == getpid());
		auto_fd int tty_fd = open("/dev/tty", O_RDWR | O_CLOEXEC);
		_exit(tty_fd >= 0 && write(STDOUT_FILENO, "hello", 5) == 5 ? 0 : 3);
	}
	char text[16] = "";
	int status;
	CHECK(read(c.master_fd, text, sizeof(text)) == 5 && strcmp(text, "hello") == 0);
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
}

static void a_terminal_is_opened_mounted_and_entered(void **state)
{
	(void)state;
	in_child(use_it);
}

static void refuse_all(int root_fd)
{
	auto_console struct console c = CONSOLE_NULL;
	CHECK(console_open(root_fd, &process, &c, &err) < 0); /* an ordinary directory */
	CHECK(err.code == ENOENT);

	/* a file or a device of another file system as ptmx */
	auto_fd int file_fd = open("dev/pts/ptmx", O_CREAT | O_WRONLY | O_CLOEXEC, 0666);
	CHECK(file_fd >= 0);
	CHECK(console_open(root_fd, &process, &c, &err) == -EPERM);
	CHECK(strstr(err.msg, "not a device of a devpts"));
	CHECK(mount("/dev/null", "dev/pts/ptmx", NULL, MS_BIND, NULL) == 0);
	CHECK(console_open(root_fd, &process, &c, &err) == -EXDEV);
	CHECK(umount2("dev/pts/ptmx", MNT_DETACH) == 0);

	/* a pty of another instance mounted over that of this one */
	CHECK(mount_devpts());
	CHECK(mount("/dev/ptmx", "dev/pts/ptmx", NULL, MS_BIND, NULL) == 0);
	CHECK(console_open(root_fd, &process, &c, &err) == -EXDEV);
	CHECK(umount2("dev/pts", MNT_DETACH) == 0);

	/* links, to the devpts of the host, too */
	CHECK(rename("dev/pts", "dev/old") == 0 && symlink("/dev/pts", "dev/pts") == 0);
	CHECK(console_open(root_fd, &process, &c, &err) == -ELOOP);
	CHECK(rename("dev", "old") == 0 && symlink("/dev", "dev") == 0);
	CHECK(console_open(root_fd, &process, &c, &err) == -ELOOP);
	CHECK(c.master_fd == -1 && c.slave_fd == -1);
}

static void nothing_but_the_containers_devpts_is_used(void **state)
{
	(void)state;
	in_child(refuse_all);
}

static void refuse_places(int root_fd)
{
	auto_console struct console c = CONSOLE_NULL;
	struct stat st;
	CHECK(mount_devpts());
	CHECK(console_open(root_fd, &process, &c, &err) == 0);

	CHECK(symlink("../other/file", "dev/console") == 0);
	CHECK(console_mount(root_fd, &c, &err) == -EPERM);
	CHECK(strstr(err.msg, "symbolic link") && stat("other/file", &st) < 0);
	CHECK(unlink("dev/console") == 0 && mkdir("dev/console", 0755) == 0);
	CHECK(console_mount(root_fd, &c, &err) == -EPERM && strstr(err.msg, "directory"));
	CHECK(rmdir("dev/console") == 0);

	/* an existing file is mounted on, whatever it is */
	CHECK(mkfifo("dev/console", 0600) == 0);
	CHECK(console_mount(root_fd, &c, &err) == 0);
	CHECK(stat("dev/console", &st) == 0 && S_ISCHR(st.st_mode));

	CHECK(rename("dev", "old") == 0 && symlink("/dev", "dev") == 0);
	CHECK(console_mount(root_fd, &c, &err) == -ELOOP);
}

static void a_link_as_dev_console_is_refused(void **state)
{
	(void)state;
	in_child(refuse_places);
}

static void the_master_goes_in_one_message(void **state)
{
	char path[200], byte[8];
	int pipe_fds[2], fd = -1;
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(4 * sizeof(int))];
	} control;
	struct iovec bytes = { byte, sizeof(byte) };
	struct msghdr message = { .msg_iov = &bytes,
				  .msg_iovlen = 1,
				  .msg_control = &control,
				  .msg_controllen = sizeof(control) };
	(void)state;

	/* a path that is longer than a socket's address */
	memset(path, 'd', sizeof(path));
	path[150] = '\0';
	assert_int_equal(mkdirat(temp_dir_fd, path, 0700), 0);
	auto_fd int dir_fd = openat(temp_dir_fd, path, O_PATH | O_CLOEXEC);
	(void)snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/s", dir_fd);
	auto_fd int listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(listen_fd, (const struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(listen_fd, 1), 0);
	char full[512];
	(void)snprintf(full, sizeof(full), "%s/%s/s", temp_dir, path);

	auto_fd int sock_fd = console_connect(full, &err);
	assert_true(sock_fd >= 0);
	auto_fd int engine_fd = accept(listen_fd, NULL, NULL);
	assert_int_equal(pipe2(pipe_fds, O_CLOEXEC), 0);
	struct console c = { .master_fd = pipe_fds[1], .slave_fd = -1 };
	assert_int_equal(console_send(sock_fd, &c, &err), 0);
	assert_int_equal(c.master_fd, -1);

	assert_int_equal(recvmsg(engine_fd, &message, MSG_CMSG_CLOEXEC), 1);
	const struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
	assert_non_null(rights);
	assert_int_equal(rights->cmsg_len, CMSG_LEN(sizeof(int)));
	memcpy(&fd, CMSG_DATA(rights), sizeof(fd));
	assert_int_equal(write(fd, "x", 1), 1);
	assert_int_equal(read(pipe_fds[0], byte, sizeof(byte)), 1);
	(void)close(fd);
	(void)close(pipe_fds[0]);

	assert_true(console_connect("/no/such/socket", &err) == -ENOENT);
	assert_non_null(strstr(err.msg, "--console-socket"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_terminal_is_opened_mounted_and_entered),
		cmocka_unit_test(nothing_but_the_containers_devpts_is_used),
		cmocka_unit_test(a_link_as_dev_console_is_refused),
		cmocka_unit_test(the_master_goes_in_one_message),
	};
	return cmocka_run_group_tests(tests, temp_dir_make, temp_dir_remove);
}
