/* SPDX-License-Identifier: Apache-2.0 */
/* attempt_kernel - interfaces of the kernel that are not namespaced, or big, and the other ways
 * into it.  Acts; see attempt.h. */
#include "attempt.h"

#include <linux/filter.h>
#include <linux/keyctl.h>
#include <linux/seccomp.h>
#include <sys/personality.h>
#include <sys/reboot.h>
#include <sys/swap.h>
#include <sys/time.h>
#include <sys/timex.h>
#include <sys/uio.h>
#include <time.h>

static bool try_keyctl(void)
{
	return worked(syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_SESSION_KEYRING, 0));
}
static bool try_join_keyring(void)
{
	return worked(syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL));
}
static bool try_add_key(void)
{
	return worked(syscall(SYS_add_key, "user", "x", "y", 1, KEY_SPEC_PROCESS_KEYRING));
}
static bool try_request_key(void)
{
	return got_past(syscall(SYS_request_key, "user", "x", NULL, 0), ENOKEY);
}
static bool try_bpf(void)
{
	struct {
		uint32_t type, key, value, max, flags;
	} map = { 2, 4, 4, 1, 0 };
	return worked(syscall(SYS_bpf, 0, &map, sizeof(map)));
}
static bool try_perf(void)
{
	struct {
		uint32_t type, size;
		uint64_t config;
		uint64_t rest[12];
	} attr = { 1, sizeof(attr), 0, { 0 } };
	return worked(syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0));
}
static bool try_userfaultfd(void)
{
	return worked(syscall(SYS_userfaultfd, O_CLOEXEC | 1));
}
static bool try_io_uring(void)
{
	uint32_t params[30] = { 0 };
	return worked(syscall(SYS_io_uring_setup, 4, params));
}
static bool try_syslog(void)
{
	return worked(syscall(SYS_syslog, 10 /* size of the log */, NULL, 0));
}
static bool try_vmsplice(void)
{
	int p[2];
	struct iovec iov = { (void *)"x", 1 };
	return pipe(p) == 0 && worked(vmsplice(p[1], &iov, 1, 0));
}
static bool try_fanotify(void)
{
	return worked(syscall(SYS_fanotify_init, 0x200 /* REPORT_FID: for any user */, O_RDONLY));
}
static bool try_module(void)
{
	return got_past(syscall(SYS_init_module, "", 0ul, ""), ENOEXEC);
}
static bool try_finit_module(void)
{
	return got_past(syscall(SYS_finit_module, -1, "", 0), EBADF);
}
static bool try_delete_module(void)
{
	return got_past(syscall(SYS_delete_module, "no such module", O_NONBLOCK), ENOENT);
}
static bool try_kexec(void)
{
	return got_past(syscall(SYS_kexec_load, 0ul, 0ul, NULL, 0xff00ul), EINVAL);
}
static bool try_reboot(void)
{
	return got_past(reboot(0x0bad0bad), EINVAL);
}
static bool try_swapoff(void)
{
	return got_past(swapoff("/nowhere"), ENOENT);
}
static bool try_acct(void)
{
	return got_past(syscall(SYS_acct, "/nowhere"), ENOENT);
}
static bool try_quotactl(void)
{
	return worked(syscall(SYS_quotactl, 0x80000100u, NULL, 0, NULL));
}
static bool try_sethostname(void)
{
	return worked(sethostname("x", 1));
}
static bool try_setdomainname(void)
{
	return worked(setdomainname("x", 1));
}
static bool try_settimeofday(void)
{
	struct timezone nowhere = { .tz_minuteswest = 10000 };
	return got_past(syscall(SYS_settimeofday, NULL, &nowhere), EINVAL);
}
static bool try_clock_settime(void)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	return worked(clock_settime(CLOCK_REALTIME, &now));
}
static bool try_adjtimex(void)
{
	struct timex t = { .modes = ADJ_TICK, .tick = 1 };
	return got_past(adjtimex(&t), EINVAL);
}
static bool try_personality(void)
{
	return worked(personality(READ_IMPLIES_EXEC));
}
static bool try_no_aslr(void)
{
	return worked(personality(ADDR_NO_RANDOMIZE));
}
static bool try_vhangup(void)
{
	(void)setsid(); /* or it is the tester's terminal */
	return worked(vhangup());
}
static bool try_lookup_dcookie(void)
{
	return got_past(syscall(SYS_lookup_dcookie, 0ul, NULL, 0ul), EINVAL);
}

/* --- more of the same kinds ------------------------------------------------------- */

static bool try_clock_adjtime(void)
{
	struct timex t = { .modes = ADJ_TICK, .tick = 1 };
	return got_past(clock_adjtime(CLOCK_REALTIME, &t), EINVAL);
}
static bool try_linux32(void)
{
	return worked(personality(PER_LINUX32));
}
static bool try_io_uring_enter(void)
{
	return got_past(syscall(SYS_io_uring_enter, -1, 0, 0, 0, NULL, 0), EBADF);
}
static bool try_io_uring_register(void)
{
	return got_past(syscall(SYS_io_uring_register, 1000, 0, NULL, 0), EBADF);
}
static bool try_io_setup(void)
{
	unsigned long context = 0;
	return worked(syscall(SYS_io_setup, 1, &context));
}
static bool try_tee(void)
{
	int from[2], to[2];
	return pipe(from) == 0 && pipe(to) == 0 && write(from[1], "x", 1) == 1 &&
	       worked(tee(from[0], to[1], 1, 0));
}
static bool try_kexec_file(void)
{
	return got_past(syscall(SYS_kexec_file_load, -1, -1, 0ul, NULL, 0xff00ul), EINVAL);
}
static bool try_swapon(void)
{
	return got_past(swapon("/nowhere", 0), ENOENT);
}
static bool try_name_to_handle(void)
{
	struct file_handle h = { 0 };
	int mount_id;
	return got_past(name_to_handle_at(AT_FDCWD, ".", &h, &mount_id, 0), EOVERFLOW);
}
static bool try_mbind(void)
{
	return worked(syscall(SYS_set_mempolicy, 0 /* default */, NULL, 0ul));
}
static bool try_syncfs(void)
{
	return worked(syncfs(open("/", O_RDONLY | O_CLOEXEC)));
}
static bool try_memfd_secret(void)
{
	return worked(syscall(SYS_memfd_secret, 0));
}
/* A new filter with a listener could answer in the place of cejail's. */
static bool try_listener(void)
{
	struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog filter = { 1, &allow };
	(void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	return worked(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
			      SECCOMP_FILTER_FLAG_NEW_LISTENER, &filter));
}
#define X32_SYSCALL_BIT 0x40000000

#ifdef __x86_64__
static bool try_modify_ldt(void)
{
	char room[16];
	return worked(syscall(SYS_modify_ldt, 0 /* read */, room, sizeof(room)));
}
static bool try_iopl(void)
{
	return worked(syscall(SYS_iopl, 3));
}
static bool try_ioperm(void)
{
	return worked(syscall(SYS_ioperm, 0x80, 1, 1));
}
static bool try_i386(void)
{
	long rc;
	__asm__ volatile("int $0x80"
			 : "=a"(rc)
			 : "a"(20 /* getpid */)
			 : "memory", "r8", "r9", "r10", "r11");
	if (rc < 0)
		errno = (int)-rc;
	return rc >= 0;
}
static bool try_x32(void)
{
	return worked(syscall(X32_SYSCALL_BIT | SYS_getpid));
}
#else
static bool try_call_of_x86(void)
{
	errno = ENOSYS;
	return false;
}
#define try_iopl       try_call_of_x86
#define try_ioperm     try_call_of_x86
#define try_modify_ldt try_call_of_x86
#define try_i386       try_call_of_x86
#define try_x32        try_call_of_x86
#endif

static const struct attempt attempts[] = {
	ROW(keyctl),
	ROW(join_keyring),
	ROW(add_key),
	ROW(request_key),
	ROW(bpf),
	ROW(perf),
	ROW(userfaultfd),
	ROW(io_uring),
	ROW(syslog),
	ROW(vmsplice),
	ROW(fanotify),
	ROW(module),
	ROW(finit_module),
	ROW(delete_module),
	ROW(kexec),
	ROW(reboot),
	ROW(swapoff),
	ROW(acct),
	ROW(quotactl),
	ROW(sethostname),
	ROW(setdomainname),
	ROW(settimeofday),
	ROW_OWN(clock_settime),
	ROW(adjtimex),
	ROW(personality),
	ROW(no_aslr),
	ROW(vhangup),
	ROW(lookup_dcookie),
	ROW(clock_adjtime),
	ROW(linux32),
	ROW(io_uring_enter),
	ROW(io_uring_register),
	ROW(io_setup),
	ROW(tee),
	ROW(kexec_file),
	ROW(swapon),
	ROW(name_to_handle),
	ROW(mbind),
	ROW(memfd_secret),
	ROW(syncfs),
	ROW(listener),
	ROW(iopl),
	ROW(ioperm),
	ROW(modify_ldt),
	ROW(i386),
	ROW(x32),
};

ATTEMPTS_MAIN(attempts)
