/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to a service, and whole answers: the other end is a thread of this test. */
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/socket.h>

#include "tests/temp_dir.h"
#include "runtime/front/client/http_answer.h"
#include "runtime/front/client/remote_link.h"
#include "runtime/run/report/remote_result.h"
#include "tests/patience.h"

/* --- URLs --------------------------------------------------------------------- */

static void other_bytes_than_unreserved_ones_are_escaped_in_a_url(void **state)
{
	(void)state;
	char url[REMOTE_URL_MAX] = "";
	struct cj_error err = { 0 };

	assert_int_equal(remote_url(url, "/v1/a-b._~9", &err), 0);
	assert_int_equal(remote_url(url, "/x y?z%\r\n\xc3\xa9", &err), 0);
	assert_string_equal(url, "/v1/a-b._~9/x%20y%3Fz%25%0D%0A%C3%A9");
}

static void a_url_that_does_not_fit_is_refused(void **state)
{
	(void)state;
	static char long_part[REMOTE_URL_MAX];
	char url[REMOTE_URL_MAX] = "/v1/";
	struct cj_error err = { 0 };

	memset(long_part, 'a', sizeof(long_part) - 1);
	assert_int_equal(remote_url(url, long_part, &err), -ENAMETOOLONG);
	assert_true(strlen(url) < sizeof(url));
}

static void the_longest_url_fits_into_a_head(void **state)
{
	(void)state;
	static char url[REMOTE_URL_MAX], head[REMOTE_HEAD_MAX];
	const struct remote_message m = { .method = "DELETE",
					  .path = url,
					  .accept = "application/octet-stream",
					  .type = "application/octet-stream",
					  .body.size = SIZE_MAX };

	memset(url, 'a', sizeof(url) - 1);
	assert_true(remote_link_write_head(&m, head) < sizeof(head));
}

static void the_head_has_the_type_of_the_body(void **state)
{
	(void)state;
	char head[REMOTE_HEAD_MAX];
	const struct remote_message raw = { .method = "PUT",
					    .path = "/p",
					    .accept = "a/b",
					    .type = "application/octet-stream",
					    .body.size = 3 };
	const struct remote_message json = { .method = "GET", .path = "/p", .accept = "a/b" };

	(void)remote_link_write_head(&raw, head);
	assert_int_equal(strncmp(head, "PUT /p HTTP/1.1\r\n", 17), 0);
	assert_non_null(
	    strstr(head, "Content-Type: application/octet-stream\r\nContent-Length: 3\r\n"));
	(void)remote_link_write_head(&json, head);
	assert_non_null(strstr(head, "Content-Type: application/json\r\nContent-Length: 0\r\n"));
}

/* --- answers ------------------------------------------------------------------ */

struct other {
	const char *answer;
	size_t size;
	int listen_fd;
	char path[256];
	pthread_t thread;
};

/* Reads up to the end of the head, answers, and closes. */
static void *serve(void *context)
{
	struct other *o = context;
	char buf[8192];
	size_t used = 0;
	int fd = accept(o->listen_fd, NULL, NULL);

	while (used < sizeof(buf) - 1) {
		ssize_t got = read(fd, buf + used, sizeof(buf) - 1 - used);
		if (got <= 0)
			break;
		used += (size_t)got;
		buf[used] = '\0';
		if (strstr(buf, "\r\n\r\n"))
			break;
	}
	for (size_t at = 0; at < o->size;) {
		ssize_t put = send(fd, o->answer + at, o->size - at, MSG_NOSIGNAL);
		if (put <= 0)
			break;
		at += (size_t)put;
	}
	(void)close(fd);
	return NULL;
}

static void begin(struct other *o, const char *answer)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	o->answer = answer;
	o->size = strlen(answer);
	(void)snprintf(o->path, sizeof(o->path), "%s/s", temp_dir);
	assert_true(strlen(o->path) < sizeof(address.sun_path));
	memcpy(address.sun_path, o->path, strlen(o->path));
	(void)unlink(o->path);
	o->listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(o->listen_fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(o->listen_fd, 1), 0);
	assert_int_equal(pthread_create(&o->thread, NULL, serve, o), 0);
}

static void end(struct other *o)
{
	assert_int_equal(pthread_join(o->thread, NULL), 0);
	(void)close(o->listen_fd);
}

static int ask(const char *answer, struct arena *a, const struct json_node **out,
	       struct cj_error *err)
{
	struct other o;

	begin(&o, answer);
	const struct remote_fetch fetch = {
		.socket = o.path,
		.message = { .method = "GET", .path = "/x", .accept = "application/json" },
		.patience_s = patience_s(20),
	};
	*err = (struct cj_error){ 0 };
	int rc = remote_fetch_json(&fetch, a, out, err);
	end(&o);
	return rc;
}

static void an_answer_is_read_to_its_end(void **state)
{
	(void)state;
	auto_arena struct arena a = { 0 };
	const struct json_node *root = NULL;
	struct cj_error err;

	assert_int_equal(ask("HTTP/1.1 201 Created\r\nContent-Length: 10\r\n\r\n{\"id\":\"a\"}", &a,
			     &root, &err),
			 0);
	assert_string_equal(json_get_text(root, "id"), "a");
	assert_int_equal(ask("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
			     "5\r\n{\"id\"\r\n5\r\n:\"b\"}\r\n0\r\n\r\n",
			     &a, &root, &err),
			 0);
	assert_string_equal(json_get_text(root, "id"), "b");
}

static void an_error_of_the_service_is_the_error(void **state)
{
	(void)state;
	auto_arena struct arena a = { 0 };
	const struct json_node *root = NULL;
	struct cj_error err;

	assert_int_equal(ask("HTTP/1.1 409 Conflict\r\n\r\n{\"error\":{\"code\":\"session_ended\","
			     "\"message\":\"its lease is over\",\"hint\":\"renew it\"}}",
			     &a, &root, &err),
			 -EREMOTEIO);
	assert_string_equal(err.msg, "the service: its lease is over [session_ended]");
	assert_string_equal(err.hint, "renew it");
	assert_int_equal(
	    ask("HTTP/1.1 503 No\r\n\r\n{\"error\":{\"code\":\"draining\",\"message\":\"m\"}}", &a,
		&root, &err),
	    -ESHUTDOWN);
	assert_int_equal(ask("HTTP/1.1 500 No\r\n\r\n<html>", &a, &root, &err), -EREMOTEIO);
	assert_non_null(strstr(err.msg, "HTTP status 500"));
}

static void what_is_no_whole_json_object_is_an_error(void **state)
{
	(void)state;
	static const char *const answers[] = {
		"",
		"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}",
		"HTTP/1.1 200 OK\r\n\r\n",
		"HTTP/1.1 200 OK\r\n\r\n[]",
		"HTTP/1.1 200 OK\r\n\r\n{\"a\":1,\"a\":2}",
		"HTTP/1.1 200 OK\r\n\r\n{} x",
		"not HTTP",
	};

	for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
		auto_arena struct arena a = { 0 };
		const struct json_node *root = NULL;
		struct cj_error err;
		assert_true(ask(answers[i], &a, &root, &err) < 0);
		assert_null(root);
		assert_true(err.msg[0] != '\0');
	}
}

static void a_refusal_without_end_is_not_kept(void **state)
{
	(void)state;
	static char answer[(128u << 10) + 64] = "HTTP/1.1 500 No\r\n\r\n";
	auto_arena struct arena a = { 0 };
	const struct json_node *root = NULL;
	struct cj_error err;

	memset(answer + strlen(answer), 'x', 128u << 10);
	assert_int_equal(ask(answer, &a, &root, &err), -EFBIG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(other_bytes_than_unreserved_ones_are_escaped_in_a_url),
		cmocka_unit_test(a_url_that_does_not_fit_is_refused),
		cmocka_unit_test(the_longest_url_fits_into_a_head),
		cmocka_unit_test(the_head_has_the_type_of_the_body),
		cmocka_unit_test(an_answer_is_read_to_its_end),
		cmocka_unit_test(an_error_of_the_service_is_the_error),
		cmocka_unit_test(what_is_no_whole_json_object_is_an_error),
		cmocka_unit_test(a_refusal_without_end_is_not_kept),
	};

	return cmocka_run_group_tests(tests, temp_dir_make, temp_dir_remove);
}
