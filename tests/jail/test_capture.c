/* SPDX-License-Identifier: Apache-2.0 */
/* What is kept of a stream is its head and its tail, whatever pieces it came in. */
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "runtime/base/scope.h"
#include "runtime/base/text.h"
#include "runtime/jail/outcome.h"

/* WRAP: malloc realloc */
static bool no_memory;
void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__real_realloc(void *old, size_t size);
void *__wrap_realloc(void *old, size_t size);

void *__wrap_malloc(size_t size)
{
	return no_memory ? NULL : __real_malloc(size);
}

void *__wrap_realloc(void *old, size_t size)
{
	return no_memory ? NULL : __real_realloc(old, size);
}

#define auto_capture __attribute__((cleanup(capture_fini)))

static char *text_of(const struct capture *c, size_t *out_size, size_t *out_kept)
{
	char *text = capture_text(c, out_size, out_kept);
	assert_non_null(text);
	assert_int_equal(text[*out_size], '\0');
	return text;
}

static void assert_text(const struct capture *c, const char *expected)
{
	size_t size, kept;
	auto_free char *text = text_of(c, &size, &kept);
	assert_string_equal(text, expected);
	assert_int_equal(size, strlen(expected));
}

static void add(struct capture *c, const char *text)
{
	assert_int_equal(capture_add(c, text, strlen(text)), 0);
}

static void nothing_is_an_empty_text(void **state)
{
	(void)state;
	auto_capture struct capture c;
	capture_init(&c, 10);
	assert_text(&c, "");
	assert_false(capture_is_truncated(&c));
}

static void up_to_the_cap_every_byte_is_kept(void **state)
{
	(void)state;
	auto_capture struct capture c;
	capture_init(&c, 10);
	add(&c, "01234");
	add(&c, "56789");
	assert_false(capture_is_truncated(&c));
	assert_text(&c, "0123456789");
}

static void past_the_cap_head_and_tail_are_kept(void **state)
{
	(void)state;
	auto_capture struct capture c;
	capture_init(&c, 10);
	add(&c, "0123456789abcdefghijklmnop");
	assert_true(capture_is_truncated(&c));
	assert_text(&c, "01234\n[... 16 bytes left out ...]\nlmnop");
	assert_int_equal(c.total, 26);
}

static void a_cap_of_nothing_counts_and_keeps_nothing(void **state)
{
	(void)state;
	auto_capture struct capture c;
	capture_init(&c, 0);
	add(&c, "abc");
	assert_true(capture_is_truncated(&c));
	assert_text(&c, "\n[... 3 bytes left out ...]\n");
}

static void a_cap_of_one_keeps_the_first_byte(void **state)
{
	(void)state;
	auto_capture struct capture c;
	capture_init(&c, 1);
	add(&c, "abc");
	assert_text(&c, "a\n[... 2 bytes left out ...]\n");
}

/* A model that is too simple to be wrong, against random pieces and caps. */
static void assert_like_model(const struct capture *c, const uint8_t *all, size_t size)
{
	size_t head = c->cap - c->cap / 2, tail = c->cap / 2, text_size, kept;
	auto_free char *text = text_of(c, &text_size, &kept);

	assert_int_equal(c->total, size);
	if (size <= c->cap) {
		assert_int_equal(text_size, size);
		assert_int_equal(kept, size);
		assert_memory_equal(text, all, size);
		return;
	}
	assert_true(capture_is_truncated(c));
	assert_int_equal(kept, c->cap);
	assert_memory_equal(text, all, head);
	assert_memory_equal(text + text_size - tail, all + size - tail, tail);
}

static void any_pieces_give_the_same_as_one(void **state)
{
	(void)state;
	static uint8_t all[60000];
	uint32_t random = 1;
	for (size_t i = 0; i < sizeof(all); i++)
		all[i] = (uint8_t)('a' + i % 26); /* UTF-8: nothing is cut away */

	for (unsigned round = 0; round < 400; round++) {
		auto_capture struct capture c;
		size_t at = 0;
		random = random * 1664525 + 1013904223;
		size_t cap = random % (round % 2 ? 40 : 40000);
		size_t size = random / 7 % sizeof(all);
		capture_init(&c, cap);
		while (at < size) {
			random = random * 1664525 + 1013904223;
			size_t piece = 1 + (random >> 8) % (round % 3 ? 17 : 9000);
			if (piece > size - at)
				piece = size - at;
			assert_int_equal(capture_add(&c, all + at, piece), 0);
			at += piece;
		}
		assert_true(c.head_room + c.tail_room <= cap);
		assert_like_model(&c, all, size);
	}
}

static void memory_grows_only_as_output_comes(void **state)
{
	(void)state;
	auto_capture struct capture c;
	capture_init(&c, 64u << 20);
	add(&c, "hello");
	assert_true(c.head_room <= 4096);
	assert_int_equal(c.tail_room, 0);
}

/* Three-byte characters against every cap: wherever the cut falls, the text stays UTF-8. */
static void no_character_is_split_by_the_cut(void **state)
{
	(void)state;
	for (size_t cap = 0; cap < 40; cap++) {
		auto_capture struct capture c;
		size_t size, kept;
		capture_init(&c, cap);
		for (int i = 0; i < 20; i++)
			add(&c, i % 3 ? "\xe2\x82\xac" : "\xf0\x9f\x90\xa7"); /* euro, penguin */
		auto_free char *text = text_of(&c, &size, &kept);
		assert_true(is_utf8(text, size));
		assert_true(kept <= cap && kept + 6 >= cap);

		char marker[64];
		(void)snprintf(marker, sizeof(marker), "\n[... %zu bytes left out ...]\n",
			       (size_t)c.total - kept);
		assert_non_null(strstr(text, marker));
	}
}

static void bytes_that_are_no_utf8_are_not_cut(void **state)
{
	(void)state;
	auto_capture struct capture c;
	size_t size, kept;
	capture_init(&c, 8);
	/* the head ends in a lead byte, but what is before it is Latin-1 */
	add(&c, "\xff\xff\xff\xe2zzzzzzzz\x82\xff\xff\xff");
	auto_free char *text = text_of(&c, &size, &kept);
	assert_int_equal(kept, 8);
	assert_memory_equal(text, "\xff\xff\xff\xe2", 4);
	assert_memory_equal(text + size - 4, "\x82\xff\xff\xff", 4);
}

static void bytes_with_nul_are_kept(void **state)
{
	(void)state;
	auto_capture struct capture c;
	size_t size, kept;
	capture_init(&c, 100);
	assert_int_equal(capture_add(&c, "a\0b", 3), 0);
	auto_free char *text = text_of(&c, &size, &kept);
	assert_int_equal(size, 3);
	assert_memory_equal(text, "a\0b", 3);
}

static void without_memory_bytes_are_still_counted(void **state)
{
	(void)state;
	auto_capture struct capture c;
	capture_init(&c, 100);
	no_memory = true;
	int rc = capture_add(&c, "lost", 4);
	no_memory = false;
	assert_int_equal(rc, -ENOMEM);
	assert_int_equal(c.total, 4);
	assert_true(capture_is_truncated(&c));
	add(&c, "late");
	assert_text(&c, "\n[... 8 bytes left out ...]\n");
}

static void a_head_never_gets_a_hole(void **state)
{
	(void)state;
	static const char filling[4096];
	auto_capture struct capture c;
	capture_init(&c, 100000);
	assert_int_equal(capture_add(&c, filling, sizeof(filling)), 0);
	no_memory = true;
	int rc = capture_add(&c, "gap", 3);
	no_memory = false;
	assert_int_equal(rc, -ENOMEM);
	add(&c, "end");
	assert_int_equal(c.head_size, sizeof(filling));
	assert_int_equal(c.tail_size, 3);
	assert_true(capture_is_truncated(&c));
}

static void a_tail_without_memory_keeps_the_newest_it_can(void **state)
{
	(void)state;
	static const char filling[5000];
	auto_capture struct capture c;
	size_t size, kept;
	capture_init(&c, 10000);
	assert_int_equal(capture_add(&c, filling, sizeof(filling)), 0);
	assert_int_equal(capture_add(&c, filling, 4096), 0); /* the tail's first room is full */
	no_memory = true;
	int rc = capture_add(&c, "newest", 6);
	no_memory = false;
	assert_int_equal(rc, -ENOMEM);
	auto_free char *text = text_of(&c, &size, &kept);
	assert_string_equal(text + size - 6, "newest");
	assert_int_equal(c.total - kept, 6);
}

static void the_end_of_a_line_is_found_past_the_cap(void **state)
{
	(void)state;
	auto_capture struct capture c;
	capture_init(&c, 8);
	assert_true(capture_ends_line(&c)); /* nothing came */
	assert_int_equal(capture_add(&c, "ab", 2), 0);
	assert_false(capture_ends_line(&c));
	assert_int_equal(capture_add(&c, "c\n", 2), 0);
	assert_true(capture_ends_line(&c));
	for (unsigned i = 0; i < 9; i++) { /* at every place of the ring */
		assert_int_equal(capture_add(&c, "x", 1), 0);
		assert_false(capture_ends_line(&c));
		assert_int_equal(capture_add(&c, "\n", 1), 0);
		assert_true(capture_ends_line(&c));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_an_empty_text),
		cmocka_unit_test(up_to_the_cap_every_byte_is_kept),
		cmocka_unit_test(past_the_cap_head_and_tail_are_kept),
		cmocka_unit_test(a_cap_of_nothing_counts_and_keeps_nothing),
		cmocka_unit_test(a_cap_of_one_keeps_the_first_byte),
		cmocka_unit_test(any_pieces_give_the_same_as_one),
		cmocka_unit_test(memory_grows_only_as_output_comes),
		cmocka_unit_test(no_character_is_split_by_the_cut),
		cmocka_unit_test(bytes_that_are_no_utf8_are_not_cut),
		cmocka_unit_test(bytes_with_nul_are_kept),
		cmocka_unit_test(without_memory_bytes_are_still_counted),
		cmocka_unit_test(a_head_never_gets_a_hole),
		cmocka_unit_test(the_end_of_a_line_is_found_past_the_cap),
		cmocka_unit_test(a_tail_without_memory_keeps_the_newest_it_can),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
