/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace - the identifiers of a request in logs: X-Request-Id and W3C traceparent
 * (https://www.w3.org/TR/trace-context/).
 *
 * An identifier from the caller is used if it is well-formed, otherwise a new one is made.
 */
#pragma once

#include "runtime/base/error.h"

/* The parts of a traceparent.  Trace Context, 3.2.2: "VV-" 32 digits "-" 16 digits "-" 2 digits. */
enum {
	TRACE_ID_AT = 3,
	TRACE_ID_DIGITS = 32,
	SPAN_ID_AT = TRACE_ID_AT + TRACE_ID_DIGITS + 1,
	SPAN_ID_DIGITS = 16,
};

#define TRACE_REQUEST_ID_MAX  65 /* [A-Za-z0-9._-]{1,64} and its end */
#define TRACE_TRACEPARENT_MAX 56 /* 00-32hex-16hex-2hex and its end */
#define TRACE_SPAN_MAX        (SPAN_ID_DIGITS + 1)

struct trace {
	char request_id[TRACE_REQUEST_ID_MAX];
	/* version 00 with our own span; the trace and flags of the caller if it sent some */
	char traceparent[TRACE_TRACEPARENT_MAX];
	char parent[TRACE_SPAN_MAX]; /* the span of the caller; "": it sent none */
};

/* NULL: the caller sent none.  Fails: no random bytes. */
int trace_adopt(const char *request_id, const char *traceparent, struct trace *out,
		struct cj_error *err);
