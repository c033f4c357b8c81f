/* SPDX-License-Identifier: Apache-2.0 */
/*
 * creation - the verbs create, start and run; what they hold of a container while they make it, and
 * the steps of init.
 *
 * Theory of operation.  No process of ours stays outside, but for what the caller asks for: a
 * result (oci_result.h), or to be notified (notify_relay.h).  None stays inside but the
 * container's own pid 1, which becomes the program by execve(2):
 *
 *	create                                   init (forked, never executed)
 *	------                                   -----------------------------
 *	configuration, plan, seccomp program
 *	state directory, lock
 *	record: the cgroup's path
 *	cgroup
 *	clone3, into the cgroup ---------------> new namespaces, or joined ones (by path:
 *	record: pid and start time                 container_spawn())
 *	id maps
 *	CREATION_IDS_MAPPED -------------------> cgroup namespace, time namespace
 *	hooks prestart, createRuntime <--------- CREATION_NAMESPACES
 *	CREATION_HOOKS_DONE -------------------> sources, root of its user namespace, host name,
 *	                                           tree, hooks createContainer, console, masks,
 *	                                           sysctls, pivot, user, privileges, executable
 *	limits, pid file, record: created <----- CREATION_BUILT
 *	CREATION_CREATED ----------------------> accept(2) on the start socket
 *	exit                                       |
 *	                                           |
 *	start: connects, CREATION_START -------> CREATION_STARTING, hooks startContainer,
 *	(end of file, or init's error) <--------'  seccomp, execve
 *
 * Init is not dumpable until execve(2), with one exception: before the id map it is, in a new user
 * namespace of an ordinary user.  No process has a right there yet.  Until CREATION_CREATED init
 * ends when create does.  A failure of create removes all that create has made; what a kill
 * leaves, `delete --force` removes by the record, which names each thing before it exists.
 *
 * The file "waiting" of the state directory is locked by init, with a descriptor that execve(2)
 * closes.  So who can't get the lock sees a created container, and no kill at any moment makes the
 * record wrong about it.
 */
#pragma once

#include "rootfs/tree/tree.h"
#include "runtime/base/step.h"
#include "runtime/container/annotation/annotations.h"
#include "runtime/container/annotation/oci_result.h"
#include "runtime/container/call/oci_log.h"
#include "runtime/container/cgroup/container_cgroup.h"
#include "runtime/container/container/container.h"
#include "runtime/container/notify/notify_relay.h"
#include "runtime/container/plan/oci_tree.h"
#include "runtime/container/process/process.h"
#include "runtime/container/state/state.h"
#include "runtime/kernel/process/spawn.h"

/* Each is the verb of its name: cejail-oci(8). */
oci_verb container_create, container_start, container_run;

/* Between create and init, in this order: drawn above. */
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

struct container_bundle {
	const char *path;   /* absolute */
	const char *rootfs; /* absolute */
	const char *text;   /* of config.json */
	size_t size;
	struct oci_config config;
};

/* Sockets that systemd or podman pass to the container: sd_listen_fds(3). */
struct inherited_fds {
	unsigned count;  /* descriptors from 3 on; 0: none */
	char *pid_entry; /* "LISTEN_PID=...", of LISTEN_PID_MAX bytes */
};

/* linux.netDevices: devices of the caller's network namespace that are moved. */
struct inherited_devices {
	int there_fd; /* a NETLINK_ROUTE socket, which keeps their namespace; -1: none is moved */
	int *indexes; /* there, in the order of the configuration; 0: not moved */
};

struct creation {
	const struct oci_options *options;
	struct arena *arena;

	struct container_bundle bundle;
	struct oci_tree tree;
	struct sysctl_host host_spaces;
	struct process *process; /* NULL: config.json has no process */
	struct strings hook_env; /* some of the caller's, for createContainer */
	struct inherited_fds listen;
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
	struct loader loader;               /* with io.cejail.network */
	struct annotations_network network; /* in init until CREATION_RULES, then in create */
	struct oci_result_place result;
	int result_lock_fd, result_go_fd; /* -1: no result is asked for */

	struct inherited_devices net_devices; /* moved ones; a failure returns them */

	bool moves_init;       /* into its cgroup: spawn_kills() */
	int init_sock_fd;      /* init's end of the link */
	struct step_link link; /* in create: to init; in init: to create */
	pid_t init_pid;        /* 0: none */
	int init_pidfd;
	bool has_run_hooks; /* of the runtime: then a failure runs poststop */
	bool has_pid_file;

	bool stays;        /* creation_leave() leaves the container as it is */
	bool is_left_over; /* the cgroup or the class of service could not be removed */
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

/*
 * creation_leave - close what create holds, last row first.  Unless `stays`, the container ends and
 * is removed: for a failure after creation_make().
 */
void creation_leave(struct creation *c, bool stays);

/* --- creation_plan.c: the rows of create that read and plan ---------------------------------- */

int creation_plan_bundle(struct creation *c, struct cj_error *err);
int creation_plan_streams(struct creation *c, struct cj_error *err);
int creation_plan_annotations(struct creation *c, struct cj_error *err);
int creation_plan_tree(struct creation *c, struct cj_error *err);
int creation_plan_process(struct creation *c, struct cj_error *err);

/* --- container_spawn.c ---------------------------------------------------------------------- */

/*
 * container_spawn - make the container's init, in new namespaces and in those joined by path.
 * Sets c->init_pid and c->init_pidfd.  Init runs container_init_main().
 *
 * Without a path, one clone3(2) makes all.  With one, an intermediate process joins what is joined,
 * and clones init as our child (CLONE_PARENT): our own namespaces stay the runtime's, for hooks.
 * The cgroup and the time namespace are init's to make.
 *
 * A user namespace is joined when what needs the caller's own rights has been: a network that
 * podman made belongs to the user namespace, and a pod's to the host's.
 * Follows: clone3(2), setns(2), user_namespaces(7).
 */
int container_spawn(struct creation *c, struct cj_error *err);

/*
 * container_spawn_map_ids - write uid_map, setgroups and gid_map of process `pid`.
 *
 * An ordinary user may map one id, its own, and the kernel then wants setgroups(2) denied, so that
 * no process drops a group that restricts it (CVE-2014-8989).
 * Fails: EINVAL without maps; EPERM with the remedy.  Follows: user_namespaces(7).
 */
int container_spawn_map_ids(const struct oci_linux *config, pid_t pid, struct cj_error *err);

/* --- container_init.c ----------------------------------------------------------------------- */

/*
 * container_init_main - the container's first process, from clone3(2) to its execve(2).
 *
 * It goes down a table of stages, and each failure becomes create's error, or start's.  It is
 * single-threaded, holds no descriptor of the host's but those that the stages need, and is not
 * dumpable from the id map on.  `c` is init's copy.  Never returns: the program, or _exit(2).
 */
_Noreturn void container_init_main(struct creation *c);

/* --- inherit.c ------------------------------------------------------------------------------ */

/*
 * inherit_hook_env - add copies of the caller's variables that lead to nothing in the working
 * directory: for createContainer hooks without "env".  container.h says why.
 */
int inherit_hook_env(struct arena *a, struct strings *out, struct cj_error *err);

/*
 * inherit_fds_read - LISTEN_FDS of our environment, if LISTEN_PID is this process, or 1, which
 * podman writes for the container's.  What another process was given stays closed.
 *
 * Fails: EINVAL for a number that is none or above `max`.
 */
int inherit_fds_read(unsigned max, struct inherited_fds *out, struct cj_error *err);

/* Puts LISTEN_FDS, LISTEN_PID and LISTEN_FDNAMES into the program's environment, in the place of
 * those that it has.  Without descriptors it does nothing. */
int inherit_fds_pass(struct inherited_fds *l, struct strings *env, struct arena *a,
		     struct cj_error *err);

/* In the process that becomes the program: its pid, as it sees itself, becomes LISTEN_PID. */
void inherit_fds_name_self(const struct inherited_fds *l);

/*
 * inherit_devices_move - move them into the network namespace of the process behind `init_pidfd`.
 *
 * `out` is for inherit_devices_return(), also after a failure.  When the container ends they stay
 * in a namespace that stays.  With it the kernel removes virtual devices, and moves the others to
 * the first network namespace of the machine.
 * Runs in:  create; it is in the container's namespace for a moment.
 * Fails:    EPERM without CAP_NET_ADMIN over both namespaces; links_move().
 */
int inherit_devices_move(const struct oci_linux *config, int init_pidfd, struct arena *a,
			 struct inherited_devices *out, struct cj_error *err);

/* Moves them back, after a create that fails; tries each.  They get their old names, and are up. */
int inherit_devices_return(const struct oci_linux *config, const struct inherited_devices *moved,
			   struct cj_error *err);
