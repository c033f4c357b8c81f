/* SPDX-License-Identifier: Apache-2.0 */
/*
 * filter - the seccomp filter: compiled in the supervisor or ahead of time, loaded last by init or
 * by a zygote's fork, answered by the supervisor while the payload runs.
 *
 * Notified calls (calls_notified[] in filter_calls.c: mount, ptrace, unshare, bpf, ...) are refused
 * by user notification, so that the result can name them: seccomp_unotify(2).
 *
 * Bounded calls (calls_bounded[]: loading a filter, opening a netlink socket) are notified, too,
 * and the supervisor allows the first ones.  With asks_network, inet sockets are notified as well:
 * calls that ask for the network wait until the supervisor has built it.  With is_divided, calls
 * that change another process' scheduling or limits are notified, and a session refuses them.  Only
 * registers and the caller's own ids decide all of these.
 *
 * After a burst the supervisor answers at a bounded rate, and the callers wait.  So a program that
 * repeats such calls slows down its own jail and little else.
 */
#pragma once

#include <linux/filter.h>

#include "runtime/kernel/seccomp/policy.h"
#include "runtime/base/error.h"

#define FILTER_NAME_MAX  48  /* of a refused call: "socket(AF_ALG)" */
#define FILTER_NAMES_MAX 256 /* of different refused calls that are counted */

/* How many of the calls in calls_bounded[] a jail may make; one more is refused. */
#define FILTER_LOADS_MAX   32 /* filters loaded, over the jail's whole life */
#define FILTER_NETLINK_MAX 64 /* netlink sockets that exist at a time */

/* The owner sets the last three flags before filter_load(). */
struct filter {
	const struct sock_filter *insns; /* borrowed from the built-in, or in the arena given */
	unsigned short ninsns;
	bool has_rings; /* the policy allows io_uring: sockets without a notification */
	bool
	    asks_network; /* inet sockets are notified, so that the network is built on first use */
	bool is_divided;  /* the jail may become a session: CALL_BOUND_OTHERS is notified */
	/* No cgroup holds the memory limit, so memory is refused (ENOSYS) that sampling can't see
	 * and that grows large: memfd_create and all of System V IPC, which live on when nobody
	 * maps them.  What the policy refuses stays as it is. */
	bool closes_uncounted;
	struct strings notes; /* what the policy names and cejail can't do, a sentence each */
};

/* The default filter, compiled when cejail was built (build/.../default_filter.c). */
void filter_builtin(struct filter *out);

/*
 * filter_compile - policy to BPF: a binary tree over ranges of calls, then their conditions.
 *
 * The strictest rule that matches a call decides, as with several filters in the kernel; without
 * one the default decides.  x32 and i386 entries are killed.  clone3 is always ENOSYS: a filter
 * can't read its flags.  Loading a filter with a listener is refused: it could answer instead of
 * ours. A policy that forbids a call which init needs after the seal is refused, with the call's
 * name.
 */
int filter_compile(const struct policy *policy, struct arena *a, struct filter *out,
		   struct cj_error *err);

/*
 * filter_load - put it on the calling process, for good.
 *
 * Runs in:  init or a zygote's fork, after no_new_privs.  *out_listener_fd is -1 where the kernel
 * gives none (an outer sandbox has one already): notified calls are then refused with ENOSYS, and
 * not counted.
 * Verifies the filter with a call that must fail.
 */
int filter_load(const struct filter *f, int *out_listener_fd, struct cj_error *err);

/*
 * filter_load_reduced - before filter_load(): also refuse what only namespaces make harmless.
 *
 * Sockets, System V IPC and POSIX queues, inotify, changes of attributes by path, and limits and
 * scheduling of other processes.  Not reported.  Verifies the filter, too.
 */
int filter_load_reduced(struct cj_error *err);

/*
 * filter_settle - the program as filter_load() loads it, into `insns`, which has room for it: the
 * calls that the supervisor does not watch are allowed or refused by the kernel.
 */
void filter_settle(const struct filter *f, struct sock_filter *insns);

/* Does the policy refuse a call that is reported? */
bool filter_reports(const struct filter *f);

/* What was tried and refused: counted by name. */
struct denied_syscall {
	const char *name; /* "mount"; "socket(AF_ALG)": from a table, or libseccomp's name, never
			     from inside */
	unsigned count;
};

struct filter_watch; /* the supervisor's side of a listener */

/* Takes listener_fd; borrows f's program. */
int filter_watch_create(int listener_fd, const struct filter *f, struct filter_watch **out,
			struct cj_error *err);
void filter_watch_destroy(struct filter_watch **slot);
/* The caller's to close, with others; -1: it is closed.  Only filter_watch_destroy() may follow. */
int filter_watch_take_listener(struct filter_watch *w);
/* Where to count the jail's netlink sockets.  Borrows proc_fd, the jail's /proc. */
void filter_watch_set_proc(struct filter_watch *w, int proc_fd);

#define FILTER_GROUPS_MAX 32 /* of callers; SESSION_EXECS_MAX */

/*
 * filter_watch_split - the jail's programs are several groups of callers: the execs of a session.
 *
 * `find` returns the group of a process or thread, named by its pid here; -1: not known.  It sets
 * *out_price to the number of files that it has read, because reading costs as much as answering.
 * The caller of the system call is stopped meanwhile, unless it is killed.
 * `refused` is called with the group before the call is answered.  Filters that are loaded count
 * for each group (FILTER_LOADS_MAX).
 * `is_itself` says whether the thread `pid`, or its process, is `named` in the jail.  A call of
 * CALL_BOUND_OTHERS may change that one alone: any other process may end before the call goes on,
 * and its number may become that of a reaper.
 */
struct filter_groups {
	int (*find)(void *context, pid_t pid, unsigned *out_price);
	void (*refused)(void *context, int group, const char *name);
	bool (*is_itself)(void *context, pid_t pid, pid_t named);
	void *context;
};
void filter_watch_split(struct filter_watch *w, const struct filter_groups *groups);
/* The group is empty; its number may be used again. */
void filter_watch_forget(struct filter_watch *w, int group);

/*
 * For the next poll(2).  -1: closed, or many calls wait for the network, or answering pauses, see
 * filter_watch_paused_until_ms().
 */
int filter_watch_fd(struct filter_watch *w);

/* When filter_watch_fd() has a descriptor again, on clock_ms(); 0: it does not pause. */
uint64_t filter_watch_paused_until_ms(const struct filter_watch *w);

/*
 * Answers what is pending (at most a handful, never blocks); reports the name of the last one
 * through *out_name when it is the first of its name, for --events-fd, else NULL.
 */
void filter_watch_answer(struct filter_watch *w, const char **out_name);

/*
 * Does a call wait for the network?  With asks_network inet and netlink sockets do, until
 * filter_watch_network_settled().  Other calls are answered meanwhile.
 */
bool filter_watch_wants_network(const struct filter_watch *w);

/*
 * The network is ready, or there is none: lets the waiting calls and all later ones go on.  A
 * caller may have died, or a signal may have interrupted it; then it asks again (before Linux 5.19)
 * and goes on at once.
 */
void filter_watch_network_settled(struct filter_watch *w);

/*
 * By first appearance; valid until destroyed.  *out_complete: false if there were more than
 * FILTER_NAMES_MAX names, or the listener failed.
 */
const struct denied_syscall *filter_watch_denied(const struct filter_watch *w, size_t *out_count,
						 bool *out_complete);
