/* SPDX-License-Identifier: Apache-2.0 */
/* process_parts - what a struct process consists of, for the files of this room. */
#pragma once

#include <limits.h>
#include <linux/filter.h>
#include <stdint.h>
#include <sys/types.h>

#include "runtime/container/process/process.h"
#include "runtime/container/process/process_caps.h"
#include "runtime/container/process/seccomp_agent.h"

#define PROCESS_HOME "HOME="

struct process {
	const struct oci_process *wanted; /* borrowed */
	struct process_context context;
	struct capabilities caps;
	uint64_t kept_caps; /* permitted until execve(2), for seccomp(2) */

	bool no_new_privileges;
	struct sock_fprog tight_filter; /* of the profile, besides the other; len 0: none */
	struct sock_fprog filter;       /* len 0: none */
	uint32_t filter_flags;
	struct seccomp_agent agent;
	const char *listener_metadata; /* NULL: none */
	const char *oci_version;

	const struct oci_memory_policy *memory_policy; /* borrowed */
	bool has_personality;
	unsigned long personality;

	struct {
		dev_t device;
		ino_t inode;
	} own_program; /* which no container executes */

	const char *const *argv, *const *env;
	char home[sizeof(PROCESS_HOME) + PATH_MAX]; /* a variable in env; "": env has its own */
	char executable[PATH_MAX];
	struct strings warnings;
};
