/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/kernel/cgroup/cgroup_tree.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "runtime/base/clock.h"
#include "runtime/base/files/fd.h"
#include "runtime/base/files/system_file.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"
#include "runtime/kernel/cgroup/cgroup_text.h"

#define PROCS_MAX      (32u << 20) /* 4194304 pids (PID_MAX_LIMIT) of 8 bytes */
#define STEPS_MAX      1000000     /* of a walk or a removal */
#define SIGNAL_BATCH   64
#define POLL_SLICE_MS  50 /* in case a notification is missed; killed processes leave within a few */
#define TREE_DIRECTORY (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

static DIR *open_dir(int dir_fd)
{
	auto_fd int fd = openat(dir_fd, ".", TREE_DIRECTORY);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	if (dir)
		(void)take_fd(&fd); /* dir's now: fdopendir(3) */
	return dir;
}

/* A cgroup contains files and cgroups only. */
static const char *next_child(DIR *dir)
{
	for (struct dirent *e; (e = readdir(dir)) != NULL;)
		if (e->d_type == DT_DIR && strcmp(e->d_name, ".") != 0 &&
		    strcmp(e->d_name, "..") != 0)
			return e->d_name;
	return NULL;
}

static int go_up(int *fd)
{
	int parent_fd = openat(*fd, "..", TREE_DIRECTORY);
	if (parent_fd < 0)
		return -errno;
	cj_close(fd);
	*fd = parent_fd;
	return 0;
}

/* --- its processes -------------------------------------------------------------------- */

struct pid_list {
	struct arena *arena;
	size_t max; /* how many are wanted */
	pid_t *items;
	size_t count;
};

static int no_memory(struct cj_error *err)
{
	return cj_fail(err, ENOMEM, "list the processes of a cgroup");
}

static size_t count_lines(const char *text)
{
	size_t count = 0;
	for (; (text = strchr(text, '\n')) != NULL; text++)
		count++;
	return count;
}

/* In a threaded cgroup the processes are those of the domain above: EOPNOTSUPP, cgroups(7). */
static int add_pids(int dir_fd, struct pid_list *list, struct cj_error *err)
{
	auto_arena struct arena scratch = { 0 };
	char *text;
	size_t size;
	int rc = fd_read_file(dir_fd, "cgroup.procs", PROCS_MAX, &scratch, &text, &size, err);
	if (rc == -EOPNOTSUPP || rc == -ENODEV || rc == -ENOENT)
		return 0;
	if (rc < 0)
		return rc;

	size_t lines = count_lines(text);
	pid_t *pids = arena_array(&scratch, lines + 1, sizeof(*pids));
	if (!pids)
		return no_memory(err);
	size_t found = cgroup_text_pids(text, pids, lines);
	for (size_t i = 0; i < found && list->count < list->max; i++) {
		pid_t *grown = arena_grow(list->arena, list->items, list->count, sizeof(*grown));
		if (!grown)
			return no_memory(err);
		list->items = grown;
		if (pids[i] != 0) /* of a process in another pid namespace */
			grown[list->count++] = pids[i];
	}
	return 0;
}

/*
 * A walk that holds one descriptor, however deep the container nests its cgroups.  The names of a
 * level are read at once: a position in a directory is a hash of a name, and the container can
 * choose names of one hash.
 */
struct child {
	struct child *next;
	const char *name;
};

struct level {
	struct level *above;
	struct child *left; /* still to be entered */
};

struct pid_walk {
	struct arena arena;
	int fd; /* of the lowest level */
	struct level *level;
	struct pid_list *list;
};

static void pid_walk_fini(struct pid_walk *w)
{
	cj_close(&w->fd);
	arena_fini(&w->arena);
}

static int add_children(struct pid_walk *w, struct level *level, struct cj_error *err)
{
	auto_dir DIR *dir = open_dir(w->fd);
	if (!dir)
		return errno == ENOENT || errno == ENODEV
			   ? 0
			   : cj_fail(err, errno, "list the cgroups below a cgroup");
	for (const char *name; (name = next_child(dir)) != NULL;) {
		struct child *child = arena_alloc(&w->arena, sizeof(*child));
		const char *kept = arena_strdup(&w->arena, name);
		if (!child || !kept)
			return no_memory(err);
		*child = (struct child){ level->left, kept };
		level->left = child;
	}
	return 0;
}

/* w->fd is a cgroup that was not visited yet. */
static int visit(struct pid_walk *w, struct cj_error *err)
{
	struct level *level = arena_alloc(&w->arena, sizeof(*level));
	if (!level)
		return no_memory(err);
	*level = (struct level){ .above = w->level };
	w->level = level;
	int rc = add_pids(w->fd, w->list, err);
	return rc < 0 ? rc : add_children(w, level, err);
}

static int enter(struct pid_walk *w, const char *name, struct cj_error *err)
{
	int child_fd = openat(w->fd, name, TREE_DIRECTORY);
	if (child_fd < 0 && (errno == ENOENT || errno == ENODEV))
		return 0; /* removed meanwhile */
	if (child_fd < 0)
		return cj_fail(err, errno, "open the nested cgroup '%.200s'", name);
	cj_close(&w->fd);
	w->fd = child_fd;
	return visit(w, err);
}

static int leave(struct pid_walk *w, struct cj_error *err)
{
	w->level = w->level->above;
	int rc = w->level ? go_up(&w->fd) : 0;
	return rc < 0 ? cj_fail(err, -rc, "go up from a nested cgroup") : 0;
}

static int walk_pids(int dir_fd, struct pid_list *list, struct cj_error *err)
{
	__attribute__((cleanup(pid_walk_fini))) struct pid_walk w = { .fd = -1, .list = list };
	w.fd = openat(dir_fd, ".", TREE_DIRECTORY);
	if (w.fd < 0)
		return errno == ENOENT || errno == ENODEV ? 0
							  : cj_fail(err, errno, "open a cgroup");
	int rc = visit(&w, err);
	for (unsigned step = 0; rc == 0 && w.level && list->count < list->max; step++) {
		struct child *child = w.level->left;
		if (step == STEPS_MAX)
			return cj_reject_as(err, ELOOP,
					    "the container has more than %d nested cgroups",
					    STEPS_MAX / 2);
		if (child)
			w.level->left = child->next;
		rc = child ? enter(&w, child->name, err) : leave(&w, err);
	}
	return rc;
}

int cgroup_tree_pids(int dir_fd, struct arena *a, pid_t **out, size_t *out_count,
		     struct cj_error *err)
{
	struct pid_list list = { .arena = a, .max = SIZE_MAX };
	int rc = walk_pids(dir_fd, &list, err);
	*out = list.items;
	*out_count = list.count;
	return rc;
}

static bool is_listed(const struct pid_list *list, pid_t pid)
{
	for (size_t i = 0; i < list->count; i++)
		if (list->items[i] == pid)
			return true;
	return false;
}

/*
 * A pid may belong to another process by the time it is opened.  If the cgroup still lists it
 * afterwards, the descriptor is of the right process.
 */
static int signal_batch(int dir_fd, const pid_t *pids, size_t count, int signal, size_t max,
			struct cj_error *err)
{
	auto_arena struct arena a = { 0 };
	struct pid_list again = { .arena = &a, .max = max };
	int fds[SIGNAL_BATCH];
	for (size_t i = 0; i < count; i++)
		fds[i] = sys_pidfd_open(pids[i]); /* -1: it has ended */
	int rc = walk_pids(dir_fd, &again, err);
	for (size_t i = 0; i < count; i++) {
		if (rc == 0 && fds[i] >= 0 && is_listed(&again, pids[i]) &&
		    sys_pidfd_send_signal(fds[i], signal) < 0 && errno != ESRCH)
			rc = cj_fail(err, errno, "send signal %d to process %d", signal,
				     (int)pids[i]);
		cj_close(&fds[i]);
	}
	return rc;
}

/* To `max` processes at most. */
static int signal_some(int dir_fd, int signal, size_t max, struct cj_error *err)
{
	auto_arena struct arena a = { 0 };
	struct pid_list list = { .arena = &a, .max = max };
	int rc = walk_pids(dir_fd, &list, err);
	for (size_t i = 0; rc == 0 && i < list.count; i += SIGNAL_BATCH) {
		size_t batch = list.count - i < SIGNAL_BATCH ? list.count - i : SIGNAL_BATCH;
		rc = signal_batch(dir_fd, list.items + i, batch, signal, max, err);
	}
	return rc;
}

int cgroup_tree_signal(int dir_fd, int signal, struct cj_error *err)
{
	return signal_some(dir_fd, signal, SIZE_MAX, err);
}

/* --- its state --------------------------------------------------------------------------- */

/* False also when the directory is removed. */
static bool read_event(int events_fd, const char *key)
{
	char text[SYSTEM_FILE_SMALL];
	uint64_t value = 0;
	return system_file_reread(events_fd, text, sizeof(text)) > 0 &&
	       cgroup_text_value(text, key, &value) && value != 0;
}

bool cgroup_tree_event(int dir_fd, const char *key)
{
	auto_fd int events_fd = openat(dir_fd, "cgroup.events", O_RDONLY | O_CLOEXEC);
	return events_fd >= 0 && read_event(events_fd, key);
}

/* False: the time is over. */
static bool await_event(int events_fd, const char *key, bool wanted, uint64_t end)
{
	for (;;) {
		/* Read first: it also arms the notification for the next change. */
		if (read_event(events_fd, key) == wanted)
			return true;
		int64_t left = (int64_t)(end - clock_ms());
		if (left <= 0)
			return false;
		struct pollfd change = { .fd = events_fd, .events = POLLPRI };
		(void)poll(&change, 1, left < POLL_SLICE_MS ? (int)left : POLL_SLICE_MS);
	}
}

bool cgroup_tree_wait_empty(int dir_fd, unsigned timeout_ms)
{
	auto_fd int events_fd = openat(dir_fd, "cgroup.events", O_RDONLY | O_CLOEXEC);
	if (events_fd < 0)
		return errno == ENOENT || errno == ENODEV;
	return await_event(events_fd, "populated", false, clock_ms() + timeout_ms);
}

int cgroup_tree_freeze(int dir_fd, bool frozen, unsigned timeout_ms)
{
	auto_fd int events_fd = openat(dir_fd, "cgroup.events", O_RDONLY | O_CLOEXEC);
	if (events_fd < 0)
		return -errno;
	int rc = system_file_write(dir_fd, "cgroup.freeze", frozen ? "1" : "0");
	if (rc < 0)
		return rc;
	return await_event(events_fd, "frozen", frozen, clock_ms() + timeout_ms) ? 0 : -ETIMEDOUT;
}

/*
 * One round.  cgroup.kill signals the first thread of each process.  If that has exited, the others
 * live on: a signal to the process ends them (seen with Linux 6.18).
 */
static int kill_some(int dir_fd, size_t max, struct cj_error *err)
{
	struct cj_error later;
	int rc = system_file_write(dir_fd, "cgroup.kill", "1");
	if (rc == -ENODEV)
		return 0; /* the directory is removed */
	if (rc < 0)
		rc = cj_fail(err, -rc, "kill the processes of a cgroup");
	int sent = signal_some(dir_fd, SIGKILL, max, rc < 0 ? &later : err);
	return rc < 0 ? rc : sent;
}

int cgroup_tree_kill(int dir_fd, unsigned timeout_ms, struct cj_error *err)
{
	const uint64_t end = clock_ms() + timeout_ms;
	int rc = kill_some(dir_fd, SIGNAL_BATCH, err);
	bool is_frozen = false;
	for (uint64_t now; (now = clock_ms()) < end;) {
		uint64_t left = end - now;
		if (cgroup_tree_wait_empty(dir_fd,
					   left < POLL_SLICE_MS ? (unsigned)left : POLL_SLICE_MS)) {
			rc = 0;
			break;
		}
		/* What is left must not fork meanwhile; SIGKILL ends a frozen process, too. */
		is_frozen |= system_file_write(dir_fd, "cgroup.freeze", "1") == 0;
		rc = kill_some(dir_fd, SIZE_MAX, err);
	}
	if (is_frozen)
		(void)system_file_write(dir_fd, "cgroup.freeze", "0"); /* an empty one: as well */
	return rc;
}

/* --- its end ------------------------------------------------------------------------------ */

/*
 * Removes the children of *fd that can be, and moves *fd to the first that can't.  1: moved; 0: no
 * child is left, and *out_any says whether there was one; or -errno.
 */
static int clear_level(int *fd, bool *out_any)
{
	auto_dir DIR *dir = open_dir(*fd);
	if (!dir)
		return -errno;
	*out_any = false;
	for (const char *name; (name = next_child(dir)) != NULL;) {
		*out_any = true;
		if (unlinkat(*fd, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
			continue;
		if (errno != EBUSY)
			return -errno;
		int child_fd = openat(*fd, name, TREE_DIRECTORY);
		if (child_fd < 0 && errno == ENOENT)
			continue;
		if (child_fd < 0)
			return -errno;
		cj_close(fd);
		*fd = child_fd;
		return 1;
	}
	return 0;
}

/*
 * Holds one descriptor, however deep the container has nested its cgroups.  A child that could not
 * be removed and has no child itself contains a process.
 */
static int clear(int top_fd)
{
	auto_fd int fd = openat(top_fd, ".", TREE_DIRECTORY);
	if (fd < 0)
		return -errno;
	bool is_new = false;
	for (unsigned depth = 0, step = 0; step < STEPS_MAX; step++) {
		bool had_any = false;
		int rc = clear_level(&fd, &had_any);
		if (rc < 0)
			return rc;
		if (rc == 0 && is_new && !had_any)
			return -EBUSY;
		if (rc == 0 && depth == 0)
			return 0;
		is_new = rc > 0;
		depth = rc > 0 ? depth + 1 : depth - 1;
		rc = rc > 0 ? 0 : go_up(&fd);
		if (rc < 0)
			return rc;
	}
	return -ELOOP;
}

static int remove_once(int parent_fd, const char *name)
{
	if (unlinkat(parent_fd, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
		return 0;
	if (errno != EBUSY)
		return -errno;
	auto_fd int top_fd = openat(parent_fd, name, TREE_DIRECTORY);
	if (top_fd < 0)
		return errno == ENOENT ? 0 : -errno;
	int rc = clear(top_fd);
	if (rc < 0)
		return rc;
	return unlinkat(parent_fd, name, AT_REMOVEDIR) == 0 || errno == ENOENT ? 0 : -errno;
}

int cgroup_tree_remove(int parent_fd, const char *name, unsigned timeout_ms)
{
	const struct timespec pause = { .tv_nsec = 1000000 };
	for (uint64_t end = clock_ms() + timeout_ms;;) {
		int rc = remove_once(parent_fd, name);
		if (rc != -EBUSY || clock_ms() >= end)
			return rc;
		(void)nanosleep(&pause, NULL); /* early is fine */
	}
}
