/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_http_answer - any bytes, in any pieces, as what a service answers.
 *
 * Asserted: however they were cut, the verdict, the status and the body are the same.
 */
#include "runtime/front/client/http_answer.c" /* the front end is in no library */
#include "tests/fuzz/bytes.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

struct body {
	char *text;
	size_t size;
};

static int keep(void *context, const char *bytes, size_t size, struct cj_error *err)
{
	struct body *b = context;
	(void)err;
	memcpy(b->text + b->size, bytes, size);
	b->size += size;
	return 0;
}

static int read_in_pieces(struct bytes b, size_t piece, struct http_answer *out, struct body *body)
{
	struct cj_error err = { 0 };

	http_answer_init(out);
	while (b.left > 0) {
		struct bytes next = bytes_take(&b, piece);
		if (http_answer_feed(out, (const char *)next.at, next.left, keep, body, &err) < 0)
			return -err.code;
	}
	return http_answer_end(out, &err);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct bytes b = { bytes, size };
	size_t piece = 1 + (size_t)bytes_u8(&b);
	struct http_answer whole, cut;
	struct body one = { malloc(size + 1), 0 }, other = { malloc(size + 1), 0 };

	assert(one.text && other.text);
	int rc = read_in_pieces(b, b.left + 1, &whole, &one);
	int same = read_in_pieces(b, piece, &cut, &other);
	assert(rc == same && whole.status == cut.status && whole.part == cut.part);
	assert(one.size == other.size && memcmp(one.text, other.text, one.size) == 0);
	assert(strlen(whole.type) < sizeof(whole.type) && strcmp(whole.type, cut.type) == 0);
	free(one.text);
	free(other.text);
	return 0;
}
