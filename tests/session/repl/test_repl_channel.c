/* SPDX-License-Identifier: Apache-2.0 */
/* The channel of a session's interpreter: what it may send, and how little it can do with it. */
#include "runtime/session/repl/repl_channel.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "profiles/plan/plan.h"
#include "runtime/base/scope.h"

#define CELL 7

struct reading {
	struct arena arena;
	struct cell_outcome cell;
	struct repl_reader reader;
	struct cj_error err;
};

static void begin(struct reading *r)
{
	*r = (struct reading){ .cell.number = CELL };
	repl_reader_init(&r->reader, &r->arena, &r->cell);
}

static size_t put(uint8_t *out, char kind, const void *data, size_t size)
{
	out[0] = (uint8_t)kind;
	for (int i = 0; i < 4; i++)
		out[1 + i] = (uint8_t)(size >> (8 * i));
	memcpy(out + 5, data, size);
	return 5 + size;
}

static int take(struct reading *r, char kind, const void *data, size_t size)
{
	auto_free uint8_t *frame = malloc(5 + size);
	assert_non_null(frame);
	return repl_reader_take(&r->reader, frame, put(frame, kind, data, size), &r->err);
}
#define TAKE(r, kind, literal) take(r, kind, literal, sizeof(literal) - 1)

#define END "\x07\0\0\0\0\0"

static void assert_refused(struct reading *r, int rc, const char *what)
{
	assert_int_equal(rc, -EPROTO);
	assert_non_null(strstr(r->err.msg, what));
	arena_fini(&r->arena);
}

static void a_cell_has_displays_a_value_and_an_end(void **state)
{
	(void)state;
	struct reading r;
	begin(&r);
	assert_int_equal(TAKE(&r, 'D', "image/png\0\x89PNG"), REPL_GOES_ON);
	assert_int_equal(TAKE(&r, 'V', "42"), REPL_GOES_ON);
	assert_int_equal(TAKE(&r, 'E', END), REPL_ENDED);
	assert_string_equal(r.cell.value, "42");
	assert_int_equal(r.cell.ndisplays, 1);
	assert_string_equal(r.cell.displays[0].type, "image/png");
	assert_int_equal(r.cell.displays[0].size, 4);
	assert_memory_equal(r.cell.displays[0].bytes, "\x89PNG", 4);
	assert_int_equal(r.cell.exit_code, 0);
	arena_fini(&r.arena);
}

static void an_exception_has_three_parts(void **state)
{
	(void)state;
	struct reading r;
	begin(&r);
	assert_int_equal(TAKE(&r, 'X', "KeyError\0'k'\0Traceback"), REPL_GOES_ON);
	assert_int_equal(TAKE(&r, 'E', "\x07\0\0\0\xff\3"), REPL_ENDED);
	assert_int_equal(r.cell.exit_code, 255);
	assert_string_equal(r.cell.exception_type, "KeyError");
	assert_string_equal(r.cell.exception_message, "'k'");
	assert_string_equal(r.cell.traceback, "Traceback");
	assert_int_equal(r.cell.left_out, 3);
	arena_fini(&r.arena);

	begin(&r);
	assert_refused(&r, TAKE(&r, 'X', "KeyError\0'k'"), "lacks a part");
}

static void a_cell_begins_once(void **state)
{
	(void)state;
	struct reading r;
	begin(&r);
	assert_false(r.cell.has_begun);
	assert_int_equal(TAKE(&r, 'B', "\x07\0\0\0"), REPL_GOES_ON);
	assert_true(r.cell.has_begun);
	assert_refused(&r, TAKE(&r, 'B', "\x07\0\0\0"), "two begins");
}

static void bytes_may_come_one_at_a_time(void **state)
{
	(void)state;
	struct reading r;
	uint8_t all[64];
	size_t size = put(all, 'V', "abc", 3);
	size += put(all + size, 'E', END, sizeof(END) - 1);
	begin(&r);
	for (size_t i = 0; i < size; i++)
		assert_int_equal(repl_reader_take(&r.reader, all + i, 1, &r.err),
				 i + 1 < size ? REPL_GOES_ON : REPL_ENDED);
	assert_string_equal(r.cell.value, "abc");
	arena_fini(&r.arena);
}

static void the_interpreter_says_once_that_it_is_ready(void **state)
{
	(void)state;
	struct reading r;
	begin(&r);
	assert_refused(&r, TAKE(&r, 'R', ""), "a second 'ready'");
	begin(&r);
	repl_reader_init(&r.reader, &r.arena, NULL);
	assert_int_equal(TAKE(&r, 'R', ""), REPL_READY);
	assert_refused(&r, TAKE(&r, 'V', "1"), "no frame");
}

static void what_our_interpreters_do_not_send_is_refused(void **state)
{
	(void)state;
	static const struct {
		char kind;
		const char *data;
		size_t size;
		const char *said;
	} cases[] = {
		{ 'Z', "", 0, "no frame" },
		{ 'D', "image/png", 9, "unknown type" },
		{ 'D', "text/x-shell\0x", 14, "unknown type" },
		{ 'D', "", 0, "unknown type" },
		{ 'X', "", 0, "lacks a part" },
		{ 'E', "\x08\0\0\0\0\0", 6, "another cell" },
		{ 'E', "\x07\0\0\0\0", 5, "another cell" },
		{ 'E', "\x07\0\0\0\0\0\0", 7, "too large" },
		{ 'R', "x", 1, "too large" },
		{ 'B', "\x08\0\0\0", 4, "another cell" },
		{ 'B', "\x07\0\0", 3, "another cell" },
		{ 'B', "\x07\0\0\0\0", 5, "too large" },
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct reading r;
		begin(&r);
		assert_refused(&r, take(&r, cases[i].kind, cases[i].data, cases[i].size),
			       cases[i].said);
	}
}

static void a_size_is_refused_before_memory_is_asked_for(void **state)
{
	(void)state;
	struct reading r;
	begin(&r);
	assert_refused(&r, repl_reader_take(&r.reader, "V\xff\xff\xff\xff", 5, &r.err),
		       "too large");
	assert_null(r.reader.data);
}

static void displays_and_frames_are_limited(void **state)
{
	(void)state;
	struct reading r;
	begin(&r);
	for (int i = 0; i < CELL_DISPLAYS_MAX; i++)
		assert_int_equal(TAKE(&r, 'D', "text/html\0x"), REPL_GOES_ON);
	assert_refused(&r, TAKE(&r, 'D', "text/html\0x"), "too many displays");

	begin(&r);
	auto_free uint8_t *large = calloc(1, 4 << 20);
	assert_non_null(large);
	memcpy(large, "image/png", 9);
	assert_int_equal(take(&r, 'D', large, 4 << 20), REPL_GOES_ON);
	assert_int_equal(take(&r, 'D', large, 4 << 20), REPL_GOES_ON);
	assert_refused(&r, take(&r, 'D', large, 4 << 20), "too many displays");

	begin(&r);
	for (int i = 0; i < CELL_FRAMES_MAX; i++)
		assert_int_equal(TAKE(&r, 'X', "a\0b\0c"), REPL_GOES_ON);
	assert_refused(&r, TAKE(&r, 'X', "a\0b\0c"), "too many frames");
}

static void a_second_value_and_bytes_behind_the_end_are_refused(void **state)
{
	(void)state;
	struct reading r;
	begin(&r);
	assert_int_equal(TAKE(&r, 'V', "1"), REPL_GOES_ON);
	assert_refused(&r, TAKE(&r, 'V', "2"), "two values");

	uint8_t all[32];
	size_t size = put(all, 'E', END, sizeof(END) - 1);
	all[size] = 'V';
	begin(&r);
	assert_refused(&r, repl_reader_take(&r.reader, all, size + 1, &r.err), "behind the end");
}

static void a_request_ends_with_its_code(void **state)
{
	(void)state;
	static const char *argv[] = { "python3", "/box/main.py", "a", NULL };
	static const struct copy_spec files[] = {
		{ .target = "/box/f", .bytes = "xy", .size = 2 },
		{ .target = "/box/F", .bytes = "", .is_executable = true },
	};
	const struct program program = { .argv = { argv, 3 },
					 .code_path = "/box/main.py",
					 .code_text = "1+1",
					 .code_size = 3,
					 .args_json = "{}",
					 .files = files,
					 .nfiles = 2 };
	static const char expected[] = "a\1\0\0\0a"
				       "f\x09\0\0\0/box/f\0xy"
				       "F\7\0\0\0/box/F\0"
				       "f\x11\0\0\0/box/args.json\0{}"
				       "i\0\0\0\0"
				       "c\7\0\0\0\2\1\0\0"
				       "1+1";
	size_t size = 0;
	auto_free uint8_t *frames =
	    repl_request_write(258, &program, (struct blob){ "", 0 }, &size);
	assert_non_null(frames);
	assert_int_equal(size, sizeof(expected) - 1);
	assert_memory_equal(frames, expected, size);
}

static void a_request_that_is_too_large_is_not_written(void **state)
{
	(void)state;
	const struct program program = { .code_text = "", .code_size = CELL_REQUEST_MAX };
	size_t size = 0;
	assert_null(repl_request_write(1, &program, (struct blob){ 0 }, &size));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_cell_has_displays_a_value_and_an_end),
		cmocka_unit_test(an_exception_has_three_parts),
		cmocka_unit_test(a_cell_begins_once),
		cmocka_unit_test(bytes_may_come_one_at_a_time),
		cmocka_unit_test(the_interpreter_says_once_that_it_is_ready),
		cmocka_unit_test(what_our_interpreters_do_not_send_is_refused),
		cmocka_unit_test(a_size_is_refused_before_memory_is_asked_for),
		cmocka_unit_test(displays_and_frames_are_limited),
		cmocka_unit_test(a_second_value_and_bytes_behind_the_end_are_refused),
		cmocka_unit_test(a_request_ends_with_its_code),
		cmocka_unit_test(a_request_that_is_too_large_is_not_written),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
