/* SPDX-License-Identifier: Apache-2.0 */
/*
 * state - what is kept of a container between two commands: ROOT/ID, a directory of mode 0700.
 *
 *	record.json   struct state_record; replaced by rename(2), so a reader sees one or the other
 *	config.json   the configuration as create read it
 *	start         a socket on which init waits for start
 *	waiting       locked by init until its execve(2)
 *	notify        a socket for sd_notify(3) of the program: notify_relay.h
 *	result        locked by the process that writes the container's result: oci_result.h
 *
 * The flock(2) on the directory belongs to the command that changes the container.  state, list and
 * kill read without it, because a hook of create or start may call them.
 */
#pragma once

#include "runtime/base/arena.h"
#include "runtime/base/error.h"
#include "runtime/base/json/json.h"
#include "runtime/container/call/oci_options.h"
#include "runtime/container/cgroup/container_cgroup.h"
#include "runtime/container/config/oci_value.h"
#include "runtime/container/rdt/rdt.h"

#define STATE_ID_MAX 255 /* NAME_MAX */

struct state_record {
	const char *id, *bundle, *rootfs;
	pid_t pid;           /* of init, in our pid namespace; 0: not yet */
	uint64_t pid_start;  /* clock ticks since boot; with the pid it names one process */
	bool is_created;     /* create has ended well */
	uint64_t created_ms; /* since the epoch */
	uint64_t owner_uid;

	struct container_cgroup_record cgroup;
	struct rdt_record rdt;
};

struct state {
	int root_fd, dir_fd; /* -1: none; a locked dir_fd has the lock */
	const char *id;      /* borrowed */
	struct state_record record;
	bool is_lost; /* the record is missing or unreadable: state_open_any() */
};
#define STATE_NULL ((struct state){ .root_fd = -1, .dir_fd = -1 })
void state_close(struct state *s);
#define auto_state __attribute__((cleanup(state_close)))

/*
 * Is the caller root, and no ordinary user?  The root of a user namespace, as podman makes one for
 * an ordinary user, is that user if XDG_RUNTIME_DIR is set and not empty.
 */
bool state_is_root(void);

/* Lets other commands change the container; the record stays readable. */
void state_unlock(const struct state *s);

/*
 * state_lock_alone - take the lock again, by a descriptor of this process only.
 *
 * A process that was forked between the two calls has the old descriptor.  So it never holds the
 * lock, even if it is stopped for ever: flock(2).  If another command has removed the container
 * meanwhile, or keeps the lock, *s has no dir_fd afterwards.
 * Fails: ENOENT, EBUSY: state_open().
 */
int state_lock_alone(struct state *s, struct cj_error *err);

/* [A-Za-z0-9_+.-], without a leading dot, at most STATE_ID_MAX bytes. */
int state_check_id(const char *id, struct cj_error *err);

/*
 * state_open - the container of o->id, with its record.
 *
 * `is_locked`: take the lock first, and wait for another command that has it (10 s at most).
 * The record's texts live in `a`.
 * Fails: ENOENT "container 'ID' does not exist"; EINVAL: a record that can't be read.
 */
int state_open(const struct oci_options *o, bool is_locked, struct arena *a, struct state *out,
	       struct cj_error *err);

/* The same, locked, for delete --force: a record that can't be read is is_lost. */
int state_open_any(const struct oci_options *o, struct arena *a, struct state *out,
		   struct cj_error *err);

/* Makes the directory for o->id, locked.  EEXIST: "container with id 'ID' exists already". */
int state_create(const struct oci_options *o, struct state *out, struct cj_error *err);

/* Writes s->record.  Needs the lock. */
int state_write(const struct state *s, struct cj_error *err);

/* Removes the directory and what is in it.  Needs the lock.  A second call does nothing. */
int state_remove(struct state *s, struct cj_error *err);

/* A file of the state directory, whole: config.json. */
int state_put_file(const struct state *s, const char *name, const char *text, size_t size,
		   struct cj_error *err);
int state_get_file(const struct state *s, const char *name, struct arena *a, char **out_text,
		   size_t *out_size, struct cj_error *err);
#define STATE_CONFIG  "config.json"
#define STATE_SOCKET  "start"
#define STATE_WAITING "waiting"
#define STATE_RESULT  "result"
#define STATE_NOTIFY  "notify"

/*
 * state_await_result - until no process has the lock of the file of the result.
 *
 * No such file is success.  Fails: EBUSY after 10 s.
 */
int state_await_result(const struct state *s, struct cj_error *err);

/*
 * state_open_init - a pidfd of the container's first process, checked against its start time.
 *
 * Fails: ESRCH "container not running": it has ended, or its pid is another process now.
 */
int state_open_init(const struct state *s, struct cj_error *err);

/* SIGKILL for the first process, if it has not ended. */
void state_kill_init(const struct state *s);

/* ESRCH "container not running", with the id: what state_open_init() says. */
int state_reject_stopped(const struct state *s, struct cj_error *err);

/* Every id below o->root, sorted: names only, a half-made one, too. */
int state_list(const struct oci_options *o, struct arena *a, struct strings *out,
	       struct cj_error *err);

/* --- how a container is, found out each time -------------------------------------------------- */

enum state_status {
	STATE_CREATING,
	STATE_CREATED,
	STATE_RUNNING,
	STATE_PAUSED,
	STATE_STOPPED,
	STATE_STATUS_COUNT
};
/* As state and list print it: "creating", "paused". */
const char *state_status_name(enum state_status status);

enum state_status state_status_of(const struct state *s);

/*
 * state_status_write - the state as the specification has it, an object: of `state`, of an item of
 * list, and of the standard input of a hook.
 *
 * `with_owner`: list's objects have the owner's name, too.
 */
void state_status_write(struct json_writer *w, const struct state *s, enum state_status status,
			const struct oci_pairs *annotations, bool with_owner);

/* --- the sockets: start, on which init listens, and notify, for datagrams of the program ------ */

/* Each returns the descriptor of a SOCK_SEQPACKET, O_CLOEXEC. */
int state_socket_listen(const struct state *s, struct cj_error *err);
int state_socket_connect(const struct state *s, struct cj_error *err);

/* A datagram socket, O_CLOEXEC.  Every user of the container may send to it.  On the host the mode
 * of the state directory keeps others away. */
int state_socket_notify(const struct state *s, struct cj_error *err);
