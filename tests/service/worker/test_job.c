/* SPDX-License-Identifier: Apache-2.0 */
/* What server and worker say to each other arrives as it was, or is refused. */
#include "runtime/service/worker/job.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "runtime/base/files/fd.h"
#include "runtime/base/json/json.h"
#include "runtime/base/scope.h"

static struct job some_job(void)
{
	return (struct job){
		.kind = JOB_EXEC,
		.id = "01J0000000000000000000000",
		.trace = { "req-1", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "" },
		.wants_events = true,
		.profile_sha256 = "ab12",
		.clamp = { .ceilings = { UINT64_MAX, 2, 0, 1500, 5, 6 }, .no_network = true },
		.session_tools = true,
		.sent_us = 12345678901234,
		.body = (char *)"{\"code\":\"x\"}\n\0after\n",
		.body_size = 20,
	};
}

static void assert_same_job(const struct job *a, const struct job *b)
{
	assert_int_equal(a->kind, b->kind);
	assert_string_equal(a->id, b->id);
	assert_string_equal(a->trace.request_id, b->trace.request_id);
	assert_string_equal(a->trace.traceparent, b->trace.traceparent);
	assert_int_equal(a->wants_events, b->wants_events);
	assert_int_equal(a->session_tools, b->session_tools);
	assert_int_equal(a->may_name_host_paths, b->may_name_host_paths);
	assert_string_equal(a->profile_sha256, b->profile_sha256);
	assert_memory_equal(&a->clamp.ceilings, &b->clamp.ceilings, sizeof(struct ceilings));
	assert_int_equal(a->clamp.no_network, b->clamp.no_network);
	assert_true(a->sent_us == b->sent_us);
	assert_int_equal(a->body_size, b->body_size);
	assert_memory_equal(a->body, b->body, a->body_size);
}

static void a_job_arrives_as_it_was_sent(void **state)
{
	(void)state;
	const struct job sent = some_job();
	struct job got = { 0 };
	struct cj_error err = { 0 };
	auto_arena struct arena arena = { 0 };

	auto_fd int memfd = job_write(&sent, &err);
	assert_true(memfd >= 0);
	assert_int_equal(job_read(memfd, &arena, &got, &err), 0);
	assert_same_job(&got, &sent);
}

static void a_body_may_be_empty_or_large(void **state)
{
	(void)state;
	enum { LARGE = 9 << 20 };
	struct job sent = some_job(), got = { 0 };
	struct cj_error err = { 0 };
	auto_arena struct arena arena = { 0 };
	auto_free char *body = malloc(LARGE);

	assert_non_null(body);
	for (size_t i = 0; i < LARGE; i++)
		body[i] = (char)i;
	sent.body = body;
	for (size_t size = 0; size <= LARGE; size += LARGE) {
		sent.body_size = size;
		auto_fd int memfd = job_write(&sent, &err);
		assert_true(memfd >= 0);
		assert_int_equal(job_read(memfd, &arena, &got, &err), 0);
		assert_same_job(&got, &sent);
	}
}

static int sealed(const char *text)
{
	struct cj_error err = { 0 };
	int fd = fd_memfd_sealed("test", text, strlen(text), &err);
	assert_true(fd >= 0);
	return fd;
}

static void assert_refused(int fd, const char *why)
{
	struct job got = { 0 };
	struct cj_error err = { 0 };
	auto_arena struct arena arena = { 0 };

	assert_true(job_read(fd, &arena, &got, &err) < 0);
	if (!strstr(err.msg, why))
		fail_msg("'%s' does not say '%s'", err.msg, why);
	close(fd);
}

static void an_invalid_job_is_refused(void **state)
{
	(void)state;
	char pipe_like[4096];
	memset(pipe_like, 'x', sizeof(pipe_like) - 1);
	pipe_like[sizeof(pipe_like) - 1] = '\0';

	assert_refused(sealed(""), "no header");
	assert_refused(sealed(pipe_like), "no header");
	assert_refused(sealed("[]\n"), "the job must be an object");
	assert_refused(sealed("{}\n"), "id is missing");
	assert_refused(sealed("{\n"), "job:1:");
	assert_refused(open("/dev/null", O_RDONLY | O_CLOEXEC), "check the memfd of the job");

	int open_fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	assert_int_equal(write(open_fd, "{}\n", 3), 3);
	assert_refused(open_fd, "is not sealed");
}

/* The header of some_job() with one piece of it replaced. */
static int altered(const char *old, const char *new)
{
	const struct job job = some_job();
	struct cj_error err = { 0 };
	char text[1024] = "", other[2048];
	auto_fd int memfd = job_write(&job, &err);
	assert_true(pread(memfd, text, sizeof(text) - 1, 0) > 0);
	const char *at = strstr(text, old);
	assert_non_null(at);
	(void)snprintf(other, sizeof(other), "%.*s%s%s", (int)(at - text), text, new,
		       at + strlen(old));
	return sealed(other);
}

static void each_member_of_a_header_is_checked(void **state)
{
	(void)state;
	assert_refused(altered("\"timeout_ms\":1500", "\"timeout_ms\":-1"), "timeout_ms: '-1'");
	assert_refused(altered("\"timeout_ms\":1500", "\"timeout_ms\":\"1\""),
		       "timeout_ms must be a number, not a string");
	assert_refused(altered("18446744073709551615", "18446744073709551616"),
		       "memory_bytes: '18446744073709551616' is too large");
	assert_refused(altered("\"pids\":0,", ""), "pids is missing");
	assert_refused(altered("\"pids\":0,", "\"pids\":0,\"more\":1,"), "unknown key 'more'");
	assert_refused(altered("\"pids\":0,", "\"pids\":0,\"pids\":0,"), "job:1:");
	assert_refused(altered("\"wants_events\":true", "\"wants_events\":1"),
		       "wants_events must be true or false");
	assert_refused(altered("\"kind\":\"exec\"", "\"kind\":\"fork\""), "kind: ");
	assert_refused(altered("\"id\":\"01J", "\"id\":\"0000000000000000001J"), "job:1:7: id: '");
}

/* --- summaries -------------------------------------------------------------------------- */

static struct summary some_summary(void)
{
	struct summary s = {
		.totals.status = STATUS_SETUP_ERROR,
		.totals.exit_code = -1,
		.error_stage = "cgroup",
		.error_message = "make '/x\ty': \"no\"",
		.is_callers_own = true,
		.code_sha256 = "ab12",
		.totals.usage = { .wall_ms = 1,
				  .cpu_user_ms = 2,
				  .has_pids_peak = true,
				  .pids_peak = 3 },
		.has_network = true,
		.network_state = NETWORK_FAILED,
		.setup_us = 4,
		.totals.denied_packets = 5,
		.totals.denied_syscalls = 6,
		.totals.stdout_bytes = UINT64_MAX,
		.totals.artifacts = 7,
		.totals.limits_hit = 1 << LIMIT_WALL,
	};
	return s;
}

static const struct json_node *line_of(const struct summary *s, struct arena *a)
{
	struct cj_error err = { 0 };
	auto_json_writer struct json_writer *w = json_writer_create(false);
	struct blob text = { 0 };
	const struct json_node *root = NULL;

	summary_write(w, s);
	assert_int_equal(json_writer_take(w, &text, &err), 0);
	assert_null(memchr(text.bytes, '\n', text.size));
	assert_int_equal(json_parse("line", text.bytes, text.size, a, &root, &err), 0);
	return root;
}

static void a_summary_arrives_as_it_was_sent(void **state)
{
	(void)state;
	struct cj_error err = { 0 };
	auto_arena struct arena arena = { 0 };

	for (unsigned i = 0; i < STATUS_COUNT; i++) {
		struct summary sent = some_summary(),
			       got = { .totals.usage.has_memory_peak = true };
		sent.totals.status = (enum status)i;
		sent.totals.exit_code = (int)i - 1;
		sent.totals.signal = (int)i;
		assert_int_equal(summary_read(line_of(&sent, &arena), &got, &err), 0);
		assert_int_equal(got.totals.status, sent.totals.status);
		assert_int_equal(got.totals.exit_code, sent.totals.exit_code);
		assert_int_equal(got.totals.signal, sent.totals.signal);
		assert_string_equal(got.error_stage, sent.error_stage);
		assert_string_equal(got.error_message, sent.error_message);
		assert_true(got.is_callers_own);
		assert_string_equal(got.profile_sha256, "");
		assert_string_equal(got.code_sha256, sent.code_sha256);
		assert_memory_equal(&got.totals.usage, &sent.totals.usage,
				    offsetof(struct usage, has_pids_peak));
		assert_true(got.totals.usage.has_pids_peak && !got.totals.usage.has_memory_peak);
		assert_true(got.has_network && got.network_state == NETWORK_FAILED);
		assert_true(got.setup_us == 4 && got.totals.denied_packets == 5);
		assert_true(got.totals.denied_syscalls == 6 && got.totals.artifacts == 7);
		assert_true(got.totals.limits_hit == 1 << LIMIT_WALL);
		assert_true(got.totals.stdout_bytes == UINT64_MAX && got.totals.stderr_bytes == 0);
	}
}

/* A message that was cut inside a character grows when that is replaced. */
static void a_long_message_is_cut_to_what_fits(void **state)
{
	(void)state;
	struct summary sent = some_summary(), got = { 0 };
	struct cj_error err = { 0 };
	auto_arena struct arena arena = { 0 };

	memset(sent.error_message, 'a', sizeof(sent.error_message) - 1);
	sent.error_message[sizeof(sent.error_message) - 2] = (char)0xc3;
	assert_int_equal(summary_read(line_of(&sent, &arena), &got, &err), 0);
	assert_int_equal(strlen(got.error_message), sizeof(got.error_message) - 2);
}

static void a_line_that_is_not_a_summary_is_refused(void **state)
{
	(void)state;
	static const char *const lines[] = {
		"[]", "{}", "{\"type\":1}", "{\"type\":\"result\"}", "{\"type\":\"summary\"}",
	};
	auto_arena struct arena arena = { 0 };

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		struct summary got = { 0 };
		struct cj_error err = { 0 };
		const struct json_node *root = NULL;
		assert_int_equal(
		    json_parse("line", lines[i], strlen(lines[i]), &arena, &root, &err), 0);
		assert_true(summary_read(root, &got, &err) < 0);
		assert_non_null(strstr(err.msg, "summary:1:"));
	}
}

/* --- over a socket ----------------------------------------------------------------------- */

static void open_pair(int out_ends[2])
{
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, out_ends), 0);
}

static void a_memfd_crosses_a_socket(void **state)
{
	(void)state;
	int ends[2];
	struct job got = { 0 };
	const struct job sent = some_job();
	struct cj_error err = { 0 };
	auto_arena struct arena arena = { 0 };

	open_pair(ends);
	auto_fd int memfd = job_write(&sent, &err);
	assert_int_equal(job_send(ends[0], memfd, 0, &err), 0);
	auto_fd int far_fd = job_receive(ends[1], NULL, &err);
	assert_true(far_fd >= 0);
	assert_true(fcntl(far_fd, F_GETFD) & FD_CLOEXEC);
	assert_int_equal(job_read(far_fd, &arena, &got, &err), 0);
	assert_same_job(&got, &sent);

	close(ends[1]);
	assert_int_equal(job_send(ends[0], memfd, 0, &err), -EPIPE); /* and no signal */
	close(ends[0]);
}

static void a_job_without_a_descriptor_is_refused(void **state)
{
	(void)state;
	int ends[2];
	struct cj_error err = { 0 };

	open_pair(ends);
	assert_int_equal(write(ends[0], "x", 1), 1);
	assert_int_equal(job_receive(ends[1], NULL, &err), -EINVAL);
	close(ends[0]);
	assert_int_equal(job_receive(ends[1], NULL, &err), -EPIPE);
	close(ends[1]);
}

static void the_first_line_says_ready_or_why_not(void **state)
{
	(void)state;
	int ends[2];
	char text[1024] = "";
	struct cj_error err = { 0 }, why = { 0 };

	open_pair(ends);
	(void)!cj_fail(&why, ENOENT, "open '%s'", "x\n");
	cj_stage(&why, "profile");
	assert_int_equal(ready_tell(ends[0], true, NULL, &err), 0);
	assert_int_equal(ready_tell(ends[0], false, &why, &err), 0);
	unready_tell(ends[0], &why);
	cj_hint(&why, "make it");
	unready_tell(ends[0], &why);
	assert_true(read(ends[1], text, sizeof(text) - 1) > 0);
	assert_string_equal(
	    text, "{\"type\":\"ready\",\"zygote\":true}\n"
		  "{\"type\":\"ready\",\"zygote\":false,\"stage\":\"profile\",\"message\":"
		  "\"open 'x\\n': No such file or directory\",\"hint\":null}\n"
		  "{\"type\":\"unready\",\"stage\":\"profile\",\"message\":"
		  "\"open 'x\\n': No such file or directory\",\"hint\":null}\n"
		  "{\"type\":\"unready\",\"stage\":\"profile\",\"message\":"
		  "\"open 'x\\n': No such file or directory\",\"hint\":\"make it\"}\n");
	close(ends[0]);
	close(ends[1]);
}

static void why_there_is_no_worker_or_zygote_is_read_with_its_hint(void **state)
{
	(void)state;
	static const struct {
		const char *line, *stage, *why;
	} rows[] = {
		{ "{\"type\":\"unready\",\"message\":\"no disk\",\"hint\":\"buy one\"}", "",
		  "no disk (buy one)" },
		{ "{\"type\":\"unready\",\"stage\":\"s\",\"message\":\"no disk\",\"hint\":null}",
		  "s", "no disk" },
		{ "{\"type\":\"unready\",\"message\":1}", "", "it gave no reason" },
		{ "{\"type\":\"ready\"}", "", "" },
		{ "{\"type\":\"ready\",\"zygote\":true}", "", "" },
		{ "{\"type\":\"ready\",\"zygote\":false}", "", "" },
		{ "{\"type\":\"ready\",\"stage\":\"zygote\",\"message\":\"gone\"}", "zygote",
		  "gone" },
		{ "[]", "", "it gave no reason" },
		{ "{\"type\":\"unready\"", "", "it gave no reason" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct readiness_line said;
		ready_read(rows[i].line, strlen(rows[i].line), &said);
		assert_string_equal(said.why, rows[i].why);
		assert_string_equal(said.stage, rows[i].stage);
		assert_int_equal(said.is_of_zygote, strstr(rows[i].line, "true") != NULL);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_job_arrives_as_it_was_sent),
		cmocka_unit_test(a_body_may_be_empty_or_large),
		cmocka_unit_test(an_invalid_job_is_refused),
		cmocka_unit_test(each_member_of_a_header_is_checked),
		cmocka_unit_test(a_summary_arrives_as_it_was_sent),
		cmocka_unit_test(a_long_message_is_cut_to_what_fits),
		cmocka_unit_test(a_line_that_is_not_a_summary_is_refused),
		cmocka_unit_test(a_memfd_crosses_a_socket),
		cmocka_unit_test(a_job_without_a_descriptor_is_refused),
		cmocka_unit_test(the_first_line_says_ready_or_why_not),
		cmocka_unit_test(why_there_is_no_worker_or_zygote_is_read_with_its_hint),
	};
	return cmocka_run_group_tests_name("job", tests, NULL, NULL);
}
