/* SPDX-License-Identifier: Apache-2.0 */
/* The addresses of the pair between jail and gateway.  Pure. */
#include "netns/addresses.h"

#define LOCAL6(last)                                                                               \
	{                                                                                          \
		6,                                                                                 \
		{                                                                                  \
			0xfd, 0xce, 0x6a, 0x11, [15] = last                                        \
		}                                                                                  \
	}

const struct ip address_jail4 = { 4, { 198, 18, 0, 2 } };
const struct ip address_gateway4 = { 4, { 198, 18, 0, 3 } };
const struct ip address_jail6 = LOCAL6(2);
const struct ip address_gateway6 = LOCAL6(3);
