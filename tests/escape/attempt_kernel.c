/* SPDX-License-Identifier: Apache-2.0 */
/* attempt_kernel - interfaces of the kernel that are not namespaced, or big, and the other ways
 * into it.  Acts; see attempt.h. */
#include "attempt.h"

#include <linux/keyctl.h>
#include <stdint.h>
#include <sys/io.h>
#include <sys/personality.h>
#include <sys/reboot.h>
#include <sys/swap.h>
#include <sys/syscall.h>
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
	return worked(syscall(SYS_add_key, "user", "x", "y", 1, KEY_SPEC_USER_KEYRING));
}
static bool try_request_key(void)
{
	return worked(syscall(SYS_request_key, "user", "x", NULL, 0));
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
	return worked(syscall(SYS_fanotify_init, 0, O_RDONLY));
}
static bool try_module(void)
{
	return worked(syscall(SYS_init_module, "", 0ul, ""));
}
static bool try_finit_module(void)
{
	return worked(syscall(SYS_finit_module, 0, "", 0));
}
static bool try_delete_module(void)
{
	return worked(syscall(SYS_delete_module, "none", O_NONBLOCK));
}
static bool try_kexec(void)
{
	return worked(syscall(SYS_kexec_load, 0ul, 0ul, NULL, 0ul));
}
static bool try_reboot(void)
{
	return worked(reboot(RB_ENABLE_CAD));
}
static bool try_swapoff(void)
{
	return worked(swapoff("/nowhere"));
}
static bool try_acct(void)
{
	return worked(syscall(SYS_acct, NULL));
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
static bool try_iopl(void)
{
	return worked(syscall(SYS_iopl, 3));
}
static bool try_ioperm(void)
{
	return worked(ioperm(0x80, 1, 1));
}
static bool try_settimeofday(void)
{
	struct timeval now;
	gettimeofday(&now, NULL);
	return worked(settimeofday(&now, NULL));
}
static bool try_clock_settime(void)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	return worked(clock_settime(CLOCK_REALTIME, &now));
}
static bool try_adjtimex(void)
{
	struct timex t = { .modes = ADJ_TICK, .tick = 10000 };
	return worked(adjtimex(&t));
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
	return worked(vhangup());
}
static bool try_lookup_dcookie(void)
{
	return worked(syscall(SYS_lookup_dcookie, 0ul, NULL, 0ul));
}

#define X32_SYSCALL_BIT 0x40000000

#ifdef __x86_64__
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
#endif

static const struct attempt attempts[] = {
	ROW(keyctl),        ROW(join_keyring),  ROW(add_key),
	ROW(request_key),   ROW(bpf),           ROW(perf),
	ROW(userfaultfd),   ROW(io_uring),      ROW(syslog),
	ROW(vmsplice),      ROW(fanotify),      ROW(module),
	ROW(finit_module),  ROW(delete_module), ROW(kexec),
	ROW(reboot),        ROW(swapoff),       ROW(acct),
	ROW(quotactl),      ROW(sethostname),   ROW(setdomainname),
	ROW(iopl),          ROW(ioperm),        ROW(settimeofday),
	ROW(clock_settime), ROW(adjtimex),      ROW(personality),
	ROW(no_aslr),       ROW(vhangup),       ROW(lookup_dcookie),
#ifdef __x86_64__
	ROW(i386),          ROW(x32),
#endif
};

int main(int argc, char **argv)
{
	(void)argc;
	make_attempts(attempts, sizeof(attempts) / sizeof(attempts[0]), argv + 1);
	return 0;
}
