/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attempt - what a program in the jail may try and must not get: the loop and the report.
 *
 * Each attempt runs in a child of its own, because some end with a signal.  One line each:
 *
 *	NAME held ERRNO        refused with that errno
 *	NAME held signal N     the attempt was killed
 *	NAME OPEN              it worked: the jail has a hole
 *
 * With arguments, only the named attempts are made.
 */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct attempt {
	const char *name;
	bool (*make)(void); /* true: it worked; otherwise errno says why not */
};
#define ROW(name)                                                                                  \
	{                                                                                          \
#name, try_##name                                                                  \
	}

static inline bool worked(long rc)
{
	return rc >= 0;
}

static inline bool can_open(const char *path, int flags)
{
	return worked(open(path, flags | O_CLOEXEC | O_NONBLOCK, 0600));
}

/* Opening alone is not enough for these: the write is what would do harm. */
static inline bool can_write(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	return fd >= 0 && worked(write(fd, text, strlen(text)));
}

/* A file that is there but empty, as a masked one is, gives nothing away. */
static inline bool can_read_something(const char *path)
{
	char byte;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return false;
	ssize_t n = read(fd, &byte, 1);
	if (n == 0)
		errno = ENODATA;
	return n > 0;
}

static inline void report_attempt(const char *name, int status)
{
	if (WIFSIGNALED(status))
		printf("%s held signal %d\n", name, WTERMSIG(status));
	else if (WEXITSTATUS(status) != 0)
		printf("%s held %s\n", name, strerrorname_np(WEXITSTATUS(status)));
	else
		printf("%s OPEN\n", name);
	fflush(stdout);
}

static inline void make_attempt(const struct attempt *a)
{
	int status = 0;
	pid_t pid = fork();
	if (pid == 0) {
		alarm(5);
		errno = 0;
		bool is_open = a->make();
		_exit(is_open ? 0 : errno ? errno : EINVAL);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		printf("%s not made: %s\n", a->name, strerror(errno));
	else
		report_attempt(a->name, status);
}

static inline bool is_asked_for(const char *name, char **names)
{
	for (char **n = names; *n; n++) {
		if (strcmp(*n, name) == 0)
			return true;
	}
	return names[0] == NULL;
}

static inline void make_attempts(const struct attempt *table, size_t count, char **names)
{
	for (size_t i = 0; i < count; i++) {
		if (is_asked_for(table[i].name, names))
			make_attempt(&table[i]);
	}
}
