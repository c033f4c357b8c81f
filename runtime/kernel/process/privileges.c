/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/kernel/process/privileges.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/securebits.h>
#include <sched.h>
#include <sys/prctl.h>

#include "runtime/base/child.h"
#include "runtime/base/files/fd.h"
#include "runtime/base/sys.h"
#include "runtime/kernel/process/capabilities.h"

/* No bit that execve(2) or a change of ids could turn back into a capability. */
#define SECUREBITS                                                                                 \
	(SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP |                           \
	 SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_KEEP_CAPS_LOCKED | SECBIT_NO_CAP_AMBIENT_RAISE |   \
	 SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED)

int privileges_join_keyring(struct cj_error *err)
{
	/* ENOSYS: a kernel without keyrings has none to share. */
	if (sys_keyctl_join_session_keyring() >= 0 || errno == ENOSYS)
		return 0;
	(void)!cj_fail(err, errno, "join a session keyring of its own");
	return cj_hint_for(err, EDQUOT,
			   "each jail has one, and the kernel gives a user only so many: "
			   "run fewer jails at once, or as root "
			   "'sysctl -w kernel.keys.maxkeys=2000'");
}

int privileges_become(uid_t uid, gid_t gid, bool may_setgroups, struct cj_error *err)
{
	if (may_setgroups && setgroups(0, NULL) < 0)
		return cj_fail(err, errno, "empty the list of groups");
	if (setresgid(gid, gid, gid) < 0)
		return cj_fail(err, errno, "become group %u", gid);
	if (setresuid(uid, uid, uid) < 0)
		return cj_fail(err, errno, "become user %u", uid);
	return 0;
}

int privileges_limit_counts(struct cj_error *err)
{
	static const struct fd_text counts[] = {
		{ "/proc/sys/user/max_user_namespaces", "1" },
		{ "/proc/sys/user/max_inotify_instances", "16" },
		{ "/proc/sys/user/max_inotify_watches", "8192" },
	};
	return fd_put_files(AT_FDCWD, counts, COUNT_OF(counts), err);
}

int privileges_map_own(uid_t uid, gid_t gid, struct cj_error *err)
{
	char uid_map[32], gid_map[32];
	(void)snprintf(uid_map, sizeof(uid_map), "%u %u 1", uid, uid);
	(void)snprintf(gid_map, sizeof(gid_map), "%u %u 1", gid, gid);
	const struct fd_text files[] = {
		{ "/proc/self/setgroups", "deny" },
		{ "/proc/self/uid_map", uid_map },
		{ "/proc/self/gid_map", gid_map },
	};
	return fd_put_files(AT_FDCWD, files, COUNT_OF(files), err);
}

int privileges_nest(uid_t uid, gid_t gid, struct cj_error *err)
{
	if (unshare(CLONE_NEWUSER) < 0)
		return cj_fail(err, errno, "create a user namespace below the jail's");
	/* The change of ids made init undumpable, so that /proc/self belongs to another user:
	 * proc(5). */
	if (prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) < 0)
		return cj_fail(err, errno, "become dumpable");
	return privileges_map_own(uid, gid, err);
}

int privileges_no_new(struct cj_error *err)
{
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return cj_fail(err, errno, "set no_new_privs");
	return 0;
}

int privileges_drop(int proc_fd, struct cj_error *err)
{
	/* First: it needs a capability, and takes none. */
	if (prctl(PR_SET_SECUREBITS, SECUREBITS, 0, 0, 0) < 0)
		return cj_fail(err, errno, "lock the securebits");
	/* The payload has our uid: if it could, it would trace pid 1.  ptrace(2) */
	if (capabilities_drop_all(proc_fd, err) < 0 || child_become_undumpable(err) < 0)
		return -err->code;
	int bits = prctl(PR_GET_SECUREBITS);
	if (bits != SECUREBITS)
		return cj_fail(err, bits < 0 ? errno : EPERM, "verify the securebits");
	return 0;
}

int privileges_keep_only(uint64_t kept, struct cj_error *err)
{
	uint64_t own = 0;
	if (privileges_no_new(err) < 0)
		return -err->code;
	if (kept && capabilities_of_self(&own, err) < 0)
		return -err->code;
	const struct capabilities caps = { .permitted = own & kept, .effective = own & kept };
	return capabilities_apply(&caps, 0, err);
}

int privileges_stay_behind(const char *name, int *fds, size_t count, uint64_t kept,
			   struct cj_error *err)
{
	int open_fds[CHILD_FDS_MAX];
	size_t nopen = 0;

	(void)prctl(PR_SET_NAME, name, 0, 0, 0); /* only what ps(1) shows */
	child_wipe_arguments();
	if (child_start_session(err) < 0)
		return -err->code;
	for (size_t i = 0; i < count; i++)
		if (fds[i] >= 0)
			open_fds[nopen++] = fds[i];
	int rc = child_reset(open_fds, nopen, err);
	for (size_t i = count; i-- > 0;)
		if (fds[i] >= 0)
			fds[i] = open_fds[--nopen];
	if (rc < 0 || privileges_keep_only(kept, err) < 0)
		return -err->code;
	return chdir("/") < 0 ? cj_fail(err, errno, "change to '/'") : 0;
}
