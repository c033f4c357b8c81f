/* SPDX-License-Identifier: Apache-2.0 */
/*
 * State directories: made, found, locked, removed.
 *
 * A directory is removed only by the process that has its lock.  A process that gets the lock of a
 * removed directory sees that the name leads to none, or to another one.
 */
#include "runtime/container/state/state.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

#include "runtime/base/clock.h"
#include "runtime/base/files/fd.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"
#include "runtime/kernel/process/process_start.h"

#define LOCK_WAIT_MS 10000
#define LOCK_STEP_NS 2000000
#define FILE_MAX     (8u << 20)
#define LIST_MAX     65536 /* containers */
#define DIR_MODE     0700

void state_close(struct state *s)
{
	cj_close(&s->dir_fd); /* releases the lock */
	cj_close(&s->root_fd);
}

static struct state take_state(struct state *s)
{
	struct state taken = *s;
	*s = (struct state)STATE_NULL;
	return taken;
}

int state_check_id(const char *id, struct cj_error *err)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyz"
				      "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_+.-";
	size_t size = strlen(id);

	if (size > 0 && size <= STATE_ID_MAX && id[0] != '.' && strspn(id, allowed) == size)
		return 0;
	cj_refuse(err, "invalid container id '%.64s'", id);
	return cj_hint(err,
		       "an id consists of letters, digits and _+.- and does not begin with a dot");
}

/* --- the lock ----------------------------------------------------------------------------- */

static int wait_for_lock(int fd)
{
	const struct timespec step = { .tv_nsec = LOCK_STEP_NS };
	uint64_t deadline = clock_ms() + LOCK_WAIT_MS;

	while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return -errno;
		if (clock_ms() >= deadline)
			return -EBUSY;
		(void)nanosleep(&step, NULL);
	}
	return 0;
}

void state_unlock(const struct state *s)
{
	(void)flock(s->dir_fd, LOCK_UN); /* cannot fail for a lock of ours */
}

static int reject_missing(const char *id, struct cj_error *err)
{
	return cj_reject_as(err, ENOENT, "container '%s' does not exist", id);
}

int state_await_file(const struct state *s, const char *name, struct cj_error *err)
{
	auto_fd int fd = openat(s->dir_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return errno == ENOENT
			   ? 0
			   : cj_fail(err, errno, "open '%s' of the state of '%s'", name, s->id);
	int rc = wait_for_lock(fd);
	return rc < 0 ? cj_fail(err, -rc, "wait for '%s' of the state of '%s'", name, s->id) : 0;
}

/* Locked, and still the directory of this name. */
static int lock_dir(const struct state *s, struct cj_error *err)
{
	struct stat ours, named;
	int rc = wait_for_lock(s->dir_fd);

	if (rc == -EBUSY) {
		rc = cj_reject_as(err, EBUSY, "container '%s' is busy", s->id);
		cj_hint(err, "another cejail-oci works on it");
		return rc;
	}
	if (rc < 0)
		return cj_fail(err, -rc, "lock the state of '%s'", s->id);
	if (fstat(s->dir_fd, &ours) < 0)
		return cj_fail(err, errno, "look at the state of '%s'", s->id);
	if (fstatat(s->root_fd, s->id, &named, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? reject_missing(s->id, err)
				       : cj_fail(err, errno, "look at the state of '%s'", s->id);
	if (ours.st_ino != named.st_ino || ours.st_dev != named.st_dev)
		return reject_missing(s->id, err);
	return 0;
}

int state_lock_alone(struct state *s, struct cj_error *err)
{
	int alone_fd = openat(s->dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (alone_fd < 0)
		return cj_fail(err, errno, "open the state of '%s' again", s->id);
	cj_close(&s->dir_fd);
	s->dir_fd = alone_fd;
	int rc = lock_dir(s, err);
	if (rc == -ENOENT || rc == -EBUSY)
		cj_close(&s->dir_fd); /* another command removes the container */
	return rc;
}

/* --- opening ------------------------------------------------------------------------------ */

static int open_dir(const struct oci_options *o, struct state *s, struct cj_error *err)
{
	if (state_check_id(o->id, err) < 0)
		return -err->code;
	s->id = o->id;
	s->root_fd = state_files_root(o->root, false, err);
	if (s->root_fd == -ENOENT)
		return reject_missing(o->id, err);
	if (s->root_fd < 0)
		return s->root_fd;
	s->dir_fd = openat(s->root_fd, o->id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (s->dir_fd < 0)
		return errno == ENOENT ? reject_missing(o->id, err)
				       : cj_fail(err, errno, "open the state of '%s'", o->id);
	return 0;
}

int state_open(const struct oci_options *o, bool is_locked, struct arena *a, struct state *out,
	       struct cj_error *err)
{
	auto_state struct state s = STATE_NULL;

	if (open_dir(o, &s, err) < 0 || (is_locked && lock_dir(&s, err) < 0))
		return -err->code;
	if (state_files_read(s.dir_fd, a, &s.record, err) < 0) {
		(void)!cj_wrap(err, "container '%s'", o->id);
		return cj_hint(err, "its state is lost; remove the rest with 'delete --force'");
	}
	*out = take_state(&s);
	return 0;
}

int state_open_any(const struct oci_options *o, struct arena *a, struct state *out,
		   struct cj_error *err)
{
	struct cj_error lost = { 0 };
	auto_state struct state s = STATE_NULL;

	if (open_dir(o, &s, err) < 0 || lock_dir(&s, err) < 0)
		return -err->code;
	s.is_lost = state_files_read(s.dir_fd, a, &s.record, &lost) < 0;
	*out = take_state(&s);
	return 0;
}

int state_create(const struct oci_options *o, struct state *out, struct cj_error *err)
{
	auto_state struct state s = STATE_NULL;

	if (state_check_id(o->id, err) < 0)
		return -err->code;
	s.id = o->id;
	s.root_fd = state_files_root(o->root, true, err);
	if (s.root_fd < 0)
		return s.root_fd;
	if (mkdirat(s.root_fd, o->id, DIR_MODE) < 0)
		return errno == EEXIST
			   ? cj_reject_as(err, EEXIST, "container with id '%s' exists already",
					  o->id)
			   : cj_fail(err, errno, "create the state of '%s'", o->id);
	s.dir_fd = openat(s.root_fd, o->id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (s.dir_fd < 0) {
		int rc = cj_fail(err, errno, "open the state of '%s'", o->id);
		(void)unlinkat(s.root_fd, o->id, AT_REMOVEDIR); /* empty: nothing is lost */
		return rc;
	}
	/* A delete --force may remove it before this lock: then it does not exist. */
	if (lock_dir(&s, err) < 0)
		return -err->code;
	*out = take_state(&s);
	return 0;
}

/* --- writing, removing --------------------------------------------------------------------- */

int state_write(const struct state *s, struct cj_error *err)
{
	return state_files_write(s->dir_fd, &s->record, err);
}

int state_put_file(const struct state *s, const char *name, const char *text, size_t size,
		   struct cj_error *err)
{
	return state_files_put(s->dir_fd, name, text, size, err);
}

int state_get_file(const struct state *s, const char *name, struct arena *a, char **out_text,
		   size_t *out_size, struct cj_error *err)
{
	return fd_read_file(s->dir_fd, name, FILE_MAX, a, out_text, out_size, err);
}

int state_remove(struct state *s, struct cj_error *err)
{
	if (s->dir_fd < 0)
		return 0;

	auto_dir DIR *dir = fd_open_dir(s->dir_fd, ".");
	if (!dir)
		return cj_fail(err, errno, "read the state of '%s'", s->id);
	for (struct dirent *e; (e = readdir(dir));)
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 &&
		    unlinkat(s->dir_fd, e->d_name, 0) < 0 && errno != ENOENT)
			return cj_fail(err, errno, "remove '%s' of the state of '%s'", e->d_name,
				       s->id);
	if (unlinkat(s->root_fd, s->id, AT_REMOVEDIR) < 0 && errno != ENOENT)
		return cj_fail(err, errno, "remove the state of '%s'", s->id);
	cj_close(&s->dir_fd);
	return 0;
}

/* --- the first process --------------------------------------------------------------------- */

int state_reject_stopped(const struct state *s, struct cj_error *err)
{
	return cj_reject_as(err, ESRCH, "container '%s': container not running", s->id);
}

int state_open_init(const struct state *s, struct cj_error *err)
{
	uint64_t start = 0;

	if (s->record.pid <= 0)
		return state_reject_stopped(s, err);
	auto_fd int pidfd = sys_pidfd_open(s->record.pid);
	if (pidfd < 0)
		return errno == ESRCH || errno == EINVAL /* a thread's id now */
			   ? state_reject_stopped(s, err)
			   : cj_fail(err, errno, "open process %d", (int)s->record.pid);
	/* Read after the pidfd: a process that began at this time is the one behind it. */
	int rc = process_start_ticks(s->record.pid, &start);
	if (rc == -ENOENT || rc == -ESRCH || (rc == 0 && start != s->record.pid_start))
		return state_reject_stopped(s, err);
	if (rc < 0)
		return cj_fail(err, -rc, "read when process %d began", (int)s->record.pid);
	/* A zombie is a dead container, unless other threads of its first process live. */
	if (fd_await(pidfd, POLLIN, 0))
		return state_reject_stopped(s, err);
	return take_fd(&pidfd);
}

/* --- all of them --------------------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int add_entry(const struct dirent *e, struct arena *a, struct strings *out,
		     struct cj_error *err)
{
	struct cj_error not_ours = { 0 };

	if (state_check_id(e->d_name, &not_ours) < 0)
		return 0;
	if (out->count == LIST_MAX)
		return cj_reject(err, "more than %d containers", LIST_MAX);
	const char *name = arena_strdup(a, e->d_name);
	if (!name || strings_add(out, a, name) < 0)
		return cj_fail(err, ENOMEM, "list the containers");
	return 0;
}

int state_list(const struct oci_options *o, struct arena *a, struct strings *out,
	       struct cj_error *err)
{
	int fd = state_files_root(o->root, false, err);
	if (fd == -ENOENT) {
		*err = (struct cj_error){ 0 };
		return 0;
	}
	if (fd < 0)
		return fd;
	auto_dir DIR *dir = fd_take_dir(fd);
	if (!dir)
		return cj_fail(err, errno, "list the containers");
	for (struct dirent *e; (e = readdir(dir));)
		if (add_entry(e, a, out, err) < 0)
			return -err->code;
	if (out->count > 1)
		qsort(out->items, out->count, sizeof(out->items[0]), compare);
	return 0;
}
