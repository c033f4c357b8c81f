/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exec - the verb exec: one more process in a running container.
 *
 * Theory of operation.  Three processes, all of the sealed copy (own_copy.c), none dumpable:
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

#include "runtime/container/call/oci_log.h"
#include "runtime/container/config/oci_config.h"

oci_verb exec_run;

/* --- exec_process.c: what exec is to run ------------------------------------------------------ */

/*
 * exec_process_file - reads the file of --process; without one it does nothing.
 *
 * Fails: EINVAL for a flag that --process has in itself.
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
