/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attempt - what a program in the jail may try and must not get: the loop and the report.
 *
 *	PROBE [--outside own|bare] [NAME...]
 *
 * Each attempt runs in a child of its own, because some end with a signal.  One line each:
 *
 *	NAME HELD (ERRNO)        refused with that errno
 *	NAME HELD (signal N)     the attempt was killed
 *	NAME ESCAPED             it worked: the jail has a hole
 *	NAME UNTRIED (WHY)       it could not be made
 *
 * With names, only these attempts are made.  With --outside there is no jail around them, and what
 * can work says ESCAPED: outside.h.  No attempt may hurt a host there.  A call that changes what is
 * not namespaced has arguments that the kernel refuses after its permission check, and counts as
 * ESCAPED when it gets that far.  Nothing is written to files of the kernel.
 */
#pragma once

#include <stdint.h>
#include <sys/wait.h>

#include "outside.h"
#include "tests/patience.h"

struct attempt {
	const char *name;
	bool (*make)(void);    /* true: it worked; otherwise errno says why not */
	bool (*prepare)(void); /* outside only: makes what is to be found, or NULL */
	bool needs_own; /* never with the powers of the host's root: it would change the host */
};

/* clang-format off */
#define ROW(name)                 { #name, try_##name, NULL, false }
#define ROW_AFTER(name, prepare)  { #name, try_##name, prepare, false }
#define ROW_OWN(name)             { #name, try_##name, NULL, true }
/* clang-format on */

/* Where we are; set once, before the first attempt. */
static enum place here = INSIDE;

static inline bool worked(long rc)
{
	return rc >= 0;
}

/* For a call with arguments that end in `beyond`, once the kernel has found that we may. */
static inline bool got_past(long rc, int beyond)
{
	return rc >= 0 || errno == beyond;
}

static inline bool can_open(const char *path, int flags)
{
	return worked(open(path, flags | O_CLOEXEC | O_NONBLOCK, 0600));
}

/* For /proc/sys: an empty write asks for permission again, and changes nothing.  (In /sys it
 * would.) */
static inline bool can_write(const char *path)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC | O_NONBLOCK);
	return fd >= 0 && worked(write(fd, "", 0));
}

/* A file that is there but empty, as a masked one is, gives nothing away. */
static inline bool can_read_something(const char *path)
{
	char bytes[8]; /* some files give no less */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return false;
	ssize_t n = read(fd, bytes, sizeof(bytes));
	if (n == 0)
		errno = ENODATA;
	return n > 0;
}

static inline void report_attempt(const char *name, int status)
{
	if (WIFSIGNALED(status))
		printf("%s HELD (signal %d)\n", name, WTERMSIG(status));
	else if (WEXITSTATUS(status) != 0)
		printf("%s HELD (%s)\n", name, strerrorname_np(WEXITSTATUS(status)));
	else
		printf("%s ESCAPED\n", name);
	fflush(stdout);
}

static inline void report_untried(const char *name, const char *what)
{
	printf("%s UNTRIED (%s: %s)\n", name, what, strerror(errno));
	fflush(stdout);
}

static inline void run_attempt(const struct attempt *a)
{
	int status = 0;
	pid_t pid = fork();
	if (pid == 0) {
		alarm(patience_s(60));
		errno = 0;
		bool escaped = a->make();
		_exit(escaped ? 0 : errno ? errno : EINVAL);
	}
	if (pid > 0 && waitpid(pid, &status, 0) == pid)
		report_attempt(a->name, status);
	else
		report_untried(a->name, "start it");
}

static inline _Noreturn void live_as_pid_1(const struct attempt *a)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	if (!freeze_files() || !take_terminal()) {
		report_untried(a->name, "make a place of its own");
		_exit(0);
	}
	open_echo();
	if (a->prepare && !a->prepare()) {
		report_untried(a->name, "prepare");
		_exit(0);
	}
	run_attempt(a);
	_exit(0);
}

static inline _Noreturn void go_outside(const struct attempt *a)
{
	alarm(patience_s(90)); /* attempts may wedge their pid 1, which dies with us */
	if (!leave_host(here)) {
		report_untried(a->name, "leave the host's namespaces");
		_exit(0);
	}
	pid_t pid = fork();
	if (pid == 0)
		live_as_pid_1(a);
	if (pid < 0)
		report_untried(a->name, "fork");
	else
		(void)waitpid(pid, NULL, 0);
	_exit(0);
}

static inline void make_attempt(const struct attempt *a)
{
	if (here == INSIDE) {
		run_attempt(a);
		return;
	}
	if (here == OUTSIDE_BARE && a->needs_own) {
		printf("%s UNTRIED (it would change the host)\n", a->name);
		return;
	}
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0)
		go_outside(a);
	int status = 0;
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
		report_untried(a->name, "outside");
}

static inline bool is_asked_for(const char *name, char **names)
{
	for (char **n = names; *n; n++) {
		if (strcmp(*n, name) == 0)
			return true;
	}
	return names[0] == NULL;
}

static inline int make_attempts(const struct attempt *table, size_t count, char **words)
{
	if (words[0] && strcmp(words[0], "--outside") == 0 && words[1]) {
		here = strcmp(words[1], "bare") == 0 ? OUTSIDE_BARE : OUTSIDE_OWN;
		words += 2;
	}
	for (size_t i = 0; i < count; i++) {
		if (is_asked_for(table[i].name, words))
			make_attempt(&table[i]);
	}
	return 0;
}

/* clang-format off */
#define ATTEMPTS_MAIN(table)                                                                       \
	int main(int argc, char **argv)                                                            \
	{                                                                                          \
		(void)argc;                                                                        \
		return make_attempts(table, sizeof(table) / sizeof((table)[0]), argv + 1);         \
	}
/* clang-format on */
