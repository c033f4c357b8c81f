/* SPDX-License-Identifier: Apache-2.0 */
/* create, outside: what init needs, made in the order that container.h draws.  Acts. */
#include "runtime/container/container/container.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "runtime/base/clock.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"
#include "runtime/container/annotation/result_watch.h"
#include "runtime/container/container/container_hooks.h"
#include "runtime/container/create/container_ids.h"
#include "runtime/container/create/container_spawn.h"
#include "runtime/container/create/creation.h"
#include "runtime/container/create/hook_env.h"
#include "runtime/container/oci_log.h"
#include "runtime/container/pid_file.h"
#include "runtime/container/process/console.h"
#include "runtime/container/state/state_socket.h"
#include "runtime/container/state/state_status.h"
#include "runtime/kernel/process/process_start.h"

const char *const creation_step_names[] = {
	[CREATION_IDS_MAPPED] = "ids mapped", [CREATION_NAMESPACES] = "namespaces",
	[CREATION_HOOKS_DONE] = "hooks done", [CREATION_RULES] = "network rules",
	[CREATION_BUILT] = "container built", [CREATION_CREATED] = "container created",
	[CREATION_START] = "start",           [CREATION_STARTING] = "starting",
};

/* --- the stages ---------------------------------------------------------------------------- */

/*
 * Descriptors that the engine leaked are neither ours nor the container's (conmon leaks its pipes).
 * Before one of ours stays open, so that none gets the number of a preserved one; and after the
 * configuration is read, which may be one: --config /dev/fd/N.
 */
static int streams_enter(struct creation *c, struct cj_error *err)
{
	if (listen_fds_read(PRESERVED_FDS_MAX, &c->listen, err) < 0)
		return -err->code;
	c->preserved_fds = c->listen.count + (unsigned)c->options->preserve_fds;
	return process_keep_fds(c->preserved_fds, err);
}

/* The plan of the mounts asks for a cgroup namespace that is not the caller's. */
static int leave_out_own_cgroups(struct creation *c, struct cj_error *err)
{
	struct oci_namespace *ns = &c->bundle.config.on_linux.namespaces[OCI_NS_CGROUP];
	struct stat ours, theirs;

	if (!ns->path)
		return 0;
	if (stat("/proc/self/ns/cgroup", &ours) < 0 || stat(ns->path, &theirs) < 0)
		return cj_fail(err, errno, "look at the cgroup namespace '%s'", ns->path);
	if (ours.st_dev == theirs.st_dev && ours.st_ino == theirs.st_ino)
		*ns = (struct oci_namespace){ 0 };
	return 0;
}

/* What the caller may make; what config.json may ask for, its parser has checked. */
static int check_namespaces(const struct creation *c, struct cj_error *err)
{
	const struct oci_namespace *ns = creation_namespaces(c);

	if (geteuid() != 0 && !ns[OCI_NS_USER].is_wanted) {
		int rc = cj_reject_as(err, EPERM, "linux.namespaces has no user namespace");
		cj_hint(err, "an ordinary user needs one; cejail-oci spec --rootless writes it");
		return rc;
	}
	/* Init is dumpable until its id map is written, and a process of the same user could
	 * attach to it: ptrace(2). */
	if (geteuid() != 0 && !ns[OCI_NS_USER].path && ns[OCI_NS_PID].path)
		return cj_reject(err, "an ordinary user can't join a pid namespace with a new user "
				      "namespace");
	return ns[OCI_NS_USER].path ? process_check_dumpable(err) : 0;
}

static int bundle_enter(struct creation *c, struct cj_error *err)
{
	if (container_config_bundle(c->options, c->arena, &c->bundle, err) < 0)
		return -err->code;
	int rc = check_namespaces(c, err);
	return rc < 0 ? rc : leave_out_own_cgroups(c, err);
}

static int network_plan(struct creation *c, struct cj_error *err)
{
	const struct oci_config *config = &c->bundle.config;
	const struct oci_process *process =
	    config->has_process && !c->annotations.is_sandbox ? &config->process : NULL;
	struct strings warnings = { 0 };

	if (!c->annotations.has_network)
		return 0;
	if (network_rules_check(config, process, err) < 0 ||
	    network_rules_prepare(&c->annotations, c->arena, &c->rules, &warnings, err) < 0)
		return -err->code;
	oci_log_warnings(c->options, &warnings);
	return 0;
}

static int annotations_enter(struct creation *c, struct cj_error *err)
{
	if (annotations_read(&c->bundle.config.annotations, c->arena, &c->annotations, err) < 0 ||
	    network_plan(c, err) < 0)
		return -err->code;
	if (!c->annotations.result)
		return 0;
	if (state_check_id(c->options->id, err) < 0) /* it may be a part of the path */
		return -err->code;
	return result_place_find(c->annotations.result, c->options->result_dir, c->options->id,
				 c->arena, &c->result, err);
}

static int tree_plan_enter(struct creation *c, struct cj_error *err)
{
	struct oci_config *config = &c->bundle.config;

	/* The first adds a mount, and a variable of the process. */
	if (notify_relay_plan(&c->notify, c->options, config, c->arena, err) < 0 ||
	    oci_tree_plan(config, c->arena, &c->tree, err) < 0 ||
	    sysctls_look_at_host(&c->host_spaces, err) < 0)
		return -err->code;
	oci_log_warnings(c->options, &c->tree.warnings);
	return tree_open_outside(&c->tree.tree, c->bundle.path, &c->sources, err);
}

static int process_enter(struct creation *c, struct cj_error *err)
{
	const struct oci_config *config = &c->bundle.config;
	const struct process_context context = {
		.has_user_namespace = creation_namespaces(c)[OCI_NS_USER].is_wanted,
		.keeps_keyring = c->options->no_new_keyring,
		.profile = c->annotations.profile,
		.preserved_fds = c->preserved_fds,
	};

	if (!config->has_process)
		return 0;
	if (listen_fds_pass(&c->listen, &c->bundle.config.process.env, c->arena, err) < 0)
		return -err->code;
	if (process_prepare(config, &config->process, &context, c->arena, &c->process, err) < 0)
		return -err->code;
	oci_log_warnings(c->options, process_warnings(c->process));
	return 0;
}

static int console_enter_socket(struct creation *c, struct cj_error *err)
{
	const struct oci_config *config = &c->bundle.config;

	if (!config->has_process || !config->process.has_terminal)
		return 0;
	if (!c->options->console_socket) {
		int rc = cj_reject(err, "process.terminal needs a console socket");
		cj_hint(err, "give one with --console-socket, or set process.terminal to false");
		return rc;
	}
	c->console_fd = console_connect(c->options->console_socket, err);
	return c->console_fd < 0 ? c->console_fd : 0;
}

static int fill_record(struct creation *c, struct cj_error *err)
{
	struct state_record *r = &c->state.record;

	*r = (struct state_record){
		.id = arena_strdup(c->arena, c->options->id), /* init wipes the arguments */
		.bundle = c->bundle.path,
		.rootfs = c->bundle.rootfs,
		.created_ms = clock_epoch_ms(),
		.owner_uid = geteuid(),
		.cgroup = c->cgroup.record,
	};
	return r->id ? 0 : cj_fail(err, ENOMEM, "make the record");
}

/* The record names the cgroup before it exists. */
static int state_enter(struct creation *c, struct cj_error *err)
{
	c->wanted_cgroup = (struct container_cgroup_wanted){
		.manager = c->options->has_no_cgroup  ? CGROUP_MANAGER_DISABLED
			   : c->options->uses_systemd ? CGROUP_MANAGER_SYSTEMD
						      : CGROUP_MANAGER_CGROUPFS,
		.id = c->options->id,
		.path = c->bundle.config.on_linux.cgroups_path,
		.resources = &c->bundle.config.on_linux.resources,
	};
	if (container_cgroup_find(&c->wanted_cgroup, &c->cgroup, err) < 0 ||
	    state_create(c->options, &c->state, err) < 0 || fill_record(c, err) < 0 ||
	    state_write(&c->state, err) < 0)
		return -err->code;
	return state_put_file(&c->state, STATE_CONFIG, c->bundle.text, c->bundle.size, err);
}

/* Of start, and of the program for its service manager. */
static int sockets_enter(struct creation *c, struct cj_error *err)
{
	c->start_fd = state_socket_listen(&c->state, err);
	if (c->start_fd < 0)
		return c->start_fd;
	c->waiting_fd = openat(c->state.dir_fd, STATE_WAITING,
			       O_RDONLY | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR);
	if (c->waiting_fd < 0 || flock(c->waiting_fd, LOCK_EX | LOCK_NB) < 0)
		return cj_fail(err, errno, "lock the file '" STATE_WAITING "' of the state");
	return notify_relay_bind(&c->notify, &c->state, err);
}

static int cgroup_enter(struct creation *c, struct cj_error *err)
{
	if (container_cgroup_make(&c->wanted_cgroup, &c->cgroup, err) < 0)
		return -err->code;
	if (c->cgroup.why_none[0] != '\0') {
		struct cj_error why = { 0 };
		(void)!cj_reject(&why, "no cgroup: %s", c->cgroup.why_none);
		oci_log_info(c->options, &why);
	}
	c->state.record.cgroup = c->cgroup.record;
	return state_write(&c->state, err);
}

/* The record names the class before it exists. */
static int rdt_enter(struct creation *c, struct cj_error *err)
{
	const struct oci_rdt *config = &c->bundle.config.on_linux.rdt;

	if (!config->is_given)
		return 0;
	auto_fd int root_fd = rdt_open(err);
	if (root_fd < 0 ||
	    rdt_plan(root_fd, config, c->options->id, &c->state.record.rdt, err) < 0 ||
	    state_write(&c->state, err) < 0)
		return -err->code;
	if (rdt_make(root_fd, config, &c->state.record.rdt, err) < 0)
		return -err->code;
	return state_write(&c->state, err); /* another container may have made it */
}

static int rdt_join_enter(struct creation *c, struct cj_error *err)
{
	return rdt_join_recorded(&c->state.record.rdt, c->init_pid, err);
}

/* Init wipes its own. */
static int keep_env(struct creation *c, struct cj_error *err)
{
	return c->bundle.config.hooks[OCI_HOOK_CREATE_CONTAINER].count > 0
		   ? hook_env_read(c->arena, &c->hook_env, err)
		   : 0;
}

/* Init's alone from now on: its execve(2) must be the last close. */
static void close_inside(struct creation *c)
{
	cj_close(&c->start_fd);
	cj_close(&c->waiting_fd);
	cj_close(&c->console_fd);
}

/* A process of a joined pid namespace may stop init, and a kill may end create then: init has no
 * lock at any time. */
static int spawn_unlocked(struct creation *c, struct cj_error *err)
{
	struct cj_error unspawned = { 0 };

	state_unlock(&c->state);
	int rc = container_spawn(c, &unspawned);
	if (state_lock_alone(&c->state, err) < 0)
		return -err->code;
	if (rc < 0)
		*err = unspawned;
	return rc;
}

/* An init that gets no id map yet ends with the link, so a kill between clone3 and the record
 * leaves no process. */
static int make_init(struct creation *c, struct cj_error *err)
{
	int socks[2];

	if (keep_env(c, err) < 0 || step_pair(socks, 0, err) < 0)
		return -err->code;
	c->link = (struct step_link){ socks[0], "the container's init", creation_step_names };
	c->init_sock_fd = socks[1];
	step_limit_wait(socks[0],
			container_hooks_wait_ms(&c->bundle.config, OCI_HOOK_CREATE_CONTAINER));
	if (spawn_unlocked(c, err) < 0)
		return -err->code;
	const struct spawn_place place = creation_place(c);
	if (spawn_move(&place, c->init_pid, err) < 0) /* it does nothing before it has its ids */
		return -err->code;
	cj_close(&c->init_sock_fd);
	c->state.record.pid = c->init_pid;
	int rc = process_start_ticks(c->init_pid, &c->state.record.pid_start);
	if (rc < 0)
		return cj_fail(err, -rc, "read when process %d began", (int)c->init_pid);
	return state_write(&c->state, err);
}

/* Init needs its ids before it makes anything. */
static int map_ids(struct creation *c, struct cj_error *err)
{
	const struct oci_namespace *user = &creation_namespaces(c)[OCI_NS_USER];
	auto_step_msg struct step_msg msg = { 0 };

	if (user->is_wanted && !user->path &&
	    container_ids_write(&c->bundle.config.on_linux, c->init_pid, err) < 0)
		return -err->code;
	if (step_tell(&c->link, CREATION_IDS_MAPPED, NULL, 0, NULL, 0, err) < 0)
		return -err->code;
	return step_await(&c->link, CREATION_NAMESPACES, &msg, err);
}

static void end_init(struct creation *c)
{
	if (c->init_pid > 0) {
		(void)kill(c->init_pid, SIGKILL); /* our child, not reaped: the id is its own */
		(void)sys_waitpid(c->init_pid, NULL, 0); /* as above */
	}
	c->init_pid = 0;
}

/* Once more, if the kernel kills what is born in the cgroup. */
static int init_enter(struct creation *c, struct cj_error *err)
{
	if (make_init(c, err) < 0 || map_ids(c, err) < 0) {
		const struct spawn_place place = creation_place(c);
		if (!spawn_kills(&place))
			return -err->code;
		end_init(c);
		cj_close(&c->init_pidfd);
		cj_close(&c->init_sock_fd);
		cj_close(&c->link.sock_fd);
		*err = (struct cj_error){ 0 };
		c->moves_init = true;
		if (make_init(c, err) < 0 || map_ids(c, err) < 0)
			return -err->code;
	}
	close_inside(c);
	return 0;
}

static int net_devices_enter(struct creation *c, struct cj_error *err)
{
	return net_devices_move(&c->bundle.config.on_linux, c->init_pidfd, c->arena,
				&c->net_devices, err);
}

static int hooks_enter(struct creation *c, struct cj_error *err)
{
	static const enum oci_hook_kind kinds[] = { OCI_HOOK_PRESTART, OCI_HOOK_CREATE_RUNTIME };

	c->has_run_hooks = true;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (container_hooks_run(c->options, &c->bundle.config, kinds[i], &c->state,
					STATE_CREATING, err) < 0)
			return -err->code;
	return step_tell(&c->link, CREATION_HOOKS_DONE, NULL, 0, NULL, 0, err);
}

/* The rules are loaded when every hook that makes a network has run, or by path before. */
static int rules_enter(struct creation *c, struct cj_error *err)
{
	auto_step_msg struct step_msg msg = { 0 };

	if (!c->annotations.has_network)
		return 0;
	if (step_await(&c->link, CREATION_RULES, &msg, err) < 0)
		return -err->code;
	if (msg.nfds != 2 || msg.size != sizeof(c->network.table))
		return cj_fail(err, EPROTO, "receive the sockets of the network rules");
	memcpy(c->network.table, msg.data, msg.size);
	c->network.rules_fd = take_fd(&msg.fds[0]);
	c->network.log_fd = take_fd(&msg.fds[1]);
	return 0;
}

static int describe(struct creation *c, struct cj_error *err)
{
	const struct process_state state = {
		.id = c->state.record.id,
		.status = state_status_name(STATE_CREATING),
		.bundle = c->bundle.path,
		.container_pid = c->init_pid,
		.annotations = &c->bundle.config.annotations,
	};

	if (!c->process)
		return 0;
	if (process_adjust(c->process, c->init_pid, err) < 0)
		return -err->code;
	return process_describe(c->process, &state, c->init_pid, err);
}

static int built_enter(struct creation *c, struct cj_error *err)
{
	auto_step_msg struct step_msg msg = { 0 };

	if (step_await(&c->link, CREATION_BUILT, &msg, err) < 0)
		return -err->code;
	return describe(c, err);
}

static int lock_result(struct creation *c, struct cj_error *err)
{
	c->result_lock_fd = openat(c->state.dir_fd, STATE_RESULT,
				   O_RDONLY | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR);
	if (c->result_lock_fd < 0 || flock(c->result_lock_fd, LOCK_EX | LOCK_NB) < 0)
		return cj_fail(err, errno, "lock the file '" STATE_RESULT "' of the state");
	return 0;
}

static int start_result(struct creation *c, struct cj_error *err)
{
	const struct result_watch watch = {
		.id = c->state.record.id,
		.created_ms = c->state.record.created_ms,
		.pid = c->init_pid,
		.pidfd = c->init_pidfd,
		.cgroup_fd = c->cgroup.dir_fd,
		.file = &c->result,
		.network = &c->network,
		.lock_fd = c->result_lock_fd,
	};

	if (result_watch_start(&watch, &c->result_go_fd, err) < 0)
		return -err->code;
	cj_close(&c->result_lock_fd); /* that process' alone: its end releases the lock */
	return 0;
}

static int result_enter(struct creation *c, struct cj_error *err)
{
	if (!c->annotations.result)
		return 0;
	return lock_result(c, err) < 0 ? -err->code : start_result(c, err);
}

/* In the foreground this process stays, and does it itself. */
static int notify_process_enter(struct creation *c, struct cj_error *err)
{
	bool stays = c->options->verb == OCI_RUN && !c->options->is_detached;

	return stays ? 0 : notify_relay_start(&c->notify, c->init_pid, c->init_pidfd, err);
}

static int created_enter(struct creation *c, struct cj_error *err)
{
	if (c->options->pid_file) {
		if (pid_file_write(c->options->pid_file, c->init_pid, err) < 0)
			return -err->code;
		c->has_pid_file = true;
	}
	c->state.record.is_created = true;
	if (c->state.record.rdt.is_shared)
		c->state.record.rdt.is_made = false; /* from here on other containers may join */
	if (state_write(&c->state, err) < 0 ||
	    step_tell(&c->link, CREATION_CREATED, NULL, 0, NULL, 0, err) < 0)
		return -err->code;
	return c->result_go_fd >= 0 ? result_watch_go(c->result_go_fd, err) : 0;
}

static const struct {
	const char *name;
	int (*enter)(struct creation *c, struct cj_error *err);
} stages[] = {
	{ "bundle", bundle_enter },           /* a bad configuration leaves nothing to undo */
	{ "streams", streams_enter },         /* before any descriptor of ours stays open */
	{ "annotations", annotations_enter }, /* likewise */
	{ "plan", tree_plan_enter },          /* likewise */
	{ "process", process_enter },         /* likewise */
	{ "console", console_enter_socket },
	{ "state", state_enter }, /* the record, before what it names */
	{ "sockets", sockets_enter },
	{ "cgroup", cgroup_enter },          /* limits exist before init does */
	{ "class of service", rdt_enter },   /* exists before init, as the cgroup does */
	{ "init", init_enter },              /* born into the cgroup, as a rule */
	{ "class of init", rdt_join_enter }, /* before a hook of init, which inherits it */
	{ "network devices", net_devices_enter },
	{ "hooks", hooks_enter },         /* the namespaces exist, the root is not entered */
	{ "network rules", rules_enter }, /* the network exists, the program does not run */
	{ "container", built_enter },
	{ "result", result_enter }, /* the cgroup and the sockets that it reads exist */
	{ "notify process", notify_process_enter }, /* init exists, with which it ends */
	{ "created", created_enter },               /* the pid file, when init is ready for start */
};

/* --- failure ------------------------------------------------------------------------------- */

/* Both are tried.  false: one is left, which only the record names. */
static bool remove_limits(struct creation *c)
{
	struct cj_error failed[2] = { 0 };
	bool is_gone = true;

	(void)!container_cgroup_remove(&c->cgroup, &failed[0]);
	(void)!rdt_remove_recorded(&c->state.record.rdt, &failed[1]);
	for (size_t i = 0; i < 2; i++) {
		if (failed[i].code == 0)
			continue;
		cj_hint(&failed[i], "delete it again, with the verb delete");
		oci_log_warning(c->options, &failed[i]);
		is_gone = false;
	}
	return is_gone;
}

void creation_undo(struct creation *c)
{
	struct cj_error later = { 0 };

	end_init(c);
	if (c->has_pid_file)
		(void)unlink(c->options->pid_file); /* it names a process that has ended */
	if (c->state.dir_fd < 0)
		return; /* the container is another one's, or none exists */
	if (net_devices_return(&c->bundle.config.on_linux, &c->net_devices, &later) < 0)
		oci_log_warning(c->options, &later);
	later = (struct cj_error){ 0 };
	if (!remove_limits(c))
		return; /* the rest is for delete */
	if (c->has_run_hooks)
		container_hooks_run_each(c->options, &c->bundle.config, OCI_HOOK_POSTSTOP,
					 &c->state, STATE_STOPPED);
	if (state_remove(&c->state, &later) < 0)
		oci_log_warning(c->options, &later);
}

void creation_close(struct creation *c)
{
	cj_close(&c->start_fd);
	cj_close(&c->waiting_fd);
	cj_close(&c->console_fd);
	cj_close(&c->init_sock_fd);
	cj_close(&c->link.sock_fd);
	cj_close(&c->init_pidfd);
	cj_close(&c->net_devices.there_fd);
	network_handle_close(&c->network);
	result_place_close(&c->result);
	notify_relay_close(&c->notify);
	cj_close(&c->result_lock_fd);
	cj_close(&c->result_go_fd);
	tree_close(&c->sources);
	process_close(&c->process);
	container_cgroup_close(&c->cgroup);
	state_close(&c->state);
}

int creation_make(struct oci_call *call, struct creation *c, struct cj_error *err)
{
	*c = (struct creation){
		.options = call->options,
		.arena = call->arena,
		.state = STATE_NULL,
		.cgroup = CONTAINER_CGROUP_NULL,
		.start_fd = -1,
		.waiting_fd = -1,
		.console_fd = -1,
		.notify = NOTIFY_RELAY_NULL,
		.init_sock_fd = -1,
		.link = { .sock_fd = -1 },
		.init_pidfd = -1,
		.net_devices = { .there_fd = -1 },
		.network = NETWORK_HANDLE_NULL,
		.result = RESULT_PLACE_NULL,
		.result_lock_fd = -1,
		.result_go_fd = -1,
	};
	for (size_t i = 0; i < sizeof(stages) / sizeof(stages[0]); i++) {
		oci_log_debug(c->options, "create: %s", stages[i].name);
		if (stages[i].enter(c, err) < 0) {
			creation_undo(c);
			creation_close(c);
			return -err->code;
		}
	}
	return 0;
}

int container_create(struct oci_call *call, struct cj_error *err)
{
	struct creation c;

	if (creation_make(call, &c, err) < 0)
		return -err->code;
	creation_close(&c);
	return 0;
}
