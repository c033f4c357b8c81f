/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shipped filter in force: a child loads it and tries things, this process answers
 * as the supervisor does.
 */
/* WRAP: sys_seccomp clock_ms */
#include "runtime/kernel/seccomp/filter.h"

#include <fcntl.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "runtime/base/files/system_file.h"
#include "runtime/base/clock.h"
#include "runtime/base/scope.h"
#include "runtime/base/step.h"
#include "runtime/base/sys.h"
#include "runtime/kernel/seccomp/filter_parts.h"
#include "tests/blocked.h"
#include "tests/forked.h"
#include "tests/patience.h"

/* What a child's trial comes to; it leaves by _exit. */
#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition))                                                                  \
			_exit(__LINE__ % 250 + 2);                                                 \
	} while (0)

static const char *const steps[] = { "loaded" };

/* --- a clock that stands still -------------------------------------------------- */

static uint64_t stopped_at_ms; /* 0: it goes */

uint64_t __real_clock_ms(void);
uint64_t __wrap_clock_ms(void);
uint64_t __wrap_clock_ms(void)
{
	return stopped_at_ms > 0 ? stopped_at_ms : __real_clock_ms();
}

/* --- seccomp(2) failing on demand ------------------------------------------------ */

static enum { REAL, OLD_KERNEL, OUTER_LISTENER, FORBIDDEN, PRETENDS } kernel;

int __real_sys_seccomp(unsigned operation, unsigned flags, void *args);
int __wrap_sys_seccomp(unsigned operation, unsigned flags, void *args);

static int refuse(int code)
{
	errno = code;
	return -1;
}

int __wrap_sys_seccomp(unsigned operation, unsigned flags, void *args)
{
	if (operation != SECCOMP_SET_MODE_FILTER || kernel == REAL)
		return __real_sys_seccomp(operation, flags, args);
	if (kernel == OLD_KERNEL && (flags & ~SECCOMP_FILTER_FLAG_NEW_LISTENER))
		return refuse(EINVAL);
	if (kernel == OUTER_LISTENER && (flags & SECCOMP_FILTER_FLAG_NEW_LISTENER))
		return refuse(EBUSY);
	if (kernel == FORBIDDEN)
		return refuse(EACCES);
	if (kernel == PRETENDS)
		return open("/dev/null", O_RDONLY | O_CLOEXEC);
	return __real_sys_seccomp(operation, flags, args);
}

/* --- a child under the filter -------------------------------------------------------- */

#define PATIENCE_MS patience_ms(60000) /* only what hangs takes so long */

/* What a trial and the test tell each other: both see this memory. */
static struct shared {
	atomic_bool is_dead; /* the trial: the process that asked has died */
	atomic_bool goes_on; /* the test: a call waits for the network */
	atomic_uint alarms;  /* the trial: so many handlers of signals have run */
} * shared;

static int share_memory(void **state)
{
	(void)state;
	shared =
	    mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return shared == MAP_FAILED ? -1 : 0;
}

/* Until the other side has said it. */
static bool await_true(atomic_bool *said)
{
	for (int i = 0; i < PATIENCE_MS && !*said; i++)
		(void)usleep(1000);
	return *said;
}

struct trial {
	pid_t pid;
	struct filter_watch *watch; /* NULL: there was no listener */
	unsigned firsts;            /* names reported when they were new */
};

static bool asks_network; /* of the next trial */

static struct filter the_filter(void)
{
	struct filter f;
	filter_builtin(&f);
	f.asks_network = asks_network;
	return f;
}

static void load_or_leave(int *out_listener_fd)
{
	struct cj_error err = { 0 };
	const struct filter f = the_filter();
	CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	CHECK(filter_load(&f, out_listener_fd, &err) == 0);
}

static void child_main(int sock_fd, void (*body)(void))
{
	struct cj_error err = { 0 };
	const struct step_link link = { sock_fd, "test", steps };
	int listener_fd = -1;
	load_or_leave(&listener_fd);
	CHECK(step_tell(&link, 0, NULL, 0, &listener_fd, listener_fd >= 0, &err) == 0);
	if (listener_fd >= 0)
		close(listener_fd);
	body();
	_exit(0);
}

static struct trial begin(void (*body)(void))
{
	struct cj_error err = { 0 };
	struct trial t = { 0 };
	int fds[2];
	*shared = (struct shared){ .is_dead = false };
	assert_return_code(step_pair(fds, (unsigned)PATIENCE_MS, &err), errno);
	t.pid = test_fork();
	assert_return_code(t.pid, errno);
	if (t.pid == 0) {
		close(fds[0]);
		child_main(fds[1], body);
	}
	close(fds[1]);

	auto_step_msg struct step_msg msg = { 0 };
	const struct step_link link = { fds[0], "child", steps };
	if (step_await(&link, 0, &msg, &err) < 0)
		fail_msg("%s", err.msg);
	close(fds[0]);

	const struct filter f = the_filter();
	if (msg.nfds > 0 && filter_watch_create(take_fd(&msg.fds[0]), &f, &t.watch, &err) < 0)
		fail_msg("%s", err.msg);
	return t;
}

/* Answers once, when there is something to answer. */
static void serve_once(struct trial *t, int timeout_ms)
{
	const char *name;
	struct pollfd poll_fd = { .fd = filter_watch_fd(t->watch), .events = POLLIN };
	(void)poll(&poll_fd, 1, timeout_ms);
	filter_watch_answer(t->watch, &name);
	t->firsts += name != NULL;
}

/* Until the child ends; its wait status. */
static int serve(struct trial *t)
{
	int status;
	while (waitpid(t->pid, &status, WNOHANG) == 0) {
		if (t->watch)
			serve_once(t, 2);
		else
			usleep(1000);
	}
	return status;
}

/* Until no process is left that could ask. */
static void serve_until_closed(struct trial *t)
{
	for (int i = 0; i < PATIENCE_MS / 10 && filter_watch_fd(t->watch) >= 0; i++)
		serve_once(t, 10);
	assert_int_equal(filter_watch_fd(t->watch), -1);
}

static unsigned count_of(const struct trial *t, const char *name)
{
	size_t n;
	bool is_complete;
	const struct denied_syscall *denied = filter_watch_denied(t->watch, &n, &is_complete);
	for (size_t i = 0; i < n; i++) {
		if (strcmp(denied[i].name, name) == 0)
			return denied[i].count;
	}
	return 0;
}

static size_t names_of(const struct trial *t, bool *out_complete)
{
	size_t n;
	(void)filter_watch_denied(t->watch, &n, out_complete);
	return n;
}

static int teardown(void **state)
{
	(void)state;
	kernel = REAL;
	asks_network = false;
	return 0;
}

/* --- what is refused ----------------------------------------------------------------- */

static bool fails(long rc, int code)
{
	return rc == -1 && errno == code;
}

static void try_escapes(void)
{
	CHECK(fails(mount("x", "/", "tmpfs", 0, NULL), EPERM));
	CHECK(fails(mount("x", "/", "tmpfs", 0, NULL), EPERM));
	CHECK(fails(unshare(CLONE_NEWUSER), EPERM));
	CHECK(fails(ptrace(PTRACE_TRACEME, 0, NULL, NULL), EPERM));
	CHECK(fails(syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0), EPERM));
	CHECK(fails(syscall(SYS_ioctl, 0, 0x100005412, ""), EPERM));
	CHECK(fails(syscall(SYS_bpf, 0, NULL, 0), ENOSYS));
	CHECK(fails(syscall(SYS_io_uring_setup, 1, NULL), ENOSYS));
	CHECK(fails(syscall(SYS_clone3, NULL, 0), ENOSYS));
}

static void refused_calls_are_named_and_counted(void **state)
{
	(void)state;
	struct trial t = begin(try_escapes);
	bool is_complete;
	assert_int_equal(serve(&t), 0);
	assert_int_equal(count_of(&t, "mount"), 2);
	assert_int_equal(count_of(&t, "unshare(CLONE_NEWUSER)"), 1);
	assert_int_equal(count_of(&t, "ptrace"), 1);
	assert_int_equal(count_of(&t, "clone(CLONE_NEWUSER)"), 1);
	assert_int_equal(count_of(&t, "ioctl(TIOCSTI)"), 1);
	assert_int_equal(count_of(&t, "bpf"), 1);
	assert_int_equal(count_of(&t, "io_uring_setup"), 1);
	assert_int_equal(count_of(&t, "clone3"), 0); /* every libc tries it */
	assert_int_equal(names_of(&t, &is_complete), 7);
	assert_true(is_complete);
	assert_int_equal(t.firsts, 7);
	filter_watch_destroy(&t.watch);
}

static void try_sockets(void)
{
	CHECK(fails(socket(38, SOCK_SEQPACKET, 0), EPERM));
	CHECK(fails(socket(40, SOCK_STREAM, 0), EPERM));
	CHECK(fails(socket(AF_PACKET, SOCK_RAW, 0), EPERM));
	CHECK(fails(socket(AF_NETLINK, SOCK_RAW, 12), EPERM));
	CHECK(fails(socket(AF_INET, SOCK_RAW, 1), EPERM));
	CHECK(fails(socket(99, SOCK_RAW, 1), EPERM));
	CHECK(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0) >= 0);
	CHECK(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0) >= 0);
	CHECK(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, 0) >= 0);
}

static void refused_sockets_are_named_by_family_and_type(void **state)
{
	(void)state;
	struct trial t = begin(try_sockets);
	assert_int_equal(serve(&t), 0);
	assert_int_equal(count_of(&t, "socket(AF_ALG)"), 1);
	assert_int_equal(count_of(&t, "socket(AF_VSOCK)"), 1);
	assert_int_equal(count_of(&t, "socket(AF_PACKET)"), 1);
	assert_int_equal(count_of(&t, "socket(AF_NETLINK)"), 1);
	assert_int_equal(count_of(&t, "socket(AF_INET, SOCK_RAW, 1)"), 1);
	assert_int_equal(count_of(&t, "socket(family 99)"), 1);
	filter_watch_destroy(&t.watch);
}

static void try_in_grandchild(void)
{
	pid_t pid = test_fork();
	if (pid == 0)
		_exit(fails(chroot("/"), EPERM) ? 0 : 1);
	int status;
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
}

static void grandchildren_are_under_it_too(void **state)
{
	(void)state;
	struct trial t = begin(try_in_grandchild);
	assert_int_equal(serve(&t), 0);
	assert_int_equal(count_of(&t, "chroot"), 1);
	filter_watch_destroy(&t.watch);
}

#ifdef __x86_64__
static void enter_as_i386(void)
{
	long rc = 20; /* getpid there */
	__asm__ volatile("int $0x80" : "+a"(rc) : : "memory");
	_exit(0);
}

static void enter_as_x32(void)
{
	(void)syscall(0x40000000 | SYS_getpid);
	_exit(0);
}

static void assert_killed_by(int status, int signal)
{
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), signal);
}

/* Without the filter: a kernel that was built or booted without this entry sends SIGSEGV. */
static bool has_i386_entry(void)
{
	int status = 0;
	pid_t pid = test_fork();
	assert_return_code(pid, errno);
	if (pid == 0)
		enter_as_i386();
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (status != 0)
		assert_killed_by(status, SIGSEGV);
	return status == 0;
}

static void foreign_entries_kill(void **state)
{
	(void)state;
	const bool has_i386 = has_i386_entry();
	if (!has_i386)
		print_message("this kernel has no i386 entry: the filter has nothing to refuse\n");
	struct trial t = begin(enter_as_i386);
	assert_killed_by(serve(&t), has_i386 ? SIGSYS : SIGSEGV);
	filter_watch_destroy(&t.watch);

	t = begin(enter_as_x32);
	assert_killed_by(serve(&t), SIGSYS);
	filter_watch_destroy(&t.watch);
}
#endif

/* --- a payload against the report ------------------------------------------------------- */

#define FLOOD 20000 /* more than a burst */

static void hammer(void)
{
	for (unsigned i = 0; i < FLOOD; i++)
		CHECK(fails(chroot("/"), EPERM));
	CHECK(socket(AF_NETLINK, SOCK_RAW, 0) >= 0);
}

/* A pause for each burst: all calls are answered and counted in the end. */
static void a_flood_of_refused_calls_is_paused_and_counted(void **state)
{
	(void)state;
	stopped_at_ms = clock_ms(); /* else the flood of a slow machine needs no pause */
	struct trial t = begin(hammer);
	bool is_complete;
	unsigned pauses = 0;
	int status;
	while (waitpid(t.pid, &status, WNOHANG) == 0) {
		serve_once(&t, 2);
		uint64_t until_ms = filter_watch_paused_until_ms(t.watch);
		if (until_ms == 0)
			continue;
		unsigned before = count_of(&t, "chroot");
		serve_once(&t, 0);
		assert_int_equal(count_of(&t, "chroot"), before); /* not while it pauses */
		stopped_at_ms = until_ms;
		pauses++;
	}
	stopped_at_ms = 0;
	assert_int_equal(status, 0);
	assert_true(pauses > 0);
	assert_int_equal(count_of(&t, "chroot"), FLOOD);
	(void)names_of(&t, &is_complete);
	assert_true(is_complete);
	filter_watch_destroy(&t.watch);
}

static void *hammer_thread(void *tid)
{
	if (tid)
		*(atomic_int *)tid = gettid();
	for (;;)
		(void)syscall(SYS_chroot, "/");
	return NULL;
}

/* The kernel queues calls in their order: one of each thread comes first, and no more. */
static void flood_from_threads(void)
{
	pthread_t thread;
	for (int i = 0; i < 50; i++)
		CHECK(pthread_create(&thread, NULL, hammer_thread, NULL) == 0);
	for (int i = 0; i < FILTER_NETLINK_MAX; i++) {
		int fd = socket(AF_NETLINK, SOCK_RAW, 0);
		CHECK(fd >= 0 && close(fd) == 0);
	}
	_exit(0);
}

static void a_flood_from_threads_does_not_starve_another_call(void **state)
{
	(void)state;
	struct trial t = begin(flood_from_threads);
	assert_int_equal(serve(&t), 0);
	assert_true(count_of(&t, "chroot") > 0);
	filter_watch_destroy(&t.watch);
}

static void wait_in_threads(void)
{
	static atomic_int tids[50];
	pthread_t thread;
	for (int i = 0; i < 50; i++)
		CHECK(pthread_create(&thread, NULL, hammer_thread, &tids[i]) == 0);
	for (int i = 0; i < 50; i++) {
		while (tids[i] == 0)
			(void)usleep(1000);
		CHECK(await_blocked_in(tids[i], SYS_chroot));
	}
	_exit(0);
}

static void calls_that_nobody_answers_do_not_keep_a_process(void **state)
{
	(void)state;
	struct trial t = begin(wait_in_threads);
	int status;
	assert_int_equal(waitpid(t.pid, &status, 0), t.pid);
	assert_int_equal(status, 0);
	serve_until_closed(&t);
	assert_int_equal(count_of(&t, "chroot"), 0);
	filter_watch_destroy(&t.watch);
}

static void invent_names(void)
{
	for (int family = 100; family < 500; family++)
		CHECK(fails(socket(family, SOCK_RAW, 0), EPERM));
}

static void names_are_bounded(void **state)
{
	(void)state;
	struct trial t = begin(invent_names);
	bool is_complete;
	assert_int_equal(serve(&t), 0);
	assert_int_equal(names_of(&t, &is_complete), FILTER_NAMES_MAX);
	assert_false(is_complete);
	filter_watch_destroy(&t.watch);
}

/* A filter that asks a listener about chroot and getppid. */
static long load_own_filter(unsigned flags)
{
	struct sock_filter insns[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_chroot, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(insns) / sizeof(insns[0]), insns };
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
}

/* A listener of its own could answer "go on" for ours. */
static void take_over(void)
{
	CHECK(fails(load_own_filter(SECCOMP_FILTER_FLAG_NEW_LISTENER), EBUSY));
	CHECK(fails(load_own_filter(SECCOMP_FILTER_FLAG_NEW_LISTENER |
				    SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV),
		    EBUSY));
	CHECK(load_own_filter(0) == 0);
	CHECK(fails(chroot("/"), ENOSYS)); /* its own filter asks a listener that is not there */
}

/* Even with our listener gone, when the kernel would allow another. */
static void take_over_without_a_watch(void)
{
	while (!fails(chroot("/"), ENOSYS))
		usleep(1000);
	CHECK(fails(load_own_filter(SECCOMP_FILTER_FLAG_NEW_LISTENER), EBUSY));
	CHECK(fails(load_own_filter(0), ENOSYS)); /* the listener that counts it is closed */
}

static void a_filter_of_the_payloads_own_opens_nothing(void **state)
{
	(void)state;
	struct trial t = begin(take_over);
	assert_int_equal(serve(&t), 0);
	filter_watch_destroy(&t.watch);

	t = begin(take_over_without_a_watch);
	filter_watch_destroy(&t.watch);
	assert_int_equal(serve(&t), 0);
}

/* --- bounded calls -------------------------------------------------------------------- */

static int load_nothing(bool by_prctl)
{
	struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog program = { 1, &allow };
	if (by_prctl)
		return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
	return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
}

static void load_too_many(void)
{
	for (int i = 0; i < FILTER_LOADS_MAX; i++)
		CHECK(load_nothing(i % 2 == 0) == 0);
	CHECK(fails(load_nothing(false), EPERM));
	CHECK(fails(load_nothing(true), EPERM));
}

static void a_jail_loads_a_bounded_number_of_filters(void **state)
{
	(void)state;
	struct trial t = begin(load_too_many);
	assert_int_equal(serve(&t), 0);
	bool is_complete;
	assert_int_equal(names_of(&t, &is_complete), 2);
	assert_int_equal(count_of(&t, "seccomp(SECCOMP_SET_MODE_FILTER)"), 1);
	assert_int_equal(count_of(&t, "prctl(PR_SET_SECCOMP)"), 1);
	filter_watch_destroy(&t.watch);
}

static void open_many_netlinks(void)
{
	int fds[FILTER_NETLINK_MAX], n = 0;
	while (n < FILTER_NETLINK_MAX && (fds[n] = socket(AF_NETLINK, SOCK_RAW, 0)) >= 0)
		n++;
	CHECK(fails(socket(AF_NETLINK, SOCK_RAW, 0), EMFILE));
	for (int i = 0; i < n; i++)
		close(fds[i]);
	for (int i = 0; i < 3 * FILTER_NETLINK_MAX; i++) {
		int fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, 0);
		CHECK(fd >= 0);
		close(fd);
	}
}

static long netlink_sockets(int proc_fd)
{
	static char text[16384];
	ssize_t size = system_file_read(proc_fd, "1/net/protocols", text, sizeof(text));
	return size > 0 ? socket_count_parse(text) : -1;
}

/* Process 1 stands for init: it must be in our network namespace, with few sockets of its own. */
static bool can_count_netlinks(int proc_fd)
{
	long before = netlink_sockets(proc_fd);
	auto_fd int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, 0);
	return fd >= 0 && before >= 0 && before < FILTER_NETLINK_MAX / 2 &&
	       netlink_sockets(proc_fd) > before;
}

static void netlink_sockets_are_bounded_while_they_exist(void **state)
{
	(void)state;
	auto_fd int proc_fd = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (!can_count_netlinks(proc_fd))
		skip();
	struct trial t = begin(open_many_netlinks);
	filter_watch_set_proc(t.watch, proc_fd);
	assert_int_equal(serve(&t), 0);
	assert_int_equal(count_of(&t, "socket(AF_NETLINK)"), 1);
	filter_watch_destroy(&t.watch);
}

static void the_row_of_netlink_is_found_among_the_protocols(void **state)
{
	(void)state;
	const char *const head = "protocol  size sockets  memory press maxhdr\n";
	char text[256];
	(void)snprintf(text, sizeof(text), "%sPACKET 1472 7 -1\nNETLINK   1096     52      -1\n",
		       head);
	assert_int_equal(socket_count_parse(text), 52);
	assert_int_equal(socket_count_parse(head), -1);
	assert_int_equal(socket_count_parse(""), -1);
	assert_int_equal(socket_count_parse("NETLINK "), 0);
}

/* --- the network on first use ----------------------------------------------------------- */

static void open_sockets(void)
{
	CHECK(fails(mount("x", "/", "tmpfs", 0, NULL), EPERM));
	CHECK(socket(AF_UNIX, SOCK_STREAM, 0) >= 0);
	for (int i = 0; i < 3; i++) {
		CHECK(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0) >= 0);
		CHECK(socket(AF_INET6, SOCK_DGRAM, 17) >= 0);
		CHECK(socket(AF_NETLINK, SOCK_RAW, 0) >= 0);
		CHECK(fails(socket(AF_INET, SOCK_RAW, 1), EPERM));
	}
}

/* Serves until a call waits for the network. */
static void serve_until_wanted(struct trial *t)
{
	for (int i = 0; i < PATIENCE_MS / 2 && !filter_watch_wants_network(t->watch); i++)
		serve_once(t, 2);
	assert_true(filter_watch_wants_network(t->watch));
}

static void the_first_network_socket_waits_until_the_network_is_settled(void **state)
{
	(void)state;
	asks_network = true;
	struct trial t = begin(open_sockets);
	serve_until_wanted(&t);
	assert_int_equal(count_of(&t, "mount"), 1);
	for (int i = 0; i < 20; i++)
		serve_once(&t, 1);
	assert_int_equal(waitpid(t.pid, NULL, WNOHANG), 0); /* it still waits */
	assert_int_equal(count_of(&t, "socket(AF_INET, SOCK_RAW, 1)"), 0);

	filter_watch_network_settled(t.watch);
	assert_false(filter_watch_wants_network(t.watch));
	assert_int_equal(serve(&t), 0);
	assert_int_equal(count_of(&t, "socket(AF_INET, SOCK_RAW, 1)"), 3);
	filter_watch_destroy(&t.watch);
}

static void ask_netlink(void)
{
	CHECK(socket(AF_NETLINK, SOCK_RAW, 0) >= 0);
}

static void a_netlink_socket_asks_for_the_network_too(void **state)
{
	(void)state;
	asks_network = true;
	struct trial t = begin(ask_netlink);
	serve_until_wanted(&t);
	filter_watch_network_settled(t.watch);
	assert_int_equal(serve(&t), 0);
	filter_watch_destroy(&t.watch);
}

static void settled_before_the_start_nothing_waits(void **state)
{
	(void)state;
	asks_network = true;
	struct trial t = begin(open_sockets);
	filter_watch_network_settled(t.watch);
	assert_int_equal(serve(&t), 0);
	assert_false(filter_watch_wants_network(t.watch));
	filter_watch_destroy(&t.watch);
}

static void open_inet_sockets(void)
{
	for (int i = 0; i < 3; i++)
		CHECK(socket(i % 2 ? AF_INET : AF_INET6, SOCK_STREAM, 0) >= 0);
}

/* Nobody answers: the calls must not wait for the supervisor. */
static void without_a_network_to_build_inet_sockets_are_not_notified(void **state)
{
	(void)state;
	struct trial t = begin(open_inet_sockets);
	int status;
	assert_int_equal(waitpid(t.pid, &status, 0), t.pid);
	assert_int_equal(status, 0);
	filter_watch_destroy(&t.watch);
}

static void die_waiting(void)
{
	pid_t pid = test_fork();
	if (pid == 0) {
		(void)socket(AF_INET, SOCK_STREAM, 0);
		_exit(0);
	}
	CHECK(await_true(&shared->goes_on)); /* its call has been received */
	CHECK(kill(pid, SIGKILL) == 0);
	int status;
	CHECK(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status));
	shared->is_dead = true;
	open_sockets();
}

static void a_caller_that_dies_waiting_for_the_network_is_skipped(void **state)
{
	(void)state;
	asks_network = true;
	struct trial t = begin(die_waiting);
	serve_until_wanted(&t);
	shared->goes_on = true;
	assert_true(await_true(&shared->is_dead));
	filter_watch_network_settled(t.watch);
	assert_int_equal(serve(&t), 0);
	assert_int_equal(count_of(&t, "mount"), 1);
	filter_watch_destroy(&t.watch);
}

/* The network that nobody waits for any more is settled without an error. */
static void no_call_is_answered_after_all_processes_have_ended(void **state)
{
	(void)state;
	asks_network = true;
	struct trial t = begin(ask_netlink);
	int status;
	bool is_complete;
	serve_until_wanted(&t);
	assert_return_code(kill(t.pid, SIGKILL), errno);
	assert_int_equal(waitpid(t.pid, &status, 0), t.pid);
	serve_until_closed(&t);
	filter_watch_network_settled(t.watch);
	assert_int_equal(names_of(&t, &is_complete), 0);
	assert_true(is_complete);
	filter_watch_destroy(&t.watch);
}

static void on_alarm(int signal)
{
	(void)signal;
	shared->alarms++;
}

static void open_under_signals(void)
{
	struct sigaction action = { .sa_handler = on_alarm, .sa_flags = SA_RESTART };
	const struct itimerval often = { { 0, 5000 }, { 0, 5000 } };
	const struct itimerval never = { 0 };
	CHECK(sigaction(SIGALRM, &action, NULL) == 0);
	const int first = dup(0), second = dup(0);
	CHECK(close(first) == 0 && close(second) == 0);
	CHECK(setitimer(ITIMER_REAL, &often, NULL) == 0);
	CHECK(socket(AF_INET, SOCK_STREAM, 0) == first);
	CHECK(setitimer(ITIMER_REAL, &never, NULL) == 0);
	CHECK(shared->alarms > 0);
	CHECK(socket(AF_INET, SOCK_STREAM, 0) == second); /* the restarted call has left none */
}

/* The signal is pending in a wait that only a fatal one ends, or its handler has run again. */
static bool signal_has_come(pid_t pid, unsigned alarms_before)
{
	char text[4096];
	unsigned long long pending = 0;
	assert_true(read_of_thread(pid, "status", text, sizeof(text)));
	const char *line = strstr(text, "ShdPnd:");
	assert_non_null(line);
	assert_int_equal(sscanf(line, "ShdPnd: %llx", &pending), 1);
	return (pending >> (SIGALRM - 1) & 1) || shared->alarms > alarms_before;
}

static void await_signal(pid_t pid)
{
	const unsigned before = shared->alarms;
	bool has_come = false;
	for (int i = 0; i < PATIENCE_MS && !has_come; i++) {
		(void)usleep(1000);
		has_come = signal_has_come(pid, before);
	}
	assert_true(has_come);
}

/* Without WAIT_KILLABLE_RECV a signal ends the wait, and the call is notified again. */
static void a_call_that_signals_interrupt_asks_again_and_goes_on(void **state)
{
	(void)state;
	for (int round = 0; round < 2; round++) {
		kernel = round == 0 ? REAL : OLD_KERNEL;
		asks_network = true;
		struct trial t = begin(open_under_signals);
		serve_until_wanted(&t);
		await_signal(t.pid);
		filter_watch_network_settled(t.watch);
		assert_int_equal(serve(&t), 0);
		filter_watch_destroy(&t.watch);
	}
}

static void *open_in_thread(void *fd)
{
	*(int *)fd = socket(AF_INET, SOCK_STREAM, 0);
	return NULL;
}

#define THREADS 300 /* more than the supervisor lets wait at a time */

static void open_in_threads(void)
{
	static pthread_t threads[THREADS];
	static int fds[THREADS];
	for (int i = 0; i < THREADS; i++)
		CHECK(pthread_create(&threads[i], NULL, open_in_thread, &fds[i]) == 0);
	for (int i = 0; i < THREADS; i++)
		CHECK(pthread_join(threads[i], NULL) == 0 && fds[i] >= 0);
}

static void threads_wait_for_the_same_network(void **state)
{
	(void)state;
	asks_network = true;
	struct trial t = begin(open_in_threads);
	serve_until_wanted(&t);
	for (int i = 0; i < PATIENCE_MS / 2 && filter_watch_fd(t.watch) >= 0; i++)
		serve_once(&t, 2);
	assert_int_equal(filter_watch_fd(t.watch), -1); /* so many wait */
	assert_int_equal(filter_watch_paused_until_ms(t.watch), 0);
	filter_watch_network_settled(t.watch);
	assert_int_equal(serve(&t), 0);
	filter_watch_destroy(&t.watch);
}

static void open_beside_a_refused_call(void)
{
	pthread_t thread;
	int fd = -1;
	CHECK(pthread_create(&thread, NULL, open_in_thread, &fd) == 0);
	CHECK(await_true(&shared->goes_on));
	CHECK(fails(mount("x", "/", "tmpfs", 0, NULL), EPERM));
	CHECK(pthread_join(thread, NULL) == 0 && fd >= 0);
}

static void other_calls_are_answered_while_one_waits_for_the_network(void **state)
{
	(void)state;
	asks_network = true;
	struct trial t = begin(open_beside_a_refused_call);
	serve_until_wanted(&t);
	shared->goes_on = true;
	for (int i = 0; i < PATIENCE_MS / 2 && count_of(&t, "mount") == 0; i++)
		serve_once(&t, 2);
	assert_int_equal(count_of(&t, "mount"), 1);
	assert_true(filter_watch_wants_network(t.watch));
	filter_watch_network_settled(t.watch);
	assert_int_equal(serve(&t), 0);
	filter_watch_destroy(&t.watch);
}

struct opener {
	atomic_int tid; /* 0: it does not run yet */
	int fd;
};

static void *tell_and_open(void *context)
{
	struct opener *o = context;
	o->tid = gettid();
	o->fd = socket(AF_INET, SOCK_STREAM, 0);
	return NULL;
}

/* Handlers without SA_RESTART, as Python's. */
static void open_under_interrupting_signals(void)
{
	const struct sigaction action = { .sa_handler = on_alarm };
	static struct opener openers[4];
	pthread_t threads[4];
	CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
	for (int i = 0; i < 4; i++)
		CHECK(pthread_create(&threads[i], NULL, tell_and_open, &openers[i]) == 0);
	for (int i = 0; i < 4; i++) {
		while (openers[i].tid == 0)
			(void)usleep(1000);
		CHECK(await_blocked_in(openers[i].tid, SYS_socket));
	}
	CHECK(fails(mount("x", "/", "tmpfs", 0, NULL), EPERM)); /* the four have been received */
	for (int i = 0; i < 4; i++)
		CHECK(pthread_kill(threads[i], SIGUSR1) == 0);
	CHECK(fails(chroot("/"), EPERM)); /* now they may go on */
	for (int i = 0; i < 4; i++)
		CHECK(pthread_join(threads[i], NULL) == 0 && openers[i].fd >= 0);
}

static bool has_killable_waits(void)
{
	const unsigned flags = SECCOMP_FILTER_FLAG_NEW_LISTENER |
			       SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
	return __real_sys_seccomp(SECCOMP_SET_MODE_FILTER, flags, NULL) < 0 && errno == EFAULT;
}

static void signals_do_not_interrupt_calls_that_wait_for_the_network(void **state)
{
	(void)state;
	if (!has_killable_waits())
		skip();
	asks_network = true;
	struct trial t = begin(open_under_interrupting_signals);
	for (int i = 0; i < PATIENCE_MS / 2 && count_of(&t, "chroot") == 0; i++)
		serve_once(&t, 2);
	assert_true(filter_watch_wants_network(t.watch));
	filter_watch_network_settled(t.watch);
	assert_int_equal(serve(&t), 0);
	filter_watch_destroy(&t.watch);
}

/* The supervisor sees that there is no listener, and builds the network before the program. */
static void open_without_listener(void)
{
	CHECK(socket(AF_INET, SOCK_STREAM, 0) >= 0);
	CHECK(fails(socket(AF_NETLINK, SOCK_RAW, 0), ENOSYS));
	CHECK(socket(AF_UNIX, SOCK_STREAM, 0) >= 0);
}

static void where_another_listens_no_network_is_asked_for(void **state)
{
	(void)state;
	asks_network = true;
	kernel = OUTER_LISTENER;
	struct trial t = begin(open_without_listener);
	assert_null(t.watch);
	assert_int_equal(serve(&t), 0);
}

/* A child asks and is killed while it waits for the answer. */
static void die_asking(void)
{
	pid_t pid = test_fork();
	if (pid == 0) {
		(void)syscall(SYS_chroot, "/");
		_exit(0);
	}
	CHECK(await_blocked_in(pid, SYS_chroot));
	CHECK(kill(pid, SIGKILL) == 0);
	int status;
	CHECK(waitpid(pid, &status, 0) == pid);
	shared->is_dead = true;
	CHECK(fails(mount("x", "/", "tmpfs", 0, NULL), EPERM));
}

static void an_asker_that_dies_is_skipped(void **state)
{
	(void)state;
	struct trial t = begin(die_asking);
	assert_true(await_true(&shared->is_dead));
	assert_true(await_blocked_in(t.pid, SYS_mount)); /* its parent asks */
	assert_int_equal(serve(&t), 0);
	assert_int_equal(count_of(&t, "mount"), 1);
	filter_watch_destroy(&t.watch);
}

static void do_nothing(void)
{
}

static void the_watch_closes_when_no_process_is_left(void **state)
{
	(void)state;
	struct trial t = begin(do_nothing);
	assert_int_equal(serve(&t), 0);
	serve_until_closed(&t);
	bool is_complete;
	assert_int_equal(names_of(&t, &is_complete), 0);
	assert_true(is_complete);
	filter_watch_destroy(&t.watch);
	assert_null(t.watch);
	filter_watch_destroy(&t.watch);
}

/* --- kernels, and those who are there before us ----------------------------------------- */

static void a_kernel_without_killable_waits_gets_the_plain_listener(void **state)
{
	(void)state;
	kernel = OLD_KERNEL;
	struct trial t = begin(try_escapes);
	assert_non_null(t.watch);
	assert_int_equal(serve(&t), 0);
	assert_int_equal(count_of(&t, "mount"), 2);
	filter_watch_destroy(&t.watch);
}

static void refuse_unnamed(void)
{
	CHECK(fails(mount("x", "/", "tmpfs", 0, NULL), ENOSYS));
	CHECK(fails(ptrace(PTRACE_TRACEME, 0, NULL, NULL), ENOSYS));
	CHECK(fails(tee(0, 1, 1, 0), EPERM)); /* not notified, so answered as before */
}

static void where_another_listens_calls_are_refused_unnamed(void **state)
{
	(void)state;
	kernel = OUTER_LISTENER;
	struct trial t = begin(refuse_unnamed);
	assert_null(t.watch);
	assert_int_equal(serve(&t), 0);
}

/* The same with a real outer filter: its owner must not be able to answer in our place. */
static void load_again(void)
{
	int listener_fd = 0;
	load_or_leave(&listener_fd);
	CHECK(listener_fd == -1);
	refuse_unnamed();
}

static void a_second_filter_inside_the_first_has_no_listener(void **state)
{
	(void)state;
	struct trial t = begin(load_again);
	assert_int_equal(serve(&t), 0);
	bool is_complete;
	assert_int_equal(names_of(&t, &is_complete), 0);
	filter_watch_destroy(&t.watch);
}

static void a_kernel_that_refuses_is_an_error(void **state)
{
	(void)state;
	struct cj_error err = { 0 };
	struct filter f;
	int listener_fd = -2;
	filter_builtin(&f);
	kernel = FORBIDDEN;
	assert_int_equal(filter_load(&f, &listener_fd, &err), -EACCES);
	assert_string_equal(err.msg,
			    "seccomp(2): load a filter with a listener: Permission denied");
	assert_int_equal(listener_fd, -2);
}

static void a_filter_that_does_not_hold_is_an_error(void **state)
{
	(void)state;
	struct cj_error err = { 0 };
	struct filter f;
	int listener_fd = -2;
	filter_builtin(&f);
	kernel = PRETENDS;
	assert_int_equal(filter_load(&f, &listener_fd, &err), -EINVAL);
	assert_string_equal(err.msg, "the system call filter is loaded but does not refuse clone3");
	assert_int_equal(listener_fd, -2);
}

static void close_uncounted(void)
{
	struct cj_error err = { 0 };
	struct filter f;
	int listener_fd = -1;
	CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	filter_builtin(&f);
	f.closes_uncounted = true;
	CHECK(filter_load(&f, &listener_fd, &err) == 0);
	CHECK(listener_fd >= 0);
	CHECK(fails(memfd_create("x", MFD_CLOEXEC), ENOSYS));
	CHECK(fails(shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600), ENOSYS));
	CHECK(fails(semget(IPC_PRIVATE, 1, IPC_CREAT | 0600), ENOSYS));
	CHECK(fails(msgget(IPC_PRIVATE, IPC_CREAT | 0600), ENOSYS));
	CHECK(getppid() > 0);
	_exit(0);
}

static void calls_whose_memory_no_cgroup_counts_can_be_refused(void **state)
{
	(void)state;
	int status;
	pid_t pid = test_fork();
	assert_return_code(pid, errno);
	if (pid == 0)
		close_uncounted();
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

#define TEST(name) cmocka_unit_test_teardown(name, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(refused_calls_are_named_and_counted),
		TEST(refused_sockets_are_named_by_family_and_type),
		TEST(grandchildren_are_under_it_too),
#ifdef __x86_64__
		TEST(foreign_entries_kill),
#endif
		TEST(a_flood_of_refused_calls_is_paused_and_counted),
		TEST(a_flood_from_threads_does_not_starve_another_call),
		TEST(calls_that_nobody_answers_do_not_keep_a_process),
		TEST(names_are_bounded),
		TEST(a_filter_of_the_payloads_own_opens_nothing),
		TEST(a_jail_loads_a_bounded_number_of_filters),
		TEST(netlink_sockets_are_bounded_while_they_exist),
		TEST(the_row_of_netlink_is_found_among_the_protocols),
		TEST(the_first_network_socket_waits_until_the_network_is_settled),
		TEST(a_netlink_socket_asks_for_the_network_too),
		TEST(settled_before_the_start_nothing_waits),
		TEST(without_a_network_to_build_inet_sockets_are_not_notified),
		TEST(a_caller_that_dies_waiting_for_the_network_is_skipped),
		TEST(no_call_is_answered_after_all_processes_have_ended),
		TEST(a_call_that_signals_interrupt_asks_again_and_goes_on),
		TEST(threads_wait_for_the_same_network),
		TEST(other_calls_are_answered_while_one_waits_for_the_network),
		TEST(signals_do_not_interrupt_calls_that_wait_for_the_network),
		TEST(where_another_listens_no_network_is_asked_for),
		TEST(an_asker_that_dies_is_skipped),
		TEST(the_watch_closes_when_no_process_is_left),
		TEST(a_kernel_without_killable_waits_gets_the_plain_listener),
		TEST(where_another_listens_calls_are_refused_unnamed),
		TEST(a_second_filter_inside_the_first_has_no_listener),
		TEST(a_kernel_that_refuses_is_an_error),
		TEST(a_filter_that_does_not_hold_is_an_error),
		TEST(calls_whose_memory_no_cgroup_counts_can_be_refused),
	};
	return cmocka_run_group_tests(tests, share_memory, NULL);
}
