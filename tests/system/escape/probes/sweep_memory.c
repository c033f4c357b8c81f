/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sweep_memory - make one allowed call as often as possible and keep what it made.  Acts.
 *
 *	sweep_memory list
 *	sweep_memory ROW MILLISECONDS
 *
 * `list` prints every row, and of the options, commands and requests those that some descriptor
 * takes here.  With a row it fills in several processes, prints "ready CALLS" and holds everything
 * until standard input ends, so that the caller can measure.  kernel_sweep.py makes the verdict.
 */
#include "sweep_values.h"

#include <errno.h>
#include <mqueue.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#define PROCESSES 8
#define FILES     128  /* of one process: so many sockets of themselves take a few MiB */
#define OBJECTS   900  /* of one process, where the objects are what is measured */
#define CALLS     4000 /* with one descriptor */

static long fill_ms, ends_at_ms;
static char block[16 * 1024];

/* CPU time of this process: on a busy machine it makes as many calls as on an idle one. */
static long now_ms(void)
{
	struct timespec now;
	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static bool is_over(void)
{
	return now_ms() >= ends_at_ms;
}

/* --- options, commands and requests: numbers that a call takes ------------------- */

/* What a row of numbers calls with one descriptor; returns less than 0 where it is refused. */
typedef long (*number_call)(int fd, const int number[2], int value, uint32_t n);

static long call_setsockopt(int fd, const int number[2], int value, uint32_t n)
{
	static struct sweep_value bytes;
	make_value(&bytes, value, n);
	return setsockopt(fd, number[0], number[1], bytes.at, bytes.size);
}

static long call_getsockopt(int fd, const int number[2], int value, uint32_t n)
{
	static struct sweep_value bytes;
	make_value(&bytes, value, n);
	return getsockopt(fd, number[0], number[1], bytes.at, &bytes.size);
}

static long call_fcntl(int fd, const int number[2], int value, uint32_t n)
{
	static struct sweep_value bytes;
	make_value(&bytes, value, n);
	return fcntl(fd, number[0], value == VALUE_INT ? (void *)(uintptr_t)n : bytes.at);
}

static long call_ioctl(int fd, const int number[2], int value, uint32_t n)
{
	static struct sweep_value bytes;
	make_value(&bytes, value, n);
	return ioctl(fd, (unsigned long)number[0], bytes.at);
}

static long call_prctl(int fd, const int number[2], int value, uint32_t n)
{
	static struct sweep_value bytes;
	(void)fd;
	make_value(&bytes, value, n);
	return prctl(number[0], value == VALUE_INT ? (unsigned long)n : (unsigned long)bytes.at, 0,
		     0, 0);
}

static const struct number_row {
	const char *name;
	number_call call;
	int first, last; /* number[1] of an option, else number[0] */
} number_rows[] = {
	{ "setsockopt", call_setsockopt, 0, 130 },
	{ "getsockopt", call_getsockopt, 0, 130 },
	{ "fcntl", call_fcntl, 3, 1050 },
	{ "ioctl", call_ioctl, 0, 0 },
	{ "prctl", call_prctl, 1, 80 },
};
#define NUMBER_ROWS (sizeof(number_rows) / sizeof(number_rows[0]))

/* The first kind of descriptor and value of `kind`, `value` on that this takes. */
static bool find_taken(const struct number_row *row, const int number[2], int *kind, int *value)
{
	for (; *kind < KINDS; (*kind)++, *value = 0) {
		int fd = open_kind(*kind);
		for (; fd >= 0 && *value < VALUES; (*value)++) {
			if (row->call(fd, number, *value, 1) >= 0) {
				(void)close(fd);
				return true;
			}
		}
		if (fd >= 0)
			(void)close(fd);
	}
	return false;
}

/* Tried in a child, which an option may end or stop: one that is taken is a row. */
static void list_number(const struct number_row *row, int first, int second)
{
	const int number[2] = { first, second };
	int kind = 0, value = 0, status = 0;
	pid_t pid = fork();
	if (pid == 0) {
		(void)alarm(5);
		_exit(find_taken(row, number, &kind, &value) ? 0 : 1);
	}
	if (pid > 0 && waitpid(pid, &status, 0) == pid && status != 0x100)
		printf("%s:%d:%d\n", row->name, first, second);
}

/* Waiting for a lock makes what F_SETLK and F_OFD_SETLK make; no fcntl(2) command is in the gap. */
static bool is_left_out(const struct number_row *row, int number)
{
	bool waits = number == F_SETLKW || number == F_OFD_SETLKW;
	return row->call == call_fcntl && (waits || (number >= 50 && number < 1024));
}

static void list_numbers(void)
{
	static const int levels[] = { SOL_SOCKET,  IPPROTO_IP,   IPPROTO_TCP,
				      IPPROTO_UDP, IPPROTO_IPV6, IPPROTO_ICMPV6,
				      255,         SOL_NETLINK,  284 };
	for (size_t i = 0; i < NUMBER_ROWS; i++) {
		const struct number_row *row = &number_rows[i];
		for (size_t n = 0; i < 2 && n < sizeof(levels) / sizeof(levels[0]); n++)
			for (int option = row->first; option <= row->last; option++)
				list_number(row, levels[n], option);
		for (int number = row->first; i >= 2 && number <= row->last && row->last; number++)
			if (!is_left_out(row, number))
				list_number(row, number, 0);
	}
	for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++)
		for (int low = 0; low < 256; low++)
			list_number(&number_rows[3], (int)requests[i] << 8 | low, 0);
}

/* All values that one kind of descriptor takes, in turn, until it takes no more. */
static long repeat_number(const struct number_row *row, const int number[2], int kind, int value)
{
	long calls = 0;
	uint32_t first = (uint32_t)getpid() % 1000 * CALLS; /* two processes share no object */
	for (int file = 0; file < FILES && !is_over(); file++) {
		int fd = open_kind(kind);
		int failures = 0;
		for (uint32_t n = 1; fd >= 0 && n < CALLS && failures < 8 && !is_over(); n++) {
			bool taken = row->call(fd, number, value, first + n) >= 0;
			failures = taken ? 0 : failures + 1;
			calls += taken;
		}
		if (fd < 0)
			break;
	}
	return calls;
}

/* Each pair of kind and value has its share of the time, the pairs with longer values first. */
static long fill_number(const struct number_row *row, const int number[2])
{
	long whole_ms = ends_at_ms - now_ms(), pairs = 0, calls = 0;
	static int kinds[KINDS * VALUES], values[KINDS * VALUES];
	for (int kind = 0, value = 0; find_taken(row, number, &kind, &value); value++, pairs++) {
		kinds[pairs] = kind;
		values[pairs] = value;
	}
	for (long i = pairs - 1; i >= 0; i--) {
		ends_at_ms = now_ms() + whole_ms / pairs + 1;
		calls += repeat_number(row, number, kinds[i], values[i]);
	}
	return calls;
}

/* --- objects ----------------------------------------------------------------------- */

static bool make_socket(long n)
{
	static const int kinds[] = { KIND_TCP,  KIND_TCP6,   KIND_UDP,
				     KIND_UDP6, KIND_STREAM, KIND_DATAGRAM };
	return open_kind(kinds[n % 6]) >= 0;
}

static bool make_pair(long n)
{
	int ends[2];
	return socketpair(AF_UNIX, n % 2 ? SOCK_STREAM : SOCK_SEQPACKET, 0, ends) == 0;
}

static bool make_pipe(long n)
{
	int ends[2];
	return pipe(ends) == 0 && (n % 2 || fcntl(ends[1], F_SETPIPE_SZ, 1 << 20) >= 0);
}

static bool make_epoll(long n)
{
	static int last = -1;
	struct epoll_event event = { .events = EPOLLIN };
	int fd = epoll_create1(0);
	if (fd >= 0 && n % 4)
		(void)epoll_ctl(fd, EPOLL_CTL_ADD, last, &event);
	last = fd;
	return fd >= 0;
}

static bool make_eventfd(long n)
{
	return eventfd((unsigned int)n, 0) >= 0;
}

static bool make_timerfd(long n)
{
	const struct itimerspec later = { .it_value = { .tv_sec = 1000 + n } };
	int fd = timerfd_create(CLOCK_REALTIME, 0);
	return fd >= 0 &&
	       timerfd_settime(fd, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &later, NULL) == 0;
}

static bool make_signalfd(long n)
{
	sigset_t set;
	(void)n;
	(void)sigfillset(&set);
	return signalfd(-1, &set, 0) >= 0;
}

static bool make_inotify(long n)
{
	char name[64];
	static int fd = -1;
	fd = fd < 0 ? inotify_init1(0) : fd;
	(void)snprintf(name, sizeof(name), "/dev/shm/i%d.%ld", getpid(), n);
	(void)close(creat(name, 0600));
	return inotify_add_watch(fd, name, IN_ALL_EVENTS) >= 0;
}

static bool make_memfd(long n)
{
	(void)n;
	return open_kind(KIND_FILE) >= 0;
}

static bool make_directory(long n)
{
	char name[300];
	(void)snprintf(name, sizeof(name), "/dev/shm/d%d.%ld.%0200d", getpid(), n, 0);
	return mkdir(name, 0700) == 0;
}

static bool make_symlink(long n)
{
	char name[64], target[3000];
	memset(target, 'x', sizeof(target) - 1);
	target[sizeof(target) - 1] = 0;
	(void)snprintf(name, sizeof(name), "/dev/shm/s%d.%ld", getpid(), n);
	return symlink(target, name) == 0;
}

static bool make_attribute(long n)
{
	char name[64];
	(void)snprintf(name, sizeof(name), "user.%ld", n);
	return setxattr("/dev/shm", name, block, 1024, 0) == 0;
}

static bool make_segment(long n)
{
	int id = shmget(IPC_PRIVATE, 4096, 0600);
	return id >= 0 && (n % 2 || shmat(id, NULL, 0) != MAP_FAILED);
}

static bool make_queue(long n)
{
	struct {
		long type;
		char text[4096];
	} message = { .type = n };
	int id = msgget(IPC_PRIVATE, 0600);
	return id >= 0 && msgsnd(id, &message, sizeof(message.text), IPC_NOWAIT) == 0;
}

static bool make_semaphores(long n)
{
	struct sembuf up = { .sem_op = 1, .sem_flg = SEM_UNDO };
	int id = semget(IPC_PRIVATE, (int)(n % 2 ? 1000 : 1), 0600);
	return id >= 0 && semop(id, &up, 1) == 0;
}

static bool make_posix_queue(long n)
{
	char name[64];
	(void)snprintf(name, sizeof(name), "/q%d.%ld", getpid(), n);
	return mq_open(name, O_CREAT | O_RDWR, 0600, NULL) >= 0;
}

static bool make_timer(long n)
{
	timer_t id;
	struct sigevent event = { .sigev_notify = n % 2 ? SIGEV_NONE : SIGEV_SIGNAL,
				  .sigev_signo = SIGUSR1 };
	return timer_create(CLOCK_MONOTONIC, &event, &id) == 0;
}

static bool lock_range(long n, int command)
{
	static int fd = -1;
	struct flock lock = { .l_type = F_WRLCK, .l_start = n % 1000 * 2, .l_len = 1 };
	if (n % 1000 == 1)
		fd = open("/dev/shm", O_TMPFILE | O_RDWR, 0600);
	return fcntl(fd, command, &lock) == 0;
}

static bool make_ofd_lock(long n)
{
	return lock_range(n, F_OFD_SETLK);
}

static bool make_posix_lock(long n)
{
	return lock_range(n, F_SETLK);
}

static bool make_flock(long n)
{
	(void)n;
	return flock(open("/dev/shm", O_RDONLY), LOCK_SH) == 0;
}

static bool make_area(long n)
{
	static char *at;
	if (n % 60000 == 1)
		at = mmap(NULL, 60000 * 4096L, PROT_NONE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	return at != MAP_FAILED && (n % 2 || mprotect(at + n % 60000 * 4096, 4096, PROT_READ) == 0);
}

static bool make_hole(long n)
{
	static char *at;
	if (n % 60000 == 1)
		at = mmap(NULL, 60000 * 4096L, PROT_READ,
			  MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	return at != MAP_FAILED && (n % 2 || munmap(at + n % 60000 * 4096, 4096) == 0);
}

static bool make_locked(long n)
{
	(void)n;
	char *at = mmap(NULL, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return at != MAP_FAILED && mlock2(at, 4096, MLOCK_ONFAULT) == 0;
}

static bool make_table(long n)
{
	static char *at;
	long area = 1L << 30, step = 1L << 21;
	if ((n - 1) % (area / step) == 0)
		at = mmap(NULL, (size_t)area, PROT_READ,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	return at != MAP_FAILED && *(volatile char *)(at + n % (area / step) * step) == 0;
}

static bool make_process(long n)
{
	pid_t pid = n > 20 ? -1 : fork();
	while (pid == 0)
		(void)pause();
	return pid > 0;
}

static bool make_pidfd(long n)
{
	(void)n;
	return syscall(SYS_pidfd_open, getpid(), 0) >= 0;
}

static bool make_signal(long n)
{
	sigset_t set;
	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGRTMIN);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	return sigqueue(getpid(), SIGRTMIN, (union sigval){ .sival_int = (int)n }) == 0;
}

/* A descriptor that travels in a socket and is closed here. */
static bool make_traveller(long n)
{
	static int ends[2];
	union {
		char room[CMSG_SPACE(sizeof(int))];
		struct cmsghdr head;
	} rights = { .head = { CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS } };
	struct iovec one = { block, 1 };
	struct msghdr message = { .msg_iov = &one,
				  .msg_iovlen = 1,
				  .msg_control = &rights,
				  .msg_controllen = sizeof(rights) };
	if (n % 100 == 1 && socketpair(AF_UNIX, SOCK_STREAM, 0, ends) < 0)
		return false;
	int fd = eventfd(0, 0);
	memcpy(CMSG_DATA(&rights.head), &fd, sizeof(fd));
	bool sent = sendmsg(ends[0], &message, MSG_DONTWAIT) == 1;
	(void)close(fd);
	return sent;
}

static bool make_spliced(long n)
{
	int ends[2], fd = open("/proc/self/exe", O_RDONLY);
	loff_t from = n % 4 * 4096;
	bool done = fd >= 0 && pipe(ends) == 0 &&
		    splice(fd, &from, ends[1], NULL, 8192, SPLICE_F_NONBLOCK) > 0;
	(void)close(fd);
	return done;
}

static bool make_bound(long n)
{
	struct sockaddr_in any = { .sin_family = AF_INET };
	int fd = open_kind((int)n % 2 ? KIND_TCP : KIND_UDP);
	return bind(fd, (struct sockaddr *)&any, sizeof(any)) == 0 &&
	       (n % 2 == 0 || listen(fd, 4096) == 0);
}

/* Data that waits in a socket until it takes no more. */
static bool make_waiting(long n)
{
	struct sockaddr_in any = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t size = sizeof(any);
	int fd = open_kind(KIND_UDP), count = 0;
	(void)n;
	if (bind(fd, (struct sockaddr *)&any, size) < 0 ||
	    getsockname(fd, (struct sockaddr *)&any, &size) < 0 ||
	    connect(fd, (struct sockaddr *)&any, size) < 0)
		return false;
	while (count < 400 && send(fd, block, 600, MSG_DONTWAIT) > 0)
		count++;
	return true;
}

static bool make_answers(long n)
{
	const struct {
		struct nlmsghdr head;
		struct ifinfomsg link;
	} ask = { .head = { sizeof(ask), RTM_GETLINK, NLM_F_REQUEST, 0, 0 },
		  .link = { .ifi_index = 1 } };
	int fd = open_kind(KIND_NETLINK), more = 1 << 30;
	(void)n;
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &more, sizeof(more));
	for (int i = 0; i < 300 && send(fd, &ask, sizeof(ask), MSG_DONTWAIT) > 0; i++)
		;
	return fd >= 0;
}

static bool make_ruleset(long n)
{
	static int fd;
	uint64_t attributes[2] = { 0, 3 };
	struct __attribute__((packed)) {
		uint64_t access, port;
	} rule = { 1, (uint64_t)n % 65536 };
	if (n % 500 == 1)
		fd = (int)syscall(SYS_landlock_create_ruleset, attributes, sizeof(attributes), 0);
	return fd >= 0 && syscall(SYS_landlock_add_rule, fd, 2, &rule, 0) == 0;
}

static bool make_notified(long n)
{
	int ends[2], on = 1;
	(void)n;
	return pipe(ends) == 0 && fcntl(ends[0], F_SETOWN, getpid()) == 0 &&
	       ioctl(ends[0], FIOASYNC, &on) == 0 && ioctl(ends[1], FIOASYNC, &on) == 0;
}

static bool make_mask(long n)
{
	cpu_set_t set;
	struct rlimit limit;
	(void)n;
	return sched_getaffinity(0, sizeof(set), &set) == 0 &&
	       sched_setaffinity(0, sizeof(set), &set) == 0 &&
	       getrlimit(RLIMIT_STACK, &limit) == 0 && setrlimit(RLIMIT_STACK, &limit) == 0;
}

static bool make_list(long n)
{
	(void)n;
	return syscall(SYS_set_robust_list, block, 24) == 0;
}

static bool make_terminal(long n)
{
	(void)n;
	return write(open_kind(KIND_TERMINAL), block, 4000) > 0;
}

static bool make_nothing(long n)
{
	return n < 10;
}

static const struct object_row {
	const char *name;
	bool (*make)(long n);
	long most; /* in one process */
} objects[] = {
	{ "nothing", make_nothing, 10 },
	{ "sockets", make_socket, OBJECTS },
	{ "socketpair", make_pair, OBJECTS / 2 },
	{ "pipe", make_pipe, OBJECTS / 2 },
	{ "epoll", make_epoll, OBJECTS },
	{ "eventfd", make_eventfd, OBJECTS },
	{ "timerfd", make_timerfd, OBJECTS },
	{ "signalfd", make_signalfd, OBJECTS },
	{ "inotify", make_inotify, LONG_MAX },
	{ "memfd_create", make_memfd, OBJECTS },
	{ "mkdir", make_directory, LONG_MAX },
	{ "symlink", make_symlink, LONG_MAX },
	{ "setxattr", make_attribute, LONG_MAX },
	{ "shmget", make_segment, LONG_MAX },
	{ "msgget", make_queue, LONG_MAX },
	{ "semget", make_semaphores, LONG_MAX },
	{ "mq_open", make_posix_queue, OBJECTS },
	{ "timer_create", make_timer, LONG_MAX },
	{ "F_OFD_SETLK", make_ofd_lock, OBJECTS * 1000L },
	{ "F_SETLK", make_posix_lock, OBJECTS * 1000L },
	{ "flock", make_flock, OBJECTS },
	{ "mprotect", make_area, LONG_MAX },
	{ "munmap", make_hole, LONG_MAX },
	{ "mlock2", make_locked, LONG_MAX },
	{ "page_tables", make_table, LONG_MAX },
	{ "fork", make_process, 20 },
	{ "pidfd_open", make_pidfd, OBJECTS },
	{ "sigqueue", make_signal, LONG_MAX },
	{ "SCM_RIGHTS", make_traveller, OBJECTS * 20L },
	{ "splice", make_spliced, OBJECTS / 2 },
	{ "bind", make_bound, OBJECTS },
	{ "udp_queue", make_waiting, OBJECTS },
	{ "netlink_queue", make_answers, OBJECTS },
	{ "landlock", make_ruleset, OBJECTS * 100L },
	{ "FIOASYNC", make_notified, OBJECTS / 2 },
	{ "sched_setaffinity", make_mask, LONG_MAX },
	{ "set_robust_list", make_list, LONG_MAX },
	{ "terminal", make_terminal, OBJECTS },
};
#define OBJECT_ROWS (sizeof(objects) / sizeof(objects[0]))

static long fill_objects(const struct object_row *row)
{
	long n = 1;
	while (n <= row->most && (n % 16 || !is_over()) && row->make(n))
		n++;
	return n - 1;
}

/* --- one row, in several processes ------------------------------------------------- */

/* How many calls were taken in this process, or -1: no such row. */
static long fill(const char *name)
{
	int number[2] = { 0, 0 };
	char word[32];
	for (size_t i = 0; i < OBJECT_ROWS; i++)
		if (strcmp(objects[i].name, name) == 0)
			return fill_objects(&objects[i]);
	if (sscanf(name, "%31[a-z]:%d:%d", word, &number[0], &number[1]) != 3)
		return -1;
	for (size_t i = 0; i < NUMBER_ROWS; i++)
		if (strcmp(number_rows[i].name, word) == 0)
			return fill_number(&number_rows[i], number);
	return -1;
}

static void fill_and_wait(const char *name, int said)
{
	ends_at_ms = now_ms() + fill_ms;
	long calls = fill(name);
	(void)!write(said, &calls, sizeof(calls));
	(void)close(said);
	for (;;)
		(void)pause();
}

static int hold(const char *name)
{
	long calls = 0, sum = 0;
	int said[2];
	if (pipe(said) < 0)
		return 2;
	for (int i = 0; i < PROCESSES; i++)
		if (fork() == 0)
			fill_and_wait(name, said[1]);
	(void)close(said[1]);
	/* Not until the end of the pipe: rows leave processes that keep it open. */
	for (int i = 0;
	     i < PROCESSES && read(said[0], &calls, sizeof(calls)) == (ssize_t)sizeof(calls); i++)
		sum += calls;
	printf("ready %ld\n", sum);
	(void)fflush(stdout);
	while (read(STDIN_FILENO, block, sizeof(block)) > 0)
		;
	return 0;
}

int main(int argc, char **argv)
{
	struct rlimit files;
	(void)signal(SIGIO, SIG_IGN);
	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &files);
	}
	/* Root outside a jail would change the host with requests such as SIOCSIFFLAGS. */
	bool is_jailed = prctl(PR_GET_SECCOMP, 0, 0, 0, 0) == 2;
	if (!is_jailed && (argc < 2 || strcmp(argv[1], "list") == 0 ||
			   strncmp(argv[1], "ioctl", 5) == 0 || strncmp(argv[1], "prctl", 5) == 0))
		return 2;
	(void)unshare(CLONE_NEWNET);
	if (argc == 2 && strcmp(argv[1], "list") == 0) {
		for (size_t i = 0; i < OBJECT_ROWS; i++)
			puts(objects[i].name);
		(void)fflush(stdout);
		list_numbers();
		return 0;
	}
	if (argc != 3)
		return 2;
	fill_ms = atol(argv[2]);
	return hold(argv[1]);
}
