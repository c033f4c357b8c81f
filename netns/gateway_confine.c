/* SPDX-License-Identifier: Apache-2.0 */
/* What the processes of the gateway's program give up. */
#include "netns/gateway_parts.h"

#include <linux/netlink.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "netns/uplink/uplink_parts.h"
#include "runtime/base/scope.h"
#include "runtime/kernel/process/landlock.h"
#include "runtime/kernel/process/privileges.h"

/* Memory, time, and sockets that are there. */
/* clang-format off */
static const unsigned allowed[] = {
	SYS_read, SYS_write, SYS_readv, SYS_writev, SYS_recvfrom, SYS_recvmsg, SYS_accept4,
	SYS_getsockopt, SYS_getsockname, SYS_getpeername, SYS_epoll_create1,
	SYS_epoll_ctl, SYS_epoll_pwait, SYS_ppoll, SYS_timerfd_create, SYS_timerfd_settime,
	SYS_munmap, SYS_mremap, SYS_madvise, SYS_brk, SYS_futex, SYS_getrandom, SYS_clock_gettime,
	SYS_gettimeofday, SYS_getpid, SYS_gettid, SYS_sigaltstack, SYS_rt_sigprocmask,
	SYS_rt_sigreturn, SYS_restart_syscall, SYS_exit, SYS_exit_group,
#ifdef SYS_poll
	SYS_epoll_wait, SYS_poll,
#endif
};
/* clang-format on */

/* An argument is this int. */
#define IS(argument, number)                                                                       \
	{                                                                                          \
		CALL_LOW(argument), UINT32_MAX, (uint32_t)(number), false                          \
	}

#define DIALED_TYPE (SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC)

#define ABOVE(argument, number)                                                                    \
	{                                                                                          \
		CALL_LOW(argument), UINT32_MAX, (uint32_t)(number), true                           \
	}

/* Of sendto(2). */
#define NO_FLAGS                                                                                   \
	{                                                                                          \
		CALL_LOW(3), ~(uint32_t)MSG_NOSIGNAL, 0, false                                     \
	}

static const struct call_rule rules[] = {
	{ SYS_sendto, { NO_FLAGS, IS(4, 0), { CALL_HIGH(4), UINT32_MAX, 0, false } } },
	{ SYS_sendto, { NO_FLAGS, IS(0, NAMES_FD) } },
	{ SYS_shutdown, { ABOVE(0, NAMES_FD) } },
	{ SYS_close, { ABOVE(0, NAMES_FD) } },
	{ SYS_setsockopt, { IS(1, IPPROTO_TCP), IS(2, TCP_NODELAY) } },
	{ SYS_setsockopt, { IS(1, SOL_SOCKET), IS(2, SO_LINGER) } },
	{ SYS_mmap, { { CALL_LOW(2), PROT_EXEC, 0, false } } },
	{ SYS_mprotect, { { CALL_LOW(2), PROT_EXEC, 0, false } } },
};

const struct call_list gateway_calls = {
	.allowed = allowed,
	.nallowed = COUNT_OF(allowed),
	.rules = rules,
	.nrules = COUNT_OF(rules),
};

/* The reader of a log: its socket takes changes of rules, too, so it sends by its link alone. */
/* clang-format off */
static const unsigned log_allowed[] = {
	SYS_recvfrom, SYS_recvmsg, SYS_epoll_pwait, SYS_ppoll, SYS_munmap, SYS_mremap, SYS_madvise,
	SYS_brk, SYS_clock_gettime, SYS_rt_sigreturn, SYS_restart_syscall, SYS_exit, SYS_exit_group,
#ifdef SYS_poll
	SYS_epoll_wait, SYS_poll,
#endif
};
/* clang-format on */

static const struct call_rule log_rules[] = {
	{ SYS_sendto,
	  { NO_FLAGS, IS(0, LINK_FD), IS(4, 0), { CALL_HIGH(4), UINT32_MAX, 0, false } } },
	{ SYS_close, { ABOVE(0, NAMES_FD) } },
	{ SYS_mmap, { { CALL_LOW(2), PROT_EXEC, 0, false } } },
};

const struct call_list gateway_log_calls = {
	.allowed = log_allowed,
	.nallowed = COUNT_OF(log_allowed),
	.rules = log_rules,
	.nrules = COUNT_OF(log_rules),
};

/*
 * The dialer's sockets are all of the gateway's namespace, whose rules filter them.
 */
static const unsigned dialer_allowed[] = {
	SYS_read,  SYS_recvmsg,      SYS_sendmsg,         SYS_sendto, SYS_connect,    SYS_close,
	SYS_ppoll, SYS_rt_sigreturn, SYS_restart_syscall, SYS_exit,   SYS_exit_group,
#ifdef SYS_poll
	SYS_poll,
#endif
};

static const struct call_rule dialer_rules[] = {
	{ SYS_socket, { IS(0, AF_INET), IS(1, DIALED_TYPE), IS(2, 0) } },
	{ SYS_socket, { IS(0, AF_INET6), IS(1, DIALED_TYPE), IS(2, 0) } },
};

const struct call_list gateway_dialer_calls = {
	.allowed = dialer_allowed,
	.nallowed = COUNT_OF(dialer_allowed),
	.rules = dialer_rules,
	.nrules = COUNT_OF(dialer_rules),
};

/* The loader's sockets are those of orders: the kernel judges what it sends through them. */
/* clang-format off */
static const unsigned loader_allowed[] = {
	SYS_recvfrom, SYS_recvmsg, SYS_sendto, SYS_getsockname, SYS_close, SYS_ppoll, SYS_munmap,
	SYS_mremap, SYS_madvise, SYS_brk, SYS_clock_nanosleep, SYS_rt_sigreturn,
	SYS_restart_syscall, SYS_exit, SYS_exit_group,
#ifdef SYS_poll
	SYS_poll,
#endif
};
/* clang-format on */

static const struct call_rule loader_rules[] = {
	{ SYS_setsockopt, { IS(1, SOL_NETLINK), IS(2, NETLINK_CAP_ACK) } },
	{ SYS_mmap, { { CALL_LOW(2), PROT_EXEC, 0, false } } },
};

const struct call_list gateway_loader_calls = {
	.allowed = loader_allowed,
	.nallowed = COUNT_OF(loader_allowed),
	.rules = loader_rules,
	.nrules = COUNT_OF(loader_rules),
};

/* The change of users comes first: it clears the request to die with the parent. */
int gateway_give_up(int link_fd, const struct gateway_rights *rights, struct cj_error *err)
{
	if ((rights->has_joined && uplink_become_mapped(err) < 0) ||
	    child_die_with_parent(link_fd, err) < 0 || child_become_undumpable(err) < 0 ||
	    privileges_keep_only(rights->kept, err) < 0)
		return -err->code;
	int rc = rights->calls == &gateway_dialer_calls ? landlock_allow_connecting(err)
							: landlock_allow_only(NULL, 0, err);
	if (rc < 0 && rc != -ENOSYS) /* the calls below open no file either */
		return rc;
	return call_list_load(rights->calls, rights->whose, err);
}
