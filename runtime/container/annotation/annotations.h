/* SPDX-License-Identifier: Apache-2.0 */
/*
 * annotations - the annotations of a container that cejail-oci acts on.
 *
 *	io.cejail.network                public, or allow:HOST[:PORT],...
 *	io.cejail.network.name-servers   ADDRESS,...: port 53 of these is open, too
 *	io.cejail.network.allow-private  true: "allow:" may name private addresses
 *	io.cejail.result                 the file of the result: oci_result.h
 *	io.cejail.profile                a profile whose seccomp filter applies, too, with Landlock
 *
 * Each of them only restricts the container or reports about it.  An unknown name that begins with
 * "io.cejail." is an error: a misspelt restriction must not be a missing one.
 */
#pragma once

#include <linux/filter.h>

#include "netns/address/allowlist.h"
#include "netns/loader/loader.h"
#include "runtime/container/config/oci_config.h"

struct annotations {
	bool is_sandbox; /* of a pod: the program is the engine's own, and has no result */
	bool has_network;
	bool is_list; /* allow: */
	const struct allowlist_entry *allow;
	size_t nallow;
	bool may_be_private;
	const struct ip *name_servers;
	size_t nname_servers;
	const char *result;  /* NULL: none */
	const char *profile; /* NULL: none */
};

#define ANNOTATION_NETWORK "io.cejail.network"
#define ANNOTATION_PRIVATE ANNOTATION_NETWORK ".allow-private"
#define ANNOTATION_SERVERS ANNOTATION_NETWORK ".name-servers"
#define ANNOTATION_RESULT  "io.cejail.result"
#define ANNOTATION_PROFILE "io.cejail.profile"

/* All zero without any.  What *out points to lives in the arena, or in `pairs`. */
int annotations_read(const struct oci_pairs *pairs, struct arena *a, struct annotations *out,
		     struct cj_error *err);

/*
 * The nftables rules of io.cejail.network:
 *
 *	..._check_network    outside   no process of the container has a right over the rules
 *	..._prepare_network  outside   the allow list is resolved, the host's addresses are listed
 *	..._load_network     inside    a process in the container's network namespace
 *
 * Loading runs before the container's program, whoever made the namespace: the kernel, a plugin, or
 * the pod.  The rules stay until the namespace ends.
 */

/*
 * annotations_check_network - for create; `process` is NULL if the program is trusted.
 *
 * Fails: EPERM without a network namespace; with the caller's own; with one that belongs to a user
 *        namespace below the container's; for a capability that changes the rules, that sends
 *        packets around them, or that takes over a process which has one of these.
 */
int annotations_check_network(const struct oci_config *config, const struct oci_process *process,
			      struct cj_error *err);

/* The capabilities alone: for exec. */
int annotations_check_process(const struct oci_process *process, struct cj_error *err);

/* *out borrows `wanted`; everything else lives in the arena. */
int annotations_prepare_network(const struct annotations *wanted, struct arena *a,
				struct firewall_container_spec *out, struct strings *warnings,
				struct cj_error *err);

/* Sockets of the container's network namespace, for oci_result.h. */
struct annotations_network {
	int rules_fd, log_fd; /* -1: none */
	char table[FIREWALL_TABLE_MAX];
};
#define ANNOTATIONS_NETWORK_NULL ((struct annotations_network){ .rules_fd = -1, .log_fd = -1 })
void annotations_network_close(struct annotations_network *h);

/*
 * annotations_load_network - in the calling process' network namespace.
 *
 * Needs:  CAP_NET_ADMIN over it, for this process and for the loader.
 * Fails:  EPERM; EOPNOTSUPP without nf_tables; with nothing loaded.
 */
int annotations_load_network(struct loader *loader, const struct firewall_container_spec *spec,
			     struct annotations_network *out, struct cj_error *err);

/*
 * What the profile of io.cejail.profile adds to config.json.
 *
 * The profile's seccomp filter is loaded besides the one of config.json, so that a call must pass
 * both.  A call that `cejail run` would report to its supervisor is refused with EPERM.  Landlock
 * refuses programs from outside of the container's tree, and device nodes.  no_new_privs is set.
 * Nothing else of the profile applies: limits and mounts are the engine's.
 */

/*
 * annotations_prepare_profile - outside: finds the profile, and compiles its filter into the arena.
 *
 * A kernel without Landlock is a warning.
 */
int annotations_prepare_profile(const char *profile, struct arena *a, struct sock_fprog *out,
				struct strings *warnings, struct cj_error *err);

/* Inside, after landlock_apply_tree() and config.json's filter, which must allow seccomp(2). */
int annotations_load_profile(const struct sock_fprog *filter, struct cj_error *err);
