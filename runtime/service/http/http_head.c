/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a request's head. */
#include "runtime/service/http/http_head.h"

#include <strings.h>

#include "runtime/base/text.h"

#define LENGTH_DIGITS_MAX 19 /* always below 2^64 */

static bool is_control(char c)
{
	unsigned char u = (unsigned char)c;
	return (u < 0x20 && u != '\t') || u == 0x7f;
}

static int check_byte(const char *bytes, size_t i, struct cj_error *err)
{
	bool follows_cr = i > 0 && bytes[i - 1] == '\r';

	if (bytes[i] == '\n' && !follows_cr)
		return cj_reject(err, "a line of the head ends without a carriage return");
	if (bytes[i] != '\n' && follows_cr)
		return cj_reject(err, "the head has a carriage return inside a line");
	if (is_control(bytes[i]) && bytes[i] != '\n' && bytes[i] != '\r')
		return cj_reject(err, "the head has the control character 0x%02x",
				 (unsigned char)bytes[i]);
	return 0;
}

ssize_t http_head_find(const char *bytes, size_t size, size_t *scanned, struct cj_error *err)
{
	for (; *scanned < size && *scanned < HTTP_HEAD_MAX; ++*scanned) {
		size_t i = *scanned;
		if (check_byte(bytes, i, err) < 0)
			return -err->code;
		if (i == 1 && bytes[1] == '\n')
			return cj_reject(err, "the request line is empty");
		if (i >= 3 && memcmp(bytes + i - 3, "\r\n\r\n", 4) == 0)
			return (ssize_t)i + 1;
	}
	if (size >= HTTP_HEAD_MAX)
		return cj_reject_as(err, EFBIG, "the head has more than %u bytes", HTTP_HEAD_MAX);
	return 0;
}

static bool is_token(const char *text)
{
	static const char chars[] = "!#$%&'*+-.^_`|~0123456789"
				    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
	return text[0] != '\0' && text[strspn(text, chars)] == '\0';
}

/* Decodes one byte of a path at *text; negative: a byte that is not allowed. */
static int next_byte(char **text)
{
	const char *t = *text;
	int byte = (unsigned char)t[0];

	*text += 1;
	if (byte == '%') {
		int high = text_hex_digit(t[1]), low = high < 0 ? -1 : text_hex_digit(t[2]);
		if (low < 0)
			return -1;
		byte = high * 16 + low;
		*text += 2;
	}
	return is_control((char)byte) ? -1 : byte;
}

/* In place: a decoded path is never longer. */
static int read_target(char *target, struct http_head *out, struct cj_error *err)
{
	char *end = target;

	for (const char *c = target; *c; c++)
		if ((unsigned char)*c <= 0x20 || (unsigned char)*c >= 0x7f)
			return cj_reject(
			    err, "the request's target has a byte that must be percent-encoded");
	if (target[0] == '\0')
		return cj_reject(err, "the request line has no target");
	char *query = strchr(target, '?');
	out->query = query ? query + 1 : "";
	if (query)
		*query = '\0';
	for (char *c = target; *c;) {
		int byte = next_byte(&c);
		if (byte < 0)
			return cj_reject(err, "the request's target has a wrong percent-encoding");
		*end++ = (char)byte;
	}
	*end = '\0';
	out->path = target;
	return 0;
}

static int read_request_line(char *line, struct http_head *out, struct cj_error *err)
{
	char *target = strchr(line, ' ');
	char *version = target ? strchr(target + 1, ' ') : NULL;

	if (!version)
		return cj_reject(err, "the request line is not 'METHOD TARGET HTTP/1.1'");
	*target++ = *version++ = '\0';
	if (!is_token(line) || strlen(line) >= sizeof(out->method))
		return cj_reject(err, "the request's method is not a token");
	(void)snprintf(out->method, sizeof(out->method), "%s", line);
	out->is_1_1 = strcmp(version, "HTTP/1.1") == 0;
	if (!out->is_1_1 && strcmp(version, "HTTP/1.0") != 0)
		return cj_reject(err, "the request's version is neither HTTP/1.1 nor HTTP/1.0");
	return read_target(target, out, err);
}

static int add_field(char *line, struct http_head *out, struct cj_error *err)
{
	char *colon = strchr(line, ':');

	if (!colon)
		return cj_reject(err, "a header line has no colon");
	*colon = '\0';
	if (!is_token(line))
		return cj_reject(err,
				 "a header's name is not a token: no blank may stand before it or "
				 "before its colon");
	char *value = colon + 1 + strspn(colon + 1, " \t");
	size_t size = strlen(value);
	while (size > 0 && strchr(" \t", value[size - 1]))
		value[--size] = '\0';
	if (out->count == HTTP_FIELDS_MAX)
		return cj_reject_as(err, EFBIG, "there are more than %d headers", HTTP_FIELDS_MAX);
	out->fields[out->count++] = (struct http_field){ line, value };
	return 0;
}

/* A header that decides where a request ends, or who sent it, may appear once: RFC 9112, 11.2. */
static int check_once(const struct http_head *head, struct cj_error *err)
{
	static const char *const once[] = { "Host",          "Content-Length",
					    "Authorization", "Transfer-Encoding",
					    "Content-Type",  "Expect" };

	for (size_t i = 0; i < COUNT_OF(once); i++) {
		size_t count = 0;
		for (size_t j = 0; j < head->count; j++)
			count += strcasecmp(head->fields[j].name, once[i]) == 0;
		if (count > 1)
			return cj_reject(err, "the header %s appears %zu times", once[i], count);
	}
	if (head->is_1_1 && !http_head_get(head, "Host"))
		return cj_reject(err, "the header Host is missing");
	return 0;
}

static int read_length(struct http_head *head, struct cj_error *err)
{
	const char *length = http_head_get(head, "Content-Length");
	const char *coding = http_head_get(head, "Transfer-Encoding");
	struct cj_error ignored = { 0 };

	if (length && coding)
		return cj_reject(err, "Content-Length and Transfer-Encoding exclude each other");
	if (coding && (!head->is_1_1 || strcasecmp(coding, "chunked") != 0))
		return cj_reject(err, "Transfer-Encoding is not 'chunked' of HTTP/1.1");
	head->is_chunked = coding != NULL;
	if (length && (strlen(length) > LENGTH_DIGITS_MAX ||
		       parse_u64(length, 0, UINT64_MAX, &head->length, &ignored) < 0))
		return cj_reject(err, "Content-Length is not a number of at most %d digits",
				 LENGTH_DIGITS_MAX);
	return 0;
}

bool http_value_lists(const char *value, const char *token)
{
	const size_t size = strlen(token);

	for (value += strspn(value, ", \t"); *value; value += strspn(value, ", \t")) {
		const size_t length = strcspn(value, ", \t");
		if (length == size && strncasecmp(value, token, size) == 0)
			return true;
		value += length;
	}
	return false;
}

bool http_head_lists(const struct http_head *head, const char *name, const char *token)
{
	for (size_t i = 0; i < head->count; i++)
		if (strcasecmp(head->fields[i].name, name) == 0 &&
		    http_value_lists(head->fields[i].value, token))
			return true;
	return false;
}

const char *http_head_get(const struct http_head *head, const char *name)
{
	for (size_t i = 0; i < head->count; i++)
		if (strcasecmp(head->fields[i].name, name) == 0)
			return head->fields[i].value;
	return NULL;
}

int http_head_parse(char *bytes, size_t size, struct http_head *out, struct cj_error *err)
{
	char *end = bytes + size - 2, *line = bytes; /* before the empty line */
	int rc = 0;

	memset(out, 0, sizeof(*out));
	for (char *next = NULL; rc == 0 && line < end; line = next) {
		char *cr = memchr(line, '\r', (size_t)(end - line));
		if (!cr)
			return cj_reject(err, "the head has no end");
		*cr = '\0';
		next = cr + 2;
		rc = line == bytes ? read_request_line(line, out, err) : add_field(line, out, err);
	}
	if (rc == 0)
		rc = check_once(out, err);
	if (rc == 0)
		rc = read_length(out, err);
	out->keeps_open = !http_head_lists(out, "Connection", "close") &&
			  (out->is_1_1 || http_head_lists(out, "Connection", "keep-alive"));
	out->expects_continue = out->is_1_1 && http_head_lists(out, "Expect", "100-continue");
	return rc;
}
