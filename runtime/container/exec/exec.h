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

#include "runtime/container/call/oci_log.h"

oci_verb exec_run;
