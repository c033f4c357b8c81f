/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hunter - looks for canaries in everything it can read, and tries to reach the objects named in
 * its arguments.  Acts.
 *
 *	hunter WHAT=NAME...       WHAT: walk (NAME is a directory), pids (NAME is "all"), file,
 *	                          lock, unix, abstract, tcp, udp, pid, shm, msg, posix, mq, key
 *	hunter sit BACKWARDS      keeps the word, spelt backwards, as a process of the caller's does
 *
 *	READ WHERE WORD           a canary's word was there
 *	REACHED WHAT=NAME         it could be written, connected to, signalled or taken hold of
 *	done                      the last line
 *
 * It searches its environment, descriptors and keyrings in any case.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <linux/keyctl.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/patience.h"

#define WORD_MAX 64 /* of a canary's word, with its mark */

/* The mark of every word, not written as such: else the hunter would find its own text. */
static char mark[] = "dbobsz.xpse.";
#define MARK_SIZE (sizeof(mark) - 1)

static char block[1 << 20];

static int number(const char *text)
{
	return (int)strtol(text, NULL, 10);
}

static void reached(const char *what, const char *name)
{
	printf("REACHED %s=%s\n", what, name);
}

static void look(const char *where, const char *text, size_t size)
{
	const char *end = text + size;
	for (const char *at = text; (at = memmem(at, (size_t)(end - at), mark, MARK_SIZE)); at++) {
		int length = 0;
		while (at + length < end && length < WORD_MAX &&
		       (isalnum(at[length]) || at[length] == '-'))
			length++;
		if ((size_t)length > MARK_SIZE) /* or it is ours */
			printf("READ %s %.*s\n", where, length, at);
	}
}

static void look_at_descriptor(const char *where, int fd)
{
	ssize_t n;
	for (int i = 0; i < 16 && (n = read(fd, block, sizeof(block))) > 0; i++)
		look(where, block, (size_t)n);
}

static void look_at_file(const char *path)
{
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return;
	look_at_descriptor(path, fd);
	close(fd);
}

/* --- what every process inherits ----------------------------------------------------- */

static void look_at_environment(void)
{
	for (char **e = environ; *e; e++)
		look("environment", *e, strlen(*e));
}

/* Writes only to paths of its arguments, and to directories that it inherited. */
static void look_at_directory(int dir_fd)
{
	DIR *dir = fdopendir(dup(dir_fd));
	for (struct dirent *e; dir && (e = readdir(dir));) {
		int fd = openat(dir_fd, e->d_name, O_RDWR | O_APPEND | O_NONBLOCK | O_CLOEXEC);
		if (fd < 0)
			continue;
		look_at_descriptor(e->d_name, fd);
		if (write(fd, "x", 1) == 1)
			reached("directory", e->d_name);
		close(fd);
	}
	if (dir)
		closedir(dir);
}

static void look_at_descriptors(void)
{
	char where[32];
	for (int fd = 3; fd < 1024; fd++) {
		if (fcntl(fd, F_GETFD) < 0)
			continue;
		(void)snprintf(where, sizeof(where), "descriptor-%d", fd);
		(void)fcntl(fd, F_SETFL, O_NONBLOCK);
		(void)lseek(fd, 0, SEEK_SET);
		look_at_descriptor(where, fd);
		if (write(fd, "x", 1) == 1)
			reached("descriptor", "written");
		look_at_directory(fd);
		int on = 0;
		socklen_t size = sizeof(on);
		if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &on, &size) == 0 && on)
			reached("descriptor", "listener");
	}
}

static void look_at_key(long key)
{
	long n = syscall(SYS_keyctl, KEYCTL_READ, key, block, sizeof(block));
	if (n > 0)
		look("key", block, (size_t)n < sizeof(block) ? (size_t)n : sizeof(block));
}

/* --- processes ------------------------------------------------------------------------ */

static void look_at_memory(const char *pid)
{
	char path[64], line[512];
	unsigned long begin, end;
	(void)snprintf(path, sizeof(path), "/proc/%s/mem", pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	(void)snprintf(path, sizeof(path), "/proc/%s/maps", pid);
	FILE *maps = fd < 0 ? NULL : fopen(path, "re");
	while (maps && fgets(line, sizeof(line), maps)) {
		if (!strstr(line, " rw-p ") || sscanf(line, "%lx-%lx", &begin, &end) != 2)
			continue;
		size_t size = end - begin < sizeof(block) ? end - begin : sizeof(block);
		ssize_t n = pread(fd, block, size, (off_t)begin);
		if (n > 0)
			look("memory", block, (size_t)n);
	}
	if (maps)
		fclose(maps);
	close(fd);
}

static void look_at_process(const char *pid)
{
	static const char *const files[] = { "cmdline", "environ",   "comm",
					     "status",  "mountinfo", "net/unix" };
	char path[64];
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		(void)snprintf(path, sizeof(path), "/proc/%s/%s", pid, files[i]);
		look_at_file(path);
	}
	for (int fd = 0; fd < 64; fd++) {
		(void)snprintf(path, sizeof(path), "/proc/%s/fd/%d", pid, fd);
		struct stat st;
		if (stat(path, &st) == 0 && S_ISREG(st.st_mode))
			look_at_file(path);
	}
	look_at_memory(pid);
}

static void look_at_all_processes(void)
{
	DIR *proc = opendir("/proc");
	for (struct dirent *e; proc && (e = readdir(proc));) {
		if (isdigit(e->d_name[0]) && number(e->d_name) != getpid())
			look_at_process(e->d_name);
	}
	if (proc)
		closedir(proc);
}

static void hunt_pid(const char *name)
{
	pid_t pid = number(name);
	look_at_process(name);
	if (syscall(SYS_pidfd_open, pid, 0) >= 0)
		reached("pidfd", name);
	if (ptrace(PTRACE_SEIZE, pid, NULL, NULL) == 0)
		reached("ptrace", name);
	/* works on whom it sees: the check is outside */
	(void)setpriority(PRIO_USER, 0, getpriority(PRIO_PROCESS, 0) + 7);
	if (kill(pid, SIGUSR1) == 0)
		reached("pid", name);
}

static void hunt_pids(const char *unused)
{
	(void)unused;
	look_at_all_processes();
}

/* --- files ------------------------------------------------------------------------------ */

static int visit(const char *path, const struct stat *st, int kind, struct FTW *level)
{
	(void)level;
	if (kind == FTW_D && (strcmp(path, "/proc") == 0 || strcmp(path, "/usr") == 0))
		return FTW_SKIP_SUBTREE;
	if (kind == FTW_F && S_ISREG(st->st_mode))
		look_at_file(path);
	return FTW_CONTINUE;
}

static void hunt_walk(const char *name)
{
	(void)nftw(name, visit, 16, FTW_PHYS | FTW_ACTIONRETVAL);
}

static void hunt_file(const char *name)
{
	look_at_file(name);
	int fd = open(name, O_WRONLY | O_APPEND | O_CLOEXEC);
	if (fd >= 0 && write(fd, "x", 1) == 1)
		reached("file", name);
	close(fd);
}

static void hunt_lock(const char *name)
{
	int fd = open(name, O_RDONLY | O_CLOEXEC);
	if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK)
		reached("lock", name);
	close(fd);
}

/* --- sockets ------------------------------------------------------------------------------ */

static void hunt_address(const char *what, const char *name, int type, const void *address,
			 size_t size)
{
	const struct sockaddr *to = address;
	int fd = socket(to->sa_family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd >= 0 && connect(fd, to, (socklen_t)size) == 0 &&
	    (type == SOCK_STREAM || send(fd, "x", 1, 0) == 1))
		reached(what, name);
	close(fd);
}

static void hunt_unix(const char *name)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	(void)snprintf(a.sun_path, sizeof(a.sun_path), "%s", name);
	hunt_address("unix", name, SOCK_STREAM, &a, sizeof(a));
}

static void hunt_abstract(const char *name)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	(void)snprintf(a.sun_path + 1, sizeof(a.sun_path) - 1, "%s", name);
	hunt_address("abstract", name, SOCK_STREAM, &a,
		     offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name));
}

/* Blocking: loopback answers at once. */
static void hunt_tcp(const char *name)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
				 .sin_port = htons((in_port_t)number(name)),
				 .sin_addr = { htonl(INADDR_LOOPBACK) } };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd >= 0 && connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0)
		reached("tcp", name);
	close(fd);
}

/* A datagram without a receiver is sent as well: the harness outside sees whether it arrived. */
static void hunt_udp(const char *name)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
				 .sin_port = htons((in_port_t)number(name)),
				 .sin_addr = { htonl(INADDR_LOOPBACK) } };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	(void)sendto(fd, "x", 1, 0, (struct sockaddr *)&a, sizeof(a));
	close(fd);
}

/* --- IPC and keys --------------------------------------------------------------------------- */

static void hunt_shm(const char *name)
{
	int id = shmget(number(name), 0, 0);
	char *at = id < 0 ? (void *)-1 : shmat(id, NULL, 0);
	if (at == (void *)-1)
		return;
	look("shm", at, 4096);
	at[4095]++;
	reached("shm", name);
}

static void hunt_msg(const char *name)
{
	int id = msgget(number(name), 0);
	ssize_t n = id < 0 ? -1 : msgrcv(id, block, 1024, 0, IPC_NOWAIT);
	if (n >= 0) {
		look("msg", block, (size_t)n + sizeof(long));
		reached("msg", name);
	}
}

static void hunt_posix(const char *name)
{
	int fd = shm_open(name, O_RDWR, 0);
	if (fd < 0)
		return;
	look_at_descriptor("posix", fd);
	if (pwrite(fd, "x", 1, 4095) == 1)
		reached("posix", name);
	close(fd);
}

static void hunt_mq(const char *name)
{
	mqd_t queue = mq_open(name, O_RDWR | O_NONBLOCK);
	ssize_t n = queue < 0 ? -1 : mq_receive(queue, block, sizeof(block), NULL);
	if (n >= 0) {
		look("mq", block, (size_t)n);
		reached("mq", name);
	}
}

static void hunt_key(const char *name)
{
	static const int rings[] = { KEY_SPEC_SESSION_KEYRING, KEY_SPEC_USER_KEYRING,
				     KEY_SPEC_USER_SESSION_KEYRING };
	for (size_t i = 0; i < sizeof(rings) / sizeof(rings[0]); i++) {
		long key = syscall(SYS_keyctl, KEYCTL_SEARCH, rings[i], "user", name, 0);
		if (key < 0)
			continue;
		look_at_key(key);
		if (syscall(SYS_keyctl, KEYCTL_UPDATE, key, "x", 1ul) == 0)
			reached("key", name);
	}
	long key = syscall(SYS_request_key, "user", name, NULL, 0);
	if (key >= 0)
		look_at_key(key);
}

static const struct {
	const char *what;
	void (*hunt)(const char *name);
} hunts[] = {
	{ "walk", hunt_walk }, { "pids", hunt_pids }, { "file", hunt_file },
	{ "lock", hunt_lock }, { "unix", hunt_unix }, { "abstract", hunt_abstract },
	{ "tcp", hunt_tcp },   { "udp", hunt_udp },   { "pid", hunt_pid },
	{ "shm", hunt_shm },   { "msg", hunt_msg },   { "posix", hunt_posix },
	{ "mq", hunt_mq },     { "key", hunt_key },
};

/* In a child: a refused call may be the end of it. */
static void hunt(char *what)
{
	char *name = strchr(what, '=');
	if (!name)
		return;
	*name++ = '\0';
	for (size_t i = 0; i < sizeof(hunts) / sizeof(hunts[0]); i++) {
		if (strcmp(hunts[i].what, what) != 0)
			continue;
		fflush(stdout);
		pid_t pid = fork();
		if (pid == 0) {
			alarm(patience_s(60));
			hunts[i].hunt(name);
			exit(0);
		}
		(void)waitpid(pid, NULL, 0);
	}
}

/* The word comes spelt backwards, so only this memory has it. */
static _Noreturn void sit(const char *backwards)
{
	size_t size = strlen(backwards);
	char *word = calloc(1, size + 1);
	for (size_t i = 0; i < size; i++)
		word[i] = backwards[size - 1 - i];
	__asm__ volatile("" : : "r"(word) : "memory"); /* or the compiler drops it */
	do {
		puts("here"); /* a signal that was sent before the question comes before the answer
			       */
		fflush(stdout);
	} while (getchar() != EOF);
	exit(0);
}

int main(int argc, char **argv)
{
	if (argc > 3 && strcmp(argv[1], "sit") == 0)
		sit(argv[2]);
	for (size_t i = 0; i < MARK_SIZE; i++)
		mark[i]--;
	(void)signal(SIGPIPE, SIG_IGN);
	look_at_environment();
	look_at_descriptors();
	for (int i = 1; i < argc; i++)
		hunt(argv[i]);
	puts("done");
	return 0;
}
