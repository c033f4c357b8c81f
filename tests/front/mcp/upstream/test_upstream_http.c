/* SPDX-License-Identifier: Apache-2.0 */
/* The connections to a server over HTTP: those of messages without an answer are few and short. */
/* WRAP: clock_ms */
#include "runtime/front/mcp/upstream/upstream.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include "runtime/base/clock.h"
#include "runtime/base/scope.h"
#include "tests/patience.h"

#define NOTES      12
#define NOTES_KEPT 8
#define NOTE_MS    5000

static uint64_t now_ms;

uint64_t __wrap_clock_ms(void);
uint64_t __wrap_clock_ms(void)
{
	return now_ms;
}

/* The server only accepts: it answers nothing. */
struct world {
	struct loop loop;
	struct server_spec spec;
	char url[64];
	struct upstream *u;
	int listener_fd;
	int fds[NOTES + 1]; /* accepted, in the order of the messages */
	size_t count;
};

static int set_up(void **state)
{
	static struct world w;
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof(to);
	struct cj_error err = { 0 };

	now_ms = 1000000;
	w = (struct world){ .u = calloc(1, sizeof(*w.u)) };
	w.listener_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(w.listener_fd, (struct sockaddr *)&to, sizeof(to)), 0);
	assert_int_equal(listen(w.listener_fd, NOTES + 1), 0);
	assert_int_equal(getsockname(w.listener_fd, (struct sockaddr *)&to, &size), 0);
	(void)snprintf(w.url, sizeof(w.url), "http://127.0.0.1:%u/mcp", ntohs(to.sin_port));
	w.spec = (struct server_spec){ .name = "far", .url = w.url };
	assert_non_null(w.u);
	assert_int_equal(loop_open(&w.loop, &err), 0);
	upstream_init(w.u, &w.loop, &w.spec, &upstream_http);
	assert_int_equal(upstream_http.open(w.u, &err), 0);
	*state = &w;
	return 0;
}

static int tear_down(void **state)
{
	struct world *w = *state;

	upstream_http.close(w->u);
	upstream_fini(w->u);
	free(w->u);
	for (size_t i = 0; i < w->count; i++)
		cj_close(&w->fds[i]);
	cj_close(&w->listener_fd);
	loop_close(&w->loop);
	return 0;
}

/* Sends a message and accepts its connection.  id 0: it has no answer. */
static int send_message(struct world *w, uint64_t id)
{
	const struct upstream_message m = { .line = { "{}", 2 }, .id = id };
	struct cj_error err = { 0 };
	char head[4096];

	upstream_http.send(w->u, &m);
	assert_false(w->u->has_failed);
	int fd = accept4(w->listener_fd, NULL, NULL, SOCK_CLOEXEC);
	assert_true(fd >= 0);
	w->fds[w->count++] = fd;
	assert_int_equal(loop_turn(&w->loop, patience_ms(30000), &err), 0);
	assert_true(recv(fd, head, sizeof(head), 0) > 0);
	return fd;
}

/* `wait_ms`: for the end of a connection that must end. */
static bool is_closed(int fd, int wait_ms)
{
	char rest[256];
	struct pollfd p = { .fd = fd, .events = POLLIN };
	ssize_t got = 1;

	while (got > 0 && poll(&p, 1, wait_ms) > 0)
		got = recv(fd, rest, sizeof(rest), MSG_DONTWAIT);
	return got <= 0;
}

static void of_the_messages_without_an_answer_the_last_eight_are_open(void **state)
{
	struct world *w = *state;
	int request_fd = send_message(w, 1), notes[NOTES];

	for (size_t i = 0; i < NOTES; i++)
		notes[i] = send_message(w, 0);
	for (size_t i = 0; i < NOTES - NOTES_KEPT; i++)
		assert_true(is_closed(notes[i], patience_ms(30000)));
	for (size_t i = NOTES - NOTES_KEPT; i < NOTES; i++)
		assert_false(is_closed(notes[i], 0));
	assert_false(is_closed(request_fd, 0));
	assert_false(w->u->has_failed);
}

static void a_message_without_an_answer_is_given_up_after_five_seconds(void **state)
{
	struct world *w = *state;
	int request_fd = send_message(w, 1), first_fd = send_message(w, 0);

	now_ms += NOTE_MS - 1;
	int second_fd = send_message(w, 0);
	(void)upstream_http.tick(w->u, now_ms);
	assert_false(is_closed(first_fd, 0));
	now_ms++;
	(void)upstream_http.tick(w->u, now_ms);
	assert_true(is_closed(first_fd, patience_ms(30000)));
	assert_false(is_closed(second_fd, 0));
	now_ms += 100 * NOTE_MS;
	(void)upstream_http.tick(w->u, now_ms);
	assert_true(is_closed(second_fd, patience_ms(30000)));
	assert_false(is_closed(request_fd, 0));
	assert_false(w->u->has_failed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
		    of_the_messages_without_an_answer_the_last_eight_are_open, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
		    a_message_without_an_answer_is_given_up_after_five_seconds, set_up, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
