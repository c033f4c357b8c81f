/* SPDX-License-Identifier: Apache-2.0 */
/* Identifiers of requests. */
#include "runtime/run/report/trace.h"

#include <assert.h>
#include <sys/random.h>

enum {
	FLAGS_AT = SPAN_ID_AT + SPAN_ID_DIGITS + 1,
	FLAGS_DIGITS = 2,
	VERSION_00_SIZE = FLAGS_AT + FLAGS_DIGITS,
	REQUEST_ID_BYTES = 16,
};
static_assert(VERSION_00_SIZE + 1 == TRACE_TRACEPARENT_MAX, "the header has its room");

#define HEADER_MAX 512 /* a longer one is not an identifier */

static bool is_request_id(const char *text)
{
	static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				      "0123456789._-";
	size_t size = strnlen(text, TRACE_REQUEST_ID_MAX);
	return size > 0 && size < TRACE_REQUEST_ID_MAX && strspn(text, allowed) == size;
}

/*
 * Capitals are not allowed in the header, nor an id of zeros.  A later version begins like 00 and
 * may have more after a '-'; ff is not a version.
 */
static bool is_traceparent(const char *text)
{
	static const char form[] = "VV-tttttttttttttttttttttttttttttttt-ssssssssssssssss-ff";

	for (size_t i = 0; i < VERSION_00_SIZE; i++)
		if (form[i] == '-' ? text[i] != '-'
				   : !text[i] || !strchr("0123456789abcdef", text[i]))
			return false;
	if (strspn(text + TRACE_ID_AT, "0") >= TRACE_ID_DIGITS ||
	    strspn(text + SPAN_ID_AT, "0") >= SPAN_ID_DIGITS || strncmp(text, "ff", 2) == 0)
		return false;
	char after = text[VERSION_00_SIZE];
	return after == '\0' || (after == '-' && strncmp(text, "00", 2) != 0 &&
				 strnlen(text, HEADER_MAX) < HEADER_MAX);
}

static void put_hex(char *to, const uint8_t *bytes, size_t digits)
{
	static const char hex[] = "0123456789abcdef";
	for (size_t i = 0; i < digits; i++)
		to[i] = hex[bytes[i / 2] >> (i % 2 == 0 ? 4 : 0) & 0xf];
}

/* A new trace if the caller sent none; always a new span. */
static void make_traceparent(const char *theirs, const uint8_t *trace, const uint8_t *span,
			     char out[static TRACE_TRACEPARENT_MAX])
{
	memcpy(out, "00-", TRACE_ID_AT);
	if (theirs)
		memcpy(out + TRACE_ID_AT, theirs + TRACE_ID_AT, TRACE_ID_DIGITS);
	else
		put_hex(out + TRACE_ID_AT, trace, TRACE_ID_DIGITS);
	out[SPAN_ID_AT - 1] = '-';
	put_hex(out + SPAN_ID_AT, span, SPAN_ID_DIGITS);
	out[FLAGS_AT - 1] = '-';
	/* Of their flags, sampled and random-trace-id go on; all others MUST be zero: 3.2.2.5 */
	char low = theirs ? theirs[FLAGS_AT + 1] : '0';
	out[FLAGS_AT] = '0';
	out[FLAGS_AT + 1] = (char)('0' + ((low <= '9' ? low - '0' : low - 'a' + 10) & 3));
	out[VERSION_00_SIZE] = '\0';
}

int trace_adopt(const char *request_id, const char *traceparent, struct trace *out,
		struct cj_error *err)
{
	struct {
		uint8_t request[REQUEST_ID_BYTES];
		uint8_t trace[TRACE_ID_DIGITS / 2];
		uint8_t span[SPAN_ID_DIGITS / 2];
	} random;
	static_assert(sizeof(random) <= 256, "getrandom(2) is not interrupted so far");
	if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return cj_fail(err, errno, "make a request id: getrandom");
	random.trace[0] |= 1; /* all zeros is not a valid id */
	random.span[0] |= 1;

	struct trace t = { 0 };
	if (request_id && is_request_id(request_id))
		memcpy(t.request_id, request_id, strlen(request_id));
	else
		put_hex(t.request_id, random.request, 2 * (size_t)REQUEST_ID_BYTES);
	bool goes_on = traceparent && is_traceparent(traceparent);
	make_traceparent(goes_on ? traceparent : NULL, random.trace, random.span, t.traceparent);
	if (goes_on)
		memcpy(t.parent, traceparent + SPAN_ID_AT, SPAN_ID_DIGITS);
	*out = t;
	return 0;
}
