/* SPDX-License-Identifier: Apache-2.0 */
/* Names and addresses that the holder and the runs agree on.  Acts: the address has the user id. */
#include "netns/uplink/host_table.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

const char *const host_table_steps[HOST_TABLE_STEPS] = {
	[HOST_TABLE_GIVEN] = "a table for the host",
};

void host_table_name(uint32_t number, char out[static HOST_TABLE_NAME_MAX])
{
	(void)snprintf(out, HOST_TABLE_NAME_MAX, "cejail-s%u", number % 10000);
}

void host_table_links(uint32_t number, char out[static HOST_TABLE_NAME_MAX])
{
	(void)snprintf(out, HOST_TABLE_NAME_MAX, "cjs%u-", number % 10000);
}

const char *host_table_what(bool has_ipv6)
{
	return has_ipv6 ? "table46" : "table4";
}

/* The version, because another one may have other rules. */
socklen_t host_table_address(const char *what, struct sockaddr_un *out)
{
	*out = (struct sockaddr_un){ .sun_family = AF_UNIX };
	(void)snprintf(out->sun_path + 1, sizeof(out->sun_path) - 1, "cejail-%s-%s-%u", CJ_VERSION,
		       what, geteuid());
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(out->sun_path + 1));
}
