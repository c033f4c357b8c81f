/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http_answer - an incremental parser for the answer of an HTTP/1.1 server.
 *
 * It supports what a client with one request and `Connection: close` needs of RFC 9112: the status,
 * the five headers below, and a body with a length, in chunks, or up to the end of the connection.
 */
#pragma once

#include "runtime/base/http_chunks.h"

#define HTTP_HEAD_MAX (16u << 10) /* all header lines together */
#define HTTP_LINE_MAX 4096

enum http_part {
	HTTP_STATUS_LINE,
	HTTP_HEADERS,
	HTTP_BODY,     /* `left` bytes of it */
	HTTP_BODY_ALL, /* up to the end of the connection */
	HTTP_BODY_CHUNKS,
	HTTP_DONE,
};

struct http_answer {
	unsigned status;      /* 0: not known yet */
	char type[64];        /* of the content, lower case, without parameters; "": none given */
	uint64_t retry_after; /* seconds; 0: none given */
	char session[129];    /* Mcp-Session-Id, visible characters; "": none given, or too long */
	enum http_part part;
	bool is_chunked, has_length;
	uint64_t left;
	struct http_chunks chunks;
	size_t head_size;         /* of header lines so far */
	char line[HTTP_LINE_MAX]; /* the unfinished one */
	size_t line_size;
};

/* Receives the body, piece by piece.  NULL in its place: the body is not wanted. */
typedef int (*http_sink)(void *context, const char *bytes, size_t size, struct cj_error *err);

void http_answer_init(struct http_answer *r);

/* The status is 2xx. */
static inline bool http_answer_is_success(const struct http_answer *r)
{
	return r->status >= 200 && r->status <= 299;
}

/* Parses the next bytes.  Fails: they are not valid HTTP, or exceed a limit; the sink failed. */
int http_answer_feed(struct http_answer *r, const char *bytes, size_t size, http_sink sink,
		     void *context, struct cj_error *err);

/* The connection has ended.  Fails: the answer is not complete. */
int http_answer_end(const struct http_answer *r, struct cj_error *err);
