/* SPDX-License-Identifier: Apache-2.0 */
/* filter_parts - what the files of this room share. */
#pragma once

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>

#include "runtime/kernel/seccomp/policy.h"

#if defined(__x86_64__)
#define ARCH_NATIVE AUDIT_ARCH_X86_64
#define X32_BIT     0x40000000u
#elif defined(__aarch64__)
#define ARCH_NATIVE AUDIT_ARCH_AARCH64
#else
#error "no seccomp filter for this architecture yet"
#endif

/* --- tables of system calls: filter_calls.c --------------------------------------------------- */

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
	/* memory that sampling from outside can't see: never notified, but closed as a whole where
	 * no cgroup holds the memory limit */
	CALL_BOUND_UNCOUNTED,
	CALL_BOUND_COUNT
};

/*
 * The low half of argument `index`, which is all that the kernel reads of it, has this value; with
 * is_nonzero, the argument is not 0; with is_whole, each call.
 */
struct call_bounded {
	int nr;
	enum call_bound bound;
	unsigned index;
	uint32_t value;
	bool is_nonzero, is_whole;
};
extern const struct call_bounded calls_bounded[];
extern const size_t calls_bounded_count;

/* The process or thread that a call of CALL_BOUND_OTHERS names; 0: the caller; -1: several. */
pid_t call_names_process(int nr, const uint64_t *args);

/* Does the kernel look only at the low 32 bits of this argument? */
bool call_arg_is_int(int nr, unsigned index);

/* A call newer than libseccomp 2.5.4: its number, the same everywhere; -1: not one. */
int call_newer(const char *name);

/* --- a plan, and the program that filter_emit.c makes of it ----------------------------------- */

/* If all of `args` hold, `ret` (SECCOMP_RET_*) is the answer. */
struct filter_branch {
	const struct policy_arg *args;
	size_t nargs;
	uint32_t ret;
};

/* One call: the first branch that holds answers, else `otherwise`. */
struct filter_call {
	const struct filter_branch *branches;
	size_t nbranches;
	uint32_t otherwise;
};

struct filter_plan {
	struct filter_call calls[CALLS_MAX];
	uint32_t otherwise; /* for every number above */
};

/* A plan with one answer for every number; NULL: no memory. */
struct filter_plan *filter_plan_new(struct arena *a, uint32_t ret);

/* Adds a copy of the branch behind those of the call.  -ENOMEM. */
int filter_plan_add(struct filter_plan *plan, struct arena *a, unsigned nr,
		    const struct filter_branch *branch);

/*
 * filter_emit - plan to program, in `a`.
 *
 * Other architectures' entries (i386's, ARM's; x32 by its bit) end in KILL_PROCESS.
 * Fails: E2BIG past BPF_MAXINSNS; ENOMEM.
 */
int filter_emit(const struct filter_plan *plan, struct arena *a, const struct sock_filter **out,
		unsigned short *out_count, struct cj_error *err);

/* --- loading, and answers of a program: filter.c ---------------------------------------------- */

/* Loads the plan's program, without a listener, into this process.  `whose`: for messages. */
int filter_plan_load(const struct filter_plan *plan, const char *whose, struct cj_error *err);

/*
 * SECCOMP_RET_USER_NOTIF has data that the kernel ignores.  The supervisor runs the program again
 * with the notified registers and reads it: the errno with which the policy refuses the call; or a
 * mark, if the policy allows it, with the bound and whether the kernel shall log the call.
 */
#define FILTER_MARK       0x8000u
#define FILTER_MARK_LOG   0x4000u
#define FILTER_MARK_BOUND 0x00ffu

/* The bound in an answer; CALL_BOUND_COUNT: none, so the policy does not let the call go on. */
enum call_bound filter_bound_of(uint32_t answer);

/* The errno of an answer without a bound.  ENOSYS for any answer but a notified refusal. */
int filter_errno_of(uint32_t answer);

/*
 * filter_run - what a program of filter_emit() answers, computed as the kernel does.
 *
 * SECCOMP_RET_KILL_PROCESS for a program that filter_emit() does not write.
 */
uint32_t filter_run(const struct sock_filter *insns, size_t ninsns,
		    const struct seccomp_data *data);

/* --- how often something is done: a burst at once, then a number per millisecond ------------- */

#define RATE_PAUSE_MS 10 /* a pause is at least so long, so that pauses cost little */

struct rate {
	unsigned per_ms, burst;
	unsigned left;     /* so many may be done now */
	uint64_t since_ms; /* from here on time earns more */
};

void rate_init(struct rate *r, unsigned per_ms, unsigned burst, uint64_t now_ms);

/* Something of this price was done. */
void rate_take(struct rate *r, unsigned price);

/* With nothing left: adds what the time has earned, after a pause.  Is something left? */
bool rate_refill(struct rate *r, uint64_t now_ms);

/* The end of the pause, on clock_ms(); 0: something is left. */
uint64_t rate_paused_until_ms(const struct rate *r);

/* --- how many netlink sockets a jail has ------------------------------------------------------ */

/* The row of netlink in the text of /proc/net/protocols; -1: there is none. */
long socket_count_parse(const char *text);
