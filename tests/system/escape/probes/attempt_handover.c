/* SPDX-License-Identifier: Apache-2.0 */
/* attempt_handover - what the program was handed: descriptors, directory, streams.  Acts; see
 * attempt.h. */
#include "attempt.h"

#include <sys/inotify.h>
#include <sys/resource.h>

static bool try_descriptors(void)
{
	for (int fd = 3; fd < 65536; fd++) {
		if (fcntl(fd, F_GETFD) >= 0)
			return true;
	}
	return false;
}
static bool leave_one_open(void)
{
	int fd = open("/", O_RDONLY);
	return fd >= 0 && dup2(fd, 700) == 700;
}

/* A directory, or one of the kernel's own objects, as a standard stream is a mistake of set-up. */
static bool try_streams(void)
{
	for (int fd = 0; fd < 3; fd++) {
		char path[32], target[64] = "";
		struct stat st;
		(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		if (fstat(fd, &st) < 0 || S_ISDIR(st.st_mode) ||
		    readlink(path, target, sizeof(target) - 1) < 0 ||
		    strncmp(target, "anon_inode", 10) == 0)
			return true;
	}
	errno = ENOENT;
	return false;
}
static bool leave_inotify(void)
{
	return dup2(inotify_init(), STDIN_FILENO) == STDIN_FILENO;
}

/* From a working directory outside the root, ".." leads on and on. */
static bool try_climb(void)
{
	struct stat top, seen;
	char name[4096];
	if (stat("/", &top) < 0)
		return true;
	for (int i = 0; i < 64; i++) {
		if (chdir("..") < 0)
			return false;
	}
	if (stat(".", &seen) < 0 || syscall(SYS_getcwd, name, sizeof(name)) < 0)
		return false;
	errno = ENOENT;
	return seen.st_dev != top.st_dev || seen.st_ino != top.st_ino || strcmp(name, "/") != 0;
}
static bool start_above_the_root(void)
{
	return mkdir("root", 0755) == 0 && chroot("root") == 0;
}

/* The same from a directory that was opened before the root changed. */
static bool try_climb_by_descriptor(void)
{
	for (int fd = 0; fd < 1024; fd++) {
		if (fchdir(fd) == 0)
			return true;
	}
	return false;
}
static bool leave_directory_open(void)
{
	return dup2(open("/", O_RDONLY), 60) == 60;
}

static bool try_terminal_behind(void)
{
	for (int fd = 0; fd < 3; fd++) {
		if (isatty(fd))
			return true;
	}
	return false;
}

static const struct attempt attempts[] = {
	ROW_AFTER(descriptors, leave_one_open),
	ROW_AFTER(streams, leave_inotify),
	ROW_AFTER(climb, start_above_the_root),
	ROW_AFTER(climb_by_descriptor, leave_directory_open),
	ROW(terminal_behind),
};

ATTEMPTS_MAIN(attempts)
