/* SPDX-License-Identifier: Apache-2.0 */
/* text: what a user may write as a number, and how untrusted bytes are escaped. */
#include "runtime/base/text.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

struct accepted {
	const char *text;
	uint64_t value;
};

struct refused {
	const char *text, *message; /* a part of the message */
};

typedef int (*parser)(const char *text, uint64_t *out, struct cj_error *err);

static int parse_u64_up_to_100(const char *text, uint64_t *out, struct cj_error *err)
{
	return parse_u64(text, 1, 100, out, err);
}

static void expect_accepted(parser parse, const struct accepted *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct cj_error err = { 0 };
		uint64_t value = 0;

		if (parse(rows[i].text, &value, &err) != 0)
			fail_msg("'%s': %s", rows[i].text, err.msg);
		if (value != rows[i].value)
			fail_msg("'%s' is %llu", rows[i].text, (unsigned long long)value);
	}
}

static void expect_refused(parser parse, const struct refused *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct cj_error err = { 0 };
		uint64_t value = 42;

		if (parse(rows[i].text, &value, &err) != -EINVAL || err.code != EINVAL)
			fail_msg("'%s' is taken", rows[i].text);
		if (!strstr(err.msg, rows[i].message))
			fail_msg("'%s': %s", rows[i].text, err.msg);
		assert_int_equal(value, 42); /* written only on success */
	}
}

static void a_whole_number_is_decimal_digits_in_range(void **state)
{
	static const struct accepted good[] = {
		{ "1", 1 }, { "64", 64 }, { "100", 100 }, { "007", 7 }
	};
	static const struct refused bad[] = {
		{ "", "'' is not a whole number (it is empty)" },
		{ "-5", "(it has a sign)" },
		{ "+5", "(it has a sign)" },
		{ " 5", "(it has a blank in it)" },
		{ "5 ", "(it has a blank in it)" },
		{ "5\n", "(it has a blank in it)" },
		{ "0x10", "(it is hexadecimal)" },
		{ "1,000", "(it has a comma in it)" },
		{ "1.5", "'1.5' is not a whole number; write decimal digits only" },
		{ "1e2", "'1e2' is not a whole number" },
		{ "\xd9\xa3", "is not a whole number" },
		{ "0", "'0' is too small; at least 1 is needed" },
		{ "101", "'101' is too large; at most 100 is possible" },
		{ "18446744073709551616", "too large" },
		{ "99999999999999999999999999", "too large" },
	};
	(void)state;

	expect_accepted(parse_u64_up_to_100, good, COUNT(good));
	expect_refused(parse_u64_up_to_100, bad, COUNT(bad));
}

static void the_largest_number_is_no_overflow(void **state)
{
	struct cj_error err = { 0 };
	uint64_t value = 0;
	(void)state;

	assert_int_equal(parse_u64("18446744073709551615", 0, UINT64_MAX, &value, &err), 0);
	assert_true(value == UINT64_MAX);
	assert_int_equal(parse_u64("00018446744073709551615", 0, UINT64_MAX, &value, &err), 0);
	assert_int_equal(parse_u64("18446744073709551616", 0, UINT64_MAX, &value, &err), -EINVAL);
	assert_int_equal(parse_u64("184467440737095516150", 0, UINT64_MAX, &value, &err), -EINVAL);
}

static void a_size_has_binary_units_in_any_case(void **state)
{
	static const struct accepted good[] = {
		{ "1", 1 },
		{ "4096", 4096 },
		{ "4096B", 4096 },
		{ "512k", 512 << 10 },
		{ "512K", 512 << 10 },
		{ "64M", 64 << 20 },
		{ "64m", 64 << 20 },
		{ "64MB", 64 << 20 },
		{ "64MiB", 64 << 20 },
		{ "64mib", 64 << 20 },
		{ "1G", 1 << 30 },
		{ "2T", UINT64_C(2) << 40 },
		{ "8388607T", UINT64_C(8388607) << 40 },
		{ "9223372036854775807", INT64_MAX },
	};
	(void)state;

	expect_accepted(parse_size, good, COUNT(good));
}

static void an_invalid_size_is_refused_with_an_example(void **state)
{
	static const struct refused bad[] = {
		{ "12X",
		  "'12X' is not a size; write a whole number with K, M, G or T behind it, such as "
		  "64M" },
		{ "", "(it is empty)" },
		{ "M", "'M' is not a size" },
		{ "1.5G", "(it has a fraction)" },
		{ "-1", "(it has a sign)" },
		{ "+1M", "(it has a sign)" },
		{ "64 M", "(it has a blank in it)" },
		{ "0x1000", "(it is hexadecimal)" },
		{ "64MM", "is not a size" },
		{ "64Mi", "is not a size" },
		{ "64iB", "is not a size" },
		{ "64BB", "is not a size" },
		{ "0", "'0' is too small a size; at least 1 byte is needed" },
		{ "0G", "too small" },
		{ "8388608T", "'8388608T' is too large a size; at most 8388607T is possible" },
		{ "16777216T", "too large" },
		{ "99999999999999999999", "too large" },
		{ "9223372036854775808", "too large" },
	};
	(void)state;

	expect_refused(parse_size, bad, COUNT(bad));
}

static void a_duration_has_a_unit_or_is_seconds(void **state)
{
	static const struct accepted good[] = {
		{ "30", 30000 },          { "500ms", 500 }, { "10s", 10000 },   { "2m", 120000 },
		{ "1h", 3600000 },        { "1.5s", 1500 }, { "1.5", 1500 },    { ".5s", 500 },
		{ "0.001", 1 },           { "1ms", 1 },     { "1.001s", 1001 }, { "0.5m", 30000 },
		{ "8760h", 31536000000 },
	};
	(void)state;

	expect_accepted(parse_duration, good, COUNT(good));
}

static void an_invalid_duration_is_refused_with_an_example(void **state)
{
	static const struct refused bad[] = {
		{ "10 s",
		  "'10 s' is not a duration (it has a blank in it); write a number with ms, s, m "
		  "or h behind it, such as 10s" },
		{ "", "(it is empty)" },
		{ "s", "is not a duration" },
		{ "1.s", "is not a duration" },
		{ ".", "is not a duration" },
		{ "1..5s", "is not a duration" },
		{ "10S", "is not a duration" },
		{ "10sec", "is not a duration" },
		{ "1h30m", "is not a duration" },
		{ "-1s", "(it has a sign)" },
		{ "1e3", "is not a duration" },
		{ "0x10", "(it is hexadecimal)" },
		{ "inf", "is not a duration" },
		{ "1.0000001s", "is not a duration" },
		{ "0", "'0' is too short; at least 1ms is needed" },
		{ "0.0001s", "too short" },
		{ "1.5ms", "'1.5ms' is finer than a millisecond; write it in whole ms" },
		{ "8761h", "'8761h' is too long; at most a year (8760h) is possible" },
		{ "8760.001h", "too long" },
		{ "99999999999999999999s", "too long" },
		{ "1099511627776h", "too long" },
	};
	(void)state;

	expect_refused(parse_duration, bad, COUNT(bad));
}

static void cpus_are_thousandths(void **state)
{
	static const struct accepted good[] = {
		{ "1", 1000 },  { "0.5", 500 },    { ".5", 500 },       { "2", 2000 },
		{ "0.01", 10 }, { "1.125", 1125 }, { "1024", 1024000 }, { "0.500000", 500 },
	};
	static const struct refused bad[] = {
		{ "", "(it is empty)" },
		{ "two", "'two' is not a number of CPUs; write one such as 0.5 or 2" },
		{ "50%", "is not a number of CPUs" },
		{ "-1", "(it has a sign)" },
		{ "1,5", "(it has a comma in it)" },
		{ "0", "'0' is too little CPU; at least 0.01 is needed" },
		{ "0.009", "too little" },
		{ "1024.001", "too many CPUs; at most 1024" },
		{ "99999999999999999999", "too many" },
		{ "0.0105", "finer than a thousandth" },
	};
	(void)state;

	expect_accepted(parse_cpus, good, COUNT(good));
	expect_refused(parse_cpus, bad, COUNT(bad));
}

static void a_bool_is_one_of_six_texts(void **state)
{
	static const char *const bad[] = { "", "True", "on", "2", "yes ", "t" };
	struct cj_error err = { 0 };
	bool value = false;
	(void)state;

	assert_int_equal(parse_bool("yes", &value, &err), 0);
	assert_true(value);
	assert_int_equal(parse_bool("no", &value, &err), 0);
	assert_false(value);
	assert_int_equal(parse_bool("true", &value, &err), 0);
	assert_true(value);
	assert_int_equal(parse_bool("0", &value, &err), 0);
	assert_false(value);
	assert_int_equal(parse_bool("1", &value, &err), 0);
	assert_true(value);
	for (size_t i = 0; i < COUNT(bad); i++) {
		assert_int_equal(parse_bool(bad[i], &value, &err), -EINVAL);
		assert_true(value);
	}
	assert_string_equal(err.msg, "'t' is neither yes nor no; write true or false");
}

static void a_long_value_is_quoted_in_part_and_a_short_one_whole(void **state)
{
	char value_text[4096];
	struct cj_error err = { 0 };
	uint64_t value;
	(void)state;

	memset(value_text, 'x', sizeof(value_text) - 1);
	value_text[sizeof(value_text) - 1] = '\0';
	assert_int_equal(parse_size(value_text, &value, &err), -EINVAL);
	assert_non_null(strstr(err.msg, "xxx...' is not a size; write a whole number"));

	for (size_t i = 0; i + 2 < sizeof(value_text); i += 2) /* 31 umlauts fit and a half */
		memcpy(value_text + 1 + i, "\xc3\xbc", 2);
	value_text[sizeof(value_text) - 1] = '\0';
	assert_int_equal(parse_size(value_text, &value, &err), -EINVAL);
	assert_non_null(strstr(err.msg, "\xc3\xbc...'"));
	assert_true(is_utf8(err.msg, strlen(err.msg)));
}

static void a_name_is_short_lower_case_and_safe_in_a_path(void **state)
{
	static const char *const good[] = {
		"a", "python", "py3", "3d", "my-profile", "a_b", "abcdefghijklmnopqrstuvwxyz012345"
	};
	static const char *const bad[] = { "",
					   "-a",
					   "_a",
					   "Python",
					   "a.b",
					   "a/b",
					   "..",
					   "a ",
					   "a\nb",
					   "\xc3\xbc",
					   "abcdefghijklmnopqrstuvwxyz0123456" };
	(void)state;

	for (size_t i = 0; i < COUNT(good); i++)
		assert_true(is_name(good[i]));
	for (size_t i = 0; i < COUNT(bad); i++)
		assert_false(is_name(bad[i]));
}

static void a_line_is_found_only_whole(void **state)
{
	static const char text[] = "first\nUid:\t1\t1\nlast";
	(void)state;

	assert_true(text_has_line(text, "first"));
	assert_true(text_has_line(text, "Uid:\t1\t1"));
	assert_true(text_has_line(text, "last"));
	assert_true(text_has_line("first\n\nlast", ""));
	assert_false(text_has_line(text, "Uid:\t1"));
	assert_false(text_has_line(text, "id:\t1\t1"));
	assert_false(text_has_line(text, "las"));
	assert_false(text_has_line(text, "first\n"));
	assert_false(text_has_line(text, ""));
	assert_false(text_has_line("", ""));
}

static void a_text_is_what_stands_behind_its_beginning(void **state)
{
	static const char text[] = "unix:/a/b";
	(void)state;

	assert_ptr_equal(text_after(text, "unix:"), text + 5);
	assert_string_equal(text_after(text, text), "");
	assert_ptr_equal(text_after(text, ""), text);
	assert_null(text_after(text, "unix:/a/b/"));
	assert_null(text_after("", "u"));
	assert_true(text_begins_with(text, "unix"));
	assert_false(text_begins_with(text, "nix"));
}

static void a_path_is_at_or_below_another_by_whole_components(void **state)
{
	(void)state;

	assert_string_equal(text_path_below("/a", "/a"), "");
	assert_string_equal(text_path_below("/a/b", "/a"), "/b");
	assert_null(text_path_below("/ab", "/a"));
	assert_null(text_path_below("/a", "/a/b"));
}

static void utf8_is_strict(void **state)
{
	static const struct {
		const char *bytes;
		size_t size, good;
	} rows[] = {
		{ "", 0, 0 },
		{ "a\0b", 3, 3 },
		{ "\x7f", 1, 1 },
		{ "\xc2\x80", 2, 2 },
		{ "\xdf\xbf", 2, 2 },
		{ "\xe0\xa0\x80", 3, 3 },
		{ "\xed\x9f\xbf", 3, 3 },
		{ "\xee\x80\x80", 3, 3 },
		{ "\xef\xbf\xbf", 3, 3 },
		{ "\xf0\x90\x80\x80", 4, 4 },
		{ "\xf4\x8f\xbf\xbf", 4, 4 },
		{ "\x80", 1, 0 }, /* no lead */
		{ "\xbf", 1, 0 },
		{ "\xc0\xaf", 2, 0 }, /* overlong '/' */
		{ "\xc1\xbf", 2, 0 },
		{ "\xe0\x80\xaf", 3, 0 },
		{ "\xe0\x9f\xbf", 3, 0 },
		{ "\xf0\x80\x80\xaf", 4, 0 },
		{ "\xf0\x8f\xbf\xbf", 4, 0 },
		{ "\xed\xa0\x80", 3, 0 }, /* surrogates */
		{ "\xed\xbf\xbf", 3, 0 },
		{ "\xf4\x90\x80\x80", 4, 0 }, /* above U+10FFFF */
		{ "\xf5\x80\x80\x80", 4, 0 },
		{ "\xff", 1, 0 },
		{ "\xfe", 1, 0 },
		{ "\xc3", 1, 0 }, /* cut */
		{ "\xe2\x82", 2, 0 },
		{ "\xf0\x9f\x98", 3, 0 },
		{ "\xe2\x82\x41", 3, 0 },
		{ "ab\xc3(", 4, 2 },
		{ "12345678\xff", 9, 8 },       /* past the eight bytes at once */
		{ "1234567\xc3\xbcz", 10, 10 }, /* across them */
		{ "1234567\xc3", 8, 7 },
		{ "1234567812345678\x80", 17, 16 },
	};
	(void)state;

	for (size_t i = 0; i < COUNT(rows); i++) {
		if (utf8_prefix(rows[i].bytes, rows[i].size) != rows[i].good)
			fail_msg("row %zu: %zu", i, utf8_prefix(rows[i].bytes, rows[i].size));
		assert_int_equal(is_utf8(rows[i].bytes, rows[i].size),
				 rows[i].good == rows[i].size);
	}
}

/* Every code point, as an encoder that knows nothing of strictness writes it. */
static void utf8_takes_every_character_and_no_surrogate(void **state)
{
	(void)state;

	for (uint32_t c = 0x80; c <= 0x10ffff; c++) {
		uint8_t b[4];
		size_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
		uint32_t rest = c;

		for (size_t i = n; i-- > 1; rest >>= 6)
			b[i] = (uint8_t)(0x80 | (rest & 0x3f));
		b[0] = (uint8_t)(rest | (0xf0u << (4 - n)));
		if (is_utf8(b, n) != (c < 0xd800 || c > 0xdfff))
			fail_msg("U+%04X", c);
		if (utf8_prefix(b, n - 1) != 0)
			fail_msg("U+%04X, cut", c);
	}
}

static void expect_escaped(const char *bytes, size_t size, bool keep_layout, const char *expected)
{
	char out[256];

	assert_int_equal(text_escape(bytes, size, keep_layout, out, sizeof(out)), size);
	assert_string_equal(out, expected);
}

static void characters_that_move_the_cursor_are_escaped(void **state)
{
	(void)state;

	expect_escaped("plain \xc3\xbc \xf0\x9f\x98\x80", 13, false,
		       "plain \xc3\xbc \xf0\x9f\x98\x80");
	expect_escaped("\x1b[2J\x07\x7f", 6, false, "\\x1b[2J\\x07\\x7f");
	expect_escaped("a\0b", 3, false, "a\\x00b");
	expect_escaped("a\tb\r\nc", 6, false, "a\\x09b\\x0d\\x0ac");
	expect_escaped("\xc2\x9b"
		       "31m\xc2\xa0",
		       7, false, "\\xc2\\x9b31m\xc2\xa0");
	expect_escaped("\xff\xc3", 2, false, "\\xff\\xc3");
	expect_escaped("a\xe2\x80\xae"
		       "b",
		       5, false, "a\\xe2\\x80\\xaeb"); /* right to left */
	expect_escaped("\xe2\x81\xa6\xe2\x80\xa8", 6, false, "\\xe2\\x81\\xa6\\xe2\\x80\\xa8");
	expect_escaped("\xe2\x80\xa7\xe2\x80\xaf\xe2\x81\xa5\xe2\x81\xaa", 12, false,
		       "\xe2\x80\xa7\xe2\x80\xaf\xe2\x81\xa5\xe2\x81\xaa");
}

static void layout_stays_where_it_is_wanted(void **state)
{
	(void)state;

	expect_escaped("a\tb\nc", 5, true, "a\tb\nc");
	expect_escaped("a\r\nb", 4, true, "a\r\nb");
	expect_escaped("a\rb\r", 4, true, "a\\x0db\\x0d"); /* would overwrite the line */
	expect_escaped("\x1b]0;title\x07", 10, true, "\\x1b]0;title\\x07");
	expect_escaped("\xc2\x85\xe2\x80\xab", 5, true, "\\xc2\\x85\xe2\x80\xab");
}

static void an_escape_is_never_cut(void **state)
{
	char out[16];
	(void)state;

	assert_int_equal(text_escape("\x1b", 1, false, out, 4), 0);
	assert_string_equal(out, "");
	assert_int_equal(text_escape("\x1b", 1, false, out, 5), 1);
	assert_string_equal(out, "\\x1b");
	assert_int_equal(text_escape("ab\x1b", 3, false, out, 6), 2);
	assert_string_equal(out, "ab");
	assert_int_equal(text_escape("a\xc3\xbc", 3, false, out, 3), 1); /* nor a character */
	assert_string_equal(out, "a");
	assert_int_equal(text_escape("\xc2\x9b", 2, false, out, 8), 0);
	assert_int_equal(text_escape("\xc2\x9b", 2, false, out, 9), 2);
	assert_int_equal(text_escape("\xe2\x80\xae", 3, false, out, 13), 3); /* the largest */
	assert_int_equal(text_escape("a", 1, false, out, 0), 0);
	assert_int_equal(text_escape("a", 1, false, out, 1), 0);
	assert_string_equal(out, "");
}

static void sizes_are_formatted_in_the_largest_unit(void **state)
{
	static const struct {
		uint64_t bytes;
		const char *text;
	} rows[] = {
		{ 0, "0" },
		{ 1, "1" },
		{ 1023, "1023" },
		{ 1024, "1K" },
		{ 1536, "1.5K" },
		{ 64 << 20, "64M" },
		{ UINT64_C(1536) << 20, "1.5G" },
		{ UINT64_C(3) << 40, "3T" },
		{ 9961472, "9.5M" },
		{ (1 << 20) + 1, "1.0M" },
		{ (UINT64_C(2) << 40) - 1, "1.9T" },
		{ UINT64_MAX, "16777215.9T" },
	};
	char out[32];
	(void)state;

	for (size_t i = 0; i < COUNT(rows); i++) {
		text_format_size(rows[i].bytes, out, sizeof(out));
		assert_string_equal(out, rows[i].text);
	}
}

static void a_formatted_duration_is_read_back_as_the_same(void **state)
{
	static const struct {
		uint64_t ms;
		const char *text;
	} rows[] = {
		{ 1, "1ms" },       { 500, "500ms" },   { 1000, "1s" },  { 1500, "1.5s" },
		{ 1234, "1234ms" }, { 30000, "30s" },   { 60000, "1m" }, { 90000, "90s" },
		{ 3600000, "1h" },  { 5400000, "90m" },
	};
	struct cj_error err;
	uint64_t ms;
	char out[32];
	(void)state;

	for (size_t i = 0; i < COUNT(rows); i++) {
		text_format_duration(rows[i].ms, out, sizeof(out));
		assert_string_equal(out, rows[i].text);
		assert_int_equal(parse_duration(out, &ms, &err), 0);
		assert_int_equal(ms, rows[i].ms);
	}
	text_format_duration(0, out, sizeof(out));
	assert_string_equal(out, "0ms");
}

static void base64_is_rfc_4648(void **state)
{
	static const struct {
		const char *bytes, *digits;
	} rows[] = {
		{ "", "" },
		{ "f", "Zg==" },
		{ "fo", "Zm8=" },
		{ "foo", "Zm9v" },
		{ "foob", "Zm9vYg==" },
		{ "fooba", "Zm9vYmE=" },
		{ "foobar", "Zm9vYmFy" },
		{ "\xff\xfe\xfd\xfb", "//79+w==" },
	};
	char out[16];
	(void)state;

	for (size_t i = 0; i < COUNT(rows); i++) {
		size_t size = strlen(rows[i].bytes);

		assert_int_equal(text_base64(rows[i].bytes, size, out), strlen(rows[i].digits));
		assert_string_equal(out, rows[i].digits);

		char back[16];
		size_t back_size = 99;
		assert_int_equal(text_base64_decode(out, strlen(out), back, &back_size), 0);
		assert_int_equal(back_size, size);
		assert_memory_equal(back, rows[i].bytes, size);
		assert_true(back_size <= TEXT_BASE64_ROOM(strlen(out)));
	}
}

static void base64_that_could_mean_two_things_is_refused(void **state)
{
	static const char *const rows[] = {
		"Z",    "Zg",   "Zg=",  "Zg===",          "Z===",     "====",  "=",
		"==",   "Zh==", "Zm9=", "Zg==Zg==",       "Zm9v\n",   "Zm 9v", "Zm9v Zg=",
		"Zm9-", "Zm9_", "Z=g=", "Zm9v\xc3\xa9==", "Zm9vZg=A",
	};
	char out[16];
	(void)state;

	for (size_t i = 0; i < COUNT(rows); i++) {
		size_t size = 7;
		if (text_base64_decode(rows[i], strlen(rows[i]), out, &size) != -EINVAL)
			fail_msg("'%s' is taken", rows[i]);
		assert_int_equal(size, 7);
	}
	size_t size;
	assert_int_equal(text_base64_decode("AAA\0", 4, out, &size), -EINVAL);
}

static void the_nearest_name_is_suggested(void **state)
{
	static const char *const names[] = { "memory", "memory-swap", "network",
					     "nofile", "id",          NULL };
	char long_word[128];
	(void)state;

	assert_string_equal(text_nearest("memroy", names), "memory");
	assert_string_equal(text_nearest("memor", names), "memory");
	assert_string_equal(text_nearest("netwrok", names), "network");
	assert_string_equal(text_nearest("nofiles", names), "nofile");
	assert_null(text_nearest("x", names));
	assert_null(text_nearest("", names));
	assert_null(text_nearest("timeout", names));
	assert_null(text_nearest("ab", names));
	memset(long_word, 'm', sizeof(long_word) - 1);
	long_word[sizeof(long_word) - 1] = '\0';
	assert_null(text_nearest(long_word, names));
}

static void the_place_of_a_mount_is_unescaped(void **state)
{
	(void)state;
	char plain[] = "36 35 98:0 / /mnt rw - ext4 /dev/a rw";
	char escaped[] = "36 35 98:0 /a\\040b /mnt\\040two\\134 rw - ext4 /dev/a rw";
	char cut[] = "36 35 98:0", empty[] = "";
	assert_string_equal(text_mount_place(plain), "/mnt");
	assert_string_equal(text_mount_place(escaped), "/mnt two\\");
	const char *place = text_mount_place(cut);
	assert_true(!place || place[0] == '\0');
	place = text_mount_place(empty);
	assert_true(!place || place[0] == '\0');
}

static void an_unfinished_character_at_the_end_is_counted(void **state)
{
	(void)state;
	assert_int_equal(utf8_unfinished("", 0), 0);
	assert_int_equal(utf8_unfinished("abc", 3), 0);
	assert_int_equal(utf8_unfinished("a\xc3", 2), 1);
	assert_int_equal(utf8_unfinished("a\xe2\x82", 3), 2);
	assert_int_equal(utf8_unfinished("\xf0\x9f\x98", 3), 3);
	assert_int_equal(utf8_unfinished("\xff\xe2\x82", 3), 2); /* whatever stands before */
	assert_int_equal(utf8_unfinished("\xc3\xbc", 2), 0);
	assert_int_equal(utf8_unfinished("\xff", 1), 0);
	assert_int_equal(utf8_unfinished("\x82\x82\x82\x82", 4), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_unfinished_character_at_the_end_is_counted),
		cmocka_unit_test(a_whole_number_is_decimal_digits_in_range),
		cmocka_unit_test(the_largest_number_is_no_overflow),
		cmocka_unit_test(a_size_has_binary_units_in_any_case),
		cmocka_unit_test(an_invalid_size_is_refused_with_an_example),
		cmocka_unit_test(a_duration_has_a_unit_or_is_seconds),
		cmocka_unit_test(an_invalid_duration_is_refused_with_an_example),
		cmocka_unit_test(cpus_are_thousandths),
		cmocka_unit_test(a_bool_is_one_of_six_texts),
		cmocka_unit_test(a_long_value_is_quoted_in_part_and_a_short_one_whole),
		cmocka_unit_test(a_name_is_short_lower_case_and_safe_in_a_path),
		cmocka_unit_test(a_line_is_found_only_whole),
		cmocka_unit_test(utf8_is_strict),
		cmocka_unit_test(utf8_takes_every_character_and_no_surrogate),
		cmocka_unit_test(characters_that_move_the_cursor_are_escaped),
		cmocka_unit_test(layout_stays_where_it_is_wanted),
		cmocka_unit_test(an_escape_is_never_cut),
		cmocka_unit_test(sizes_are_formatted_in_the_largest_unit),
		cmocka_unit_test(a_formatted_duration_is_read_back_as_the_same),
		cmocka_unit_test(base64_is_rfc_4648),
		cmocka_unit_test(base64_that_could_mean_two_things_is_refused),
		cmocka_unit_test(the_nearest_name_is_suggested),
		cmocka_unit_test(the_place_of_a_mount_is_unescaped),
		cmocka_unit_test(a_text_is_what_stands_behind_its_beginning),
		cmocka_unit_test(a_path_is_at_or_below_another_by_whole_components),
	};

	return cmocka_run_group_tests_name("text", tests, NULL, NULL);
}
