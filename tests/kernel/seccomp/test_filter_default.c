/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the shipped filter answers, call by call; and libseccomp's opinion of it.
 */
#include "runtime/kernel/seccomp/filter.h"

#include <setjmp.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <cmocka.h>
#include <linux/sched.h>
#include <linux/sockios.h>
#include <seccomp.h>

#include "runtime/kernel/seccomp/filter_parts.h"
#include "tests/kernel/seccomp/bpf.h"
#include "tests/kernel/seccomp/policy_text.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))
#define ALLOW           SECCOMP_RET_ALLOW
#define NOTIFIED        SECCOMP_RET_USER_NOTIF
#define ERRNO(code)     (SECCOMP_RET_ERRNO | (uint32_t)(code))

static uint32_t ask(const struct filter *f, int nr, uint64_t a0, uint64_t a1, uint64_t a2)
{
	return bpf_answer(f, nr, (const uint64_t[6]){ a0, a1, a2 });
}

/* Without the errno of a notified refusal. */
static uint32_t ask_action(const struct filter *f, int nr, uint64_t a0, uint64_t a1, uint64_t a2)
{
	uint32_t answer = ask(f, nr, a0, a1, a2);
	bool is_refusal = (answer & SECCOMP_RET_ACTION_FULL) == NOTIFIED &&
			  filter_bound_of(answer) == CALL_BOUND_COUNT;
	return is_refusal ? NOTIFIED : answer;
}

struct question {
	int nr;
	uint64_t args[3];
	uint32_t answer;
};

static void assert_answers(const struct filter *f, const struct question *questions, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct question *q = &questions[i];
		uint32_t answer = ask_action(f, q->nr, q->args[0], q->args[1], q->args[2]);
		if (answer != q->answer)
			fail_msg("question %zu, call %d: %08x instead of %08x", i, q->nr, answer,
				 q->answer);
	}
}

static void the_shipped_filter_lets_programs_work(void **state)
{
	(void)state;
	static const struct question questions[] = {
		{ SYS_read, { 0 }, ALLOW },
		{ SYS_execve, { 0 }, ALLOW },
		{ SYS_linkat, { 0 }, ALLOW },
		{ SYS_copy_file_range, { 0 }, ALLOW },
		{ SYS_clone, { CLONE_VM | CLONE_VFORK | 17 }, ALLOW },
		{ SYS_clone, { 0x3d0f00 }, ALLOW },  /* pthread_create(3) */
		{ SYS_ioctl, { 0, 0x5413 }, ALLOW }, /* TIOCGWINSZ */
		{ SYS_ioctl, { 0, 0x540e }, ALLOW }, /* TIOCSCTTY */
		{ SYS_socket, { AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0 }, ALLOW },
		{ SYS_socket, { AF_UNIX, SOCK_SEQPACKET, 0 }, ALLOW },
		{ SYS_ioctl, { 0, 0x5401 }, ALLOW },             /* TCGETS */
		{ SYS_ioctl, { 0, 0x802c542a }, ALLOW },         /* TCGETS2 */
		{ SYS_ioctl, { 0, 0xffffffff802c542a }, ALLOW }, /* as an int: musl */
		{ SYS_ioctl, { 0, 0x541b }, ALLOW },             /* FIONREAD */
		{ SYS_ioctl, { 0, 0x5451 }, ALLOW },             /* FIOCLEX */
		{ SYS_ioctl, { 0, 0x8933 }, ALLOW },             /* SIOCGIFINDEX */
		{ SYS_fcntl, { 0, 2 }, ALLOW },                  /* F_SETFD */
		{ SYS_fcntl, { 0, 1030 }, ALLOW },               /* F_DUPFD_CLOEXEC */
		{ SYS_fcntl, { 0, 37 }, ALLOW },                 /* F_OFD_SETLK */
		{ SYS_prctl, { 1 }, ALLOW },                     /* PR_SET_PDEATHSIG */
		{ SYS_prctl, { 38 }, ALLOW },                    /* PR_SET_NO_NEW_PRIVS */
		{ SYS_setsockopt, { 3, 6, 18 }, ALLOW },         /* TCP_USER_TIMEOUT */
		{ SYS_setsockopt, { 3, 41, 26 }, ALLOW },        /* IPV6_V6ONLY */
		{ SYS_setsockopt, { 3, 0, 11 }, ALLOW },         /* IP_RECVERR */
		{ SYS_setsockopt, { 3, 270, 11 }, ALLOW },       /* NETLINK_EXT_ACK */
		{ SYS_getsockopt, { 3, 1, 4 }, ALLOW },          /* SO_ERROR */
		{ SYS_getsockopt, { 3, 6, 11 }, ALLOW },         /* TCP_INFO */
		{ SYS_prlimit64, { 0, 7 }, ALLOW },
		{ SYS_sendmsg, { 3, 0, MSG_NOSIGNAL }, ALLOW },
		{ SYS_setsockopt, { 3, SOL_SOCKET, SO_REUSEADDR }, ALLOW },
		{ SYS_setsockopt, { 3, 6, 1 }, ALLOW }, /* TCP_NODELAY */
		{ SYS_prctl, { 15 }, ALLOW },           /* PR_SET_NAME */
		{ SYS_personality, { 0xffffffff }, ALLOW },
		{ SYS_mknodat, { 3, 0, 0010644 }, ALLOW },
		{ SYS_mknodat, { 3, 0, 0100644 }, ALLOW },
		{ SYS_mknodat, { 3, 0, 0140755 }, ALLOW },
		{ SYS_seccomp, { SECCOMP_GET_ACTION_AVAIL, 0 }, ALLOW },
		{ 462, { 0 }, ALLOW }, /* mseal, newer than libseccomp */
	};
	struct filter f;
	filter_builtin(&f);
	assert_answers(&f, questions, COUNT_OF(questions));
}

static void the_shipped_filter_refuses_and_notifies(void **state)
{
	(void)state;
	static const struct question questions[] = {
		{ SYS_mount, { 0 }, NOTIFIED },
		{ SYS_ptrace, { 0 }, NOTIFIED },
		{ SYS_unshare, { CLONE_NEWUSER }, NOTIFIED },
		{ SYS_bpf, { 0 }, NOTIFIED },
		{ SYS_io_uring_setup, { 0 }, NOTIFIED },
		{ SYS_clone, { CLONE_NEWUSER | 17 }, NOTIFIED },
		{ SYS_clone, { CLONE_NEWNS | 17 }, NOTIFIED },
		{ SYS_clone, { CLONE_NEWCGROUP }, NOTIFIED },
		{ SYS_clone, { CLONE_NEWNET | CLONE_VM }, NOTIFIED },
		{ SYS_ioctl, { 0, 0x5412 }, NOTIFIED },
		{ SYS_ioctl, { 0, 0x100005412 }, NOTIFIED }, /* the kernel reads 32 bits */
		{ SYS_ioctl, { 0, 0x541c }, NOTIFIED },
		{ SYS_ioctl, { 0, 0xffffffffc0045877 }, NOTIFIED },
		{ SYS_socket, { 38, SOCK_SEQPACKET, 0 }, NOTIFIED }, /* AF_ALG */
		{ SYS_socket, { 40, SOCK_STREAM, 0 }, NOTIFIED },    /* AF_VSOCK */
		{ SYS_socket, { 0x100000026, SOCK_SEQPACKET, 0 }, NOTIFIED },
		{ SYS_socket, { AF_PACKET, SOCK_RAW, 0 }, NOTIFIED },
		{ SYS_socket, { 99, SOCK_RAW, 0 }, NOTIFIED },
		{ SYS_socket, { AF_INET, SOCK_RAW, 1 }, NOTIFIED },
		{ SYS_socket, { AF_INET, SOCK_STREAM, 262 }, NOTIFIED }, /* MPTCP */
		{ SYS_socket, { AF_INET6, SOCK_STREAM, 262 }, NOTIFIED },
		{ SYS_socket, { AF_INET6, SOCK_DGRAM, 33 }, NOTIFIED }, /* DCCP */
		{ SYS_socket, { AF_INET6, SOCK_RAW, 58 }, NOTIFIED },
		{ SYS_socket, { AF_INET, SOCK_STREAM, 17 }, NOTIFIED },
		{ SYS_socket, { AF_INET, SOCK_SEQPACKET, 132 }, NOTIFIED },
		{ SYS_socket, { AF_NETLINK, SOCK_RAW, 12 }, NOTIFIED },
		{ SYS_socket, { AF_NETLINK, SOCK_RAW, 6 }, NOTIFIED },
		{ SYS_socket, { 0x100000010, SOCK_RAW, 0 }, NOTIFIED }, /* above AF_PACKET */
		{ SYS_personality, { 0x40000 }, NOTIFIED },
		{ SYS_mknodat, { 3, 0, 0020666 }, NOTIFIED },
		{ SYS_mknodat, { 3, 0, 0060666 }, NOTIFIED },
		{ SYS_prlimit64, { 1, 7 }, ERRNO(EPERM) },
		{ SYS_clone3, { 0 }, ERRNO(ENOSYS) },
		{ SYS_seccomp, { 1, SECCOMP_FILTER_FLAG_NEW_LISTENER }, ERRNO(EBUSY) },
		{ SYS_seccomp, { 1, 0x28 }, ERRNO(EBUSY) },
		{ SYS_tee, { 0 }, ERRNO(EPERM) },
		{ SYS_sendmsg, { 3, 0, MSG_OOB | MSG_DONTWAIT }, ERRNO(EOPNOTSUPP) },
		{ SYS_sync, { 0 }, ERRNO(ENOSYS) },
		{ SYS_syncfs, { 0 }, ERRNO(ENOSYS) },
		{ 471, { 0 }, ERRNO(ENOSYS) },  /* not in any list */
		{ 1023, { 0 }, ERRNO(ENOSYS) }, /* no kernel knows it */
		{ 1024, { 0 }, ERRNO(ENOSYS) },
		{ 0x3fffffff, { 0 }, ERRNO(ENOSYS) },
		{ -1, { 0 }, ERRNO(ENOSYS) },
	};
	struct filter f;
	filter_builtin(&f);
	assert_answers(&f, questions, COUNT_OF(questions));
}

static void the_shipped_filter_answers_other_options_as_unknown(void **state)
{
	(void)state;
	static const struct question questions[] = {
		{ SYS_setsockopt, { 3, 6, 31 }, ERRNO(ENOPROTOOPT) },   /* TCP_ULP */
		{ SYS_setsockopt, { 3, 17, 100 }, ERRNO(ENOPROTOOPT) }, /* UDP_ENCAP */
		{ SYS_setsockopt, { 3, 1, 8 }, ERRNO(0) },              /* SO_RCVBUF: no effect */
		{ SYS_setsockopt, { 3, 1, 26 }, ERRNO(ENOPROTOOPT) },   /* SO_ATTACH_FILTER */
		{ SYS_setsockopt, { 3, 1, 50 }, ERRNO(ENOPROTOOPT) },   /* SO_ATTACH_BPF */
		{ SYS_setsockopt, { 3, 1, 51 }, ERRNO(ENOPROTOOPT) },   /* ..._REUSEPORT_CBPF */
		{ SYS_setsockopt, { 3, 1, 33 }, ERRNO(ENOPROTOOPT) },   /* SO_RCVBUFFORCE */
		{ SYS_setsockopt, { 3, 1, 60 }, ERRNO(ENOPROTOOPT) },   /* SO_ZEROCOPY */
		{ SYS_setsockopt, { 3, 6, 14 }, ERRNO(ENOPROTOOPT) },   /* TCP_MD5SIG */
		{ SYS_setsockopt, { 3, 6, 32 }, ERRNO(ENOPROTOOPT) },   /* TCP_MD5SIG_EXT */
		{ SYS_setsockopt, { 3, 6, 38 }, ERRNO(ENOPROTOOPT) },   /* TCP_AO_ADD_KEY */
		{ SYS_setsockopt, { 3, 6, 40 }, ERRNO(ENOPROTOOPT) },   /* TCP_AO_INFO */
		{ SYS_setsockopt, { 3, 0, 35 }, ERRNO(ENOPROTOOPT) },   /* IP_ADD_MEMBERSHIP */
		{ SYS_setsockopt, { 3, 41, 20 }, ERRNO(ENOPROTOOPT) },  /* IPV6_JOIN_GROUP */
		{ SYS_setsockopt, { 3, 0, 42 }, ERRNO(ENOPROTOOPT) },   /* MCAST_JOIN_GROUP */
		{ SYS_setsockopt, { 3, 41, 42 }, ERRNO(ENOPROTOOPT) },
		{ SYS_setsockopt, { 3, 41, 32 }, ERRNO(ENOPROTOOPT) }, /* IPV6_FLOWLABEL_MGR */
		{ SYS_setsockopt, { 3, 263, 1 }, ERRNO(ENOPROTOOPT) }, /* PACKET_* */
		{ SYS_getsockopt, { 3, 6, 35 }, ERRNO(ENOPROTOOPT) },  /* TCP_ZEROCOPY_RECEIVE */
		{ SYS_getsockopt, { 3, 132, 1 }, ERRNO(ENOPROTOOPT) },
		{ SYS_prctl, { 0x10000003e }, ERRNO(EINVAL) }, /* PR_SCHED_CORE */
		{ SYS_prctl, { 35 }, ERRNO(EINVAL) },          /* PR_SET_MM */
		{ SYS_prctl, { 0x53564d41 }, ERRNO(EINVAL) },  /* PR_SET_VMA */
		{ SYS_prctl, { 1000 }, ERRNO(EINVAL) },
		{ SYS_fcntl, { 3, 1024 }, ERRNO(EINVAL) },      /* F_SETLEASE */
		{ SYS_fcntl, { 3, 1026 }, ERRNO(EINVAL) },      /* F_NOTIFY */
		{ SYS_ioctl, { 3, 0xb701 }, ERRNO(ENOTTY) },    /* NS_GET_USERNS */
		{ SYS_ioctl, { 3, 0xff01 }, ERRNO(ENOTTY) },    /* PIDFD_GET_CGROUP_NAMESPACE */
		{ SYS_ioctl, { 0, SIOCGIFBR }, ERRNO(ENOTTY) }, /* request_module("bridge") */
		{ SYS_ioctl, { 0, SIOCSIFBR }, ERRNO(ENOTTY) },
		{ SYS_ioctl, { 0, SIOCBRADDBR }, ERRNO(ENOTTY) },
		{ SYS_ioctl, { 0, SIOCBRDELBR }, ERRNO(ENOTTY) },
		{ SYS_ioctl, { 0, SIOCBRADDIF }, ERRNO(ENOTTY) },
		{ SYS_ioctl, { 0, SIOCBRDELIF }, ERRNO(ENOTTY) },
		{ SYS_ioctl, { 0, SIOCGIFVLAN }, ERRNO(ENOTTY) }, /* request_module("8021q") */
		{ SYS_ioctl, { 0, SIOCSIFVLAN }, ERRNO(ENOTTY) },
		{ SYS_ioctl, { 3, 0x40049409 }, ERRNO(ENOTTY) }, /* FICLONE */
		{ SYS_ioctl, { 3, 0x8946 }, ERRNO(EOPNOTSUPP) }, /* SIOCETHTOOL */
	};
	struct filter f;
	filter_builtin(&f);
	assert_answers(&f, questions, COUNT_OF(questions));
}

static const struct {
	int nr;
	uint64_t args[3];
	enum call_bound bound;
} bounded[] = {
	{ SYS_seccomp, { SECCOMP_SET_MODE_FILTER, 0 }, CALL_BOUND_FILTERS },
	{ SYS_seccomp, { 0x100000001, 0 }, CALL_BOUND_FILTERS },
	{ SYS_prctl, { 22, SECCOMP_MODE_FILTER }, CALL_BOUND_FILTERS },
	{ SYS_socket, { AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, 0 }, CALL_BOUND_NETLINK },
	{ SYS_socket, { AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 6 }, CALL_BOUND_NETWORK },
	{ SYS_socket, { AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0 }, CALL_BOUND_NETWORK },
	{ SYS_socket, { AF_INET6, SOCK_DGRAM, 17 }, CALL_BOUND_NETWORK },
	{ SYS_socket, { AF_INET, SOCK_DGRAM, 1 }, CALL_BOUND_NETWORK },
	{ SYS_socket, { AF_INET6, SOCK_DGRAM, 58 }, CALL_BOUND_NETWORK },
	{ SYS_setpriority, { 0, 1, 19 }, CALL_BOUND_OTHERS },
	{ SYS_sched_setscheduler, { 1, 5, 0 }, CALL_BOUND_OTHERS },
};

static void the_shipped_filter_sends_bounded_calls_to_the_supervisor(void **state)
{
	(void)state;
	struct filter f;
	filter_builtin(&f);
	for (size_t i = 0; i < COUNT_OF(bounded); i++) {
		uint32_t answer = ask(&f, bounded[i].nr, bounded[i].args[0], bounded[i].args[1],
				      bounded[i].args[2]);
		assert_int_equal(answer & SECCOMP_RET_ACTION_FULL, NOTIFIED);
		assert_int_equal(filter_bound_of(answer), bounded[i].bound);
	}
}

/* Only inet sockets: the other bounds stay, and so does every refusal. */
static void without_a_network_to_build_inet_sockets_are_allowed_at_once(void **state)
{
	(void)state;
	struct filter f;
	filter_builtin(&f);
	struct sock_filter *insns = arena_array(&arena, f.ninsns, sizeof(*insns));
	assert_non_null(insns);
	f.is_divided = true;
	filter_settle(&f, insns);

	struct filter dropped = f;
	dropped.insns = insns;
	for (size_t i = 0; i < COUNT_OF(bounded); i++) {
		uint32_t answer = ask(&dropped, bounded[i].nr, bounded[i].args[0],
				      bounded[i].args[1], bounded[i].args[2]);
		if (bounded[i].bound == CALL_BOUND_NETWORK)
			assert_int_equal(answer, ALLOW);
		else
			assert_int_equal(filter_bound_of(answer), bounded[i].bound);
	}
	assert_int_equal(ask_action(&dropped, SYS_socket, AF_INET, SOCK_RAW, 1), NOTIFIED);
	assert_int_equal(ask_action(&dropped, SYS_socket, AF_INET6, SOCK_STREAM, 262), NOTIFIED);
	assert_int_equal(ask_action(&dropped, SYS_mount, 0, 0, 0), NOTIFIED);
}

static void a_notified_call_has_the_errno_of_its_rule(void **state)
{
	(void)state;
	struct filter f;
	filter_builtin(&f);
	assert_int_equal(filter_errno_of(ask(&f, SYS_mount, 0, 0, 0)), EPERM);
	assert_int_equal(filter_errno_of(ask(&f, SYS_bpf, 0, 0, 0)), ENOSYS);
	assert_true(filter_reports(&f));
}

static void foreign_entries_are_killed(void **state)
{
	(void)state;
	struct filter f;
	filter_builtin(&f);
	const struct seccomp_data i386 = { .nr = 20, .arch = AUDIT_ARCH_I386 };
	assert_int_equal(bpf_run(f.insns, f.ninsns, &i386), SECCOMP_RET_KILL_PROCESS);
#ifdef __x86_64__
	assert_int_equal(ask(&f, 0x40000000, 0, 0, 0), SECCOMP_RET_KILL_PROCESS);
	assert_int_equal(ask(&f, 0x40000000 | 39, 0, 0, 0), SECCOMP_RET_KILL_PROCESS);
	assert_int_equal(ask(&f, -2, 0, 0, 0), SECCOMP_RET_KILL_PROCESS);
#endif
}

/* Every call of the headers is listed: a forgotten one would be refused by accident. */
static void every_call_of_the_headers_is_decided_in_the_shipped_file(void **state)
{
	(void)state;
	static const char *const never_were[] = {
		"create_module", "get_kernel_syms", "query_module", "getpmsg", "putpmsg",
		"afs_syscall", "tuxcall", "security", "set_thread_area", "get_thread_area",
		"epoll_ctl_old", "epoll_wait_old", "vserver",
		/* no file can name them: Debian 12's libseccomp, the oldest that builds cejail,
		 * doesn't know them; the default action refuses them */
		"uretprobe", "setxattrat", "getxattrat", "listxattrat", "removexattrat",
		"open_tree_attr", "file_getattr", "file_setattr", "listns"
	};
	struct cj_error err = { 0 };
	const struct policy *policy;
	assert_return_code(policy_load("profiles/seccomp/default.json", &arena, &policy, &err),
			   errno);

	for (int nr = 0; nr < CALLS_MAX; nr++) {
		char *name = seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, nr);
		bool found = name == NULL;
		for (size_t i = 0; !found && i < COUNT_OF(never_were); i++)
			found = strcmp(name, never_were[i]) == 0;
		for (size_t i = 0; !found && i < policy->nrules; i++) {
			const struct strings *names = &policy->rules[i].names;
			for (size_t k = 0; !found && k < names->count; k++)
				found = strcmp(name, names->items[k]) == 0;
		}
		if (!found)
			fail_msg("'%s' (%d) is in no rule", name, nr);
		free(name);
	}
}

static void the_shipped_filter_stays_small(void **state)
{
	(void)state;
	struct filter f;
	filter_builtin(&f);
	assert_in_range(f.ninsns, 100, 530); /* its size is most of what loading it costs */
}

/* --- and against libseccomp ----------------------------------------------------------- */

/* libseccomp's program for the same rules, in `a`. */
static size_t compile_theirs(const struct policy *p, struct sock_filter *insns, size_t max)
{
	scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ERRNO(38));
	assert_non_null(ctx);
	for (size_t i = 0; i < p->nrules; i++) {
		const struct policy_rule *rule = &p->rules[i];
		struct scmp_arg_cmp cmp[6];
		for (size_t k = 0; k < rule->nargs; k++)
			cmp[k] = (struct scmp_arg_cmp){ rule->args[k].index,
							(enum scmp_compare)(rule->args[k].op + 1),
							rule->args[k].value,
							rule->args[k].value_two };
		for (size_t k = 0; k < rule->names.count; k++) {
			int nr = seccomp_syscall_resolve_name(rule->names.items[k]);
			if (nr >= 0 && rule->action == POLICY_ALLOW)
				assert_int_equal(seccomp_rule_add_array(ctx, SCMP_ACT_ALLOW, nr,
									(unsigned)rule->nargs, cmp),
						 0);
		}
	}
	int fd = memfd_create("theirs", MFD_CLOEXEC);
	assert_return_code(fd, errno);
	assert_int_equal(seccomp_export_bpf(ctx, fd), 0);
	seccomp_release(ctx);
	ssize_t size = pread(fd, insns, max * sizeof(*insns), 0);
	close(fd);
	assert_true(size > 0 && (size_t)size < max * sizeof(*insns));
	return (size_t)size / sizeof(*insns);
}

/* Beside an allowance libseccomp drops these; filter_compile.c keeps them. */
static bool has_conditional_refusal(const struct policy *p, int nr)
{
	for (size_t i = 0; i < p->nrules; i++) {
		const struct policy_rule *rule = &p->rules[i];
		for (size_t k = 0; k < rule->names.count && rule->nargs > 0; k++) {
			if (rule->action == POLICY_ERRNO &&
			    seccomp_syscall_resolve_name(rule->names.items[k]) == nr)
				return true;
		}
	}
	return false;
}

/* The part both can say: what is allowed, with or without conditions; the rest is refused. */
static void libseccomp_agrees_on_the_shipped_allowances(void **state)
{
	(void)state;
	static struct sock_filter theirs[8192];
	struct cj_error err = { 0 };
	const struct policy *p;
	struct filter ours;
	assert_return_code(policy_load("profiles/seccomp/default.json", &arena, &p, &err), errno);
	filter_builtin(&ours);
	size_t ntheirs = compile_theirs(p, theirs, COUNT_OF(theirs));

	srand(1);
	for (int nr = 0; nr < 440; nr++) { /* what both know */
		for (int i = 0; i < 200; i++) {
			struct seccomp_data d = { .nr = nr, .arch = BPF_NATIVE };
			for (size_t k = 0; k < 6; k++)
				d.args[k] = (uint64_t)rand() % 20;
			uint32_t us = bpf_run(ours.insns, ours.ninsns, &d);
			if (filter_bound_of(us) != CALL_BOUND_COUNT)
				us = ALLOW;
			uint32_t them = bpf_run(theirs, ntheirs, &d);
			/* seccomp: the listener is ours alone; no rule says so */
			if (us == ALLOW && them != ALLOW)
				fail_msg("call %d: we allow, libseccomp does not", nr);
			if (us != ALLOW && them == ALLOW && nr != SYS_seccomp &&
			    !has_conditional_refusal(p, nr))
				fail_msg("call %d: libseccomp allows, we do not", nr);
		}
	}
	assert_true(ours.ninsns < ntheirs);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_shipped_filter_lets_programs_work),
		TEST(the_shipped_filter_refuses_and_notifies),
		TEST(the_shipped_filter_answers_other_options_as_unknown),
		TEST(the_shipped_filter_sends_bounded_calls_to_the_supervisor),
		TEST(without_a_network_to_build_inet_sockets_are_allowed_at_once),
		TEST(a_notified_call_has_the_errno_of_its_rule),
		TEST(foreign_entries_are_killed),
		TEST(every_call_of_the_headers_is_decided_in_the_shipped_file),
		TEST(the_shipped_filter_stays_small),
		TEST(libseccomp_agrees_on_the_shipped_allowances),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
