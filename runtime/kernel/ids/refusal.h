/* SPDX-License-Identifier: Apache-2.0 */
/*
 * refusal - why this host refuses a user namespace, or a system call that every jail needs.
 * refusal_classify() is pure; the rest acts, and changes nothing.
 */
#pragma once

#include "runtime/base/error.h"

/* Older kernels lack calls, and rlimits of a user namespace of its own. */
#define KERNEL_MINIMUM "5.14"

enum refusal {
	REFUSAL_UNKNOWN,
	REFUSAL_OFF,       /* sysctl user.max_user_namespaces */
	REFUSAL_FOR_USERS, /* sysctl kernel.unprivileged_userns_clone */
	REFUSAL_APPARMOR,
	REFUSAL_TOO_MANY,
	REFUSAL_SANDBOX, /* a user namespace above this one allows no more */
	REFUSAL_CHROOT,
	REFUSAL_IDS,    /* root may not choose the jail's user: a container without capabilities */
	REFUSAL_FILTER, /* an outer seccomp filter */
	REFUSAL_KERNEL, /* older than KERNEL_MINIMUM */
	REFUSAL_COUNT
};
extern const char *const refusal_texts[REFUSAL_COUNT]; /* the cause, in a few words */

struct refusal_facts {
	int code; /* the errno of the refused call */
	bool is_root, is_off, is_off_for_users, has_apparmor_restriction;
	bool is_nested; /* in a user namespace below the host's */
	bool is_filtered, is_chroot, lacks_ids;
};

enum refusal refusal_classify(const struct refusal_facts *facts);
enum refusal refusal_find(int code);

/* Is a seccomp filter in force that is not ours?  Only before cejail loads its own. */
bool refusal_is_filtered(void);

/* For the error of a refused call: adds a hint with the cause.  Returns -err->code. */
int refusal_hint(struct cj_error *err);
