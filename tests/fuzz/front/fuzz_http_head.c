/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_http_head - any bytes, in any pieces, as a request's head and a body in chunks.
 *
 * Asserted: however they were cut, the verdict and the end are the same; what is read of a head
 * that is taken has no byte by which another reader could see another request.
 */
#include "runtime/service/http/http_head.h"

#include "runtime/base/http_chunks.h"
#include "runtime/base/scope.h"
#include "tests/fuzz/bytes.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static ssize_t find(struct bytes b, size_t piece)
{
	size_t scanned = 0, size = 0;
	struct cj_error err = { 0 };
	ssize_t found = 0;

	while (found == 0 && size < b.left) {
		size = piece < b.left - size ? size + piece : b.left;
		found = http_head_find((const char *)b.at, size, &scanned, &err);
	}
	return found;
}

static bool is_printable(const char *text, const char *more)
{
	for (; *text; text++)
		if (((unsigned char)*text < 0x20 && *text != '\t') || *text == 0x7f ||
		    strchr(more, *text))
			return false;
	return true;
}

static void check_head(const struct http_head *head)
{
	const char *length = http_head_get(head, "Content-Length");

	assert(head->method[0] && is_printable(head->method, " \t:"));
	assert(is_printable(head->path, "") && is_printable(head->query, ""));
	assert(head->count <= HTTP_FIELDS_MAX);
	for (size_t i = 0; i < head->count; i++) {
		const struct http_field *f = &head->fields[i];
		assert(f->name[0] && is_printable(f->name, " \t:(),/"));
		assert(is_printable(f->value, ""));
		assert(!strchr(" \t", f->value[0]) || !f->value[0]);
	}
	assert(!head->is_chunked || (!length && head->length == 0));
	assert(!length || strspn(length, "0123456789") == strlen(length));
}

static int read_chunks(struct bytes b, size_t piece, size_t *out_size, size_t *out_left)
{
	struct http_chunks c = { 0 };
	struct cj_error err = { 0 };

	*out_size = 0;
	while (b.left > 0 && c.state != CHUNK_END) {
		struct bytes next = { b.at, piece < b.left ? piece : b.left };
		struct blob in = { (const char *)next.at, next.left }, part;
		if (http_chunks_next(&c, &in, &part, &err) < 0)
			return -err.code;
		*out_size += part.size;
		(void)bytes_take(&b, next.left - in.size);
	}
	*out_left = b.left;
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct bytes b = { bytes, size };
	size_t piece = 1 + (size_t)bytes_u8(&b);
	size_t one = 0, other = 0, one_left = 0, other_left = 0;
	struct cj_error err = { 0 };
	struct http_head head;

	ssize_t end = find(b, b.left + 1);
	assert(end == find(b, piece));
	if (end > 0) {
		struct bytes part = bytes_take(&b, (size_t)end);
		auto_free char *text = malloc(part.left);
		assert(text);
		memcpy(text, part.at, part.left);
		if (http_head_parse(text, part.left, &head, &err) == 0)
			check_head(&head);
		else
			assert(is_printable(err.msg, "\t"));
	}
	int rc = read_chunks(b, b.left + 1, &one, &one_left);
	assert(rc == read_chunks(b, piece, &other, &other_left));
	assert(rc < 0 || (one == other && one_left == other_left));
	return 0;
}
