/* SPDX-License-Identifier: Apache-2.0 */
/* The verb exec, and the two processes that enter the container for it. */
#include "runtime/container/exec/exec.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "runtime/base/child.h"
#include "runtime/base/files/fd.h"
#include "runtime/base/scope.h"
#include "runtime/base/step.h"
#include "runtime/base/sys.h"
#include "runtime/container/annotation/annotations.h"
#include "runtime/container/call/caller.h"
#include "runtime/container/container/container.h"
#include "runtime/container/process/console.h"
#include "runtime/container/process/process.h"

/* A file system of the container may never answer chdir(2): then the engine gets an error. */
#define EXEC_TIMEOUT_MS 120000

enum exec_step {
	EXEC_SPAWNED, /* joiner -> exec: the pid of the process, a pid_t */
	EXEC_SEEN,    /* exec -> process: the joiner is reaped, the next step is the process' own */
	EXEC_READY,   /* process -> exec: it is what it should be, and its program was found */
	EXEC_GO,      /* exec -> process: limits and pid file are there */
	EXEC_STEP_COUNT
};
static const char *const step_names[] = {
	[EXEC_SPAWNED] = "process spawned",
	[EXEC_SEEN] = "process seen",
	[EXEC_READY] = "process ready",
	[EXEC_GO] = "go",
};
static_assert(COUNT_OF(step_names) == EXEC_STEP_COUNT, "a name for each step");

struct execution {
	const struct oci_options *options;
	struct arena *arena;
	struct state state;
	int init_pidfd;  /* the process of the record for sure */
	int setns_flags; /* the namespaces in which init differs from us */
	struct container_cgroup cgroup;
	const char *below; /* a cgroup in it; NULL: none is named */
	struct oci_config config;
	struct annotations annotations;
	struct oci_process wanted;
	struct process *process;
	int console_fd; /* connected to the engine; -1: no terminal */
	struct step_link link;
	pid_t pid; /* 0: none */
};

static int enter_console(const struct execution *e, struct console *c, struct cj_error *err)
{
	int console_fd = e->console_fd;
	if (console_fd < 0)
		return 0;
	auto_fd int root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root_fd < 0)
		return cj_fail(err, errno, "open the container's root");
	if (console_open(root_fd, &e->wanted, c, err) < 0 || console_send(console_fd, c, err) < 0)
		return -err->code;
	cj_close(&console_fd);
	return 0;
}

static int become(const struct execution *e, const struct step_link *link, struct cj_error *err)
{
	auto_console struct console console = CONSOLE_NULL;
	if (step_await(link, EXEC_SEEN, NULL, err) < 0 || enter_console(e, &console, err) < 0 ||
	    process_become(e->process, e->console_fd >= 0 ? &console : NULL, err) < 0 ||
	    process_find(e->process, err) < 0 || step_say(link, EXEC_READY, err) < 0)
		return -err->code;
	return step_await(link, EXEC_GO, NULL, err);
}

/* From here: the process in the container.  The link's end says that the program is executed. */
static _Noreturn void process_main(const struct execution *e, const struct step_link *link)
{
	struct cj_error err = { 0 };
	(void)prctl(PR_SET_NAME, "cejail-oci-exec", 0, 0, 0); /* only what ps(1) shows */
	if (become(e, link, &err) == 0)
		(void)!process_execute(e->process, &err);
	step_abort(link, &err);
	_exit(1);
}

/*
 * Everything behind the preserved descriptors goes, in the gaps between those that the process
 * needs besides.
 */
static int close_others(const struct execution *e, int sock_fd, struct cj_error *err)
{
	const int kept[] = { sock_fd, e->init_pidfd, e->console_fd, process_agent_fd(e->process) };
	const unsigned first = CHILD_FIRST_FD + (unsigned)e->options->preserve_fds;

	if (fd_close_others(first, kept, COUNT_OF(kept)) < 0)
		return cj_fail(err, errno, "close the descriptors of the host");
	return 0;
}

/* The cgroup may have a cpuset, so the CPUs are set on both sides of it. */
static int join_cgroup(const struct execution *e, struct cj_error *err)
{
	const struct oci_affinity *cpus = &e->wanted.exec_affinity;

	if (cpus->initial && process_adjust_own_cpus(cpus->initial, err) < 0)
		return -err->code;
	int rc = e->below ? container_cgroup_join_below(&e->cgroup, e->below, err)
			  : container_cgroup_join(&e->cgroup, e->state.record.pid, err);
	if (rc == 0 && (cpus->initial || cpus->final))
		rc = process_adjust_own_cpus(cpus->final, err);
	return rc;
}

static int join_namespaces(const struct execution *e, struct cj_error *err)
{
	int pidfd = e->init_pidfd;
	if (setns(pidfd, e->setns_flags) < 0)
		return cj_fail(err, errno, "join the container's namespaces");
	cj_close(&pidfd);
	/* Files that are opened or made belong to root of the container's user namespace. */
	if (e->setns_flags & CLONE_NEWUSER && (setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0))
		return cj_fail(err, errno, "become root of the container's user namespace");
	return child_become_undumpable(err); /* setns(2) and the new ids may have changed it */
}

static int clone_process(const struct execution *e, const struct step_link *link,
			 struct cj_error *err)
{
	const struct clone_args args = { .flags = CLONE_PARENT }; /* a child of exec, like us */
	pid_t pid = sys_clone3(&args);
	if (pid < 0) {
		(void)!cj_fail(err, errno, "fork into the container");
		return cj_hint_for(err, ENOMEM,
				   "the container's first process may have ended: "
				   "pid_namespaces(7)");
	}
	if (pid == 0)
		process_main(e, link);
	return step_tell(link, EXEC_SPAWNED, &pid, sizeof(pid), NULL, 0, err);
}

/* From here: the joiner. */
static _Noreturn void joiner_main(const struct execution *e, int sock_fd)
{
	struct cj_error err = { 0 };
	const struct step_link link = { sock_fd, "cejail-oci exec", step_names };
	child_wipe_arguments(); /* what is in /proc/PID/cmdline can be read inside */
	/* The label while the host's procfs is there: none of the container's is trusted. */
	if (join_cgroup(e, &err) < 0 || process_label(e->process, &err) < 0 ||
	    close_others(e, sock_fd, &err) < 0 || join_namespaces(e, &err) < 0 ||
	    clone_process(e, &link, &err) < 0)
		step_abort(&link, &err);
	_exit(0);
}

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

/* Fails: ESRCH "container not running" when the process behind e->init_pidfd has ended. */
static int find_namespaces(struct execution *e, struct cj_error *err)
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
	for (size_t i = 0; rc >= 0 && i < COUNT_OF(all); i++) {
		rc = differs(e->state.record.pid, all[i].name, err);
		flags |= rc > 0 ? all[i].flag : 0;
	}
	/* If it lives, the number was its own all the time. */
	if (sys_pidfd_send_signal(e->init_pidfd, 0) < 0 && errno == ESRCH)
		return cj_reject_as(err, ESRCH, "container not running");
	if (rc < 0)
		return rc;
	/* A process that shares the host's tree is none that exec may enter. */
	if (!(flags & CLONE_NEWNS))
		return cj_reject(err, "the container has no mount namespace of its own");
	e->setns_flags = flags;
	return 0;
}

/*
 * Until the joiner has sent its message or its error.  Its end alone is no end of file: the process
 * that it has forked holds the same end of the link, and waits for us.
 */
static int await_joiner(pid_t joiner, const struct step_link *link, struct cj_error *err)
{
	auto_fd int pidfd = sys_pidfd_open(joiner);
	struct pollfd fds[] = { { .fd = link->sock_fd, .events = POLLIN },
				{ .fd = pidfd, .events = POLLIN } };
	if (pidfd < 0)
		return cj_fail(err, errno, "watch the process that joins the container");
	int rc = (int)TEMP_FAILURE_RETRY(poll(fds, COUNT_OF(fds), EXEC_TIMEOUT_MS));
	if (rc <= 0)
		return cj_fail(err, rc < 0 ? errno : ETIMEDOUT,
			       "wait for the process that joins the container");
	if (!fds[0].revents)
		return cj_fail(err, ECHILD, "the process that joins the container was killed");
	return 0;
}

/* Makes the process, a child of ours that waits for EXEC_GO. */
static int spawn(struct execution *e, struct cj_error *err)
{
	auto_step_msg struct step_msg msg = { 0 };
	int socks[2];

	if (step_pair(socks, EXEC_TIMEOUT_MS, err) < 0)
		return -err->code;
	e->link = (struct step_link){ socks[0], "the process in the container", step_names };
	pid_t joiner = fork();
	if (joiner == 0)
		joiner_main(e, socks[1]);
	int rc = joiner < 0 ? cj_fail(err, errno, "fork the process that joins the container") : 0;
	(void)close(socks[1]); /* or its end would never be seen */
	if (rc < 0)
		return rc;

	rc = await_joiner(joiner, &e->link, err);
	if (rc == 0)
		rc = step_await(&e->link, EXEC_SPAWNED, &msg, err);
	if (rc < 0)
		(void)kill(joiner, SIGKILL); /* it may be frozen with the container */
	(void)sys_waitpid(joiner, NULL, 0);  /* else it ends at once, whatever became of it */
	if (rc < 0)
		return rc;
	if (msg.size != sizeof(e->pid))
		return cj_fail(err, EPROTO, "read the pid of the container's new process");
	memcpy(&e->pid, msg.data, sizeof(e->pid));
	return step_say(&e->link, EXEC_SEEN, err);
}

static int check_status(const struct execution *e, struct cj_error *err)
{
	enum state_status status = state_status_of(&e->state);
	switch (status) {
	case STATE_CREATED:
	case STATE_RUNNING:
		return 0;
	case STATE_PAUSED:
		return e->options->ignore_paused
			   ? 0
			   : cj_reject(err, "container '%s' is paused; resume it first",
				       e->state.id);
	case STATE_STOPPED:
		return cj_reject_as(err, ESRCH, "container not running: '%s'", e->state.id);
	case STATE_CREATING:
	case STATE_STATUS_COUNT:
		break;
	}
	return cj_reject(err, "cannot exec in container '%s' in the state '%s'", e->state.id,
			 state_status_name(status));
}

static int read_state(struct execution *e, struct cj_error *err)
{
	if (state_open(e->options, false, e->arena, &e->state, err) < 0 ||
	    check_status(e, err) < 0 ||
	    container_config_stored(&e->state, e->arena, &e->config, err) < 0)
		return -err->code;
	if (!e->options->process && /* else it was read before */
	    exec_process_merge(e->options, &e->config.process, e->arena, &e->wanted, err) < 0)
		return -err->code;
	/* The process must not have a right that create would have refused. */
	if (annotations_read(&e->config.annotations, e->arena, &e->annotations, err) < 0)
		return -err->code;
	return e->annotations.has_network ? annotations_check_process(&e->wanted, err) : 0;
}

static int open_container(struct execution *e, struct cj_error *err)
{
	e->init_pidfd = state_open_init(&e->state, err);
	if (e->init_pidfd < 0 || find_namespaces(e, err) < 0)
		return -err->code;
	if (e->setns_flags & CLONE_NEWUSER && process_check_dumpable(err) < 0)
		return -err->code;
	if (e->options->cgroup) {
		e->below = arena_strdup(e->arena, e->options->cgroup);
		if (!e->below)
			return cj_fail(err, ENOMEM, "read --cgroup");
	}
	if (container_cgroup_open(&e->state.record.cgroup, &e->cgroup, err) < 0)
		return -err->code;
	/* Its process would stay in the caller's cgroup, without the container's limits. */
	if (e->state.record.cgroup.path[0] && e->cgroup.dir_fd < 0)
		return cj_reject_as(err, ENOENT,
				    "the container's cgroup '%s' does not exist any more",
				    e->state.record.cgroup.path);
	return 0;
}

static int prepare(struct execution *e, struct cj_error *err)
{
	const struct process_context context = {
		.has_user_namespace = e->config.on_linux.namespaces[OCI_NS_USER].is_wanted,
		.profile = e->annotations.profile,
		.preserved_fds = (unsigned)e->options->preserve_fds,
	};
	if (process_prepare(&e->config, &e->wanted, &context, e->arena, &e->process, err) < 0)
		return -err->code;
	oci_log_warnings(e->options, process_warnings(e->process));
	if (!e->wanted.has_terminal)
		return 0;
	if (!e->options->console_socket) {
		cj_refuse(err, "a terminal needs a console socket");
		return cj_hint(err, "give one with --console-socket, or leave --tty away");
	}
	e->console_fd = console_connect(e->options->console_socket, err);
	return e->console_fd < 0 ? e->console_fd : 0;
}

static int let_go(struct execution *e, struct cj_error *err)
{
	const struct process_state state = {
		.id = e->state.record.id,
		.status = state_status_name(STATE_RUNNING),
		.bundle = e->state.record.bundle,
		.container_pid = e->state.record.pid,
		.annotations = &e->config.annotations,
	};
	if (rdt_join_recorded(&e->state.record.rdt, e->pid, err) < 0 ||
	    step_await(&e->link, EXEC_READY, NULL, err) < 0 ||
	    process_describe(e->process, &state, e->pid, err) < 0 ||
	    process_adjust(e->process, e->pid, err) < 0 ||
	    (e->options->pid_file && caller_write_pid(e->options->pid_file, e->pid, err) < 0))
		return -err->code;
	return step_say(&e->link, EXEC_GO, err);
}

static int start(struct execution *e, struct cj_error *err)
{
	if (read_state(e, err) < 0 || open_container(e, err) < 0 || prepare(e, err) < 0 ||
	    spawn(e, err) < 0 || let_go(e, err) < 0)
		return -err->code;
	if (process_await(&e->link, "start the process", err) == 0)
		return 0;
	if (e->options->pid_file)
		(void)unlink(e->options->pid_file); /* it names a process that has ended */
	return -err->code;
}

int exec_run(struct oci_call *call, struct cj_error *err)
{
	struct execution e = {
		.options = call->options,
		.arena = call->arena,
		.state = STATE_NULL,
		.cgroup = CONTAINER_CGROUP_NULL,
		.init_pidfd = -1,
		.console_fd = -1,
		.link = { .sock_fd = -1 },
	};
	bool waits = !call->options->is_detached;
	/* The file may be a descriptor that process_keep_fds() closes. */
	if (exec_process_file(e.options, e.arena, &e.wanted, err) < 0 ||
	    process_keep_fds((unsigned)call->options->preserve_fds, err) < 0 ||
	    (waits && caller_block_signals(err) < 0))
		return -err->code;
	int rc = start(&e, err);
	if (rc < 0 && e.pid > 0) {
		(void)kill(e.pid, SIGKILL);        /* our child, not reaped: the id is its own */
		(void)sys_waitpid(e.pid, NULL, 0); /* as above */
	} else if (rc == 0 && waits) {
		rc = caller_wait(e.pid, NULL, &call->exit_status, err);
	}
	cj_close(&e.link.sock_fd);
	cj_close(&e.init_pidfd);
	cj_close(&e.console_fd);
	process_close(&e.process);
	container_cgroup_close(&e.cgroup);
	state_close(&e.state);
	return rc;
}
