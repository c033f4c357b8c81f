/* SPDX-License-Identifier: Apache-2.0 */
/* create, outside: what init needs, made in the order that creation.h draws. */
#include "runtime/container/create/creation.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "netns/gateway.h"
#include "runtime/base/clock.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"
#include "runtime/container/call/caller.h"
#include "runtime/container/process/console.h"
#include "runtime/kernel/process/process_tree.h"

const char *const creation_step_names[] = {
	[CREATION_IDS_MAPPED] = "ids mapped", [CREATION_NAMESPACES] = "namespaces",
	[CREATION_HOOKS_DONE] = "hooks done", [CREATION_RULES] = "network rules",
	[CREATION_BUILT] = "container built", [CREATION_CREATED] = "container created",
	[CREATION_START] = "start",           [CREATION_STARTING] = "starting",
};

/* Also when init exists, which has its own of these. */
static void close_outside(struct creation *c)
{
	cj_close(&c->start_fd);
	cj_close(&c->waiting_fd);
	cj_close(&c->console_fd);
}

/* What is only closed, of every row.  Without the link, the result process ends. */
static void all_leave(struct creation *c)
{
	oci_result_close(&c->result);
	tree_close(&c->sources);
	notify_relay_close(&c->notify);
	process_close(&c->process);
	close_outside(c);
	annotations_network_close(&c->network);
	cj_close(&c->result_lock_fd);
	cj_close(&c->result_go_fd);
}

static int terminal_enter(struct creation *c, struct cj_error *err)
{
	const struct oci_config *config = &c->bundle.config;

	if (!config->has_process || !config->process.has_terminal)
		return 0;
	if (!c->options->console_socket) {
		cj_refuse(err, "process.terminal needs a console socket");
		return cj_hint(err,
			       "give one with --console-socket, or set process.terminal to false");
	}
	c->console_fd = console_connect(c->options->console_socket, err);
	return c->console_fd < 0 ? c->console_fd : 0;
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
	    state_create(c->options, &c->state, err) < 0)
		return -err->code;
	c->state.record = (struct state_record){
		.id = arena_strdup(c->arena, c->options->id), /* init wipes the arguments */
		.bundle = c->bundle.path,
		.rootfs = c->bundle.rootfs,
		.created_ms = clock_epoch_ms(),
		.owner_uid = geteuid(),
		.cgroup = c->cgroup.record,
	};
	if (!c->state.record.id)
		return cj_fail(err, ENOMEM, "make the record");
	if (state_write(&c->state, err) < 0)
		return -err->code;
	return state_put_file(&c->state, STATE_CONFIG, c->bundle.text, c->bundle.size, err);
}

/*
 * The last that is removed: the record names what could not be removed before, for the verb delete.
 * Without dir_fd no container exists, or it is another one's.
 */
static void state_leave(struct creation *c)
{
	struct cj_error failed = { 0 };

	if (!c->stays && !c->is_left_over && c->state.dir_fd >= 0) {
		if (c->has_run_hooks)
			container_hooks_run_each(c->options, &c->bundle.config, OCI_HOOK_POSTSTOP,
						 &c->state, STATE_STOPPED);
		if (state_remove(&c->state, &failed) < 0)
			oci_log_warning(c->options, &failed);
	}
	state_close(&c->state);
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

static void warn_left_over(struct creation *c, struct cj_error *failed)
{
	cj_hint(failed, "delete it again, with the verb delete");
	oci_log_warning(c->options, failed);
	c->is_left_over = true;
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

static void rdt_leave(struct creation *c)
{
	struct cj_error failed = { 0 };

	if (!c->stays && c->state.dir_fd >= 0 &&
	    rdt_remove_recorded(&c->state.record.rdt, &failed) < 0)
		warn_left_over(c, &failed);
}

static int cgroup_enter(struct creation *c, struct cj_error *err)
{
	if (container_cgroup_make(&c->wanted_cgroup, &c->cgroup, err) < 0)
		return -err->code;
	if (c->cgroup.why_none[0] != '\0') {
		struct cj_error why = { 0 };
		cj_refuse(&why, "no cgroup: %s", c->cgroup.why_none);
		oci_log_info(c->options, &why);
	}
	c->state.record.cgroup = c->cgroup.record;
	return state_write(&c->state, err);
}

static void cgroup_leave(struct creation *c)
{
	struct cj_error failed = { 0 };

	if (!c->stays && c->state.dir_fd >= 0 && container_cgroup_remove(&c->cgroup, &failed) < 0)
		warn_left_over(c, &failed);
	container_cgroup_close(&c->cgroup);
}

static int rdt_join_enter(struct creation *c, struct cj_error *err)
{
	return rdt_join_recorded(&c->state.record.rdt, c->init_pid, err);
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

	/* init wipes its own environment */
	if (c->bundle.config.hooks[OCI_HOOK_CREATE_CONTAINER].count > 0 &&
	    inherit_hook_env(c->arena, &c->hook_env, err) < 0)
		return -err->code;
	if (step_pair(socks, 0, err) < 0)
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
	int rc = process_tree_start_ticks(c->init_pid, &c->state.record.pid_start);
	if (rc < 0)
		return cj_fail(err, -rc, "read when process %d began", (int)c->init_pid);
	return state_write(&c->state, err);
}

/* Init needs its ids before it makes anything. */
static int map_ids(struct creation *c, struct cj_error *err)
{
	const struct oci_namespace *user = &creation_namespaces(c)[OCI_NS_USER];

	if (user->is_wanted && !user->path &&
	    container_spawn_map_ids(&c->bundle.config.on_linux, c->init_pid, err) < 0)
		return -err->code;
	if (step_say(&c->link, CREATION_IDS_MAPPED, err) < 0)
		return -err->code;
	return step_await(&c->link, CREATION_NAMESPACES, NULL, err);
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
	/* init's alone from now on: its execve(2) must be the last close */
	close_outside(c);
	return 0;
}

static void init_leave(struct creation *c)
{
	if (!c->stays)
		end_init(c);
	cj_close(&c->init_sock_fd);
	cj_close(&c->link.sock_fd);
	cj_close(&c->init_pidfd);
}

static int loader_enter(struct creation *c, struct cj_error *err)
{
	if (!c->annotations.has_network)
		return 0;
	/* It acts with create's rights over networks, and obeys init, too: so it keeps no other. */
	if (gateway_start_loader(&c->loader, err) < 0)
		return -err->code;
	return loader_join(&c->loader, err) < 0 ? gateway_hint(err) : 0;
}

static void loader_leave(struct creation *c)
{
	loader_stop(&c->loader);
}

static int net_devices_enter(struct creation *c, struct cj_error *err)
{
	return inherit_devices_move(&c->bundle.config.on_linux, c->init_pidfd, c->arena,
				    &c->net_devices, err);
}

static void net_devices_leave(struct creation *c)
{
	struct cj_error failed = { 0 };

	if (!c->stays) {
		end_init(
		    c); /* it could change the devices meanwhile; there_fd keeps the namespace */
		if (inherit_devices_return(&c->bundle.config.on_linux, &c->net_devices, &failed) <
		    0)
			oci_log_warning(c->options, &failed);
	}
	cj_close(&c->net_devices.there_fd);
}

static int hooks_enter(struct creation *c, struct cj_error *err)
{
	const struct oci_config *config = &c->bundle.config;

	c->has_run_hooks = true;
	if (container_hooks_run(c->options, config, OCI_HOOK_PRESTART, &c->state, STATE_CREATING,
				err) < 0 ||
	    container_hooks_run(c->options, config, OCI_HOOK_CREATE_RUNTIME, &c->state,
				STATE_CREATING, err) < 0)
		return -err->code;
	return step_say(&c->link, CREATION_HOOKS_DONE, err);
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
	loader_stop(&c->loader);
	return 0;
}

static int built_enter(struct creation *c, struct cj_error *err)
{
	const struct process_state state = {
		.id = c->state.record.id,
		.status = state_status_name(STATE_CREATING),
		.bundle = c->bundle.path,
		.container_pid = c->init_pid,
		.annotations = &c->bundle.config.annotations,
	};

	if (step_await(&c->link, CREATION_BUILT, NULL, err) < 0)
		return -err->code;
	if (c->process && process_adjust(c->process, c->init_pid, err) < 0)
		return -err->code;
	return c->process ? process_describe(c->process, &state, c->init_pid, err) : 0;
}

static int result_enter(struct creation *c, struct cj_error *err)
{
	if (!c->annotations.result)
		return 0;
	c->result_lock_fd = openat(c->state.dir_fd, STATE_RESULT,
				   O_RDONLY | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR);
	if (c->result_lock_fd < 0 || flock(c->result_lock_fd, LOCK_EX | LOCK_NB) < 0)
		return cj_fail(err, errno, "lock the file '" STATE_RESULT "' of the state");
	const struct oci_result_watch watch = {
		.id = c->state.record.id,
		.created_ms = c->state.record.created_ms,
		.pid = c->init_pid,
		.pidfd = c->init_pidfd,
		.cgroup_fd = c->cgroup.dir_fd,
		.file = &c->result,
		.network = &c->network,
		.lock_fd = c->result_lock_fd,
	};
	if (oci_result_start(&watch, &c->result_go_fd, err) < 0)
		return -err->code;
	cj_close(&c->result_lock_fd); /* that process' alone: its end releases the lock */
	return 0;
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
		if (caller_write_pid(c->options->pid_file, c->init_pid, err) < 0)
			return -err->code;
		c->has_pid_file = true;
	}
	c->state.record.is_created = true;
	if (c->state.record.rdt.is_shared)
		c->state.record.rdt.is_made = false; /* from here on other containers may join */
	if (state_write(&c->state, err) < 0 || step_say(&c->link, CREATION_CREATED, err) < 0)
		return -err->code;
	return c->result_go_fd >= 0 ? oci_result_go(c->result_go_fd, err) : 0;
}

static void created_leave(struct creation *c)
{
	if (c->has_pid_file && !c->stays)
		(void)unlink(c->options->pid_file); /* its process is about to end */
}

/*
 * A leave releases what its row holds, also if the row has failed half-way.  Unless c->stays it
 * removes what would outlive this process.
 */
static const struct {
	const char *name;
	int (*enter)(struct creation *c, struct cj_error *err);
	void (*leave)(struct creation *c); /* NULL: holds nothing, or all_leave() closes it */
} stages[] = {
	{ "bundle", creation_plan_bundle, all_leave }, /* whose leave is the last */
	{ "streams", creation_plan_streams, NULL }, /* before any descriptor of ours stays open */
	{ "annotations", creation_plan_annotations, NULL },
	{ "plan", creation_plan_tree, NULL },
	{ "process", creation_plan_process, NULL },
	{ "console", terminal_enter, NULL },   /* a bad configuration leaves nothing to undo */
	{ "state", state_enter, state_leave }, /* the record, before what it names */
	{ "sockets", sockets_enter, NULL },
	/* both limit init before it exists; the class goes when the cgroup has no process */
	{ "class of service", rdt_enter, rdt_leave },
	{ "cgroup", cgroup_enter, cgroup_leave },
	{ "loader of rules", loader_enter, loader_leave }, /* init uses it, too */
	{ "init", init_enter, init_leave },                /* born into the cgroup, as a rule */
	{ "class of init", rdt_join_enter, NULL }, /* before a hook of init, which inherits it */
	{ "network devices", net_devices_enter, net_devices_leave },
	{ "hooks", hooks_enter, NULL },         /* the namespaces exist, the root is not entered */
	{ "network rules", rules_enter, NULL }, /* the network exists, no program runs */
	{ "container", built_enter, NULL },
	{ "result", result_enter, NULL }, /* the cgroup and the sockets that it reads exist */
	{ "notify process", notify_process_enter, NULL }, /* init exists, with which it ends */
	{ "created", created_enter,
	  created_leave }, /* the pid file, when init is ready for start */
};

static void leave_rows(struct creation *c, size_t count)
{
	while (count-- > 0)
		if (stages[count].leave)
			stages[count].leave(c);
}

void creation_leave(struct creation *c, bool stays)
{
	c->stays = stays;
	leave_rows(c, COUNT_OF(stages));
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
		.loader = LOADER_NONE,
		.network = ANNOTATIONS_NETWORK_NULL,
		.result = OCI_RESULT_PLACE_NULL,
		.result_lock_fd = -1,
		.result_go_fd = -1,
	};
	for (size_t i = 0; i < COUNT_OF(stages); i++) {
		oci_log_debug(c->options, "create: %s", stages[i].name);
		if (stages[i].enter(c, err) < 0) {
			leave_rows(c, i + 1);
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
	creation_leave(&c, true);
	return 0;
}
