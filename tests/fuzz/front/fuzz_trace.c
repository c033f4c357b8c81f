/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_trace - two lines as X-Request-Id and traceparent.
 *
 * Asserted: what comes out is well-formed, is taken over by the next service, and holds of the
 * input only what is well-formed itself.
 */
#include "runtime/run/report/trace.h"

#include "runtime/base/scope.h"
#include "tests/fuzz/bytes.h"

#define HEX "0123456789abcdef"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void check(const struct trace *t)
{
	size_t size = strlen(t->request_id);
	assert(size >= 1 && size < TRACE_REQUEST_ID_MAX);
	assert(strspn(t->request_id, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				     "0123456789._-") == size);
	assert(strlen(t->traceparent) == TRACE_TRACEPARENT_MAX - 1);
	assert(strncmp(t->traceparent, "00-", 3) == 0);
	assert(strspn(t->traceparent + 3, HEX) == 32 && t->traceparent[35] == '-');
	assert(strspn(t->traceparent + 3, "0") < 32);
	assert(strspn(t->traceparent + 36, HEX) == 16 && t->traceparent[52] == '-');
	assert(strspn(t->traceparent + 36, "0") < 16);
	assert(strspn(t->traceparent + 53, HEX) == 2);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct bytes b = { bytes, size };
	auto_free char *request_id = bytes_text(bytes_until(&b, '\n'));
	auto_free char *traceparent = bytes_text(bytes_until(&b, '\n'));
	struct cj_error err = { 0 };
	struct trace t, next;

	int rc = trace_adopt(request_id, traceparent, &t, &err);
	assert(rc == 0);
	check(&t);
	bool is_minted = strcmp(t.request_id, request_id) != 0;
	assert(is_minted || strnlen(request_id, TRACE_REQUEST_ID_MAX) < TRACE_REQUEST_ID_MAX);

	/* What one of us mints, the next one follows. */
	rc = trace_adopt(t.request_id, t.traceparent, &next, &err);
	assert(rc == 0);
	assert(strcmp(next.request_id, t.request_id) == 0);
	assert(memcmp(next.traceparent, t.traceparent, 36) == 0);
	assert(memcmp(next.traceparent + 36, t.traceparent + 36, 16) != 0);
	assert(strncmp(next.parent, t.traceparent + 36, 16) == 0);
	assert(strcmp(next.traceparent + 53, t.traceparent + 53) == 0);
	return 0;
}
