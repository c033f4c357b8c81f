/* SPDX-License-Identifier: Apache-2.0 */
/*
 * call_list - a filter for a process of ours that reads hostile data and executes nothing: it may
 * make these system calls, and every other one fails with EPERM.
 *
 * The filter of a jail is another one: filter.h.
 */
#pragma once

#include <linux/seccomp.h>

#include "runtime/base/error.h"

/* Half of an argument, 0 to 5.  The kernel reads an int from the low half alone. */
#define CALL_LOW(argument)  offsetof(struct seccomp_data, args[argument])
#define CALL_HIGH(argument) (CALL_LOW(argument) + sizeof(uint32_t))

/* (half & mask) is `value`; or a low half is above it, and then the mask has all bits. */
struct call_check {
	size_t half; /* CALL_LOW(), CALL_HIGH(); 0: no check */
	uint32_t mask, value;
	bool is_above;
};

#define CALL_CHECKS_MAX 4

/* The call is allowed if all checks hold.  A call may have several rules. */
struct call_rule {
	unsigned number; /* of this machine's architecture */
	struct call_check checks[CALL_CHECKS_MAX];
};

struct call_list {
	const unsigned *allowed; /* numbers of calls that need no check */
	size_t nallowed;
	const struct call_rule *rules;
	size_t nrules;
};

/*
 * call_list_load - load it into the calling process.
 *
 * Must not: be called before no_new_privs.
 * `whose`: for messages, "the unpacker".
 * Follows: seccomp(2).
 */
int call_list_load(const struct call_list *list, const char *whose, struct cj_error *err);
