/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_origin - any bytes as a request's head to libexec/cejail/upstream.
 *
 * Asserted: a refusal has a status and a sentence; the target of a permitted request begins with
 * the prefix, and no number of decodings gives its path a segment '.' or '..'.
 */
#include "runtime/front/helpers/upstream/origin.h"

#include "tests/fuzz/bytes.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static const char prefix[] = "/v1/";

/* Slowly, and otherwise than the code under test: each pass decodes one byte. */
static void check_target(const char *target)
{
	char path[UPSTREAM_HEAD_MAX + 2];
	size_t size = strcspn(target, "?");
	assert(strncmp(target, prefix, strlen(prefix)) == 0 && strlen(target) < UPSTREAM_HEAD_MAX);
	memcpy(path, target, size);
	path[size] = '/';
	path[size + 1] = '\0';
	for (size_t i = 0; path[i]; i++) {
		char *end = NULL, digits[3] = { 0 };
		if (path[i] == '%' && path[i + 1] && path[i + 2]) {
			memcpy(digits, path + i + 1, 2);
			const unsigned long value = strtoul(digits, &end, 16);
			if (end == digits + 2 && digits[0] != '+' && digits[0] != '-' &&
			    value > 0x20) {
				path[i] = (char)value;
				memmove(path + i + 1, path + i + 3, strlen(path + i + 3) + 1);
				i = i > 1 ? i - 3 : (size_t)-1; /* this may complete another one */
			}
		}
	}
	assert(!strstr(path, "/../") && !strstr(path, "/./") && !strstr(path, "\\..\\"));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	static struct origin_request request;
	static struct origin origin = { .name = "model", .path = prefix, .nheaders = 1 };
	struct cj_error err = { 0 };
	size_t scanned = 0;
	origin.headers[0].name = "Authorization";
	const ssize_t found = http_head_find((const char *)bytes, size, &scanned, &err);
	if (found <= 0)
		return 0;
	char *head = malloc((size_t)found);
	assert(head);
	memcpy(head, bytes, (size_t)found);
	if (origin_check(&origin, head, (size_t)found, &request, &err) < 0) {
		assert(request.refusal >= 400 && request.refusal < 500 && err.msg[0]);
	} else {
		check_target(request.target);
		assert(strcmp(request.head.method, "CONNECT") != 0);
		for (size_t i = 0; i < request.head.count; i++)
			(void)origin_sends(&origin, &request.head, request.head.fields[i].name);
		assert(!origin_sends(&origin, &request.head, "AUTHORIZATION") &&
		       !origin_sends(&origin, &request.head, "te"));
	}
	free(head);
	return 0;
}
