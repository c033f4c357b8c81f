/* SPDX-License-Identifier: Apache-2.0 */
/* arena: zeroed, aligned, freed together; lists that always end in NULL. */
/* WRAP: malloc */
#include "runtime/base/arena.h"

#include <setjmp.h>
#include <stdalign.h>
#include <stdarg.h>

#include <cmocka.h>

static bool is_malloc_refused;

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_malloc(size_t size)
{
	if (is_malloc_refused)
		errno = ENOMEM;
	return is_malloc_refused ? NULL : __real_malloc(size);
}

static void memory_is_zeroed_aligned_and_apart(void **state)
{
	auto_arena struct arena a = { 0 };
	unsigned char *previous = NULL;
	(void)state;

	for (size_t size = 1; size < 10000; size += 97) { /* within a block and beyond one */
		unsigned char *p = arena_alloc(&a, size);

		assert_non_null(p);
		assert_int_equal((uintptr_t)p % alignof(max_align_t), 0);
		for (size_t i = 0; i < size; i++)
			assert_int_equal(p[i], 0);
		memset(p, 0xff, size);
		if (previous)
			assert_int_equal(previous[0], 0xff);
		previous = p;
	}
}

static void nothing_at_all_is_still_a_place(void **state)
{
	auto_arena struct arena a = { 0 };
	(void)state;

	assert_non_null(arena_alloc(&a, 0));
	assert_string_equal(arena_strdup(&a, ""), "");
	assert_string_equal(arena_strndup(&a, NULL, 0), "");
}

static void sizes_that_overflow_are_no_memory(void **state)
{
	auto_arena struct arena a = { 0 };
	(void)state;

	errno = 0;
	assert_null(arena_alloc(&a, SIZE_MAX));
	assert_int_equal(errno, ENOMEM);
	errno = 0;
	assert_null(arena_array(&a, SIZE_MAX / 8, 16));
	assert_int_equal(errno, ENOMEM);
	assert_non_null(arena_array(&a, 3, 5));
}

static void texts_are_copied(void **state)
{
	auto_arena struct arena a = { 0 };
	char text[] = "text";
	char *copy = arena_strdup(&a, text), *part = arena_strndup(&a, text, 2);
	(void)state;

	text[0] = 'x';
	assert_string_equal(copy, "text");
	assert_string_equal(part, "te");
	assert_string_equal(arena_printf(&a, "%s %d", "n", 7), "n 7");
}

static void an_empty_arena_is_usable_again(void **state)
{
	struct arena a = { 0 };
	(void)state;

	assert_non_null(arena_alloc(&a, 10000));
	arena_fini(&a);
	assert_null(a.head);
	assert_string_equal(arena_strdup(&a, "again"), "again");
	arena_fini(&a);
	arena_fini(&a);
}

static void what_is_moved_has_one_owner(void **state)
{
	auto_arena struct arena to = { 0 }, from = { 0 };
	(void)state;

	assert_non_null(arena_strdup(&to, "old"));
	const char *text = arena_strdup(&from, "new");
	arena_move(&to, &from);
	assert_null(from.head);
	assert_string_equal(text, "new");
	assert_non_null(arena_strdup(&from, "again"));
}

static void a_list_keeps_its_order_and_ends_in_null(void **state)
{
	static const char *const texts[] = { "a", "b", "c" };
	auto_arena struct arena a = { 0 };
	struct strings list = { 0 };
	(void)state;

	for (size_t i = 0; i < 1000; i++) {
		assert_int_equal(strings_add(&list, &a, texts[i % 3]), 0);
		assert_int_equal(list.count, i + 1);
		assert_null(list.items[list.count]);
	}
	for (size_t i = 0; i < 1000; i++)
		assert_ptr_equal(list.items[i], texts[i % 3]); /* borrowed, not copied */
}

static void a_list_has_the_texts_that_were_added(void **state)
{
	auto_arena struct arena a = { 0 };
	struct strings list = { 0 };
	(void)state;

	assert_false(strings_has(&list, "one"));
	assert_int_equal(strings_add(&list, &a, "one"), 0);
	assert_int_equal(strings_add(&list, &a, "two"), 0);
	assert_true(strings_has(&list, "one"));
	assert_true(strings_has(&list, "two"));
	assert_false(strings_has(&list, "tw"));
	assert_false(strings_has(&list, ""));
}

static void copies_of_a_list_are_appended(void **state)
{
	auto_arena struct arena a = { 0 };
	struct strings list = { 0 }, other = { 0 };
	(void)state;

	assert_int_equal(strings_add_all(&list, &a, &other), 0);
	assert_int_equal(list.count, 0);
	assert_int_equal(strings_add(&other, &a, "one"), 0);
	assert_int_equal(strings_add(&other, &a, "two"), 0);
	assert_int_equal(strings_add_all(&list, &a, &other), 0);
	assert_int_equal(strings_add_all(&list, &a, &other), 0);
	assert_int_equal(list.count, 4);
	assert_string_equal(list.items[3], "two");
	assert_ptr_not_equal(list.items[3], other.items[1]);
}

static void an_array_grows_and_keeps_its_items(void **state)
{
	auto_arena struct arena a = { 0 };
	size_t *items = NULL;
	(void)state;

	for (size_t i = 0; i < 1000; i++) {
		items = arena_grow(&a, items, i, sizeof(*items));
		assert_non_null(items);
		assert_int_equal(items[i], 0);
		items[i] = i;
	}
	for (size_t i = 0; i < 1000; i++)
		assert_int_equal(items[i], i);
	assert_null(arena_grow(&a, items, SIZE_MAX / 16 + 1, sizeof(*items)));
}

static void an_appended_item_is_counted_if_there_is_memory(void **state)
{
	auto_arena struct arena a = { 0 };
	const struct pair {
		int one, other;
	} *items = NULL;
	size_t count = 0;
	(void)state;

	is_malloc_refused = true;
	assert_false(arena_append(&a, items, count, (struct pair){ 1, 2 }));
	is_malloc_refused = false;
	assert_null(items);
	assert_int_equal(count, 0);
	for (int i = 0; i < 100; i++)
		assert_true(arena_append(&a, items, count, (struct pair){ i, -i }));
	assert_int_equal(count, 100);
	for (int i = 0; i < 100; i++)
		assert_true(items[i].one == i && items[i].other == -i);
}

static void without_memory_a_list_stays_as_it_was(void **state)
{
	auto_arena struct arena a = { 0 };
	struct strings list = { 0 };
	(void)state;

	is_malloc_refused = true;
	assert_int_equal(strings_add(&list, &a, "x"), -ENOMEM);
	assert_null(arena_strdup(&a, "x"));
	assert_null(arena_printf(&a, "x"));
	is_malloc_refused = false;
	assert_int_equal(strings_add(&list, &a, NULL), -ENOMEM); /* what arena_strdup() returned */
	assert_int_equal(list.count, 0);
	assert_null(list.items);
	assert_int_equal(strings_add(&list, &a, "x"), 0);
	assert_int_equal(list.count, 1);
}

__attribute__((format(printf, 3, 4))) static int add_sentence(struct strings *list, struct arena *a,
							      const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	int rc = strings_vprintf(list, a, fmt, ap);
	va_end(ap);
	return rc;
}

static void a_sentence_is_kept_and_a_long_one_is_cut(void **state)
{
	auto_arena struct arena a = { 0 };
	struct strings list = { 0 };
	(void)state;

	assert_int_equal(add_sentence(&list, &a, "%d of %s", 2, "three"), 0);
	assert_int_equal(add_sentence(&list, &a, "%600s", "x"), 0);
	assert_int_equal(list.count, 2);
	assert_string_equal(list.items[0], "2 of three");
	assert_int_equal(strlen(list.items[1]), STRINGS_SENTENCE_MAX - 1);
}

static void a_list_is_sorted_and_a_variable_is_found_by_its_name(void **state)
{
	(void)state;
	auto_arena struct arena a = { 0 };
	struct strings env = { 0 };
	strings_sort(&env);
	assert_null(strings_find_variable(&env, "A=1"));
	assert_int_equal(strings_add(&env, &a, "B=2"), 0);
	assert_int_equal(strings_add(&env, &a, "AB=1"), 0);
	assert_int_equal(strings_add(&env, &a, "A"), 0);
	strings_sort(&env);
	assert_string_equal(env.items[0], "A");
	assert_string_equal(env.items[2], "B=2");
	assert_null(strings_find_variable(&env, "A=1"));
	assert_null(strings_find_variable(&env, "B"));
	assert_ptr_equal(strings_find_variable(&env, "AB=other"), &env.items[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_is_zeroed_aligned_and_apart),
		cmocka_unit_test(nothing_at_all_is_still_a_place),
		cmocka_unit_test(sizes_that_overflow_are_no_memory),
		cmocka_unit_test(texts_are_copied),
		cmocka_unit_test(an_empty_arena_is_usable_again),
		cmocka_unit_test(what_is_moved_has_one_owner),
		cmocka_unit_test(a_list_keeps_its_order_and_ends_in_null),
		cmocka_unit_test(a_list_has_the_texts_that_were_added),
		cmocka_unit_test(a_sentence_is_kept_and_a_long_one_is_cut),
		cmocka_unit_test(copies_of_a_list_are_appended),
		cmocka_unit_test(an_array_grows_and_keeps_its_items),
		cmocka_unit_test(an_appended_item_is_counted_if_there_is_memory),
		cmocka_unit_test(without_memory_a_list_stays_as_it_was),
		cmocka_unit_test(a_list_is_sorted_and_a_variable_is_found_by_its_name),
	};

	return cmocka_run_group_tests_name("arena", tests, NULL, NULL);
}
