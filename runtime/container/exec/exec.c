/* SPDX-License-Identifier: Apache-2.0 */
/* The verb exec, outside. */
#include "runtime/container/exec/exec.h"

#include <sched.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/scope.h"
#include "runtime/base/sys.h"
#include "runtime/container/annotation/annotations.h"
#include "runtime/container/annotation/network_rules.h"
#include "runtime/container/call/caller.h"
#include "runtime/container/call/oci_log.h"
#include "runtime/container/container/container.h"
#include "runtime/container/process/console.h"
#include "runtime/container/state/state.h"

struct execution {
	const struct oci_options *options;
	struct arena *arena;
	struct state state;
	struct container_cgroup cgroup;
	struct oci_config config;
	struct annotations annotations;
	struct oci_process wanted;
	struct process *process;
	struct exec_join join;
	struct step_link link;
	pid_t pid; /* 0: none */
};

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
	if (e->options->process)
		return 0; /* read before */
	return exec_process_merge(e->options, &e->config.process, e->arena, &e->wanted, err);
}

/* The process must not have a right that create would have refused. */
static int check_annotations(struct execution *e, struct cj_error *err)
{
	if (annotations_read(&e->config.annotations, e->arena, &e->annotations, err) < 0)
		return -err->code;
	return e->annotations.has_network ? network_rules_check_process(&e->wanted, err) : 0;
}

static int open_container(struct execution *e, struct cj_error *err)
{
	e->join.init_pid = e->state.record.pid;
	e->join.init_pidfd = state_open_init(&e->state, err);
	if (e->join.init_pidfd < 0 || exec_join_namespaces(e->join.init_pid, e->join.init_pidfd,
							   &e->join.setns_flags, err) < 0)
		return -err->code;
	if (e->join.setns_flags & CLONE_NEWUSER && process_check_dumpable(err) < 0)
		return -err->code;
	e->join.cgroup = &e->cgroup;
	if (e->options->cgroup) {
		e->join.below = arena_strdup(e->arena, e->options->cgroup);
		if (!e->join.below)
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

static int connect_console(struct execution *e, struct cj_error *err)
{
	if (!e->wanted.has_terminal)
		return 0;
	if (!e->options->console_socket) {
		cj_refuse(err, "a terminal needs a console socket");
		return cj_hint(err, "give one with --console-socket, or leave --tty away");
	}
	e->join.console_fd = console_connect(e->options->console_socket, err);
	return e->join.console_fd < 0 ? e->join.console_fd : 0;
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
	e->join.process = e->process;
	e->join.wanted = &e->wanted;
	e->join.preserved_fds = context.preserved_fds;
	return connect_console(e, err);
}

static int spawn(struct execution *e, struct cj_error *err)
{
	int socks[2];
	if (step_pair(socks, EXEC_TIMEOUT_MS, err) < 0)
		return -err->code;
	e->link = (struct step_link){ socks[0], "the process in the container", exec_step_names };
	return exec_join_start(&e->join, socks[1], &e->link, &e->pid, err);
}

static int let_go(struct execution *e, struct cj_error *err)
{
	auto_step_msg struct step_msg msg = { 0 };
	const struct process_state state = {
		.id = e->state.record.id,
		.status = state_status_name(STATE_RUNNING),
		.bundle = e->state.record.bundle,
		.container_pid = e->state.record.pid,
		.annotations = &e->config.annotations,
	};
	if (rdt_join_recorded(&e->state.record.rdt, e->pid, err) < 0 ||
	    step_await(&e->link, EXEC_READY, &msg, err) < 0 ||
	    process_describe(e->process, &state, e->pid, err) < 0 ||
	    process_adjust(e->process, e->pid, err) < 0 ||
	    (e->options->pid_file && caller_write_pid(e->options->pid_file, e->pid, err) < 0))
		return -err->code;
	return step_tell(&e->link, EXEC_GO, NULL, 0, NULL, 0, err);
}

static int start(struct execution *e, struct cj_error *err)
{
	if (read_state(e, err) < 0 || check_annotations(e, err) < 0 || open_container(e, err) < 0 ||
	    prepare(e, err) < 0 || spawn(e, err) < 0 || let_go(e, err) < 0)
		return -err->code;
	if (process_await(&e->link, "start the process", err) == 0)
		return 0;
	if (e->options->pid_file)
		(void)unlink(e->options->pid_file); /* it names a process that has ended */
	return -err->code;
}

static void end_process(struct execution *e)
{
	if (e->pid <= 0)
		return;
	(void)kill(e->pid, SIGKILL);        /* our child, not reaped: the id is its own */
	(void)sys_waitpid(e->pid, NULL, 0); /* as above */
	e->pid = 0;
}

static void release(struct execution *e)
{
	cj_close(&e->link.sock_fd);
	cj_close(&e->join.init_pidfd);
	cj_close(&e->join.console_fd);
	process_close(&e->process);
	container_cgroup_close(&e->cgroup);
	state_close(&e->state);
}

int exec_run(struct oci_call *call, struct cj_error *err)
{
	struct execution e = {
		.options = call->options,
		.arena = call->arena,
		.state = STATE_NULL,
		.cgroup = CONTAINER_CGROUP_NULL,
		.join = { .init_pidfd = -1, .console_fd = -1 },
		.link = { .sock_fd = -1 },
	};
	bool waits = !call->options->is_detached;
	/* The file may be a descriptor that process_keep_fds() closes. */
	if (exec_process_file(e.options, e.arena, &e.wanted, err) < 0 ||
	    process_keep_fds((unsigned)call->options->preserve_fds, err) < 0 ||
	    (waits && caller_block_signals(err) < 0))
		return -err->code;
	int rc = start(&e, err);
	if (rc < 0)
		end_process(&e);
	else if (waits)
		rc = caller_wait(e.pid, NULL, &call->exit_status, err);
	release(&e);
	return rc;
}
