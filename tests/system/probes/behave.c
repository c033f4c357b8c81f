/* SPDX-License-Identifier: Apache-2.0 */
/*
 * behave - ways to end, or not to end, that wedge a careless supervisor.  Acts.
 *
 *	behave daemon       a grandchild in a session of its own keeps all pipes open for ever
 *	behave respawn      the same, and each starts the next before it ends
 *	behave stop         stops itself
 *	behave stop-all     stops itself and the child that could continue it
 *	behave zombies N    N children that nobody waits for, then a normal end
 *	behave orphans N    N grandchildren that end when their parents are gone
 *	behave close        closes all its pipes and goes on for a second
 *	behave deaf         ignores every signal that can be ignored, for ever
 *	behave traceme      asks to be traced, then kills itself
 *	behave fill N       writes N bytes to both streams, alternating
 *	behave signal N     ends with that signal
 *	behave kill-init    sends every signal to pid 1, then says so
 *	behave kill-all     SIGKILL to every process it can reach, itself not included
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static void sleep_for_ever(void)
{
	for (;;)
		pause();
}

static int behave_daemon(long unused)
{
	(void)unused;
	if (fork() == 0) {
		setsid();
		if (fork() == 0)
			sleep_for_ever();
		_exit(0);
	}
	(void)wait(NULL);
	puts("parent done");
	return 0;
}

static int behave_respawn(long unused)
{
	(void)unused;
	if (fork() == 0) {
		setsid();
		for (;;) {
			usleep(1000);
			if (fork() > 0)
				_exit(0);
		}
	}
	usleep(50 * 1000);
	puts("parent done");
	return 0;
}

static int behave_stop(long unused)
{
	(void)unused;
	raise(SIGSTOP);
	return 0;
}

static int behave_stop_all(long unused)
{
	(void)unused;
	if (fork() == 0)
		raise(SIGSTOP);
	kill(0, SIGSTOP);
	return 0;
}

static int behave_zombies(long n)
{
	for (long i = 0; i < n; i++) {
		if (fork() == 0)
			_exit(0);
	}
	puts("parent done");
	return 0;
}

static int behave_orphans(long n)
{
	for (long i = 0; i < n; i++) {
		pid_t pid = fork();
		if (pid == 0) {
			if (fork() == 0) {
				usleep(1000);
				_exit(0);
			}
			_exit(0);
		}
		if (pid > 0)
			(void)waitpid(pid, NULL, 0);
	}
	puts("parent done");
	return 0;
}

static int behave_close(long unused)
{
	(void)unused;
	for (int fd = 0; fd < 256; fd++)
		close(fd);
	sleep(1);
	return 7;
}

static int behave_deaf(long unused)
{
	(void)unused;
	for (int sig = 1; sig < 65; sig++)
		(void)signal(sig, SIG_IGN);
	puts("deaf");
	fflush(stdout);
	sleep_for_ever();
	return 0;
}

static int behave_traceme(long unused)
{
	(void)unused;
	(void)ptrace(PTRACE_TRACEME, 0, NULL, NULL);
	raise(SIGTERM);
	return 0;
}

static int behave_fill(long n)
{
	static char block[65536];
	memset(block, 'x', sizeof(block));
	for (long left = n; left > 0; left -= (long)sizeof(block)) {
		size_t part = left < (long)sizeof(block) ? (size_t)left : sizeof(block);
		for (int fd = 1; fd <= 2; fd++) {
			for (size_t done = 0; done < part;) {
				ssize_t wrote = write(fd, block + done, part - done);
				if (wrote < 0)
					return 3;
				done += (size_t)wrote;
			}
		}
	}
	return 0;
}

static int behave_signal(long n)
{
	struct rlimit none = { 0, 0 };
	(void)setrlimit(RLIMIT_CORE, &none);
	(void)signal((int)n, SIG_DFL);
	raise((int)n);
	return 0;
}

static int behave_kill_init(long unused)
{
	(void)unused;
	for (int sig = 1; sig < 65; sig++)
		(void)kill(1, sig);
	usleep(100 * 1000);
	puts("init lives");
	return 0;
}

static int behave_kill_all(long unused)
{
	(void)unused;
	(void)kill(-1, SIGKILL);
	usleep(100 * 1000);
	puts("still here");
	return 0;
}

static const struct {
	const char *name;
	int (*run)(long n);
} ways[] = {
	{ "daemon", behave_daemon },     { "respawn", behave_respawn },
	{ "stop", behave_stop },         { "stop-all", behave_stop_all },
	{ "zombies", behave_zombies },   { "orphans", behave_orphans },
	{ "close", behave_close },       { "deaf", behave_deaf },
	{ "traceme", behave_traceme },   { "fill", behave_fill },
	{ "signal", behave_signal },     { "kill-init", behave_kill_init },
	{ "kill-all", behave_kill_all },
};

int main(int argc, char **argv)
{
	for (size_t i = 0; argc > 1 && i < sizeof(ways) / sizeof(ways[0]); i++) {
		if (strcmp(ways[i].name, argv[1]) == 0)
			return ways[i].run(argc > 2 ? atol(argv[2]) : 0);
	}
	fprintf(stderr, "behave: unknown '%s'\n", argc > 1 ? argv[1] : "");
	return 2;
}
