/* SPDX-License-Identifier: Apache-2.0 */
/* The container's init. */
#include "runtime/container/create/creation.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "netns/rtnetlink/links.h"
#include "runtime/base/child.h"
#include "runtime/base/files/system_file.h"
#include "runtime/base/scope.h"
#include "runtime/container/process/console.h"

#define STATUS_FAILED 1

struct init {
	struct creation *c;
	struct step_link link; /* to create, later to start */
	int root_fd;
	struct console console;
};

static int detach_enter(struct init *in, struct cj_error *err)
{
	struct creation *c = in->c;

	/* Only create needs these: no descriptor of the host stays for a process inside. */
	cj_close(&c->link.sock_fd);
	state_close(&c->state);
	container_cgroup_close(&c->cgroup);
	oci_result_close(&c->result);
	notify_relay_close(&c->notify);
	child_wipe_arguments();
	child_default_signals(); /* the program must not inherit what our caller ignores */
	if (child_unblock_signals(err) < 0)
		return -err->code;
	(void)prctl(PR_SET_NAME, "cejail-oci-init", 0, 0, 0); /* only what ps(1) shows */
	return 0;
}

/* An engine gives the bundle to a mapped id and closes it to others.  Without the map our
 * capabilities have no effect on it: user_namespaces(7). */
static int mapped_enter(struct init *in, struct cj_error *err)
{
	if (step_await(&in->link, CREATION_IDS_MAPPED, NULL, err) < 0 ||
	    child_become_undumpable(err) < 0)
		return -err->code;
	if (chdir(in->c->bundle.path) < 0)
		return cj_fail(err, errno, "enter the bundle '%s'", in->c->bundle.path);
	return 0;
}

static bool is_new(const struct init *in, enum oci_namespace_type type)
{
	const struct oci_namespace *ns = &creation_namespaces(in->c)[type];

	return ns->is_wanted && !ns->path;
}

static int cgroup_enter(struct init *in, struct cj_error *err)
{
	if (is_new(in, OCI_NS_CGROUP) && unshare(CLONE_NEWCGROUP) < 0)
		return cj_fail(err, errno, "make a cgroup namespace");
	return 0;
}

static int write_offset(const char *clock, const struct oci_time_offset *offset,
			struct cj_error *err)
{
	char text[64];

	if (!offset->is_given)
		return 0;
	(void)snprintf(text, sizeof(text), "%s %lld %u\n", clock, (long long)offset->secs,
		       offset->nanosecs);
	int rc = system_file_write(AT_FDCWD, "/proc/self/timens_offsets", text);
	return rc < 0 ? cj_fail(err, -rc, "set the time offset of '%s'", clock) : 0;
}

/* The offsets are fixed as soon as a process is in it: time_namespaces(7). */
static int time_enter(struct init *in, struct cj_error *err)
{
	const struct oci_linux *config = &in->c->bundle.config.on_linux;

	if (!is_new(in, OCI_NS_TIME))
		return 0;
	if (unshare(CLONE_NEWTIME) < 0)
		return cj_fail(err, errno, "make a time namespace");
	if (write_offset("monotonic", &config->monotonic, err) < 0 ||
	    write_offset("boottime", &config->boottime, err) < 0)
		return -err->code;
	auto_fd int fd = open("/proc/self/ns/time_for_children", O_RDONLY | O_CLOEXEC);
	if (fd < 0 || setns(fd, CLONE_NEWTIME) < 0)
		return cj_fail(err, errno, "enter the new time namespace");
	return 0;
}

static int loopback_enter(struct init *in, struct cj_error *err)
{
	return is_new(in, OCI_NS_NETWORK) ? links_raise_loopback(err) : 0;
}

static int hooks_enter(struct init *in, struct cj_error *err)
{
	if (step_say(&in->link, CREATION_NAMESPACES, err) < 0)
		return -err->code;
	return step_await(&in->link, CREATION_HOOKS_DONE, NULL, err);
}

/* By path they are loaded already: container_spawn(). */
static int rules_enter(struct init *in, struct cj_error *err)
{
	struct annotations_network *network = &in->c->network;

	if (!in->c->annotations.has_network)
		return 0;
	if (network->rules_fd < 0 &&
	    annotations_load_network(&in->c->loader, &in->c->rules, network, err) < 0)
		return -err->code;
	const int fds[] = { network->rules_fd, network->log_fd };
	int rc = step_tell(&in->link, CREATION_RULES, network->table, sizeof(network->table), fds,
			   2, err);
	annotations_network_close(network);
	cj_close(&in->c->loader.link.sock_fd);
	cj_close(&in->c->loader.pidfd);
	return rc;
}

static int sources_enter(struct init *in, struct cj_error *err)
{
	return tree_open_sources(&in->c->tree.tree, in->c->sources, err);
}

/* Files that are made belong to root of the container's user namespace. */
static int root_user_enter(struct init *in, struct cj_error *err)
{
	if (!creation_namespaces(in->c)[OCI_NS_USER].is_wanted)
		return 0;
	if (setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0)
		return cj_fail(err, errno, "become root of the container's user namespace");
	return child_become_undumpable(err);
}

static int host_name_enter(struct init *in, struct cj_error *err)
{
	const struct oci_config *config = &in->c->bundle.config;

	if (config->hostname && sethostname(config->hostname, strlen(config->hostname)) < 0)
		return cj_fail(err, errno, "set the host name '%s'", config->hostname);
	if (config->domainname && setdomainname(config->domainname, strlen(config->domainname)) < 0)
		return cj_fail(err, errno, "set the domain name '%s'", config->domainname);
	return 0;
}

static int tree_enter_stage(struct init *in, struct cj_error *err)
{
	in->root_fd = tree_build(&in->c->tree.tree, in->c->sources, err);
	return in->root_fd < 0 ? in->root_fd : 0;
}

/* As the container sees itself. */
static int run_hooks(struct init *in, enum oci_hook_kind kind, enum state_status status,
		     const struct hook_place *place, struct cj_error *err)
{
	const struct oci_config *config = &in->c->bundle.config;

	in->c->state.record.pid = getpid();
	int rc = container_hooks_run_in(config, kind, &in->c->state, status, place, err);
	/* as pid 1 we reap what a hook left */
	while (config->hooks[kind].count > 0 && waitpid(-1, NULL, WNOHANG | __WALL) > 0)
		;
	return rc;
}

static int create_hooks_enter(struct init *in, struct cj_error *err)
{
	static const char *const none[] = { NULL };
	const struct strings *env = &in->c->hook_env;
	const struct hook_place place = { .dir_fd = in->root_fd,
					  .env = env->count > 0 ? env->items : none };

	return run_hooks(in, OCI_HOOK_CREATE_CONTAINER, STATE_CREATING, &place, err);
}

static int cwd_enter(struct init *in, struct cj_error *err)
{
	return in->c->process ? process_make_cwd(in->c->process, in->root_fd, err) : 0;
}

static int finish_enter(struct init *in, struct cj_error *err)
{
	return tree_finish(&in->c->tree.tree, in->c->sources, in->root_fd, err);
}

static int console_enter_stage(struct init *in, struct cj_error *err)
{
	const struct oci_process *process = &in->c->bundle.config.process;

	if (in->c->console_fd < 0)
		return 0;
	if (console_open(in->root_fd, process, &in->console, err) < 0 ||
	    console_mount(in->root_fd, &in->console, err) < 0 ||
	    console_send(in->c->console_fd, &in->console, err) < 0)
		return -err->code;
	cj_close(&in->c->console_fd);
	return 0;
}

static int sysctls_enter(struct init *in, struct cj_error *err)
{
	const struct oci_tree *plan = &in->c->tree;

	return sysctls_write(plan->sysctls, plan->nsysctls, &in->c->host_spaces, err);
}

/* While the host's procfs is still there: none of the container's is trusted. */
static int label_enter(struct init *in, struct cj_error *err)
{
	return in->c->process ? process_label(in->c->process, err) : 0;
}

static int pivot_enter(struct init *in, struct cj_error *err)
{
	if (tree_enter(&in->c->tree.tree, in->root_fd, err) < 0)
		return -err->code;
	cj_close(&in->root_fd);
	tree_close(&in->c->sources);
	return 0;
}

static int seal_enter(struct init *in, struct cj_error *err)
{
	return tree_seal(&in->c->tree.tree, err);
}

static int process_enter(struct init *in, struct cj_error *err)
{
	struct process *p = in->c->process;

	if (!p)
		return 0;
	if (process_become(p, in->console.slave_fd >= 0 ? &in->console : NULL, err) < 0)
		return -err->code;
	console_close(&in->console);
	inherit_fds_name_self(&in->c->listen);
	return process_find(p, err);
}

/* The first process of a pid namespace ignores a signal without a handler: pid_namespaces(7).
 * Before start it ends as any process does. */
static void end_by_signal(int signal)
{
	_exit(128 + signal);
}

static void handle_signals(void (*handler)(int))
{
	static const int ending[] = { SIGHUP,  SIGINT,  SIGQUIT, SIGABRT, SIGPIPE,
				      SIGALRM, SIGTERM, SIGUSR1, SIGUSR2, SIGVTALRM,
				      SIGPROF, SIGIO,   SIGXCPU, SIGXFSZ };
	struct sigaction action = { .sa_handler = handler };

	for (size_t i = 0; i < COUNT_OF(ending); i++)
		(void)sigaction(ending[i], &action, NULL); /* cannot fail for these */
}

/* Who calls create may send a signal as soon as it returns, so the handlers are there before. */
static int created_enter(struct init *in, struct cj_error *err)
{
	handle_signals(end_by_signal);
	if (step_say(&in->link, CREATION_BUILT, err) < 0)
		return -err->code;
	return step_await(&in->link, CREATION_CREATED, NULL, err);
}

static const struct {
	const char *name;
	int (*enter)(struct init *in, struct cj_error *err);
} stages[] = {
	{ "init", detach_enter },             /* gives up what is create's */
	{ "id map", mapped_enter },           /* nothing before it may need an id */
	{ "cgroup namespace", cgroup_enter }, /* in the final cgroup, which becomes its root */
	{ "time namespace", time_enter },
	{ "loopback", loopback_enter },   /* needs CAP_NET_ADMIN over the new network */
	{ "hooks", hooks_enter },         /* create's, when every namespace exists */
	{ "network rules", rules_enter }, /* a hook may have made the network */
	{ "sources", sources_enter },     /* with the caller's ids */
	{ "root user", root_user_enter }, /* makes files, so after the sources */
	{ "host name", host_name_enter }, /* needs a capability over the uts namespace */
	{ "tree", tree_enter_stage },
	{ "hooks createContainer", create_hooks_enter }, /* host paths still resolve */
	{ "console", console_enter_stage }, /* /dev/console, before the root is read-only */
	{ "working directory", cwd_enter }, /* likewise */
	{ "masks", finish_enter },          /* after all that may mount below them */
	{ "sysctls", sysctls_enter },       /* before pivot_root: sysctls.h */
	{ "label", label_enter },           /* while the host's procfs is there */
	{ "root", pivot_enter },
	{ "read-only root", seal_enter }, /* the last write to the root is over */
	{ "process", process_enter },     /* no row below needs a privilege */
	{ "created", created_enter },
};

/* The link is start's afterwards.  Its end says that the program is executed. */
static void await_start(struct init *in)
{
	for (bool is_wanted = false; !is_wanted;) {
		struct cj_error ignored = { 0 };

		cj_close(&in->link.sock_fd);
		in->link.sock_fd = accept4(in->c->start_fd, NULL, NULL, SOCK_CLOEXEC);
		if (in->link.sock_fd < 0 && errno != EINTR && errno != ECONNABORTED)
			_exit(STATUS_FAILED); /* nobody is there to be told */
		/* the peer wants the program to start, and knows that it does */
		is_wanted = in->link.sock_fd >= 0 &&
			    step_await(&in->link, CREATION_START, NULL, &ignored) == 0 &&
			    step_say(&in->link, CREATION_STARTING, &ignored) == 0;
	}
	handle_signals(SIG_DFL);
	cj_close(&in->c->start_fd); /* a second start is refused from here on */
}

static int start_program(struct init *in, struct cj_error *err)
{
	const struct process *p = in->c->process;

	if (!p)
		return cj_reject(err, "config.json has no process to start");
	const struct hook_place place = { -1, process_env(p), process_confine_hook, p };
	if (run_hooks(in, OCI_HOOK_START_CONTAINER, STATE_CREATED, &place, err) < 0)
		return -err->code;
	return process_execute(p, err);
}

_Noreturn void container_init_main(struct creation *c)
{
	struct cj_error err = { 0 };
	struct init in = { .c = c,
			   .root_fd = -1,
			   .console = CONSOLE_NULL,
			   .link = { c->init_sock_fd, "cejail-oci create", creation_step_names } };

	for (size_t i = 0; i < COUNT_OF(stages); i++)
		if (stages[i].enter(&in, &err) < 0) {
			cj_stage(&err, stages[i].name);
			step_abort(&in.link, &err);
			_exit(STATUS_FAILED);
		}
	await_start(&in);
	if (start_program(&in, &err) < 0)
		step_abort(&in.link, &err);
	_exit(STATUS_FAILED);
}
