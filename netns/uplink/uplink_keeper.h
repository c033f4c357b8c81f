/* SPDX-License-Identifier: Apache-2.0 */
/*
 * uplink_keeper - the process that holds a helper, and takes it with it when it ends.  Acts.
 *
 * Theory of operation
 *
 *	supervisor             intermediate                      keeper                helper
 *	clone3  -------------> dies with the supervisor
 *	                       joins the gateway's user
 *	                       namespace, becomes its user
 *	                       clone3 (CLONE_PARENT) ---> pid 1 of a new pid
 *	 <------ born, pidfd -- ends                      namespace, private
 *	reaps the intermediate                                   root (uplink_root)
 *	                                                  clone3 -------------> execve, with the
 *	                                                  drops everything      capabilities it
 *	                                                                        needs
 *	reads its stderr <--- pidfd is readable <-------- ended, last words --- ends
 *
 * The intermediate is there because who joins a user namespace can't come back.  The keeper is the
 * supervisor's own child all the same, so killing and reaping it ends, when waitid(2) returns, all
 * that ever ran in its pid namespace: pid_namespaces(7).  It ends with the supervisor in two ways:
 * PR_SET_PDEATHSIG, and the end of the link.  The helper makes its sockets in the caller's network
 * namespace, which neither of them leaves.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "runtime/base/error.h"

struct uplink_keeper {
	int pidfd;   /* -1: none; readable when helper and keeper are gone */
	int link_fd; /* its end is the keeper's */
};
#define UPLINK_KEEPER_NONE                                                                         \
	{                                                                                          \
		.pidfd = -1, .link_fd = -1                                                         \
	}

/*
 * uplink_keeper_start - run `path` with argv, below the user namespace that owns the gateway.
 *
 * The helper finds the gateway's network namespace as /proc/self/fd/0; it has no other descriptor,
 * an empty environment, CAP_NET_ADMIN and CAP_SYS_ADMIN over that user namespace.
 * gateway_fd: any socket of the gateway's.  Must not: be called before the id maps are written.
 * Fails:    EPERM when the caller is not the owner of the user namespace.  What fails later, also
 *           execve(2), is the helper's last words.
 * Follows:  netdevice(7) SIOCGSKNS, ioctl_ns(2), setns(2), capabilities(7) "Ambient".
 */
int uplink_keeper_start(const char *path, const char *const *argv, int gateway_fd,
			struct uplink_keeper *out, struct cj_error *err);

/* Once pidfd is readable: "exit status 1: 'what it wrote last'"; one line, printable. */
void uplink_keeper_describe_exit(struct uplink_keeper *k, char *out, size_t size);

/* Nothing of it is left when this returns. */
void uplink_keeper_stop(struct uplink_keeper *k);
