/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record - a small file about a running jail.  Other processes list it, cancel it, and remove what
 * a killed supervisor left.
 *
 * "<runtime dir>/runs/ID.json", 0600 in a 0700 directory: /run/cejail for root (one place for all
 * of root's jails: they share ids), $XDG_RUNTIME_DIR/cejail, or /run/user/UID/cejail, or
 * /dev/shm/cejail-UID; never /tmp.  The UID of a user namespace's root is that in the namespace
 * above.  The supervisor keeps an flock(2) on it.  A process that gets
 * the lock knows that the supervisor is dead, even if its pid is used again.
 *
 * The record is written before the cgroup that it names is created, and removed after it.  So a
 * kill at any moment leaves no cgroup without a record.
 */
#pragma once

#include "rootfs/guard.h"
#include "runtime/base/arena.h"
#include "runtime/base/error.h"

struct record {
	const char *id, *profile, *cgroup_path; /* cgroup_path may be "" */
	const char *private_dir;                /* of private_dir.h; NULL: there is none */
	uint64_t started_ms;                    /* since the epoch */
	bool is_ready;                          /* built ahead, and has no program yet */
	/* 0 until record_complete */
	pid_t supervisor_pid, init_pid;
	uint64_t supervisor_start; /* clock ticks since boot; with the pid it names one process */
	uint64_t cgroup_inode;     /* a later cgroup of the same path has another */
};

/* The directory, made if missing, checked to be ours and private.  Returns a descriptor. */
int record_open_dir(struct cj_error *err);

/*
 * Guards that directory from programs, and the others that this user's next run may take: another
 * environment or the end of a session leads to another place.
 */
int record_guard(struct arena *a, struct guard *out, struct cj_error *err);

#define RECORD_SOCKET       "api.sock" /* a service's, in that directory */
#define RECORD_SEARCHED_MAX 1024

struct record_sockets {
	const char *of_user;   /* in the arena; NULL: there is none in a directory of this user */
	const char *of_system; /* of the system's service; NULL: there is none */
	/* The directories where it looked, with the reason where it skipped one. */
	char searched[RECORD_SEARCHED_MAX];
};

/*
 * record_find_sockets - the sockets of services that this user may run at.  Makes no directory, and
 * skips one that is not ours and private.  root looks nowhere else if it has /run/cejail.
 */
int record_find_sockets(struct arena *a, struct record_sockets *out, struct cj_error *err);

/*
 * Writes and locks; returns the descriptor that is the lock.  EEXIST: the id is in use.  A file
 * that can't be locked is left to the next sweep.
 */
int record_create(int dir_fd, const struct record *r, struct cj_error *err);
/*
 * Writes the record again, with init's pid and the cgroup's inode number.  Also when is_ready
 * changes.  Called by the supervisor, whose pid and start it adds to *r.
 */
int record_complete(int lock_fd, struct record *r, struct cj_error *err);
/* Removes the file, then releases the lock. */
void record_remove(int dir_fd, const char *id, int *lock_fd);

struct record_entry {
	struct record record;
	bool is_alive; /* its supervisor holds the lock */
};
int record_list(int dir_fd, struct arena *a, struct record_entry **out, size_t *out_count,
		struct cj_error *err);

/*
 * SIGTERM to the supervisor of `id`, by pidfd: only while the record is locked, and only to the
 * process that wrote it.  ENOENT: no such run.
 */
int record_cancel(int dir_fd, const char *id, struct cj_error *err);

/* Removes what dead supervisors left: the cgroup and its processes, then the record.  Returns how
 * many. */
int record_sweep(int dir_fd, struct cj_error *err);

/*
 * The same for at most 64 records, so that a run costs no more beside thousands of others.  A call
 * that removed nothing lets the next one begin behind its records; at the end it begins again.
 * `own`: a record that is known to be alive, and is not looked at.
 */
int record_sweep_batch(int dir_fd, const char *own, struct cj_error *err);
