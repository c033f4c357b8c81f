/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_uplink_exit - any bytes, in any pieces, as the standard error of an uplink helper.
 *
 * Asserted: however they are cut, the reported line is the same; it is printable and fits.
 */
#include <signal.h>

#include "netns/uplink/uplink_parts.h"
#include "runtime/base/text.h"
#include "tests/fuzz/bytes.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void check_line(const char *line, size_t room)
{
	size_t size = strnlen(line, room);
	assert(size > 0 && size < room && is_utf8(line, size));
	for (size_t i = 0; i < size; i++)
		assert((uint8_t)line[i] >= ' ' && line[i] != 0x7f);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct bytes b = { bytes, size };
	size_t piece = bytes_u8(&b);
	int code = piece & 1 ? CLD_EXITED : CLD_KILLED, status = bytes_u8(&b);
	struct uplink_exit whole = { .code = code, .status = status }, cut = whole;
	char line[300], same[300], narrow[32];

	uplink_exit_add_output(&whole, (const char *)b.at, b.left);
	while (b.left > 0) {
		struct bytes next = bytes_take(&b, 1 + piece);
		uplink_exit_add_output(&cut, (const char *)next.at, next.left);
	}
	uplink_exit_format(&whole, line, sizeof(line));
	uplink_exit_format(&cut, same, sizeof(same));
	uplink_exit_format(&cut, narrow, sizeof(narrow));
	check_line(line, sizeof(line));
	assert(strcmp(line, same) == 0 && strncmp(line, narrow, strlen(narrow)) == 0);
	return 0;
}
