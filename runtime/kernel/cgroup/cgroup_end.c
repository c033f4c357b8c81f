/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of a leaf: its processes are killed and awaited, then the directory is removed.  Acts.
 * Signals go through pidfds only, and each wait has a limit.
 */
#include "runtime/kernel/cgroup/cgroup.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>

#include "runtime/base/clock.h"
#include "runtime/base/files/system_file.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"
#include "runtime/kernel/cgroup/cgroup_parent.h"
#include "runtime/kernel/cgroup/cgroup_subtree.h"
#include "runtime/kernel/cgroup/cgroup_text.h"

#define EMPTY_WAIT_MS   700  /* killed processes leave within a few; a loaded host takes longer */
#define REMOVE_LIMIT_MS 1000 /* rmdir may say EBUSY shortly after the last process left */
#define CHILDREN_MS     300  /* of which is taken for the children of a session's leaf */
#define POLL_SLICE_MS   50   /* in case a notification is missed */
#define KILL_LIMIT_MS   500
#define KILL_BATCH      64

static void sleep_ms(long ms)
{
	(void)nanosleep(&(struct timespec){ .tv_nsec = ms * 1000000 }, NULL); /* early is fine */
}

static bool has_pid(const pid_t *pids, size_t count, pid_t pid)
{
	for (size_t i = 0; i < count; i++)
		if (pids[i] == pid)
			return true;
	return false;
}

/*
 * A pid may belong to another process by the time it is opened.  If the cgroup still lists it
 * afterwards, the descriptor is of the right process.  False: no process is left.
 */
static bool kill_batch(int dir_fd)
{
	pid_t first[KILL_BATCH], again[KILL_BATCH];
	int fds[KILL_BATCH];
	size_t count = cgroup_subtree_pids(dir_fd, first, KILL_BATCH);
	for (size_t i = 0; i < count; i++)
		fds[i] = first[i] > 0 ? sys_pidfd_open(first[i]) : -1;

	size_t listed = cgroup_subtree_pids(dir_fd, again, KILL_BATCH);
	for (size_t i = 0; i < count; i++) {
		if (fds[i] >= 0 && has_pid(again, listed, first[i]))
			(void)sys_pidfd_send_signal(fds[i], SIGKILL); /* gone already: as well */
		cj_close(&fds[i]);
	}
	return count > 0;
}

/* --- the children of a session's leaf -------------------------------------------------- */

/* Calls act() for each.  Returns for how many it was true. */
static unsigned for_each_child(int dir_fd, bool (*act)(int dir_fd, const char *name))
{
	auto_fd int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	auto_dir DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	if (!dir)
		return 0;
	(void)take_fd(&fd); /* dir's now: fdopendir(3) */

	unsigned count = 0;
	for (struct dirent *e; (e = readdir(dir)) != NULL;)
		count += cgroup_text_is_child(e->d_name) && act(dir_fd, e->d_name);
	return count;
}

static bool is_kept(int dir_fd, const char *name)
{
	return unlinkat(dir_fd, name, AT_REMOVEDIR) < 0 && errno != ENOENT;
}

unsigned cgroup_remove_children(int dir_fd)
{
	return for_each_child(dir_fd, is_kept);
}

static bool kill_child(int dir_fd, const char *name)
{
	auto_fd int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd >= 0 && kill_batch(fd);
}

/* For kernels before 5.14, without cgroup.kill.  A frozen fork bomb can't fork faster than this. */
static void kill_one_by_one(int dir_fd)
{
	(void)system_file_write(dir_fd, "cgroup.freeze", "1"); /* the rounds also work without it */
	for (uint64_t end = clock_ms() + KILL_LIMIT_MS;
	     (kill_batch(dir_fd) || for_each_child(dir_fd, kill_child) > 0) && clock_ms() < end;)
		sleep_ms(1);
	(void)system_file_write(dir_fd, "cgroup.freeze", "0"); /* an empty cgroup doesn't care */
}

/*
 * cgroup.kill signals the first thread of each process.  If that has exited, the others live on:
 * a signal to the process ends them (seen with Linux 6.18).
 */
static void kill_by_pid(int dir_fd)
{
	(void)kill_batch(dir_fd);
	(void)for_each_child(dir_fd, kill_child);
}

void cgroup_kill(const struct cgroup *c)
{
	if (c->dir_fd < 0)
		return;
	int rc = system_file_write(c->dir_fd, "cgroup.kill", "1");
	if (rc == 0)
		kill_by_pid(c->dir_fd);
	else if (rc != -ENODEV) /* ENODEV: the directory is removed */
		kill_one_by_one(c->dir_fd);
}

static bool is_populated(int events_fd)
{
	char text[SYSTEM_FILE_SMALL];
	uint64_t populated = 0;
	if (system_file_reread(events_fd, text, sizeof(text)) < 0)
		return false; /* ENODEV: removed, hence empty */
	return !cgroup_text_value(text, "populated", &populated) || populated != 0;
}

static bool wait_empty(int dir_fd, uint64_t deadline)
{
	auto_fd int events_fd = openat(dir_fd, "cgroup.events", O_RDONLY | O_CLOEXEC);
	if (events_fd < 0)
		return errno == ENOENT || errno == ENODEV;

	for (;;) {
		/* Read first: it also arms the notification for the next change. */
		if (!is_populated(events_fd))
			return true;
		int64_t left = (int64_t)(deadline - clock_ms());
		if (left <= 0)
			return false;
		struct pollfd change = { .fd = events_fd, .events = POLLPRI };
		(void)poll(&change, 1, left < POLL_SLICE_MS ? (int)left : POLL_SLICE_MS);
	}
}

bool cgroup_wait_empty(const struct cgroup *c, unsigned timeout_ms)
{
	return c->dir_fd < 0 || wait_empty(c->dir_fd, clock_ms() + timeout_ms);
}

static int remove_dir(const char *path)
{
	for (uint64_t deadline = clock_ms() + REMOVE_LIMIT_MS - EMPTY_WAIT_MS;; sleep_ms(1)) {
		if (rmdir(path) == 0 || errno == ENOENT)
			return 0;
		if (errno != EBUSY || clock_ms() >= deadline)
			return -errno;
	}
}

static void kill_all(const struct cgroup *c)
{
	const uint64_t end = clock_ms() + EMPTY_WAIT_MS;
	do
		cgroup_kill(c);
	while (!cgroup_wait_empty(c, POLL_SLICE_MS) && clock_ms() < end);
}

/* Fails with EBUSY when a process is in it. */
static int remove_leaf(const struct cgroup *c)
{
	for (uint64_t end = clock_ms() + CHILDREN_MS;
	     cgroup_remove_children(c->dir_fd) > 0 && clock_ms() < end;)
		sleep_ms(1); /* EBUSY, as in remove_dir() */
	return remove_dir(c->path);
}

/*
 * Takes at most REMOVE_LIMIT_MS, and CHILDREN_MS more of a session.  The next sweep finds a leaf
 * that is left.
 */
static int end_leaf(const struct cgroup *c)
{
	if (rmdir(c->path) == 0)
		return 0; /* the usual end: init was the last, and has been reaped */
	if (cgroup_remove_children(c->dir_fd) == 0 && rmdir(c->path) == 0)
		return 0; /* the same, of a leaf that was divided */
	kill_all(c);      /* rmdir says whether it is empty */
	return remove_leaf(c);
}

void cgroup_close(struct cgroup *c)
{
	cj_close(&c->cpu_fd);
	cj_close(&c->init_fd);
	cj_close(&c->dir_fd);
	cj_close(&c->parent_fd);
	*c = CGROUP_NULL;
}

bool cgroup_destroy(struct cgroup *c)
{
	bool is_gone = c->dir_fd < 0 || end_leaf(c) == 0;
	cgroup_close(c);
	return is_gone;
}

/* A record may be stale or forged: opens only a leaf, and only that of the same inode number. */
static int open_leaf(const char *path, uint64_t inode, struct cgroup *out)
{
	if (path[0] != '/' || !cgroup_text_leaf_id(path) || strlen(path) >= sizeof(out->path))
		return -EINVAL;

	auto_fd int fd = sys_openat2(AT_FDCWD, path, O_PATH | O_DIRECTORY, 0, RESOLVE_NO_SYMLINKS);
	struct statfs fs;
	struct stat st;
	if (fd < 0 || fstatfs(fd, &fs) < 0 || fstat(fd, &st) < 0)
		return errno == ELOOP || errno == ENOTDIR ? -EINVAL : -errno;
	if (fs.f_type != CGROUP2_SUPER_MAGIC)
		return -EINVAL;
	if (inode != 0 && st.st_ino != inode)
		return -ENOENT;
	memcpy(out->path, path, strlen(path) + 1);
	out->dir_fd = take_fd(&fd);
	return 0;
}

int cgroup_remove_path(const char *path, uint64_t inode, struct cj_error *err)
{
	struct cgroup leaf = CGROUP_NULL;
	int rc = open_leaf(path, inode, &leaf);
	if (rc == -ENOENT)
		return 0;
	if (rc == -EINVAL)
		return cj_reject(err, "'%s' is not a cgroup of a jail", path);
	if (rc == 0 && inode != 0)
		rc = end_leaf(&leaf);
	else if (rc == 0)
		rc = remove_leaf(&leaf); /* killed before its record had the inode */
	cj_close(&leaf.dir_fd);
	return rc < 0 ? cj_fail(err, -rc, "remove cgroup '%s'", path) : 0;
}
