/* SPDX-License-Identifier: Apache-2.0 */
/* blocked - whether another thread waits in a system call, so that no test has to guess a time. */
#pragma once

#include <fcntl.h>

#include "tests/patience.h"

static inline bool read_of_thread(pid_t tid, const char *name, char *text, size_t room)
{
	char path[64];
	(void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)tid, name);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t size = fd < 0 ? -1 : read(fd, text, room - 1);
	if (fd >= 0)
		(void)close(fd);
	text[size > 0 ? size : 0] = '\0';
	return size > 0;
}

/* Reads proc_pid_syscall(5), or proc_pid_stat(5) of a thread whose call is not shown. */
static inline bool is_blocked_in(pid_t tid, long call)
{
	char text[256];
	long found = -1;
	if (read_of_thread(tid, "syscall", text, sizeof(text)))
		return sscanf(text, "%ld", &found) == 1 && found == call;
	return read_of_thread(tid, "stat", text, sizeof(text)) &&
	       (strstr(text, ") S ") || strstr(text, ") D "));
}

/* False: it does not come to that. */
static inline bool await_blocked_in(pid_t tid, long call)
{
	bool is_blocked = is_blocked_in(tid, call);
	for (int i = 0; i < patience_ms(60000) && !is_blocked; i++) {
		(void)usleep(1000);
		is_blocked = is_blocked_in(tid, call);
	}
	return is_blocked;
}
