/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fake_cgroup - a directory in /tmp that answers like cgroupfs, for what this host's real
 * one can't show: controllers, "no internal processes", refusals.
 *
 * The test wraps mkdirat, rmdir, fstatfs, system_file_write and, if it sets limits,
 * system_file_write_back (a WRAP line), and includes this once.  Only while `fake.root` is set
 * does anything differ from the real calls.
 */
#pragma once

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>

#include "runtime/base/files/system_file.h"
#include "runtime/base/scope.h"
#include "tests/forked.h"

static struct {
	char root[64];       /* "": off */
	const char *refuse;  /* this file refuses writes ... */
	int refuse_errno;    /* ... with this */
	const char *distort; /* this file takes another value than it is given */
	const char *respawn; /* appears in cgroup.procs whenever it is emptied */
	unsigned moved, writes;
} fake;

static const char *const fake_files[] = {
	"cgroup.controllers",
	"cgroup.subtree_control",
	"cgroup.procs",
	"cgroup.events",
	"cgroup.kill",
	"memory.max",
	"memory.swap.max",
	"memory.oom.group",
	"memory.peak",
	"memory.events",
	"cpu.max",
	"cpu.stat",
	"pids.max",
	"pids.peak",
	"pids.events",
};
#define FAKE_FILES (sizeof(fake_files) / sizeof(fake_files[0]))

static void fake_put(int dir_fd, const char *name, const char *text)
{
	auto_fd int fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		abort();
}

static const char *fake_get(int dir_fd, const char *name)
{
	static char text[SYSTEM_FILE_SMALL];
	if (system_file_read(dir_fd, name, text, sizeof(text)) < 0)
		return "";
	return text;
}

/* The files of a cgroup whose parent enabled these controllers. */
static void fake_fill(int dir_fd, const char *controllers)
{
	fake_put(dir_fd, "cgroup.controllers", controllers);
	fake_put(dir_fd, "cgroup.subtree_control", "\n");
	fake_put(dir_fd, "cgroup.procs", "");
	fake_put(dir_fd, "cgroup.events", "populated 0\nfrozen 0\n");
	fake_put(dir_fd, "cgroup.kill", "");
	fake_put(dir_fd, "cpu.stat", "usage_usec 30\nuser_usec 10\nsystem_usec 20\n");
	if (strstr(controllers, "memory")) {
		fake_put(dir_fd, "memory.max", "max\n");
		fake_put(dir_fd, "memory.swap.max", "max\n");
		fake_put(dir_fd, "memory.oom.group", "0\n");
	}
	if (strstr(controllers, "cpu"))
		fake_put(dir_fd, "cpu.max", "max 100000\n");
	if (strstr(controllers, "pids"))
		fake_put(dir_fd, "pids.max", "max\n");
}

static int fake_open(const char *path)
{
	return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static void fake_begin(const char *controllers)
{
	memset(&fake, 0, sizeof(fake));
	char template[] = "/tmp/cejail-fake-cgroup.XXXXXX";
	if (!mkdtemp(template))
		abort();
	memcpy(fake.root, template, sizeof(template));
	auto_fd int fd = fake_open(fake.root);
	fake_fill(fd, controllers);
}

static void fake_end(void)
{
	char tree[sizeof(fake.root)];
	memcpy(tree, fake.root, sizeof(tree));
	fake.root[0] = '\0';
	pid_t pid = test_fork();
	if (pid == 0)
		_exit(execl("/bin/rm", "rm", "-rf", "--", tree, (char *)NULL));
	(void)waitpid(pid, NULL, 0);
}

int __real_mkdirat(int dir_fd, const char *name, mode_t mode);
int __wrap_mkdirat(int dir_fd, const char *name, mode_t mode);
int __wrap_mkdirat(int dir_fd, const char *name, mode_t mode)
{
	if (fake.root[0] && fake.refuse && strcmp(name, fake.refuse) == 0) {
		errno = fake.refuse_errno;
		return -1;
	}
	if (__real_mkdirat(dir_fd, name, mode) < 0)
		return -1;
	if (fake.root[0]) {
		char controllers[SYSTEM_FILE_SMALL];
		(void)snprintf(controllers, sizeof(controllers), "%s",
			       fake_get(dir_fd, "cgroup.subtree_control"));
		auto_fd int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		fake_fill(fd, controllers);
	}
	return 0;
}

int __real_rmdir(const char *path);
int __wrap_rmdir(const char *path);
int __wrap_rmdir(const char *path)
{
	if (fake.root[0]) {
		auto_fd int fd = fake_open(path);
		for (size_t i = 0; fd >= 0 && i < FAKE_FILES; i++)
			(void)unlinkat(fd, fake_files[i], 0);
	}
	return __real_rmdir(path);
}

int __real_fstatfs(int fd, struct statfs *out);
int __wrap_fstatfs(int fd, struct statfs *out);
int __wrap_fstatfs(int fd, struct statfs *out)
{
	int rc = __real_fstatfs(fd, out);
	if (fake.root[0])
		out->f_type = CGROUP2_SUPER_MAGIC;
	return rc;
}

static int fake_enable(int dir_fd, const char *word)
{
	char text[SYSTEM_FILE_SMALL], list[SYSTEM_FILE_SMALL];
	struct stat here, root;
	bool is_root = fstat(dir_fd, &here) == 0 && stat(fake.root, &root) == 0 &&
		       here.st_ino == root.st_ino && faccessat(dir_fd, "is-container", F_OK, 0) < 0;
	if (!is_root && fake_get(dir_fd, "cgroup.procs")[0] != '\0')
		return -EBUSY;
	(void)snprintf(list, sizeof(list), "%s", fake_get(dir_fd, "cgroup.subtree_control"));
	list[strcspn(list, "\n")] = '\0';
	(void)snprintf(text, sizeof(text), "%.2000s %.100s\n", list, word + 1);
	fake_put(dir_fd, "cgroup.subtree_control", text);
	return 0;
}

/* "cejail-supervisor/cgroup.procs" of dir_fd: the pid leaves dir_fd's own list. */
static int fake_move(int dir_fd, const char *name, const char *pid)
{
	char list[SYSTEM_FILE_SMALL], line[32], *found;
	(void)snprintf(line, sizeof(line), "%s\n", pid);
	(void)snprintf(list, sizeof(list), "%s", fake_get(dir_fd, "cgroup.procs"));
	found = strstr(list, line);
	if (!found)
		return -ESRCH;
	memmove(found, found + strlen(line), strlen(found + strlen(line)) + 1);
	if (list[0] == '\0' && fake.respawn)
		(void)snprintf(list, sizeof(list), "%s\n", fake.respawn);
	fake_put(dir_fd, "cgroup.procs", list);
	fake_put(dir_fd, name, line);
	fake.moved++;
	return 0;
}

int __real_system_file_write(int dir_fd, const char *name, const char *text);
int __wrap_system_file_write(int dir_fd, const char *name, const char *text);
int __wrap_system_file_write(int dir_fd, const char *name, const char *text)
{
	fake.writes++;
	if (fake.refuse && strcmp(name, fake.refuse) == 0)
		return -fake.refuse_errno;
	if (fake.root[0] == '\0')
		return __real_system_file_write(dir_fd, name, text);
	if (faccessat(dir_fd, name, F_OK, 0) < 0)
		return -errno;
	if (strcmp(name, "cgroup.subtree_control") == 0)
		return fake_enable(dir_fd, text);
	if (strstr(name, "/cgroup.procs"))
		return fake_move(dir_fd, name, text);

	char line[128];
	bool is_distorted = fake.distort && strcmp(name, fake.distort) == 0;
	if (strcmp(name, "memory.max") == 0) /* whole pages, as the kernel keeps it */
		(void)snprintf(line, sizeof(line), "%llu\n",
			       strtoull(text, NULL, 10) / 4096 * 4096 - (is_distorted ? 4096 : 0));
	else
		(void)snprintf(line, sizeof(line), "%s%s\n", is_distorted ? "1" : "", text);
	fake_put(dir_fd, name, line);
	return 0;
}

int __wrap_system_file_write_back(int dir_fd, const char *name, const char *text, char *buf,
				  size_t size, ssize_t *out_size);
int __wrap_system_file_write_back(int dir_fd, const char *name, const char *text, char *buf,
				  size_t size, ssize_t *out_size)
{
	int rc = __wrap_system_file_write(dir_fd, name, text);
	if (rc == 0)
		*out_size = system_file_read(dir_fd, name, buf, size);
	return rc;
}
