/* SPDX-License-Identifier: Apache-2.0 */
/* A request to a zygote arrives as it was sent; no other message is taken for one. */
#include "runtime/jail/zygote/zygote_protocol.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <fcntl.h>

#include "runtime/base/scope.h"

static const struct sock_filter insns[] = { { 1, 2, 3, 4 }, { 5, 6, 7, 8 } };

/* Descriptors of this process, each with another meaning. */
static struct zygote_job job_with(bool has_optional)
{
	struct zygote_job job = {
		.request = { .uid = 1000, .gid = 1001, .ninsns = 2, .limits = { .pids = 7 } },
		.insns = insns,
		.workdir = "/box",
		.fds = { 0, 1, 2, 2, 1, 0 },
	};
	for (size_t i = 0; i < ZYGOTE_NAMESPACES; i++)
		job.fds[ZYGOTE_FD_NAMESPACES + i] = (int)i % 3;
	job.fds[ZYGOTE_FD_RULESET] = has_optional ? 0 : -1;
	job.fds[ZYGOTE_FD_CGROUP] = has_optional ? 1 : -1;
	return job;
}

/* What the other end of a socket has received. */
static void transfer(const struct zygote_job *job, struct step_msg *out)
{
	int ends[2];
	struct cj_error err = { 0 };
	assert_int_equal(step_pair(ends, 1000, &err), 0);
	const struct step_link from = { ends[0], "the test", zygote_step_names };
	const struct step_link to = { ends[1], "the test", zygote_step_names };
	assert_int_equal(zygote_request_send(&from, job, &err), 0);
	assert_int_equal(step_await(&to, ZYGOTE_REQUEST, out, &err), 0);
	close(ends[0]);
	close(ends[1]);
}

static void a_request_arrives_as_it_was_sent(void **state)
{
	(void)state;
	for (int has_optional = 0; has_optional < 2; has_optional++) {
		auto_step_msg struct step_msg msg = { 0 };
		struct zygote_job sent = job_with(has_optional), job;
		struct cj_error err = { 0 };
		transfer(&sent, &msg);
		assert_int_equal(zygote_request_read(&msg, &job, &err), 0);
		assert_int_equal(job.request.uid, 1000);
		assert_int_equal(job.request.gid, 1001);
		assert_int_equal(job.request.limits.pids, 7);
		assert_memory_equal(job.insns, insns, sizeof(insns));
		assert_string_equal(job.workdir, "/box");
		assert_int_equal(job.fds[ZYGOTE_FD_REPORT], msg.fds[0]);
		assert_int_equal(job.fds[ZYGOTE_FD_LINK], msg.fds[1]);
		assert_int_equal(job.fds[ZYGOTE_FD_STDERR], msg.fds[4]);
		assert_int_equal(job.fds[ZYGOTE_FD_CALLS], msg.fds[5]);
		assert_int_equal(job.fds[ZYGOTE_FD_NAMESPACES], msg.fds[6]);
		assert_int_equal(job.fds[ZYGOTE_FD_NAMESPACES + ZYGOTE_PROGRAM_USER], msg.fds[13]);
		assert_int_equal(job.fds[ZYGOTE_FD_RULESET], has_optional ? msg.fds[14] : -1);
		assert_int_equal(job.fds[ZYGOTE_FD_CGROUP], has_optional ? msg.fds[15] : -1);
	}
}

static void a_filter_that_is_too_long_is_not_sent(void **state)
{
	(void)state;
	static const struct sock_filter many[2000];
	struct zygote_job job = job_with(false);
	const struct step_link nowhere = { -1, "the test", zygote_step_names };
	struct cj_error err = { 0 };
	job.insns = many;
	for (job.request.ninsns = ZYGOTE_INSNS_MAX; job.request.ninsns <= 2000;
	     job.request.ninsns++)
		assert_int_equal(zygote_request_send(&nowhere, &job, &err), -EMSGSIZE);
}

static void refuse(struct step_msg *msg)
{
	struct zygote_job job;
	struct cj_error err = { 0 };
	assert_int_equal(zygote_request_read(msg, &job, &err), -EPROTO);
}

static void a_message_of_another_shape_is_refused(void **state)
{
	(void)state;
	auto_step_msg struct step_msg msg = { 0 };
	struct zygote_job sent = job_with(true);
	transfer(&sent, &msg);
	const size_t size = msg.size, nfds = msg.nfds;
	struct zygote_request request;
	memcpy(&request, msg.data, sizeof(request));

	for (msg.size = 0; msg.size < size; msg.size++)
		refuse(&msg); /* shorter; the string has no NUL */
	msg.size = size + 1;
	msg.data[size] = '\0';
	refuse(&msg); /* bytes behind the string */
	msg.size = size;
	for (msg.nfds = 0; msg.nfds < nfds; msg.nfds++)
		refuse(&msg);
	msg.nfds = nfds;
	msg.step = ZYGOTE_SEALED;
	refuse(&msg);
	msg.step = ZYGOTE_REQUEST;

	static const uint32_t counts[] = { 0, 3, 4, 1000, UINT32_MAX, 1u << 29 };
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		struct zygote_request other = request;
		other.ninsns = counts[i];
		memcpy(msg.data, &other, sizeof(other));
		refuse(&msg);
	}
	struct zygote_request other = request;
	other.has_cgroup = 0;
	memcpy(msg.data, &other, sizeof(other));
	refuse(&msg); /* one descriptor more than it says */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_request_arrives_as_it_was_sent),
		cmocka_unit_test(a_filter_that_is_too_long_is_not_sent),
		cmocka_unit_test(a_message_of_another_shape_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
