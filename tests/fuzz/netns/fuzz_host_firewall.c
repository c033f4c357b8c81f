/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_host_firewall - any bytes as nf_tables' messages about chains and rules of the host.
 *
 * Asserted: a chain that is kept has a family, a table and a name, each of them whole.
 */
#include <assert.h>

#include "netns/firewall/host_firewall.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct host_firewall_chains chains = { .count = 0 };
	void *copy = malloc(size > 0 ? size : 1); /* aligned, and its end is watched */
	assert(copy);
	if (size > 0)
		memcpy(copy, bytes, size);

	(void)host_firewall_read_chains(&chains, copy, size);
	(void)host_firewall_names_us(copy, size);
	assert(chains.count <= HOST_FIREWALL_CHAINS_MAX);
	for (size_t i = 0; i < chains.count; i++) {
		const struct host_firewall_chain *c = &chains.items[i];
		assert(host_firewall_family_name(c->family));
		assert(c->table[0] && memchr(c->table, '\0', HOST_FIREWALL_NAME_MAX));
		assert(c->chain[0] && memchr(c->chain, '\0', HOST_FIREWALL_NAME_MAX));
	}
	free(copy);
	return 0;
}
