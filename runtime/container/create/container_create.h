/* SPDX-License-Identifier: Apache-2.0 */
/*
 * container_create - the verbs create, start and run.
 *
 * Theory of operation.  No process of ours stays outside, but for what the caller asks for: a
 * result (oci_result.h), or to be notified (notify_relay.h).  None stays inside but the
 * container's own pid 1, which becomes the program by execve(2):
 *
 *	create                                   init (forked, never executed)
 *	------                                   -----------------------------
 *	configuration, plan, seccomp program
 *	state directory, lock
 *	record: the cgroup's path
 *	cgroup
 *	clone3, into the cgroup ---------------> new namespaces, or joined ones (by path:
 *	record: pid and start time                 container_spawn())
 *	id maps
 *	CREATION_IDS_MAPPED -------------------> cgroup namespace, time namespace
 *	hooks prestart, createRuntime <--------- CREATION_NAMESPACES
 *	CREATION_HOOKS_DONE -------------------> sources, root of its user namespace, host name,
 *	                                           tree, hooks createContainer, console, masks,
 *	                                           sysctls, pivot, user, privileges, executable
 *	limits, pid file, record: created <----- CREATION_BUILT
 *	CREATION_CREATED ----------------------> accept(2) on the start socket
 *	exit                                       |
 *	                                           |
 *	start: connects, CREATION_START -------> CREATION_STARTING, hooks startContainer,
 *	(end of file, or init's error) <--------'  seccomp, execve
 *
 * Init is not dumpable until execve(2), with one exception: before the id map it is, in a new user
 * namespace of an ordinary user.  No process has a right there yet.  Until CREATION_CREATED init
 * ends when create does.  A failure of create removes all that create has made; what a kill
 * leaves, `delete --force` removes by the record, which names each thing before it exists.
 *
 * The file "waiting" of the state directory is locked by init, with a descriptor that execve(2)
 * closes.  So who can't get the lock sees a created container, and no kill at any moment makes the
 * record wrong about it.
 */
#pragma once

#include "runtime/container/call/oci_log.h"

/* Each is the verb of its name: cejail-oci(8). */
oci_verb container_create, container_start, container_run;
