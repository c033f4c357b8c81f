/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outside - where an attempt is made without a jail, to see that it can work at all.
 *
 * It must not hurt who tests: each attempt has namespaces of its own, every file system of the host
 * is read-only to it, and what it may write is a tmpfs on /tmp.  There are two such places:
 *
 *	own    root of a user namespace of its own; any user can be that
 *	bare   the host's root with all its capabilities, the user namespace is the host's
 *
 * Pid 1 in there is a process of ours that attempts may take apart, as they would cejail's.
 */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum place { INSIDE, OUTSIDE_OWN, OUTSIDE_BARE };

static inline bool put_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool done = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
	close(fd);
	return done;
}

static inline bool map_root(uid_t uid, gid_t gid)
{
	char line[32];
	(void)snprintf(line, sizeof(line), "0 %u 1", uid);
	if (!put_text("/proc/self/setgroups", "deny") || !put_text("/proc/self/uid_map", line))
		return false;
	(void)snprintf(line, sizeof(line), "0 %u 1", gid);
	return put_text("/proc/self/gid_map", line);
}

static inline bool leave_host(enum place place)
{
	uid_t uid = getuid();
	gid_t gid = getgid();
	if (place == OUTSIDE_OWN && (unshare(CLONE_NEWUSER) < 0 || !map_root(uid, gid)))
		return false;
	return unshare(CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS |
		       CLONE_NEWCGROUP) == 0;
}

/* No path leads to a file that any user could change. */
static inline bool freeze_files(void)
{
	struct mount_attr frozen = { .attr_set = MOUNT_ATTR_RDONLY };
	return mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
	       syscall(SYS_mount_setattr, AT_FDCWD, "/", AT_RECURSIVE, &frozen, sizeof(frozen)) ==
		   0 &&
	       mount("none", "/proc", "proc", 0, NULL) == 0 &&
	       mount("none", "/tmp", "tmpfs", 0, NULL) == 0 && chdir("/tmp") == 0;
}

/* A terminal of our own, as standard input and as the controlling terminal. */
static inline bool take_terminal(void)
{
	int master = posix_openpt(O_RDWR | O_NOCTTY);
	if (setsid() < 0 || master < 0 || grantpt(master) < 0 || unlockpt(master) < 0)
		return false;
	int terminal = open(ptsname(master), O_RDWR);
	return terminal >= 0 && dup2(terminal, STDIN_FILENO) == STDIN_FILENO;
}

/* Groups may send echo requests, as in a jail with a network: see icmp(7). */
static inline void open_echo(void)
{
	(void)put_text("/proc/sys/net/ipv4/ping_group_range", "0 0");
}

/* Hides a directory below an empty one that may be written; with a file in it, if named. */
static inline bool make_room(const char *directory, const char *file)
{
	if (mount("none", directory, "tmpfs", 0, NULL) < 0)
		return false;
	return !file || close(open(file, O_CREAT | O_WRONLY | O_CLOEXEC, 0644)) == 0;
}
