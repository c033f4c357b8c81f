/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exhaust_counts - get more of what the kernel counts than a limit says.  Acts.
 *
 *	exhaust_counts THING LIMIT
 *
 * It stops at one more than LIMIT, and says ESCAPED.
 */
#include "verdict.h"

#include <fcntl.h>
#include <mqueue.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define HALF_PER_PROCESS 400 /* descriptors of one process, well below any limit */

static void conclude(const char *name, long got, long limit)
{
	if (got > limit)
		verdict(name, "ESCAPED", "got %ld, more than %ld", got, limit);
	else
		held_at(name, got, limit + 1);
}

static void count_instances(const char *name, long limit)
{
	long got = 0;
	while (got <= limit && inotify_init1(IN_CLOEXEC) >= 0)
		got++;
	conclude(name, got, limit);
}

/* Files of a directory of our own; they go with it. */
static void count_watches(const char *name, long limit)
{
	char dir[] = "/dev/shm/escape-XXXXXX", file[64];
	long got = 0, made = 0;
	int code = 0, fd = inotify_init1(IN_CLOEXEC);
	if (fd < 0 || !mkdtemp(dir) || chdir(dir) < 0) {
		perror(name);
		exit(2);
	}
	for (; got <= limit; got++) {
		(void)snprintf(file, sizeof(file), "%ld", made);
		int made_fd = open(file, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
		made += made_fd >= 0;
		close(made_fd);
		if (inotify_add_watch(fd, file, IN_MODIFY) < 0) {
			code = errno;
			break;
		}
	}
	errno = code;
	conclude(name, got, limit);
	for (; made > 0; made--) {
		(void)snprintf(file, sizeof(file), "%ld", made - 1);
		(void)unlink(file);
	}
	(void)rmdir(dir);
}

static void count_signals(const char *name, long limit)
{
	sigset_t waiting;
	long got = 0;
	sigemptyset(&waiting);
	sigaddset(&waiting, SIGRTMIN);
	(void)sigprocmask(SIG_BLOCK, &waiting, NULL);
	while (got <= limit && sigqueue(getpid(), SIGRTMIN, (union sigval){ 0 }) == 0)
		got++;
	conclude(name, got, limit);
}

static void count_timers(const char *name, long limit)
{
	struct sigevent nothing = { .sigev_notify = SIGEV_NONE };
	timer_t timer;
	long got = 0;
	while (got <= limit && timer_create(CLOCK_MONOTONIC, &nothing, &timer) == 0)
		got++;
	conclude(name, got, limit);
}

/* In bytes of messages they could hold. */
static void count_queues(const char *name, long limit)
{
	struct mq_attr small = { .mq_maxmsg = 10, .mq_msgsize = 1024 };
	char path[32];
	long got = 0, n = 0;
	int code = 0;
	for (; got <= limit; n++, got += small.mq_maxmsg * small.mq_msgsize) {
		(void)snprintf(path, sizeof(path), "/escape-%ld", n);
		if (mq_open(path, O_CREAT | O_RDWR, 0600, &small) < 0) {
			code = errno;
			break;
		}
	}
	for (long i = 0; i < n; i++) {
		(void)snprintf(path, sizeof(path), "/escape-%ld", i);
		(void)mq_unlink(path);
	}
	errno = code;
	conclude(name, got, limit);
}

static void count_terminals(const char *name, long limit)
{
	long got = 0;
	while (got <= limit && posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC) >= 0)
		got++;
	conclude(name, got, limit);
}

/* A child that is born by vfork, goes on as a program of its own, and stays. */
static pid_t start_by_vfork(void)
{
	pid_t pid = vfork();
	if (pid == 0) {
		execl("/bin/sleep", "sleep", "20", NULL);
		_exit(1);
	}
	return pid;
}

static void count_vforks(const char *name, long limit)
{
	long got = 0;
	while (got <= limit && start_by_vfork() > 0)
		got++;
	conclude(name, got, limit);
	(void)signal(SIGTERM, SIG_IGN);
	(void)kill(0, SIGTERM);
}

/* Zombies that are not waited for keep their pids. */
static void count_zombies(const char *name, long limit)
{
	long got = 0;
	for (; got <= limit; got++) {
		pid_t pid = fork();
		if (pid == 0)
			_exit(0);
		if (pid < 0)
			break;
	}
	conclude(name, got, limit);
}

/* Descriptors in a socket's queue belong to no process, and no process' limit counts them. */
static void count_travelling(const char *name, long limit)
{
	union {
		struct cmsghdr head;
		char space[CMSG_SPACE(sizeof(int) * 100)];
	} control = { .head = { CMSG_LEN(sizeof(int) * 100), SOL_SOCKET, SCM_RIGHTS } };
	char byte = 0;
	struct iovec bytes = { &byte, 1 };
	struct msghdr message = { .msg_iov = &bytes,
				  .msg_iovlen = 1,
				  .msg_control = &control,
				  .msg_controllen = sizeof(control) };
	long got = 0;
	int ends[2];
	for (int i = 0; i < HALF_PER_PROCESS && got <= limit; i++) {
		if (socketpair(AF_UNIX, SOCK_DGRAM, 0, ends) < 0)
			break;
		for (int n = 0; n < 100; n++)
			((int *)CMSG_DATA(&control.head))[n] = 0;
		ssize_t put = 0;
		while (got <= limit && (put = sendmsg(ends[0], &message, MSG_DONTWAIT)) > 0)
			got += 100;
		if (put < 0 && errno == ETOOMANYREFS)
			break;
	}
	conclude(name, got, limit);
}

static const struct verdict_row things[] = {
	{ "inotify_instances", count_instances },
	{ "inotify_watches", count_watches },
	{ "queued_signals", count_signals },
	{ "timers", count_timers },
	{ "message_queues", count_queues },
	{ "pseudo_terminals", count_terminals },
	{ "vforks", count_vforks },
	{ "zombies", count_zombies },
	{ "travelling_descriptors", count_travelling },
};

int main(int argc, char **argv)
{
	(void)argc;
	(void)setpgid(0, 0);
	return make_attempt(things, sizeof(things) / sizeof(things[0]), argv);
}
