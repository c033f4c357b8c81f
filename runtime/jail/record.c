/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records of runs: written, listed, swept.
 *
 * A process removes a file only while it has the lock, and creates one only with O_EXCL.  So the
 * process that has the lock of a file with a link owns that name.  A sweep may remove a new file
 * before its creator has locked it; the creator sees that the file has no link, and creates
 * another. So a sweep needs no minimum age.
 */
#include "runtime/jail/record.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "runtime/base/files/fd.h"
#include "runtime/base/json/json_record.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"
#include "runtime/base/text.h"
#include "runtime/jail/private_dir.h"
#include "runtime/kernel/cgroup/cgroup.h"
#include "runtime/kernel/process/process_tree.h"

#define ID_MAX          32
#define SUFFIX          ".json"
#define RECORD_MAX      4096
#define RECORDS_MAX     65536
#define CREATE_ATTEMPTS 100     /* each may meet another sweep */
#define BATCH_IDS       64      /* what the sweep of a run looks at */
#define CURSOR          "swept" /* where it stopped: a position of readdir(3) */

static bool is_id(const char *id, size_t size)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyz"
				      "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
	return size > 0 && size <= ID_MAX && strspn(id, allowed) >= size;
}

struct file_name {
	char text[sizeof("runs/") + ID_MAX + sizeof(SUFFIX)];
};

static bool name_of(const char *id, struct file_name *out)
{
	if (!is_id(id, strlen(id)))
		return false;
	(void)snprintf(out->text, sizeof(out->text), "runs/%s" SUFFIX, id);
	return true;
}

/* The id in "ID.json"; false: another file. */
static bool id_of(const char *file, char out[static ID_MAX + 1])
{
	size_t size = strlen(file), suffix = strlen(SUFFIX);
	if (size <= suffix || strcmp(file + size - suffix, SUFFIX) != 0 ||
	    !is_id(file, size - suffix))
		return false;
	memcpy(out, file, size - suffix);
	out[size - suffix] = '\0';
	return true;
}

/* When a process began; 0: there is none. */
static uint64_t start_of(pid_t pid)
{
	uint64_t ticks;
	return process_tree_start_ticks(pid, &ticks) < 0 ? 0 : ticks;
}

/* A digit and not true or false: record_complete() writes over the old text. */
static JSON_WRITER(is_ready)
{
	const struct record *r = record;
	(void)k;
	json_put_u64(w, r->is_ready);
}

static JSON_WRITER(private_dir)
{
	const struct record *r = record;
	(void)k;
	json_put_string(w, r->private_dir ? r->private_dir : "");
}

#define TEXT         JSON_TAKES_STRING, .set = json_set_string, .write = json_write_string
#define U64          JSON_TAKES_NUMBER, .set = json_set_u64, .write = json_write_u64
#define PID          JSON_TAKES_NUMBER, .set = json_set_int, .write = json_write_int
#define AT(field)    .offset = offsetof(struct record, field)
#define NEEDS(field) .is_required = true, AT(field)
static const struct json_key record_keys[] = {
	{ "id", TEXT, NEEDS(id) },
	{ "profile", TEXT, NEEDS(profile) },
	{ "cgroup", TEXT, NEEDS(cgroup_path) },
	{ "cgroup_inode", U64, NEEDS(cgroup_inode) },
	{ "supervisor_pid", PID, NEEDS(supervisor_pid) },
	{ "supervisor_start", U64, NEEDS(supervisor_start) },
	{ "init_pid", PID, NEEDS(init_pid) },
	{ "started_ms", U64, NEEDS(started_ms) },
	/* a record of an older cejail has neither */
	{ "private_dir", JSON_TAKES_STRING, .set = json_set_string, .write = json_write_private_dir,
	  AT(private_dir) },
	{ "is_ready", JSON_TAKES_NUMBER, .set = json_set_bool, .write = json_write_is_ready,
	  AT(is_ready) },
};
static const struct json_record record_table = {
	record_keys, COUNT_OF(record_keys), "the record",
	.ignores_unknown = true, /* of a newer cejail */
};

static int write_record(int fd, const struct record *r, struct cj_error *err)
{
	auto_json_writer struct json_writer *w = json_writer_create(false);
	struct blob text;

	json_record_write(w, &record_table, r);
	if (json_writer_take(w, &text, err) < 0)
		return -err->code;
	/* A short text that fits into a page: a file system takes all of it, or is full. */
	ssize_t put = TEMP_FAILURE_RETRY(pwrite(fd, text.bytes, text.size, 0));
	return put == (ssize_t)text.size
		   ? 0
		   : cj_fail(err, put < 0 ? errno : ENOSPC, "write 'the record'");
}

static bool is_linked(int fd)
{
	struct stat st;
	return fstat(fd, &st) == 0 && st.st_nlink > 0;
}

/*
 * Creates a file of this name and locks it; -1 with errno.  Waits for the lock: a process that
 * tests it has it for a moment.
 */
static int make_locked(int dir_fd, const char *name)
{
	auto_fd int fd =
	    openat(dir_fd, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -1;
	if (sys_flock(fd, LOCK_EX) < 0)
		return -1; /* not unlinked: without the lock the name may be another run's by now */
	if (!is_linked(fd)) { /* a sweep removed it in between */
		errno = EEXIST;
		return -1;
	}
	return take_fd(&fd);
}

/* Opens and locks an existing file; -1 with errno EWOULDBLOCK: its supervisor is alive. */
static int open_dead(int dir_fd, const char *name)
{
	auto_fd int fd = openat(dir_fd, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0)
		return -1;
	if (!is_linked(fd)) {
		errno = ENOENT;
		return -1;
	}
	return take_fd(&fd);
}

/* A shared lock, so that several readers do not take each other for the owner. */
static bool is_owned(int fd)
{
	if (flock(fd, LOCK_SH | LOCK_NB) < 0)
		return errno == EWOULDBLOCK;
	(void)flock(fd, LOCK_UN); /* closing would do it too */
	return false;
}

/* What it points to lives in `a`. */
static bool read_record(int fd, const char *id, struct arena *a, struct record *out)
{
	struct cj_error ignored; /* a record that can't be read is skipped */
	const struct json_reader in = { .file = "record", .arena = a };
	const struct json_node *root;
	char *text;
	size_t size;
	return lseek(fd, 0, SEEK_SET) == 0 &&
	       fd_read_all(fd, RECORD_MAX, a, &text, &size, "a record", &ignored) == 0 &&
	       json_parse("record", text, size, a, &root, &ignored) == 0 &&
	       json_record_read(&in, root, &record_table, out, &ignored) == 0 &&
	       strcmp(out->id, id) == 0;
}

/* A record may name only its own run's leaf. */
static bool is_own_leaf(const struct record *r)
{
	char tail[sizeof("/cejail-") + ID_MAX];
	(void)snprintf(tail, sizeof(tail), "/cejail-%s", r->id);
	return text_ends_with(r->cgroup_path, tail) && strlen(r->cgroup_path) > strlen(tail);
}

/* 1: removed what a dead run left; 0: there is nothing to remove, or it is not possible now. */
static int sweep_one(int dir_fd, const char *id)
{
	auto_arena struct arena a = { 0 };
	struct record record = { 0 };
	struct file_name name;
	struct cj_error ignored; /* the next sweep finds what stays */
	if (!name_of(id, &name))
		return 0;
	auto_fd int fd = open_dead(dir_fd, name.text);
	if (fd < 0)
		return 0;
	if (read_record(fd, id, &a, &record) && is_own_leaf(&record) &&
	    cgroup_remove_path(record.cgroup_path, record.cgroup_inode, &ignored) < 0 &&
	    ignored.code != EINVAL) /* EINVAL: not a leaf of ours */
		return 0;
	if (record.private_dir && record.private_dir[0] &&
	    private_dir_remove(record.private_dir, id, &ignored) < 0 &&
	    ignored.code != EINVAL) /* EINVAL: not one of ours */
		return 0;
	return unlinkat(dir_fd, name.text, 0) == 0;
}

int record_create(int dir_fd, const struct record *r, struct cj_error *err)
{
	struct file_name name;
	if (!name_of(r->id, &name))
		return cj_reject(err, "'%s' can't name a run", r->id);

	auto_fd int fd = make_locked(dir_fd, name.text);
	for (unsigned i = 1; i < CREATE_ATTEMPTS && fd < 0 && errno == EEXIST; i++) {
		(void)sweep_one(dir_fd, r->id); /* the next attempt fails if it is still there */
		fd = make_locked(dir_fd, name.text);
	}
	if (fd < 0 && errno == EEXIST) {
		cj_refuse_as(err, EEXIST, "the id '%s' is in use by another run", r->id);
		return cj_hint(err, "choose another --id, or end that run: cejail kill %s", r->id);
	}
	if (fd < 0)
		return cj_fail(err, errno, "record run '%s'", r->id);

	if (write_record(fd, r, err) < 0) {
		(void)unlinkat(dir_fd, name.text, 0); /* ours: made above */
		return cj_wrap(err, "record run '%s'", r->id);
	}
	return take_fd(&fd);
}

/* Overwrites the old text, which is never longer: numbers only grow, is_ready is one digit. */
int record_complete(int lock_fd, struct record *r, struct cj_error *err)
{
	const pid_t self = getpid();
	if (r->supervisor_pid != self || r->supervisor_start == 0) {
		r->supervisor_pid = self;
		r->supervisor_start = start_of(self);
	}
	if (write_record(lock_fd, r, err) < 0)
		return cj_wrap(err, "complete the record of run '%s'", r->id);
	return 0;
}

void record_remove(int dir_fd, const char *id, int *lock_fd)
{
	struct file_name name;
	if (*lock_fd >= 0 && is_linked(*lock_fd) && name_of(id, &name))
		(void)unlinkat(dir_fd, name.text, 0); /* on failure a sweep removes it later */
	cj_close(lock_fd);
}

static int open_record(int dir_fd, const char *id)
{
	struct file_name name;
	if (!name_of(id, &name)) {
		errno = ENOENT;
		return -1;
	}
	return openat(dir_fd, name.text, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
}

static bool read_entry(int dir_fd, const char *file, struct arena *a, struct record_entry *out)
{
	char id[ID_MAX + 1];
	if (!id_of(file, id))
		return false;
	auto_fd int fd = open_record(dir_fd, id);
	if (fd < 0 || !read_record(fd, id, a, &out->record))
		return false;
	out->is_alive = is_owned(fd);
	return true;
}

int record_list(int dir_fd, struct arena *a, struct record_entry **out, size_t *out_count,
		struct cj_error *err)
{
	auto_fd_dir struct fd_dir *dir = fd_open_dir(dir_fd, "runs");
	if (!dir)
		return cj_fail(err, errno, "open 'runs' in the runtime directory");

	struct record_entry *items = NULL;
	size_t count = 0;
	for (const struct dirent *e; count < RECORDS_MAX && (e = fd_next_entry(dir)) != NULL;) {
		struct record_entry entry = { 0 };
		if (!read_entry(dir_fd, e->d_name, a, &entry))
			continue;
		if (!arena_append(a, items, count, entry))
			return cj_fail(err, ENOMEM, "list the runs");
	}
	*out = items;
	*out_count = count;
	return 0;
}

static int no_such_run(const char *id, struct cj_error *err)
{
	cj_refuse_as(err, ENOENT, "no run with the id '%s' is going on", id);
	return cj_hint(err, "'cejail ps' lists the ids");
}

int record_cancel(int dir_fd, const char *id, struct cj_error *err)
{
	auto_arena struct arena a = { 0 };
	struct record record = { 0 };
	auto_fd int fd = open_record(dir_fd, id);
	if (fd < 0 || !is_owned(fd))
		return no_such_run(id, err);
	if (!read_record(fd, id, &a, &record) || record.supervisor_pid <= 1 ||
	    record.supervisor_start == 0) {
		int rc = cj_fail(err, EAGAIN, "read the record of run '%s'", id);
		(void)cj_hint(err, "it may be just starting: try again");
		return rc;
	}

	auto_fd int pidfd = sys_pidfd_open(record.supervisor_pid);
	/*
	 * Checked after the descriptor is open.  The lock alone is no proof: a sweep has the lock,
	 * too, and another pid namespace may share the directory.
	 */
	if (pidfd < 0 || !is_owned(fd) ||
	    start_of(record.supervisor_pid) != record.supervisor_start)
		return no_such_run(id, err);
	if (sys_pidfd_send_signal(pidfd, SIGTERM) < 0)
		return cj_fail(err, errno, "signal the supervisor of run '%s'", id);
	return 0;
}

int record_sweep(int dir_fd, struct cj_error *err)
{
	auto_fd_dir struct fd_dir *dir = fd_open_dir(dir_fd, "runs");
	if (!dir)
		return cj_fail(err, errno, "open 'runs' in the runtime directory");

	int swept = 0;
	for (const struct dirent *e; (e = fd_next_entry(dir)) != NULL;) {
		char id[ID_MAX + 1];
		swept += id_of(e->d_name, id) && sweep_one(dir_fd, id);
	}
	return swept;
}

struct batch {
	size_t count;
	char ids[BATCH_IDS][ID_MAX + 1];
};

/* The ids that follow in the directory.  False: there may be more. */
static bool read_last_batch(struct fd_dir *dir, struct batch *out)
{
	for (out->count = 0; out->count < BATCH_IDS;) {
		const struct dirent *e = fd_next_entry(dir);
		if (!e)
			return true;
		out->count += id_of(e->d_name, out->ids[out->count]);
	}
	return false;
}

/*
 * The batch at the cursor, or the first one; *out_next is where the one behind it begins.  Sweeps
 * at the same time may look at the same batch.
 */
static void read_batch(int cursor_fd, struct fd_dir *dir, struct batch *batch, long *out_next)
{
	long cursor = 0;
	fd_seek_dir(dir, 0);
	if (cursor_fd >= 0 &&
	    pread(cursor_fd, &cursor, sizeof(cursor), 0) == (ssize_t)sizeof(cursor) && cursor > 0)
		fd_seek_dir(dir, cursor);
	bool is_last = read_last_batch(dir, batch);
	if (batch->count == 0) {
		fd_seek_dir(dir, 0);
		is_last = read_last_batch(dir, batch);
	}
	*out_next = is_last ? 0 : dir->place;
}

int record_sweep_batch(int dir_fd, const char *own, struct cj_error *err)
{
	auto_fd_dir struct fd_dir *dir = fd_open_dir(dir_fd, "runs");
	if (!dir)
		return cj_fail(err, errno, "open 'runs' in the runtime directory");

	int swept = 0;
	long next = 0;
	auto_fd int cursor_fd = -1;
	struct batch batch;
	if (!read_last_batch(dir, &batch)) {
		cursor_fd = openat(dir_fd, CURSOR,
				   O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
		read_batch(cursor_fd, dir, &batch, &next);
	}
	for (size_t i = 0; i < batch.count; i++)
		swept += strcmp(batch.ids[i], own) != 0 && sweep_one(dir_fd, batch.ids[i]);
	/*
	 * On tmpfs before Linux 6.6 a place is a number, and what is removed moves the entries
	 * behind it forward: then the same place once more.
	 */
	if (cursor_fd >= 0 && swept == 0)
		(void)!pwrite(cursor_fd, &next, sizeof(next), 0);
	return swept;
}
