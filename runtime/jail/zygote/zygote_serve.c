/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The zygote's loop; runs in the zygote, whose memory each child copies.
 *
 * So nothing of a request stays: its descriptors are closed and its bytes erased before the next
 * one is read.
 */
#include "runtime/jail/zygote/zygote_inside.h"

#include <signal.h>
#include <sys/prctl.h>

#include "runtime/base/step.h"

/* Storage of one request; static, so that no stack frame of a child's launcher is below it. */
static struct {
	struct step_msg msg;
	struct zygote_job job;
} current;

/* Serves the request in `current`.  Returns 0 in the child, its parent's pid or an error here. */
static pid_t serve(pid_t (*fork_now)(void), struct cj_error *err)
{
	if (zygote_request_read(&current.msg, &current.job, err) < 0 ||
	    zygote_check_threads(err) < 0)
		return -err->code;
	return zygote_enter(&current.job, fork_now, err);
}

/* The next request.  False: no supervisor is left. */
static bool await_request(const struct step_link *link)
{
	struct cj_error err = { 0 };
	while (step_next(link, &current.msg, &err) < 0)
		if (err.code == EPIPE)
			return false;
	return true;
}

static bool is_servable(struct cj_error *err)
{
	return zygote_check_threads(err) == 0 && zygote_check_memory(err) == 0;
}

/* Returns 0 in the trial. */
static pid_t get_ready(const struct step_link *link, pid_t (*fork_now)(void))
{
	struct cj_error err = { 0 };
	if (is_servable(&err) && zygote_pages_try(fork_now) == 0)
		return 0;
	/* Once more: fork(3) has called what the modules want to be called then. */
	if (err.code != 0 || !is_servable(&err))
		step_abort(link, &err);
	else
		(void)step_say(link, ZYGOTE_READY, &err);
	if (err.code != 0)
		_exit(EXIT_FAILURE);
	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); /* cannot fail with these arguments */
	return getpid();
}

pid_t zygote_serve(pid_t (*fork_now)(void))
{
	const struct step_link link = { ZYGOTE_SOCK_FD, "a supervisor", zygote_step_names };
	sigset_t all, before;
	sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, &before); /* cannot fail with these arguments */
	step_wait_forever(&link);
	if (get_ready(&link, fork_now) == 0) {
		(void)sigprocmask(SIG_SETMASK, &before, NULL); /* as above */
		return 0;
	}
	while (await_request(&link)) {
		struct cj_error err = { 0 };
		pid_t pid = serve(fork_now, &err);
		if (pid == 0) {
			zygote_pages_fetch(); /* in the jail's cgroup, before its filter */
			if (zygote_seal(&current.job, &err) < 0)
				_exit(EXIT_FAILURE);
			explicit_bzero(&current, sizeof(current)); /* its descriptors are closed */
			(void)sigprocmask(SIG_SETMASK, &before, NULL); /* as above */
			return 0;
		}
		if (pid < 0 && current.msg.nfds > 0) { /* else there is no one to tell */
			const struct step_link report = { current.msg.fds[ZYGOTE_FD_REPORT],
							  "the supervisor", zygote_step_names };
			step_abort(&report, &err);
		}
		zygote_message_close(&current.msg);
		explicit_bzero(&current, sizeof(current));
	}
	_exit(EXIT_SUCCESS);
}
