/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_env_file - any bytes as the file of --env-file.
 *
 * Asserted: a refusal names a line; what is taken is a NAME=VALUE of the text or of the caller,
 * without a newline, in the order of its lines.
 */

#include "profiles/plan/env_file.h"
#include "runtime/base/scope.h"
#include "tests/fuzz/bytes.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	static const char *const callers[] = { "HOME=/root", "A=", NULL };
	auto_arena struct arena a = { 0 };
	struct env_line *lines = NULL;
	struct cj_error err = { 0 };
	size_t count = 0;

	int rc = env_file_parse((const char *)bytes, size, callers, &a, &lines, &count, &err);
	if (rc < 0) {
		assert(err.code == -rc && strncmp(err.msg, "line ", 5) == 0);
		return 0;
	}
	assert(count <= size);
	for (size_t i = 0; i < count; i++) {
		size_t length = strlen(lines[i].text);
		assert(strchr(lines[i].text, '=') && !strchr(lines[i].text, '\n'));
		assert(i == 0 || lines[i].number > lines[i - 1].number);
		assert(lines[i].text == callers[0] || lines[i].text == callers[1] ||
		       memmem(bytes, size, lines[i].text, length));
	}
	return 0;
}
