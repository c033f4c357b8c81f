/* SPDX-License-Identifier: Apache-2.0 */
/*
 * uplink_keeper - the process that runs a helper, and whose end also ends the helper.  Acts.
 *
 * Theory of operation
 *
 *	supervisor              intermediate process          keeper                helper
 *
 *	clone3 ---------------> dies with the supervisor
 *	                        joins the gateway's user
 *	                        namespace, becomes its user
 *	                        clone3 (CLONE_PARENT) ------> pid 1 of a new pid
 *	                        joins the gateway's network   namespace, own root
 *	                        namespace, makes the tap      (uplink_root)
 *	                        device (uplink_tap)           clone3 -------------> waits
 *	<--- started, pidfd --- "the device is there" ----------------------------> waits
 *	reaps the intermediate  ends                          drops all
 *	process                                               capabilities -------> execve with the
 *	                                                                            capabilities it
 *	                                                                            needs; attaches
 *	pidfd is readable <------- exit, last output -------- reads stderr <------- ends
 *
 * A process that has joined a user namespace can't leave it, so an intermediate process joins.  By
 * CLONE_PARENT the keeper is still the supervisor's child.  The keeper is created before the
 * intermediate process leaves the caller's network namespace, and before the device is made: both
 * work at the same time.  The supervisor learns of the keeper when the device is there.  From then
 * on only the helper can give it a carrier.
 *
 * When the supervisor has killed and reaped the keeper, the kernel has ended all processes of its
 * pid namespace: pid_namespaces(7).  The device stays, without carrier, until the gateway's network
 * namespace ends.
 *
 * The keeper ends with the supervisor in two ways: PR_SET_PDEATHSIG, and the end of the link.
 * Keeper and helper stay in the caller's network namespace: there the helper makes its sockets.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "runtime/base/error.h"

struct uplink_keeper {
	int pidfd;   /* -1: none; readable when helper and keeper have ended */
	int link_fd; /* to the keeper; its end of file ends the keeper */
};
#define UPLINK_KEEPER_NONE                                                                         \
	{                                                                                          \
		.pidfd = -1, .link_fd = -1                                                         \
	}

struct uplink_keeper_spec {
	const char *path; /* of the helper */
	const char *const *argv;
	bool is_net_admin; /* the helper gets CAP_NET_ADMIN, too */
	int gateway_fd;    /* any socket of the gateway */
};

/*
 * uplink_keeper_start - make the tap device in the gateway, then run the helper below the user
 * namespace that owns the gateway.
 *
 * The helper finds the gateway's network namespace as /proc/self/fd/0; it has no other descriptor,
 * an empty environment, and CAP_SYS_ADMIN over that user namespace.
 * Must not: be called before the id maps are written.
 * Fails:    EPERM when the caller is not the owner of the user namespace.  A later failure, also of
 *           execve(2), is reported by uplink_keeper_describe_exit().
 * Follows:  netdevice(7) SIOCGSKNS, ioctl_ns(2), setns(2), capabilities(7) "Ambient".
 */
int uplink_keeper_start(const struct uplink_keeper_spec *spec, struct uplink_keeper *out,
			struct cj_error *err);

/* Once pidfd is readable: "exit status 1: 'its last output'"; one line, printable. */
void uplink_keeper_describe_exit(struct uplink_keeper *k, char *out, size_t size);

/* Kills and reaps the keeper: afterwards none of its processes is left. */
void uplink_keeper_stop(struct uplink_keeper *k);
