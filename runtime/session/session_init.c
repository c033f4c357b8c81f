/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session_init - pid 1 of a session, and the reapers.
 *
 *	keeper                     init
 *	STEP_SESSION ------------> ignore SIGCHLD, try a Landlock domain
 *	       <----- STEP_SERVING
 *	STEP_EXEC ---------------> fork a reaper, which moves itself into the cgroup of its exec and
 *	                           keeps only its end of the socket pair
 *
 *	exec worker                reaper
 *	       <------ STEP_REAPER
 *	STEP_INPUT ... ----------> write the input files, as the jail's user
 *	STEP_START --------------> vfork, enter a Landlock domain of its own, execve: the program
 *	       <----- STEP_STARTED
 *	       <------- STEP_ENDED the main process has ended
 *	       <------- STEP_EMPTY the reaper has no child left; it ends
 *
 * Init has parsed no byte of an exec and holds no descriptor of it.  It forks nothing but reapers.
 * A reaper is sealed as init is.  It is a subreaper, so every process that a program starts stays
 * below its reaper as long as that lives, and STEP_EMPTY proves that none is left.  The program
 * enters the domain, the reaper does not: a domain may not signal or trace what is outside of it,
 * so the program can do neither to its reaper.
 *
 * When the exec worker ends, the reaper starts nothing more, and the keeper kills its descendants.
 * When the keeper ends, init dies, and with it every process of the jail.
 */
#include "runtime/session/session_state.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "runtime/base/child.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"
#include "runtime/jail/init/init.h"
#include "runtime/kernel/process/landlock.h"
#include "runtime/jail/protocol.h"

/* Can a process enter the domain?  The seccomp policy may refuse it, or landlock(7)'s limit of
 * layers.  Only a process that may end can try. */
static bool can_enter(int ruleset_fd)
{
	struct cj_error ignored;
	int status = 0;
	pid_t pid = fork();
	if (pid == 0)
		_exit(landlock_restrict(ruleset_fd, &ignored) < 0 ? EXIT_FAILURE : EXIT_SUCCESS);
	return pid > 0 && sys_waitpid(pid, &status, 0) == pid && status == 0;
}

/* If a ruleset can't be made or used, the answer says so, and the keeper warns or refuses. */
static enum session_isolation open_domain(struct jail *j)
{
	bool has_scopes = false;
	struct cj_error ignored;
	auto_fd int ruleset_fd = landlock_domain_ruleset(&has_scopes, &ignored);
	if (ruleset_fd < 0 || !can_enter(ruleset_fd))
		return SESSION_SHARED;
	j->init.domain_fd = take_fd(&ruleset_fd);
	return has_scopes ? SESSION_ISOLATED : SESSION_UNTRACED;
}

/* From here: the reaper. */

static int live(struct jail *j, int link_fd, int door_fd, struct cj_error *err)
{
	if (door_fd >= 0)
		(void)!sys_write(door_fd, "0", 1); /* the exec worker sees whether it has moved */
	int kept[] = { link_fd, j->init.domain_fd };
	j->link = (struct step_link){ link_fd, "the exec worker", step_names };
	if (child_keep_only(kept, j->init.domain_fd >= 0 ? 2 : 1, err) < 0)
		return -err->code;
	j->link.sock_fd = kept[0];
	j->init.domain_fd = kept[1];
	j->init.adoption = ADOPTION_NULL; /* its descriptors are closed */
	j->init.serve = NULL;             /* no session in a session */
	child_default_signals();          /* SIGCHLD: a reaper waits for its children */
	if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
		return cj_fail(err, errno, "become a subreaper");
	(void)prctl(PR_SET_NAME, "cejail-reaper", 0, 0, 0); /* only what ps(1) shows */
	const struct reaper self = { .pid = getpid() };
	if (step_tell(&j->link, STEP_REAPER, &self, sizeof(self), NULL, 0, err) < 0)
		return -err->code;
	step_wait_forever(&j->link);
	pid_t main_pid = init_take_program(j, err);
	if (main_pid < 0) {
		cj_stage(err, "program");
		return main_pid;
	}
	return main_pid == 0 ? 0 : init_reap_until_ended(&j->link, main_pid, err);
}

/* Also after a failure the program may run: its processes must not become init's children. */
_Noreturn static void reaper_main(struct jail *j, int link_fd, int door_fd)
{
	struct cj_error err = { 0 };
	if (live(j, link_fd, door_fd, &err) < 0)
		step_abort(&j->link, &err);
	init_reap_all();
	(void)!step_say(&j->link, STEP_EMPTY, &err); /* nobody may listen */
	_exit(EXIT_SUCCESS);
}

/* A failure is the exec's, not the session's: too many processes. */
static void fork_reaper(struct jail *j, int link_fd, int door_fd)
{
	pid_t pid = fork();
	if (pid == 0)
		reaper_main(j, link_fd, door_fd);
	if (pid > 0)
		return;
	struct cj_error err = { 0 };
	const struct step_link link = { link_fd, "the exec worker", step_names };
	int rc = cj_fail(&err, errno, "fork the reaper");
	if (rc == -EAGAIN)
		cj_hint(&err, "the session has as many processes as --pids allows");
	step_abort(&link, &err);
}

int session_init_serve(struct jail *j, struct cj_error *err)
{
	const struct serving serving = { .isolation = open_domain(j) };
	/* Init waits for none of its children: reapers, and orphans of a reaper that was killed. */
	const struct sigaction ignore = { .sa_handler = SIG_IGN };
	if (sigaction(SIGCHLD, &ignore, NULL) < 0)
		return cj_fail(err, errno, "ignore the ends of children");
	if (step_tell(&j->link, STEP_SERVING, &serving, sizeof(serving), NULL, 0, err) < 0)
		return -err->code;
	for (;;) {
		auto_step_msg struct step_msg msg = { 0 };
		if (step_await(&j->link, STEP_EXEC, &msg, err) < 0)
			return -err->code;
		if (msg.nfds < 1 || msg.nfds > 2)
			return cj_fail(err, EPROTO, "take the link of an exec");
		fork_reaper(j, msg.fds[0], msg.nfds == 2 ? msg.fds[1] : -1);
	}
}
