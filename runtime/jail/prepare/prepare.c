/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prepare - from a plan to a sealed jail, and the release of all that it holds.
 *
 * Theory of operation
 *
 * There are three roles.  The *supervisor* is the calling process, outside, with the caller's
 * rights.  *Init* is its child by clone3(2): pid 1 of new namespaces, and in the cgroup that limits
 * it, where there is one.  Its network namespace is made beside it (init/net_namespace.c).  Init is
 * our own forked code; it is never executed.
 * The *payload* is init's child, the untrusted program.
 *
 *	supervisor                          init
 *	write the record, make the cgroup
 *	clone3  --------------------------> close what was inherited, ask to die with the supervisor
 *	choose ids, write the id maps       open host paths, still with the caller's ids
 *	STEP_IDS_MAPPED ------------------> become the jail's user, build the root, enter it,
 *	                                    enter the network namespace, bring its loopback up
 *	        <------------ STEP_NETWORK  send a socket of it
 *	(build the network)                 enter a user namespace below the first one, drop every
 *	                                    privilege, load the filter (init_stages[], init.c)
 *	        <------------- STEP_SEALED  send /box, /proc and the seccomp listener
 *	(wait for the uplink)
 *	--- jail_prepare() returns: nothing untrusted has been inside ---
 *	STEP_WARM ------------------------> vfork, execve: a launcher of ours, with a socket to init
 *	        <------------- STEP_WARMED  the launcher is ready
 *	--- jail_warm() returns, if it was called: still nothing untrusted ---
 *	or STEP_ADOPT, STEP_ADOPTED: the launcher is a fork of a zygote (zygote/zygote.h)
 *	STEP_INPUT ... -------------------> write the input files, as the jail's user
 *	STEP_SETUP -----------------------> vfork, execve: the command of --setup, if there is one
 *	        <-------------- STEP_ENDED  it has ended, and init has killed what it left
 *	(change the network)                (supervise/setup.c)
 *	STEP_START -----------------------> vfork, execve: the payload
 *	or STEP_GO -----------------------> send the launcher its arguments and close the socket:
 *	                                    the launcher becomes the payload
 *	        <------------ STEP_STARTED
 *	--- jail_start() returns (supervise/start.c, init/intake.c) ---
 *	                                    (the payload opens its first inet or netlink socket: the
 *	build the network                   filter notifies the supervisor, and the call waits)
 *	        <-------------- STEP_ENDED  the main process has ended; or a limit or cancel ends it
 *	kill init and the cgroup, read what the pipes hold, read the evidence
 *	--- jail_wait() returns (supervise/supervisor.c) ---
 *
 * The jail begins with its loopback alone: no interface, route or rule exists that could let a
 * packet out.  The network is built when the program first asks for it (netns/network.h), in the
 * loop of jail_wait(), which handles limits, signals and output meanwhile.  It is built where the
 * diagram has parentheses if the plan says so, with --strict, and where no notification would come:
 * the filter has no listener, or its policy allows io_uring.
 * The notification only says when to build: the packet filter decides what the program reaches.
 *
 * A prepared jail can also become a session: after STEP_SESSION init forks a reaper for each
 * program, which goes on from STEP_INPUT as init does here.  The jail ends when the session does.
 * See runtime/session/session.h, and session_init.c there for its part of the diagram.
 *
 * The supervisor stays dumpable, init does not: a child of a process that is not dumpable cannot
 * have its id map written by an ordinary user.  There is no time namespace, which would hide only
 * the uptime of the host.
 *
 * Init's rights shrink with each row of its table.  When it writes input files it has no more
 * rights than the payload will have.  Init parses nothing that the payload writes.  The launcher's
 * socket is closed before the launcher has a byte of the program.
 *
 * With --reduced there are no namespaces, and rows of the same tables that need one are left out.
 * Init is an ordinary child, the root is the host's, and what is /box in all steps is in a private
 * directory (private_dir.h).  init/reduced.c says how the processes of such a jail end.
 *
 * Silence is a failure: a closed link or a step out of order ends the run on both sides, and the
 * supervisor waits no longer than STEP_TIMEOUT_MS for a step of init.  Init waits as long as the
 * supervisor lives.
 *
 * Init dies with the supervisor (PR_SET_PDEATHSIG, and the link), and every process in the jail
 * dies with init: pid_namespaces(7).  The kernel frees namespaces, detached mounts, memfds and
 * locks.  Two things can outlive a killed supervisor: an empty cgroup directory, and the record
 * that names it.  The record is made before the cgroup and removed after it.  The next run and
 * `cejail gc` remove both.
 *
 * supervisor_stages[] below lists what the supervisor holds.  Leaving it upwards is the only
 * clean-up, on success and on failure.
 */
#include "runtime/jail/jail.h"

#include <sys/signalfd.h>

#include "runtime/base/child.h"
#include "runtime/base/clock.h"
#include "runtime/base/scope.h"
#include "runtime/base/stage.h"
#include "runtime/jail/jail_state.h"
#include "runtime/jail/prepare/jail_init.h"
#include "runtime/jail/supervise/bind_watch.h"
#include "runtime/jail/supervise/calls.h"
#include "runtime/jail/supervise/jail_network.h"
#include "runtime/jail/supervise/verdict.h"
#include "runtime/kernel/ids/refusal.h"
#include "runtime/kernel/process/landlock.h"

/*
 * A signal that would end this process cancels the run instead.  A signal that our caller ignores
 * (nohup(1)), blocks or handles is left alone.  SIGTERM is always caught: `cejail kill` sends it.
 */
static const int ending_signals[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGALRM, SIGXCPU };
static bool is_default(int signal, uint64_t changed)
{
	struct sigaction now;
	if (changed != UINT64_MAX)
		return !(changed >> (signal - 1) & 1);
	(void)sigaction(signal, NULL, &now); /* cannot fail with these arguments */
	return now.sa_handler == SIG_DFL;
}

static void find_ending_signals(uint64_t changed, sigset_t *out)
{
	sigset_t blocked;
	sigemptyset(out);
	(void)sigprocmask(SIG_BLOCK, NULL, &blocked); /* cannot fail with these arguments */
	for (size_t i = 0; i < COUNT_OF(ending_signals); i++) {
		const int signal = ending_signals[i];
		if (signal == SIGTERM ||
		    (is_default(signal, changed) && !sigismember(&blocked, signal)))
			sigaddset(out, signal);
	}
}

void jail_ending_signals(sigset_t *out)
{
	find_ending_signals(UINT64_MAX, out);
}

static int signals_enter(struct jail *j, struct cj_error *err)
{
	sigset_t caught;
	j->changed_signals = child_changed_signals();
	find_ending_signals(j->changed_signals, &caught);
	if (j->plan->tty)
		sigaddset(&caught, SIGWINCH);
	j->signal_fd = signalfd(-1, &caught, SFD_CLOEXEC | SFD_NONBLOCK);
	if (j->signal_fd < 0)
		return cj_fail(err, errno, "open a descriptor for signals");

	sigaddset(&caught, SIGPIPE); /* a reader that goes away is an EPIPE, not our end */
	sigaddset(&caught, SIGXFSZ); /* a file at the caller's limit is an EFBIG */
	if (sigprocmask(SIG_BLOCK, &caught, &j->old_signals) < 0)
		return cj_fail(err, errno, "block signals");
	return 0;
}

/* A signal that came too late to cancel the run must not end the caller. */
static void signals_leave(struct jail *j)
{
	sigset_t ours;
	sigemptyset(&ours);
	sigaddset(&ours, SIGPIPE);
	sigaddset(&ours, SIGXFSZ);
	for (size_t i = 0; j->discards_signals && i < COUNT_OF(ending_signals); i++)
		if (!sigismember(&j->old_signals, ending_signals[i]))
			sigaddset(&ours, ending_signals[i]);
	const struct timespec now = { 0 };
	while (sigtimedwait(&ours, NULL, &now) > 0)
		;
	cj_close(&j->signal_fd);
	(void)sigprocmask(SIG_SETMASK, &j->old_signals, NULL); /* cannot fail: it was in force */
}

/* Init refuses a writable bind that leads to the records. */
static int guard_records(struct jail *j, struct cj_error *err)
{
	for (size_t i = 0; i < j->root.nbinds; i++)
		if (rootfs_bind_is_writable(&j->root.binds[i]))
			return record_guard(&j->arena, &j->root.guard, err);
	return 0;
}

/* By jail_hold(). */
static bool is_held(const struct jail *j)
{
	return j->ops != &jail_run_ops;
}

static void degrade_record(struct jail *j, const struct cj_error *why)
{
	char text[CJ_ERROR_TEXT_MAX];
	jail_degrade(j, DEGRADED_RECORD, "'cejail ps', 'kill' and 'gc' won't see this run: %s",
		     cj_error_text(why, text));
}

/* Without it an ordinary caller's run is only not listed.  Root's run needs it to choose ids. */
static int directory_enter(struct jail *j, struct cj_error *err)
{
	j->runtime_dir_fd = record_open_dir(err);
	if (j->runtime_dir_fd < 0 && geteuid() == 0 && !is_held(j))
		return -err->code;
	if (j->runtime_dir_fd < 0)
		degrade_record(j, err);
	if (guard_records(j, err) == 0)
		return 0;
	cj_close(&j->runtime_dir_fd);
	return -err->code;
}

static void directory_leave(struct jail *j)
{
	cj_close(&j->runtime_dir_fd);
}

/* Without a runtime directory there is no record: directory_enter() has warned. */
static bool is_recorded(const struct jail *j)
{
	return j->runtime_dir_fd >= 0;
}

static bool is_reduced(const struct jail *j)
{
	return j->plan->reduced;
}

static int record_enter(struct jail *j, struct cj_error *err)
{
	j->record = (struct record){
		.id = j->id,
		.profile = j->plan->profile_name,
		.cgroup_path = j->cgroup.path,
		.private_dir = j->private_dir[0] ? j->private_dir : NULL,
		.started_ms = clock_epoch_ms(),
		.is_ready = j->plan->is_ahead,
	};
	j->record_fd = record_create(j->runtime_dir_fd, &j->record, err);
	if (j->record_fd >= 0 || !is_held(j))
		return j->record_fd < 0 ? j->record_fd : 0;
	degrade_record(j, err); /* the sandbox of another one: its root may be read-only */
	cj_close(&j->runtime_dir_fd);
	return 0;
}

static void record_leave(struct jail *j)
{
	if (j->leaf_stays)
		cj_close(&j->record_fd); /* the record stays: unlocked, it marks a dead run */
	else if (j->record_fd >= 0)
		record_remove(j->runtime_dir_fd, j->id, &j->record_fd);
}

static int record_complete_enter(struct jail *j, struct cj_error *err)
{
	j->record.init_pid = j->init_pid;
	j->record.cgroup_inode = cgroup_inode(&j->cgroup);
	return record_complete(j->record_fd, &j->record, err);
}

/* What can't be removed now, and what is behind many other records, is left to the next runs. */
static int record_sweep_enter(struct jail *j, struct cj_error *err)
{
	struct cj_error ignored;
	(void)err;
	(void)record_sweep_batch(j->runtime_dir_fd, j->id, &ignored);
	return 0;
}

static int leaf_find(struct jail *j, struct cj_error *err)
{
	return cgroup_find(j->plan->cgroup_parent, j->id, &j->cgroup, err);
}

static int leaf_make(struct jail *j, struct cj_error *err)
{
	const struct cgroup_limits limits = {
		.memory_bytes = j->plan->limits.memory_bytes,
		.millicpus = j->plan->limits.millicpus,
		.pids = j->plan->limits.pids > 0 ? j->plan->limits.pids + 1 : 0, /* and init */
	};
	if (cgroup_make(&j->cgroup, &limits, err) < 0)
		return -err->code;
	if (j->plan->is_divided)
		cgroup_divide(&j->cgroup); /* before init is in it */
	return 0;
}

static void leaf_remove(struct jail *j)
{
	j->leaf_stays |= !cgroup_destroy(&j->cgroup);
}

static bool image_is_wanted(const struct jail *j)
{
	return j->plan->image != NULL;
}

static int image_enter(struct jail *j, struct cj_error *err)
{
	return image_use_begin(&j->image, &j->plan->root.layers, &j->arena, err);
}

static void image_leave(struct jail *j)
{
	image_use_end(&j->image);
}

/* Before init exists: it loads the filter that is compiled here. */
static int filter_enter(struct jail *j, struct cj_error *err)
{
	if (!j->plan->policy)
		filter_builtin(&j->filter);
	else if (filter_compile(j->plan->policy, &j->arena, &j->filter, err) < 0)
		return -err->code;
	/* --strict refuses a host that lacks a feature: all are tried before the start. */
	const struct network_spec *network = &j->plan->network;
	j->filter.asks_network = network->mode == NETWORK_PUBLIC && !network->starts_early &&
				 !j->plan->strict && !j->filter.has_rings;
	j->filter.is_divided = j->plan->is_divided;
	for (size_t i = 0; i < j->filter.notes.count; i++)
		jail_warn(j, "seccomp: %s", j->filter.notes.items[i]);
	return 0;
}

/* Always on once init is sealed: a stage that failed to do it has failed the jail. */
static const enum layer sealed_layers[] = {
	LAYER_USER_NS, LAYER_PID_NS,    LAYER_MOUNT_NS,     LAYER_NETWORK_NS,   LAYER_IPC_NS,
	LAYER_UTS_NS,  LAYER_CGROUP_NS, LAYER_NO_NEW_PRIVS, LAYER_CAPABILITIES, LAYER_SECCOMP,
};

static void note_limits(struct jail *j)
{
	const struct limits_spec *l = &j->plan->limits;
	const bool *enforced = j->cgroup.enforced;
	const struct limit_state states[LIMIT_COUNT] = {
		[LIMIT_MEMORY] = { l->memory_bytes,
				   enforced[CGROUP_MEMORY] ? ENFORCED_BY_CGROUP
							   : ENFORCED_BY_SUPERVISOR,
				   HIT_NO },
		[LIMIT_CPUS] = { l->millicpus,
				 enforced[CGROUP_CPU] ? ENFORCED_BY_CGROUP : NOT_ENFORCED, HIT_NO },
		[LIMIT_PIDS] = { l->pids,
				 enforced[CGROUP_PIDS] ? ENFORCED_BY_CGROUP : ENFORCED_BY_RLIMIT,
				 HIT_NO },
		[LIMIT_CPU_TIME] = { l->cpu_ms, ENFORCED_BY_SUPERVISOR, HIT_NO },
		/* without a tmpfs of its own: of each file */
		[LIMIT_DISK] = { j->plan->root.scratch_bytes,
				 j->plan->reduced ? ENFORCED_BY_RLIMIT : ENFORCED_BY_TMPFS,
				 HIT_NO },
		[LIMIT_NOFILE] = { l->nofile, ENFORCED_BY_RLIMIT, HIT_NO },
	};
	memcpy(j->limits, states, sizeof(states));
}

/* Each degraded layer or limit is one warning in the result and on the terminal. */
static void warn_of_degraded(struct jail *j)
{
	if (!j->cgroup.enforced[CGROUP_MEMORY] || !j->cgroup.enforced[CGROUP_PIDS] ||
	    !j->cgroup.enforced[CGROUP_CPU])
		jail_degrade(
		    j, DEGRADED_LIMITS, "memory is enforced by %s, processes by %s, cpus by %s: %s",
		    limit_enforcer_names[j->limits[LIMIT_MEMORY].enforced_by],
		    limit_enforcer_names[j->limits[LIMIT_PIDS].enforced_by],
		    limit_enforcer_names[j->limits[LIMIT_CPUS].enforced_by], j->cgroup.why_not);
	if (j->layers[LAYER_LANDLOCK] == LAYER_ABSENT)
		jail_degrade(
		    j, DEGRADED_LANDLOCK,
		    "this kernel has no Landlock: only the mounts restrict access to files");
	if (j->layers[LAYER_NETWORK_FILTER] == LAYER_ABSENT)
		jail_degrade(j, DEGRADED_NETWORK_FILTER,
			     "this kernel has no network filter: the jail has only its loopback");
	if (j->layers[LAYER_SYSCALL_REPORT] == LAYER_ABSENT)
		jail_degrade(
		    j, DEGRADED_SYSCALL_REPORT,
		    "denied system calls can't be named: an outer sandbox already receives them");
	if (j->hostname_errno != 0)
		jail_degrade(j, DEGRADED_HOSTNAME,
			     "the jail has the caller's host name: set '%s': %s",
			     j->plan->root.hostname, strerror(j->hostname_errno));
}

static int assess_enter(struct jail *j, struct cj_error *err)
{
	for (size_t i = 0; i < COUNT_OF(sealed_layers); i++)
		j->layers[sealed_layers[i]] =
		    is_reduced(j) && sealed_layers[i] <= LAYER_CGROUP_NS ? LAYER_OFF : LAYER_ON;
	j->layers[LAYER_CGROUP] = j->cgroup.dir_fd >= 0 ? LAYER_ON : LAYER_ABSENT;
	j->layers[LAYER_ROOT] = j->plan->root.writable || is_reduced(j) ? LAYER_OFF : LAYER_ON;
	jail_network_assess(j);
	note_limits(j);
	size_t before = j->warnings.count;
	if (is_reduced(j))
		jail_warn(j,
			  "reduced: no namespaces: Landlock (ABI %d), the filter and rlimits alone "
			  "keep the program in '%s'",
			  landlock_abi(), j->private_dir);
	warn_of_degraded(j);
	if (j->plan->strict && j->warnings.count > before) {
		cj_refuse(err, "--strict: %s", j->warnings.items[before]);
		return cj_hint(err, "'cejail doctor' says what this host lacks");
	}
	return 0;
}

/* clang-format off */
static const struct stage supervisor_stages[] = {
	/* name, is_wanted, enter, leave, and why it stands here */
	{ "names", NULL, jail_network_names_enter, NULL },
		/* DNS may take long: signals still have their default action */
	{ "runtime directory", NULL, directory_enter, directory_leave },
		/* the record and the locks of ids are in it */
	{ "cgroup", NULL, leaf_find, leaf_remove },
		/* only finds the place, which the record names; a user manager may take long,
		 * too */
	{ "signals", NULL, signals_enter, signals_leave },
		/* from here a signal cancels the run in jail_wait() */
	{ "private directory", is_reduced, jail_init_private_name, NULL },
		/* only chooses the name, which the record has */
	{ "record", is_recorded, record_enter, record_leave },
		/* before the cgroup exists and until it is removed: a kill leaves none unnamed */
	{ "cgroup", NULL, leaf_make, leaf_remove },
		/* limits exist before the first process of the jail */
	{ "seccomp", NULL, filter_enter, NULL },
		/* init inherits the compiled filter; it is only memory */
	{ "image", image_is_wanted, image_enter, image_leave },
		/* before init opens the layers, and until it has ended: none is removed
		 * meanwhile */
	{ "init", NULL, jail_init_enter, jail_init_leave },
		/* created in the cgroup: clone3(2) CLONE_INTO_CGROUP */
	{ "ids", NULL, jail_init_ids_enter, jail_init_ids_leave },
		/* while init opens its sources */
	{ "private directory", is_reduced, jail_init_private_enter, jail_init_private_leave },
		/* of the jail's user, who has an id now; left before the id is free again */
	{ "id map", NULL, jail_init_map_enter, NULL },
		/* ends with init's user namespace */
	{ "record", is_recorded, record_complete_enter, NULL },
		/* adds init's pid and the cgroup's inode number, while init builds the root */
	{ "sweep", is_recorded, record_sweep_enter, NULL },
		/* removes what killed supervisors left, while init builds the root */
	{ "network", jail_network_is_wanted, jail_network_enter, jail_network_leave },
		/* takes what init opened; if it starts early, it is built while init builds the
		 * root */
	{ "jail", NULL, jail_init_seal_enter, jail_init_seal_leave },
		/* waits until init has gone through its own table */
	{ "uplink", jail_network_is_wanted, jail_network_uplink_enter, NULL },
		/* the helper was started first and is awaited last; builds what no call could ask
		 * for */
	{ "assess", NULL, assess_enter, NULL },
		/* all layers are known: --strict may still refuse */
};
/* clang-format on */
static bool end_run(struct jail *j, const struct ended *ended, bool has_ended_itself)
{
	(void)has_ended_itself;
	return jail_init_kill(j, ended->is_alone);
}

static void count_run(const struct jail *j, struct cgroup_usage *out)
{
	cgroup_read_usage(&j->cgroup, out);
}

static void destroy_run(struct jail **j)
{
	stages_leave(*j, supervisor_stages, COUNT_OF(supervisor_stages));
	jail_state_free(j);
}

const struct jail_ops jail_run_ops = {
	.was_oom_killed = verdict_was_oom_killed,
	.lose = verdict_without_init,
	.end = end_run,
	.count = count_run,
	.report = verdict_report_run,
	.destroy = destroy_run,
};

/* clang-format off */
/* The rows of supervisor_stages[] that limit and record, for jail_hold(). */
static const struct stage holder_stages[] = {
	{ "names", NULL, jail_network_names_enter, NULL },
	{ "runtime directory", NULL, directory_enter, directory_leave },
	{ "cgroup", NULL, leaf_find, leaf_remove },
	{ "signals", NULL, signals_enter, signals_leave },
	{ "record", is_recorded, record_enter, record_leave },
	{ "cgroup", NULL, leaf_make, leaf_remove },
};
/* clang-format on */
static void destroy_held(struct jail **j)
{
	jail_network_leave(*j);
	cj_close(&(*j)->link.sock_fd);
	stages_leave(*j, holder_stages, COUNT_OF(holder_stages));
	jail_state_free(j);
}

static const struct jail_ops held_ops = {
	.was_oom_killed = verdict_was_oom_killed,
	.lose = verdict_without_init,
	.end = end_run,
	.count = count_run,
	.report = verdict_report_run,
	.destroy = destroy_held,
};

int jail_hold(const struct plan *plan, const char *id, struct jail **out, struct cj_error *err)
{
	struct jail *j = jail_state_create(plan, id);
	if (!j)
		return cj_fail(err, ENOMEM, "create a jail");
	j->ops = &held_ops;
	if (stages_enter(j, holder_stages, COUNT_OF(holder_stages), err) < 0) {
		jail_state_free(&j);
		return -err->code;
	}
	j->layers[LAYER_CGROUP] = j->cgroup.dir_fd >= 0 ? LAYER_ON : LAYER_ABSENT;
	note_limits(j);
	*out = j;
	return 0;
}

int jail_hold_init(struct jail *j, struct cj_error *err)
{
	if (!is_recorded(j))
		return 0;
	return record_complete_enter(j, err) < 0 ? -err->code : record_sweep_enter(j, err);
}

int jail_hold_network(struct jail *j, struct cj_error *err)
{
	if (jail_network_enter(j, err) < 0 || jail_network_uplink_enter(j, err) < 0)
		return cj_wrap(err, "network");
	return 0;
}

/* *out_again: it may succeed with an init that is moved into its cgroup. */
static int prepare(const struct plan *plan, const char *id, jail_serve *serve, bool moves_init,
		   struct jail **out, bool *out_again, struct cj_error *err)
{
	if (plan->reduced && serve)
		return cj_reject(err, "a session needs namespaces: --reduced is for one run");
	struct jail *j = jail_state_create(plan, id);
	if (!j)
		return cj_fail(err, ENOMEM, "create a jail");
	j->ops = &jail_run_ops;
	j->init.serve = serve;
	j->moves_init = moves_init;
	if (stages_enter(j, supervisor_stages, COUNT_OF(supervisor_stages), err) < 0) {
		*out_again = j->dies_at_birth;
		jail_state_free(&j);
		return -err->code;
	}
	*out = j;
	return 0;
}

int jail_prepare_session(const struct plan *plan, const char *id, jail_serve *serve,
			 struct jail **out, struct cj_error *err)
{
	bool again = false;
	int rc = prepare(plan, id, serve, false, out, &again, err);
	if (rc < 0 && again) {
		*err = (struct cj_error){ 0 };
		rc = prepare(plan, id, serve, true, out, &again, err);
	}
	/* whichever call it was: an old kernel lacks it, or a filter around us hides it */
	return rc < 0 && err->code == ENOSYS ? refusal_hint(err) : rc;
}

int jail_prepare(const struct plan *plan, const char *id, struct jail **out, struct cj_error *err)
{
	return jail_prepare_session(plan, id, NULL, out, err);
}

int jail_waiting_fd(const struct jail *j)
{
	return j->link.sock_fd;
}

void jail_discard_signals(struct jail *j)
{
	if (j)
		j->discards_signals = true;
}

void jail_destroy(struct jail **j)
{
	if (!*j)
		return;
	for (size_t i = 0; i < RELAY_COUNT; i++)
		relay_fini(&(*j)->run.relays[i]);
	cj_close(&(*j)->run.master_fd);
	bind_watch_end(&(*j)->run.binds);
	calls_destroy(&(*j)->run.calls);
	cj_close(&(*j)->warm.calls_fd);
	(*j)->ops->destroy(j);
}
