/* SPDX-License-Identifier: Apache-2.0 */
/* What the unpacker gives up. */
#include "runtime/front/image/image_parts.h"

#include <linux/capability.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "runtime/base/child.h"
#include "runtime/kernel/process/landlock.h"
#include "runtime/kernel/process/privileges.h"
#include "runtime/kernel/seccomp/call_list.h"

#define MEMORY_BYTES (1ull << 30) /* a zstd window is at most 128 MiB, a JSON document 1 MiB */
#define FILES_MAX    64           /* descriptors; a directory that is read takes one each level */
#define FILES_OF_DIR 1024
#define CPU_GRACE_S  5

#if defined(__SANITIZE_ADDRESS__)
#define HAS_SHADOW 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HAS_SHADOW 1
#endif
#endif
#ifndef HAS_SHADOW
#define HAS_SHADOW 0 /* of a sanitizer: terabytes of addresses */
#endif

static int limit(int resource, uint64_t soft, uint64_t hard, const char *name, struct cj_error *err)
{
	struct rlimit now;
	if (getrlimit((__rlimit_resource_t)resource, &now) < 0)
		return cj_fail(err, errno, "getrlimit %s", name);
	if (now.rlim_cur > soft)
		now.rlim_cur = soft;
	if (now.rlim_max > hard)
		now.rlim_max = hard;
	if (setrlimit((__rlimit_resource_t)resource, &now) < 0)
		return cj_fail(err, errno, "setrlimit %s", name);
	return 0;
}

/*
 * Memory, time, its own descriptors and signals, and files by descriptor.  AddressSanitizer asks
 * for the signal stack before a function that does not return.
 */
static const unsigned allowed[] = {
	SYS_read,         SYS_write,           SYS_pread64,      SYS_pwrite64,
	SYS_readv,        SYS_writev,          SYS_lseek,        SYS_close,
	SYS_fstat,        SYS_newfstatat,      SYS_statx,        SYS_fstatfs,
	SYS_getdents64,   SYS_openat,          SYS_openat2,      SYS_readlinkat,
	SYS_faccessat,    SYS_faccessat2,      SYS_fadvise64,    SYS_fcntl,
	SYS_dup,          SYS_fchdir,          SYS_mkdirat,      SYS_symlinkat,
	SYS_linkat,       SYS_unlinkat,        SYS_fchmod,       SYS_utimensat,
	SYS_ftruncate,    SYS_fsetxattr,       SYS_fgetxattr,    SYS_mmap,
	SYS_munmap,       SYS_mremap,          SYS_mprotect,     SYS_madvise,
	SYS_brk,          SYS_futex,           SYS_getrandom,    SYS_clock_gettime,
	SYS_gettimeofday, SYS_getpid,          SYS_gettid,       SYS_getuid,
	SYS_geteuid,      SYS_getgid,          SYS_getegid,      SYS_umask,
	SYS_sched_yield,  SYS_sigaltstack,     SYS_rt_sigaction, SYS_rt_sigprocmask,
	SYS_rt_sigreturn, SYS_restart_syscall, SYS_exit,         SYS_exit_group,
#ifdef SYS_renameat
	SYS_renameat,
#endif
	SYS_renameat2,
#ifdef SYS_stat
	SYS_stat,         SYS_lstat,           SYS_readlink,     SYS_access,
#endif
};

/* mknodat(dir, name, S_IFCHR | mode, 0): a whiteout, which needs no privilege either. */
static const struct call_rule whiteouts[] = {
	{ SYS_mknodat, { { CALL_LOW(2), S_IFMT, S_IFCHR }, { CALL_LOW(3), UINT32_MAX, 0 } } },
};

int image_confine(const struct image_confinement *c, struct cj_error *err)
{
	/* A directory that root imports may have files of other users; the store's are root's. */
	uint64_t kept = c->source_fd >= 0 ? UINT64_C(1) << CAP_DAC_READ_SEARCH : 0;
	if (privileges_no_new(err) < 0)
		return -err->code;
	const struct landlock_rule rules[] = {
		{ .fd = c->work_fd, .may_change = true },
		{ .fd = c->layers_fd },
		{ .fd = c->source_fd },
	};
	int rc = landlock_allow_only(rules, c->source_fd >= 0 ? 3 : 2, err);
	if (rc == -ENOSYS)
		cj_hint(err, "the unpacker of images needs Landlock: Linux 5.19, with 'landlock' "
			     "in /sys/kernel/security/lsm");
	if (rc < 0)
		return -err->code;
	if (privileges_keep_only(kept, err) < 0 || child_become_undumpable(err) < 0)
		return -err->code;
	/* SIGXCPU at the soft limit says why; SIGKILL at the hard one ends a process that ignores
	 * it. */
	uint64_t files = c->source_fd >= 0 ? FILES_OF_DIR : FILES_MAX;
	if (limit(RLIMIT_FSIZE, c->file_bytes, c->file_bytes, "RLIMIT_FSIZE", err) < 0 ||
	    limit(RLIMIT_NOFILE, files, files, "RLIMIT_NOFILE", err) < 0 ||
	    limit(RLIMIT_CPU, c->cpu_s, c->cpu_s + CPU_GRACE_S, "RLIMIT_CPU", err) < 0 ||
	    (!HAS_SHADOW && limit(RLIMIT_AS, MEMORY_BYTES, MEMORY_BYTES, "RLIMIT_AS", err) < 0))
		return -err->code;
	const struct call_list list = {
		.allowed = allowed,
		.nallowed = COUNT_OF(allowed),
		.rules = whiteouts,
		.nrules = COUNT_OF(whiteouts),
	};
	return call_list_load(&list, "the unpacker", err);
}
