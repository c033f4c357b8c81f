/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/front/client/http_answer.h"

#include <strings.h>

#include "runtime/base/text.h"

#define LENGTH_MAX (1ull << 40) /* far below an overflow of sums */

void http_answer_init(struct http_answer *r)
{
	*r = (struct http_answer){ .part = HTTP_STATUS_LINE };
}

static int reject(struct cj_error *err, const char *what)
{
	return cj_reject(err, "the answer is not valid HTTP: %s", what);
}

/* "HTTP/1.1 200 OK" */
static int read_status(struct http_answer *r, struct cj_error *err)
{
	const char *line = r->line;

	if (!text_begins_with(line, "HTTP/1.") || strlen(line) < 12 || line[8] != ' ')
		return reject(err, "it does not begin with a status line");
	r->status = 0;
	for (size_t i = 9; i < 12; i++) {
		if (line[i] < '0' || line[i] > '9')
			return reject(err, "the status is not a number");
		r->status = r->status * 10 + (unsigned)(line[i] - '0');
	}
	r->part = HTTP_HEADERS;
	return 0;
}

/* It is sent back in a header of ours. */
static void take_session(struct http_answer *r, const char *value)
{
	size_t size = strlen(value);

	for (const char *at = value; *at; at++)
		if (*at <= ' ' || *at >= 0x7f)
			return;
	if (size < sizeof(r->session))
		memcpy(r->session, value, size + 1);
}

static int read_header(struct http_answer *r, struct cj_error *err)
{
	char *colon = strchr(r->line, ':');
	if (!colon)
		return reject(err, "a header has no colon");

	*colon = '\0';
	const char *name = r->line;
	char *value = colon + 1 + strspn(colon + 1, " \t");
	struct cj_error why = { 0 };
	for (size_t size = strlen(value); size > 0 && strchr(" \t", value[size - 1]); size--)
		value[size - 1] = '\0';

	if (strcasecmp(name, "Content-Type") == 0) {
		(void)snprintf(r->type, sizeof(r->type), "%.*s", (int)strcspn(value, "; \t"),
			       value);
		for (char *at = r->type; *at; at++)
			*at = *at >= 'A' && *at <= 'Z' ? (char)(*at + 'a' - 'A') : *at;
	} else if (strcasecmp(name, "Content-Length") == 0) {
		if (r->has_length || parse_u64(value, 0, LENGTH_MAX, &r->left, &why) < 0)
			return reject(err, "the Content-Length is not a number, or occurs twice");
		r->has_length = true;
	} else if (strcasecmp(name, "Transfer-Encoding") == 0) {
		if (strcasecmp(value, "chunked") != 0)
			return reject(err, "the Transfer-Encoding is not chunked");
		r->is_chunked = true;
	} else if (strcasecmp(name, "Mcp-Session-Id") == 0) {
		take_session(r, value);
	} else if (strcasecmp(name, "Retry-After") == 0) {
		/* a date, which HTTP also allows, is ignored */
		(void)!parse_u64(value, 1, 1u << 20, &r->retry_after, &why);
	}
	return 0;
}

/* The empty line: which kind of body follows.  RFC 9112, 6.3. */
static int end_head(struct http_answer *r, struct cj_error *err)
{
	if (r->status < 200) { /* "100 Continue": the answer itself is still to come */
		http_answer_init(r);
		return 0;
	}
	if (r->is_chunked && r->has_length)
		return reject(err, "it has a Content-Length and chunks");
	if (r->is_chunked)
		r->part = HTTP_BODY_CHUNKS;
	else if (r->status == 204 || r->status == 304 || (r->has_length && r->left == 0))
		r->part = HTTP_DONE;
	else
		r->part = r->has_length ? HTTP_BODY : HTTP_BODY_ALL;
	return 0;
}

/* Takes the bytes up to the end of a line, or all of them.  *out_used: how many. */
static int feed_line(struct http_answer *r, const char *bytes, size_t size, size_t *out_used,
		     struct cj_error *err)
{
	const char *end = memchr(bytes, '\n', size);
	size_t part = end ? (size_t)(end - bytes) : size;

	r->head_size += part + 1;
	if (r->line_size + part >= sizeof(r->line) || r->head_size > HTTP_HEAD_MAX)
		return reject(err, "the header is too long");
	if (memchr(bytes, '\0', part))
		return reject(err, "the header has a NUL");
	memcpy(r->line + r->line_size, bytes, part);
	r->line_size += part;
	*out_used = part + (end != NULL);
	if (!end)
		return 0;

	if (r->line_size > 0 && r->line[r->line_size - 1] == '\r')
		r->line_size--;
	r->line[r->line_size] = '\0';
	r->line_size = 0;
	if (r->part == HTTP_STATUS_LINE)
		return read_status(r, err);
	return r->line[0] == '\0' ? end_head(r, err) : read_header(r, err);
}

/* A piece of the body at the start of *in; a size of 0: none is there yet. */
static int take_body(struct http_answer *r, struct blob *in, struct blob *out, struct cj_error *err)
{
	if (r->part == HTTP_BODY_CHUNKS) {
		int rc = http_chunks_next(&r->chunks, in, out, err);
		if (r->chunks.state == CHUNK_END)
			r->part = HTTP_DONE;
		return rc;
	}
	*out = *in;
	if (r->part == HTTP_BODY) {
		out->size = in->size < r->left ? in->size : (size_t)r->left;
		r->left -= out->size;
		r->part = r->left == 0 ? HTTP_DONE : HTTP_BODY;
	}
	*in = (struct blob){ in->bytes + out->size, in->size - out->size };
	return 0;
}

int http_answer_feed(struct http_answer *r, const char *bytes, size_t size, http_sink sink,
		     void *context, struct cj_error *err)
{
	struct blob in = { bytes, size }, piece;

	while (in.size > 0 && r->part != HTTP_DONE) {
		if (r->part < HTTP_BODY) {
			size_t used = 0;
			if (feed_line(r, in.bytes, in.size, &used, err) < 0)
				return -err->code;
			in = (struct blob){ in.bytes + used, in.size - used };
			continue;
		}
		if (take_body(r, &in, &piece, err) < 0 ||
		    (sink && piece.size > 0 && sink(context, piece.bytes, piece.size, err) < 0))
			return -err->code;
	}
	return 0;
}

int http_answer_end(const struct http_answer *r, struct cj_error *err)
{
	if (r->part == HTTP_DONE || r->part == HTTP_BODY_ALL)
		return 0;
	return cj_reject_as(err, ECONNRESET, "%s",
			    r->status == 0 ? "the connection ended without an answer"
					   : "the connection ended within the answer");
}
