/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The child: from its namespaces to execve(2), and, with a pid namespace, the process that reaps.
 *
 * The order that the kernel forces:
 *	ids            before anything is made: a file needs a mapped owner
 *	tree           while capabilities apply to the mount namespace
 *	second map     after it: a devpts needs id 0, the program another one
 *	capabilities   after it: a new user namespace gives all
 *	seccomp        last, as the filter may forbid each of the calls above
 */
#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "netns/network.h"
#include "netns/rtnetlink/links.h"
#include "runtime/base/child.h"
#include "runtime/base/files/fd.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"
#include "runtime/front/bwrap/bwrap.h"
#include "runtime/jail/init/init.h"
#include "runtime/kernel/process/capabilities.h"
#include "runtime/kernel/process/privileges.h"

#define MAP_MAX 64

struct ids {
	uint32_t uid, gid;
};

/* Maps one user and one group of the parent's namespace.  setgroups(2) is denied, so that no
 * process drops a group that restricts it (CVE-2014-8989). */
static int map_ids(int proc_fd, const struct ids *inside, const struct ids *outside,
		   struct cj_error *err)
{
	char uid_map[MAP_MAX], gid_map[MAP_MAX];
	(void)snprintf(uid_map, sizeof(uid_map), "%u %u 1\n", inside->uid, outside->uid);
	(void)snprintf(gid_map, sizeof(gid_map), "%u %u 1\n", inside->gid, outside->gid);
	const struct fd_text uid_files[] = { { "self/uid_map", uid_map } };
	const struct fd_text gid_files[] = { { "self/setgroups", "deny" },
					     { "self/gid_map", gid_map } };
	if (fd_put_files(proc_fd, uid_files, 1, err) < 0)
		return cj_fail(err, err->code, "setting up uid map");
	if (fd_put_files(proc_fd, gid_files, 2, err) < 0)
		return cj_fail(err, err->code, "setting up gid map");
	return 0;
}

static struct ids final_ids(const struct bwrap_start *s)
{
	const struct bwrap_config *c = s->config;
	return (struct ids){ c->uid >= 0 ? (uint32_t)c->uid : s->uid,
			     c->gid >= 0 ? (uint32_t)c->gid : s->gid };
}

/* A devpts needs id 0 in its user namespace. */
static struct ids ids_of_setup(const struct bwrap_start *s)
{
	for (size_t i = 0; i < s->config->nops; i++)
		if (s->config->ops[i].kind == BWRAP_DEV)
			return (struct ids){ 0, 0 };
	return final_ids(s);
}

static int enter_ids(const struct bwrap_start *s, struct cj_error *err)
{
	const struct ids inside = ids_of_setup(s), outside = { s->uid, s->gid };
	if (!(s->namespaces & CLONE_NEWUSER))
		return 0;
	auto_fd int proc_fd = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (proc_fd < 0)
		return cj_fail(err, errno, "Can't open /proc");
	if (map_ids(proc_fd, &inside, &outside, err) < 0)
		return -err->code;
	if (s->config->disables_userns &&
	    fd_put_file(proc_fd, "sys/user/max_user_namespaces", "1", err) < 0)
		return cj_wrap(err, "cannot disable user namespaces");
	return 0;
}

static int nest(const struct bwrap_start *s, struct cj_error *err)
{
	const struct ids now = ids_of_setup(s), last = final_ids(s);
	bool is_final = now.uid == last.uid && now.gid == last.gid;
	if (!(s->namespaces & CLONE_NEWUSER) ||
	    (is_final && !s->config->disables_userns && !s->locks_mounts && !s->network))
		return 0;
	/* No capability of the program applies to what the user namespace above owns: the network.
	 * In a mount namespace below this one no mount can become writable or go. */
	if (unshare(CLONE_NEWUSER | (s->locks_mounts ? CLONE_NEWNS : 0)) < 0)
		return cj_fail(err, errno, "unshare user ns");
	return map_ids(s->tree.proc_fd, &last, &now, err);
}

/* The monitor builds it while the tree is built here. */
static int begin_network(const struct bwrap_start *s, struct cj_error *err)
{
	struct cj_error ignored;
	if (s->network && init_network_open(s->network, &s->link, err) < 0)
		return cj_wrap(err, "network");
	if (s->network) /* in a container /proc/sys may be read-only: then without ping */
		(void)!network_allow_ping(ids_of_setup(s).gid, &ignored);
	if (!s->network && s->namespaces & CLONE_NEWNET && links_raise_loopback(err) < 0)
		return cj_fail(err, err->code, "loopback: Failed RTM_NEWADDR");
	return 0;
}

static int check_userns(const struct bwrap_start *s, struct cj_error *err)
{
	if (!s->config->asserts_userns)
		return 0;
	if (unshare(CLONE_NEWUSER) == 0)
		return cj_reject(err,
				 "creation of new user namespaces was not disabled as requested");
	/* ENOSPC, EUSERS: the limit; EPERM: this process may not; EINVAL: the kernel has none. */
	return errno == ENOSPC || errno == EUSERS || errno == EPERM || errno == EINVAL
		   ? 0
		   : cj_fail(err, errno, "unshare for --assert-userns-disabled");
}

/* Root keeps what it had outside, a user keeps nothing; but what the options say counts. */
static int limit_capabilities(const struct bwrap_start *s, struct cj_error *err)
{
	const struct bwrap_config *c = s->config;
	uint64_t own = 0;
	if (s->uid == 0 && !c->sets_caps) /* execve(2) of root takes the bounding set */
		return capabilities_bound(s->caps, -1, err);
	if (capabilities_of_self(&own, err) < 0)
		return -err->code;
	uint64_t wanted = (s->uid == 0 ? s->caps & c->caps_kept : 0) | c->caps_added;
	if (c->caps_added >> 63) /* ALL: no capability has this number */
		wanted &= own;
	if (wanted & ~own)
		return cj_fail(err, EPERM, "capset failed: a capability of --cap-add");
	const struct capabilities caps = {
		.effective = wanted, .permitted = wanted, .inheritable = wanted, .ambient = wanted
	};
	return capabilities_bound(wanted, -1, err) < 0 ? -err->code
						       : capabilities_apply(&caps, 0, err);
}

/* As bubblewrap: the caller's directory if it is inside, else the home directory, else "/". */
static int enter_directory(const struct bwrap_start *s, struct cj_error *err)
{
	const char *wanted = s->config->directory, *home = getenv("HOME"), *now = "/";
	if (wanted && chdir(wanted) < 0)
		return cj_fail(err, errno, "Can't chdir to %s", wanted);
	if (wanted)
		now = wanted;
	else if (s->directory && chdir(s->directory) == 0)
		now = s->directory;
	else if (home && chdir(home) == 0)
		now = home;
	return setenv("PWD", now, 1) < 0 ? cj_fail(err, errno, "set PWD") : 0;
}

/* --- from here on the root is the sandbox's --- */

static int load_filters(const struct bwrap_start *s, struct cj_error *err)
{
	for (size_t i = 0; i < s->nfilters; i++)
		if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &s->filters[i]) < 0)
			return cj_fail(err, errno, "prctl(PR_SET_SECCOMP)");
	return 0;
}

static int execute(const struct bwrap_start *s, struct cj_error *err)
{
	const char *const *argv = s->config->argv;
	const char *file = argv[0];
	if (s->config->dies_with_parent && child_die_with_parent(-1, err) < 0)
		return -err->code;
	if (s->config->argv0)
		((const char **)argv)[0] = s->config->argv0;
	if (load_filters(s, err) < 0)
		return -err->code;
	(void)execvp(file, (char *const *)argv);
	return cj_fail(err, errno, "execvp %s", file);
}

/* The locks belong to this process: fcntl(2). */
static int take_locks(const struct bwrap_start *s, struct bwrap_fds *kept, struct cj_error *err)
{
	for (size_t i = 0; i < s->config->lock_files.count; i++) {
		const char *path = s->config->lock_files.items[i];
		const struct flock lock = { .l_type = F_RDLCK, .l_whence = SEEK_SET };
		int fd = open(path, O_RDONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
		if (fd < 0)
			return cj_fail(err, errno, "Unable to open lock file %s", path);
		if (fcntl(fd, F_SETLK, &lock) < 0)
			return cj_fail(err, errno, "Unable to lock file %s", path);
		if (kept->count == BWRAP_FDS_MAX)
			return cj_reject(err, "more than %d lock files", BWRAP_FDS_MAX);
		kept->fds[kept->count++] = fd;
	}
	return 0;
}

/*
 * Reaps until no process is left.  It has the filters of the program, which else could make it act
 * (ptrace(2) by the same user), and is not dumpable.
 */
static int reap(const struct bwrap_start *s, pid_t program, int go_fd, struct cj_error *err)
{
	struct bwrap_fds kept = { .fds = { s->report_fd, s->config->sync_fd, go_fd }, .count = 3 };
	int last = 0;
	if (take_locks(s, &kept, err) < 0)
		return -err->code;
	if (fd_close_others(CHILD_FIRST_FD, kept.fds, kept.count) < 0)
		return cj_fail(err, errno, "close the caller's descriptors");
	if (load_filters(s, err) < 0)
		return -err->code;
	/* EPIPE: it has ended meanwhile, and has said why. */
	if (go_fd >= 0 && fd_write_all(go_fd, "", 1, "the command", err) < 0 && err->code != EPIPE)
		return -err->code;
	cj_close(&go_fd);
	for (;;) {
		int status = 0;
		pid_t pid = sys_waitpid(-1, &status, 0);
		if (pid < 0)
			_exit(child_exit_status(last));
		if (pid != program)
			continue;
		const struct bwrap_report report = { .status = status };
		last = status;
		(void)!write(s->report_fd, &report, sizeof(report)); /* the monitor may be gone */
	}
}

/* One byte of another process of ours; if that has ended, it has said why, and so do we end. */
static int await_go(int *fd, const char *whose, struct cj_error *err)
{
	char byte;
	ssize_t got = sys_read(*fd, &byte, 1);
	if (got == 0)
		_exit(BWRAP_FAILED);
	if (got < 0)
		return cj_fail(err, errno, "wait for %s", whose);
	cj_close(fd);
	return 0;
}

/* A command with CAP_SYS_PTRACE could use an init that has no filters yet: it waits for them. */
static int start_beside_init(const struct bwrap_start *s, struct cj_error *err)
{
	int go[2] = { -1, -1 };
	if (s->nfilters > 0 && pipe2(go, O_CLOEXEC) < 0)
		return cj_fail(err, errno, "pipe2");
	if (child_become_undumpable(err) < 0) /* until execve(2) the command is, too */
		return -err->code;
	pid_t pid = fork();
	if (pid < 0)
		return cj_fail(err, errno, "Can't fork for child");
	if (pid > 0)
		return reap(s, pid, go[1], err);
	cj_close(&go[1]);
	if (go[0] >= 0 && await_go(&go[0], "init", err) < 0)
		return -err->code;
	return execute(s, err);
}

static int start_program(const struct bwrap_start *s, struct cj_error *err)
{
	const struct bwrap_config *c = s->config;
	char byte;
	/* A change of credentials has cleared the request: prctl(2). */
	if ((s->is_limited || c->dies_with_parent) && child_die_with_parent(s->report_fd, err) < 0)
		return -err->code;
	if (limits_apply_asked(&s->rlimits, true, err) < 0)
		return -err->code;
	if (c->starts_session && setsid() < 0)
		return cj_fail(err, errno, "setsid");
	if (c->block_fd >= 0) {
		(void)!sys_read(c->block_fd, &byte, 1); /* its end counts, too */
		(void)close(c->block_fd);
	}
	if (c->is_pid_1 ||
	    (!(s->namespaces & CLONE_NEWPID) && c->lock_files.count == 0 && c->sync_fd < 0))
		return execute(s, err);
	return start_beside_init(s, err);
}

static int live(struct bwrap_start *s, struct cj_error *err)
{
	const struct bwrap_config *c = s->config;
	if ((s->is_limited || c->dies_with_parent) && child_die_with_parent(-1, err) < 0)
		return -err->code;
	if (await_go(&s->go_fd, "the monitor", err) < 0)
		return -err->code;
	if (privileges_no_new(err) < 0 || enter_ids(s, err) < 0)
		return -err->code;
	if (c->hostname && sethostname(c->hostname, strlen(c->hostname)) < 0)
		return cj_fail(err, errno, "Can't set hostname to %s", c->hostname);
	if (begin_network(s, err) < 0)
		return -err->code;
	s->tree.config = c;
	s->tree.has_new_proc = s->namespaces & CLONE_NEWPID;
	if (bwrap_tree_build(&s->tree, err) < 0 || bwrap_tree_enter(&s->tree, err) < 0 ||
	    (s->is_limited && bwrap_limits_protect(s->tree.proc_fd, err) < 0) ||
	    (s->network && await_go(&s->link.sock_fd, "the network", err) < 0) || nest(s, err) < 0)
		return -err->code;
	cj_close(&s->tree.proc_fd);
	if (check_userns(s, err) < 0 || limit_capabilities(s, err) < 0 ||
	    enter_directory(s, err) < 0)
		return -err->code;
	return start_program(s, err);
}

_Noreturn void bwrap_inside(struct bwrap_start *s)
{
	struct bwrap_report report = { .has_failed = true };
	struct cj_error err = { 0 };
	(void)live(s, &err);
	report.error = err;
	bwrap_print_error(s->config, &err);
	(void)!write(s->report_fd, &report, sizeof(report)); /* the monitor may be gone */
	_exit(BWRAP_FAILED);
}
