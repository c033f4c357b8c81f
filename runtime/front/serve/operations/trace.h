/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace - by which names a request is found again: X-Request-Id and W3C traceparent
 * (https://www.w3.org/TR/trace-context/).  Pure but for getrandom(2).
 *
 * What a caller sends is used if it is well-formed, else one is minted; nothing else of it goes
 * into a log.
 */
#pragma once

#include "runtime/base/error.h"

#define TRACE_REQUEST_ID_MAX  65 /* [A-Za-z0-9._-]{1,64} and its end */
#define TRACE_TRACEPARENT_MAX 56 /* 00-32hex-16hex-2hex and its end */

struct trace {
	char request_id[TRACE_REQUEST_ID_MAX];
	/* Always version 00, with a span of our own; the caller's trace and flags where it sent one
	 */
	char traceparent[TRACE_TRACEPARENT_MAX];
};

/* NULL: the caller sent none.  Fails: no random bytes. */
int trace_adopt(const char *request_id, const char *traceparent, struct trace *out,
		struct cj_error *err);
