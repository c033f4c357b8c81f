/* SPDX-License-Identifier: Apache-2.0 */
/* The verb run: create, start, wait, delete.  Acts. */
#include "runtime/front/oci/container/container.h"

#include <signal.h>
#include <sys/wait.h>

#include "runtime/base/scope.h"
#include "runtime/base/sys.h"
#include "runtime/front/oci/container/container_delete.h"
#include "runtime/front/oci/container/container_start.h"
#include "runtime/front/oci/create/creation.h"
#include "runtime/front/oci/oci_log.h"

/* Signals that a user or an engine sends to the program by sending them to us. */
static const int forwarded[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGCONT };

static void fill_set(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGCHLD);
	for (size_t i = 0; i < sizeof(forwarded) / sizeof(forwarded[0]); i++)
		sigaddset(set, forwarded[i]);
}

/* Returns the status as a shell has it. */
static int wait_for_end(const struct creation *c, struct cj_error *err)
{
	sigset_t set;
	int status = 0;

	fill_set(&set);
	for (;;) {
		pid_t pid = waitpid(c->init_pid, &status, WNOHANG);
		if (pid < 0 && errno != EINTR)
			return cj_fail(err, errno, "wait for the container");
		if (pid == c->init_pid)
			return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
		int number = sigwaitinfo(&set, NULL);
		if (number > 0 && number != SIGCHLD)
			(void)sys_pidfd_send_signal(c->init_pidfd, number); /* it may have ended */
	}
}

static int start_and_wait(struct oci_call *call, struct creation *c, struct cj_error *err)
{
	if (container_start_init(&c->state, err) < 0 ||
	    container_start_hooks(call->options, &c->bundle.config, &c->state, err) < 0)
		return -err->code;
	if (call->options->is_detached)
		return 0;
	int status = wait_for_end(c, err);
	if (status < 0)
		return status;
	call->exit_status = status;
	c->init_pid = 0;
	return 0;
}

int container_run(struct oci_call *call, struct cj_error *err)
{
	struct creation c;
	sigset_t set;

	fill_set(&set);
	/* before init exists: a signal that comes early waits.  Init blocks none. */
	if (!call->options->is_detached && sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return cj_fail(err, errno, "block signals");
	if (creation_make(call, &c, err) < 0)
		return -err->code;
	int rc = start_and_wait(call, &c, err);
	if (rc < 0)
		creation_undo(&c);
	else if (!call->options->is_detached && !call->options->keep)
		rc = container_delete_all(call->options, &c.state, call->arena, err);
	creation_close(&c);
	return rc;
}
