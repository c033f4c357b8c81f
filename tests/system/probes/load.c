/* SPDX-License-Identifier: Apache-2.0 */
/*
 * load - use up one thing until the limit answers.  Acts; says what it got.
 *
 *	load memory MIB        touch that much in one process; "held MIB" when it got it
 *	load reserve MIB       map that much, private and writable, and touch none of it
 *	load vfork MIB MS      touch that much, then a vfork(2) child sleeps MS before it ends
 *	load family MIB N      the same, spread over N processes that live at once
 *	load shm MIB           the same in shared memory
 *	load memfd MIB         the same in a memfd
 *	load processes N       start N children that wait; "started K"
 *	load threads N         the same with threads
 *	load busy N MS         N processes compute until MS of wall clock are over
 *	load disown MS N HOW   N children one after another compute MS each, and nobody waits for
 *	                       them: HOW is ignore (SIGCHLD) or nocldwait (SA_NOCLDWAIT)
 *	load disk PATH MIB     write that much; "wrote K MIB ERRNO"
 *	load inodes DIR N      create that many empty files; "made K ERRNO"
 *	load files N           open that many; "opened K ERRNO"
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MIB (1024 * 1024)

static const char *why(int code)
{
	return code ? strerrorname_np(code) : "OK";
}

static int touch(long mib)
{
	for (long i = 0; i < mib; i++) {
		char *block =
		    mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (block == MAP_FAILED) {
			printf("refused after %ld MiB: %s\n", i, why(errno));
			return 1;
		}
		memset(block, 1, MIB);
	}
	printf("held %ld MiB\n", mib);
	fflush(stdout);
	return 0;
}

static int load_memory(char **args)
{
	return touch(atol(args[0]));
}

static int load_reserve(char **args)
{
	long mib = atol(args[0]);
	void *all = mmap(NULL, (size_t)mib * MIB, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (all == MAP_FAILED) {
		printf("refused: %s\n", why(errno));
		return 1;
	}
	printf("reserved %ld MiB\n", mib);
	return 0;
}

/* So long that samples are taken meanwhile, whatever their period. */
static int load_vfork(char **args)
{
	const long ms = atol(args[1]);
	const struct timespec pause = { ms / 1000, ms % 1000 * 1000000 };
	int status = 1;
	if (touch(atol(args[0])) != 0)
		return 1;
	pid_t pid = vfork();
	if (pid == 0) {
		(void)nanosleep(&pause, NULL);
		_exit(0);
	}
	return waitpid(pid, &status, 0) == pid ? status : 1;
}

static int load_family(char **args)
{
	long mib = atol(args[0]), n = atol(args[1]);
	for (long i = 0; i < n; i++) {
		if (fork() == 0) {
			int rc = touch(mib / n);
			sleep(rc ? 0 : 5);
			_exit(rc);
		}
	}
	int status, failed = 0;
	while (wait(&status) > 0)
		failed |= status;
	return failed ? 1 : 0;
}

static int fill(int flags, int fd, long mib)
{
	char *all =
	    mmap(NULL, (size_t)mib * MIB, PROT_READ | PROT_WRITE, MAP_SHARED | flags, fd, 0);
	if (all == MAP_FAILED) {
		printf("refused: %s\n", why(errno));
		return 1;
	}
	memset(all, 1, (size_t)mib * MIB);
	printf("held %ld MiB\n", mib);
	fflush(stdout);
	sleep(5); /* as in family: who polls sees it, too */
	return 0;
}

static int load_shm(char **args)
{
	return fill(MAP_ANONYMOUS, -1, atol(args[0]));
}

static int load_memfd(char **args)
{
	long mib = atol(args[0]);
	int fd = memfd_create("load", MFD_CLOEXEC);
	if (fd < 0 || ftruncate(fd, mib * MIB) < 0) {
		printf("refused: %s\n", why(errno));
		return 1;
	}
	return fill(0, fd, mib);
}

static int load_processes(char **args)
{
	long wanted = atol(args[0]), started = 0;
	int code = 0;
	for (; started < wanted; started++) {
		pid_t pid = fork();
		if (pid < 0) {
			code = errno;
			break;
		}
		if (pid == 0) {
			pause();
			_exit(0);
		}
	}
	printf("started %ld %s\n", started, why(code));
	return 0;
}

static void *wait_for_ever(void *unused)
{
	pause();
	return unused;
}

static int load_threads(char **args)
{
	long wanted = atol(args[0]), started = 0;
	int code = 0;
	pthread_attr_t attr;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 64 * 1024);
	for (; started < wanted; started++) {
		pthread_t t;
		code = pthread_create(&t, &attr, wait_for_ever, NULL);
		if (code)
			break;
	}
	printf("started %ld %s\n", started, why(code));
	fflush(stdout);
	_exit(0);
}

static long now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static int load_busy(char **args)
{
	long n = atol(args[0]), end = now_ms() + atol(args[1]);
	for (long i = 1; i < n; i++) {
		if (fork() == 0)
			break;
	}
	while (now_ms() < end)
		;
	return 0;
}

static long cpu_us(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

/* The parent waits for the end of a pipe, not for the child. */
static int load_disown(char **args)
{
	long us = atol(args[0]) * 1000, n = atol(args[1]);
	bool ignores = strcmp(args[2], "ignore") == 0;
	const struct sigaction action = { .sa_handler = ignores ? SIG_IGN : SIG_DFL,
					  .sa_flags = ignores ? 0 : SA_NOCLDWAIT };
	sigaction(SIGCHLD, &action, NULL);
	for (long i = 0; i < n; i++) {
		int ends[2];
		char byte;
		if (pipe(ends) < 0)
			return 1;
		if (fork() == 0) {
			while (cpu_us() < us)
				;
			_exit(0);
		}
		close(ends[1]);
		while (read(ends[0], &byte, 1) > 0)
			;
		close(ends[0]);
	}
	puts("done");
	return 0;
}

static int load_disk(char **args)
{
	static char block[MIB];
	long mib = atol(args[1]), wrote = 0;
	int code = 0, fd = open(args[0], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0) {
		printf("wrote 0 %s\n", why(errno));
		return 1;
	}
	(void)signal(SIGXFSZ, SIG_IGN);
	for (; wrote < mib; wrote++) {
		if (write(fd, block, sizeof(block)) != (ssize_t)sizeof(block)) {
			code = errno ? errno : ENOSPC;
			break;
		}
	}
	printf("wrote %ld %s\n", wrote, why(code));
	fflush(stdout);
	sleep(code ? 0 : 5);
	return 0;
}

static int load_inodes(char **args)
{
	long wanted = atol(args[1]), made = 0;
	int code = 0;
	for (; made < wanted; made++) {
		char path[256];
		(void)snprintf(path, sizeof(path), "%s/%ld", args[0], made);
		int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
		if (fd < 0) {
			code = errno;
			break;
		}
		close(fd);
	}
	printf("made %ld %s\n", made, why(code));
	return 0;
}

static int load_files(char **args)
{
	long wanted = atol(args[0]), opened = 0;
	int code = 0;
	for (; opened < wanted; opened++) {
		if (open("/dev/null", O_RDONLY | O_CLOEXEC) < 0) {
			code = errno;
			break;
		}
	}
	printf("opened %ld %s\n", opened, why(code));
	return 0;
}

static const struct {
	const char *name;
	int nargs;
	int (*run)(char **args);
} loads[] = {
	{ "memory", 1, load_memory },
	{ "reserve", 1, load_reserve },
	{ "vfork", 2, load_vfork },
	{ "family", 2, load_family },
	{ "shm", 1, load_shm },
	{ "memfd", 1, load_memfd },
	{ "processes", 1, load_processes },
	{ "threads", 1, load_threads },
	{ "busy", 2, load_busy },
	{ "disown", 3, load_disown },
	{ "disk", 2, load_disk },
	{ "inodes", 2, load_inodes },
	{ "files", 1, load_files },
};

int main(int argc, char **argv)
{
	for (size_t i = 0; argc > 1 && i < sizeof(loads) / sizeof(loads[0]); i++) {
		if (strcmp(loads[i].name, argv[1]) == 0 && argc == loads[i].nargs + 2)
			return loads[i].run(argv + 2);
	}
	fprintf(stderr, "load: unknown '%s'\n", argc > 1 ? argv[1] : "");
	return 2;
}
