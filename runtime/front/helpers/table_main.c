/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table-helper 4|46: loads a table for the links of many jails and leaves the process behind that
 * holds it: netns/uplink/host_table.h.  It has the caller's rights.
 */

#include "netns/uplink/host_table.h"
#include "runtime/base/files/libexec.h"

#define LIFE_SECONDS 20 /* of the process that the run waits for */

int main(int argc, char **argv)
{
	struct cj_error err = { 0 };
	bool has_ipv6 = argc == 2 && strcmp(argv[1], "46") == 0;
	libexec_begin(LIFE_SECONDS);
	int rc = has_ipv6 || (argc == 2 && strcmp(argv[1], "4") == 0)
		     ? host_table_hold(has_ipv6, HOST_TABLE_IDLE_MS, &err)
		     : cj_reject(&err, "usage: table-helper 4|46");
	return rc < 0 ? libexec_fail(&err) : libexec_answer(NULL, 0);
}
