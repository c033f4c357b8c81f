/* SPDX-License-Identifier: Apache-2.0 */
/* Who calls, what for, and how much of it. */
#include "runtime/service/access/account.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define OWN_UID 990
#define SECRET  "rL8ZsQ2mVt0Yx5Bn7Jk3Wd9Hf1Gc6Pa4"
#define OTHER   "0a1b2c3d4e5f60718293a4b5c6d7e8f9"

struct world {
	struct accounts accounts;
	struct callers callers;
	struct arena arena;
};

static int set_up(void **state)
{
	static struct world w;
	memset(&w, 0, sizeof(w));
	callers_init(&w.callers);
	*state = &w;
	return 0;
}

static int tear_down(void **state)
{
	arena_fini(&((struct world *)*state)->arena);
	return 0;
}

static struct rights *add_row(struct world *w, const char *name, const char *token)
{
	struct caller_row *row = &w->callers.rows[w->callers.count++];
	*row = (struct caller_row){ .name = name, .rights = w->callers.standard };
	if (token) {
		row->has_token = true;
		sha256_hex(token, strlen(token), row->token_sha256);
	}
	return &row->rights;
}

static struct account *of_uid(struct world *w, uid_t uid, uint64_t now_ms)
{
	return account_of_uid(&w->accounts, &w->callers, uid, OWN_UID, now_ms);
}

/* --- who ---------------------------------------------------------------------- */

static void a_callers_row_has_its_rights(void **state)
{
	struct world *w = *state;
	struct rights *r = add_row(w, "uid:1000", NULL);
	struct rights *root = add_row(w, "uid:0", NULL);
	assert_ptr_equal(of_uid(w, 1000, 1)->rights, r);
	assert_string_equal(of_uid(w, 1000, 1)->name, "uid:1000");
	assert_ptr_equal(of_uid(w, 100, 1)->rights, &w->callers.standard);
	assert_ptr_equal(of_uid(w, 10000, 1)->rights, &w->callers.standard);
	assert_ptr_equal(of_uid(w, 4294967295u, 1)->rights, &w->callers.standard);
	assert_ptr_equal(of_uid(w, 0, 1)->rights, root); /* even root's, where there is one */
}

static void only_the_services_own_uid_and_root_may_name_host_paths(void **state)
{
	struct world *w = *state;
	assert_true(of_uid(w, OWN_UID, 1)->rights->host_paths);
	assert_true(of_uid(w, 0, 1)->rights->host_paths);
	assert_false(of_uid(w, 1000, 1)->rights->host_paths);
	assert_false(w->callers.standard.host_paths);
}

static void one_caller_has_one_account(void **state)
{
	struct world *w = *state;
	assert_ptr_equal(of_uid(w, 7, 1), of_uid(w, 7, 2));
	assert_ptr_not_equal(of_uid(w, 7, 1), of_uid(w, 8, 2));
	assert_int_equal(w->accounts.count, 2);
}

static void a_full_table_drops_the_account_that_was_idle_longest(void **state)
{
	struct world *w = *state;
	for (unsigned i = 0; i < ACCOUNTS_MAX; i++)
		of_uid(w, 10000 + i, 100 + i)->running = 1;
	assert_null(of_uid(w, 1, 5000)); /* all are busy */

	of_uid(w, 10005, 6000)->running = 0;
	of_uid(w, 10006, 5500)->running = 0;
	of_uid(w, 10007, 5400)->running = 0;
	of_uid(w, 10007, 5400)->queued = 1;
	struct account *fresh = of_uid(w, 1, 7000);
	assert_non_null(fresh);
	assert_string_equal(fresh->name, "uid:1");
	assert_int_equal(fresh->running, 0);
	assert_int_equal(w->accounts.count, ACCOUNTS_MAX);
	for (size_t i = 0; i < ACCOUNTS_MAX; i++)
		assert_string_not_equal(w->accounts.items[i].name, "uid:10006");
	fresh->running = 1;
	assert_string_equal(of_uid(w, 2, 7000)->name, "uid:2"); /* in the place of 10005 */
}

static void an_account_with_an_empty_token_bucket_is_not_dropped(void **state)
{
	struct world *w = *state;
	uint64_t retry_ms;
	w->callers.standard.rate_per_minute = 60;
	w->callers.standard.burst = 1;
	for (unsigned i = 0; i < ACCOUNTS_MAX; i++)
		assert_true(account_take(of_uid(w, 10000 + i, 0), 0, 0, &retry_ms));
	assert_null(of_uid(w, 1, 999)); /* else a crowd of callers would reset each other's rate */
	assert_non_null(of_uid(w, 1, 1000));
}

static void new_rights_keep_the_counters(void **state)
{
	struct world *w = *state;
	struct rights *r = add_row(w, "uid:1000", NULL);
	r->rate_per_minute = 60;
	r->burst = 50;
	struct account *a = of_uid(w, 1000, 1);
	a->running = 3;
	a->queued = 2;

	static struct callers fresh;
	callers_init(&fresh);
	fresh.standard.burst = 10;
	accounts_adopt(&w->accounts, &fresh, OWN_UID);
	assert_ptr_equal(a->rights, &fresh.standard);
	assert_int_equal(a->running, 3);
	assert_int_equal(a->queued, 2);
	assert_int_equal(a->credit, 10u * CREDIT_OF_REQUEST); /* no more than a new one's */
	accounts_adopt(&w->accounts, &fresh, 1000);
	assert_ptr_equal(a->rights, &fresh.own);
}

/* --- tokens --------------------------------------------------------------------- */

static void a_token_is_its_rows_caller(void **state)
{
	struct world *w = *state;
	struct rights *ci = add_row(w, "token:ci", SECRET);
	add_row(w, "token:web", OTHER);
	const struct caller_row *row = callers_find_token(&w->callers, SECRET, strlen(SECRET));
	assert_non_null(row);
	struct account *a = account_of_row(&w->accounts, row, 1);
	assert_string_equal(a->name, "token:ci");
	assert_ptr_equal(a->rights, ci);
}

static void any_other_token_has_no_caller(void **state)
{
	struct world *w = *state;
	static const char *const wrong[] = { "", "x", SECRET "x", "rL8ZsQ2mVt0Yx5Bn7Jk3Wd9Hf1Gc6Pa",
					     OTHER };
	add_row(w, "token:ci", SECRET);
	add_row(w, "token:none", NULL); /* its digest is "": no token has that */
	add_row(w, "uid:5", NULL);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_null(callers_find_token(&w->callers, wrong[i], strlen(wrong[i])));
	assert_int_equal(w->accounts.count, 0);
}

static void a_full_table_is_not_an_unknown_token(void **state)
{
	struct world *w = *state;
	add_row(w, "token:ci", SECRET);
	for (unsigned i = 0; i < ACCOUNTS_MAX; i++)
		of_uid(w, 10000 + i, 1)->running = 1;
	const struct caller_row *row = callers_find_token(&w->callers, SECRET, strlen(SECRET));
	assert_non_null(row);
	assert_null(account_of_row(&w->accounts, row, 1));
}

static void weak_tokens_are_refused(void **state)
{
	(void)state;
	static const struct {
		const char *token, *said;
	} weak[] = {
		{ "", "has 0 characters" },
		{ "rL8ZsQ2mVt0Yx5Bn7Jk3Wd9Hf1Gc6Pa", "has 31 characters, the minimum is 32" },
		{ "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "only 1 different" },
		{ "abababababababababababababababababab", "only 2 different" },
		{ "passpasspasspasspasspasspasspasspass", "only 3 different" },
		{ "rL8ZsQ2mVt0Yx5Bn 7Jk3Wd9Hf1Gc6Pa4", "a header can't contain, at 17" },
		{ "rL8ZsQ2mVt0Yx5Bn7Jk3Wd9Hf1Gc6Pa4\n", "a header can't contain, at 33" },
		{ "rL8ZsQ2mVt0Yx5Bn7Jk3Wd9Hf1Gc6P\xc3\xa4", "a header can't contain" },
	};
	for (size_t i = 0; i < sizeof(weak) / sizeof(weak[0]); i++) {
		struct cj_error err = { 0 };
		assert_int_equal(token_check(weak[i].token, strlen(weak[i].token), &err), -EINVAL);
		if (!strstr(err.msg, weak[i].said))
			fail_msg("'%s' does not say '%s'", err.msg, weak[i].said);
		assert_non_null(strstr(err.hint, "/dev/urandom"));
		if (weak[i].token[0] != '\0')
			assert_null(strstr(err.msg, weak[i].token)); /* no secret in a message */
	}
	struct cj_error err = { 0 };
	char text[TOKEN_MAX + 2];
	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = (char)('!' + i % 90);
	assert_int_equal(token_check(text, TOKEN_MAX + 1, &err), -EINVAL);
	assert_int_equal(token_check(text, TOKEN_MAX, &err), 0);
	assert_int_equal(token_check(text, TOKEN_MIN, &err), 0);
	assert_int_equal(token_check(SECRET, strlen(SECRET), &err), 0);
	assert_int_equal(token_check(OTHER, strlen(OTHER), &err), 0);
}

/* --- how much --------------------------------------------------------------------- */

static void the_bucket_gives_its_burst_then_its_rate(void **state)
{
	struct world *w = *state;
	uint64_t retry_ms;
	struct rights *r = add_row(w, "uid:1000", NULL);
	r->rate_per_minute = 7; /* one in 8571.43 ms */
	r->burst = 3;
	struct account *a = of_uid(w, 1000, 1000);
	for (unsigned i = 0; i < 3; i++)
		assert_true(account_take(a, 0, 1000, &retry_ms));
	assert_false(account_take(a, 0, 1000, &retry_ms));
	assert_int_equal(retry_ms, 8572);
	assert_false(account_take(a, 0, 1000 + retry_ms - 1, &retry_ms));
	assert_int_equal(retry_ms, 1); /* what it said was true */
	assert_true(account_take(a, 0, 1000 + 8572, &retry_ms));
	assert_int_equal(retry_ms, 0);

	/* asked ten times a second for an hour: never more than the rate, and no less */
	unsigned given = 0;
	for (uint64_t t = 0; t < 3600; t++)
		for (unsigned k = 0; k < 10; k++)
			given += account_take(a, 0, 20000 + t * 1000 + k * 100, &retry_ms);
	assert_in_range(given, 7 * 60, 7 * 60 + 2);
}

static void the_bucket_never_holds_more_than_its_burst(void **state)
{
	struct world *w = *state;
	uint64_t retry_ms;
	struct rights *r = add_row(w, "uid:1000", NULL);
	r->rate_per_minute = 1000000;
	r->burst = 1000000;
	struct account *a = of_uid(w, 1000, 0);
	a->credit = 0;
	assert_true(account_take(a, 0, UINT64_MAX, &retry_ms));
	assert_int_equal(a->credit, (uint64_t)CREDIT_OF_REQUEST * (r->burst - 1));
	assert_true(account_take(a, 0, 5, &retry_ms)); /* time does not run back */
	assert_int_equal(a->credit, (uint64_t)CREDIT_OF_REQUEST * (r->burst - 2));
}

static void a_large_body_counts_as_several_requests(void **state)
{
	struct world *w = *state;
	uint64_t retry_ms;
	struct rights *r = add_row(w, "uid:1000", NULL);
	r->rate_per_minute = 60; /* one a second */
	r->burst = 10;
	struct account *a = of_uid(w, 1000, 0);
	assert_true(account_take(a, ACCOUNT_BODY_UNIT - 1, 1, &retry_ms));
	assert_int_equal(a->credit, 9 * CREDIT_OF_REQUEST);
	assert_true(account_take(a, 5 * ACCOUNT_BODY_UNIT, 1, &retry_ms));
	assert_int_equal(a->credit, 3 * CREDIT_OF_REQUEST);
	assert_false(account_take(a, 5 * ACCOUNT_BODY_UNIT, 1, &retry_ms));
	assert_int_equal(retry_ms, 3000);
	assert_true(account_take(a, 0, 1, &retry_ms)); /* a small one may go on */

	/* never more than a full bucket, or it would wait for ever */
	assert_false(account_take(a, SIZE_MAX, 1, &retry_ms));
	assert_int_equal(retry_ms, 8000);
	assert_true(account_take(a, SIZE_MAX, 1 + retry_ms, &retry_ms));
	assert_int_equal(a->credit, 0);
}

static void no_rate_is_no_limit(void **state)
{
	struct world *w = *state;
	uint64_t retry_ms;
	struct account *a = of_uid(w, 0, 1);
	for (unsigned i = 0; i < 100000; i++)
		assert_true(account_take(a, 0, 1, &retry_ms));
}

static void running_and_waiting_have_their_bounds(void **state)
{
	struct world *w = *state;
	struct rights *r = add_row(w, "uid:1000", NULL);
	r->concurrent = 2;
	r->queued = 1;
	struct account *a = of_uid(w, 1000, 1);
	assert_true(account_may_run(a) && account_may_wait(a));
	a->running = 1;
	assert_true(account_may_run(a));
	a->running = 2;
	a->queued = 1;
	assert_false(account_may_run(a));
	assert_false(account_may_wait(a));
	struct account *own = of_uid(w, OWN_UID, 1);
	own->running = own->queued = 100000; /* the service's own bounds alone */
	assert_true(account_may_run(own) && account_may_wait(own));
}

static void a_caller_without_its_own_limit_may_run_half_of_all(void **state)
{
	struct world *w = *state;
	struct rights *plain = add_row(w, "uid:1000", NULL);
	struct rights *said = add_row(w, "uid:1001", NULL);
	said->concurrent = 16;
	callers_settle(&w->callers, 8);
	assert_int_equal(w->callers.standard.concurrent, 4);
	assert_int_equal(plain->concurrent, 4);
	assert_int_equal(said->concurrent, 16);
	assert_int_equal(w->callers.own.concurrent, 0);
	callers_init(&w->callers);
	callers_settle(&w->callers, 1);
	assert_int_equal(w->callers.standard.concurrent, 1);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_callers_row_has_its_rights),
		CASE(only_the_services_own_uid_and_root_may_name_host_paths),
		CASE(one_caller_has_one_account),
		CASE(a_full_table_drops_the_account_that_was_idle_longest),
		CASE(an_account_with_an_empty_token_bucket_is_not_dropped),
		CASE(new_rights_keep_the_counters),
		CASE(a_token_is_its_rows_caller),
		CASE(any_other_token_has_no_caller),
		CASE(a_full_table_is_not_an_unknown_token),
		CASE(weak_tokens_are_refused),
		CASE(the_bucket_gives_its_burst_then_its_rate),
		CASE(the_bucket_never_holds_more_than_its_burst),
		CASE(a_large_body_counts_as_several_requests),
		CASE(no_rate_is_no_limit),
		CASE(running_and_waiting_have_their_bounds),
		CASE(a_caller_without_its_own_limit_may_run_half_of_all),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
