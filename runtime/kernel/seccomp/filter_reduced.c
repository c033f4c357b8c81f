/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A second filter, for a jail without namespaces (--reduced): what it refuses is harmless in a full
 * jail, where it acts on namespaces of the jail's own.  Of both answers the kernel takes the
 * stricter one: seccomp(2).
 */
#include "runtime/kernel/seccomp/filter.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "runtime/base/sys.h"
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
	 * namespace.  Connected pairs stay: refuse_other_pairs(). */
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

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

struct reduced_program {
	struct sock_filter insns[512];
	unsigned short count;
};

static void put(struct reduced_program *p, uint16_t code, uint32_t k, uint8_t jt, uint8_t jf)
{
	if (p->count < COUNT_OF(p->insns))
		p->insns[p->count] = (struct sock_filter){ code, jt, jf, k };
	p->count++; /* more than there is room for: filter_load_reduced() sees it */
}

static void load_word(struct reduced_program *p, size_t offset)
{
	put(p, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0);
}

static void refuse(struct reduced_program *p, int errno_value)
{
	put(p, BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t)errno_value, 0, 0);
}

/* If this half of the argument is not 0, or is `value`. */
static void refuse_half(struct reduced_program *p, const struct call_bounded *row, unsigned half,
			int errno_value)
{
	const uint32_t value = row->is_nonzero ? 0 : row->value;
	const uint8_t skips_equal = row->is_nonzero ? 1 : 0;
	put(p, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)row->nr, 0, 4);
	load_word(p, offsetof(struct seccomp_data, args) + 8 * row->index + 4 * half);
	put(p, BPF_JMP | BPF_JEQ | BPF_K, value, skips_equal, !skips_equal);
	refuse(p, errno_value);
	load_word(p, offsetof(struct seccomp_data, nr));
}

#define TYPE_MASK 0xfu /* SOCK_TYPE_MASK: the rest are flags */

/*
 * Sockets of a pair that are connected for good.  A datagram socket could be connected, and send,
 * to the path of any socket of the caller.
 */
static void refuse_other_pairs(struct reduced_program *p)
{
	put(p, BPF_JMP | BPF_JEQ | BPF_K, SYS_socketpair, 0, 8);
	load_word(p, offsetof(struct seccomp_data, args));
	put(p, BPF_JMP | BPF_JEQ | BPF_K, AF_UNIX, 0, 4);
	load_word(p, offsetof(struct seccomp_data, args) + 8);
	put(p, BPF_ALU | BPF_AND | BPF_K, TYPE_MASK, 0, 0);
	put(p, BPF_JMP | BPF_JEQ | BPF_K, SOCK_STREAM, 2, 0);
	put(p, BPF_JMP | BPF_JEQ | BPF_K, SOCK_SEQPACKET, 1, 0);
	refuse(p, EACCES);
	load_word(p, offsetof(struct seccomp_data, nr));
}

int filter_load_reduced(struct cj_error *err)
{
	/* Both architectures are little-endian: the low half comes first. */
	const struct call_bounded times_of_path = { .nr = SYS_utimensat,
						    .index = 1,
						    .is_nonzero = true };
	struct reduced_program p = { .count = 0 };
	load_word(&p, offsetof(struct seccomp_data, arch));
	put(&p, BPF_JMP | BPF_JEQ | BPF_K, ARCH_NATIVE, 1, 0);
	put(&p, BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS, 0, 0);
	load_word(&p, offsetof(struct seccomp_data, nr));
#ifdef __x86_64__
	put(&p, BPF_JMP | BPF_JGE | BPF_K, X32_BIT, 0, 1);
	put(&p, BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS, 0, 0);
#endif
	for (size_t i = 0; i < COUNT_OF(refused); i++) {
		put(&p, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)refused[i].nr, 0, 1);
		refuse(&p, refused[i].errno_value);
	}
	refuse_other_pairs(&p);
	refuse_half(&p, &times_of_path, 0, EPERM);
	refuse_half(&p, &times_of_path, 1, EPERM);
	/* Limits and scheduling of the caller's other processes: Landlock has no rule for them. */
	for (size_t i = 0; i < calls_bounded_count; i++)
		if (calls_bounded[i].bound == CALL_BOUND_OTHERS)
			refuse_half(&p, &calls_bounded[i], 0, EPERM);
	put(&p, BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0, 0);

	struct sock_fprog program = { .len = p.count, .filter = p.insns };
	if (p.count > COUNT_OF(p.insns))
		return cj_fail(err, E2BIG, "make the filter of --reduced");
	if (sys_seccomp(SECCOMP_SET_MODE_FILTER, 0, &program) < 0)
		return cj_fail(err, errno, "seccomp(2): load the filter of --reduced");
	/* Verified with a call that is EAFNOSUPPORT or EINVAL without it. */
	if (syscall(SYS_socket, -1, 0, 0) != -1 || errno != EACCES)
		return cj_reject(err,
				 "the filter of --reduced is loaded but does not refuse socket");
	return 0;
}
