/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session_state - what a session holds; private to this folder.
 *
 * The keeper's memory, except struct session_shared: the keeper and its exec workers map it
 * together.  A row has one writer for each member, named beside it; no process of the jail can
 * reach it.
 */
#pragma once

#include <stdatomic.h>

#include "netns/firewall/denials.h"
#include "runtime/base/error.h"
#include "runtime/jail/jail_state.h"
#include "runtime/jail/usage/process_usage.h"
#include "runtime/jail/usage/sampler.h"
#include "runtime/jail/usage/usage_watch.h"
#include "runtime/kernel/cgroup/cgroup.h"
#include "runtime/kernel/seccomp/filter.h"
#include "runtime/session/session.h"

struct jail;
struct outcome;
struct session;

#define SESSION_RULES_MAX  (64u << 10)
#define SESSION_DENIED_MAX 32 /* of different refused calls that are counted for one exec */

/*
 * How far an exec has come, as its worker tells it in the memory that it shares with the keeper;
 * the keeper writes EXEC_RESERVED.  What the keeper makes of it is enum slot_state.
 */
enum exec_state {
	EXEC_RESERVED,      /* its worker has not finished */
	EXEC_LEFT,          /* finished; the main process ended, others may have stayed */
	EXEC_EMPTY,         /* finished, and none of its processes lives */
	EXEC_STUCK,         /* a process did not die in time */
	EXEC_REAPER_KILLED, /* the reaper ended before its last child did */
};

/* Written by the keeper, read by the exec's worker: a count is raised after its name is there. */
struct session_denied_row {
	char name[FILTER_NAME_MAX];
	_Atomic unsigned count;
};

/* Who may use the denied packets of a row. */
enum packets_state {
	PACKETS_COUNTED,  /* the keeper: it adds to them */
	PACKETS_ASKED,    /* the keeper, for the last time: the exec's worker waits */
	PACKETS_SETTLED,  /* the exec's worker */
	PACKETS_GIVEN_UP, /* nobody: the keeper's answer did not come in time */
};

struct session_row {
	_Atomic unsigned state; /* enum exec_state */
	/* The exec's worker writes these.  0: not known yet. */
	_Atomic pid_t reaper_pid;      /* in the jail's pid namespace */
	_Atomic pid_t reaper_host_pid; /* in the keeper's */
	_Atomic pid_t main_pid;        /* in the jail's; 0 again when it has ended */
	_Atomic bool is_started;       /* the program was sent: the reaper may have children */
	_Atomic uint32_t cell;         /* whose code the interpreter runs, as it says; 0: none */
	/* The keeper writes these (session_denied.c). */
	_Atomic unsigned ndenied;
	_Atomic bool denied_is_incomplete;
	_Atomic bool is_oom_killed; /* the keeper killed it: it used most of the session's memory */
	struct session_denied_row denied[SESSION_DENIED_MAX];
	/* session_denied.c */
	_Atomic unsigned packets_state; /* enum packets_state */
	bool packets_are_incomplete;
	struct denials packets;
};

struct session_shared {
	/* The keeper writes these; the first two before it kills init. */
	_Atomic unsigned end;     /* enum session_end */
	_Atomic bool is_closing;  /* the session is closed, which cancels its execs */
	_Atomic unsigned network; /* enum network_state */
	/*
	 * Why it failed, written before NETWORK_FAILED.  Its last byte stays NUL: an exec that
	 * reads it while another reason is written has a mixture, and no more.
	 */
	char network_why[NETWORK_WHY_MAX];
	_Atomic unsigned uplink; /* enum uplink_kind */
	/* session_network.c: the rules since the last change.  Also a worker writes rules_said. */
	_Atomic unsigned rules_changes;
	_Atomic unsigned rules_said; /* those that a result has */
	char rules[SESSION_RULES_MAX];
	struct session_row rows[SESSION_EXECS_MAX];
};

/*
 * The keeper's view of an exec and its processes; nobody else sees it.
 *
 *	          an exec is reserved          its worker ended without jail_wait()
 *	FREE ------------------------> RUNNING ----------------------------------> KILLING
 *	  |                            ^  | ^                                       ^   |
 *	  | a spare          reserved |  | | a cell ends, begins       its caller  |   | none
 *	  v is made                    |  | v                           wants that  |   | lives
 *	SPARE_MOVES ------> SPARE -----'  | BETWEEN_CELLS: ends as RUNNING          |   v
 *	   |     it has moved |           '--------------------------------------> LEFT ---> OVER
 *	   '------------------'                       its worker has ended
 *	        killed: OVER                                                          OVER ---> FREE
 */
enum slot_state {
	SLOT_FREE,
	SLOT_SPARE_MOVES,   /* its reaper moves into its cgroup */
	SLOT_SPARE,         /* its reaper waits for the next exec */
	SLOT_RUNNING,       /* its worker lives, and alone reads the link */
	SLOT_BETWEEN_CELLS, /* it is the interpreter's, which waits for a cell */
	SLOT_LEFT,          /* its worker has ended; it may have left processes, which stay */
	SLOT_KILLING,       /* the same; they are being killed, until deadline_ms on clock_ms() */
	SLOT_OVER,          /* nothing of it lives; its cgroup is still there */
};

/* The keeper's part of an exec. */
struct session_slot {
	enum slot_state state;
	char id[PLAN_ID_MAX]; /* of session_exec_reserve() */
	bool was_oom_killed;  /* the kernel has killed in its leaf (session_cgroup.c) */
	bool is_empty;        /* the reaper said that it has no child left */
	uint64_t deadline_ms;
	uint64_t next_ms;   /* when to look again, on clock_ms(); 0: when the link has a message */
	int link_fd;        /* the near end of the reaper's link; -1: closed */
	struct cgroup leaf; /* its own, below the jail's; CGROUP_NULL where there is none */
};

struct session_memory {
	int events_fd;            /* memory.events of the jail's cgroup; -1: none */
	struct usage_watch usage; /* where no cgroup counts */
	bool is_sampled;          /* the keeper enforces the limit */
	bool was_idle;            /* at the last sample: no exec and no cell ran */
	uint64_t dying_ms; /* since then a killed exec still has memory, on clock_ms(); 0: none */
};

struct session {
	struct jail *jail; /* borrowed */
	pid_t keeper_pid;
	enum session_isolation isolation;
	struct session_shared *shared;
	struct session_slot slots[SESSION_EXECS_MAX];
	uint64_t execs_begun;  /* numbers the leaves: e1, e2, ... */
	bool has_lost_spare;   /* and gets none before an exec begins or has ended */
	uint64_t pids_counted; /* the highest count of the cgroup that session_cgroup.c saw */
	uint64_t pids_peak;    /* of the session's processes, without init and the spare */
	uint64_t tidy_at_ms;   /* when cgroups are made or removed, on clock_ms(); 0: never */
	int packets_fds[2];    /* a pipe: a worker wakes the keeper for PACKETS_ASKED */
	int init_cgroup_fd;    /* init's child of the jail's cgroup; -1: no exec has a leaf */
	int host_proc_fd;      /* /proc of the keeper's pid namespace; -1: none */
	const struct http_upstream *upstream; /* the network's, also in its forks; NULL: none */
	struct session_memory memory;
	uint64_t began_ms;
};

static inline bool session_slot_is_spare(const struct session_slot *slot)
{
	return slot->state == SLOT_SPARE_MOVES || slot->state == SLOT_SPARE;
}

/* The slot of the spare reaper; SESSION_EXECS_MAX: there is none. */
static inline unsigned session_find_spare(const struct session *s)
{
	unsigned i = 0;
	while (i < SESSION_EXECS_MAX && !session_slot_is_spare(&s->slots[i]))
		i++;
	return i;
}

static inline bool session_has_spare(const struct session *s)
{
	return session_find_spare(s) < SESSION_EXECS_MAX;
}

static inline bool session_slot_has_exec(const struct session_slot *slot)
{
	return slot->state >= SLOT_RUNNING && slot->state < SLOT_OVER;
}

/* --- session_network.c, session_keep.c ----------------------------------------------------- */

void session_publish_network(struct session *s);
/* Runs in: an exec's worker.  The rules since a change, and whether an earlier result has them. */
int session_read_rules(const struct session *s, struct outcome *out, struct cj_error *err);

/* --- session_slots.c --------------------------------------------------------------------- */

/* One for each slot, in its order; fd -1: not watched. */
void session_slots_watch(const struct session *s, struct pollfd fds[static SESSION_EXECS_MAX]);
/* When session_slots_turn() has something to do without an event, on clock_ms(); 0: never. */
uint64_t session_slots_next_ms(const struct session *s);
/*
 * After each poll(2): reads the links of finished execs, goes on killing, frees slots.  Anything
 * but SESSION_LIVES: *err says why the session must end.
 */
enum session_end session_slots_turn(struct session *s, struct cj_error *err);
/* No process of an exec lives. */
bool session_slots_are_empty(const struct session *s);
/* Closes the links.  The leaves end with the jail's, which no caller waits for. */
void session_slots_fini(struct session *s);

/*
 * The end of an exec's processes, for its worker and the keeper.  Exactly those of the exec are
 * killed, and it is proven that none is left.  With a cgroup of its own, by cgroup_kill(): none is
 * left alive, the reaper included.  Without one, by rounds over the descendants of the reaper: the
 * reaper itself ends when it has no child left, and says so with STEP_EMPTY.
 */
enum session_left {
	LEFT_SOME,   /* it has processes, or may have */
	LEFT_NONE,   /* proven */
	LEFT_UNKNOWN /* the reaper was killed: its processes can't be told apart */
};
/* Reads what the reaper says, without waiting.  Messages other than STEP_EMPTY are dropped. */
enum session_left session_look(struct session *s, unsigned slot);
/* Rounds, until none is left or SESSION_KILL_MS have passed. */
enum session_left session_kill_all(struct session *s, unsigned slot);

/* --- session_cgroup.c --------------------------------------------------------------------- */

/*
 * Takes the jail's cgroup.init_fd, and clears memory.oom.group of the jail's own leaf: the kernel
 * kills the highest group that has it.  No cgroup, or one that could not be divided, is no failure:
 * execs have no leaf then.
 */
void session_cgroup_begin(struct session *s);
/*
 * A new leaf below the jail's, "eN" with N of s->execs_begun, with the session's limits and
 * memory.oom.group 1; CGROUP_NULL where there is none.
 */
void session_cgroup_add(struct session *s, struct cgroup *out);
/* Does the limit on processes leave room for a spare reaper beside execs? */
bool session_cgroup_has_room(const struct session *s);
/* A spare reaper comes, or has gone: the jail's pids.max grows or shrinks by one. */
void session_cgroup_make_room(struct session *s, bool has_spare);
/*
 * A descriptor through which a process that may not write to the leaf moves itself there: it writes
 * "0".  The kernel checks the rights of the opener, since Linux 5.16.  -1: none.
 */
int session_cgroup_door(const struct cgroup *leaf);
/*
 * The process, by its pid in our namespace, is the only one in the leaf, or is moved there.
 * Returns 0 or a negative errno.
 */
int session_cgroup_join(const struct cgroup *leaf, pid_t pid);
/*
 * When all execs together need more memory than the session may have, one of them ends if it uses
 * at least as much as all the others; else no single one is the cause, and the session ends.
 * Where the cgroup enforces the limit, the kernel has killed an exec by then; else the keeper does.
 */
void session_memory_init(struct session *s);
void session_memory_fini(struct session *s);
/* When the next sample is due, on clock_ms(); 0: never.  Without execs there is none. */
uint64_t session_memory_next_ms(const struct session *s);
/* After each poll(2); `is_event`: memory.events has changed. */
enum session_end session_memory_turn(struct session *s, bool is_event, struct cj_error *err);
/* Init has ended: was it the kernel's OOM killer? */
bool session_memory_killed_init(const struct session *s);
/* SESSION_OOM, and its sentence. */
enum session_end session_memory_fail(struct cj_error *err);
/* In use now; UINT64_MAX: not known.  After session_memory_usage(). */
uint64_t session_memory_now(const struct session *s);
/* Of all processes of the session, since its begin; without wall_ms. */
void session_memory_usage(struct session *s, struct usage *out);

/* --- session_denied.c --------------------------------------------------------------------- */

/* From now on each refused call is counted in a row.  Runs in: the keeper. */
void session_denied_begin(struct session *s);
/* An empty row for a new exec.  Runs in: the keeper, when the slot is reserved. */
void session_denied_clear(struct session *s, unsigned slot);
/* A cell begins in this slot: what was counted until now is not its own. */
void session_denied_restart(struct session *s, unsigned slot);
/*
 * The calls that this exec was refused, into the outcome, and a warning if some are not counted:
 * more than SESSION_DENIED_MAX different ones, or a caller whose exec could not be found.
 * Runs in: the exec's worker.
 */
int session_denied_read(const struct session_row *row, struct outcome *out, struct cj_error *err);

/*
 * What was denied since the last call goes into the rows of the execs that live.  Runs in: the
 * keeper, before an exec begins and after the last process of one has ended.
 */
void session_packets_sync(struct session *s);
/* Answers the workers that have asked.  Runs in: the keeper, when packets_fds[0] is readable. */
void session_packets_answer(struct session *s);
/* The last answer, to all workers.  Runs in: the keeper, when all processes have ended. */
void session_packets_end(struct session *s);
/*
 * From now on the row is the worker's: it has all packets that were denied until now.  Runs in: the
 * exec's worker, or the keeper for an exec of its own.
 */
void session_packets_settle(struct session *s, unsigned slot);
/* Into the outcome.  Runs in: as session_packets_settle(), after it. */
int session_packets_read(const struct session_row *row, struct outcome *out, struct cj_error *err);

/* --- exec_view.c ----------------------------------------------------------------------------- */

/* The part of a struct jail that makes it a view. */
struct session_exec {
	struct session *session; /* borrowed */
	unsigned slot;
	struct cgroup_usage before;          /* of the whole session, when this exec began */
	struct http_upstream_use *upstreams; /* likewise, when it or its last cell began */
};

/* --- session_init.c -------------------------------------------------------------------------- */

/*
 * After STEP_SESSION, in sealed init: serves STEP_EXEC until the keeper ends.
 * Returns in init only on failure; a reaper never returns.
 */
int session_init_serve(struct jail *j, struct cj_error *err);
