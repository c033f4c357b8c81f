/* SPDX-License-Identifier: Apache-2.0 */
/*
 * addresses - what jail and gateway are called on the wire between them.  Pure.
 *
 * The same in every jail: the two namespaces are private to it, and the gateway translates the
 * source on the way out, so they never meet.  They lie in closed ranges (benchmarking, RFC 2544;
 * unique local, RFC 4193).
 */
#pragma once

#include "netns/ip.h"

extern const struct ip address_jail4, address_gateway4; /* one /31 */
extern const struct ip address_jail6, address_gateway6; /* one /127 */
#define ADDRESS_GATEWAY4_TEXT "198.18.0.3"
