/* SPDX-License-Identifier: Apache-2.0 */
/*
 * filter_calls - tables of system calls: which are notified, which init needs, which are bounded,
 * and the numbers of calls that libseccomp 2.5.4 does not know.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define CALLS_MAX 1024 /* above the number of every native call; the highest is 471 */

/* A call whose refusal is notified: well-meant programs rarely make it. */
struct call_notified {
	const char *name;
	int nr;
};
extern const struct call_notified calls_notified[];
extern const size_t calls_notified_count;

const char *call_notified_name(int nr); /* NULL: not notified */

/* A call that init makes after the seal, with the arguments that a filter may check. */
struct call_needed {
	const char *name;
	int nr;
	uint64_t args[6];
};
extern const struct call_needed calls_needed[];
extern const size_t calls_needed_count;

/*
 * For a call whose options (its request, its level) a policy lists: the kernel's errno for an
 * unknown option.  0: it is no such call.
 */
int call_option_errno(int nr);

/*
 * Calls that a policy may allow and that are still notified: the supervisor allows a number of them
 * per jail, or builds the network at the first.
 */
enum call_bound {
	CALL_BOUND_FILTERS, /* seccomp filters: memory that all filters of the host share */
	CALL_BOUND_NETLINK, /* netlink sockets: no cgroup counts their queued messages; and they
			       show the network */
	CALL_BOUND_NETWORK, /* inet sockets: no number, but the first one asks for the network */
	CALL_BOUND_OTHERS,  /* scheduling and limits of another process or thread than the caller */
	CALL_BOUND_COUNT
};

/*
 * The low half of argument `index`, which is all that the kernel reads of it, has this value; or,
 * with is_nonzero, the argument is not 0.
 */
struct call_bounded {
	int nr;
	enum call_bound bound;
	unsigned index;
	uint32_t value;
	bool is_nonzero;
};
extern const struct call_bounded calls_bounded[];
extern const size_t calls_bounded_count;

/* The process or thread that a call of CALL_BOUND_OTHERS names; 0: the caller; -1: several. */
pid_t call_names_process(int nr, const uint64_t *args);

/* Does the kernel look only at the low 32 bits of this argument? */
bool call_arg_is_int(int nr, unsigned index);

/* A call newer than libseccomp 2.5.4: its number, the same everywhere; -1: not one. */
int call_newer(const char *name);
