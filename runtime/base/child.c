/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/base/child.h"

#include <assert.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "runtime/base/scope.h"
#include "runtime/base/self_status.h"
#include "runtime/base/sys.h"

pid_t child_fork(int *out_pidfd)
{
	const struct clone_args args = {
		.flags = CLONE_PIDFD,
		.pidfd = (uintptr_t)out_pidfd,
		.exit_signal = SIGCHLD,
	};
	return sys_clone3(&args);
}

/* The kernel sends the parent the signal that it gets for the caller. */
pid_t child_fork_sibling(int *out_pidfd)
{
	const struct clone_args args = {
		.flags = CLONE_PIDFD | CLONE_PARENT,
		.pidfd = (uintptr_t)out_pidfd,
	};
	return sys_clone3(&args);
}

int child_keep_only(int *fds, size_t count, struct cj_error *err)
{
	const int end_fd = CHILD_FIRST_FD + (int)count;
	int high[CHILD_FDS_MAX];
	assert(count <= CHILD_FDS_MAX);

	/* One may already have the number that another is to get: first duplicate all above.  A
	 * single one is in nobody's way, but dup3(2) refuses its own number. */
	const bool is_single = count == 1 && fds[0] != CHILD_FIRST_FD;
	for (size_t i = 0; i < count; i++) {
		high[i] = is_single ? fds[i] : fcntl(fds[i], F_DUPFD_CLOEXEC, end_fd);
		if (high[i] < 0)
			return cj_fail(err, errno, "duplicate descriptor %d", fds[i]);
	}
	for (size_t i = 0; i < count; i++)
		if (dup3(high[i], CHILD_FIRST_FD + (int)i, O_CLOEXEC) < 0)
			return cj_fail(err, errno, "keep descriptor %d", fds[i]);
	if (sys_close_range((unsigned)end_fd, ~0u, 0) < 0)
		return cj_fail(err, errno, "close inherited descriptors");

	for (size_t i = 0; i < count; i++)
		fds[i] = CHILD_FIRST_FD + (int)i;
	return 0;
}

int child_null_streams(struct cj_error *err)
{
	if (sys_close_range(0, CHILD_FIRST_FD - 1, 0) < 0)
		return cj_fail(err, errno, "close the standard streams");
	if (open("/dev/null", O_RDWR) < 0) /* the lowest free number: open(2) */
		return cj_fail(err, errno, "open '/dev/null'");
	for (int fd = 1; fd < CHILD_FIRST_FD; fd++)
		if (dup2(0, fd) < 0)
			return cj_fail(err, errno, "put '/dev/null' on descriptor %d", fd);
	return 0;
}

uint64_t child_changed_signals(void)
{
	struct self_mask changed[] = { { .name = "SigIgn" }, { .name = "SigCgt" } };
	return self_status_masks(-1, changed, 2) ? changed[0].value | changed[1].value : UINT64_MAX;
}

void child_default_signals(void)
{
	child_reset_signals(child_changed_signals());
}

void child_reset_signals(uint64_t changed)
{
	const struct sigaction standard = { .sa_handler = SIG_DFL };
	for (int signal = 1; signal < NSIG; signal++)
		if (changed >> (signal - 1) & 1)
			/* EINVAL: KILL, STOP and glibc's own */
			(void)sigaction(signal, &standard, NULL);
}

int child_unblock_signals(struct cj_error *err)
{
	sigset_t none;
	sigemptyset(&none);
	if (sigprocmask(SIG_SETMASK, &none, NULL) < 0)
		return cj_fail(err, errno, "unblock signals");
	return 0;
}

int child_die_with_parent(int link_fd, struct cj_error *err)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
		return cj_fail(err, errno, "ask to die with the parent");

	struct pollfd link = { .fd = link_fd };
	if (poll(&link, 1, 0) > 0 && (link.revents & (POLLHUP | POLLERR)))
		return cj_fail(err, EPIPE, "find the parent alive");
	return 0;
}

int child_start_session(struct cj_error *err)
{
	if (setsid() < 0)
		return cj_fail(err, errno, "start a session of its own");
	return 0;
}

int child_become_undumpable(struct cj_error *err)
{
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return cj_fail(err, errno, "become undumpable");
	return 0;
}

/* The kernel stores both in one run of strings, arguments first. */
void child_wipe_arguments(void)
{
	char *begin = program_invocation_name, *end = begin + strlen(begin) + 1;
	for (char **e = environ; *e; e++)
		if (*e >= begin && *e + strlen(*e) + 1 > end)
			end = *e + strlen(*e) + 1;
	explicit_bzero(begin, (size_t)(end - begin));

	static char *nothing[] = { NULL };
	environ = nothing;
}

int child_exit_status(int wait_status)
{
	return WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 128 + WTERMSIG(wait_status);
}

int child_reset(int *fds, size_t count, struct cj_error *err)
{
	if (child_keep_only(fds, count, err) < 0 || child_null_streams(err) < 0)
		return -err->code;
	child_default_signals();
	return child_unblock_signals(err);
}
