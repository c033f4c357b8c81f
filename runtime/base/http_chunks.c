/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/base/http_chunks.h"

#include "runtime/base/text.h"

#define DIGITS_MAX 15 /* of a chunk's size: below 2^60 */

static int expect(struct http_chunks *c, char found, char wanted, enum chunk_state next)
{
	if (found != wanted)
		return -EINVAL;
	c->state = next;
	return 0;
}

static int take_size(struct http_chunks *c, char byte)
{
	int digit = text_hex_digit(byte);

	if (digit >= 0) {
		c->left = c->left * 16 + (uint64_t)digit;
		return ++c->digits > DIGITS_MAX ? -EINVAL : 0;
	}
	if (c->digits == 0 || (byte != '\r' && byte != ';'))
		return -EINVAL;
	c->state = byte == '\r' ? CHUNK_SIZE_LF : CHUNK_EXTENSION;
	return 0;
}

/* An ignored line, up to its carriage return. */
static int take_rest(struct http_chunks *c, char byte, enum chunk_state at_end,
		     enum chunk_state meanwhile)
{
	if (byte == '\r') {
		c->state = at_end;
		return 0;
	}
	c->state = meanwhile;
	return text_has_control(&byte, 1) || ++c->rest > HTTP_CHUNKS_REST_MAX ? -EINVAL : 0;
}

static int take_byte(struct http_chunks *c, char byte)
{
	switch (c->state) {
	case CHUNK_SIZE:
		return take_size(c, byte);
	case CHUNK_EXTENSION:
		return take_rest(c, byte, CHUNK_SIZE_LF, CHUNK_EXTENSION);
	case CHUNK_SIZE_LF:
		return expect(c, byte, '\n', c->left > 0 ? CHUNK_DATA : CHUNK_TRAILER);
	case CHUNK_DATA_CR:
		return expect(c, byte, '\r', CHUNK_DATA_LF);
	case CHUNK_DATA_LF:
		c->digits = 0;
		return expect(c, byte, '\n', CHUNK_SIZE);
	case CHUNK_TRAILER:
		return take_rest(c, byte, CHUNK_LAST_LF, CHUNK_TRAILER_LINE);
	case CHUNK_TRAILER_LINE:
		return take_rest(c, byte, CHUNK_TRAILER_LF, CHUNK_TRAILER_LINE);
	case CHUNK_TRAILER_LF:
		return expect(c, byte, '\n', CHUNK_TRAILER);
	case CHUNK_LAST_LF:
		return expect(c, byte, '\n', CHUNK_END);
	case CHUNK_DATA:
	case CHUNK_END:
		break;
	}
	return -EINVAL; /* never called for these: they take no single bytes */
}

static void take_data(struct http_chunks *c, struct blob *in, struct blob *out)
{
	out->bytes = in->bytes;
	out->size = c->left < in->size ? (size_t)c->left : in->size;
	in->bytes += out->size;
	in->size -= out->size;
	c->left -= out->size;
	if (c->left == 0)
		c->state = CHUNK_DATA_CR;
}

int http_chunks_next(struct http_chunks *c, struct blob *in, struct blob *out, struct cj_error *err)
{
	*out = (struct blob){ 0 };
	while (in->size > 0 && c->state != CHUNK_END) {
		if (c->state == CHUNK_DATA) {
			take_data(c, in, out);
			return 0;
		}
		if (take_byte(c, in->bytes[0]) < 0)
			return cj_reject(err, "the body is not sent in chunks of HTTP/1.1");
		in->bytes++;
		in->size--;
	}
	return 0;
}
