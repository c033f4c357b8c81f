/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jail - the life cycle: what is held, in which order, and the way back.  Acts.
 *
 * Theory of operation
 *
 * Three roles.  The *supervisor* is the calling process, outside, with the caller's
 * rights.  *Init* is its child by clone3(2), born as pid 1 of every namespace there is
 * and, where there is one, into the cgroup that limits it; it is our own forked code,
 * never executed.  The *payload* is init's child, the untrusted program.
 *
 *	supervisor                          init
 *	write the record, make the cgroup
 *	clone3  --------------------------> close what was inherited, ask to die with us
 *	choose ids, write the id maps       from the gateway's network namespace into one more
 *	        <------------ STEP_NETWORK  with sockets in both
 *	                                    open host paths while still the caller
 *	STEP_IDS_MAPPED ------------------> become the jail's user, build the root, enter it,
 *	load rules, make links, start       leave the user namespace that owns all this for one
 *	an uplink (jail_network.c)          below it, give up everything (init_stages[], init.c)
 *	        <------------- STEP_SEALED  with /box, /proc and the seccomp listener
 *	wait for the uplink
 *	--- jail_prepare ends: nothing untrusted has been inside so far ---
 *	STEP_WARM ------------------------> vfork, execve: a launcher of ours, with a socket to init
 *	        <------------- STEP_WARMED  it said that it waits
 *	--- jail_warm ends, if it was wanted: still nothing untrusted ---
 *	STEP_INPUT ... -------------------> writes files as the jail's user, filtered
 *	STEP_START -----------------------> vfork, execve: the payload
 *	or STEP_GO -----------------------> writes its words to the launcher, closes the socket:
 *	                                    the launcher becomes the payload
 *	        <------------ STEP_STARTED
 *	--- jail_start ends (start.c, intake.c); jail_wait: supervisor.c ---
 *	        <-------------- STEP_ENDED  the main process is gone; or a limit, or a cancel
 *	kill the cgroup and init, read what the pipes hold, read the evidence
 *
 * What init may do shrinks with every row of its table; what it does with untrusted
 * bytes (writing inputs) it does with no more rights than the payload has.  Nothing the
 * payload writes is ever parsed by init, and the launcher's socket is gone before it has one byte
 * of the program.
 *
 * Silence is failure on both sides: a closed link, a step too late (STEP_TIMEOUT_MS) or
 * out of order ends the run.  The supervisor's death is init's (PR_SET_PDEATHSIG, and
 * the link), init's death is everybody's in its pid namespace, and all other things we
 * make belong to the kernel (namespaces, detached mounts, memfds, locks) except an empty
 * cgroup directory and the record that names it, made first and removed last; the next run and
 * `cejail gc` sweep both.
 *
 * What the supervisor holds is the table below; leaving it upwards is the only clean-up.
 */
#include "runtime/jail/jail.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/base/files/fd.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"
#include "runtime/jail/supervise/bind_watch.h"
#include "runtime/jail/supervise/evidence.h"
#include "runtime/jail/ids/shift.h"
#include "runtime/jail/stage.h"
#include "runtime/jail/state.h"

#define JAIL_NAMESPACES                                                                            \
	(CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | \
	 CLONE_NEWCGROUP)

const char *const step_names[STEP_COUNT] = {
	[STEP_NETWORK] = "network", [STEP_IDS_MAPPED] = "ids mapped",
	[STEP_SEALED] = "sealed",   [STEP_WARM] = "warm",
	[STEP_WARMED] = "warmed",   [STEP_INPUT] = "input",
	[STEP_START] = "start",     [STEP_GO] = "go",
	[STEP_STARTED] = "started", [STEP_EXEC_FAILED] = "exec failed",
	[STEP_ENDED] = "ended",
};

void jail_degrade(struct jail *j, enum degraded what, const char *fmt, ...)
{
	char sentence[1024];
	va_list ap;
	va_start(ap, fmt);
	(void)vsnprintf(sentence, sizeof(sentence), fmt, ap); /* a longer one is cut */
	va_end(ap);
	jail_warn(j, "%s: %s", degraded_names[what], sentence);
}

void jail_warn(struct jail *j, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	/* Without memory for a sentence the result lacks it; the layer's state still tells. */
	(void)!strings_vprintf(&j->warnings, &j->arena, fmt, ap);
	va_end(ap);
}

/* --- rows of the supervisor's table ------------------------------------------------ */

/*
 * What would end us by default cancels the run instead.  What our caller ignores (nohup(1)),
 * blocks or handles stays the caller's affair, but SIGTERM is what `cejail kill` sends.
 */
static const int ending_signals[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGALRM, SIGXCPU };

static bool is_heard(int signal, const sigset_t *blocked)
{
	struct sigaction now;
	if (signal == SIGTERM)
		return true;
	(void)sigaction(signal, NULL, &now); /* cannot fail with these arguments */
	return now.sa_handler == SIG_DFL && !sigismember(blocked, signal);
}

void jail_ending_signals(sigset_t *out)
{
	sigset_t blocked;
	sigemptyset(out);
	(void)sigprocmask(SIG_BLOCK, NULL, &blocked); /* cannot fail with these arguments */
	for (size_t i = 0; i < sizeof(ending_signals) / sizeof(ending_signals[0]); i++)
		if (is_heard(ending_signals[i], &blocked))
			sigaddset(out, ending_signals[i]);
}

static int signals_enter(struct jail *j, struct cj_error *err)
{
	sigset_t heard;
	jail_ending_signals(&heard);
	if (j->plan->tty)
		sigaddset(&heard, SIGWINCH);
	j->signal_fd = signalfd(-1, &heard, SFD_CLOEXEC | SFD_NONBLOCK);
	if (j->signal_fd < 0)
		return cj_fail(err, errno, "open a descriptor for signals");

	sigaddset(&heard, SIGPIPE); /* a reader that goes away is an EPIPE, not our end */
	sigaddset(&heard, SIGXFSZ); /* a file at the caller's limit is an EFBIG */
	if (sigprocmask(SIG_BLOCK, &heard, &j->old_signals) < 0)
		return cj_fail(err, errno, "block signals");
	return 0;
}

/* A signal that came too late to change anything must not end the caller either. */
static void signals_leave(struct jail *j)
{
	sigset_t ours;
	sigemptyset(&ours);
	sigaddset(&ours, SIGPIPE);
	sigaddset(&ours, SIGXFSZ);
	const struct timespec now = { 0 };
	while (sigtimedwait(&ours, NULL, &now) > 0)
		;
	cj_close(&j->signal_fd);
	(void)sigprocmask(SIG_SETMASK, &j->old_signals, NULL); /* cannot fail: it was in force */
}

/* Before init exists: it loads the program compiled here. */
static int filter_enter(struct jail *j, struct cj_error *err)
{
	if (!j->plan->policy) {
		filter_builtin(&j->filter);
		return 0;
	}
	if (filter_compile(j->plan->policy, &j->arena, &j->filter, err) < 0)
		return -err->code;
	for (size_t i = 0; i < j->filter.notes.count; i++)
		jail_warn(j, "seccomp: %s", j->filter.notes.items[i]);
	return 0;
}

static int explain_clone(struct cj_error *err, int code)
{
	int rc = cj_fail(err, code, "create the jail's namespaces");
	if (code == EAGAIN)
		cj_hint(err, "too many processes for this user or cgroup");
	if (code == EPERM || code == EACCES || code == ENOSPC || code == EUSERS)
		idmap_hint(err);
	return rc;
}

static int init_enter(struct jail *j, struct cj_error *err)
{
	int ends[2];
	if (step_pair(ends, STEP_TIMEOUT_MS, err) < 0)
		return -err->code;

	bool has_cgroup = j->cgroup.dir_fd >= 0;
	const struct clone_args args = {
		.flags = JAIL_NAMESPACES | CLONE_PIDFD | (has_cgroup ? CLONE_INTO_CGROUP : 0),
		.pidfd = (uintptr_t)&j->init_pidfd,
		.exit_signal = SIGCHLD,
		.cgroup = has_cgroup ? (uint64_t)j->cgroup.dir_fd : 0,
	};
	pid_t pid = sys_clone3(&args);
	if (pid == 0) {
		/* From here: init. */
		j->link = (struct step_link){ ends[1], "the supervisor", step_names };
		init_main(j);
	}
	int code = errno;
	cj_close(&ends[1]);
	if (pid < 0) {
		cj_close(&ends[0]);
		return explain_clone(err, code);
	}
	j->init_pid = pid;
	j->link = (struct step_link){ ends[0], "init", step_names };
	return 0;
}

static void init_leave(struct jail *j)
{
	cj_close(&j->link.sock_fd);
	cj_end_child(&j->init_pidfd);
	j->init_pid = 0;
}

static int ids_enter(struct jail *j, struct cj_error *err)
{
	return idmap_choose(j->runtime_dir_fd, &j->ids, err);
}

/* An id is free again when nobody has it any more, so the jail's processes go first. */
static void ids_leave(struct jail *j)
{
	cj_end_child(&j->init_pidfd);
	idmap_release(&j->ids);
}

/* A dead init can't be mapped: why it ended says more than what its end made impossible. */
static int hear_init(struct jail *j, struct cj_error *err)
{
	struct pollfd link = { .fd = j->link.sock_fd, .events = POLLIN };
	struct cj_error why = { 0 };
	while (why.code == 0 && poll(&link, 1, 0) > 0) {
		auto_step_msg struct step_msg msg = { 0 };
		(void)step_next(&j->link, &msg, &why); /* what it said before doesn't matter now */
	}
	if (why.code != 0)
		*err = why;
	return -err->code;
}

static int map_enter(struct jail *j, struct cj_error *err)
{
	if (idmap_write(&j->ids, j->init_pid, err) < 0)
		return hear_init(j, err);
	int fds[OVERLAYS_MAX];
	size_t count;
	if (shift_lowers(&j->root, &j->ids, fds, &count, err) < 0)
		return -err->code;
	const struct ids_mapped mapped = { .may_setgroups = j->ids.may_setgroups };
	int rc = step_tell(&j->link, STEP_IDS_MAPPED, &mapped, sizeof(mapped), fds, count, err);
	while (count > 0)
		cj_close(&fds[--count]);
	return rc;
}

static int seal_enter(struct jail *j, struct cj_error *err)
{
	auto_step_msg struct step_msg msg = { 0 };
	struct sealed sealed;
	if (step_await(&j->link, STEP_SEALED, &msg, err) < 0)
		return -err->code;
	size_t listener = SEALED_OVERLAYS + rootfs_count_overlays(&j->root);
	if (msg.size != sizeof(sealed) || msg.nfds < listener)
		return cj_fail(err, EPROTO, "take over the sealed jail");
	memcpy(&sealed, msg.data, sizeof(sealed));

	if (msg.nfds > listener &&
	    filter_watch_create(take_fd(&msg.fds[listener]), &j->filter, &j->watch, err) < 0)
		return -err->code;
	for (size_t i = SEALED_OVERLAYS; i < listener; i++)
		j->overlay_fds[j->noverlays++] = take_fd(&msg.fds[i]);
	j->box_fd = take_fd(&msg.fds[SEALED_BOX]);
	j->proc_fd = take_fd(&msg.fds[SEALED_PROC]);
	if (j->watch)
		filter_watch_set_proc(j->watch, j->proc_fd);
	if (j->filter.ntells == 0)
		j->layers[LAYER_SYSCALL_REPORT] =
		    LAYER_OFF; /* the policy refuses nothing of note */
	else
		j->layers[LAYER_SYSCALL_REPORT] = j->watch ? LAYER_ON : LAYER_ABSENT;
	j->layers[LAYER_LANDLOCK] = sealed.has_landlock ? LAYER_ON : LAYER_ABSENT;
	return 0;
}

static void seal_leave(struct jail *j)
{
	filter_watch_destroy(&j->watch);
	cj_close(&j->box_fd);
	cj_close(&j->proc_fd);
	while (j->noverlays > 0)
		cj_close(&j->overlay_fds[--j->noverlays]);
}

/* What always holds once init is sealed: a stage that could not do it has failed the jail. */
static const enum layer sealed_layers[] = {
	LAYER_USER_NS, LAYER_PID_NS,    LAYER_MOUNT_NS,     LAYER_NETWORK_NS,   LAYER_IPC_NS,
	LAYER_UTS_NS,  LAYER_CGROUP_NS, LAYER_NO_NEW_PRIVS, LAYER_CAPABILITIES, LAYER_SECCOMP,
};

static void note_limits(struct jail *j)
{
	const struct limits_spec *l = &j->plan->limits;
	const bool *held = j->cgroup.held;
	const struct limit_state states[LIMIT_COUNT] = {
		[LIMIT_MEMORY] = { l->memory_bytes, held[CGROUP_MEMORY] ? BY_CGROUP : BY_SUPERVISOR,
				   HIT_NO },
		[LIMIT_CPUS] = { l->millicpus, held[CGROUP_CPU] ? BY_CGROUP : BY_NONE, HIT_NO },
		[LIMIT_PIDS] = { l->pids, held[CGROUP_PIDS] ? BY_CGROUP : BY_RLIMIT, HIT_NO },
		[LIMIT_CPU_TIME] = { l->cpu_ms, BY_SUPERVISOR, HIT_NO },
		[LIMIT_DISK] = { j->plan->root.scratch_bytes, BY_TMPFS, HIT_NO },
		[LIMIT_NOFILE] = { l->nofile, BY_RLIMIT, HIT_NO },
	};
	memcpy(j->limits, states, sizeof(states));
}

/* Whatever is not at its best is one sentence in the result and on the terminal. */
static void note_weaknesses(struct jail *j)
{
	if (!j->cgroup.held[CGROUP_MEMORY] || !j->cgroup.held[CGROUP_PIDS] ||
	    !j->cgroup.held[CGROUP_CPU])
		jail_degrade(j, DEGRADED_LIMITS,
			     "memory is held by %s, processes by %s, cpus by %s: %s",
			     limit_by_names[j->limits[LIMIT_MEMORY].by],
			     limit_by_names[j->limits[LIMIT_PIDS].by],
			     limit_by_names[j->limits[LIMIT_CPUS].by], j->cgroup.why_not);
	if (j->layers[LAYER_LANDLOCK] == LAYER_ABSENT)
		jail_degrade(j, DEGRADED_LANDLOCK,
			     "no Landlock in this kernel: the mounts are the only fence");
	if (j->layers[LAYER_NETWORK_FILTER] == LAYER_ABSENT)
		jail_degrade(j, DEGRADED_NETWORK_FILTER,
			     "no network filter in this kernel: there is nothing but loopback");
	if (j->layers[LAYER_SYSCALL_REPORT] == LAYER_ABSENT)
		jail_degrade(
		    j, DEGRADED_SYSCALL_REPORT,
		    "refused system calls can't be named: an outer sandbox listens already");
}

static int assess_enter(struct jail *j, struct cj_error *err)
{
	for (size_t i = 0; i < sizeof(sealed_layers) / sizeof(sealed_layers[0]); i++)
		j->layers[sealed_layers[i]] = LAYER_ON;
	j->layers[LAYER_CGROUP] = j->cgroup.dir_fd >= 0 ? LAYER_ON : LAYER_ABSENT;
	j->layers[LAYER_ROOT] = j->plan->root.writable ? LAYER_OFF : LAYER_ON;
	/* A network of lo alone has nothing to filter. */
	if (j->plan->network.mode == NETWORK_NONE)
		j->layers[LAYER_NETWORK_FILTER] = LAYER_OFF;
	else
		j->layers[LAYER_NETWORK_FILTER] = network_is_filtered(j->network) ? LAYER_ON
										  : LAYER_ABSENT;
	note_limits(j);
	size_t before = j->warnings.count;
	note_weaknesses(j);
	if (j->plan->strict && j->warnings.count > before) {
		int rc = cj_reject(err, "--strict: %s", j->warnings.items[before]);
		cj_hint(err, "'cejail doctor' says what this host lacks");
		return rc;
	}
	return 0;
}

/* clang-format off */
static const struct stage supervisor_stages[] = {
	/* name                wanted         enter            leave               why here */
	{ "names",             NULL,          names_enter,     NULL            }, /* may take long: no signal is held back yet */
	{ "runtime directory", NULL,          directory_enter, directory_leave }, /* the record and ids live in it */
	{ "cgroup",            NULL,          place_enter,     cgroup_leave    }, /* found, not made: the record comes first; a user manager may take long, too */
	{ "signals",           NULL,          signals_enter,   signals_leave   }, /* a cancel during the rest of set-up waits for jail_wait */
	{ "record",            jail_has_directory, record_enter,    record_leave    }, /* before the leaf, and gone after it: a kill leaves none unnamed */
	{ "cgroup",            NULL,          cgroup_enter,    cgroup_leave    }, /* limits exist before anything inside does */
	{ "seccomp",           NULL,          filter_enter,    NULL            }, /* memory only; init inherits it */
	{ "init",              NULL,          init_enter,      init_leave      }, /* born into the cgroup: clone3(2) */
	{ "ids",               NULL,          ids_enter,       ids_leave       }, /* while init opens its sources */
	{ "id map",            NULL,          map_enter,       NULL            }, /* ends with init */
	{ "record",            jail_has_directory, entry_enter, NULL           }, /* while init builds: its pid, the leaf's inode */
	{ "left behind",       jail_has_directory, sweep_enter, NULL           }, /* by others; while init builds */
	{ "network",           jail_has_network, network_enter, network_leave }, /* while init builds: through sockets of its making */
	{ "jail",              NULL,          seal_enter,      seal_leave      }, /* waits for init's own table */
	{ "uplink",            jail_has_network, uplink_enter, NULL           }, /* a helper started first and is waited for last */
	{ "strength",          NULL,          assess_enter,    NULL            }, /* all is known: --strict may still refuse */
};
/* clang-format on */
#define SUPERVISOR_STAGES (sizeof(supervisor_stages) / sizeof(supervisor_stages[0]))

/* --- the four functions -------------------------------------------------------------- */

static struct jail *jail_create(const struct plan *plan, const char *id)
{
	struct jail *j = calloc(1, sizeof(*j));
	if (!j)
		return NULL;
	j->plan = plan;
	j->root = plan->root;
	(void)snprintf(j->id, sizeof(j->id), "%s", id);
	j->signal_fd = j->runtime_dir_fd = j->init_pidfd = j->record_fd = -1;
	j->ids.lock_fd = j->link.sock_fd = -1;
	j->cgroup = CGROUP_NULL;
	j->box_fd = j->proc_fd = j->oom_fd = j->master_fd = -1;
	for (size_t i = 0; i < RELAY_COUNT; i++)
		relay_init(&j->relays[i]);
	return j;
}

static void jail_free(struct jail **j)
{
	arena_fini(&(*j)->arena);
	free(*j);
	*j = NULL;
}

int jail_prepare(const struct plan *plan, const char *id, struct jail **out, struct cj_error *err)
{
	struct jail *j = jail_create(plan, id);
	if (!j)
		return cj_fail(err, ENOMEM, "create a jail");
	if (stages_enter(j, supervisor_stages, SUPERVISOR_STAGES, err) < 0) {
		jail_free(&j);
		return -err->code;
	}
	*out = j;
	return 0;
}

int jail_waiting_fd(const struct jail *j)
{
	return j->link.sock_fd;
}

/* Nobody inside is alive: what it has left for the caller's own tools stays as it is. */
static void warn_of_changed_binds(struct jail *j)
{
	char names[400];
	if (bind_watch_compare(j->binds, names, sizeof(names)) > 0)
		jail_warn(j,
			  "created or changed during the run: %s; other programs execute or obey "
			  "such files: look at them first",
			  names);
}

static void adopt_warnings(struct jail *j, struct outcome *out)
{
	for (size_t i = 0; i < j->warnings.count; i++)
		outcome_warn(out, "%s", j->warnings.items[i]);
}

int jail_wait(struct jail *j, struct outcome *out, struct cj_error *err)
{
	int rc = 0;
	if (j->exec_errno != 0) {
		evidence_adopt(j, out);
		outcome_exec_failed(out, j->exec_errno);
	} else {
		rc = supervisor_watch(j, out, err);
	}
	warn_of_changed_binds(j);
	adopt_warnings(j, out);
	if (rc < 0) {
		cj_stage(err, "supervisor");
		rc = cj_wrap(err, "supervisor");
		outcome_fail(out, err);
	}
	return rc;
}

void jail_destroy(struct jail **j)
{
	if (!*j)
		return;
	for (size_t i = 0; i < RELAY_COUNT; i++)
		relay_fini(&(*j)->relays[i]);
	cj_close(&(*j)->master_fd);
	bind_watch_end(&(*j)->binds);
	stages_leave(*j, supervisor_stages, SUPERVISOR_STAGES);
	jail_free(j);
}
