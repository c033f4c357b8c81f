/* SPDX-License-Identifier: Apache-2.0 */
/* Enters a container. */
#include "runtime/container/exec/exec.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/child.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"
#include "runtime/container/process/console.h"
#include "runtime/container/process/process.h"

const char *const exec_step_names[] = {
	[EXEC_SPAWNED] = "process spawned",
	[EXEC_SEEN] = "process seen",
	[EXEC_READY] = "process ready",
	[EXEC_GO] = "go",
};
static_assert(sizeof(exec_step_names) / sizeof(exec_step_names[0]) == EXEC_STEP_COUNT,
	      "a name for each step");

/* --- outside ------------------------------------------------------------------------------ */

/* The namespace of a process in *out; a kernel without such namespaces leaves it zeroed. */
static int look(const char *process, const char *name, struct stat *out, struct cj_error *err)
{
	char path[64];
	(void)snprintf(path, sizeof(path), "/proc/%s/ns/%s", process, name);
	if (stat(path, out) == 0)
		return 0;
	*out = (struct stat){ 0 };
	if (errno == ENOENT)
		return 0;
	int rc = cj_fail(err, errno, "look at the %s namespace of process %s", name, process);
	if (err->code == EACCES && geteuid() != 0)
		(void)cj_hint(err, "an ordinary user must start the container first");
	return rc;
}

/* A file that only one of the two has is an error: else the process would stay outside. */
static int differs(pid_t init_pid, const char *name, struct cj_error *err)
{
	char init[16];
	struct stat ours = { 0 }, theirs = { 0 };
	(void)snprintf(init, sizeof(init), "%d", init_pid);
	if (look("self", name, &ours, err) < 0 || look(init, name, &theirs, err) < 0)
		return -err->code;
	if ((ours.st_ino == 0) != (theirs.st_ino == 0))
		return cj_fail(err, ENOENT, "compare the container's %s namespace", name);
	return ours.st_dev != theirs.st_dev || ours.st_ino != theirs.st_ino;
}

int exec_join_namespaces(pid_t init_pid, int init_pidfd, int *out_flags, struct cj_error *err)
{
	static const struct {
		const char *name;
		int flag;
	} all[] = {
		{ "user", CLONE_NEWUSER }, { "cgroup", CLONE_NEWCGROUP }, { "ipc", CLONE_NEWIPC },
		{ "uts", CLONE_NEWUTS },   { "net", CLONE_NEWNET },       { "pid", CLONE_NEWPID },
		{ "time", CLONE_NEWTIME }, { "mnt", CLONE_NEWNS },
	};
	int flags = 0, rc = 0;
	for (size_t i = 0; rc >= 0 && i < sizeof(all) / sizeof(all[0]); i++) {
		rc = differs(init_pid, all[i].name, err);
		flags |= rc > 0 ? all[i].flag : 0;
	}
	/* If it lives, the number was its own all the time. */
	if (sys_pidfd_send_signal(init_pidfd, 0) < 0 && errno == ESRCH)
		return cj_reject_as(err, ESRCH, "container not running");
	if (rc < 0)
		return rc;
	/* A process that shares the host's tree is none that exec may enter. */
	if (!(flags & CLONE_NEWNS))
		return cj_reject(err, "the container has no mount namespace of its own");
	*out_flags = flags;
	return 0;
}

static _Noreturn void joiner_main(const struct exec_join *join, int sock_fd);

/*
 * Until the joiner has sent its message or its error.  Its end alone is no end of file: the process
 * that it has forked holds the same end of the link, and waits for us.
 */
static int await_joiner(pid_t joiner, const struct step_link *link, struct cj_error *err)
{
	auto_fd int pidfd = sys_pidfd_open(joiner);
	struct pollfd fds[] = { { .fd = link->sock_fd, .events = POLLIN },
				{ .fd = pidfd, .events = POLLIN } };
	int rc;
	if (pidfd < 0)
		return cj_fail(err, errno, "watch the process that joins the container");
	do
		rc = poll(fds, sizeof(fds) / sizeof(fds[0]), EXEC_TIMEOUT_MS);
	while (rc < 0 && errno == EINTR);
	if (rc <= 0)
		return cj_fail(err, rc < 0 ? errno : ETIMEDOUT,
			       "wait for the process that joins the container");
	if (!fds[0].revents)
		return cj_fail(err, ECHILD, "the process that joins the container was killed");
	return 0;
}

int exec_join_start(const struct exec_join *join, int sock_fd, const struct step_link *link,
		    pid_t *out_pid, struct cj_error *err)
{
	auto_step_msg struct step_msg msg = { 0 };
	pid_t joiner = fork();
	if (joiner < 0)
		return cj_fail(err, errno, "fork the process that joins the container");
	if (joiner == 0)
		joiner_main(join, sock_fd);
	(void)close(sock_fd); /* or its end would never be seen */

	int rc = await_joiner(joiner, link, err);
	if (rc == 0)
		rc = step_await(link, EXEC_SPAWNED, &msg, err);
	if (rc < 0)
		(void)kill(joiner, SIGKILL); /* it may be frozen with the container */
	(void)sys_waitpid(joiner, NULL, 0);  /* else it ends at once, whatever became of it */
	if (rc < 0)
		return rc;
	if (msg.size != sizeof(*out_pid))
		return cj_fail(err, EPROTO, "read the pid of the container's new process");
	memcpy(out_pid, msg.data, sizeof(*out_pid));
	return step_tell(link, EXEC_SEEN, NULL, 0, NULL, 0, err);
}

/* --- the joiner --------------------------------------------------------------------------- */

/* What the process needs besides the streams and preserved descriptors. */
struct kept {
	int fds[PROCESS_FDS_MAX + 3];
	size_t count;
};

static void keep(struct kept *k, int fd)
{
	size_t i = k->count;
	if (fd < 0)
		return;
	for (; i > 0 && k->fds[i - 1] > fd; i--)
		k->fds[i] = k->fds[i - 1];
	k->fds[i] = fd;
	k->count++;
}

/* Everything behind the preserved descriptors goes, in the gaps between those that are kept. */
static int close_others(const struct exec_join *join, int sock_fd, struct cj_error *err)
{
	struct kept k = { 0 };
	int of_process[PROCESS_FDS_MAX];
	size_t count = process_fds(join->process, of_process);
	for (size_t i = 0; i < count; i++)
		keep(&k, of_process[i]);
	keep(&k, sock_fd);
	keep(&k, join->console_fd);
	keep(&k, join->init_pidfd);

	unsigned from = CHILD_FIRST_FD + join->preserved_fds;
	for (size_t i = 0; i < k.count; i++) {
		unsigned fd = (unsigned)k.fds[i];
		if (fd > from && sys_close_range(from, fd - 1, 0) < 0)
			return cj_fail(err, errno, "close the descriptors of the host");
		from = fd + 1;
	}
	if (sys_close_range(from, ~0u, 0) < 0)
		return cj_fail(err, errno, "close the descriptors of the host");
	return 0;
}

/* The cgroup may have a cpuset, so the CPUs are set on both sides of it. */
static int join_cgroup(const struct exec_join *join, struct cj_error *err)
{
	const struct oci_affinity *cpus = &join->wanted->exec_affinity;

	if (cpus->initial && process_adjust_own_cpus(cpus->initial, err) < 0)
		return -err->code;
	int rc = join->below ? container_cgroup_join_below(join->cgroup, join->below, err)
			     : container_cgroup_join(join->cgroup, 0, join->init_pid, err);
	if (rc == 0 && (cpus->initial || cpus->final))
		rc = process_adjust_own_cpus(cpus->final, err);
	return rc;
}

static int join_namespaces(const struct exec_join *join, struct cj_error *err)
{
	int pidfd = join->init_pidfd;
	if (setns(pidfd, join->setns_flags) < 0)
		return cj_fail(err, errno, "join the container's namespaces");
	cj_close(&pidfd);
	/* Files that are opened or made belong to root of the container's user namespace. */
	if (join->setns_flags & CLONE_NEWUSER && (setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0))
		return cj_fail(err, errno, "become root of the container's user namespace");
	return child_become_undumpable(err); /* setns(2) and the new ids may have changed it */
}

static _Noreturn void process_main(const struct exec_join *join, const struct step_link *link);

static int spawn(const struct exec_join *join, const struct step_link *link, struct cj_error *err)
{
	const struct clone_args args = { .flags = CLONE_PARENT }; /* a child of exec, like us */
	pid_t pid = sys_clone3(&args);
	if (pid < 0) {
		int rc = cj_fail(err, errno, "fork into the container");
		if (err->code == ENOMEM)
			(void)cj_hint(err, "the container's first process may have ended: "
					   "pid_namespaces(7)");
		return rc;
	}
	if (pid == 0)
		process_main(join, link);
	return step_tell(link, EXEC_SPAWNED, &pid, sizeof(pid), NULL, 0, err);
}

/* From here: the joiner. */
static _Noreturn void joiner_main(const struct exec_join *join, int sock_fd)
{
	struct cj_error err = { 0 };
	const struct step_link link = { sock_fd, "cejail-oci exec", exec_step_names };
	child_wipe_arguments(); /* what is in /proc/PID/cmdline can be read inside */
	/* The label while the host's procfs is there: none of the container's is trusted. */
	if (join_cgroup(join, &err) < 0 || process_label(join->process, &err) < 0 ||
	    close_others(join, sock_fd, &err) < 0 || join_namespaces(join, &err) < 0 ||
	    spawn(join, &link, &err) < 0)
		step_abort(&link, &err);
	_exit(0);
}

/* --- the process --------------------------------------------------------------------------- */

static int enter_console(const struct exec_join *join, struct console *c, struct cj_error *err)
{
	int console_fd = join->console_fd;
	if (console_fd < 0)
		return 0;
	auto_fd int root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root_fd < 0)
		return cj_fail(err, errno, "open the container's root");
	if (console_open(root_fd, join->wanted, c, err) < 0 || console_send(console_fd, c, err) < 0)
		return -err->code;
	cj_close(&console_fd);
	return 0;
}

static int become(const struct exec_join *join, const struct step_link *link, struct cj_error *err)
{
	auto_step_msg struct step_msg msg = { 0 };
	auto_console struct console console = CONSOLE_NULL;
	if (step_await(link, EXEC_SEEN, &msg, err) < 0 || enter_console(join, &console, err) < 0 ||
	    process_become(join->process, join->console_fd >= 0 ? &console : NULL, err) < 0 ||
	    process_find(join->process, err) < 0 ||
	    step_tell(link, EXEC_READY, NULL, 0, NULL, 0, err) < 0)
		return -err->code;
	return step_await(link, EXEC_GO, &msg, err);
}

/* From here: the process in the container.  The link's end says that the program is executed. */
static _Noreturn void process_main(const struct exec_join *join, const struct step_link *link)
{
	struct cj_error err = { 0 };
	(void)prctl(PR_SET_NAME, "cejail-oci-exec", 0, 0, 0); /* only what ps(1) shows */
	if (become(join, link, &err) == 0)
		(void)!process_execute(join->process, &err);
	step_abort(link, &err);
	_exit(1);
}
