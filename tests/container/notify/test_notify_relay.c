/* SPDX-License-Identifier: Apache-2.0 */
/* Between a program and a service manager: two socket pairs. */
#include "runtime/container/notify/notify_relay.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "runtime/base/scope.h"
#include "tests/forked.h"
#include "tests/patience.h"

struct lab {
	int program_fd, manager_fd; /* their ends */
	int end[2];                 /* a pipe: the relay ends when it is closed */
	struct notify_relay relay;
};

static void open_lab(struct lab *lab)
{
	int program[2], manager[2];
	assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, program), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, manager), 0);
	assert_int_equal(pipe2(lab->end, O_CLOEXEC), 0);
	lab->program_fd = program[1];
	lab->manager_fd = manager[1];
	lab->relay = (struct notify_relay){ .manager_fd = manager[0], .program_fd = program[0] };
}

static void close_lab(struct lab *lab)
{
	notify_relay_close(&lab->relay);
	cj_close(&lab->program_fd);
	cj_close(&lab->manager_fd);
	cj_close(&lab->end[0]);
	cj_close(&lab->end[1]);
}

static void say(struct lab *lab, const char *text)
{
	assert_int_equal(send(lab->program_fd, text, strlen(text), 0), strlen(text));
}

/* The manager's next message, or "". */
static const char *heard(struct lab *lab, int flags)
{
	static char text[256];
	ssize_t got = recv(lab->manager_fd, text, sizeof(text) - 1, flags);
	text[got > 0 ? got : 0] = '\0';
	return text;
}

static void what_came_before_the_end_is_passed_on_once(void **state)
{
	(void)state;
	struct lab lab;
	open_lab(&lab);
	cj_close(&lab.end[1]);
	say(&lab, "STATUS=begins");
	say(&lab, "READY=1\nMAINPID=1");
	say(&lab, "READY=1");
	notify_relay_wait(&lab.relay, lab.end[0]);
	say(&lab, "READY=1");
	notify_relay_wait(&lab.relay, lab.end[0]);
	assert_string_equal(heard(&lab, MSG_DONTWAIT), "READY=1");
	assert_string_equal(heard(&lab, MSG_DONTWAIT), "");
	close_lab(&lab);
}

static void a_manager_whose_queue_is_full_gets_it_later(void **state)
{
	(void)state;
	struct lab lab;
	open_lab(&lab);
	lab.relay.main_pid = 42;
	while (send(lab.relay.manager_fd, "old", 3, MSG_DONTWAIT) == 3)
		;
	assert_int_equal(errno, EAGAIN);
	say(&lab, "READY=1");
	pid_t pid = test_fork();
	if (pid == 0) {
		cj_close(&lab.end[1]);
		notify_relay_wait(&lab.relay, lab.end[0]);
		_exit(0);
	}
	assert_true(pid > 0);
	(void)alarm((unsigned)patience_s(20)); /* ends a test that hangs */
	const char *text = heard(&lab, 0);
	while (strcmp(text, "old") == 0)
		text = heard(&lab, 0);
	assert_string_equal(text, "READY=1\nMAINPID=42");
	cj_close(&lab.end[1]);
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	(void)alarm(0);
	close_lab(&lab);
}

static void without_a_manager_it_only_waits(void **state)
{
	(void)state;
	struct notify_relay none = NOTIFY_RELAY_NULL;
	struct oci_config config = { .has_process = true };
	struct cj_error err = { 0 };
	int end[2];
	assert_int_equal(unsetenv("NOTIFY_SOCKET"), 0);
	assert_int_equal(notify_relay_plan(&none, NULL, &config, NULL, &err), 0);
	assert_int_equal(none.manager_fd, -1);
	assert_int_equal(config.nmounts + config.process.env.count, 0);
	assert_int_equal(notify_relay_bind(&none, NULL, &err), 0);
	assert_int_equal(notify_relay_start(&none, 1, -1, &err), 0);
	assert_int_equal(pipe2(end, O_CLOEXEC), 0);
	cj_close(&end[1]);
	notify_relay_wait(&none, end[0]);
	cj_close(&end[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_came_before_the_end_is_passed_on_once),
		cmocka_unit_test(a_manager_whose_queue_is_full_gets_it_later),
		cmocka_unit_test(without_a_manager_it_only_waits),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
