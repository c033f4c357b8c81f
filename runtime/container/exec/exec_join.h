/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exec_join - the two processes of exec that enter the container: exec.h draws them.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "runtime/base/step.h"
#include "runtime/container/cgroup/container_cgroup.h"
#include "runtime/container/process/process.h"

enum exec_step {
	EXEC_SPAWNED, /* joiner -> exec: the pid of the process, a pid_t */
	EXEC_SEEN,    /* exec -> process: the joiner is reaped, the next step is the process' own */
	EXEC_READY,   /* process -> exec: it is what it should be, and its program was found */
	EXEC_GO,      /* exec -> process: limits and pid file are there */
	EXEC_STEP_COUNT
};

/* A file system of the container may never answer chdir(2): then the engine gets an error. */
#define EXEC_TIMEOUT_MS 120000
extern const char *const exec_step_names[EXEC_STEP_COUNT];

struct exec_join {
	const struct container_cgroup *cgroup;
	const char *below; /* a cgroup in it; NULL: none is named */
	pid_t init_pid;    /* of the container */
	int init_pidfd;    /* the same process for sure */
	int setns_flags;   /* the namespaces in which init differs from us */

	struct process *process;
	const struct oci_process *wanted;
	unsigned preserved_fds;
	int console_fd; /* connected to the engine; -1: no terminal */
};

/*
 * exec_join_namespaces - which namespaces of `init_pid` are not ours: for setns_flags.
 *
 * Fails: ESRCH "container not running" when the process behind init_pidfd has ended.
 */
int exec_join_namespaces(pid_t init_pid, int init_pidfd, int *out_flags, struct cj_error *err);

/*
 * exec_join_start - fork the joiner, which takes `sock_fd` as its end of the link.
 *
 * Returns the pid of the process, a child of the caller that waits for EXEC_GO.
 */
int exec_join_start(const struct exec_join *join, int sock_fd, const struct step_link *link,
		    pid_t *out_pid, struct cj_error *err);
