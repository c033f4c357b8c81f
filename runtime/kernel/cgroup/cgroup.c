/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A leaf of the unified hierarchy: created, limited, read, ended.
 * Follows Documentation/admin-guide/cgroup-v2.rst and cgroups(7).
 */
#include "runtime/kernel/cgroup/cgroup.h"

#include <assert.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <sys/vfs.h>
#include <time.h>

#include "runtime/base/files/fd.h"
#include "runtime/base/files/system_file.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"
#include "runtime/base/text.h"
#include "runtime/kernel/cgroup/cgroup_parent.h"
#include "runtime/kernel/cgroup/cgroup_tree.h"

#define CPU_PERIOD_US  100000
#define MAKE_ATTEMPTS  100 /* each may meet another sweep */
#define LOCK_ATTEMPTS  50
#define EMPTY_WAIT_MS  700 /* killed processes leave within a few; a loaded host takes longer */
#define REMOVE_WAIT_MS 300

__attribute__((format(printf, 2, 3))) static void say_why(struct cgroup *c, const char *fmt, ...)
{
	if (c->why_not[0] != '\0')
		return; /* the first reason is the cause */
	(void)text_format(c->why_not, fmt);
}

/* Writes the limit and reads it back: the kernel may round it, or take another. */
static bool enforce(struct cgroup *c, const char *file, const char *text, const char *expected)
{
	char taken[64];
	ssize_t got = 0;
	int rc = system_file_write_back(c->dir_fd, file, text, taken, sizeof(taken), &got);
	if (rc < 0) {
		say_why(c, "write '%s' to '%s': %s", text, file, strerror(-rc));
		return false;
	}
	size_t size = strlen(expected);
	if (got <= 0 || strncmp(taken, expected, size) != 0 || taken[size] != '\n') {
		say_why(c, "'%s' did not take %s", file, text);
		return false;
	}
	return true;
}

static bool enforce_number(struct cgroup *c, const char *file, uint64_t value, uint64_t grain)
{
	char text[24], expected[24];
	(void)snprintf(text, sizeof(text), "%" PRIu64, value);
	(void)snprintf(expected, sizeof(expected), "%" PRIu64, value - value % grain);
	return enforce(c, file, text, expected);
}

bool cgroup_host_has_swap(void)
{
	struct sysinfo host;
	return sysinfo(&host) < 0 || host.totalswap > 0; /* not known: assume that there is swap */
}

static bool enforce_memory(struct cgroup *c, const struct cgroup_limits *limits)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	if (!enforce_number(c, "memory.max", limits->memory_bytes, page))
		return false;

	int rc = system_file_write(c->dir_fd, "memory.swap.max", "0");
	if (rc < 0 && (rc != -ENOENT || cgroup_host_has_swap())) {
		say_why(c, "the jail's memory may be swapped out: boot with swapaccount=1, or turn "
			   "swap off");
		return false;
	}
	/* The OOM killer ends all processes of the jail, not one of them. */
	rc = system_file_write(c->dir_fd, "memory.oom.group", "1");
	if (rc < 0)
		say_why(c, "write '1' to 'memory.oom.group': %s", strerror(-rc));
	return rc == 0;
}

static bool enforce_cpu(struct cgroup *c, const struct cgroup_limits *limits)
{
	char text[64];
	(void)snprintf(text, sizeof(text), "%" PRIu64 " %d",
		       limits->millicpus * (CPU_PERIOD_US / 1000), CPU_PERIOD_US);
	return enforce(c, "cpu.max", text, text);
}

static bool enforce_pids(struct cgroup *c, const struct cgroup_limits *limits)
{
	return enforce_number(c, "pids.max", limits->pids, 1);
}

static const struct enforcer {
	bool (*enforce)(struct cgroup *c, const struct cgroup_limits *limits);
	size_t value; /* offset in struct cgroup_limits; a value of 0: no limit */
} enforcers[] = {
	[CGROUP_MEMORY] = { enforce_memory, offsetof(struct cgroup_limits, memory_bytes) },
	[CGROUP_CPU] = { enforce_cpu, offsetof(struct cgroup_limits, millicpus) },
	[CGROUP_PIDS] = { enforce_pids, offsetof(struct cgroup_limits, pids) },
};
static_assert(COUNT_OF(enforcers) == CGROUP_CONTROLLER_COUNT, "a row each");

/* An empty leaf of this name belongs to a dead jail and is replaced. */
static int make_dir(int parent_fd, const char *name)
{
	for (unsigned attempt = 0; attempt < 2; attempt++) {
		int rc = system_file_make_dir(parent_fd, name);
		if (rc != -EEXIST)
			return rc;
		if (unlinkat(parent_fd, name, AT_REMOVEDIR) < 0)
			return errno == EBUSY ? -EEXIST : -errno;
	}
	return -EEXIST;
}

/*
 * Locks the new leaf against cgroup_sweep().  False: a sweep removed it before.  Another user may
 * hold the lock, as flock(2) allows; then the processes in the leaf protect it.
 */
static bool lock_leaf(int parent_fd, const char *name, int dir_fd, uint64_t *out_inode)
{
	for (unsigned i = 0; i < LOCK_ATTEMPTS && flock(dir_fd, LOCK_SH | LOCK_NB) < 0; i++)
		(void)nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);

	struct stat ours, named;
	if (fstat(dir_fd, &ours) < 0 || fstatat(parent_fd, name, &named, AT_SYMLINK_NOFOLLOW) < 0 ||
	    ours.st_ino != named.st_ino)
		return false;
	*out_inode = ours.st_ino;
	return true;
}

/* A new leaf with our lock, or -errno. */
static int make_leaf(int parent_fd, const char *name, uint64_t *out_inode)
{
	for (unsigned attempt = 0; attempt < MAKE_ATTEMPTS; attempt++) {
		int rc = make_dir(parent_fd, name);
		/* a sweep removed it before it had its mode; or the parent is gone */
		if (rc == -ENOENT)
			continue;
		if (rc < 0)
			return rc;
		auto_fd int dir_fd =
		    openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (dir_fd >= 0 && lock_leaf(parent_fd, name, dir_fd, out_inode))
			return take_fd(&dir_fd);
		if (dir_fd < 0 && errno != ENOENT) {
			rc = -errno;
			(void)unlinkat(parent_fd, name, AT_REMOVEDIR); /* just made, and empty */
			return rc;
		}
	}
	return -ENOENT;
}

int cgroup_find(const char *parent_option, const char *id, struct cgroup *out, struct cj_error *err)
{
	*out = CGROUP_NULL;
	if (!cgroup_text_is_leaf_id(id))
		return cj_reject(err, "'%s' can't name a cgroup", id);

	struct cgroup_host host;
	cgroup_host_read(&host);
	auto_cgroup_parent struct cgroup_parent parent = { .dir_fd = -1 };
	if (cgroup_parent_find(&host, parent_option, id, &parent, err) < 0)
		return -err->code;

	struct cgroup found = CGROUP_NULL;
	found.origin = parent.origin;
	memcpy(found.why_not, parent.why_not, sizeof(found.why_not));
	memcpy(found.offered, parent.offers, sizeof(found.offered));
	if (parent.dir_fd >= 0) {
		int size = snprintf(found.path, sizeof(found.path), "%s/" CGROUP_LEAF_PREFIX "%s",
				    parent.path, id);
		if (size < 0 || (size_t)size >= sizeof(found.path))
			return cj_reject(err, "cgroup parent '%s': the path is too long",
					 parent.path);
		found.parent_fd = take_fd(&parent.dir_fd);
	}
	*out = found;
	return 0;
}

void cgroup_enter_scope(const char *id)
{
	struct cgroup_host host;
	cgroup_host_read(&host);
	cgroup_parent_claim(&host, id);
}

int cgroup_make(struct cgroup *c, const struct cgroup_limits *limits, struct cj_error *err)
{
	auto_fd int parent_fd = take_fd(&c->parent_fd);
	if (parent_fd < 0)
		return 0;

	int fd = make_leaf(parent_fd, strrchr(c->path, '/') + 1, &c->inode);
	if (fd < 0)
		return cj_fail(err, -fd, "make cgroup '%s'", c->path);
	c->dir_fd = fd;
	c->cpu_fd = openat(c->dir_fd, "cpu.stat", O_RDONLY | O_CLOEXEC); /* -1: not known */
	for (size_t i = 0; i < CGROUP_CONTROLLER_COUNT; i++) {
		uint64_t value;
		memcpy(&value, (const char *)limits + enforcers[i].value, sizeof(value));
		c->enforced[i] = c->offered[i] && value > 0 && enforcers[i].enforce(c, limits);
	}
	return 0;
}

void cgroup_divide(struct cgroup *c)
{
	int rc = c->dir_fd < 0 ? -EBADF : system_file_make_dir(c->dir_fd, CGROUP_INIT_LEAF);
	if (rc < 0)
		return;
	c->init_fd =
	    openat(c->dir_fd, CGROUP_INIT_LEAF, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (c->init_fd < 0)
		(void)unlinkat(c->dir_fd, CGROUP_INIT_LEAF, AT_REMOVEDIR); /* empty */
	else /* -EBUSY: somebody put a process there */
		(void)cgroup_tree_enable(c->dir_fd, NULL);
}

int cgroup_birth_fd(const struct cgroup *c)
{
	return c->init_fd >= 0 ? c->init_fd : c->dir_fd;
}

int cgroup_move(int dir_fd, pid_t pid)
{
	char text[16];
	(void)snprintf(text, sizeof(text), "%d", (int)pid);
	return system_file_write(dir_fd, "cgroup.procs", text);
}

uint64_t cgroup_inode(const struct cgroup *c)
{
	struct stat st;
	if (c->dir_fd >= 0 && c->inode != 0)
		return c->inode;
	return c->dir_fd >= 0 && fstat(c->dir_fd, &st) == 0 ? st.st_ino : 0;
}

bool cgroup_read_number(int dir_fd, const char *file, uint64_t *out)
{
	char text[64];
	return system_file_read(dir_fd, file, text, sizeof(text)) > 0 &&
	       cgroup_text_number(text, out);
}

uint64_t cgroup_memory_bytes(const struct cgroup *c)
{
	char text[2 * SYSTEM_FILE_SMALL];
	uint64_t bytes, cached_bytes;
	if (c->dir_fd < 0 || !cgroup_read_number(c->dir_fd, "memory.current", &bytes) ||
	    system_file_read(c->dir_fd, "memory.stat", text, sizeof(text)) <= 0 ||
	    !cgroup_text_value(text, "inactive_file", &cached_bytes))
		return UINT64_MAX;
	return bytes > cached_bytes ? bytes - cached_bytes : 0; /* two files, not read at once */
}

static uint64_t read_pids_max_hits(int dir_fd)
{
	char text[SYSTEM_FILE_SMALL];
	uint64_t hits = 0;
	if (dir_fd >= 0 && system_file_read(dir_fd, "pids.events", text, sizeof(text)) > 0)
		(void)cgroup_text_value(text, "max", &hits); /* absent: stays 0 */
	return hits;
}

void cgroup_read_usage(const struct cgroup *c, struct cgroup_usage *out)
{
	*out = (struct cgroup_usage){ 0 };
	if (c->dir_fd < 0)
		return;
	char text[SYSTEM_FILE_SMALL];
	out->has_memory_peak =
	    cgroup_read_number(c->dir_fd, "memory.peak", &out->memory_peak_bytes);
	if (system_file_read(c->dir_fd, "memory.events", text, sizeof(text)) > 0) {
		(void)cgroup_text_value(text, "oom", &out->own_ooms); /* absent: stays 0 */
		if (!cgroup_text_value(text, "oom_kill", &out->oom_kills) || out->oom_kills == 0)
			(void)cgroup_text_value(text, "oom_group_kill", &out->oom_kills);
	}

	/* Before Linux 6.11 a refusal counts where the process is, not where the limit is. */
	uint64_t of_init = read_pids_max_hits(c->init_fd);
	out->has_pids_peak = cgroup_read_number(c->dir_fd, "pids.peak", &out->pids_peak);
	out->pids_max_hits = read_pids_max_hits(c->dir_fd);
	out->pids_max_hits = of_init > out->pids_max_hits ? of_init : out->pids_max_hits;

	if (c->cpu_fd < 0 || system_file_reread(c->cpu_fd, text, sizeof(text)) <= 0)
		return;
	out->has_cpu = cgroup_text_value(text, "user_usec", &out->cpu_user_us) &&
		       cgroup_text_value(text, "system_usec", &out->cpu_system_us);
	(void)cgroup_text_value(text, "throttled_usec", &out->throttled_us); /* absent: stays 0 */
}

bool cgroup_has_room_above(const struct cgroup *c, uint64_t pids)
{
	char path[sizeof(c->path)];
	memcpy(path, c->path, sizeof(path));
	for (char *slash; (slash = strrchr(path, '/')) != NULL && slash > path;) {
		uint64_t max = 0, current = 0;
		*slash = '\0';
		auto_fd int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (fd < 0 || !cgroup_read_number(fd, "pids.max", &max))
			continue; /* without a limit it has room */
		if (!cgroup_read_number(fd, "pids.current", &current) || current > max ||
		    max - current < pids)
			return false;
	}
	return true;
}

uint64_t cgroup_cpu_us(const struct cgroup *c)
{
	char text[SYSTEM_FILE_SMALL];
	uint64_t usage = 0;
	if (c->dir_fd < 0 || c->cpu_fd < 0 ||
	    system_file_reread(c->cpu_fd, text, sizeof(text)) <= 0 ||
	    !cgroup_text_value(text, "usage_usec", &usage))
		return 0;
	return usage;
}

void cgroup_kill(const struct cgroup *c)
{
	struct cj_error ignored; /* the caller calls again, or removing the leaf fails */
	if (c->dir_fd >= 0)
		(void)cgroup_tree_kill(c->dir_fd, 0, &ignored);
}

bool cgroup_wait_empty(const struct cgroup *c, unsigned timeout_ms)
{
	return c->dir_fd < 0 || cgroup_tree_wait_empty(c->dir_fd, timeout_ms);
}

/* The next sweep finds a leaf that is left. */
static int end_leaf(const struct cgroup *c)
{
	struct cj_error ignored; /* removing it says whether it is empty */
	if (rmdir(c->path) == 0)
		return 0; /* the usual end: init was the last, and has been reaped */
	if (cgroup_tree_remove(AT_FDCWD, c->path, 0) == 0)
		return 0; /* the same, of a leaf that was divided */
	(void)cgroup_tree_kill(c->dir_fd, EMPTY_WAIT_MS, &ignored);
	return cgroup_tree_remove(AT_FDCWD, c->path, REMOVE_WAIT_MS);
}

void cgroup_close(struct cgroup *c)
{
	auto_fd_bag struct fd_bag all = { 0 };
	fd_bag_add(&all, c->cpu_fd);
	fd_bag_add(&all, c->init_fd);
	fd_bag_add(&all, c->dir_fd);
	fd_bag_add(&all, c->parent_fd);
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
	else if (rc == 0) /* killed before its record had the inode */
		rc = cgroup_tree_remove(AT_FDCWD, path, REMOVE_WAIT_MS);
	cj_close(&leaf.dir_fd);
	return rc < 0 ? cj_fail(err, -rc, "remove cgroup '%s'", path) : 0;
}

/* A session's leaf has children.  Another program's cgroup may have the name of a leaf. */
static bool has_only_our_children(int dir_fd)
{
	auto_fd_dir struct fd_dir *dir = fd_open_dir(dir_fd, ".");
	for (const struct dirent *e; dir && (e = fd_next_entry(dir)) != NULL;)
		if (e->d_type == DT_DIR && e->d_name[0] != '.' && !cgroup_text_is_child(e->d_name))
			return false;
	return dir != NULL;
}

unsigned cgroup_sweep_in(int parent_fd)
{
	unsigned removed = 0;
	auto_fd_dir struct fd_dir *dir = fd_open_dir(parent_fd, ".");
	for (const struct dirent *e; dir && (e = fd_next_entry(dir)) != NULL;) {
		struct stat st;
		if (!cgroup_text_leaf_id(e->d_name))
			continue;
		/* The lock stays until the leaf is gone, and the kernel removes none in use. */
		auto_fd int fd =
		    openat(parent_fd, e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		removed += fd >= 0 && fstat(fd, &st) == 0 && st.st_uid == geteuid() &&
			   flock(fd, LOCK_EX | LOCK_NB) == 0 && has_only_our_children(fd) &&
			   cgroup_tree_remove(parent_fd, e->d_name, 0) == 0;
	}
	return removed;
}

#define WAYS_MAX 8

unsigned cgroup_sweep(void)
{
	struct cgroup_parent_report ways[WAYS_MAX];
	size_t count = cgroup_parent_reports(ways, WAYS_MAX);
	unsigned removed = 0;
	for (size_t i = 0; i < count; i++) {
		const char *path = ways[i].detail;
		struct statfs fs;
		/* the report may have cut off a long path */
		if (!ways[i].serves || strlen(path) + 1 == sizeof(ways[i].detail))
			continue;
		auto_fd int fd = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (fd >= 0 && fstatfs(fd, &fs) == 0 && fs.f_type == CGROUP2_SUPER_MAGIC)
			removed += cgroup_sweep_in(fd);
	}
	return removed;
}
