/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gateway VERSION jail dns|- proxy|-: makes the gateway of a jail's network, and answers the jail.
 * gateway VERSION log: reads the log of denied packets of a container.
 * gateway VERSION loader: loads rules for its caller (netns/loader/loader.h).
 *
 * A program of its own, so that what reads bytes of the jail has nothing of the supervisor's memory
 * (netns/gateway.h).
 */

#include "netns/gateway_parts.h"

/* The supervisor may be older, of a session that lives since before an upgrade. */
static int refuse_version(const char *own, const char *theirs)
{
	struct cj_error err = { 0 };
	const struct step_link link = { LINK_FD, "the supervisor", gateway_step_names };
	cj_refuse_as(&err, EPROTO, "the program 'gateway' is of cejail %s, not %s", own, theirs);
	(void)cj_hint(&err, "cejail was upgraded meanwhile: start the session or service again");
	step_abort(&link, &err);
	return EXIT_FAILURE;
}

int main(int argc, char **argv)
{
	char version[GATEWAY_VERSION_MAX];
	if (argc < 3) {
		(void)fprintf(stderr, "cejail: gateway: only cejail starts it, for --network\n");
		return EXIT_FAILURE;
	}
	gateway_version(version);
	const bool is_log = argc == 3 && strcmp(argv[2], "log") == 0,
		   is_loader = argc == 3 && strcmp(argv[2], "loader") == 0;
	const bool is_jail = argc == GATEWAY_WORDS && strcmp(argv[2], "jail") == 0;
	if (strcmp(argv[1], version) != 0 || (!is_log && !is_loader && !is_jail))
		return refuse_version(version, argv[1]);
	if (is_loader)
		gateway_run_loader(LINK_FD);
	if (is_log)
		return gateway_run_log();
	const struct gateway_wants wants = { .has_dns = strcmp(argv[3], "dns") == 0,
					     .has_proxy = strcmp(argv[4], "proxy") == 0 };
	return gateway_run(&wants);
}
