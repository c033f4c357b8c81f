/* SPDX-License-Identifier: Apache-2.0 */
/*
 * filter_calls - what is said about single system calls: which are reported, which
 * init needs, and the numbers of those libseccomp is too old to know.  Tables; pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CALLS_MAX 1024 /* numbers of native calls are below; today's end at 471 */

/* A call whose refusal is told: rare in programs that mean well, telling in others. */
struct call_notified {
	const char *name;
	int nr;
};
extern const struct call_notified calls_notified[];
extern const size_t calls_notified_count;

const char *call_notified_name(int nr); /* NULL: not told */

/* A call init makes between the seal and the end, with the arguments a filter may look at. */
struct call_needed {
	const char *name;
	int nr;
	uint64_t args[6];
};
extern const struct call_needed calls_needed[];
extern const size_t calls_needed_count;

/*
 * A call whose options (its request, its level) a policy lists: what the kernel answers for one
 * that it does not know.  0: not such a call.
 */
int call_option_errno(int nr);

/* Calls that a policy may allow, and of which the supervisor grants a jail only so many. */
enum call_bound {
	CALL_BOUND_FILTERS, /* seccomp filters: memory that all filters of the host share */
	CALL_BOUND_NETLINK, /* netlink sockets: what waits in them is counted by no cgroup */
	CALL_BOUND_COUNT
};

/* A condition on the low half of an argument; the kernel looks at no more of these. */
struct call_condition {
	unsigned index;
	bool is_unequal;
	uint32_t value;
};

struct call_bounded {
	int nr;
	enum call_bound bound;
	size_t nconditions;
	struct call_condition conditions[2];
};
extern const struct call_bounded calls_bounded[];
extern const size_t calls_bounded_count; /* at most 32: a bit mask names them */

/* Does the kernel look only at the low 32 bits of this argument? */
bool call_arg_is_int(int nr, unsigned index);

/* A call newer than libseccomp 2.5.4: its number, the same everywhere; -1: not one. */
int call_newer(const char *name);
