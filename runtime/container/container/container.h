/* SPDX-License-Identifier: Apache-2.0 */
/* container - the verbs that act on a container which exists, and what they share with create. */
#pragma once

#include "runtime/container/call/oci_log.h"
#include "runtime/container/cgroup/container_cgroup.h"
#include "runtime/container/config/oci_config.h"
#include "runtime/container/state/state.h"

/* Each is the verb of its name: cejail-oci(8). */
oci_verb container_state, container_list, container_kill, container_delete;

/* These act through the cgroup of a container that runs, or waits for start. */
oci_verb container_pause, container_resume, container_ps, container_update, container_events;

/* What create read: later verbs never look at the bundle, which may have changed. */
int container_config_stored(const struct state *s, struct arena *a, struct oci_config *out,
			    struct cj_error *err);

/*
 * container_delete_all - kill what runs, remove the cgroup, run the hooks poststop, remove the
 * state.  Needs the lock.  What was removed already is no error, so it can be repeated.
 */
int container_delete_all(const struct oci_options *o, struct state *s, struct arena *a,
			 struct cj_error *err);

/* "9", "KILL", "SIGKILL", "RTMIN+3"; any case.  Fails for 0 and for what is no signal. */
int container_signal_parse(const char *text, int *out, struct cj_error *err);

/*
 * container_hooks.c: programs that config.json has run at points of a container's life.
 *
 * Each gets the container's state as JSON on its standard input.  What it prints goes to the error
 * message when it fails, because the streams of create are the container's.  At its timeout it is
 * killed with its process group.
 *
 * createContainer begins in the container's root file system, so whatever it searches for in its
 * working directory is the image's, and it would execute that on the host (CVE-2025-23266): without
 * "env" it gets few variables, and no relative directory in PATH.  A hook must not name relative
 * files itself, and an "env" of config.json is passed on as it is.
 *
 * Another hook without "env" inherits the environment of the runtime.  startContainer runs inside
 * and inherits the one of the container's process.  No program of the host does: an image chooses
 * that environment, and its LD_PRELOAD would be executed with the rights of the host.
 */

struct process;

/*
 * container_hooks_run - run the hooks of one kind in order; the first that fails ends it.
 *
 * Runs in:  the runtime's namespaces.  Their working directory is the bundle.
 * Fails:    EPROTO with the hook's path, its exit status and its last line; ETIMEDOUT.
 */
int container_hooks_run(const struct oci_options *o, const struct oci_config *config,
			enum oci_hook_kind kind, const struct state *s, enum state_status status,
			struct cj_error *err);

/* The same where no failure may keep the next hook from running: each is a warning. */
void container_hooks_run_each(const struct oci_options *o, const struct oci_config *config,
			      enum oci_hook_kind kind, const struct state *s,
			      enum state_status status);

/* Where init runs hooks.  s->record.pid is init's own pid, as init sees it. */
struct hook_place {
	int dir_fd;             /* the working directory; -1: as it is */
	const char *const *env; /* of a hook without "env" */
	int (*confine)(const struct process *process, struct cj_error *err); /* NULL: nothing */
	const struct process *process;                                       /* for confine() */
};

/*
 * container_hooks_run_in - for createContainer, before pivot_root(2), and startContainer.
 *
 * confine() is the last thing that the process of a hook does before execve(2).
 */
int container_hooks_run_in(const struct oci_config *config, enum oci_hook_kind kind,
			   const struct state *s, enum state_status status,
			   const struct hook_place *place, struct cj_error *err);

/*
 * container_hooks_wait_ms - how long to wait for a step of an init that runs hooks of `kind`: 30 s,
 * and the timeouts of these hooks.  0, no limit: one of them has no timeout.
 */
unsigned container_hooks_wait_ms(const struct oci_config *config, enum oci_hook_kind kind);
