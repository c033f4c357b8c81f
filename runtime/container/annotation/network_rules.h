/* SPDX-License-Identifier: Apache-2.0 */
/*
 * network_rules - the nftables rules of the annotation io.cejail.network.
 *
 *	network_rules_check    outside   no process of the container has a right over the rules
 *	network_rules_prepare  outside   the allow list is resolved, the host's addresses are listed
 *	network_rules_load     inside    a process in the container's network namespace
 *
 * Loading runs before the container's program, whoever made the namespace: the kernel, a plugin, or
 * the pod.  The rules stay until the namespace ends.
 */
#pragma once

#include "netns/firewall/firewall.h"
#include "runtime/container/annotation/annotations.h"
#include "runtime/container/config/oci_config.h"

/*
 * network_rules_check - for create; `process` is NULL if the program is trusted.
 *
 * Fails: EPERM without a network namespace; with the caller's own; with one that belongs to a user
 *        namespace below the container's; for a capability that changes the rules, that sends
 *        packets around them, or that takes over a process which has one of these.
 */
int network_rules_check(const struct oci_config *config, const struct oci_process *process,
			struct cj_error *err);

/* The capabilities alone: for exec. */
int network_rules_check_process(const struct oci_process *process, struct cj_error *err);

/* *out borrows `wanted`; everything else lives in the arena. */
int network_rules_prepare(const struct annotations *wanted, struct arena *a,
			  struct firewall_container_spec *out, struct strings *warnings,
			  struct cj_error *err);

/* Sockets of the container's network namespace, for result_watch.h. */
struct network_handle {
	int rules_fd, log_fd; /* -1: none */
	char table[FIREWALL_TABLE_MAX];
};
#define NETWORK_HANDLE_NULL                                                                        \
	{                                                                                          \
		.rules_fd = -1, .log_fd = -1                                                       \
	}
void network_handle_close(struct network_handle *h);

/*
 * network_rules_load - in the calling process' network namespace.
 *
 * Needs:  CAP_NET_ADMIN over it.
 * Fails:  EPERM; EOPNOTSUPP without nf_tables; with nothing loaded.
 */
int network_rules_load(const struct firewall_container_spec *spec, struct network_handle *out,
		       struct cj_error *err);
