/* SPDX-License-Identifier: Apache-2.0 */
/* Messages between the server and the keeper of a session: each arrives whole, with its own
 * descriptors, and nobody waits for the other. */
#include "runtime/service/keeper/keeper_channel.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "netns/address/allowlist.h"
#include "runtime/base/files/fd.h"
#include "runtime/base/scope.h"

struct channel {
	struct worker keeper; /* the server's end */
	int far_fd;
};

static struct channel opened(void)
{
	int ends[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	return (struct channel){ { .sock_fd = ends[0], .control_fd = -1 }, ends[1] };
}

static void close_channel(struct channel *c)
{
	worker_close(&c->keeper);
	cj_close(&c->far_fd);
}

static struct keeper_request received(const struct channel *c)
{
	struct keeper_request r = KEEPER_REQUEST_NULL;
	struct cj_error err = { 0 };

	if (keeper_receive(c->far_fd, &r, &err) != 1)
		fail_msg("no request: %s", err.msg);
	return r;
}

static void a_worker_arrives_with_its_own_descriptors(void **state)
{
	(void)state;
	struct channel c = opened();
	struct worker exec = WORKER_NULL, file = WORKER_NULL;
	struct cj_error err = { 0 };
	int stdin_fd = -1;
	char byte = 0;

	assert_int_equal(
	    keeper_send_worker(&c.keeper, KEEPER_WORKER_EXEC, "build", &exec, &stdin_fd, &err), 0);
	assert_int_equal(keeper_send_worker(&c.keeper, KEEPER_WORKER_FILE, "", &file, NULL, &err),
			 0);

	struct keeper_request first = received(&c), second = received(&c);
	assert_int_equal(first.kind, KEEPER_WORKER_EXEC);
	assert_string_equal(first.id, "build");
	assert_int_equal(second.kind, KEEPER_WORKER_FILE);
	assert_string_equal(second.id, "");
	assert_true(second.stdin_fd < 0);

	assert_int_equal(write(stdin_fd, "i", 1), 1);
	assert_int_equal(read(first.stdin_fd, &byte, 1), 1);
	assert_int_equal(byte, 'i');
	assert_int_equal(write(second.sock_fd, "s", 1), 1);
	assert_int_equal(read(file.sock_fd, &byte, 1), 1);
	assert_int_equal(byte, 's');
	keeper_request_fini(&first);
	keeper_request_fini(&second);
	assert_int_equal(read(exec.sock_fd, &byte, 1), 0); /* its far end is nowhere else */
	cj_close(&stdin_fd);
	worker_close(&exec);
	worker_close(&file);
	close_channel(&c);
}

static void a_signal_arrives_with_the_id_of_its_exec(void **state)
{
	(void)state;
	struct channel c = opened();
	struct cj_error err = { 0 };

	assert_int_equal(keeper_send_signal(&c.keeper, "a", SIGINT, &err), 0);
	assert_int_equal(keeper_send_signal(&c.keeper, "b", SIGTERM, &err), 0);
	struct keeper_request r = received(&c);
	assert_int_equal(r.kind, KEEPER_SIGNAL);
	assert_string_equal(r.id, "a");
	assert_int_equal(r.signo, SIGINT);
	r = received(&c);
	assert_string_equal(r.id, "b");
	close_channel(&c);
}

static void nothing_to_read_is_not_the_end(void **state)
{
	(void)state;
	struct channel c = opened();
	struct keeper_request r = KEEPER_REQUEST_NULL;
	struct cj_error err = { 0 };

	assert_int_equal(keeper_receive(c.far_fd, &r, &err), 0);
	worker_close(&c.keeper);
	assert_int_equal(keeper_receive(c.far_fd, &r, &err), -EPIPE);
	close_channel(&c);
}

/* The server is trusted; a fault of it must not become another one here. */
static void a_message_of_another_shape_is_refused(void **state)
{
	(void)state;
	struct keeper_request r = KEEPER_REQUEST_NULL;
	struct cj_error err = { 0 };

	for (int i = 0; i < 2; i++) {
		struct channel c = opened();
		char noise[256];
		memset(noise, i == 0 ? 0x7f : 0, sizeof(noise));
		assert_int_equal(send(c.keeper.sock_fd, noise, i == 0 ? sizeof(noise) : 3, 0),
				 i == 0 ? (int)sizeof(noise) : 3);
		assert_int_equal(keeper_receive(c.far_fd, &r, &err), -EPROTO);
		close_channel(&c);
	}
}

static void the_server_does_not_wait_for_a_keeper_that_does_not_read(void **state)
{
	(void)state;
	struct channel c = opened();
	struct cj_error err = { 0 };
	int rc = 0, sent = 0;

	while ((rc = keeper_send_signal(&c.keeper, "x", SIGINT, &err)) == 0)
		sent++;
	assert_int_equal(rc, -EAGAIN);
	for (int i = 0; i < sent; i++) { /* each of them is whole */
		struct keeper_request r = received(&c);
		assert_string_equal(r.id, "x");
	}
	cj_close(&c.far_fd);
	assert_int_equal(keeper_send_signal(&c.keeper, "x", SIGINT, &err), -EPIPE);
	close_channel(&c);
}

static void an_id_that_does_not_fit_is_refused(void **state)
{
	(void)state;
	struct channel c = opened();
	struct worker w = WORKER_NULL;
	struct cj_error err = { 0 };
	char id[PLAN_ID_MAX + 1];

	memset(id, 'a', PLAN_ID_MAX);
	id[PLAN_ID_MAX] = '\0';
	assert_int_equal(keeper_send_signal(&c.keeper, id, SIGINT, &err), -EINVAL);
	assert_int_equal(keeper_send_worker(&c.keeper, KEEPER_WORKER_EXEC, id, &w, NULL, &err),
			 -EINVAL);
	assert_true(w.sock_fd < 0);
	close_channel(&c);
}

/* --- the network ------------------------------------------------------------------ */

static void send_with(const struct channel *c, uint32_t kind, size_t nfds)
{
	const struct keeper_request request = { .kind = kind };
	int fds[2] = { c->far_fd, c->far_fd };
	struct iovec part = { (void *)&request, offsetof(struct keeper_request, sock_fd) };
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(fds))];
	} control = { 0 };
	struct msghdr m = { .msg_iov = &part, .msg_iovlen = 1 };

	if (nfds > 0) {
		m.msg_control = &control;
		m.msg_controllen = CMSG_SPACE(nfds * sizeof(int));
		struct cmsghdr *h = CMSG_FIRSTHDR(&m);
		h->cmsg_level = SOL_SOCKET;
		h->cmsg_type = SCM_RIGHTS;
		h->cmsg_len = CMSG_LEN(nfds * sizeof(int));
		memcpy(CMSG_DATA(h), fds, nfds * sizeof(int));
	}
	assert_int_equal(sendmsg(c->keeper.sock_fd, &m, MSG_NOSIGNAL), part.iov_len);
}

static void rules_arrive_as_they_were_sent(void **state)
{
	static const char *items[ALLOWLIST_MAX] = { "*.example.com:443", "8.8.8.8", "\"\n" };
	static char longest[254 + sizeof(":65535")];
	static const size_t counts[] = { 0, 1, 3, ALLOWLIST_MAX };
	(void)state;
	memset(longest, 'a', sizeof(longest) - 1);
	for (size_t i = 3; i < ALLOWLIST_MAX; i++)
		items[i] = longest;
	for (size_t i = 0; i < 8; i++) {
		const struct network_lists sent = {
			.is_list = i % 2,
			.allow = { .items = items, .count = counts[i / 2] },
			.deny = { .items = items, .count = counts[3 - i / 2] },
		};
		struct channel c = opened();
		auto_arena struct arena arena = { 0 };
		struct network_lists got;
		struct cj_error err = { 0 };
		assert_int_equal(keeper_send_network(&c.keeper, &sent, &err), 0);
		struct keeper_request r = received(&c);
		assert_int_equal(r.kind, KEEPER_NETWORK);
		assert_true(r.sock_fd >= 0 && r.control_fd < 0 && r.stdin_fd < 0);
		assert_int_equal(keeper_read_network(&r, &arena, &got, &err), 0);
		assert_int_equal(got.is_list, sent.is_list);
		assert_int_equal(got.allow.count, sent.allow.count);
		assert_int_equal(got.deny.count, sent.deny.count);
		for (size_t j = 0; j < got.allow.count; j++)
			assert_string_equal(got.allow.items[j], items[j]);
		for (size_t j = 0; j < got.deny.count; j++)
			assert_string_equal(got.deny.items[j], items[j]);
		keeper_request_fini(&r);
		close_channel(&c);
	}
}

static void rules_that_can_not_be_read_open_nothing(void **state)
{
	static const char *const bad[] = { "",
					   "{",
					   "[",
					   "{\"list\":true,\"allow\":[1]}",
					   "{\"list\":false,\"allow\":[null]}",
					   "{\"list\":false,\"deny\":[1]}" };
	auto_arena struct arena arena = { 0 };
	struct network_lists got;
	struct cj_error err = { 0 };
	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		auto_fd int fd = fd_memfd_sealed("network", bad[i], strlen(bad[i]), &err);
		const struct keeper_request r = { .kind = KEEPER_NETWORK, .sock_fd = fd };
		assert_true(keeper_read_network(&r, &arena, &got, &err) < 0);
	}
	auto_fd int fd = fd_memfd_sealed("network", "{}", 2, &err);
	const struct keeper_request r = { .kind = KEEPER_NETWORK, .sock_fd = fd };
	assert_int_equal(keeper_read_network(&r, &arena, &got, &err), 0);
	assert_true(got.is_list && got.allow.count == 0);
}

static void rules_come_with_one_descriptor(void **state)
{
	struct keeper_request r = KEEPER_REQUEST_NULL;
	struct cj_error err = { 0 };
	(void)state;
	for (size_t nfds = 0; nfds <= 2; nfds++) {
		struct channel c = opened();
		send_with(&c, KEEPER_NETWORK, nfds);
		assert_int_equal(keeper_receive(c.far_fd, &r, &err), nfds == 1 ? 1 : -EPROTO);
		if (nfds == 1)
			keeper_request_fini(&r);
		close_channel(&c);
	}
}

static void the_answer_says_whose_mistake_it_was(void **state)
{
	static const struct {
		int code;
		bool is_callers_own;
	} rows[] = { { 0, false }, { EINVAL, true }, { EOPNOTSUPP, true }, { ENOBUFS, false } };
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct channel c = opened();
		struct cj_error why = { .code = rows[i].code }, err = { 0 };
		struct keeper_line got;
		char text[4096];
		if (why.code) {
			(void)snprintf(why.msg, sizeof(why.msg), "it is \"closed\"");
			(void)snprintf(why.hint, sizeof(why.hint), "open it");
		}
		assert_int_equal(keeper_line_send_network(c.far_fd, &why, &err), 0);
		ssize_t size = read(c.keeper.sock_fd, text, sizeof(text));
		assert_true(size > 1);
		keeper_line_read(text, (size_t)size - 1, &got);
		assert_int_equal(got.type, KEEPER_LINE_NETWORK);
		assert_string_equal(got.message, why.code ? "it is \"closed\" (open it)" : "");
		assert_int_equal(got.is_callers_own, rows[i].is_callers_own);
		close_channel(&c);
	}
}

/* --- lines ------------------------------------------------------------------------ */

static struct keeper_line through(const struct keeper_line *sent)
{
	struct channel c = opened();
	struct cj_error err = { 0 };
	struct keeper_line got;
	char text[4096];

	assert_int_equal(keeper_line_send(c.far_fd, sent, &err), 0);
	ssize_t size = read(c.keeper.sock_fd, text, sizeof(text));
	assert_true(size > 1);
	assert_int_equal(text[size - 1], '\n');
	keeper_line_read(text, (size_t)size - 1, &got);
	close_channel(&c);
	return got;
}

static void each_line_arrives_as_it_was_sent(void **state)
{
	(void)state;
	struct keeper_line line = { .type = KEEPER_LINE_LIVES, .is_isolated = true };

	assert_true(through(&line).is_isolated);
	line = (struct keeper_line){ .type = KEEPER_LINE_STATUS,
				     .cpu_ms = 1,
				     .memory_bytes = UINT64_MAX,
				     .pids = 3,
				     .denied_syscalls = 4,
				     .denied_packets = 5,
				     .used_bytes = 6 };
	struct keeper_line got = through(&line);
	assert_memory_equal(&got, &line, sizeof(line));
	for (enum session_end r = SESSION_CLOSED; r < SESSION_END_COUNT; r++) {
		line = (struct keeper_line){ .type = KEEPER_LINE_ENDED,
					     .reason = r,
					     .stage = "plan",
					     .message = "no '\x7f' \"way\"",
					     .is_callers_own = true };
		got = through(&line);
		assert_int_equal(got.type, KEEPER_LINE_ENDED);
		assert_int_equal(got.reason, r);
		assert_string_equal(got.stage, line.stage);
		assert_string_equal(got.message, line.message);
		assert_true(got.is_callers_own);
	}
}

static void another_line_has_no_type(void **state)
{
	(void)state;
	static const char *const others[] = {
		"",
		"{}",
		"[]",
		"{\"type\":\"ready\"}",
		"{\"type\":\"session\"}",
		"{\"type\":\"session\",\"isolated\":1}",
		"{\"type\":\"session\",\"isolated\":true,\"more\":1}",
		("{\"type\":\"ended\",\"reason\":\"bored\",\"stage\":\"\",\"message\":\"\","
		 "\"is_callers_own\":false}"),
		("{\"type\":\"ended\",\"reason\":\"lives\",\"stage\":\"\",\"message\":\"\","
		 "\"is_callers_own\":false}"),
		("{\"type\":\"ended\",\"reason\":\"lease\",\"stage\":\"\",\"message\":\"\","
		 "\"is_callers_own\":false}"),
	};

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		struct keeper_line line;
		keeper_line_read(others[i], strlen(others[i]), &line);
		assert_int_equal(line.type, KEEPER_LINE_NONE);
	}
}

static void the_keeper_does_not_wait_for_a_server_that_does_not_read(void **state)
{
	(void)state;
	struct channel c = opened();
	const struct keeper_line line = { .type = KEEPER_LINE_STATUS };
	struct cj_error err = { 0 };
	struct keeper_line got;
	char text[4096], *end;
	int rc = 0;

	fd_set_nonblocking(c.far_fd);
	while ((rc = keeper_line_send(c.far_fd, &line, &err)) == 0)
		;
	assert_int_equal(rc, -EAGAIN);
	cj_close(&c.far_fd);
	/* The last one that was sent is whole. */
	size_t last = 0;
	ssize_t size;
	while ((size = read(c.keeper.sock_fd, text, sizeof(text))) > 0)
		last = (size_t)size;
	assert_int_equal(text[last - 1], '\n');
	text[last - 1] = '\0';
	end = strrchr(text, '\n');
	end = end ? end + 1 : text;
	keeper_line_read(end, strlen(end), &got);
	assert_int_equal(got.type, KEEPER_LINE_STATUS);
	close_channel(&c);
}

/* --- signals ---------------------------------------------------------------------- */

static uint64_t join(int first, int second)
{
	return keeper_signals_join(keeper_signal_bit(first), keeper_signal_bit(second));
}

static void of_stop_and_cont_the_last_one_counts(void **state)
{
	(void)state;
	assert_int_equal(join(SIGSTOP, SIGCONT), keeper_signal_bit(SIGCONT));
	assert_int_equal(join(SIGCONT, SIGSTOP), keeper_signal_bit(SIGSTOP));
	assert_int_equal(join(SIGTERM, SIGCONT),
			 keeper_signal_bit(SIGTERM) | keeper_signal_bit(SIGCONT));
	assert_int_equal(join(SIGSTOP, SIGKILL),
			 keeper_signal_bit(SIGSTOP) | keeper_signal_bit(SIGKILL));
}

/* --- files ------------------------------------------------------------------------ */

static void a_job_arrives_as_it_was_sent(void **state)
{
	(void)state;
	for (enum file_op op = FILE_GET; op < FILE_OP_COUNT; op++) {
		auto_arena struct arena arena = { 0 };
		auto_free char *text = NULL;
		size_t size = 0;
		struct cj_error err = { 0 };
		struct file_job got = { 0 };
		const struct file_job sent = { .op = op,
					       .path = "/box/\"a\" \xc3\xa9",
					       .to = "/tmp/\n",
					       .max_bytes = UINT64_MAX,
					       .offset = 7,
					       .depth = 3,
					       .is_executable = true };
		assert_int_equal(file_job_write(&sent, &text, &size, &err), 0);
		assert_int_equal(file_job_read((struct blob){ text, size }, &arena, &got, &err), 0);
		assert_int_equal(got.op, op);
		assert_string_equal(got.path, sent.path);
		assert_true(got.max_bytes == UINT64_MAX);
		assert_true(got.is_executable);
		assert_string_equal(got.to, sent.to);
		assert_int_equal(got.depth, 3);
		assert_int_equal(got.offset, 7);
	}
}

static void an_invalid_job_is_refused(void **state)
{
	(void)state;
	static const char *const bodies[] = {
		"",
		"{}",
		"{}\n",
		"[]\n",
		("{\"op\":\"run\",\"path\":\"/box/a\",\"max_bytes\":0,\"part\":false,"
		 "\"offset\":0,\"executable\":false}\n"),
		"{\"op\":\"get\",\"max_bytes\":0,\"part\":false,\"offset\":0,\"executable\":false}\n",
	};

	for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
		auto_arena struct arena arena = { 0 };
		struct file_job got = { 0 };
		struct cj_error err = { 0 };
		const struct blob body = { bodies[i], strlen(bodies[i]) };
		assert_int_equal(file_job_read(body, &arena, &got, &err), -EINVAL);
		assert_true(err.msg[0] != '\0');
	}
}

static int read_answer(const char *line, struct arena *a, struct file_answer *out)
{
	struct cj_error err = { 0 };
	return file_answer_read(line, strlen(line), a, out, &err);
}

static void an_answer_has_a_result_or_an_error(void **state)
{
	(void)state;
	auto_arena struct arena a = { 0 };
	struct file_answer got = { 0 };
	uint64_t bytes = 0;

	assert_int_equal(read_answer("{\"type\":\"file\",\"result\":{\"bytes\":3}}", &a, &got), 0);
	assert_true(got.is_ok);
	assert_true(json_get_u64(got.result, "bytes", &bytes));
	assert_int_equal(bytes, 3);
	for (enum file_error e = FILE_NOT_FOUND; e < FILE_ERROR_COUNT; e++) {
		char line[256];
		(void)snprintf(line, sizeof(line),
			       "{\"type\":\"file\",\"error\":{\"code\":\"%s\",\"message\":\"m\"}}",
			       file_error_names[e]);
		assert_int_equal(read_answer(line, &a, &got), 0);
		assert_false(got.is_ok);
		assert_int_equal(got.error, e);
		assert_string_equal(got.message, "m");
	}
	assert_int_equal(read_answer("{\"type\":\"file\"}", &a, &got), 0);
	assert_false(got.is_ok);
	assert_int_equal(got.error, FILE_FAILED);
	assert_true(read_answer("{\"type\":\"result\",\"result\":{}}", &a, &got) < 0);
	assert_true(read_answer("", &a, &got) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_worker_arrives_with_its_own_descriptors),
		cmocka_unit_test(a_signal_arrives_with_the_id_of_its_exec),
		cmocka_unit_test(nothing_to_read_is_not_the_end),
		cmocka_unit_test(a_message_of_another_shape_is_refused),
		cmocka_unit_test(the_server_does_not_wait_for_a_keeper_that_does_not_read),
		cmocka_unit_test(an_id_that_does_not_fit_is_refused),
		cmocka_unit_test(rules_arrive_as_they_were_sent),
		cmocka_unit_test(rules_that_can_not_be_read_open_nothing),
		cmocka_unit_test(rules_come_with_one_descriptor),
		cmocka_unit_test(the_answer_says_whose_mistake_it_was),
		cmocka_unit_test(each_line_arrives_as_it_was_sent),
		cmocka_unit_test(another_line_has_no_type),
		cmocka_unit_test(the_keeper_does_not_wait_for_a_server_that_does_not_read),
		cmocka_unit_test(of_stop_and_cont_the_last_one_counts),
		cmocka_unit_test(a_job_arrives_as_it_was_sent),
		cmocka_unit_test(an_invalid_job_is_refused),
		cmocka_unit_test(an_answer_has_a_result_or_an_error),
	};

	(void)signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
