/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_process_usage_text - any bytes as /proc/PID/stat, /proc/PID/status and /proc/PID/uid_map.
 *
 * Asserted: a block of ids picked from a map is mapped from end to end, holds no id of the
 * system and nothing is picked from a map that was refused.
 */
#include <assert.h>

#include "runtime/kernel/ids/idmap.h"
#include "runtime/kernel/process/process_usage_text.h"
#include "tests/fuzz/bytes.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void check_map(const char *text)
{
	static struct idmap_ranges map;
	struct idmap_block block;
	struct cj_error err = { 0 };
	uint32_t outside;
	if (idmap_parse("uid_map", text, &map, &err) < 0) {
		assert(err.code == EINVAL && err.msg[0] != '\0');
		return;
	}
	assert(map.count <= IDMAP_LINES_MAX);
	if (!idmap_pick(&map, &map, &block))
		return;

	uint32_t last = block.first + (block.count - 1);
	assert(block.count > 0 && last >= block.first);
	assert(block.first >= 1000);
	assert(last < 60000 || block.first >= 65536);
	assert(idmap_outside(&map, block.first, &outside));
	assert(idmap_outside(&map, last, &outside));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	char *text = bytes_text((struct bytes){ bytes, size });

	struct sample_stat stat;
	if (process_usage_text_stat(text, &stat))
		assert(strrchr(text, ')'));
	(void)process_usage_text_memory(text);
	(void)process_usage_text_schedstat(text);
	check_map(text);
	free(text);
	return 0;
}
