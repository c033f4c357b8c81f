/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http_head - the request line and the headers of HTTP/1.1 (RFC 9112), read strictly.
 *
 * The whole head is refused when two parsers could read any byte of it differently: a control
 * character, a carriage return or line feed alone, a name that is not a token, a folded line, two
 * headers where one decides, a length that is not a number.  No header is used before that check.
 */
#pragma once

#include "runtime/base/byte_queue.h"
#include "runtime/base/error.h"

#define HTTP_HEAD_MAX   (32u << 10)
#define HTTP_FIELDS_MAX 100
#define HTTP_METHOD_MAX 16

struct http_field {
	const char *name, *value; /* the value without blanks around it */
};

struct http_head {
	char method[HTTP_METHOD_MAX];
	const char *path;  /* decoded once: it has no control character, and no NUL */
	const char *query; /* behind the first "?", as it came; "": none */
	bool is_1_1;       /* else HTTP/1.0 */
	struct http_field fields[HTTP_FIELDS_MAX];
	size_t count;
	bool is_chunked;
	uint64_t length; /* of the body; 0 when it is chunked */
	bool keeps_open, expects_continue;
};

/*
 * The size of the head that begins at `bytes`, once its empty line has arrived; 0 before.  *scanned
 * is 0 at first and is kept between calls.  Fails: -EINVAL as soon as a byte is
 * wrong, -EFBIG past HTTP_HEAD_MAX.
 */
ssize_t http_head_find(const char *bytes, size_t size, size_t *scanned, struct cj_error *err);

/*
 * Reads a head that http_head_find() has found.  `bytes` is changed, and *out points into it.
 * The messages name headers and contain no other byte from the caller.
 */
int http_head_parse(char *bytes, size_t size, struct http_head *out, struct cj_error *err);

/* NULL: there is none. */
const char *http_head_get(const struct http_head *head, const char *name);

/* `token` is one of the comma-separated values of the header. */
bool http_head_lists(const struct http_head *head, const char *name, const char *token);
bool http_value_lists(const char *value, const char *token);
