/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zygote - an interpreter that is started once; jails get a fork of it instead of a new one.
 *
 *	zygote_refusal(plan)          why this plan's jails can't use a zygote
 *	zygote_spawn(launcher)        start one, outside of every jail
 *	zygote_await_ready()          it has loaded its modules and serves requests
 *	jail_warm(jail, socket)       a fork of it enters the jail and waits there (jail.h)
 *	zygote_end()                  kill it; jails that it served go on
 *
 * Theory of operation
 *
 * The zygote is the profile's interpreter with its launcher.  It runs with the rights of the
 * process that started it, outside of every jail, and executes trusted code only: the launcher
 * and the modules that the profile names.  libexec/cejail/zygote.so is loaded into it (LD_PRELOAD)
 * and replaces fork(3).  The launcher imports its modules and calls fork(3) once.  In the zygote
 * this call never returns.  It first makes a trial: a child outside of every jail, which goes on
 * until it says ready, and is killed.  What that has used of the memory, every later child gets at
 * once (zygote_pages.c).  Then it serves requests on descriptor 3.  Each request makes one child,
 * in which the call returns 0, inside a jail and sealed.  So the interpreter does what it always
 * does after a fork: random generators are seeded again, for example.  The launcher then behaves as
 * a cold one: it says ready on descriptor 3 and receives its program there.  Later calls are those
 * of the C library.
 *
 *	supervisor           zygote                   init, pid 1 of a sealed jail
 *	STEP_ADOPT --------------------------------->  create the launcher's socket pair
 *	       <--------------------------- STEP_ADOPTED, far end, namespaces, Landlock ruleset
 *	ZYGOTE_REQUEST, all descriptors -->
 *	                     clone3: C1, in the jail's cgroup; setns(2): all namespaces
 *	                       clone: C2, in the jail's pid namespace
 *	                         fork: P; C2 ends, so P becomes a child of init
 *	                     P: closes all other descriptors, becomes the jail's user, enters the
 *	                        program's user namespace, sets limits, no_new_privs and Landlock,
 *	                        drops every capability, loads the filter
 *	       <------------ ZYGOTE_SEALED, seccomp listener
 *	check P in /proc
 *	       <------------ end of the report socket: C1 has ended
 *	                     P: the launcher's fork(3) returns 0; "ready" ---> init
 *	       <--------------------------- STEP_WARMED
 *
 * C1 and C2 share the zygote's memory as after vfork(2), so one jail costs one copy of the page
 * tables.  The supervisor waits for their end before it starts the program or ends the jail: if a
 * process that shares its memory is killed, the zygote ends, too.  P is sealed by the functions
 * that seal init, in their order, before the launcher runs a line.  A failure ends P and becomes
 * the supervisor's error.
 *
 * Why init is not a fork of the zygote itself: pid 1 stays our own small process, the supervisor's
 * child, the same for every jail; and the untrusted program never shares a process with the code
 * that reports its end.  Entering a prepared jail was as fast in a comparison of both.
 *
 * The zygote's program is behind a mount of its own, so that /proc/self/exe leads to no writable
 * file (zygote_tree.h).  Landlock therefore refuses a fork to execute /proc/self/exe.
 *
 * Children of one zygote share their address layout, hash seed, stack protector and pointer guard
 * values.  SECURITY.md says what follows, and the service replaces its zygotes.
 */
#pragma once

#include "profiles/plan/plan.h"
#include "runtime/base/error.h"

struct zygote {
	int sock_fd;    /* for jail_warm(); may be duplicated and passed to other processes */
	int pidfd;      /* readable when it has ended */
	int scratch_fd; /* the empty directory that it began with, and what it wrote there */
	pid_t pid;
};
#define ZYGOTE_NULL ((struct zygote){ .sock_fd = -1, .pidfd = -1, .scratch_fd = -1 })

/*
 * Why jails of this plan can't use a zygote: a sentence, lower case, no full stop; NULL: they can.
 * The interpreter and its modules must have the same paths in the jail as on the host.
 * Set plan->uses_zygote before jail_prepare(), or jail_warm() refuses it.
 */
const char *zygote_refusal(const struct plan *plan);

/*
 * zygote_spawn - execute `launcher` (plan_launcher()) as a zygote.
 *
 * It has the launcher's arguments and environment, its script on descriptor 3, an empty directory
 * for caches on descriptor 4 (no fork has that), "/" as directory, a pipe as input and output, and
 * `log_fd` as standard error (-1: that pipe).  It is executed from a read-only mount, so no program
 * can change the interpreter's file through /proc/self/exe.
 * It dies with the calling thread, ends when every copy of out->sock_fd is closed, and its pid is
 * higher than 300: OpenSSL detects a fork by its pid.  It must be a process of the same user, in
 * the same user namespace and, where a cgroup is delegated, below the same delegation as the
 * supervisors.
 * The calling process must have one thread.
 * Fails: with the stage "zygote".  Nothing is acquired then.
 */
int zygote_spawn(const struct program *launcher, int log_fd, struct zygote *out,
		 struct cj_error *err);

/*
 * zygote_await_ready - wait until it serves requests, at most timeout_ms.
 * Once for each zygote, before any use of its socket; the socket is readable when there is
 * something to read.  Fails: ETIMEDOUT; EPIPE when it has ended; EBUSY when it can't be
 * forked: it has more than one thread, or memory that its forks would share (zygote_inside.h).
 */
int zygote_await_ready(const struct zygote *z, unsigned timeout_ms, struct cj_error *err);

/* Kills and reaps it, where the calling process is its parent; closes what *z holds. */
void zygote_end(struct zygote *z);
