/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A second filter, for a jail without namespaces (--reduced): what it refuses is harmless in a full
 * jail, where it acts on namespaces of the jail's own.  Of both answers the kernel takes the
 * stricter one: seccomp(2).
 */
#include "runtime/kernel/seccomp/filter.h"

#include <linux/seccomp.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "runtime/kernel/seccomp/filter_parts.h"

#define NR_fchmodat2     452
#define NR_setxattrat    463
#define NR_removexattrat 466
#define NR_file_setattr  469

/* clang-format off */
static const struct {
	int nr, errno_value;
} refused[] = {
	/* Landlock does not restrict connect(2) to the path of a socket, and there is no network
	 * namespace.  Connected pairs stay: pairs[]. */
	{ SYS_socket, EACCES },
	/* It restricts no change of a file's mode, owner, times and extended attributes by its
	 * path, and the caller's files have the program's user.  By descriptor they stay: only
	 * files in the private directory, and public ones, can be opened. */
#ifdef __x86_64__
	{ SYS_chmod, EPERM }, { SYS_chown, EPERM }, { SYS_lchown, EPERM }, { SYS_utime, EPERM },
	{ SYS_utimes, EPERM }, { SYS_futimesat, EPERM },
	{ SYS_inotify_init, EPERM },
#endif
	{ SYS_fchmodat, EPERM }, { NR_fchmodat2, EPERM }, { SYS_fchownat, EPERM },
	{ SYS_setxattr, EPERM }, { SYS_lsetxattr, EPERM }, { NR_setxattrat, EPERM },
	{ SYS_removexattr, EPERM }, { SYS_lremovexattr, EPERM }, { NR_removexattrat, EPERM },
	{ NR_file_setattr, EPERM },
	/* It shows the names of files that Landlock does not show. */
	{ SYS_inotify_init1, EPERM },
	/* System V objects and POSIX queues are those of all processes in the ipc namespace. */
	{ SYS_shmget, ENOSYS }, { SYS_shmat, ENOSYS }, { SYS_shmctl, ENOSYS },
	{ SYS_semget, ENOSYS }, { SYS_semop, ENOSYS }, { SYS_semtimedop, ENOSYS },
	{ SYS_semctl, ENOSYS }, { SYS_msgget, ENOSYS }, { SYS_msgsnd, ENOSYS },
	{ SYS_msgrcv, ENOSYS }, { SYS_msgctl, ENOSYS },
	{ SYS_mq_open, ENOSYS }, { SYS_mq_unlink, ENOSYS },
};
/* clang-format on */

#define REFUSE(code) (SECCOMP_RET_ERRNO | (uint32_t)(code))

#define TYPE_MASK 0xf /* SOCK_TYPE_MASK: the rest are flags */

/*
 * Sockets of a pair that are connected for good.  A datagram socket could be connected, and send,
 * to the path of any socket of the caller.
 */
static const struct policy_arg streams[] = {
	{ 0, POLICY_MASKED_EQ, UINT32_MAX, AF_UNIX },
	{ 1, POLICY_MASKED_EQ, TYPE_MASK, SOCK_STREAM },
};
static const struct policy_arg packets[] = {
	{ 0, POLICY_MASKED_EQ, UINT32_MAX, AF_UNIX },
	{ 1, POLICY_MASKED_EQ, TYPE_MASK, SOCK_SEQPACKET },
};
static const struct filter_branch pairs[] = {
	{ streams, COUNT_OF(streams), SECCOMP_RET_ALLOW },
	{ packets, COUNT_OF(packets), SECCOMP_RET_ALLOW },
};

/* utimensat(2) of a path; without one, it changes the times of a descriptor. */
static const struct policy_arg has_path[] = { { 1, POLICY_NE, 0, 0 } };
static const struct filter_branch times[] = { { has_path, COUNT_OF(has_path), REFUSE(EPERM) } };

/* Limits and scheduling of the caller's other processes: Landlock has no rule for them. */
static int refuse_others(struct filter_plan *plan, const struct call_bounded *row, struct arena *a)
{
	struct policy_arg arg = { row->index, POLICY_MASKED_EQ, UINT32_MAX, row->value };
	if (row->is_nonzero)
		arg = (struct policy_arg){ row->index, POLICY_LOW_GT, 0, 0 };
	const struct filter_branch branch = { &arg, 1, REFUSE(EPERM) };
	return filter_plan_add(plan, a, (unsigned)row->nr, &branch);
}

int filter_load_reduced(struct cj_error *err)
{
	auto_arena struct arena a = { 0 };
	struct filter_plan *plan = filter_plan_new(&a, SECCOMP_RET_ALLOW);
	int rc = plan ? 0 : -ENOMEM;
	for (size_t i = 0; rc == 0 && i < calls_bounded_count; i++)
		if (calls_bounded[i].bound == CALL_BOUND_OTHERS)
			rc = refuse_others(plan, &calls_bounded[i], &a);
	if (rc < 0)
		return cj_fail(err, -rc, "make the filter of --reduced");
	for (size_t i = 0; i < COUNT_OF(refused); i++)
		plan->calls[refused[i].nr].otherwise = REFUSE(refused[i].errno_value);
	plan->calls[SYS_socketpair] =
	    (struct filter_call){ pairs, COUNT_OF(pairs), REFUSE(EACCES) };
	plan->calls[SYS_utimensat] =
	    (struct filter_call){ times, COUNT_OF(times), SECCOMP_RET_ALLOW };
	if (filter_plan_load(plan, "--reduced", err) < 0)
		return -err->code;
	/* Verified with a call that is EAFNOSUPPORT or EINVAL without it. */
	if (syscall(SYS_socket, -1, 0, 0) != -1 || errno != EACCES)
		return cj_reject(err,
				 "the filter of --reduced is loaded but does not refuse socket");
	return 0;
}
