/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci_result - the process that writes the result of a container: io.cejail.result.
 *
 * This process stays beside the container, because the annotation asks for it: at the end of the
 * container the kernel removes what the result is read from.  The process is a child of create, in
 * create's cgroup, without streams, and ends with the container.
 *
 *	create                          result process
 *	------                          --------------
 *	oci_result_start: fork -----> closes all but its descriptors, gives up its capabilities
 *	...the container is created
 *	oci_result_go --------------> waits for the end of init, and receives denials meanwhile
 *	exit                            (without "go": ends, and writes nothing)
 *	                                exit status, cgroup files, denials: the file
 *	delete: waits for the lock <--- exit
 *
 * Exit status: only a parent can wait for a process.  Linux 6.15 tells others by PIDFD_GET_INFO.
 * Before, it is in /proc/PID/stat until the parent has waited; whoever is too late reports null.
 */
#pragma once

#include "netns/firewall/denials.h"
#include "runtime/base/json/json.h"
#include "runtime/container/annotation/annotations.h"

/*
 * Where the annotation may write.
 *
 * The annotation's author need not be the caller: a pod's author gives it to containerd, which runs
 * as root.  So root writes only below one directory, --result-dir.  For an ordinary user without
 * that option the author is the caller, and the user's own rights are the limit.
 *
 * In every case a file is replaced only if it is an earlier result.
 */

#define RESULT_DIR_DEFAULT "/var/lib/cejail-oci/results" /* root's */
#define OCI_RESULT_SCHEMA  "cejail.oci-result/1"
#define OCI_RESULT_BEGIN   "{\"schema\":\"" OCI_RESULT_SCHEMA "\""

struct oci_result_place {
	int dir_fd; /* -1: none */
	const char *name;
};
#define OCI_RESULT_PLACE_NULL ((struct oci_result_place){ .dir_fd = -1 })
void oci_result_close(struct oci_result_place *f);

/*
 * oci_result_find - opens the directory of the file, and checks that the file can be made there.
 *
 * `wanted`: the annotation.  With a slash at its end the file is wanted/ID.json.
 * `result_dir`: --result-dir, NULL: not given.
 * Fails: EPERM outside of the directory; ENOENT; EEXIST for a file that is not a result.
 */
int oci_result_find(const char *wanted, const char *result_dir, const char *id, struct arena *a,
		    struct oci_result_place *out, struct cj_error *err);

/* --- the process ------------------------------------------------------------------------------ */

struct oci_result_watch {
	const char *id;
	uint64_t created_ms;
	pid_t pid;     /* of the container's init */
	int pidfd;     /* these are borrowed */
	int cgroup_fd; /* -1: none */
	int lock_fd;   /* STATE_RESULT, locked */
	const struct oci_result_place *file;
	const struct annotations_network *network; /* table "": no rules */
};

/* Starts the process.  *out_go_fd is for oci_result_go(). */
int oci_result_start(const struct oci_result_watch *watch, int *out_go_fd, struct cj_error *err);

/* The container is created: its result will be written. */
int oci_result_go(int go_fd, struct cj_error *err);

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
void oci_result_text(struct json_writer *w, const struct result_facts *f);
