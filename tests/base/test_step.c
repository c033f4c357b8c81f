/* SPDX-License-Identifier: Apache-2.0 */
/* Steps: whole or absent, named when they are wrong, never taken for granted. */
#include "runtime/base/step.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "runtime/base/scope.h"

static const char *const names[] = { "first", "second", "third" };

struct tcp_proxy {
	struct step_link ours, theirs;
};

static struct tcp_proxy open_pair(unsigned timeout_ms)
{
	int ends[2];
	struct cj_error err = { 0 };
	assert_int_equal(step_pair(ends, timeout_ms, &err), 0);
	return (struct tcp_proxy){ { ends[0], "init", names },
				   { ends[1], "the supervisor", names } };
}

static void close_pair(struct tcp_proxy *p)
{
	cj_close(&p->ours.sock_fd);
	cj_close(&p->theirs.sock_fd);
}

static int open_descriptors(void)
{
	int n = 0;
	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static void a_step_arrives_with_its_data_and_descriptors(void **state)
{
	(void)state;
	struct tcp_proxy p = open_pair(1000);
	struct cj_error err = { 0 };
	struct step_msg msg = { 0 };
	int null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	assert_int_equal(step_tell(&p.theirs, 1, "abc", 3, &null_fd, 1, &err), 0);
	assert_int_equal(step_await(&p.ours, 1, &msg, &err), 0);
	assert_int_equal(msg.size, 3);
	assert_memory_equal(msg.data, "abc", 3);
	assert_int_equal(msg.nfds, 1);
	assert_true(fcntl(msg.fds[0], F_GETFD) & FD_CLOEXEC);
	step_msg_fini(&msg);
	close(null_fd);
	close_pair(&p);
}

static void a_step_without_content_is_awaited_and_its_descriptors_are_closed(void **state)
{
	(void)state;
	struct tcp_proxy p = open_pair(1000);
	struct cj_error err = { 0 };
	int null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC), before = open_descriptors();

	assert_int_equal(step_tell(&p.theirs, 1, "abc", 3, &null_fd, 1, &err), 0);
	assert_int_equal(step_await(&p.ours, 1, NULL, &err), 0);
	assert_int_equal(open_descriptors(), before);
	assert_int_equal(step_tell(&p.theirs, 2, NULL, 0, &null_fd, 1, &err), 0);
	assert_int_equal(step_await(&p.ours, 1, NULL, &err), -EPROTO);
	assert_int_equal(open_descriptors(), before);
	close(null_fd);
	close_pair(&p);
}

static void a_closed_link_is_a_failure_that_names_the_awaited_step(void **state)
{
	(void)state;
	struct tcp_proxy p = open_pair(1000);
	struct cj_error err = { 0 };
	struct step_msg msg = { 0 };

	cj_close(&p.theirs.sock_fd);
	assert_int_equal(step_await(&p.ours, 2, &msg, &err), -EPIPE);
	assert_string_equal(err.msg, "init ended before 'third'");
	close_pair(&p);
}

static void the_end_of_a_link_is_awaited(void **state)
{
	(void)state;
	struct tcp_proxy p = open_pair(10);
	struct cj_error err = { 0 };

	int copy_fd = dup(p.theirs.sock_fd);
	assert_true(copy_fd >= 0);
	cj_close(&p.theirs.sock_fd);
	assert_int_equal(step_await_end(&p.ours, &err), -ETIMEDOUT);
	assert_non_null(strstr(err.msg, "wait for the end of init"));
	close(copy_fd);
	assert_int_equal(step_await_end(&p.ours, &err), 0);
	close_pair(&p);
}

static void a_message_is_not_the_end_of_a_link(void **state)
{
	(void)state;
	struct tcp_proxy p = open_pair(1000);
	struct cj_error err = { 0 };
	int null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	int before = open_descriptors();

	assert_int_equal(step_tell(&p.theirs, 0, NULL, 0, &null_fd, 1, &err), 0);
	assert_int_equal(step_await_end(&p.ours, &err), -EPROTO);
	assert_int_equal(open_descriptors(), before);
	close(null_fd);
	close_pair(&p);
}

static void a_late_peer_is_a_failure(void **state)
{
	(void)state;
	struct tcp_proxy p = open_pair(10);
	struct cj_error err = { 0 };
	struct step_msg msg = { 0 };

	assert_int_equal(step_await(&p.ours, 0, &msg, &err), -ETIMEDOUT);
	assert_non_null(strstr(err.msg, "'first'"));
	close_pair(&p);
}

static void an_unexpected_step_is_refused_and_its_descriptors_are_closed(void **state)
{
	(void)state;
	struct tcp_proxy p = open_pair(1000);
	struct cj_error err = { 0 };
	struct step_msg msg = { 0 };
	int null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	int before = open_descriptors();

	assert_int_equal(step_tell(&p.theirs, 0, NULL, 0, &null_fd, 1, &err), 0);
	assert_int_equal(step_await(&p.ours, 1, &msg, &err), -EPROTO);
	assert_int_equal(open_descriptors(), before);
	close(null_fd);
	close_pair(&p);
}

static void the_peers_failure_becomes_our_own(void **state)
{
	(void)state;
	struct tcp_proxy p = open_pair(1000);
	struct cj_error err = { 0 };
	struct step_msg msg = { 0 };
	struct cj_error why = {
		.code = ENOSPC, .stage = "root", .msg = "mount 'x': full", .hint = "do"
	};

	step_abort(&p.theirs, &why);
	assert_int_equal(step_await(&p.ours, 1, &msg, &err), -ENOSPC);
	assert_string_equal(err.msg, "mount 'x': full");
	assert_string_equal(err.stage, "root");
	assert_string_equal(err.hint, "do");
	close_pair(&p);
}

static void the_error_of_an_ended_peer_replaces_epipe(void **state)
{
	(void)state;
	struct tcp_proxy p = open_pair(1000);
	struct cj_error err = { 0 };
	const struct cj_error why = { .code = ENOSPC, .stage = "root", .msg = "mount 'x': full" };

	step_abort(&p.theirs, &why);
	cj_close(&p.theirs.sock_fd);
	assert_int_equal(step_tell(&p.ours, 0, NULL, 0, NULL, 0, &err), -ENOSPC);
	assert_string_equal(err.msg, "mount 'x': full");
	assert_int_equal(step_tell(&p.ours, 0, NULL, 0, NULL, 0, &err), -EPIPE);
	assert_string_equal(err.msg, "init ended before 'first'");
	close_pair(&p);
}

static void the_peers_error_arrives_though_it_read_nothing(void **state)
{
	(void)state;
	struct tcp_proxy p = open_pair(1000);
	struct cj_error err = { 0 };
	struct step_msg msg = { 0 };
	const struct cj_error why = { .code = ENOSPC, .msg = "mount 'x': full" };

	assert_int_equal(step_tell(&p.ours, 0, NULL, 0, NULL, 0, &err), 0);
	step_abort(&p.theirs, &why);
	cj_close(&p.theirs.sock_fd);
	assert_int_equal(step_await(&p.ours, 1, &msg, &err), -ENOSPC);
	assert_int_equal(step_await(&p.ours, 1, &msg, &err), -EPIPE);
	close_pair(&p);
}

static void the_peers_error_arrives_after_steps_that_were_not_read(void **state)
{
	(void)state;
	struct tcp_proxy p = open_pair(1000);
	struct cj_error err = { 0 };
	const struct cj_error why = { .code = ENOMEM, .stage = "sources", .msg = "open '/usr'" };
	auto_fd int fd = dup(0);

	assert_int_equal(step_tell(&p.theirs, 1, NULL, 0, &fd, 1, &err), 0);
	step_abort(&p.theirs, &why);
	int free_fd = p.theirs.sock_fd;
	cj_close(&p.theirs.sock_fd);
	assert_int_equal(step_tell(&p.ours, 0, NULL, 0, NULL, 0, &err), -ENOMEM);
	assert_string_equal(err.stage, "sources");
	assert_string_equal(err.msg, "open '/usr'");
	auto_fd int next_fd = dup(0); /* what came along is closed again */
	assert_int_equal(next_fd, free_fd);
	close_pair(&p);
}

static void an_error_without_an_end_or_a_code_is_made_safe(void **state)
{
	(void)state;
	struct tcp_proxy p = open_pair(1000);
	struct cj_error err = { 0 }, why;
	struct step_msg msg = { 0 };

	memset(&why, 'x', sizeof(why));
	why.code = 0;
	step_abort(&p.theirs, &why);
	assert_int_equal(step_await(&p.ours, 1, &msg, &err), -EPROTO);
	assert_int_equal(strlen(err.msg), sizeof(err.msg) - 1);
	assert_int_equal(strlen(err.hint), sizeof(err.hint) - 1);
	close_pair(&p);
}

static void a_message_that_is_too_short_or_lies_about_its_size_is_refused(void **state)
{
	(void)state;
	struct tcp_proxy p = open_pair(1000);
	struct cj_error err = { 0 };
	struct step_msg msg = { 0 };
	const uint32_t liar[] = { 1, 4000 };

	assert_int_equal(send(p.theirs.sock_fd, "ab", 2, 0), 2);
	assert_int_equal(step_next(&p.ours, &msg, &err), -EPROTO);
	assert_int_equal(send(p.theirs.sock_fd, liar, sizeof(liar), 0), sizeof(liar));
	assert_int_equal(step_next(&p.ours, &msg, &err), -EPROTO);
	close_pair(&p);
}

static void a_message_that_is_too_long_is_never_sent(void **state)
{
	(void)state;
	static const uint8_t big[STEP_DATA_MAX + 1];
	struct tcp_proxy p = open_pair(1000);
	struct cj_error err = { 0 };

	assert_int_equal(step_tell(&p.theirs, 1, big, sizeof(big), NULL, 0, &err), -EMSGSIZE);
	close_pair(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_step_arrives_with_its_data_and_descriptors),
		cmocka_unit_test(a_step_without_content_is_awaited_and_its_descriptors_are_closed),
		cmocka_unit_test(a_closed_link_is_a_failure_that_names_the_awaited_step),
		cmocka_unit_test(the_end_of_a_link_is_awaited),
		cmocka_unit_test(a_message_is_not_the_end_of_a_link),
		cmocka_unit_test(a_late_peer_is_a_failure),
		cmocka_unit_test(an_unexpected_step_is_refused_and_its_descriptors_are_closed),
		cmocka_unit_test(the_peers_failure_becomes_our_own),
		cmocka_unit_test(the_error_of_an_ended_peer_replaces_epipe),
		cmocka_unit_test(the_peers_error_arrives_though_it_read_nothing),
		cmocka_unit_test(the_peers_error_arrives_after_steps_that_were_not_read),
		cmocka_unit_test(an_error_without_an_end_or_a_code_is_made_safe),
		cmocka_unit_test(a_message_that_is_too_short_or_lies_about_its_size_is_refused),
		cmocka_unit_test(a_message_that_is_too_long_is_never_sent),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
