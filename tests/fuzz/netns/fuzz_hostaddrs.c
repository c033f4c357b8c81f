/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_hostaddrs - any bytes as what rtnetlink says of this host's addresses.
 *
 * Asserted: what is kept is whole, each once, and never loopback; what is read twice adds nothing.
 */
#include <assert.h>

#include "netns/rtnetlink/hostaddrs.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void check_known(const struct hostaddrs_set *set)
{
	assert(set->count <= HOSTADDRS_MAX);
	for (size_t i = 0; i < set->count; i++) {
		const struct ip *ip = &set->items[i];
		assert(ip->family == 4 || ip->family == 6);
		assert(ip->family == 6 || ip->bytes[0] != 127);
		for (size_t k = 0; k < i; k++)
			assert(!ip_equal(ip, &set->items[k]));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct hostaddrs_set set = { .count = 0 };
	void *copy = malloc(size > 0 ? size : 1); /* aligned, and its end is watched */
	assert(copy);
	if (size > 0)
		memcpy(copy, bytes, size);

	enum hostaddrs_read first = hostaddrs_read(&set, copy, size);
	check_known(&set);
	size_t count = set.count;
	assert(hostaddrs_read(&set, copy, size) == first);
	assert(set.count == count);
	free(copy);
	return 0;
}
