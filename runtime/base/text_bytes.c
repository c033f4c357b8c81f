/* SPDX-License-Identifier: Apache-2.0 */
/* Untrusted bytes: UTF-8 checks, escapes for a terminal, base64. */
#include "runtime/base/text.h"

/* Bytes of a character that begins with `lead`, beyond ASCII; 0: none does. */
static size_t size_by_lead(uint8_t lead)
{
	if (lead < 0xc2 || lead > 0xf4)
		return 0;
	return lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
}

/*
 * The size of the character that begins here; 0 when it is cut, overlong, a surrogate or too
 * large.  The second byte's range tells them apart: The Unicode Standard, table 3-7.
 */
static size_t utf8_size(const uint8_t *bytes, size_t size)
{
	uint8_t lead = bytes[0], low = 0x80, high = 0xbf;
	size_t wanted;

	if (lead < 0x80)
		return 1;
	wanted = size_by_lead(lead);
	if (wanted == 0)
		return 0;
	if (lead == 0xe0)
		low = 0xa0;
	else if (lead == 0xed)
		high = 0x9f;
	else if (lead == 0xf0)
		low = 0x90;
	else if (lead == 0xf4)
		high = 0x8f;

	if (size < wanted || bytes[1] < low || bytes[1] > high)
		return 0;
	for (size_t i = 2; i < wanted; i++) {
		if ((bytes[i] & 0xc0) != 0x80)
			return 0;
	}
	return wanted;
}

size_t utf8_prefix(const void *bytes, size_t size)
{
	const uint8_t *p = bytes;
	size_t at = 0;

	while (at < size) {
		uint64_t eight;

		if (size - at >= sizeof(eight)) { /* most text is ASCII: eight bytes at a time */
			memcpy(&eight, p + at, sizeof(eight));
			if ((eight & UINT64_C(0x8080808080808080)) == 0) {
				at += sizeof(eight);
				continue;
			}
		}
		size_t n = utf8_size(p + at, size - at);
		if (n == 0)
			break;
		at += n;
	}
	return at;
}

size_t utf8_unfinished(const void *bytes, size_t size)
{
	const uint8_t *end = (const uint8_t *)bytes + size;

	for (size_t back = 1; back <= 3 && back <= size; back++) {
		uint8_t byte = *(end - back);
		if ((byte & 0xc0) != 0x80)
			return back < size_by_lead(byte) ? back : 0;
	}
	return 0;
}

bool is_utf8(const void *bytes, size_t size)
{
	return utf8_prefix(bytes, size) == size;
}

static bool is_c1_control(const uint8_t *c, size_t size)
{
	return size == 2 && c[0] == 0xc2 && c[1] <= 0x9f;
}

/* Line and paragraph separators, bidirectional embeddings, overrides and isolates. */
static bool reorders_line(const uint8_t *c, size_t size)
{
	if (size != 3 || c[0] != 0xe2)
		return false;
	return (c[1] == 0x80 && c[2] >= 0xa8 && c[2] <= 0xae) ||
	       (c[1] == 0x81 && c[2] >= 0xa6 && c[2] <= 0xa9);
}

/* True when the `n` bytes at `c`, of `left`, may be shown as they are. */
static bool may_show(const uint8_t *c, size_t n, size_t left, bool keep_layout)
{
	if (n != 1)
		return n != 0 && !is_c1_control(c, n) && (keep_layout || !reorders_line(c, n));
	if (*c >= 0x20)
		return *c != 0x7f;
	if (!keep_layout)
		return false;
	return *c == '\t' || *c == '\n' || (*c == '\r' && left > 1 && c[1] == '\n');
}

size_t text_escape(const void *bytes, size_t size, bool keep_layout, char *out, size_t out_size)
{
	static const char hex[] = "0123456789abcdef";
	const uint8_t *p = bytes;
	size_t at = 0, used = 0;

	if (out_size == 0)
		return 0;
	while (at < size) {
		size_t n = utf8_size(p + at, size - at);
		bool as_is = may_show(p + at, n, size - at, keep_layout);

		if (n == 0)
			n = 1;
		if (out_size - used <= (as_is ? n : 4 * n))
			break;
		for (size_t i = 0; i < n; i++) {
			uint8_t byte = p[at + i];

			if (as_is) {
				out[used++] = (char)byte;
				continue;
			}
			memcpy(out + used, "\\x", 2);
			out[used + 2] = hex[byte >> 4];
			out[used + 3] = hex[byte & 0xf];
			used += 4;
		}
		at += n;
	}
	out[used] = '\0';
	return at;
}

size_t text_base64(const void *bytes, size_t size, char *out)
{
	static const char digits[] =
	    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const uint8_t *p = bytes;
	char *to = out;

	for (; size >= 3; size -= 3, p += 3) {
		*to++ = digits[p[0] >> 2];
		*to++ = digits[(p[0] & 0x3) << 4 | p[1] >> 4];
		*to++ = digits[(p[1] & 0xf) << 2 | p[2] >> 6];
		*to++ = digits[p[2] & 0x3f];
	}
	if (size > 0) {
		uint8_t second = size == 2 ? p[1] : 0;

		*to++ = digits[p[0] >> 2];
		*to++ = digits[(p[0] & 0x3) << 4 | second >> 4];
		*to++ = size == 2 ? digits[(second & 0xf) << 2] : '=';
		*to++ = '=';
	}
	*to = '\0';
	return (size_t)(to - out);
}

/* The value of a digit, -1 when it is none; a table, because data makes branches guess wrong. */
static int base64_value(char c)
{
	/* clang-format off */
	static const int8_t values[128] = {
		-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,
		-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,
		-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 62, -1, -1, -1, 63,
		52, 53, 54, 55, 56, 57, 58, 59, 60, 61, -1, -1, -1, -1, -1, -1,
		-1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14,
		15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, -1, -1, -1, -1, -1,
		-1, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40,
		41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, -1, -1, -1, -1, -1,
	};
	/* clang-format on */
	uint8_t byte = (uint8_t)c;

	return byte < sizeof(values) ? values[byte] : -1;
}

/* Four characters of which the last `pad` are '='; the bits they don't need must be 0. */
static int decode_quad(const char *text, size_t pad, uint8_t *out)
{
	uint32_t bits = 0;

	for (size_t i = 0; i < 4; i++) {
		int value = i < 4 - pad ? base64_value(text[i]) : 0;
		if (value < 0)
			return -EINVAL;
		bits = bits << 6 | (uint32_t)value;
	}
	if (bits & ((1u << (8 * pad)) - 1))
		return -EINVAL;
	for (size_t i = 0; i < 3 - pad; i++)
		out[i] = (uint8_t)(bits >> (16 - 8 * i));
	return 0;
}

int text_base64_decode(const char *text, size_t size, void *out, size_t *out_size)
{
	uint8_t *to = out;
	size_t pad = 0;

	if (size % 4 != 0)
		return -EINVAL;
	while (pad < 2 && pad < size && text[size - 1 - pad] == '=')
		pad++;
	for (size_t at = 0; at < size; at += 4) {
		size_t here = at + 4 == size ? pad : 0;
		if (decode_quad(text + at, here, to) < 0)
			return -EINVAL;
		to += 3 - here;
	}
	*out_size = (size_t)(to - (uint8_t *)out);
	return 0;
}

bool text_unescape_octal(const char *text, size_t size, char *out, size_t room)
{
	size_t used = 0;
	for (size_t i = 0; i < size; i++) {
		char c = text[i];
		if (c == '\\' && i + 3 < size && strspn(text + i + 1, "01234567") >= 3) {
			c = (char)((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 +
				   (text[i + 3] - '0'));
			i += 3;
		}
		if (c == '\0' || used + 1 >= room)
			return false;
		out[used++] = c;
	}
	if (used >= room)
		return false;
	out[used] = '\0';
	return true;
}

char *text_put_url(char *to, const char *path)
{
	static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				    "0123456789-._~/";
	static const char hex[] = "0123456789ABCDEF";

	for (; *path; path++) {
		unsigned byte = (unsigned char)*path;
		if (strchr(plain, *path)) {
			*to++ = *path;
			continue;
		}
		*to++ = '%';
		*to++ = hex[byte >> 4];
		*to++ = hex[byte & 0xf];
	}
	*to = '\0';
	return to;
}

char *text_mount_place(char *line)
{
	int from = 0, to = 0;
	(void)sscanf(line, "%*s %*s %*s %*s %n%*s%n", &from, &to);
	const size_t size = (size_t)(to - from);
	char *place = line + from;
	return text_unescape_octal(place, size, place, size + 1) ? place : NULL;
}
