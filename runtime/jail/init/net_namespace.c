/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the jail's network namespace beside init.
 *
 * The kernel needs longer for it (0.2 ms) than for all other namespaces together.  So init is
 * created without one, a child of init makes it while init builds the root, and init enters it.
 * The child shares init's memory, so it costs little.  It has its own descriptors, and it has ended
 * before anything of the program is inside.
 */
#include "runtime/jail/init/init.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>

#include "runtime/base/files/fd.h"
#include "runtime/base/scope.h"
#include "runtime/base/step.h"
#include "runtime/base/sys.h"
#include "runtime/jail/jail_state.h"

#define WHAT "make the jail's network namespace"

enum maker_step { MAKER_MADE, MAKER_STEPS };
static const char *const maker_steps[MAKER_STEPS] = { [MAKER_MADE] = "network namespace" };

static _Alignas(16) uint8_t stack[32768];

/* Closes nothing: its end does, and cj_close() writes errno. */
static int make(const struct step_link *link, struct cj_error *err)
{
	if (unshare(CLONE_NEWNET) < 0)
		return cj_fail(err, errno, WHAT);
	int fd = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return cj_fail(err, errno, WHAT);
	return step_tell(link, MAKER_MADE, NULL, 0, &fd, 1, err);
}

/*
 * Runs beside init in the same memory, on its own stack, and writes nothing that is init's.  errno
 * is init's, too: system calls write it only when they fail, and net_namespace_explain() knows.
 */
static int child_main(void *link)
{
	struct cj_error err = { 0 };
	if (make(link, &err) < 0)
		step_abort(link, &err);
	return 0;
}

int net_namespace_begin(struct net_namespace_maker *m, struct cj_error *err)
{
	static struct step_link child_end; /* the child may outlive this call */
	int ends[2];
	if (step_pair(ends, 0, err) < 0)
		return -err->code;
	child_end = (struct step_link){ ends[1], "init", maker_steps };
	m->pid = clone(child_main, stack + sizeof(stack), CLONE_VM | SIGCHLD, &child_end);
	int code = errno;
	cj_close(&ends[1]);
	m->link_fd = ends[0];
	return m->pid < 0 ? cj_fail(err, code, WHAT) : 0;
}

/* Waits for the child's end.  Returns the namespace; the bag closes it with the link. */
static int await_namespace(struct net_namespace_maker *m, struct fd_bag *opened,
			   struct cj_error *err)
{
	const struct step_link link = { m->link_fd, "the child that makes it", maker_steps };
	auto_step_msg struct step_msg msg = { 0 };
	int rc = step_await(&link, MAKER_MADE, &msg, err);
	fd_bag_add(opened, take_fd(&m->link_fd));
	pid_t pid = m->pid;
	m->pid = 0;
	if (rc < 0)
		return cj_wrap(err, WHAT);
	if (msg.nfds != 1)
		return cj_fail(err, EPROTO, WHAT);
	(void)sys_waitpid(pid, NULL, 0); /* our child */
	int fd = take_fd(&msg.fds[0]);
	fd_bag_add(opened, fd);
	return fd;
}

int net_namespace_enter(struct net_namespace_maker *m, struct cj_error *err)
{
	auto_fd_bag struct fd_bag opened = { 0 };
	int fd = await_namespace(m, &opened, err);
	if (fd < 0)
		return fd;
	return setns(fd, CLONE_NEWNET) < 0 ? cj_fail(err, errno, WHAT) : 0;
}

void net_namespace_explain(struct net_namespace_maker *m, struct cj_error *err)
{
	if (m->pid <= 0)
		return;
	struct cj_error theirs = { 0 };
	auto_fd_bag struct fd_bag opened = { 0 };
	if (await_namespace(m, &opened, &theirs) < 0) {
		*err = theirs;
		cj_stage(err, "network");
	}
}
