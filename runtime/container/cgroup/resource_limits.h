/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resource_limits - linux.resources of a config.json as writes to files of cgroup v2: planned
 * without a system call, then carried out.
 *
 * Units of cgroup v1 are converted as other runtimes do: shares to a weight, swap without memory,
 * a block weight of 10..1000 to one of 1..10000.
 */
#pragma once

#include "runtime/base/arena.h"
#include "runtime/base/error.h"
#include "runtime/container/config/oci_resources.h"

struct resource_write {
	const char *field;      /* as config.json calls it: "memory.limit" */
	const char *controller; /* "memory" */
	const char *file;       /* "memory.max" */
	const char *value;
	/* Where `file` does not exist; NULL: nothing else serves. */
	const char *other_file, *other_value;
	/* The file may be missing: the value is "no limit", or another file sets the limit, too. */
	bool is_optional;
};

struct resource_writes {
	const struct resource_write *items; /* in the order in which they are written */
	size_t count;
};

/* What the cgroup has now, for a field whose file has two values.  NULL: a new cgroup. */
struct resource_current {
	const char *memory_max, *cpu_max; /* the files' texts; NULL: not there */
};

/*
 * resource_writes_plan - the writes for every field that is set.  All texts are in the arena.
 *
 * Fails: EINVAL, naming the field, for what cgroup v2 does not have and for values that
 *        contradict each other.
 */
int resource_writes_plan(const struct oci_resources *resources,
			 const struct resource_current *current, struct arena *a,
			 struct resource_writes *out, struct cj_error *err);

/* cpu.weight for cpu.shares: 2..262144 to 1..10000, linear. */
uint64_t resource_cpu_weight(uint64_t shares);
/* io.weight for blockIO.weight: 10..1000 to 1..10000, linear. */
uint64_t resource_io_weight(uint64_t weight);

/* --- in a cgroup --------------------------------------------------------------------------- */

/*
 * resource_enable - enable in this cgroup, for its children, the controllers that the writes need,
 * and of those that it has cpuset, cpu, io, memory and pids, for counters and updates.
 *
 * One that the writes need and that can't be enabled is an error with the limit and the remedy;
 * EBUSY: the cgroup contains processes itself.
 * `path` is for messages.
 */
int resource_enable(int dir_fd, const char *path, const struct resource_writes *writes,
		    struct cj_error *err);

/*
 * resource_apply - the writes, in their order, into the cgroup.
 * Fails: names the field, the value, the file and the remedy.
 */
int resource_apply(int dir_fd, const struct resource_writes *writes, struct cj_error *err);

/* The first write that a cgroup without this controller (NULL: without any) can't take; NULL: all
 * are optional. */
const struct resource_write *resource_first_limit(const struct resource_writes *writes,
						  const char *controller);

/* The remedy for a limit without its controller. */
int resource_hint(const char *controller, struct cj_error *err);

/* memory.limit is below what the cgroup uses now, and memory.checkBeforeUpdate asks to look. */
int resource_check_usage(int dir_fd, const struct oci_resources *resources, struct cj_error *err);
