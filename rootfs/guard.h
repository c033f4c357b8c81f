/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guard - directories of the host that no program may change, because cejail trusts their files.
 *
 * They are compared by device and inode number, so a bind mount shows them under no other name.
 * A directory above a guarded one leads to it, and in a directory of its own a program could make
 * one that is missing.  So both are refused.
 */
#pragma once

#include "runtime/base/arena.h"
#include "runtime/base/error.h"

struct guarded {
	const char *path; /* of cejail's own directory, for messages */
	uint64_t inode;
	uint32_t device_major, device_minor;
	bool is_own; /* cejail's own directory, or a part of it; false: one above it */
};

struct guard {
	struct guarded *items;
	size_t count;
};

/*
 * guard_add - guard the directory `fd` and all above it.
 *
 * `own`: how many of them, upwards from fd, are cejail's own; what is below them is guarded, too.
 * `path` is the own directory in messages; it must live as long as the guard.
 */
int guard_add(struct guard *g, int fd, size_t own, const char *path, struct arena *a,
	      struct cj_error *err);

/* Refuses the directory, or the regular file of the absolute `path`, that is open as fd, if a
 * program that may write there could change a guarded directory. */
int guard_check(const struct guard *g, int fd, const char *path, struct cj_error *err);
/* The same for what is mounted below the directory `fd`: a bind shows it, too. */
int guard_check_mounts(const struct guard *g, int fd, struct cj_error *err);
