/* SPDX-License-Identifier: Apache-2.0 */
/* What one caller may hold of what all share. */
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "runtime/service/http/http_parts.h"

#define QUARTER (HTTP_BYTES_MAX / 4)
#define OPEN    (HTTP_BYTES_MAX - HTTP_BYTES_MAX / 8)

struct world {
	struct http http;
	struct exchange exchanges[HTTP_CONNECTIONS_MAX];
};

static int set_up(void **state)
{
	static struct world w;
	memset(&w, 0, sizeof(w));
	w.http.body_max = 16u << 20;
	*state = &w;
	return 0;
}

static struct exchange *add(struct world *w, struct http_caller caller)
{
	struct exchange *x = &w->exchanges[w->http.count++];
	*x = (struct exchange){ .http = &w->http, .caller = caller };
	LIST_INSERT_HEAD(&w->http.exchanges, x, link);
	return x;
}

static struct exchange *add_uid(struct world *w, uid_t uid)
{
	return add(w, (struct http_caller){ .uid = uid });
}

static struct exchange *add_token(struct world *w, const char *name)
{
	struct exchange *x = add(w, (struct http_caller){ .is_tcp = true, .uid = (uid_t)-1 });
	(void)snprintf(x->token_name, sizeof(x->token_name), "%s", name);
	return x;
}

static void a_caller_has_a_quarter_of_the_memory(void **state)
{
	struct world *w = *state;
	struct exchange *body = add_uid(w, 1), *reply = add_uid(w, 1), *stream = add_uid(w, 1);

	body->body_held = QUARTER / 4;
	reply->reply_held = QUARTER / 4;
	stream->stream.queue.room = QUARTER / 4;
	assert_int_equal(http_may_hold(stream, QUARTER / 4), API_OK);
	assert_int_equal(http_may_hold(stream, QUARTER / 4 + 1), API_TOO_MANY_WAITING);
	assert_int_equal(http_may_hold(add_uid(w, 2), QUARTER), API_OK);
	assert_int_equal(http_may_hold(add_token(w, "token:a"), QUARTER), API_OK);
}

static void tokens_are_callers_of_their_own(void **state)
{
	struct world *w = *state;

	add_token(w, "token:a")->reply_held = QUARTER;
	assert_int_equal(http_may_hold(add_token(w, "token:a"), 1u << 20), API_TOO_MANY_WAITING);
	assert_int_equal(http_may_hold(add_token(w, "token:b"), 1u << 20), API_OK);
	assert_int_equal(http_may_hold(add_token(w, ""), 1u << 20), API_OK);
}

static void a_caller_that_holds_nothing_may_have_one_large_reply(void **state)
{
	struct world *w = *state;
	struct exchange *x = add_uid(w, 1);

	assert_int_equal(http_may_hold(x, 2 * QUARTER), API_OK);
	x->reply_held = 2 * QUARTER;
	assert_int_equal(http_may_hold(x, 1u << 20), API_TOO_MANY_WAITING);
	assert_int_equal(http_may_hold(add_uid(w, 2), 2 * QUARTER), API_QUEUE_FULL);
}

static void a_small_body_is_always_accepted(void **state)
{
	struct world *w = *state;
	struct exchange *x = add_uid(w, 1);

	x->reply_held = HTTP_BYTES_MAX;
	assert_int_equal(http_may_hold(x, HTTP_SMALL), API_OK);
	assert_int_equal(http_may_hold(x, HTTP_SMALL + 1), API_TOO_MANY_WAITING);
}

static void root_and_the_services_own_user_have_what_others_cant(void **state)
{
	struct world *w = *state;

	for (unsigned uid = 1; uid <= 3; uid++)
		add_uid(w, uid)->reply_held = QUARTER;
	struct exchange *fourth = add_uid(w, 4), *ours = add_uid(w, 0);
	ours->is_ours = true;
	assert_int_equal(http_may_hold(fourth, OPEN - 3 * QUARTER), API_OK);
	assert_int_equal(http_may_hold(fourth, OPEN - 3 * QUARTER + 1), API_QUEUE_FULL);
	assert_int_equal(http_may_hold(ours, QUARTER), API_OK);
	ours->reply_held = QUARTER / 2;
	assert_int_equal(http_may_hold(ours, QUARTER / 2), API_OK);
	assert_int_equal(http_may_hold(ours, QUARTER / 2 + 1), API_QUEUE_FULL);
}

static void the_largest_request_fits_into_a_quarter(void **state)
{
	struct world *w = *state;
	struct exchange *x = add_uid(w, 1);

	w->http.body_max = 256u << 20;
	x->body_held = 128u << 20;
	assert_int_equal(http_may_hold(x, (128u << 20) + 1), API_OK);
	assert_int_equal(http_may_hold(x, (128u << 20) + 5), API_TOO_MANY_WAITING);
}

static void connections_have_the_same_shares(void **state)
{
	struct world *w = *state;

	for (unsigned i = 0; i < HTTP_CONNECTIONS_MAX / 4; i++)
		assert_int_equal(http_may_connect(add_uid(w, 1)), API_OK);
	assert_int_equal(http_may_connect(add_uid(w, 1)), API_TOO_MANY_WAITING);
	LIST_FIRST(&w->http.exchanges)->caller.uid = 2;
	assert_int_equal(http_may_connect(LIST_FIRST(&w->http.exchanges)), API_OK);
	while (w->http.count < HTTP_CONNECTIONS_MAX - HTTP_CONNECTIONS_MAX / 8)
		assert_int_equal(http_may_connect(add_uid(w, (uid_t)w->http.count)), API_OK);
	assert_int_equal(http_may_connect(add_uid(w, 3)), API_QUEUE_FULL);
	LIST_FIRST(&w->http.exchanges)->is_ours = true;
	assert_int_equal(http_may_connect(LIST_FIRST(&w->http.exchanges)), API_OK);
	while (w->http.count < HTTP_CONNECTIONS_MAX)
		add_uid(w, 0)->is_ours = true;
	assert_int_equal(http_may_connect(LIST_FIRST(&w->http.exchanges)), API_OK);
	struct exchange one_more = { .http = &w->http, .is_ours = true };
	assert_int_equal(http_may_connect(&one_more), API_QUEUE_FULL);
}

static void the_oldest_unauthenticated_client_makes_room(void **state)
{
	struct world *w = *state;

	add_uid(w, 1);
	add_token(w, "token:a");
	add_token(w, "")->is_abandoned = true; /* on its way out */
	struct exchange *oldest = add_token(w, "");
	for (unsigned i = 1; i < HTTP_UNAUTHENTICATED_MAX; i++) {
		assert_null(http_find_unauthenticated(&w->http));
		add_token(w, "");
	}
	assert_ptr_equal(http_find_unauthenticated(&w->http), oldest);
	oldest->is_abandoned = true;
	assert_null(http_find_unauthenticated(&w->http));
}

static void a_lingering_connection_does_not_count_as_a_connection(void **state)
{
	struct world *w = *state;

	while (w->http.count < HTTP_CONNECTIONS_MAX / 2)
		add_uid(w, 1)->is_extra = true;
	add_token(w, "")->is_extra = true;
	assert_int_equal(http_may_connect(add_uid(w, 1)), API_OK);
	assert_null(http_find_unauthenticated(&w->http));
}

static void a_caller_with_half_of_the_lingering_connections_loses_its_oldest(void **state)
{
	struct world *w = *state;
	struct exchange *other = add_uid(w, 2), *oldest = add_uid(w, 1);

	other->is_extra = oldest->is_extra = true;
	for (unsigned i = 1; i < HTTP_LINGER_MAX / 2; i++) {
		assert_null(http_find_lingerer(LIST_FIRST(&w->http.exchanges)));
		add_uid(w, 1)->is_extra = true;
	}
	struct exchange one_more = { .http = &w->http, .caller = { .uid = 1 } };
	assert_ptr_equal(http_find_lingerer(&one_more), oldest);
	one_more.caller.uid = 2;
	assert_null(http_find_lingerer(&one_more));
	while (w->http.count < HTTP_LINGER_MAX)
		add_uid(w, 3)->is_extra = true;
	assert_ptr_equal(http_find_lingerer(&one_more), other);
	other->is_abandoned = true;
	assert_null(http_find_lingerer(&one_more));
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup(f, set_up)
	static const struct CMUnitTest tests[] = {
		CASE(a_caller_has_a_quarter_of_the_memory),
		CASE(tokens_are_callers_of_their_own),
		CASE(a_caller_that_holds_nothing_may_have_one_large_reply),
		CASE(a_small_body_is_always_accepted),
		CASE(root_and_the_services_own_user_have_what_others_cant),
		CASE(the_largest_request_fits_into_a_quarter),
		CASE(connections_have_the_same_shares),
		CASE(the_oldest_unauthenticated_client_makes_room),
		CASE(a_lingering_connection_does_not_count_as_a_connection),
		CASE(a_caller_with_half_of_the_lingering_connections_loses_its_oldest),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
