/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_notify_text - any bytes as a message of sd_notify(3).
 *
 * Asserted: a message that says READY=1 has such a line and no NUL byte, and says it still with
 * another line in front of it, if there is room.
 */
#include <assert.h>

#include "runtime/container/notify/notify_relay.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	static char longer[NOTIFY_RELAY_TEXT_MAX];

	if (!notify_relay_is_ready((const char *)bytes, size))
		return 0;
	assert(size <= NOTIFY_RELAY_TEXT_MAX && memmem(bytes, size, "READY=1", 7));
	assert(!memchr(bytes, '\0', size));
	if (size + 2 > sizeof(longer))
		return 0;
	memcpy(longer, "x\n", 2);
	memcpy(longer + 2, bytes, size);
	assert(notify_relay_is_ready(longer, size + 2));
	return 0;
}
