/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exec - the verb exec: one more process in a running container.
 *
 * Theory of operation.  Three processes, all of the sealed copy (own_copy.h), none dumpable:
 *
 *	exec (outside)        joiner                        process
 *	--------------        ------                        -------
 *	state, config.json
 *	seccomp program
 *	fork ---------------> the container's cgroup
 *	                      drops every descriptor of
 *	                        the host
 *	                      setns(2): all namespaces,
 *	                        the user namespace first
 *	                      clone3, CLONE_PARENT -------> in the pid namespace: from here on a
 *	EXEC_SPAWNED <------- its pid                         hostile process can see it
 *	reaps it              exit
 *	EXEC_SEEN ----------------------------------------> (both use one end of the link)
 *	                                                    console, process_become(), executable
 *	limits, pid file  <-------------------------------- EXEC_READY
 *	EXEC_GO ------------------------------------------> filter, execve(2)
 *	(end of file, or the process' error) <------------'
 *
 * The joiner is in no pid namespace of the container, so nobody inside sees it.  The process has
 * the streams, the preserved descriptors and one end of the link: no file of the host to take
 * over (CVE-2016-9962, CVE-2024-21626).  Until EXEC_GO it ends when exec does.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "runtime/base/step.h"
#include "runtime/container/call/oci_log.h"
#include "runtime/container/call/oci_options.h"
#include "runtime/container/cgroup/container_cgroup.h"
#include "runtime/container/config/oci_config.h"
#include "runtime/container/process/process.h"

oci_verb exec_run;

/* --- exec_process.c: what exec is to run ------------------------------------------------------ */

/*
 * exec_process_file - reads the file of --process; without one it does nothing.
 *
 * Fails: EINVAL for a flag that --process has in itself; for --process-label, which is not
 *        supported.
 */
int exec_process_file(const struct oci_options *o, struct arena *a, struct oci_process *out,
		      struct cj_error *err);

/*
 * exec_process_merge - the container's process with the flags of the command line.
 *
 * All of *out is in the arena, so that the command line may be wiped.
 * Fails: EINVAL without a command.
 * --cap adds to the bounding, effective and permitted sets, never to the inheritable or ambient one
 * (CVE-2022-29162).
 */
int exec_process_merge(const struct oci_options *o, const struct oci_process *of_container,
		       struct arena *a, struct oci_process *out, struct cj_error *err);

/* --- exec_join.c: the two processes that enter the container ---------------------------------- */

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
