/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session - a prepared jail that stays, and runs more than one program, one after another or at
 * once.
 *
 * The *keeper* is the process that has prepared the jail.  For each program (an *exec*) it forks an
 * *exec worker*, which uses jail.h from jail_start() on, with a view of the jail:
 *
 *	keeper                                  exec worker (a fork of the keeper)
 *	session_prepare(plan, &jail)
 *	session_begin(jail, &session)
 *	session_exec_reserve(session, &slot)
 *	fork()  ------------------------------> session_exec_open(session, slot, id, &view)
 *	session_serve(session, ...) ...         jail_start(view), jail_wait(view), ...
 *	                                        jail_destroy(&view), _exit()
 *	session_exec_done(session, slot) <----- SIGCHLD, or its pidfd
 *	session_finish(&session)
 *	jail_destroy(&jail)
 *
 * Inside, init forks a *reaper* for each exec: our own code, sealed like init.  It is the subreaper
 * of all processes of its exec, so "the processes of an exec" are the descendants of its reaper.
 * session_init.c opens with the protocol, cejail-session(1) has the promises.
 */
#pragma once

#include <poll.h>

#include "runtime/base/error.h"
#include "runtime/jail/jail_ops.h"
#include "runtime/jail/outcome.h"

struct jail;
struct plan;
struct session;

/* Execs that run or have left processes behind, at a time.  Each has a reaper, which counts as one
 * of the jail's processes. */
#define SESSION_EXECS_MAX 32

#define SESSION_KILL_MS 5000 /* a process in an uninterruptible call ends late, not never */
/* The longest time from cancelling a cell until its end: the interrupt, then the kill. */
#define CELL_CANCEL_MS (INTERRUPT_MS + SESSION_KILL_MS)

/*
 * How a session ends.  The first reason counts, at whichever process it arises:
 *
 *	server     LEASE, IDLE, DRAIN, CLOSED   ends the keeper, whose last line only says "closed"
 *	keeper     CLOSED, KILLED               the server has ended it, or SIGTERM came
 *	the jail   OOM, KILLED, STUCK, FAILED   session_serve() returns them in the keeper, which
 *	                                        sends them to the server
 */
enum session_end {
	SESSION_LIVES,
	SESSION_LEASE,
	SESSION_IDLE,
	SESSION_DRAIN,  /* the service ends */
	SESSION_CLOSED, /* by its caller; a keeper reports only this end and those below */
	SESSION_OOM,    /* all execs together used more memory than the session may */
	SESSION_KILLED, /* init has ended */
	SESSION_STUCK,  /* an exec's processes could not be killed in SESSION_KILL_MS, or can't be
			   told apart because a program killed its reaper */
	SESSION_FAILED, /* cejail itself failed; the error says why */
	SESSION_END_COUNT
};
struct session_end_row {
	const char *name; /* in the service's answers */
	const char *text; /* the sentence that callers read */
};
extern const struct session_end_row session_ends[SESSION_END_COUNT];

/* How far the kernel keeps the execs of one session apart.  cejail-session(1), SECURITY.md. */
enum session_isolation {
	SESSION_SHARED,   /* no Landlock: each exec may trace, read and signal all others */
	SESSION_UNTRACED, /* Landlock before Linux 6.12: may signal all others, and kill reapers */
	SESSION_ISOLATED, /* an exec can neither open another's /proc files nor signal it */
	SESSION_ISOLATION_COUNT
};

/* session_prepare - jail_prepare() for a jail that may become a session. */
int session_prepare(const struct plan *plan, const char *id, struct jail **out,
		    struct cj_error *err);

/*
 * session_begin - make a session of a sealed jail that has no launcher and no program.
 *
 * Borrows j until session_finish().  The execs have cgroups of their own below the jail's if its
 * plan is_divided.  A warning about a lack of isolation is added to the jail's own (jail_warn())
 * and so is in the outcome of each exec.
 * Fails: with plan->strict where the execs would not be SESSION_ISOLATED; EBUSY when a launcher or
 * a program is in the jail; then destroy the jail.
 */
int session_begin(struct jail *j, struct session **out, struct cj_error *err);

/* It has its caller: cejail ps shows its jail as one that runs, no longer as one that waits. */
void session_taken(struct session *s);

enum session_isolation session_isolation(const struct session *s);

/*
 * session_serve - one round: waits for the session's own sources and the caller's, at most
 * timeout_ms (-1: no limit), and answers what came.
 *
 * Answers notified system calls, builds the network on first use, samples the usage of the whole
 * jail, goes on killing what session_exec_done() began to kill, and frees slots.
 * Returns how many of fds[] have revents.  -ECANCELED: the session has ended, *end says why, and
 * *err has one sentence for the user; kill it with session_finish() and jail_destroy().
 * Runs in: the keeper.
 */
int session_serve(struct session *s, struct pollfd *fds, size_t nfds, int timeout_ms,
		  enum session_end *end, struct cj_error *err);

/*
 * session_change_network - network_change() of the session's jail, for all its execs.
 * Fails: as that; EOPNOTSUPP for a session without a public network.
 */
int session_change_network(struct session *s, const struct network_lists *lists,
			   struct cj_error *err);

/*
 * session_exec_reserve - ask init for a reaper, before the exec worker is forked.
 *
 * `id`: for session_exec_kill_left(); "": none.
 * Fails: EBUSY when SESSION_EXECS_MAX slots are in use; EPIPE when init has ended.
 * Runs in: the keeper.  Release the slot with session_exec_done() in any case.
 */
int session_exec_reserve(struct session *s, const char *id, unsigned *out_slot,
			 struct cj_error *err);

/*
 * session_exec_open - a view of the jail for one exec: plan, layers and handles are the session's,
 * link, usage and streams are its own.
 *
 * jail_start(), jail_wait(), jail_collect(), jail_read_value() and jail_destroy() work on it.
 * jail_wait() kills the exec's processes unless its main process ended by itself.  The time limit
 * with program->limits.interrupts first sends SIGINT to the main process, and waits 2 s.
 * An exec worker first calls session_fork_keep().
 * The program's code_path must not be that of another running exec: files of inputs are replaced.
 *
 * Runs in: the exec worker; or in the keeper, for a program that the keeper holds itself.
 * Fails: init's or the reaper's own error, e.g. EAGAIN when no further process is allowed.
 */
int session_exec_open(struct session *s, unsigned slot, const char *id, struct jail **out,
		      struct cj_error *err);

/*
 * session_exec_signal - a signal to the exec's main process; when that has ended, to each process
 * that it left behind.
 *
 * Fails: ESRCH when there is none (it has not started, or has ended); EINVAL for a bad number.
 * Runs in: the keeper.
 */
int session_exec_signal(struct session *s, unsigned slot, int signo, struct cj_error *err);

/*
 * session_exec_done - after the exec worker ended, however it ended.
 *
 * If it did not finish its jail_wait(), what it left is killed in the following rounds of
 * session_serve().  The slot is freed there when nothing of the exec lives; processes that a
 * program left behind, such as a server, keep it.
 * Runs in: the keeper.  Never blocks.
 */
void session_exec_done(struct session *s, unsigned slot);

/*
 * session_exec_kill_left - kill what the ended exec `id` left behind, as session_exec_done() kills
 * what a dead worker left.  False: nothing is left, or the exec runs.
 */
bool session_exec_kill_left(struct session *s, const char *id);

/* Its exec worker has not finished jail_wait(): the program may run, or has not begun. */
bool session_exec_runs(const struct session *s, unsigned slot);

/* What the whole session used and was refused, since its begin. */
struct session_status {
	struct usage usage;
	uint64_t memory_bytes; /* in use now, files in memory included; UINT64_MAX: not known */
	const struct denied_syscall *denied; /* valid until the next session_serve() */
	size_t ndenied;
	bool denied_is_complete;
	uint64_t denied_packets; /* as far as the keeper has read the log and counters */
	unsigned execs;          /* slots in use */
};
void session_status(struct session *s, struct session_status *out);

/* Kills the whole jail, releases what belongs to the session.  Then destroy the jail. */
void session_finish(struct session **s);

/* --- a fork of the keeper: exec_view.c ----------------------------------------------------- */

/*
 * session_fork_charged - child_fork(), and the memory of the child counts as the session's, where a
 * cgroup counts: what it writes to a tmpfs is charged to it.
 *
 * The child is no process of the jail.  It is forked also when the session has no process left.
 * Runs in: the keeper.
 */
pid_t session_fork_charged(struct session *s, int *out_pidfd);

#define SESSION_NO_SLOT      SESSION_EXECS_MAX
#define SESSION_FORK_FDS_MAX 9

/*
 * session_fork_keep - close all descriptors but the standard streams, fds[], and what is needed to
 * look at the jail's files and, with a slot, to open that exec.
 *
 * The link to init, above all: init obeys whoever has it.  And a copy of a socket of the network
 * would keep its connection open, and in the keeper's epoll, after the keeper has closed it:
 * epoll(7).  Entries of fds[] may be -1.
 * Runs in: a fork of the keeper, first.
 */
int session_fork_keep(struct session *s, unsigned slot, const int *fds, size_t nfds,
		      struct cj_error *err);
