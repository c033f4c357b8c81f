/* SPDX-License-Identifier: Apache-2.0 */
/* http_chunks - a body in chunks (RFC 9112, section 7.1), as its bytes arrive. */
#pragma once

#include "runtime/base/byte_queue.h"
#include "runtime/base/error.h"

#define HTTP_CHUNKS_REST_MAX 4096 /* of all extensions and trailers, which are ignored */

enum chunk_state {
	CHUNK_SIZE, /* at first */
	CHUNK_EXTENSION,
	CHUNK_SIZE_LF,
	CHUNK_DATA,
	CHUNK_DATA_CR,
	CHUNK_DATA_LF,
	CHUNK_TRAILER, /* at the beginning of a line */
	CHUNK_TRAILER_LINE,
	CHUNK_TRAILER_LF,
	CHUNK_LAST_LF,
	CHUNK_END
};

struct http_chunks {
	enum chunk_state state;
	uint64_t left; /* of the chunk */
	unsigned digits;
	size_t rest;
};

/*
 * Consumes bytes of *in until there is a part of the body (*out), no bytes are left, or the body
 * has ended (state CHUNK_END).  Fails: -EINVAL, the bytes are not chunks.
 */
int http_chunks_next(struct http_chunks *c, struct blob *in, struct blob *out,
		     struct cj_error *err);
