/* SPDX-License-Identifier: Apache-2.0 */
/* capabilities - the five capability sets of this process: capabilities(7). */
#pragma once

#include "runtime/base/error.h"

/* A bit for each capability: 1 << CAP_KILL. */
struct capabilities {
	uint64_t bounding, effective, inheritable, permitted, ambient;
};

/* The bit of "cap_kill", in any case, or of a number; 0: no such capability is known. */
uint64_t capabilities_bit(const char *name);

/* The capabilities that this kernel has, or that this process may have: its bounding and permitted
 * sets. */
int capabilities_of_kernel(uint64_t *out, struct cj_error *err);
int capabilities_of_self(uint64_t *out, struct cj_error *err);

/* Is CAP_SETGID, for example, effective now?  Where the kernel gives no answer: false. */
bool capabilities_is_effective(unsigned cap);

/*
 * Removes all others from the bounding set, which is read back.  Needs CAP_SETPCAP, so before the
 * user changes.  proc_fd: as of self_status_masks().
 */
int capabilities_bound(uint64_t bounding, int proc_fd, struct cj_error *err);

/*
 * capabilities_apply - the other four sets, read back and compared.
 *
 * `kept` stays permitted until execve(2), which computes the permitted set without looking at it.
 */
int capabilities_apply(const struct capabilities *caps, uint64_t kept, struct cj_error *err);

/* Empties all five sets, which are read back at once.  Needs CAP_SETPCAP.  proc_fd: as of
 * self_status_masks(). */
int capabilities_drop_all(int proc_fd, struct cj_error *err);

/* Makes `more`, which is permitted, effective besides the process' own. */
int capabilities_raise(const struct capabilities *caps, uint64_t more, struct cj_error *err);
