/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exhaust_memory - hold so many MiB by a road that a careless limit does not see.  Acts.
 *
 *	exhaust_memory ROAD MIB
 *
 * It says ESCAPED only when it has kept all of it for a while, so that the harness had the
 * time to look.  Roads that processes see as their own memory (heap, shared memory, memfd, files)
 * are in ../system/probes/load.c.
 */
#include "verdict.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/seccomp.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#define KIB       1024L
#define MIB       (1024L * 1024)
#define HELD_FOR  2000 /* ms */
#define FILES_MAX 900  /* of one process: below the jail's 1024 and the usual soft limit */

static char block[64 * 1024];

static void hold(void)
{
	usleep(HELD_FOR * 1000);
}

/* The end of every attempt: `got` bytes are in use now. */
static void conclude(const char *name, long got, long wanted)
{
	if (got < wanted) {
		held_at(name, got / MIB, wanted / MIB);
		return;
	}
	hold();
	verdict(name, "ESCAPED", "held %ld MiB", got / MIB);
}

static void *map(size_t size, int protection, int flags)
{
	void *at = mmap(NULL, size, protection, flags | MAP_ANONYMOUS, -1, 0);
	return at == MAP_FAILED ? NULL : at;
}

/*
 * A road that needs more descriptors than one process may have, in as many processes as it
 * takes.  fill() returns how many bytes it holds in this one.
 */
static void in_processes(const char *name, long wanted, long (*fill)(long bytes))
{
	long each = wanted / 8 + 1, sum = 0, got = 0;
	int said[2], code = 0;
	if (pipe(said) < 0)
		exit(2);
	for (int i = 0; i < 8; i++) {
		pid_t pid = fork();
		if (pid == 0) {
			long words[2] = { fill(each), errno };
			(void)!write(said[1], words, sizeof(words));
			pause();
			_exit(0);
		}
	}
	for (int i = 0; i < 8; i++) {
		long words[2];
		if (read(said[0], words, sizeof(words)) != (ssize_t)sizeof(words))
			break;
		got = words[0];
		code = got < each ? (int)words[1] : code;
		sum += got;
	}
	errno = code;
	conclude(name, sum, wanted);
	(void)signal(SIGTERM, SIG_IGN);
	(void)kill(0, SIGTERM);
}

/* --- memory of processes that a look at /proc misses ----------------------------- */

/* Shared pages stay when no process maps them any more; the area does. */
static void road_unmapped(const char *name, long wanted)
{
	long got = 0;
	for (; got < wanted; got += MIB) {
		char *at = map(MIB, PROT_READ | PROT_WRITE, MAP_SHARED);
		if (!at)
			break;
		memset(at, 1, MIB);
		(void)madvise(at, MIB, MADV_DONTNEED);
	}
	conclude(name, got, wanted);
}

static void *fill_heap(void *bytes)
{
	for (long got = 0; got < *(long *)bytes; got += MIB) {
		char *at = map(MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE);
		if (!at) {
			*(long *)bytes = -errno;
			break;
		}
		memset(at, 1, MIB);
	}
	return NULL;
}

static long told_bytes;
static int told_fd;

static void *fill_and_tell(void *unused)
{
	long bytes = told_bytes;
	(void)fill_heap(&bytes);
	(void)!write(told_fd, &bytes, sizeof(bytes));
	pause();
	return unused;
}

/* The first thread of a process ends, and with it what /proc/PID/status says of its memory. */
static void leaderless_child(long each)
{
	pthread_t thread;
	told_bytes = each;
	if (pthread_create(&thread, NULL, fill_and_tell, NULL) != 0)
		_exit(1);
	pthread_exit(NULL);
}

static void road_leaderless(const char *name, long wanted)
{
	long sum = 0, each = wanted / 4;
	int said[2];
	if (pipe(said) < 0)
		exit(2);
	told_fd = said[1];
	for (int i = 0; i < 4; i++)
		if (fork() == 0)
			leaderless_child(each);
	for (int i = 0; i < 4; i++) {
		long bytes = 0;
		if (read(said[0], &bytes, sizeof(bytes)) != (ssize_t)sizeof(bytes) || bytes < 0) {
			errno = (int)-bytes;
			break;
		}
		sum += bytes;
	}
	conclude(name, sum, wanted);
	(void)signal(SIGTERM, SIG_IGN);
	(void)kill(0, SIGTERM);
}

/*
 * A chain of processes, each of which waits as in vfork(2) for the next one, that has a copy of its
 * memory.  The last one has the sum.
 */
static void road_waiting(const char *name, long wanted)
{
	enum { LENGTH = 4 };
	long each = wanted / LENGTH;
	char *at = map((size_t)each, PROT_READ | PROT_WRITE, MAP_PRIVATE);
	for (int i = 0; at && i < LENGTH; i++) {
		memset(at, i + 1, (size_t)each);
		long pid = i + 1 < LENGTH ? syscall(SYS_clone, CLONE_VFORK | SIGCHLD, 0, 0, 0, 0)
					  : 0;
		if (pid != 0)
			_exit(0); /* the last one has said it, or there is none */
	}
	conclude(name, at ? wanted : 0, wanted);
}

/* Reading one byte of every 2 MiB: no page of one's own, but a page of page tables each. */
static void road_tables(const char *name, long wanted)
{
	long got = 0, stride = 2 * MIB, area = 1024 * MIB;
	(void)prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
	while (got < wanted) {
		volatile char *at = map((size_t)area, PROT_READ, MAP_PRIVATE | MAP_NORESERVE);
		if (!at)
			break;
		for (long i = 0; i < area; i += stride, got += 4 * KIB)
			(void)at[i];
	}
	conclude(name, got, wanted);
}

/* --- the kernel's memory --------------------------------------------------------- */

/* What a socket or pipe takes until it is full. */
static long fill_descriptor(int fd)
{
	long got = 0;
	ssize_t put;
	(void)fcntl(fd, F_SETFL, O_NONBLOCK);
	while ((put = write(fd, block, 16 * KIB)) > 0)
		got += put;
	return got;
}

static long fill_unix(long bytes)
{
	long got = 0;
	int ends[2];
	for (int i = 0; got < bytes && i < FILES_MAX / 2; i++) {
		if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) < 0)
			break;
		got += fill_descriptor(ends[0]);
	}
	return got;
}

static void road_unix(const char *name, long wanted)
{
	in_processes(name, wanted, fill_unix);
}

/* Past 64 MiB of one user's a pipe has two pages: pipe(7). */
static long fill_pipes(long bytes)
{
	long got = 0;
	int ends[2];
	for (int i = 0; got < bytes && i < FILES_MAX / 2; i++) {
		if (pipe(ends) < 0)
			break;
		(void)fcntl(ends[1], F_SETPIPE_SZ, MIB);
		got += fill_descriptor(ends[1]);
	}
	return got;
}

static void road_pipes(const char *name, long wanted)
{
	in_processes(name, wanted, fill_pipes);
}

/* Datagrams to oneself that are never read. */
static long fill_udp(long bytes)
{
	long got = 0;
	for (int i = 0; got < bytes && i < FILES_MAX; i++) {
		struct sockaddr_in here = { .sin_family = AF_INET,
					    .sin_addr = { htonl(INADDR_LOOPBACK) } };
		socklen_t size = sizeof(here);
		int fd = socket(AF_INET, SOCK_DGRAM, 0);
		if (fd < 0 || bind(fd, (struct sockaddr *)&here, size) < 0 ||
		    getsockname(fd, (struct sockaddr *)&here, &size) < 0 ||
		    connect(fd, (struct sockaddr *)&here, size) < 0)
			break;
		for (int n = 0; n < 12 && send(fd, block, 16 * KIB, MSG_DONTWAIT) > 0; n++)
			got += 16 * KIB;
	}
	return got;
}

static void road_udp(const char *name, long wanted)
{
	in_processes(name, wanted, fill_udp);
}

/* Unread answers of the kernel about a link that every namespace has. */
static long fill_netlink(long bytes)
{
	const struct {
		struct nlmsghdr head;
		struct ifinfomsg link;
	} ask = {
		.head = { sizeof(ask), RTM_GETLINK, NLM_F_REQUEST, 0, 0 },
		.link = { .ifi_index = 1 },
	};
	uint32_t room[SK_MEMINFO_VARS] = { 0 };
	long got = 0;
	for (int i = 0; got < bytes && i < FILES_MAX; i++, got += room[SK_MEMINFO_RMEM_ALLOC]) {
		socklen_t size = sizeof(room);
		int fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE), more = 1 << 30;
		(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &more, sizeof(more));
		/* Past what the socket has room for answers are dropped, and send(2) says nothing.
		 */
		for (int n = 0; n < 300 && send(fd, &ask, sizeof(ask), MSG_DONTWAIT) > 0; n++)
			;
		if (getsockopt(fd, SOL_SOCKET, SO_MEMINFO, room, &size) < 0)
			break;
	}
	return got;
}

static void road_netlink(const char *name, long wanted)
{
	in_processes(name, wanted, fill_netlink);
}

/* A file of a tmpfs that is nowhere and goes with its last descriptor. */
static int open_nameless(void)
{
	return open("/dev/shm", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
}

/* Locks of single bytes; a list for each file, so many files. */
static long fill_locks(long bytes)
{
	long got = 0;
	for (int i = 0; got < bytes && i < FILES_MAX; i++) {
		int fd = open_nameless();
		for (long at = 0; got < bytes && at < 1000; at += 2, got += 200) {
			struct flock lock = { .l_type = F_WRLCK, .l_start = at, .l_len = 1 };
			if (fcntl(fd, F_OFD_SETLK, &lock) < 0)
				return got;
		}
	}
	return got;
}

static void road_locks(const char *name, long wanted)
{
	in_processes(name, wanted, fill_locks);
}

static void remove_queues(const int *ids, long count, void (*remove)(int id))
{
	for (long i = 0; i < count; i++)
		remove(ids[i]);
}

static void remove_queue(int id)
{
	(void)msgctl(id, IPC_RMID, NULL);
}

static void road_messages(const char *name, long wanted)
{
	static int ids[32000];
	long got = 0, count = 0;
	struct {
		long type;
		char text[8 * 1024];
	} message = { .type = 1 };
	for (; got < wanted && count < 32000; count++) {
		ids[count] = msgget(IPC_PRIVATE, 0600);
		if (ids[count] < 0)
			break;
		for (int i = 0; i < 2 && msgsnd(ids[count], &message, 8 * KIB, IPC_NOWAIT) == 0;
		     i++)
			got += 8 * KIB;
	}
	conclude(name, got, wanted);
	remove_queues(ids, count, remove_queue);
}

static void remove_semaphores(int id)
{
	(void)semctl(id, 0, IPC_RMID);
}

/* A semaphore takes 64 bytes. */
static void road_semaphores(const char *name, long wanted)
{
	static int ids[4096];
	long got = 0, count = 0;
	for (; got < wanted && count < 4096; count++, got += 16000 * 64) {
		ids[count] = semget(IPC_PRIVATE, 16000, 0600);
		if (ids[count] < 0)
			break;
	}
	conclude(name, got, wanted);
	remove_queues(ids, count, remove_semaphores);
}

/* Every descriptor in every epoll: 128 bytes and more each time. */
static long fill_epolls(long bytes)
{
	static int events[FILES_MAX / 2];
	long got = 0;
	for (int i = 0; i < FILES_MAX / 2; i++)
		events[i] = eventfd(0, 0);
	for (int e = 0; got < bytes && e < FILES_MAX / 2; e++) {
		int fd = epoll_create1(0);
		for (int i = 0; fd >= 0 && got < bytes && i < FILES_MAX / 2; i++, got += 128) {
			struct epoll_event event = { .events = EPOLLIN };
			if (epoll_ctl(fd, EPOLL_CTL_ADD, events[i], &event) < 0)
				return got;
		}
		if (fd < 0)
			break;
	}
	return got;
}

static void road_epolls(const char *name, long wanted)
{
	in_processes(name, wanted, fill_epolls);
}

/* Pages that alternate in what is allowed can't be one area: 180 bytes and more each. */
static long fill_areas(long bytes)
{
	long pages = bytes / 180 + 2 < 60000 ? bytes / 180 + 2 : 60000, got = 0;
	char *at = map((size_t)pages * 4096, PROT_NONE, MAP_PRIVATE | MAP_NORESERVE);
	for (long i = 0; at && i < pages; i += 2, got += 2 * 180)
		if (mprotect(at + i * 4096, 4096, PROT_READ) < 0)
			break;
	return got;
}

static void road_areas(const char *name, long wanted)
{
	in_processes(name, wanted, fill_areas);
}

/* An access list of 64 KiB on each file: the kernel counts it nowhere. */
static long fill_lists(long bytes)
{
	enum { ENTRIES = 8000, USER_OBJ = 1, USER = 2, GROUP_OBJ = 4, MASK = 16, OTHER = 32 };
	static struct {
		uint32_t version;
		struct {
			uint16_t tag, permission;
			uint32_t id;
		} entries[ENTRIES];
	} list = { .version = 2 };
	for (int i = 0; i < ENTRIES; i++) {
		list.entries[i].tag = USER;
		list.entries[i].permission = 6;
		list.entries[i].id = geteuid();
	}
	list.entries[0].tag = USER_OBJ;
	list.entries[ENTRIES - 3].tag = GROUP_OBJ;
	list.entries[ENTRIES - 2].tag = MASK;
	list.entries[ENTRIES - 1].tag = OTHER;

	long got = 0;
	for (int i = 0; got < bytes && i < FILES_MAX; i++, got += 64 * KIB) {
		if (fsetxattr(open_nameless(), "system.posix_acl_access", &list, sizeof(list), 0) <
		    0)
			break;
	}
	return got;
}

static void road_access_lists(const char *name, long wanted)
{
	in_processes(name, wanted, fill_lists);
}

/*
 * Programs compiled for each socket: memory of all the host's filters.  As large as a socket takes
 * them with the net.core.optmem_max of older kernels, 20 KiB.
 */
#define FILTER_LENGTH 2048
static long fill_filters(long bytes)
{
	static struct sock_filter code[FILTER_LENGTH];
	const struct sock_fprog program = { FILTER_LENGTH, code };
	for (int i = 0; i < FILTER_LENGTH - 1; i++)
		code[i] = (struct sock_filter)BPF_STMT(BPF_ALU | BPF_ADD | BPF_K, 0x12345678u);
	code[FILTER_LENGTH - 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, 0xffff);

	long got = 0;
	for (int i = 0; got < bytes && i < FILES_MAX; i++, got += 24 * KIB) {
		int fd = socket(AF_INET, SOCK_DGRAM, 0);
		if (fd < 0 ||
		    setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) < 0)
			break;
	}
	return got;
}

static void road_filters(const char *name, long wanted)
{
	in_processes(name, wanted, fill_filters);
}

/* A key for each of many peers, on each of many sockets. */
static long fill_keys(long bytes)
{
	long got = 0;
	for (int i = 0; got < bytes && i < FILES_MAX; i++) {
		int fd = socket(AF_INET, SOCK_STREAM, 0), code = 0;
		for (uint32_t peer = 1; got < bytes && code == 0; peer++) {
			struct tcp_md5sig key = { .tcpm_keylen = 1 };
			*(struct sockaddr_in *)&key.tcpm_addr =
			    (struct sockaddr_in){ .sin_family = AF_INET,
						  .sin_addr = { htonl(peer) } };
			code = setsockopt(fd, IPPROTO_TCP, TCP_MD5SIG, &key, sizeof(key));
			got += code == 0 ? 192 : 0;
		}
		if (code < 0 && errno != ENOMEM) /* of one socket's room: net.core.optmem_max */
			break;
	}
	return got;
}

static void road_keys(const char *name, long wanted)
{
	in_processes(name, wanted, fill_keys);
}

/* Filters of processes, seven in each: more instructions than eight a process may not have. */
static bool load_seven(void)
{
	static struct sock_filter code[BPF_MAXINSNS];
	const struct sock_fprog program = { BPF_MAXINSNS, code };
	for (int i = 0; i < BPF_MAXINSNS - 1; i++)
		code[i] = (struct sock_filter)BPF_STMT(BPF_ALU | BPF_ADD | BPF_K, 0x12345678u);
	code[BPF_MAXINSNS - 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	(void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	for (int i = 0; i < 7; i++) {
		if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
			return false;
	}
	return true;
}

static long fill_loads(long bytes)
{
	long got = 0, each = 7 * 96 * KIB;
	int said[2];
	if (pipe(said) < 0)
		return 0;
	for (int code = 0; got < bytes && code == 0; got += code == 0 ? each : 0) {
		pid_t pid = fork();
		if (pid == 0) {
			code = load_seven() ? 0 : errno;
			(void)!write(said[1], &code, sizeof(code));
			pause();
			_exit(0);
		}
		if (pid < 0 || read(said[0], &code, sizeof(code)) != (ssize_t)sizeof(code))
			break;
		errno = code;
	}
	return got;
}

static void road_loads(const char *name, long wanted)
{
	in_processes(name, wanted, fill_loads);
}

/* Terminals with unread input. */
static long fill_terminals(long bytes)
{
	long got = 0;
	for (int i = 0; got < bytes && i < FILES_MAX / 2; i++) {
		int fd = posix_openpt(O_RDWR | O_NOCTTY);
		if (fd < 0 || unlockpt(fd) < 0)
			break;
		int slave = open(ptsname(fd), O_RDWR | O_NOCTTY);
		if (slave < 0)
			break;
		got += fill_descriptor(fd) + fill_descriptor(slave);
	}
	return got;
}

static void road_terminals(const char *name, long wanted)
{
	in_processes(name, wanted, fill_terminals);
}

static const struct verdict_row roads[] = {
	{ "unmapped", road_unmapped }, { "leaderless", road_leaderless },
	{ "waiting", road_waiting },   { "tables", road_tables },
	{ "areas", road_areas },       { "unix", road_unix },
	{ "pipes", road_pipes },       { "udp", road_udp },
	{ "netlink", road_netlink },   { "locks", road_locks },
	{ "messages", road_messages }, { "semaphores", road_semaphores },
	{ "epolls", road_epolls },     { "access_lists", road_access_lists },
	{ "filters", road_filters },   { "terminals", road_terminals },
	{ "keys", road_keys },         { "loads", road_loads },
};

int main(int argc, char **argv)
{
	char scaled[32];
	if (argc > 2) {
		(void)snprintf(scaled, sizeof(scaled), "%ld", atol(argv[2]) * MIB);
		argv[2] = scaled;
	}
	(void)setpgid(0, 0);
	return make_attempt(roads, sizeof(roads) / sizeof(roads[0]), argv);
}
