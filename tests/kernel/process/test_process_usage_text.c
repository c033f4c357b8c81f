/* SPDX-License-Identifier: Apache-2.0 */
/* proc(5) files of processes whose names want to be numbers. */
#include "runtime/kernel/process/process_usage_text.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define FIELDS " S 1 2 2 0 -1 4194304 105 0 0 0 11 22 33 44 20 0 5 0 11909 8192 0"

static void the_numbers_of_stat_are_read(void **state)
{
	(void)state;
	struct sample_stat stat;
	assert_true(process_usage_text_stat("42 (python3)" FIELDS "\n", &stat));
	assert_int_equal(stat.own_ticks, 33);
	assert_int_equal(stat.children_ticks, 77);
	assert_int_equal(stat.threads, 5);
	assert_int_equal(stat.start_ticks, 11909);
}

static void a_name_cannot_shift_the_fields(void **state)
{
	(void)state;
	static const char *const lines[] = {
		"42 (a b)" FIELDS "\n",
		"42 () S 1 1 1 0 0 0 0 0 0 0 9 9 9 9 9 9 9)" FIELDS "\n",
		"42 ())))" FIELDS "\n",
		"42 (\n)" FIELDS "\n",
	};
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		struct sample_stat stat;
		assert_true(process_usage_text_stat(lines[i], &stat));
		assert_int_equal(stat.own_ticks, 33);
		assert_int_equal(stat.threads, 5);
	}
}

static void the_ids_of_a_thread_are_the_last_of_their_lines(void **state)
{
	(void)state;
	static const char text[] = "Name:\tx NSpid:\t9\nNStgid:\t4000\t3\t12\nNSpid:\t4001\t5\t13\n"
				   "NSpgid:\t4000\t7\t8\n";
	for (uint64_t id = 0; id < 5000; id++)
		assert_int_equal(process_usage_text_is(text, id), id == 12 || id == 13);
	assert_false(process_usage_text_is("NSpid:\t12", 12)); /* it was cut off */
	assert_false(process_usage_text_is("NSpid:\n", 1));
	assert_false(process_usage_text_is("", 1));
}

static void a_truncated_stat_is_refused(void **state)
{
	(void)state;
	struct sample_stat stat = { .threads = 9 };
	const char *whole = "42 (x)" FIELDS;
	char part[128];
	size_t upto = (size_t)(strstr(whole, " 11909 ") - whole); /* before the start */
	for (size_t size = 0; size <= upto; size++) {
		memcpy(part, whole, size);
		part[size] = '\0';
		assert_false(process_usage_text_stat(part, &stat));
	}
	assert_int_equal(stat.threads, 9);
}

static void numbers_that_do_not_fit_are_refused(void **state)
{
	(void)state;
	struct sample_stat stat;
	assert_false(process_usage_text_stat(
	    "1 (x) S 1 2 2 0 -1 4 1 0 0 0 99999999999999999999 1 1 1 20 0 5 0 1", &stat));
	assert_false(process_usage_text_stat(
	    "1 (x) S 1 2 2 0 -1 4 1 0 0 0 18446744073709551615 1 1 1 20 0 5 0 1", &stat));
	assert_false(
	    process_usage_text_stat("1 (x) S 1 2 2 0 -1 4 1 0 0 0 -1 1 1 1 20 0 5 0 1", &stat));
}

static void memory_is_anonymous_shared_swapped_in_huge_pages_and_what_maps_it(void **state)
{
	(void)state;
	assert_int_equal(
	    process_usage_text_memory("RssAnon:\t 1 kB\nRssShmem:\t 2 kB\nVmPTE:\t 4 kB\n"
				      "VmSwap:\t 8 kB\nHugetlbPages:\t 16 kB\n"),
	    31 * 1024);
	assert_int_equal(
	    process_usage_text_memory("Name:\tx\nVmRSS:\t 9000 kB\nRssAnon:\t  100 kB\n"
				      "RssFile:\t 5000 kB\nRssShmem:\t   28 kB\n"),
	    128 * 1024);
	assert_int_equal(process_usage_text_memory("Name:\tzombie\nState:\tZ (zombie)\n"), 0);
	assert_int_equal(process_usage_text_memory(""), 0);
}

static void a_name_is_not_a_line_of_memory(void **state)
{
	(void)state;
	assert_int_equal(process_usage_text_memory("Name:\tRssAnon: 9\n"), 0);
	assert_int_equal(process_usage_text_memory("Name:\tx\\nRssAnon: 9\nRssAnon:\t1 kB\n"),
			 1024);
	assert_true(process_usage_text_memory("RssAnon: 18014398509481983 kB\n"
					      "RssShmem: 18014398509481983 kB\n") == UINT64_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_numbers_of_stat_are_read),
		cmocka_unit_test(a_name_cannot_shift_the_fields),
		cmocka_unit_test(the_ids_of_a_thread_are_the_last_of_their_lines),
		cmocka_unit_test(a_truncated_stat_is_refused),
		cmocka_unit_test(numbers_that_do_not_fit_are_refused),
		cmocka_unit_test(memory_is_anonymous_shared_swapped_in_huge_pages_and_what_maps_it),
		cmocka_unit_test(a_name_is_not_a_line_of_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
