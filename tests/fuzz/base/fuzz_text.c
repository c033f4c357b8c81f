/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_text - any bytes through the parsers of settings, the UTF-8 check and the escapes.
 *
 * Asserted: a refusal has a message and writes nothing; values keep their range and are read back
 * as what they were told as; escaped text is UTF-8 without a control character, whatever the size
 * of the buffer; UTF-8 is what a second, slow decoder says it is.
 */
#include <assert.h>

#include "runtime/base/scope.h"
#include "runtime/base/text.h"
#include "tests/fuzz/bytes.h"

#define UNSET 0x5ca1ab1e

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void check_refusal(int rc, uint64_t value, const struct cj_error *err)
{
	assert(rc == -EINVAL && err->code == EINVAL && err->msg[0] == '\'');
	assert(value == UNSET);
}

static void check_numbers(const char *text)
{
	struct cj_error err = { 0 };
	uint64_t value = UNSET;
	int rc = parse_u64(text, 5, 5000, &value, &err);

	if (rc == 0)
		assert(value >= 5 && value <= 5000 && value == strtoull(text, NULL, 10));
	else
		check_refusal(rc, value, &err);

	value = UNSET;
	rc = parse_size(text, &value, &err);
	if (rc == 0)
		assert(value >= 1 && value <= INT64_MAX);
	else
		check_refusal(rc, value, &err);

	value = UNSET;
	rc = parse_cpus(text, &value, &err);
	if (rc == 0)
		assert(value >= 10 && value <= 1024000);
	else
		check_refusal(rc, value, &err);
}

static void check_duration(const char *text)
{
	struct cj_error err = { 0 };
	uint64_t ms = UNSET, again = UNSET;
	char told[32];
	int rc = parse_duration(text, &ms, &err);

	if (rc < 0) {
		check_refusal(rc, ms, &err);
		return;
	}
	assert(ms >= 1 && ms <= UINT64_C(31536000000));
	text_format_duration(ms, told, sizeof(told));
	rc = parse_duration(told, &again, &err);
	assert(rc == 0 && again == ms);
}

static void check_words(const char *text)
{
	static const char *const names[] = { "memory", "timeout", "network", "env", NULL };
	struct cj_error err = { 0 };
	bool value = false;
	const char *near = text_nearest(text, names);

	assert(!near || strlen(near) > 0);
	assert(!is_name(text) || (strlen(text) <= 32 && !strchr(text, '/')));
	if (parse_bool(text, &value, &err) < 0)
		assert(err.msg[0] == '\'');
}

/* The size of the character at `b`, by decoding and looking at what came out; 0: none. */
static size_t decode(const uint8_t *b, size_t size)
{
	static const uint32_t smallest[] = { 0, 0, 0x80, 0x800, 0x10000 };
	size_t n = b[0] < 0x80       ? 1
		   : b[0] >> 5 == 6  ? 2
		   : b[0] >> 4 == 14 ? 3
		   : b[0] >> 3 == 30 ? 4
				     : 0;
	uint32_t c;

	if (n <= 1 || n > size)
		return n <= size ? n : 0;
	c = b[0] & (0x7fu >> n);
	for (size_t i = 1; i < n; i++) {
		if (b[i] >> 6 != 2)
			return 0;
		c = c << 6 | (b[i] & 0x3f);
	}
	return c < smallest[n] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff) ? 0 : n;
}

static void check_utf8(const uint8_t *bytes, size_t size)
{
	size_t good = 0, n;

	while (good < size && (n = decode(bytes + good, size - good)) > 0)
		good += n;
	assert(utf8_prefix(bytes, size) == good);
	assert(is_utf8(bytes, size) == (good == size));
}

static void check_escaped(const char *out, bool keep_layout)
{
	assert(is_utf8(out, strlen(out)));
	for (const char *c = out; *c; c++) {
		uint8_t byte = (uint8_t)*c;

		assert(byte != 0x7f && (byte != 0xc2 || (uint8_t)c[1] >= 0xa0));
		if (byte >= 0x20)
			continue;
		assert(keep_layout && strchr("\t\n\r", byte));
	}
}

static void check_escapes(const uint8_t *bytes, size_t size, bool keep_layout)
{
	char out[64];

	for (size_t room = 13; room <= sizeof(out); room += 17) {
		for (size_t at = 0; at < size;) {
			size_t taken = text_escape(bytes + at, size - at, keep_layout, out, room);

			assert(taken > 0 && taken <= size - at && strlen(out) < room);
			check_escaped(out, keep_layout);
			at += taken;
		}
	}
}

static void check_base64(const uint8_t *bytes, size_t size)
{
	size_t expected = 4 * ((size + 2) / 3);
	auto_free char *out = malloc(expected + 1);

	assert(out);
	size_t got = text_base64(bytes, size, out);
	assert(got == expected && strlen(out) == got);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	auto_free char *text = bytes_text((struct bytes){ bytes, size });

	check_numbers(text);
	check_duration(text);
	check_words(text);
	check_utf8(bytes, size);
	check_escapes(bytes, size, false);
	check_escapes(bytes, size, true);
	check_base64(bytes, size);
	return 0;
}
