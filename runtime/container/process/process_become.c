/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process of ours becomes what config.json says, short of the filter and execve(2).
 *
 * The order is the kernel's:
 *
 *	streams, session    as root of the container: a terminal gets its owner
 *	bounding set        while CAP_SETPCAP is effective
 *	working directory   tried as root first: users start in directories that they can't enter
 *	groups, user        while CAP_SETGID and CAP_SETUID are effective; PR_SET_KEEPCAPS keeps
 *	                    the permitted set
 *	capabilities        the four sets that are left, ambient last: it needs the others
 *	no_new_privs        last, because nothing above needs it and nothing below minds it
 */
#include <grp.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "rootfs/tree/tree_place.h"
#include "runtime/base/child.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"
#include "runtime/container/process/console.h"
#include "runtime/container/process/process_parts.h"
#include "runtime/kernel/process/privileges.h"

#define DEFAULT_UMASK 0022

/* What each step has. */
struct becoming {
	const struct process *p;
	const struct console *console; /* NULL: no terminal */
	int cwd_errno;                 /* of the first try */
};

static int start_session(struct becoming *b, struct cj_error *err)
{
	child_default_signals();
	if (child_unblock_signals(err) < 0)
		return -err->code;
	if (b->console)
		return console_enter(b->console, err);
	/* A member of the caller's session could push input into its terminal: TIOCSTI. */
	return child_start_session(err);
}

/* Engines open the streams as root, and programs open them again by /dev/stderr. */
static int give_streams(struct becoming *b, struct cj_error *err)
{
	const struct oci_user *user = &b->p->wanted->user;
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		struct stat st;
		if (fstat(fd, &st) < 0)
			return cj_fail(err, errno, "look at descriptor %d", fd);
		/* Not a device or a file of the host: nobody made /dev/null for this container. */
		if (!S_ISFIFO(st.st_mode) && !S_ISSOCK(st.st_mode))
			continue;
		/* Best effort: the owner may not be mapped.  The open descriptor works anyway. */
		int rc = st.st_uid != user->uid ? fchown(fd, user->uid, (gid_t)-1) : 0;
		(void)rc;
	}
	return 0;
}

static int close_others(struct becoming *b, struct cj_error *err)
{
	unsigned first = CHILD_FIRST_FD + b->p->context.preserved_fds;
	if (sys_close_range(first, ~0u, CLOSE_RANGE_CLOEXEC) < 0)
		return cj_fail(err, errno, "close all other descriptors at execve(2)");
	return 0;
}

static int join_keyring(struct becoming *b, struct cj_error *err)
{
	return b->p->context.keeps_keyring ? 0 : privileges_join_keyring(err);
}

static int set_personality(struct becoming *b, struct cj_error *err)
{
	if (b->p->has_personality && personality(b->p->personality) < 0)
		return cj_fail(err, errno, "set the personality 0x%lx", b->p->personality);
	return 0;
}

static int set_memory_policy(struct becoming *b, struct cj_error *err)
{
	return process_adjust_own_memory(b->p->memory_policy, err);
}

static int set_umask(struct becoming *b, struct cj_error *err)
{
	const struct oci_u64 *mask = &b->p->wanted->user.umask;
	(void)err;                                                       /* it can't fail */
	(void)umask(mask->is_set ? (mode_t)mask->value : DEFAULT_UMASK); /* returns the old one */
	return 0;
}

static int bound_caps(struct becoming *b, struct cj_error *err)
{
	return capabilities_bound(b->p->caps.bounding, err);
}

static int try_cwd(struct becoming *b, struct cj_error *err)
{
	(void)err; /* enter_cwd() reports it */
	b->cwd_errno = chdir(b->p->wanted->cwd) < 0 ? errno : 0;
	return 0;
}

static int set_groups(struct becoming *b, struct cj_error *err)
{
	const struct oci_user *user = &b->p->wanted->user;
	if (setgroups(user->ngroups, user->groups) == 0)
		return 0;
	int why = errno;
	/* A user namespace that an ordinary user made denies it: its groups may restrict.  They are
	 * not mapped there.  user_namespaces(7) */
	if (why == EPERM && user->ngroups == 0 && capabilities_is_effective(CAP_SETGID))
		return 0;
	int rc = cj_fail(err, why, "set %zu additional groups", user->ngroups);
	if (why == EINVAL)
		(void)cj_hint(err,
			      "linux.gidMappings must map each of process.user.additionalGids");
	return rc;
}

static int set_ids(struct becoming *b, struct cj_error *err)
{
	const struct oci_user *user = &b->p->wanted->user;
	uid_t uid[3];
	gid_t gid[3];
	if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) < 0)
		return cj_fail(err, errno, "keep the capabilities over the change of user");
	if (setresgid(user->gid, user->gid, user->gid) < 0)
		return cj_fail(err, errno, "become group %u", user->gid);
	if (setresuid(user->uid, user->uid, user->uid) < 0)
		return cj_fail(err, errno, "become user %u", user->uid);
	/* With fs.suid_dumpable=1 the change has made this process dumpable. */
	if (child_become_undumpable(err) < 0)
		return -err->code;
	if (prctl(PR_SET_KEEPCAPS, 0, 0, 0, 0) < 0)
		return cj_fail(err, errno, "clear the keep-capabilities flag");

	if (getresuid(&uid[0], &uid[1], &uid[2]) < 0 || getresgid(&gid[0], &gid[1], &gid[2]) < 0)
		return cj_fail(err, errno, "read the user and group ids");
	for (int i = 0; i < 3; i++)
		if (uid[i] != user->uid || gid[i] != user->gid)
			return cj_fail(err, EPERM, "verify user %u and group %u", user->uid,
				       user->gid);
	return 0;
}

static int apply_caps(struct becoming *b, struct cj_error *err)
{
	return capabilities_apply(&b->p->caps, b->p->kept_caps, err);
}

static int no_new_privileges(struct becoming *b, struct cj_error *err)
{
	return b->p->no_new_privileges ? privileges_no_new(err) : 0;
}

/*
 * Directories may be open to root or to the user only.  What was entered must be in the container:
 * by /proc/self/fd/N or a link it might be one of the host, for which the kernel has no path here
 * (CVE-2024-21626).  Not getcwd(3), which hides that; and before the filter, which may refuse it.
 */
static int enter_cwd(struct becoming *b, struct cj_error *err)
{
	const char *cwd = b->p->wanted->cwd;
	char path[PATH_MAX];
	if (b->cwd_errno != 0 && chdir(cwd) < 0)
		return cj_fail(err, errno, "process.cwd: change to '%s'", cwd);
	if (syscall(SYS_getcwd, path, sizeof(path)) < 0)
		return cj_fail(err, errno, "process.cwd: find the path of '%s'", cwd);
	if (path[0] != '/')
		return cj_reject_as(err, EPERM, "process.cwd: '%s' is outside the container's root",
				    cwd);
	return 0;
}

static int (*const steps[])(struct becoming *b, struct cj_error *err) = {
	start_session,     give_streams, close_others,      join_keyring, set_personality,
	set_memory_policy, set_umask,    bound_caps,        try_cwd,      set_groups,
	set_ids,           apply_caps,   no_new_privileges, enter_cwd,
};

int process_make_cwd(const struct process *p, int root_fd, struct cj_error *err)
{
	const char *cwd = p->wanted->cwd;
	const struct tree_path at = { root_fd, cwd, cwd, .follows_links = true };
	struct cj_error unmade = { 0 };
	auto_fd int fd = tree_place_open(&at, TREE_PLACE_GIVEN, &unmade);
	if (fd != -ENOENT)
		return 0;
	mode_t saved = umask(0);
	fd = tree_place_open(&at, TREE_PLACE_DIRECTORY, err);
	(void)umask(saved);
	return fd < 0 ? cj_wrap(err, "process.cwd") : 0;
}

int process_become(struct process *p, const struct console *console, struct cj_error *err)
{
	struct becoming b = { .p = p, .console = console };
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
		if (steps[i](&b, err) < 0)
			return -err->code;
	return 0;
}
