/* SPDX-License-Identifier: Apache-2.0 */
/*
 * process_caps - the five capability sets of a process: from the names in config.json to the
 * kernel.
 *
 * A set that config.json does not name is empty.  So nothing is inheritable or ambient unless the
 * engine asks for it (CVE-2022-29162, CVE-2022-27650).  capabilities(7)
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/arena.h"
#include "runtime/base/error.h"
#include "runtime/container/config/oci_process.h"

/* A bit for each capability: 1 << CAP_KILL. */
struct process_caps {
	uint64_t bounding, effective, inheritable, permitted, ambient;
};

/* The bit of "CAP_KILL"; 0: no such capability is known.  Pure. */
uint64_t process_caps_bit(const char *name);

/*
 * process_caps_resolve - names to sets.  Pure.
 *
 * A capability that is unknown, or not in `available`, or whose set needs another set that lacks
 * it, is left out, with a warning: the specification wants no error.  -ENOMEM.
 */
int process_caps_resolve(const struct oci_capabilities *wanted, uint64_t available, struct arena *a,
			 struct process_caps *out, struct strings *warnings);

/* The capabilities that this kernel has, or that this process may have: its bounding and permitted
 * sets. */
int process_caps_of_kernel(uint64_t *out, struct cj_error *err);
int process_caps_of_self(uint64_t *out, struct cj_error *err);

/* Is CAP_SETGID, for example, effective now?  Where the kernel gives no answer: false. */
bool process_caps_is_effective(unsigned cap);

/* Removes all others from the bounding set: needs CAP_SETPCAP, so before the user changes. */
int process_caps_bound(const struct process_caps *caps, struct cj_error *err);

/*
 * process_caps_apply - the other four sets, read back and compared.
 *
 * `kept` stays permitted until execve(2), which computes the permitted set without looking at it.
 */
int process_caps_apply(const struct process_caps *caps, uint64_t kept, struct cj_error *err);

/* For a process of ours that stays beside the container: no_new_privs, and no capability but those
 * in `kept` that it has. */
int process_caps_give_up(uint64_t kept, struct cj_error *err);

/* Makes `more`, which is permitted, effective besides the process' own. */
int process_caps_raise(const struct process_caps *caps, uint64_t more, struct cj_error *err);
