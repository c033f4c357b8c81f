/* SPDX-License-Identifier: Apache-2.0 */
/* What systemd and the service say to each other. */
#include "runtime/service/operations/notify.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>

#include "tests/forked.h"

static char path[64];
static int manager_fd = -1;

/* The manager's end; an '@' in front is a name in the abstract space. */
static void listen_at(const char *name)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	size_t size = strlen(name);
	memcpy(a.sun_path, name, size + 1);
	socklen_t length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + size + 1);
	if (name[0] == '@') {
		a.sun_path[0] = '\0';
		length--;
	}
	manager_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	assert_true(manager_fd >= 0);
	assert_int_equal(bind(manager_fd, (struct sockaddr *)&a, length), 0);
	(void)setenv("NOTIFY_SOCKET", name, 1);
}

/* The next datagram, or "". */
static const char *heard(void)
{
	static char text[8192];
	ssize_t got = recv(manager_fd, text, sizeof(text) - 1, 0);
	text[got > 0 ? got : 0] = '\0';
	return text;
}

static int set_up(void **state)
{
	static const char *const names[] = { "NOTIFY_SOCKET",  "LISTEN_FDS",    "LISTEN_PID",
					     "LISTEN_FDNAMES", "WATCHDOG_USEC", "WATCHDOG_PID" };
	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		(void)unsetenv(names[i]);
	(void)snprintf(path, sizeof(path), "/tmp/cejail-test-notify-%d", (int)getpid());
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	if (manager_fd >= 0)
		(void)close(manager_fd);
	manager_fd = -1;
	(void)unlink(path);
	return 0;
}

static void systemd_receives_every_line(void **state)
{
	(void)state;
	listen_at(path);
	notify_send("READY=1\nSTATUS=%u runs", 7u);
	assert_string_equal(heard(), "READY=1\nSTATUS=7 runs");
	assert_string_equal(heard(), "");
}

static void an_abstract_socket_is_one_too(void **state)
{
	char name[80];
	(void)state;
	(void)snprintf(name, sizeof(name), "@cejail-test-notify-%d", (int)getpid());
	listen_at(name);
	notify_send("STOPPING=1");
	assert_string_equal(heard(), "STOPPING=1");
}

static void a_reload_is_reported_with_its_time(void **state)
{
	unsigned long long us = 0;
	struct timespec before, after;
	(void)state;
	listen_at(path);
	(void)clock_gettime(CLOCK_MONOTONIC, &before);
	notify_reloading();
	(void)clock_gettime(CLOCK_MONOTONIC, &after);
	assert_int_equal(sscanf(heard(), "RELOADING=1\nMONOTONIC_USEC=%llu", &us), 1);
	assert_in_range(us, (uint64_t)before.tv_sec * 1000000 + (uint64_t)before.tv_nsec / 1000,
			(uint64_t)after.tv_sec * 1000000 + (uint64_t)after.tv_nsec / 1000);
}

static void a_text_that_is_too_long_is_cut(void **state)
{
	static char text[5000];
	(void)state;
	listen_at(path);
	memset(text, 'x', sizeof(text) - 1);
	notify_send("STATUS=%s", text);
	assert_int_equal(strlen(heard()), 2047);
}

static void without_systemd_nothing_is_sent(void **state)
{
	static const char *const nowhere[] = {
		"", "@", "/", "relative", "vsock:2:1234", "/nowhere/at/all"
	};
	char far[200];
	(void)state;
	int fd = dup(STDOUT_FILENO);
	(void)close(fd);
	notify_send("READY=1");
	for (size_t i = 0; i < sizeof(nowhere) / sizeof(nowhere[0]); i++) {
		(void)setenv("NOTIFY_SOCKET", nowhere[i], 1);
		notify_send("READY=1");
	}
	memset(far, 'x', sizeof(far) - 1);
	far[0] = '/';
	far[sizeof(far) - 1] = '\0';
	(void)setenv("NOTIFY_SOCKET", far, 1);
	notify_send("READY=1");
	int again = dup(STDOUT_FILENO); /* no descriptor was lost */
	assert_int_equal(again, fd);
	(void)close(again);
}

/* --- sockets ---------------------------------------------------------------------------- */

/* In a child, whose descriptors 3 and 4 are ours to place; its answer is its exit status. */
static int in_child(int (*body)(void))
{
	int status = 0;
	pid_t pid = test_fork();
	if (pid == 0) {
		char text[16];
		(void)snprintf(text, sizeof(text), "%d", (int)getpid());
		(void)setenv("LISTEN_PID", text, 1);
		(void)dup2(STDOUT_FILENO, 3);
		(void)dup2(STDOUT_FILENO, 4);
		_exit(body());
	}
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static int take_two(void)
{
	int first = -1;
	struct cj_error err = { 0 };
	(void)setenv("LISTEN_FDS", "2", 1);
	(void)setenv("LISTEN_FDNAMES", "a:b", 1);
	if (notify_listen_fds(&first, &err) != 2 || first != 3)
		return 1;
	if (!(fcntl(3, F_GETFD) & FD_CLOEXEC) || !(fcntl(4, F_GETFD) & FD_CLOEXEC))
		return 2;
	if (getenv("LISTEN_FDS") || getenv("LISTEN_PID") || getenv("LISTEN_FDNAMES"))
		return 3;
	return notify_listen_fds(&first, &err) == 0 ? 0 : 4;
}

static int take_anothers(void)
{
	int first = -1;
	struct cj_error err = { 0 };
	(void)setenv("LISTEN_FDS", "2", 1);
	(void)setenv("LISTEN_PID", "1", 1);
	return notify_listen_fds(&first, &err) == 0 && first == -1 && !getenv("LISTEN_FDS") ? 0 : 1;
}

static int take_too_many(void)
{
	static const char *const counts[] = { "65", "-1", "x", "", "99999999999999999999" };
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		int first = -1;
		char text[16];
		struct cj_error err = { 0 };
		(void)snprintf(text, sizeof(text), "%d", (int)getpid());
		(void)setenv("LISTEN_PID", text, 1);
		(void)setenv("LISTEN_FDS", counts[i], 1);
		if (notify_listen_fds(&first, &err) != -EINVAL || !strstr(err.msg, counts[i]))
			return 1;
	}
	return 0;
}

static int take_what_is_not_there(void)
{
	int first = -1;
	struct cj_error err = { 0 };
	(void)close(4);
	(void)setenv("LISTEN_FDS", "2", 1);
	return notify_listen_fds(&first, &err) == -EBADF && strstr(err.msg, "descriptor 4") ? 0 : 1;
}

static void activated_sockets_are_not_inherited_by_children(void **state)
{
	(void)state;
	assert_int_equal(in_child(take_two), 0);
}

static void sockets_for_another_process_are_left(void **state)
{
	(void)state;
	assert_int_equal(in_child(take_anothers), 0);
}

static void an_impossible_number_of_sockets_is_refused(void **state)
{
	(void)state;
	assert_int_equal(in_child(take_too_many), 0);
	assert_int_equal(in_child(take_what_is_not_there), 0);
}

static void without_socket_activation_there_are_no_sockets(void **state)
{
	int first = -1;
	struct cj_error err = { 0 };
	(void)state;
	assert_int_equal(notify_listen_fds(&first, &err), 0);
	assert_int_equal(first, -1);
}

/* --- the watchdog ------------------------------------------------------------------------- */

static void the_watchdog_interval_is_half_of_its_timeout(void **state)
{
	char text[16];
	(void)state;
	assert_int_equal(notify_watchdog_ms(), 0);
	(void)setenv("WATCHDOG_USEC", "30000000", 1);
	assert_int_equal(notify_watchdog_ms(), 15000);
	(void)setenv("WATCHDOG_PID", "1", 1);
	assert_int_equal(notify_watchdog_ms(), 0);
	(void)snprintf(text, sizeof(text), "%d", (int)getpid());
	(void)setenv("WATCHDOG_PID", text, 1);
	assert_int_equal(notify_watchdog_ms(), 15000);
	(void)setenv("WATCHDOG_USEC", "1", 1);
	assert_int_equal(notify_watchdog_ms(), 1);
	(void)setenv("WATCHDOG_USEC", "0", 1);
	assert_int_equal(notify_watchdog_ms(), 0);
	(void)setenv("WATCHDOG_USEC", "soon", 1);
	assert_int_equal(notify_watchdog_ms(), 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(systemd_receives_every_line),
		CASE(an_abstract_socket_is_one_too),
		CASE(a_reload_is_reported_with_its_time),
		CASE(a_text_that_is_too_long_is_cut),
		CASE(without_systemd_nothing_is_sent),
		CASE(activated_sockets_are_not_inherited_by_children),
		CASE(sockets_for_another_process_are_left),
		CASE(an_impossible_number_of_sockets_is_refused),
		CASE(without_socket_activation_there_are_no_sockets),
		CASE(the_watchdog_interval_is_half_of_its_timeout),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
