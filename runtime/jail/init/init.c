/* SPDX-License-Identifier: Apache-2.0 */
/*
 * init - pid 1 of the jail, from clone3(2) to its end.
 *
 * Init begins as a copy of the supervisor, with every capability in its new user namespace and none
 * on the host.  It goes down init_stages[], where each row takes privileges away.  The last row
 * loads the seccomp filter.  Then init has no more rights than the payload, and only then does it
 * receive the program.  A failure becomes the supervisor's error (step_abort()).  When init ends,
 * the kernel kills every process in its pid namespace.
 */
#include "runtime/jail/init/init.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "rootfs/files/inputs.h"
#include "rootfs/rootfs.h"
#include "runtime/base/child.h"
#include "runtime/base/files/fd.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"
#include "runtime/kernel/process/landlock.h"
#include "runtime/kernel/process/privileges.h"
#include "runtime/jail/jail_state.h"
#include "runtime/jail/protocol.h"
#include "runtime/base/stage.h"

/* It has namespaces. */
static bool is_full(const struct jail *j)
{
	return !j->plan->reduced;
}

static bool is_reduced(const struct jail *j)
{
	return j->plan->reduced;
}

static int detach_enter(struct jail *j, struct cj_error *err)
{
	if (child_keep_only(&j->link.sock_fd, 1, err) < 0 || child_null_streams(err) < 0 ||
	    child_die_with_parent(j->link.sock_fd, err) < 0)
		return -err->code;
	child_wipe_arguments();
	if (is_full(j) && net_namespace_begin(&j->init.netns, err) < 0)
		return -err->code;
	/* the payload must not inherit what our caller ignores */
	child_reset_signals(j->changed_signals);
	(void)prctl(PR_SET_NAME, "cejail-init", 0, 0, 0); /* only what ps(1) shows */
	if (child_start_session(err) < 0)
		return -err->code;
	/* The filter refuses all calls about keys. */
	return is_full(j) ? privileges_join_keyring(err) : init_reduced_detach(j, err);
}

int init_network_open(const struct network_spec *spec, const struct step_link *link,
		      struct cj_error *err)
{
	struct network_handles handles;
	if (network_open(spec, &handles, err) < 0)
		return -err->code;
	int rc = 0;
	if (link) {
		int fds[SLOT_COUNT];
		size_t nfds;
		const struct opened opened = { .slots =
						   network_handles_pack(&handles, fds, &nfds) };
		rc = step_tell(link, STEP_NETWORK, &opened, sizeof(opened), fds, nfds, err);
	}
	network_handles_fini(&handles);
	return rc;
}

static int network_open_enter(struct jail *j, struct cj_error *err)
{
	if (net_namespace_enter(&j->init.netns, err) < 0)
		return -err->code;
	return init_network_open(&j->plan->network, jail_network_is_wanted(j) ? &j->link : NULL,
				 err);
}

static int sources_enter(struct jail *j, struct cj_error *err)
{
	return rootfs_open_sources(&j->root, &j->init.sources, err);
}

static int mapped_enter(struct jail *j, struct cj_error *err)
{
	auto_step_msg struct step_msg msg = { 0 };
	struct ids_mapped mapped;
	if (step_await(&j->link, STEP_IDS_MAPPED, &msg, err) < 0)
		return -err->code;
	if (msg.size != sizeof(mapped))
		return cj_fail(err, EPROTO, "read which ids are ours");
	memcpy(&mapped, msg.data, sizeof(mapped));
	if (is_reduced(j))
		return init_reduced_become(j, &mapped, err);
	if (rootfs_adopt_lowers(j->init.sources, &j->root, msg.fds, msg.nfds, err) < 0)
		return -err->code;
	if (privileges_become(j->plan->root.uid, j->plan->root.gid, mapped.may_setgroups, err) < 0)
		return -err->code;
	return child_die_with_parent(j->link.sock_fd, err); /* the change of ids has cleared it */
}

static int root_enter(struct jail *j, struct cj_error *err)
{
	j->init.root_fd = rootfs_build(&j->root, &j->init.sources, err);
	if (j->init.root_fd < 0)
		return -err->code;
	return rootfs_enter(j->init.root_fd, err);
}

static int hostname_enter(struct jail *j, struct cj_error *err)
{
	const char *name = j->plan->root.hostname;
	if (sethostname(name, strlen(name)) == 0)
		return 0;
	/* podman's default filter refuses it to a caller without CAP_SYS_ADMIN: EPERM */
	if (errno != EPERM && errno != EACCES && errno != ENOSYS)
		return cj_fail(err, errno, "set the host name '%s'", name);
	j->hostname_errno = errno;
	return 0;
}

static int kernel_enter(struct jail *j, struct cj_error *err)
{
	if (j->plan->network.mode == NETWORK_PUBLIC &&
	    network_allow_ping(j->plan->root.gid, err) < 0)
		return -err->code;
	if (privileges_limit_counts(err) < 0)
		return -err->code;
	return rootfs_mask_proc(j->handles.proc_fd, j->plan->root.uid, err);
}

static int handles_enter(struct jail *j, struct cj_error *err)
{
	if (j->plan->uses_zygote && init_adoption_open(&j->init.adoption, err) < 0)
		return -err->code;
	return rootfs_open_handles(&j->root, take_fd(&j->init.root_fd), &j->handles, err);
}

static int nested_enter(struct jail *j, struct cj_error *err)
{
	if (privileges_nest(j->plan->root.uid, j->plan->root.gid, err) < 0)
		return -err->code;
	/* Init is dumpable from privileges_nest() to privileges_drop(): only then may it open files
	 * of /proc/self. */
	j->init.oom_fd = open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC);
	if (j->plan->uses_zygote && init_adoption_open_program_user(&j->init.adoption, err) < 0)
		return -err->code;
	return child_die_with_parent(j->link.sock_fd, err); /* another change of credentials */
}

static int limits_enter(struct jail *j, struct cj_error *err)
{
	if (is_reduced(j))
		return init_reduced_limits(j, err);
	return limits_apply(&j->plan->limits, !j->cgroup.enforced[CGROUP_PIDS], err);
}

static int no_new_enter(struct jail *j, struct cj_error *err)
{
	(void)j;
	return privileges_no_new(err);
}

static int landlock_enter(struct jail *j, struct cj_error *err)
{
	if (is_reduced(j))
		return init_reduced_landlock(j, err);
	const struct rootfs_spec *root = &j->plan->root;
	auto_free const char **places = calloc(root->nbinds + 1, sizeof(*places));
	if (!places)
		return cj_fail(err, ENOMEM, "list the writable places");
	const struct landlock_place opened[] = { { "/box", j->handles.box_fd },
						 { "/proc", j->handles.proc_fd },
						 { "/", j->handles.root_fd } };
	const struct landlock_jail jail = { .is_writable = root->writable,
					    .places = places,
					    .nplaces = rootfs_list_writable(root, places),
					    .opened = opened,
					    .nopened = COUNT_OF(opened) };
	/* The result of this call, not of another landlock_abi(): that may fail for lack of
	 * memory. */
	int rc =
	    landlock_apply(&jail, j->plan->uses_zygote ? &j->init.adoption.ruleset_fd : NULL, err);
	j->layers[LAYER_LANDLOCK] = rc > 0 ? LAYER_ON : LAYER_ABSENT;
	return rc;
}

static int drop_enter(struct jail *j, struct cj_error *err)
{
	/* Without namespaces init has none since it became the jail's user. */
	return is_full(j) ? privileges_drop(j->handles.proc_fd, err) : child_become_undumpable(err);
}

/* The listener travels with STEP_SEALED, and init keeps no copy. */
static int filter_enter(struct jail *j, struct cj_error *err)
{
	auto_fd int listener_fd = -1;
	j->filter.closes_uncounted = !j->cgroup.enforced[CGROUP_MEMORY];
	/* First: the other one asks the supervisor about further filters. */
	if (is_reduced(j) && filter_load_reduced(err) < 0)
		return -err->code;
	if (filter_load(&j->filter, &listener_fd, err) < 0)
		return -err->code;

	const struct sealed sealed = {
		.has_landlock = j->layers[LAYER_LANDLOCK] == LAYER_ON,
		.hostname_errno = j->hostname_errno,
	};
	int fds[SEALED_OVERLAYS + OVERLAYS_MAX + 1] = { j->handles.box_fd, j->handles.root_fd,
							j->handles.proc_fd };
	size_t count = SEALED_OVERLAYS;
	for (size_t i = 0; i < j->handles.noverlays; i++)
		fds[count++] = j->handles.overlay_fds[i];
	if (listener_fd >= 0)
		fds[count++] = listener_fd;
	if (step_tell(&j->link, STEP_SEALED, &sealed, sizeof(sealed), fds, count, err) < 0)
		return -err->code;
	jail_close_handles(j, take_fd(&listener_fd));
	return 0;
}

/* No row has a `leave`: all of it ends with the process. */
/* clang-format off */
static const struct stage init_stages[] = {
	/* name, is_wanted, enter, leave, and why it stands here */
	{ "init", NULL, detach_enter, NULL },
		/* gives up the caller's descriptors, signals, session and keyring */
	{ "sources", is_full, sources_enter, NULL },
		/* with the caller's ids, while the supervisor writes the maps */
	{ "id map", NULL, mapped_enter, NULL },
		/* becomes the jail's user: user_namespaces(7) */
	{ "private directory", is_reduced, init_reduced_handles, NULL },
		/* in the place of the root; the supervisor has made it for the jail's user */
	{ "root", is_full, root_enter, NULL },
		/* after the map: new files need a mapped owner */
	{ "network", is_full, network_open_enter, NULL },
		/* its namespace was made meanwhile; "lo" needs a capability */
	{ "hostname", is_full, hostname_enter, NULL },
		/* needs CAP_SYS_ADMIN in the uts namespace */
	{ "handles", is_full, handles_enter, NULL },
		/* before Landlock restricts what may be opened */
	{ "proc", is_full, kernel_enter, NULL },
		/* the last writes to /proc/sys, which then becomes read-only */
	{ "user namespace", is_full, nested_enter, NULL },
		/* no row below needs a capability over the namespaces */
	{ "rlimits", NULL, limits_enter, NULL },
		/* hard limits can only be lowered: setrlimit(2) */
	{ "no new privileges", NULL, no_new_enter, NULL },
		/* landlock(7) and seccomp(2) require it */
	{ "landlock", NULL, landlock_enter, NULL },
		/* a second layer, after the mounts */
	{ "capabilities", NULL, drop_enter, NULL },
		/* no row below needs one */
	{ "guard", is_reduced, init_reduced_guard, NULL },
		/* in init's Landlock domain, before the program is in one below */
	{ "filter", NULL, filter_enter, NULL },
		/* last: the rows above use calls that it refuses */
};
/* clang-format on */

/* Returns 1 if no process but this one is left. */
static int live(struct jail *j, struct cj_error *err)
{
	if (stages_enter(j, init_stages, COUNT_OF(init_stages), err) < 0) {
		net_namespace_explain(&j->init.netns, err);
		return -err->code;
	}
	pid_t main_pid = init_take_program(j, err);
	if (main_pid < 0) {
		cj_stage(err, "program");
		return main_pid;
	}
	if (main_pid == INIT_BECOMES_SESSION)
		return j->init.serve(j, err);
	/* With init's end the kernel kills every process that is left in its pid namespace:
	 * pid_namespaces(7). */
	return main_pid == 0 ? 0 : init_reap_until_ended(&j->link, main_pid, err);
}

/*
 * Returns when there is no supervisor.  It kills an init that is alone.  If init ended by itself,
 * it would take the namespaces apart, for a millisecond, on the processor on which the supervisor
 * has just been woken.
 */
static void await_kill(const struct step_link *link)
{
	auto_step_msg struct step_msg none = { 0 };
	struct cj_error gone;
	(void)!step_next(link, &none, &gone);
}

_Noreturn void init_main(struct jail *j)
{
	struct cj_error err = { 0 };
	int is_alone = live(j, &err);
	if (is_alone < 0)
		step_abort(&j->link, &err);
	else if (is_alone && is_full(j))
		await_kill(&j->link);
	init_end_all();      /* in a full jail the kernel does it */
	_exit(EXIT_SUCCESS); /* the error is sent; without it the supervisor sees the link close */
}
