/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A leaf of the unified hierarchy: created, limited, read.
 * Follows Documentation/admin-guide/cgroup-v2.rst and cgroups(7).
 */
#include "runtime/kernel/cgroup/cgroup.h"

#include <assert.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

#include "runtime/base/files/system_file.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"
#include "runtime/kernel/cgroup/cgroup_parent.h"
#include "runtime/kernel/cgroup/cgroup_tree.h"
#include "runtime/kernel/cgroup/cgroup_text.h"

#define CPU_PERIOD_US 100000
#define MAKE_ATTEMPTS 100 /* each may meet another sweep */
#define LOCK_ATTEMPTS 50

/* --- limits ---------------------------------------------------------------------- */

__attribute__((format(printf, 2, 3))) static void say_why(struct cgroup *c, const char *fmt, ...)
{
	if (c->why_not[0] != '\0')
		return; /* the first reason is the cause */
	va_list ap;
	va_start(ap, fmt);
	(void)vsnprintf(c->why_not, sizeof(c->why_not), fmt, ap);
	va_end(ap);
}

/* Writes the limit and reads it back: the kernel may round it, or take another. */
static bool enforce_number(struct cgroup *c, const char *file, uint64_t value, uint64_t grain)
{
	char text[64];
	uint64_t taken = 0;
	(void)snprintf(text, sizeof(text), "%" PRIu64, value);
	int rc = system_file_write(c->dir_fd, file, text);
	if (rc < 0) {
		say_why(c, "write '%s' to '%s': %s", text, file, strerror(-rc));
		return false;
	}
	if (system_file_read(c->dir_fd, file, text, sizeof(text)) <= 0 ||
	    !cgroup_text_number(text, &taken) || taken != value - value % grain) {
		say_why(c, "'%s' did not take %" PRIu64, file, value);
		return false;
	}
	return true;
}

/* Each swap area is a line behind a heading: proc(5). */
bool cgroup_host_has_swap(void)
{
	char text[SYSTEM_FILE_SMALL];
	ssize_t size = system_file_read(AT_FDCWD, "/proc/swaps", text, sizeof(text));
	if (size < 0)
		return true; /* unreadable: assume that there is swap */
	const char *line = strchr(text, '\n');
	return line && line[1] != '\0';
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
	char text[64], taken[64];
	(void)snprintf(text, sizeof(text), "%" PRIu64 " %d",
		       limits->millicpus * (CPU_PERIOD_US / 1000), CPU_PERIOD_US);
	int rc = system_file_write(c->dir_fd, "cpu.max", text);
	if (rc < 0) {
		say_why(c, "write '%s' to 'cpu.max': %s", text, strerror(-rc));
		return false;
	}
	ssize_t size = system_file_read(c->dir_fd, "cpu.max", taken, sizeof(taken));
	if (size <= 0 || strncmp(taken, text, strlen(text)) != 0 || taken[strlen(text)] != '\n') {
		say_why(c, "'cpu.max' did not take '%s'", text);
		return false;
	}
	return true;
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
static_assert(sizeof(enforcers) / sizeof(enforcers[0]) == CGROUP_CONTROLLER_COUNT, "a row each");

/* --- the leaf ---------------------------------------------------------------------- */

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
static bool lock_leaf(int parent_fd, const char *name, int dir_fd)
{
	for (unsigned i = 0; i < LOCK_ATTEMPTS && flock(dir_fd, LOCK_SH | LOCK_NB) < 0; i++)
		(void)nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);

	struct stat ours, named;
	return fstat(dir_fd, &ours) == 0 &&
	       fstatat(parent_fd, name, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
	       ours.st_ino == named.st_ino;
}

/* A new leaf with our lock; -1 with errno. */
static int make_leaf(int parent_fd, const char *name)
{
	for (unsigned attempt = 0; attempt < MAKE_ATTEMPTS; attempt++) {
		int rc = make_dir(parent_fd, name);
		if (rc ==
		    -ENOENT) /* a sweep removed it before it had its mode; or the parent is gone */
			continue;
		if (rc < 0) {
			errno = -rc;
			return -1;
		}
		auto_fd int dir_fd =
		    openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (dir_fd >= 0 && lock_leaf(parent_fd, name, dir_fd))
			return take_fd(&dir_fd);
		if (dir_fd < 0 && errno != ENOENT) {
			int code = errno;
			(void)unlinkat(parent_fd, name,
				       AT_REMOVEDIR); /* the empty one that was just created */
			errno = code;
			return -1;
		}
	}
	errno = ENOENT;
	return -1;
}

int cgroup_find(const char *parent_option, const char *id, struct cgroup *out, struct cj_error *err)
{
	*out = CGROUP_NULL;
	if (!cgroup_text_is_leaf_id(id))
		return cj_reject(err, "'%s' can't name a cgroup", id);

	struct cgroup_host host;
	cgroup_host_read(&host);
	auto_cgroup_parent struct cgroup_parent parent = { .dir_fd = -1 };
	int rc = cgroup_parent_find(&host, parent_option, id, &parent, err);
	if (rc < 0)
		return rc;

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

	const char *name = strrchr(c->path, '/') + 1;
	c->dir_fd = make_leaf(parent_fd, name);
	if (c->dir_fd < 0)
		return cj_fail(err, errno, "make cgroup '%s'", c->path);
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
	else
		(void)cgroup_tree_enable(c->dir_fd); /* -EBUSY: somebody put a process there */
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
	return c->dir_fd >= 0 && fstat(c->dir_fd, &st) == 0 ? st.st_ino : 0;
}

/* --- evidence ------------------------------------------------------------------------- */

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

/* Has this cgroup above the leaf room?  One without a limit has. */
static bool has_room(const char *path, uint64_t pids)
{
	uint64_t max = 0, current = 0;
	auto_fd int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || !cgroup_read_number(fd, "pids.max", &max))
		return true;
	return cgroup_read_number(fd, "pids.current", &current) && current <= max &&
	       max - current >= pids;
}

bool cgroup_has_room_above(const struct cgroup *c, uint64_t pids)
{
	char path[sizeof(c->path)];
	memcpy(path, c->path, sizeof(path));
	for (char *slash; (slash = strrchr(path, '/')) != NULL && slash > path;) {
		*slash = '\0';
		if (!has_room(path, pids))
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
