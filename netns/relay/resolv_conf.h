/* SPDX-License-Identifier: Apache-2.0 */
/* resolv_conf - the name servers in a resolv.conf(5).  Pure. */
#pragma once

#include <stddef.h>

#include "netns/address/ip.h"

#define RESOLV_CONF_SERVERS_MAX 3 /* MAXNS of resolv.conf(5) */

/* The name servers that `text` lists; 127.0.0.1 when it lists none.  One with a zone
 * (fe80::1%eth0) is skipped.  Returns how many there are. */
size_t resolv_conf_servers(const char *text, struct ip out[static RESOLV_CONF_SERVERS_MAX]);
