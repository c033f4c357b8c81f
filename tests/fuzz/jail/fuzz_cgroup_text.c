/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_cgroup_text - any bytes as /proc/self/cgroup and as each kind of file of a cgroup.
 *
 * Asserted: a path is ended and from a line of the unified hierarchy; numbers that are taken
 * stand there as digits; pids are not negative and no more than there are lines.
 */
#include <assert.h>
#include <inttypes.h>

#include "runtime/kernel/cgroup/cgroup_text.h"
#include "tests/fuzz/bytes.h"

#define PIDS 8

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void check_self(const char *text)
{
	struct cgroup_self self;
	cgroup_text_self(text, &self);
	assert(memchr(self.path, '\0', sizeof(self.path)));
	if (self.path[0] != '\0') {
		char line[CGROUP_PATH_MAX + 4];
		(void)snprintf(line, sizeof(line), "0::%s", self.path);
		assert(strstr(text, line));
	}
}

static size_t skip_zeros(const char *digits)
{
	size_t zeros = strspn(digits, "0");
	return zeros > 0 && (digits[zeros] < '0' || digits[zeros] > '9') ? zeros - 1 : zeros;
}

static void check_number(const char *digits, uint64_t value)
{
	char again[32];
	digits += skip_zeros(digits);
	int length = snprintf(again, sizeof(again), "%" PRIu64, value);
	assert(strncmp(digits, again, (size_t)length) == 0);
	assert(digits[length] == '\n' || digits[length] == '\0');
}

static void check_values(const char *text)
{
	static const char *const keys[] = { "max", "oom_kill", "populated", "usage_usec" };
	uint64_t value;
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (cgroup_text_value(text, keys[i], &value))
			assert(strstr(text, keys[i]));
	if (cgroup_text_number(text, &value))
		check_number(text, value);
	if (cgroup_text_has_word(text, "memory"))
		assert(strstr(text, "memory"));
}

static void check_pids(const char *text)
{
	pid_t pids[PIDS];
	size_t lines = 0, count = cgroup_text_pids(text, pids, PIDS);
	for (const char *at = text; (at = strchr(at, '\n')) != NULL; at++)
		lines++;
	assert(count <= PIDS && count <= lines);
	for (size_t i = 0; i < count; i++)
		assert(pids[i] >= 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	char *text = bytes_text((struct bytes){ bytes, size });
	check_self(text);
	check_values(text);
	check_pids(text);
	free(text);
	return 0;
}
