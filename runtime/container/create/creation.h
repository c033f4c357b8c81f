/* SPDX-License-Identifier: Apache-2.0 */
/* creation - what create and run hold of a container while they make it, and the steps of init. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "rootfs/tree/tree.h"
#include "runtime/base/step.h"
#include "runtime/container/annotation/annotations.h"
#include "runtime/container/annotation/network_rules.h"
#include "runtime/container/annotation/result_place.h"
#include "runtime/container/cgroup/container_cgroup.h"
#include "runtime/container/container/container_config.h"
#include "runtime/container/create/listen_fds.h"
#include "runtime/container/create/net_devices.h"
#include "runtime/container/notify/notify_relay.h"
#include "runtime/container/oci_call.h"
#include "runtime/container/plan/oci_tree.h"
#include "runtime/container/process/process.h"
#include "runtime/container/state/state.h"
#include "runtime/kernel/process/spawn.h"

/* Between create and init, in this order: container.h draws them. */
enum creation_step {
	CREATION_IDS_MAPPED,
	CREATION_NAMESPACES,
	CREATION_HOOKS_DONE,
	CREATION_RULES, /* with io.cejail.network: init's sockets, and the name of the table */
	CREATION_BUILT,
	CREATION_CREATED,
	/* over start's own connection; the end of file after the second one is execve(2) */
	CREATION_START,
	CREATION_STARTING,
	CREATION_STEP_COUNT
};
extern const char *const creation_step_names[CREATION_STEP_COUNT];

struct creation {
	const struct oci_options *options;
	struct arena *arena;

	struct container_bundle bundle;
	struct oci_tree tree;
	struct sysctl_host host_spaces;
	struct process *process; /* NULL: config.json has no process */
	struct strings hook_env; /* some of the caller's, for createContainer */
	struct listen_fds listen;
	struct notify_relay notify;
	unsigned preserved_fds; /* by --preserve-fds and LISTEN_FDS */
	struct container_cgroup_wanted wanted_cgroup;

	struct state state;
	struct container_cgroup cgroup;
	struct tree_sources *sources;
	int start_fd;   /* the socket on which init will wait for start; listening */
	int waiting_fd; /* locked */
	int console_fd; /* connected to the engine; -1: no terminal */

	struct annotations annotations;
	struct firewall_container_spec rules;
	struct network_handle network; /* in init until CREATION_RULES, then in create */
	struct result_place result;
	int result_lock_fd, result_go_fd; /* -1: no result is asked for */

	struct net_devices net_devices; /* moved ones; a failure returns them */

	bool moves_init;       /* into its cgroup: spawn_kills() */
	int init_sock_fd;      /* init's end of the link */
	struct step_link link; /* in create: to init; in init: to create */
	pid_t init_pid;        /* 0: none */
	int init_pidfd;
	bool has_run_hooks; /* of the runtime: then a failure runs poststop */
	bool has_pid_file;
};

static inline struct spawn_place creation_place(const struct creation *c)
{
	return (struct spawn_place){ .cgroup_fd = c->cgroup.dir_fd,
				     .path = c->cgroup.record.path,
				     .moves = c->moves_init };
}

static inline const struct oci_namespace *creation_namespaces(const struct creation *c)
{
	return c->bundle.config.on_linux.namespaces;
}

/*
 * creation_make - the whole of create: on success init waits for start.
 *
 * On failure nothing is left: no process, cgroup, mount or state.  If the cgroup or the class of
 * service can't be removed, the state stays for delete.
 */
int creation_make(struct oci_call *call, struct creation *c, struct cj_error *err);

/* Closes the descriptors; the container stays. */
void creation_close(struct creation *c);

/*
 * creation_undo - end and remove the container, as far as it is made: for a failure after
 * creation_make().
 */
void creation_undo(struct creation *c);
