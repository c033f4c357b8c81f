/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci_seccomp - "linux.seccomp" of a config.json as plain data.
 *
 * Names of system calls stay names.  One that libseccomp does not know is skipped by the compiler,
 * as each engine's default profile expects.
 */
#pragma once

#include "runtime/kernel/seccomp/policy.h"
#include "runtime/container/config/oci_value.h"

struct oci_seccomp_rule {
	struct strings names;
	enum policy_action action;
	struct oci_u64 errno_ret;      /* of ERRNO; the message of TRACE; at most UINT16_MAX */
	const struct policy_arg *args; /* process_filter.c says how several are read */
	size_t nargs;
};

struct oci_seccomp {
	bool is_given;
	enum policy_action default_action;
	struct oci_u64 default_errno_ret; /* not set: EPERM */
	const uint32_t *architectures;    /* SCMP_ARCH_X86_64; none: the native one */
	size_t narchitectures;
	uint32_t flags;                /* SECCOMP_FILTER_FLAG_LOG | ... of linux/seccomp.h */
	const char *listener_path;     /* a unix socket, absolute; NULL: none */
	const char *listener_metadata; /* NULL: none */
	const struct oci_seccomp_rule *rules;
	size_t nrules;
	bool notifies; /* an action is NOTIFY: listener_path is given */
};

/* As config.json and `features` write them. */
extern const struct oci_names oci_seccomp_actions, oci_seccomp_archs, oci_seccomp_flags;

extern const struct json_record oci_seccomp_record; /* "seccomp", for oci_linux.c */
