/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/base/json/json_text.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/json/json.h"
#include "runtime/base/text.h"

struct raw {
	const char *name, *text;
	size_t size;
	struct cj_error *err;
};

#define EACH_BYTE(value) (UINT64_C(0x0101010101010101) * (value))

/*
 * Eight characters of ASCII, none of them a control character or a backslash: most of a long text,
 * and nothing in it to look at.  A byte below n is one whose subtraction borrows.
 */
static bool are_plain_bytes(const char *text)
{
	uint64_t bytes, backslash;

	memcpy(&bytes, text, sizeof(bytes));
	backslash = bytes ^ EACH_BYTE('\\');
	uint64_t controls = (bytes - EACH_BYTE(0x20)) & ~bytes;
	uint64_t backslashes = (backslash - EACH_BYTE(1)) & ~backslash;
	return ((bytes | controls | backslashes) & EACH_BYTE(0x80)) == 0;
}

void json_cursor_move(struct json_cursor *c, const char *text, size_t to)
{
	while (c->at < to) {
		if (to - c->at >= 8 && are_plain_bytes(text + c->at)) {
			c->at += 8;
			c->column += 8;
			continue;
		}
		uint8_t byte = (uint8_t)text[c->at++];

		if (byte == '\n') {
			c->line++;
			c->column = 1;
		} else if ((byte & 0xc0) != 0x80) {
			c->column++;
		}
	}
}

int json_refuse(const char *name, unsigned line, unsigned column, struct cj_error *err,
		const char *fmt, ...)
{
	char msg[CJ_ERROR_MSG_MAX];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(msg, sizeof(msg), fmt, ap);
	va_end(ap);
	return cj_reject(err, "%s:%u:%u: %s", name, line, column, msg);
}

/* The message with the place of the byte `at`. */
#define REFUSE_AT(r, at, ...)                                                                      \
	({                                                                                         \
		struct json_cursor place = JSON_CURSOR_BEGIN;                                      \
		json_cursor_move(&place, (r)->text, at);                                           \
		json_refuse((r)->name, place.line, place.column, (r)->err, __VA_ARGS__);           \
	})

/* The value of four hexadecimal digits, -1 when they are none. */
static int hex4(const char *digits, size_t left)
{
	int value = 0;

	if (left < 4)
		return -1;
	for (size_t i = 0; i < 4; i++) {
		int c = digits[i] | 0x20;

		if (digits[i] >= '0' && digits[i] <= '9')
			value = value * 16 + digits[i] - '0';
		else if (c >= 'a' && c <= 'f')
			value = value * 16 + c - 'a' + 10;
		else
			return -1;
	}
	return value;
}

static bool is_low_surrogate(int unit)
{
	return unit >= 0xdc00 && unit <= 0xdfff;
}

/* The size of the escape that begins at `at` (2, 6 or 12 bytes), or an error. */
static int check_escape(const struct raw *r, size_t at)
{
	const char *p = r->text + at;
	size_t left = r->size - at;

	if (left < 2 || p[1] != 'u')
		return 2;
	int unit = hex4(p + 2, left - 2);
	if (unit < 0)
		return 2; /* the parser says what is wrong with it */
	if (unit == 0)
		return REFUSE_AT(r, at, "'\\u0000' is not allowed in a string");
	if (unit < 0xd800 || unit > 0xdfff)
		return 6;
	if (!is_low_surrogate(unit) && left >= 12 && p[6] == '\\' && p[7] == 'u' &&
	    is_low_surrogate(hex4(p + 8, left - 8)))
		return 12;
	return REFUSE_AT(r, at, "'%.6s' is half of a surrogate pair", p);
}

static bool is_bad_control(uint8_t byte)
{
	return byte < 0x20 && byte != '\t' && byte != '\n' && byte != '\r';
}

/* The parser refuses a backslash outside of a string, so this does not look where strings are. */
static int check_characters(const struct raw *r)
{
	size_t at = 0;

	while (at < r->size) {
		if (r->size - at >= 8 && are_plain_bytes(r->text + at)) {
			at += 8;
			continue;
		}
		uint8_t byte = (uint8_t)r->text[at];

		if (is_bad_control(byte))
			return REFUSE_AT(r, at, "control character 0x%02x is not allowed", byte);
		int step = byte == '\\' ? check_escape(r, at) : 1;
		if (step < 0)
			return step;
		at += (size_t)step;
	}
	return 0;
}

int json_text_check(const char *name, const char *text, size_t size, struct cj_error *err)
{
	const struct raw r = { .name = name, .text = text, .size = size, .err = err };

	if (size >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
		return REFUSE_AT(&r, 0, "a byte order mark; write the file as UTF-8 without it");

	size_t whole = utf8_prefix(text, size);
	if (whole < size)
		return REFUSE_AT(&r, whole, "byte 0x%02x is not UTF-8", (uint8_t)text[whole]);
	return check_characters(&r);
}
