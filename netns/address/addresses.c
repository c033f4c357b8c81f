/* SPDX-License-Identifier: Apache-2.0 */
/* The addresses of the veth pair between jail and gateway. */
#include "netns/address/addresses.h"

const struct ip address_gateway4 = { 4, { 198, 18, 0, 3 } };

struct addresses addresses_make(bool has_ipv6)
{
	struct addresses pair = {
		.jail4 = { 4, { 198, 18, 0, 2 } },
		.gateway4 = address_gateway4,
	};
	if (has_ipv6) {
		pair.jail6 = (struct ip){ 6, { 0xfd, 0xce, 0x6a, 0x11, [15] = 2 } };
		pair.gateway6 = (struct ip){ 6, { 0xfd, 0xce, 0x6a, 0x11, [15] = 3 } };
	}
	return pair;
}
