/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/kernel/cgroup/cgroup_tree.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <time.h>

#include "runtime/base/clock.h"
#include "runtime/base/files/fd.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"
#include "runtime/kernel/cgroup/cgroup_text.h"

#define PROCS_MAX      (32u << 20) /* 4194304 pids (PID_MAX_LIMIT) of 8 bytes */
#define STEPS_MAX      1000000     /* of a walk or a removal */
#define SIGNAL_BATCH   64
#define POLL_SLICE_MS  50 /* in case a notification is missed; killed processes leave within a few */
#define VACATE_ROUNDS  16  /* each finds processes forked since the last one */
#define VACATE_PIDS    512 /* in one round */
#define TREE_DIRECTORY (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

static bool is_gone(int code)
{
	return code == ENOENT || code == ENODEV;
}

/*
 * It holds one descriptor, however deep a container nests its cgroups.  The names of a level are
 * read at once: a position in a directory is a hash of a name, and the container can choose names
 * of one hash.
 */
struct child {
	struct child *next;
	const char *name;
};

struct level {
	struct level *above;
	struct child *left;    /* still to be entered */
	struct child *entered; /* the one below which the walk is */
};

struct cgroup_walk {
	/* What is done in each cgroup before those below it; NULL: nothing. */
	int (*visit)(struct cgroup_walk *w, struct cj_error *err);
	bool removes;  /* each cgroup below the first, when the walk leaves it */
	bool is_over;  /* set by visit */
	void *context; /* visit's */

	struct arena arena;
	int fd; /* of the lowest level */
	struct level *level;
};

static void walk_fini(struct cgroup_walk *w)
{
	cj_close(&w->fd);
	arena_fini(&w->arena);
}
#define auto_walk __attribute__((cleanup(walk_fini)))

/* A cgroup contains files and cgroups only. */
static int list_children(struct cgroup_walk *w, struct level *level, struct cj_error *err)
{
	auto_fd_dir struct fd_dir *dir = fd_open_dir(w->fd, ".");
	if (!dir)
		return is_gone(errno) ? 0 : cj_fail(err, errno, "list the cgroups in a cgroup");
	for (const struct dirent *e; (e = fd_next_entry(dir)) != NULL;) {
		if (e->d_type != DT_DIR)
			continue;
		struct child *child = arena_alloc(&w->arena, sizeof(*child));
		const char *name = arena_strdup(&w->arena, e->d_name);
		if (!child || !name)
			return cj_fail(err, ENOMEM, "walk through nested cgroups");
		*child = (struct child){ level->left, name };
		level->left = child;
	}
	return 0;
}

/* w->fd is a cgroup that was not visited yet. */
static int begin_level(struct cgroup_walk *w, struct cj_error *err)
{
	struct level *level = arena_alloc(&w->arena, sizeof(*level));
	if (!level)
		return cj_fail(err, ENOMEM, "walk through nested cgroups");
	*level = (struct level){ .above = w->level };
	w->level = level;
	int rc = w->visit ? w->visit(w, err) : 0;
	return rc < 0 ? rc : list_children(w, level, err);
}

static int enter_child(struct cgroup_walk *w, struct cj_error *err)
{
	struct child *child = w->level->left;
	w->level->left = child->next;
	w->level->entered = child;
	if (w->removes && (unlinkat(w->fd, child->name, AT_REMOVEDIR) == 0 || is_gone(errno)))
		return 0;
	if (w->removes && errno != EBUSY)
		return cj_fail(err, errno, "remove the cgroup '%.200s'", child->name);
	int child_fd = openat(w->fd, child->name, TREE_DIRECTORY);
	if (child_fd < 0)
		return is_gone(errno)
			   ? 0
			   : cj_fail(err, errno, "open the nested cgroup '%.200s'", child->name);
	cj_close(&w->fd);
	w->fd = child_fd;
	return begin_level(w, err);
}

static int end_level(struct cgroup_walk *w, struct cj_error *err)
{
	w->level = w->level->above;
	if (!w->level)
		return 0;
	int parent_fd = openat(w->fd, "..", TREE_DIRECTORY);
	if (parent_fd < 0)
		return cj_fail(err, errno, "go up from a nested cgroup");
	cj_close(&w->fd);
	w->fd = parent_fd;
	const char *name = w->level->entered->name;
	if (w->removes && unlinkat(w->fd, name, AT_REMOVEDIR) < 0 && !is_gone(errno))
		return cj_fail(err, errno, "remove the cgroup '%.200s'", name);
	return 0;
}

static int walk_tree(struct cgroup_walk *w, int dir_fd, struct cj_error *err)
{
	w->fd = openat(dir_fd, ".", TREE_DIRECTORY);
	if (w->fd < 0)
		return is_gone(errno) ? 0 : cj_fail(err, errno, "open a cgroup");
	int rc = begin_level(w, err);
	for (unsigned step = 0; rc == 0 && w->level && !w->is_over; step++) {
		if (step == STEPS_MAX)
			return cj_reject_as(err, ELOOP,
					    "the container has more than %d nested cgroups",
					    STEPS_MAX / 2);
		rc = w->level->left ? enter_child(w, err) : end_level(w, err);
	}
	return rc;
}

struct pid_list {
	struct arena *arena;
	size_t max; /* how many are wanted */
	pid_t *items;
	size_t count;
};

/* In a threaded cgroup the processes are those of the domain above: EOPNOTSUPP, cgroups(7). */
static int add_pids(struct cgroup_walk *w, struct cj_error *err)
{
	auto_arena struct arena scratch = { 0 };
	struct pid_list *list = w->context;
	char *text;
	size_t size;
	int rc = fd_read_file(w->fd, "cgroup.procs", PROCS_MAX, &scratch, &text, &size, err);
	if (rc == -EOPNOTSUPP || rc == -ENODEV || rc == -ENOENT)
		return 0;
	if (rc < 0)
		return rc;

	const size_t max = size / 2 + 1; /* a line has two bytes at least */
	pid_t *pids = arena_array(&scratch, max, sizeof(*pids));
	if (!pids)
		return cj_fail(err, ENOMEM, "walk through nested cgroups");
	size_t found = cgroup_text_pids(text, pids, max);
	for (size_t i = 0; i < found && list->count < list->max; i++) {
		if (pids[i] == 0) /* of a process in another pid namespace */
			continue;
		if (!arena_append(list->arena, list->items, list->count, pids[i]))
			return cj_fail(err, ENOMEM, "walk through nested cgroups");
	}
	w->is_over = list->count == list->max;
	return 0;
}

static int list_pids(int dir_fd, struct pid_list *list, struct cj_error *err)
{
	auto_walk struct cgroup_walk w = { .visit = add_pids, .context = list, .fd = -1 };
	return walk_tree(&w, dir_fd, err);
}

int cgroup_tree_pids(int dir_fd, struct arena *a, pid_t **out, size_t *out_count,
		     struct cj_error *err)
{
	struct pid_list list = { .arena = a, .max = SIZE_MAX };
	int rc = list_pids(dir_fd, &list, err);
	*out = list.items;
	*out_count = list.count;
	return rc;
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
	int rc = list_pids(dir_fd, &again, err);
	for (size_t i = 0; i < count; i++) {
		size_t at = 0;
		while (at < again.count && again.items[at] != pids[i])
			at++;
		if (rc == 0 && fds[i] >= 0 && at < again.count &&
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
	int rc = list_pids(dir_fd, &list, err);
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

static int remove_once(int parent_fd, const char *name)
{
	if (unlinkat(parent_fd, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
		return 0;
	if (errno != EBUSY)
		return -errno;
	auto_fd int top_fd = openat(parent_fd, name, TREE_DIRECTORY);
	if (top_fd < 0)
		return errno == ENOENT ? 0 : -errno;
	auto_walk struct cgroup_walk w = { .removes = true, .fd = -1 };
	struct cj_error why = { 0 };
	if (walk_tree(&w, top_fd, &why) < 0)
		return -why.code;
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

bool cgroup_tree_read(int dir_fd, const char *name, char list[static SYSTEM_FILE_SMALL])
{
	return system_file_read(dir_fd, name, list, SYSTEM_FILE_SMALL) >= 0;
}

static bool has_any(const char *words)
{
	for (size_t i = 0; i < CGROUP_CONTROLLER_COUNT; i++)
		if (cgroup_text_has_word(words, cgroup_controller_names[i]))
			return true;
	return false;
}

int cgroup_tree_enable(int dir_fd, bool *out_enabled)
{
	char available[SYSTEM_FILE_SMALL], enabled[SYSTEM_FILE_SMALL] = "";
	bool is_changed = false;
	if (!cgroup_tree_read(dir_fd, "cgroup.controllers", available) || !has_any(available) ||
	    !cgroup_tree_read(dir_fd, "cgroup.subtree_control", enabled))
		available[0] = enabled[0] = '\0';

	for (size_t i = 0; i < CGROUP_CONTROLLER_COUNT; i++) {
		const char *name = cgroup_controller_names[i];
		char word[32];
		if (!cgroup_text_has_word(available, name) || cgroup_text_has_word(enabled, name))
			continue;
		(void)snprintf(word, sizeof(word), "+%s", name);
		if (system_file_write(dir_fd, "cgroup.subtree_control", word) == -EBUSY)
			return -EBUSY;
		is_changed = true;
	}
	if (out_enabled && is_changed &&
	    !cgroup_tree_read(dir_fd, "cgroup.subtree_control", enabled))
		enabled[0] = '\0';
	for (size_t i = 0; out_enabled && i < CGROUP_CONTROLLER_COUNT; i++)
		out_enabled[i] = cgroup_text_has_word(enabled, cgroup_controller_names[i]);
	return 0;
}

size_t cgroup_tree_own_pids(int dir_fd, pid_t *out, size_t max)
{
	char text[SYSTEM_FILE_SMALL];
	auto_fd int fd = openat(dir_fd, "cgroup.procs", O_RDONLY | O_CLOEXEC);
	ssize_t got = fd < 0 ? -1 : sys_read(fd, text, sizeof(text) - 1);
	if (got <= 0)
		return 0;
	text[got] = '\0';
	return cgroup_text_pids(text, out, max);
}

int cgroup_tree_vacate(int dir_fd)
{
	int made = system_file_make_dir(dir_fd, CGROUP_SUPERVISOR_LEAF);
	if (made < 0 && made != -EEXIST)
		return made;

	for (unsigned round = 0; round < VACATE_ROUNDS; round++) {
		pid_t pids[VACATE_PIDS];
		size_t count = cgroup_tree_own_pids(dir_fd, pids, VACATE_PIDS);
		if (count == 0)
			return 0;
		for (size_t i = 0; i < count; i++) {
			char text[16];
			if (pids[i] == 0) /* not in our pid namespace; 0 would name ourselves */
				return -EXDEV;
			(void)snprintf(text, sizeof(text), "%d", (int)pids[i]);
			int rc =
			    system_file_write(dir_fd, CGROUP_SUPERVISOR_LEAF "/cgroup.procs", text);
			if (rc < 0 && rc != -ESRCH) /* ESRCH: it ended meanwhile */
				return rc;
		}
	}
	return -EBUSY;
}
