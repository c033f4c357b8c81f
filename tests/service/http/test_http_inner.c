/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of the service's own, without a connection. */
#include "runtime/service/http/http.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "runtime/base/clock.h"

/* The service: what it does with a request, and what it has seen. */
struct fixture {
	struct loop loop;
	struct http *http;
	void (*handle)(struct fixture *f, struct exchange *x);
	struct exchange *held;
	unsigned gone, replied, http_statuses;
	unsigned status; /* of the reply */
	char text[256];  /* pieces, or the body */
};

static void on_request(void *context, struct exchange *x)
{
	(void)context;
	(void)x;
	fail_msg("the request came over no connection");
}

static void count_reply(void *context, unsigned status, enum api_code code)
{
	struct fixture *f = context;

	(void)code;
	f->http_statuses += status > 0;
}

static int open_fixture(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	const struct http_ops ops = {
		.begun = on_request, .whole = on_request, .replied = count_reply, .context = f
	};
	struct cj_error err = { 0 };

	f->loop = LOOP_NULL;
	assert_int_equal(loop_open(&f->loop, &err), 0);
	assert_int_equal(http_open(&f->loop, &ops, &f->http, &err), 0);
	*state = f;
	return 0;
}

static int close_fixture(void **state)
{
	struct fixture *f = *state;

	http_close(&f->http);
	loop_close(&f->loop);
	free(f);
	return 0;
}

static void keep(struct fixture *f, const char *bytes, size_t size)
{
	size_t used = strlen(f->text);

	assert_true(used + size < sizeof(f->text));
	memcpy(f->text + used, bytes, size);
	f->text[used + size] = '\0';
}

static void on_piece(void *context, const char *bytes, size_t size)
{
	keep(context, bytes, size);
}

static void on_reply(void *context, const struct http_reply *reply)
{
	struct fixture *f = context;

	f->replied++;
	f->status = reply->status;
	if (reply->text)
		keep(f, reply->text + reply->skip, reply->size);
}

static struct exchange *ask(struct fixture *f)
{
	const struct http_inner inner = { .body = strdup("in"),
					  .body_size = 2,
					  .piece = on_piece,
					  .replied = on_reply,
					  .context = f };
	struct exchange *x = NULL;
	struct cj_error err = { 0 };

	assert_int_equal(http_open_inner(f->http, &inner, &x, &err), 0);
	f->handle(f, x);
	http_settle_inner(x);
	return x;
}

static void answer_at_once(struct fixture *f, struct exchange *x)
{
	const struct http_reply reply = {
		.status = 201, .text = strdup("--out"), .skip = 2, .size = 3
	};
	size_t size = 0;
	char *body = exchange_take_body(x, &size);

	(void)f;
	assert_true(exchange_is_inner(x) && !exchange_caller(x).is_tcp);
	assert_int_equal(size, 2);
	free(body);
	exchange_reply(x, &reply);
}

static void a_reply_comes_with_the_next_tick(void **state)
{
	struct fixture *f = *state;

	f->handle = answer_at_once;
	(void)ask(f);
	assert_int_equal(f->replied, 0);
	(void)http_tick(f->http, clock_ms());
	assert_int_equal(f->replied, 1);
	assert_int_equal(f->status, 201);
	assert_string_equal(f->text, "out");
	assert_int_equal(f->http_statuses, 0);
	(void)http_tick(f->http, clock_ms());
	assert_int_equal(f->replied, 1);
}

static void on_gone(void *holder)
{
	struct fixture *f = holder;

	f->gone++;
	f->held = NULL;
}

static void hold(struct fixture *f, struct exchange *x)
{
	f->held = x;
	exchange_hold(x, on_gone, f);
}

static void a_stream_comes_piece_by_piece(void **state)
{
	struct fixture *f = *state;

	f->handle = hold;
	(void)ask(f);
	exchange_begin_stream(f->held, HTTP_JSON_LINES, on_gone);
	assert_true(exchange_put(f->held, "a\n", 2, false));
	assert_true(exchange_put(f->held, "b\n", 2, true));
	assert_string_equal(f->text, "a\nb\n");
	exchange_end_stream(f->held);
	(void)http_tick(f->http, clock_ms());
	assert_int_equal(f->replied, 1);
	assert_int_equal(f->status, 200);
	assert_int_equal(f->gone, 0);
}

static void dropping_a_request_notifies_its_holder(void **state)
{
	struct fixture *f = *state;

	f->handle = hold;
	struct exchange *x = ask(f);
	http_drop_inner(&x);
	assert_null(x);
	assert_int_equal(f->gone, 1);
	(void)http_tick(f->http, clock_ms());
	assert_int_equal(f->replied, 0);
	(void)ask(f); /* the end of the service drops this one */
}

static void do_nothing(struct fixture *f, struct exchange *x)
{
	(void)f;
	(void)x;
}

static void a_handler_without_memory_is_an_error(void **state)
{
	struct fixture *f = *state;

	f->handle = do_nothing;
	(void)ask(f);
	(void)http_tick(f->http, clock_ms());
	assert_int_equal(f->status, 500);
	assert_non_null(strstr(f->text, "internal"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_fixture, close_fixture)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_reply_comes_with_the_next_tick),
		TEST(a_stream_comes_piece_by_piece),
		TEST(dropping_a_request_notifies_its_holder),
		TEST(a_handler_without_memory_is_an_error),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
