/* SPDX-License-Identifier: Apache-2.0 */
/* Gives up init's privileges.  Acts; each step is read back where the kernel allows it. */
#include "runtime/kernel/process/privileges.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/securebits.h>
#include <sched.h>
#include <stdio.h>
#include <sys/capability.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "runtime/base/child.h"
#include "runtime/base/files/fd.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"

#define CAPS_MAX 64 /* as many as fit into the sets of capset(2) */

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
	int rc = cj_fail(err, errno, "join a session keyring of its own");
	if (rc == -EDQUOT)
		(void)cj_hint(err, "each jail has one, and the kernel gives a user only so many: "
				   "run fewer jails at once, or as root "
				   "'sysctl -w kernel.keys.maxkeys=2000'");
	return rc;
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
	static const struct {
		const char *path, *most;
	} counts[] = {
		{ "/proc/sys/user/max_user_namespaces", "1" },
		{ "/proc/sys/user/max_inotify_instances", "16" },
		{ "/proc/sys/user/max_inotify_watches", "8192" },
	};
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
		if (fd_put_file(AT_FDCWD, counts[i].path, counts[i].most, err) < 0)
			return -err->code;
	return 0;
}

int privileges_map_own(uid_t uid, gid_t gid, struct cj_error *err)
{
	char uid_map[32], gid_map[32];
	(void)snprintf(uid_map, sizeof(uid_map), "%u %u 1", uid, uid);
	(void)snprintf(gid_map, sizeof(gid_map), "%u %u 1", gid, gid);
	if (fd_put_file(AT_FDCWD, "/proc/self/setgroups", "deny", err) < 0 ||
	    fd_put_file(AT_FDCWD, "/proc/self/uid_map", uid_map, err) < 0 ||
	    fd_put_file(AT_FDCWD, "/proc/self/gid_map", gid_map, err) < 0)
		return -err->code;
	return 0;
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

/*
 * Up to the first that this kernel does not know: EINVAL, prctl(2).  Not cap_max_bits(3): it
 * guesses fewer when an outer sandbox refuses it an answer.
 */
static int drop_bounding(struct cj_error *err)
{
	for (cap_value_t cap = 0; cap < CAPS_MAX; cap++) {
		int rc = cap_drop_bound(cap);
		if (rc < 0 && errno == EINVAL && cap > 0)
			return 0;
		if (rc < 0)
			return cj_fail(err, errno, "drop capability %d from the bounding set", cap);
	}
	return 0;
}

static bool has_any_bounding(void)
{
	for (cap_value_t cap = 0; cap < CAPS_MAX; cap++) {
		int rc = cap_get_bound(cap);
		if (rc != 0)
			return rc > 0 || errno != EINVAL || cap == 0;
	}
	return false;
}

static int drop_sets(struct cj_error *err)
{
	cap_t none = cap_init();
	if (!none)
		return cj_fail(err, errno, "prepare an empty set of capabilities");

	/* Not cap_reset_ambient(3): it asks for each capability first, in 42 calls. */
	int rc = 0;
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0 || cap_set_proc(none) < 0)
		rc = cj_fail(err, errno, "drop all capabilities");
	(void)cap_free(none); /* frees memory; nothing else can go wrong */
	return rc;
}

/* Is any of the three sets not empty?  Asks the kernel. */
static bool has_any_set(void)
{
	cap_t now = cap_get_proc(), none = cap_init();
	bool is_empty = now && none && cap_compare(now, none) == 0;
	(void)cap_free(now);
	(void)cap_free(none);
	return !is_empty;
}

int privileges_drop(struct cj_error *err)
{
	if (drop_bounding(err) < 0)
		return -err->code;
	if (prctl(PR_SET_SECUREBITS, SECUREBITS, 0, 0, 0) < 0)
		return cj_fail(err, errno, "lock the securebits");
	if (drop_sets(err) < 0)
		return -err->code;
	/* The payload has our uid: without this it could trace pid 1.  ptrace(2) */
	if (child_become_undumpable(err) < 0)
		return -err->code;

	if (has_any_bounding() || has_any_set() || prctl(PR_GET_SECUREBITS) != SECUREBITS)
		return cj_fail(err, EPERM, "verify that no capability is left");
	return 0;
}

int privileges_keep_only(int capability, struct cj_error *err)
{
	cap_value_t kept = capability;
	cap_flag_value_t has = CAP_CLEAR;
	cap_t now = cap_get_proc(), wanted = cap_init();
	int rc = 0;

	if (!now || !wanted ||
	    (capability >= 0 && cap_get_flag(now, kept, CAP_PERMITTED, &has) < 0) ||
	    (has == CAP_SET && (cap_set_flag(wanted, CAP_PERMITTED, 1, &kept, CAP_SET) < 0 ||
				cap_set_flag(wanted, CAP_EFFECTIVE, 1, &kept, CAP_SET) < 0)) ||
	    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0 ||
	    cap_set_proc(wanted) < 0)
		rc = cj_fail(err, errno, "drop capabilities");
	(void)cap_free(now); /* frees memory; nothing else can go wrong */
	(void)cap_free(wanted);
	return rc;
}
