/* SPDX-License-Identifier: Apache-2.0 */
/*
 * container_cgroup - the cgroup v2 directory of a container: found by cgroupsPath, made with its
 * limits, frozen, killed, read and removed.
 *
 * Managers:
 *
 *	cgroupfs   "/a/b" is below the root of the hierarchy; "a/b" is below the delegated cgroup
 *	           that this process is in, else below the root.  Without a path: "cejail-oci.ID".
 *	           An ordinary user without either gets a scope of the user's manager.
 *	systemd    "slice:prefix:name" is the scope "prefix-name.scope" of the system's manager, or
 *	           of the user's manager for an ordinary user.  The container is in its child
 *	           "container", which systemd never writes to.
 *	disabled   the container stays in the caller's cgroup, without limits.
 *
 * Only cgroup v2 is used, also on a host that mounts both versions.  A limit whose controller is
 * not there is an error with the remedy.  A container without limits needs no controller.
 */
#pragma once

#include "runtime/base/arena.h"
#include "runtime/base/error.h"
#include "runtime/base/json/json.h"
#include "runtime/kernel/cgroup/cgroup_text.h"

struct oci_resources;

#define CGROUP_UNIT_MAX 256 /* systemd.unit(5), with a NUL */

#define CONTAINER_SCOPE_CHILD "container" /* of a systemd scope: the container's cgroup */

enum cgroup_manager {
	CGROUP_MANAGER_CGROUPFS,
	CGROUP_MANAGER_SYSTEMD,
	CGROUP_MANAGER_DISABLED,
};

/* What the state record keeps of a cgroup. */
struct container_cgroup_record {
	char path[CGROUP_PATH_MAX]; /* absolute, as mounted here; "": the container has none */
	uint64_t inode;             /* of that directory; no later one has the same number */
	char unit[CGROUP_UNIT_MAX]; /* the systemd scope; "": none */
};

struct container_cgroup {
	int dir_fd; /* for CLONE_INTO_CGROUP; O_CLOEXEC; -1: none, or not made yet */
	enum cgroup_manager manager;
	struct container_cgroup_record record;
	char slice[CGROUP_UNIT_MAX]; /* of the scope to start; "": systemd's default */
	bool is_below_own;           /* below a cgroup that is delegated to us */
	char why_none[256]; /* the container runs without a cgroup, though none was disabled */
};
#define CONTAINER_CGROUP_NULL ((struct container_cgroup){ .dir_fd = -1 })

/* Closes the descriptor.  The cgroup stays. */
void container_cgroup_close(struct container_cgroup *c);
#define auto_container_cgroup __attribute__((cleanup(container_cgroup_close)))

struct container_cgroup_wanted {
	enum cgroup_manager manager;
	const char *id;   /* of the container */
	const char *path; /* linux.cgroupsPath; NULL or "": the default */
	const struct oci_resources *resources;
};

/*
 * container_cgroup_find - where the container's cgroup will be.  Changes nothing.
 *
 * Afterwards record.path (cgroupfs) or record.unit (systemd) is known, for a record that is written
 * before the cgroup exists.
 * Fails: EINVAL for a path with "..", or one that the manager does not take; ENOENT when limits
 *        are asked for and no cgroup v2 is mounted, or systemd does not run.
 */
int container_cgroup_find(const struct container_cgroup_wanted *wanted,
			  struct container_cgroup *out, struct cj_error *err);

/*
 * container_cgroup_make - make the cgroup, enable the controllers that the limits need, write the
 * limits and attach the device program.
 *
 * With the manager systemd this process itself moves to the scope's child "runtime", so that it
 * may clone into the scope.  It must end when the container is created, or the scope never does.
 * An ordinary user whom the hierarchy refuses gets none, if no limit is asked for: why_none.  So it
 * is when a user manager that the caller did not name gives no scope.
 *
 * Must not: leave anything if it fails.
 * Fails: EBUSY when the cgroup contains processes; else with the limit and the remedy.
 */
int container_cgroup_make(const struct container_cgroup_wanted *wanted, struct container_cgroup *c,
			  struct cj_error *err);

/*
 * container_cgroup_open - the cgroup that a record names.
 *
 * Succeeds with dir_fd -1 when there is none any more: the path is gone, or the inode number is
 * another's.  A path that is not in a cgroup v2 hierarchy is an error.
 */
int container_cgroup_open(const struct container_cgroup_record *record,
			  struct container_cgroup *out, struct cj_error *err);

/* ENOENT without a cgroup: "the container has no cgroup, which 'WHAT' needs". */
int container_cgroup_need(const struct container_cgroup *c, const char *what, struct cj_error *err);

/*
 * container_cgroup_join - move this process into the container's cgroup, for exec.
 *
 * Where the container has enabled controllers for children of its own, its cgroup takes no process
 * any more: then the process goes where `init_pid` is, below the container's cgroup.
 * Without a cgroup it does nothing.  Follows: cgroups(7).
 */
int container_cgroup_join(const struct container_cgroup *c, pid_t init_pid, struct cj_error *err);

/*
 * container_cgroup_join_below - move this process into an existing cgroup below the container's;
 * "/" is the container's own.
 *
 * The container may have made it and may exchange it: it is opened beneath the container's.
 */
int container_cgroup_join_below(const struct container_cgroup *c, const char *path,
				struct cj_error *err);

/* Changes the limits that are set in *resources, and only those. */
int container_cgroup_update(const struct container_cgroup *c, const struct oci_resources *resources,
			    struct cj_error *err);

/*
 * Stops all processes, or lets them go on; returns when that is done.
 * Fails: ENOENT without a cgroup; ETIMEDOUT when a process does not stop (it goes on then).
 */
int container_cgroup_freeze(const struct container_cgroup *c, bool frozen, struct cj_error *err);
/* Without a cgroup: false. */
bool container_cgroup_is_frozen(const struct container_cgroup *c);

/*
 * container_cgroup_kill - send `signal` to every process in the cgroup and below it.
 *
 * SIGKILL by cgroup.kill, which no fork escapes.  Others through pidfds, once to each process.
 * Fails: ENOENT without a cgroup.
 */
int container_cgroup_kill(const struct container_cgroup *c, int signal, struct cj_error *err);

/* Is a process in the cgroup or below it?  Without a cgroup: false. */
bool container_cgroup_is_populated(const struct container_cgroup *c);

/*
 * container_cgroup_pids - the processes in the cgroup and below it, as this process' pid namespace
 * names them, in an array in the arena.
 *
 * Fails: ENOENT without a cgroup.
 */
int container_cgroup_pids(const struct container_cgroup *c, struct arena *a, pid_t **out,
			  size_t *out_count, struct cj_error *err);

/*
 * container_cgroup_stats_write - the counters as an object, as `events --stats` has them in "data".
 * A counter whose controller is not there is left out.
 */
void container_cgroup_stats_write(const struct container_cgroup *c, struct json_writer *w);

/*
 * container_cgroup_remove - kill what is left, remove the cgroup with all below it, end the scope.
 *
 * No cgroup is success, so that a second delete succeeds.  Takes at most a few seconds.
 */
int container_cgroup_remove(const struct container_cgroup *c, struct cj_error *err);

/* --- cgroup_path.c: linux.cgroupsPath as text, without a system call ------------------------- */

/*
 * cgroup_path_clean - the path without empty components and "."; absolute stays absolute.
 *
 * Fails: EINVAL for "..", for the root itself, for "slice:prefix:name", and for a path that is too
 *        long.
 */
int cgroup_path_clean(const char *path, char out[static CGROUP_PATH_MAX], struct cj_error *err);

struct cgroup_scope_name {
	char slice[CGROUP_UNIT_MAX]; /* "machine.slice"; "": systemd's default */
	char unit[CGROUP_UNIT_MAX];  /* "PREFIX-NAME.scope" */
};

/*
 * cgroup_path_scope - the scope that "slice:prefix:name" names.  Slice and prefix may be empty.
 * Without a path (NULL or ""): "cejail-oci-ID.scope" in the default slice.
 *
 * Fails: EINVAL for another form, and for names that systemd.unit(5) does not allow.
 */
int cgroup_path_scope(const char *path, const char *id, struct cgroup_scope_name *out,
		      struct cj_error *err);
