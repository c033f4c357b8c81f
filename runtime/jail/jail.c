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

#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "runtime/base/scope.h"
#include "runtime/jail/jail_state.h"
#include "runtime/jail/prepare/jail_assess.h"
#include "runtime/jail/prepare/jail_cgroup.h"
#include "runtime/jail/prepare/jail_init.h"
#include "runtime/jail/prepare/jail_network.h"
#include "runtime/jail/prepare/jail_record.h"
#include "runtime/jail/stage.h"
#include "runtime/jail/supervise/bind_watch.h"
#include "runtime/jail/supervise/collect.h"
#include "runtime/jail/supervise/evidence.h"
#include "runtime/jail/supervise/start.h"
#include "runtime/jail/supervise/supervisor.h"

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

/* clang-format off */
static const struct stage supervisor_stages[] = {
	/* name                wanted         enter            leave               why here */
	{ "names",             NULL,          jail_network_names_enter,     NULL            }, /* may take long: no signal is held back yet */
	{ "runtime directory", NULL,          jail_record_directory_enter, jail_record_directory_leave }, /* the record and ids live in it */
	{ "cgroup",            NULL,          jail_cgroup_find_enter,     jail_cgroup_leave    }, /* found, not made: the record comes first; a user manager may take long, too */
	{ "signals",           NULL,          signals_enter,   signals_leave   }, /* a cancel during the rest of set-up waits for jail_wait */
	{ "record",            jail_record_is_wanted, jail_record_enter,    jail_record_leave    }, /* before the leaf, and gone after it: a kill leaves none unnamed */
	{ "cgroup",            NULL,          jail_cgroup_enter,    jail_cgroup_leave    }, /* limits exist before anything inside does */
	{ "seccomp",           NULL,          filter_enter,    NULL            }, /* memory only; init inherits it */
	{ "init",              NULL,          jail_init_enter,      jail_init_leave      }, /* born into the cgroup: clone3(2) */
	{ "ids",               NULL,          jail_init_ids_enter,       jail_init_ids_leave       }, /* while init opens its sources */
	{ "id map",            NULL,          jail_init_map_enter,       NULL            }, /* ends with init */
	{ "record",            jail_record_is_wanted, jail_record_complete_enter, NULL           }, /* while init builds: its pid, the leaf's inode */
	{ "left behind",       jail_record_is_wanted, jail_record_sweep_enter, NULL           }, /* by others; while init builds */
	{ "network",           jail_network_is_wanted, jail_network_enter, jail_network_leave }, /* while init builds: through sockets of its making */
	{ "jail",              NULL,          jail_init_seal_enter,      jail_init_seal_leave      }, /* waits for init's own table */
	{ "uplink",            jail_network_is_wanted, jail_network_uplink_enter, NULL           }, /* a helper started first and is waited for last */
	{ "strength",          NULL,          jail_assess_enter,    NULL            }, /* all is known: --strict may still refuse */
};
/* clang-format on */
#define SUPERVISOR_STAGES (sizeof(supervisor_stages) / sizeof(supervisor_stages[0]))

/* --- the four functions -------------------------------------------------------------- */

int jail_prepare(const struct plan *plan, const char *id, struct jail **out, struct cj_error *err)
{
	struct jail *j = jail_state_create(plan, id);
	if (!j)
		return cj_fail(err, ENOMEM, "create a jail");
	if (stages_enter(j, supervisor_stages, SUPERVISOR_STAGES, err) < 0) {
		jail_state_free(&j);
		return -err->code;
	}
	*out = j;
	return 0;
}

int jail_warm(struct jail *j, const struct program *launcher, struct cj_error *err)
{
	return start_launcher(j, launcher, err);
}

int jail_start(struct jail *j, const struct program *program, const struct jail_io *io,
	       struct cj_error *err)
{
	return start_program(j, program, io, err);
}

int jail_waiting_fd(const struct jail *j)
{
	return j->link.sock_fd;
}

/* Nobody inside is alive: what it has left for the caller's own tools stays as it is. */
static void warn_of_changed_binds(struct jail *j)
{
	char names[400];
	if (bind_watch_compare(j->run.binds, names, sizeof(names)) > 0)
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
	if (j->run.exec_errno != 0) {
		evidence_adopt(j, out);
		outcome_exec_failed(out, j->run.exec_errno);
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

int jail_collect(struct jail *j, int dest_fd, struct outcome *out, struct cj_error *err)
{
	return collect_into_directory(j, dest_fd, out, err);
}

int jail_collect_memory(struct jail *j, uint64_t max_bytes, struct outcome *out,
			struct cj_error *err)
{
	return collect_into_memory(j, max_bytes, out, err);
}

void jail_destroy(struct jail **j)
{
	if (!*j)
		return;
	for (size_t i = 0; i < RELAY_COUNT; i++)
		relay_fini(&(*j)->run.relays[i]);
	cj_close(&(*j)->run.master_fd);
	bind_watch_end(&(*j)->run.binds);
	stages_leave(*j, supervisor_stages, SUPERVISOR_STAGES);
	jail_state_free(j);
}
