/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_types - any bytes as the beginning of a file of any name: a byte for "this is all", the
 * name, NUL, the bytes.
 *
 * Asserted: there is a type in the form of RFC 6838; text, JSON, HTML and SVG are UTF-8; an image
 * or a PDF begins like one, whatever its name is.
 */
#undef NDEBUG
#include <assert.h>

#include "rootfs/files/types.h"
#include "runtime/base/text.h"
#include "tests/fuzz/bytes.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static bool is(const char *type, const char *other)
{
	return strcmp(type, other) == 0;
}

static void check(const char *type, const struct bytes *head, bool is_whole)
{
	const char *slash = strchr(type, '/');
	size_t cut = is_whole ? 0 : utf8_unfinished(head->at, head->left);

	assert(slash && slash != type && slash[1] != '\0' && !strpbrk(type, " \";,"));
	if (strncmp(type, "text/", 5) == 0 || is(type, "application/json") ||
	    is(type, "image/svg+xml"))
		assert(is_utf8(head->at, head->left - cut));
	if (is(type, "image/svg+xml"))
		assert(memmem(head->at, head->left, "<", 1));
	if (is(type, "image/png"))
		assert(head->left >= 8 && memcmp(head->at, "\x89PNG\r\n\x1a\n", 8) == 0);
	if (is(type, "image/jpeg"))
		assert(head->left >= 3 && head->at[0] == 0xff);
	if (is(type, "image/gif"))
		assert(head->left >= 6 && memcmp(head->at, "GIF8", 4) == 0);
	if (is(type, "image/webp"))
		assert(head->left >= 12 && memcmp(head->at, "RIFF", 4) == 0);
	if (is(type, "application/pdf"))
		assert(head->left >= 5 && memcmp(head->at, "%PDF-", 5) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct bytes in = { bytes, size };
	char name[64] = "";
	bool is_whole = (bytes_u8(&in) & 1) != 0;
	const uint8_t *end = memchr(in.at, 0, in.left < sizeof(name) ? in.left : sizeof(name));

	if (!end)
		return 0;
	struct bytes word = bytes_take(&in, (size_t)(end - in.at) + 1);
	memcpy(name, word.at, word.left);
	check(type_of(name, in.at, in.left, is_whole), &in, is_whole);
	return 0;
}
