/* SPDX-License-Identifier: Apache-2.0 */
/*
 * result_watch - the process that writes the result of a container: io.cejail.result.
 *
 * This process stays beside the container, because the annotation asks for it: at the end of the
 * container the kernel removes what the result is read from.  The process is a child of create, in
 * create's cgroup, without streams, and ends with the container.
 *
 *	create                          result process
 *	------                          --------------
 *	result_watch_start: fork -----> closes all but its descriptors, gives up its capabilities
 *	...the container is created
 *	result_watch_go --------------> waits for the end of init, and receives denials meanwhile
 *	exit                            (without "go": ends, and writes nothing)
 *	                                exit status, cgroup files, denials: the file
 *	delete: waits for the lock <--- exit
 *
 * Exit status: only a parent can wait for a process.  Linux 6.15 tells others by PIDFD_GET_INFO.
 * Before, it is in /proc/PID/stat until the parent has waited; whoever is too late reports null.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "netns/firewall/denials.h"
#include "runtime/base/json/json.h"
#include "runtime/container/annotation/network_rules.h"
#include "runtime/container/annotation/result_place.h"
#include "runtime/container/config/oci_value.h"

struct result_watch {
	const char *id;
	uint64_t created_ms;
	pid_t pid;     /* of the container's init */
	int pidfd;     /* these are borrowed */
	int cgroup_fd; /* -1: none */
	int lock_fd;   /* STATE_RESULT, locked */
	const struct result_place *file;
	const struct network_handle *network; /* table "": no rules */
};

/* Starts the process.  *out_go_fd is for result_watch_go(). */
int result_watch_start(const struct result_watch *watch, int *out_go_fd, struct cj_error *err);

/* The container is created: its result will be written. */
int result_watch_go(int go_fd, struct cj_error *err);

/* --- the result as JSON ----------------------------------------------------------------------- */

/* A number that is not set is not known: null in the result. */
struct result_facts {
	const char *id;
	uint64_t created_ms, ended_ms; /* since the epoch */
	bool has_wait_status;
	int wait_status; /* of the container's first process, as waitpid(2) has it */

	struct oci_u64 memory_max, memory_peak, oom_kills;
	struct oci_u64 pids_max, pids_peak, pids_refused;
	struct oci_u64 cpu_us;

	const struct denials *denials; /* NULL: no rules of ours */
};

/* The object, beginning with OCI_RESULT_BEGIN. */
void result_watch_text(struct json_writer *w, const struct result_facts *f);
