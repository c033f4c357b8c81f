/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/jail/prepare/jail_init.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "rootfs/id_namespace.h"
#include "rootfs/mounts.h"
#include "runtime/base/files/fd.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"
#include "runtime/kernel/ids/refusal.h"
#include "runtime/kernel/process/capabilities.h"
#include "runtime/kernel/process/spawn.h"
#include "runtime/jail/init/init.h"
#include "runtime/jail/jail_state.h"
#include "runtime/jail/protocol.h"

#define JAIL_NAMESPACES                                                                            \
	(CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP)

static struct spawn_place place_of(const struct jail *j)
{
	return (struct spawn_place){ .cgroup_fd = cgroup_birth_fd(&j->cgroup),
				     .path = j->cgroup.path,
				     /* clone3(2) is often refused where namespaces are */
				     .moves = j->moves_init || j->plan->reduced };
}

int jail_init_enter(struct jail *j, struct cj_error *err)
{
	int ends[2];
	if (step_pair(ends, 0, err) < 0)
		return -err->code;
	step_limit_wait(ends[0], STEP_TIMEOUT_MS);

	const struct spawn_place place = place_of(j);
	const uint64_t namespaces = j->plan->reduced ? 0 : JAIL_NAMESPACES;
	pid_t pid = spawn_process(&place, namespaces | CLONE_PIDFD, SIGCHLD, &j->init_pidfd);
	if (pid == 0) {
		/* From here: init. */
		j->link = (struct step_link){ ends[1], "the supervisor", step_names };
		init_main(j);
	}
	int code = errno;
	cj_close(&ends[1]);
	if (pid < 0) {
		cj_close(&ends[0]);
		int rc = cj_fail(err, code, "create the jail's namespaces");
		if (code == EAGAIN)
			cj_hint(err, "too many processes for this user or cgroup");
		if (code == EPERM || code == EACCES || code == ENOSPC || code == EUSERS)
			refusal_hint(err);
		return rc;
	}
	j->init_pid = pid;
	if (j->plan->reduced) {
		j->is_shared = true;
		j->parent_pid = pid;
	}
	j->link = (struct step_link){ ends[0], "init", step_names };
	int rc = spawn_move(&place, pid, err); /* it does nothing before it has its id map */
	if (rc < 0)
		jail_init_leave(j);
	return rc;
}

/* A SIGKILL is never lost: if it was sent, init need only be reaped. */
static void end_init(struct jail *j)
{
	if (j->init_is_killed)
		cj_reap_child(&j->init_pidfd);
	else
		cj_end_child(&j->init_pidfd);
	j->init_is_killed = false;
}

/* Until init has sealed itself, its end may be the kernel's doing. */
void jail_init_leave(struct jail *j)
{
	const struct spawn_place place = place_of(j);
	if (!j->is_sealed)
		j->dies_at_birth = spawn_kills(&place);
	cj_close(&j->link.sock_fd);
	end_init(j);
	j->init_pid = 0;
}

int jail_init_ids_enter(struct jail *j, struct cj_error *err)
{
	return idmap_choose(j->runtime_dir_fd, &j->ids, err);
}

/* The id is free for another jail only when no process has it: the jail's processes end first. */
void jail_init_ids_leave(struct jail *j)
{
	end_init(j);
	idmap_release(&j->ids);
}

/* Prefers init's own error to the write of a map that failed because init had ended. */
static int take_init_error(struct jail *j, struct cj_error *err)
{
	struct cj_error why = { 0 };
	while (why.code == 0 && fd_await(j->link.sock_fd, POLLIN, 0)) {
		auto_step_msg struct step_msg msg = { 0 };
		(void)step_next(&j->link, &msg, &why); /* steps before its error do not matter */
	}
	if (why.code != 0)
		*err = why;
	return -err->code;
}

static int set_ids(int tree_fd, uint64_t attrs, const struct stat *owner, const struct idmap *ids,
		   struct cj_error *err)
{
	/* A map from one owner to the jail's user. */
	char uid_map[32], gid_map[32];
	(void)snprintf(uid_map, sizeof(uid_map), "%u %u 1", owner->st_uid, ids->uid);
	(void)snprintf(gid_map, sizeof(gid_map), "%u %u 1", owner->st_gid, ids->gid);
	auto_fd int namespace_fd = id_namespace_open(uid_map, gid_map, err);
	if (namespace_fd < 0)
		return namespace_fd;
	struct mount_attr wanted = {
		.attr_set = MOUNT_ATTR_IDMAP | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | attrs,
		.userns_fd = (uint64_t)namespace_fd,
	};
	if (sys_mount_setattr(tree_fd, "", AT_EMPTY_PATH, &wanted) == 0)
		return 0;
	int rc = cj_fail(err, errno, "give it the jail's ids");
	cj_hint(err, "its file system or this kernel has no ID-mapped mounts for us: start cejail "
		     "as the directory's owner, or copy it in with --file");
	return rc;
}

static int shift_one(const struct bind_spec *bind, const struct idmap *ids, struct cj_error *err)
{
	auto_fd int dir_fd = sys_openat2(AT_FDCWD, bind->source, O_PATH | O_DIRECTORY, 0,
					 RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
	struct stat owner;
	if (dir_fd < 0 || fstat(dir_fd, &owner) < 0)
		return cj_fail(err, errno, "open it");
	auto_fd int tree_fd =
	    sys_open_tree(dir_fd, "", OPEN_TREE_CLONE | AT_NO_AUTOMOUNT | AT_EMPTY_PATH);
	if (tree_fd < 0)
		return cj_fail(err, errno, "clone its mount");
	/* an overlay's upper layer takes the changes */
	uint64_t attrs = bind->kind == BIND_OVERLAY ? MOUNT_ATTR_RDONLY : 0;
	int rc = set_ids(tree_fd, attrs, &owner, ids, err);
	return rc < 0 ? rc : take_fd(&tree_fd);
}

int jail_init_shift(const struct rootfs_spec *root, const struct idmap *ids,
		    int out_fds[OVERLAYS_MAX], size_t *out_count, struct cj_error *err)
{
	*out_count = 0;
	for (size_t i = 0; ids->lock_fd >= 0 && i < root->nbinds; i++) {
		if (!rootfs_bind_is_shifted(&root->binds[i]) || *out_count == OVERLAYS_MAX)
			continue;
		int fd = shift_one(&root->binds[i], ids, err);
		if (fd < 0) {
			while (*out_count > 0)
				cj_close(&out_fds[--*out_count]);
			return cj_wrap(err, "%s '%s'",
				       root->binds[i].kind == BIND_KEPT ? "--cache" : "--overlay",
				       root->binds[i].source);
		}
		out_fds[(*out_count)++] = fd;
	}
	return 0;
}

int jail_init_map_enter(struct jail *j, struct cj_error *err)
{
	if (!j->plan->reduced && idmap_write(&j->ids, j->init_pid, err) < 0)
		return take_init_error(j, err);
	int fds[OVERLAYS_MAX];
	size_t count;
	if (jail_init_shift(&j->root, &j->ids, fds, &count, err) < 0)
		return -err->code;
	const struct ids_mapped mapped = { j->ids.may_setgroups, j->ids.uid, j->ids.gid };
	int rc = step_tell(&j->link, STEP_IDS_MAPPED, &mapped, sizeof(mapped), fds, count, err);
	while (count > 0)
		cj_close(&fds[--count]);
	return rc;
}

int jail_init_seal_enter(struct jail *j, struct cj_error *err)
{
	auto_step_msg struct step_msg msg = { 0 };
	struct sealed sealed;
	if (step_await(&j->link, STEP_SEALED, &msg, err) < 0)
		return -err->code;
	size_t listener = SEALED_OVERLAYS + rootfs_count_overlays(&j->root);
	if (msg.size != sizeof(sealed) || msg.nfds < listener)
		return cj_fail(err, EPROTO, "receive the sealed jail");
	memcpy(&sealed, msg.data, sizeof(sealed));

	if (msg.nfds > listener &&
	    filter_watch_create(take_fd(&msg.fds[listener]), &j->filter, &j->watch, err) < 0)
		return -err->code;
	for (size_t i = SEALED_OVERLAYS; i < listener; i++)
		j->handles.overlay_fds[j->handles.noverlays++] = take_fd(&msg.fds[i]);
	j->handles.box_fd = take_fd(&msg.fds[SEALED_BOX]);
	j->handles.root_fd = take_fd(&msg.fds[SEALED_ROOT]);
	j->handles.proc_fd = take_fd(&msg.fds[SEALED_PROC]);
	if (j->watch)
		filter_watch_set_proc(j->watch, j->handles.proc_fd);
	if (!filter_reports(&j->filter))
		j->layers[LAYER_SYSCALL_REPORT] = LAYER_OFF;
	else
		j->layers[LAYER_SYSCALL_REPORT] = j->watch ? LAYER_ON : LAYER_ABSENT;
	j->layers[LAYER_LANDLOCK] = sealed.has_landlock ? LAYER_ON : LAYER_ABSENT;
	j->hostname_errno = sealed.hostname_errno;
	j->is_sealed = true;
	return 0;
}

void jail_init_seal_leave(struct jail *j)
{
	jail_close_handles(j, j->watch ? filter_watch_take_listener(j->watch) : -1);
	filter_watch_destroy(&j->watch);
}

#define KILL_WAIT_MS 5000 /* a process in an uninterruptible call ends late, not never */

static bool wait_for_init(int pidfd)
{
	return pidfd < 0 || fd_await(pidfd, POLLIN, KILL_WAIT_MS);
}

/* Root's jail has a user of its own, as with namespaces: root's files are readable to uid 0 even
 * without capabilities. */
int jail_init_private_name(struct jail *j, struct cj_error *err)
{
	static const unsigned needed[] = { CAP_CHOWN,  CAP_DAC_OVERRIDE, CAP_FOWNER,
					   CAP_SETUID, CAP_SETGID,       CAP_KILL };
	bool may = true;
	for (size_t i = 0; i < COUNT_OF(needed); i++)
		may &= geteuid() != 0 || capabilities_is_effective(needed[i]);
	if (!may) {
		cj_refuse_as(err, EPERM,
			     "root needs CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_FOWNER, "
			     "CAP_SETUID, CAP_SETGID and CAP_KILL");
		return cj_hint(err, "start cejail as an ordinary user");
	}
	return private_dir_name(j->id, j->private_dir, err);
}

int jail_init_private_enter(struct jail *j, struct cj_error *err)
{
	return private_dir_make(j->private_dir, j->ids.uid, j->ids.gid, err);
}

void jail_init_private_leave(struct jail *j)
{
	struct cj_error why = { 0 };
	if (j->private_dir[0] == '\0')
		return;
	if (j->init_pidfd >= 0 && !jail_init_kill(j, false))
		j->leaf_stays = true; /* a living process can still write: a sweep removes it */
	else if (private_dir_remove(j->private_dir, j->id, &why) < 0)
		j->leaf_stays = true;
}

bool jail_init_kill(struct jail *j, bool is_alone)
{
	/* Without a pid namespace init kills them and ends last; if it can't, its guard does. */
	if (j->plan->reduced && j->init_pidfd >= 0) {
		(void)sys_pidfd_send_signal(j->init_pidfd,
					    INIT_END_SIGNAL); /* ESRCH: dead already */
		if (wait_for_init(j->init_pidfd))
			return true;
	}
	if (j->init_pidfd >= 0) /* ESRCH: dead already */
		j->init_is_killed |= sys_pidfd_send_signal(j->init_pidfd, SIGKILL) == 0;
	/* No process is left that could write, so there is no need to wait 0.25 ms for init. */
	if (is_alone || wait_for_init(j->init_pidfd))
		return true;
	cgroup_kill(&j->cgroup);
	if (wait_for_init(j->init_pidfd))
		return true;
	jail_warn(j, "a process of the jail did not die within %d s", 2 * KILL_WAIT_MS / 1000);
	cj_close(&j->init_pidfd); /* a killed process runs no more code of its program */
	return false;
}
