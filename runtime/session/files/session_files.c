/* SPDX-License-Identifier: Apache-2.0 */
/* Looks at, reads, lists and watches files of a jail in which programs run. */
#include "runtime/session/files/session_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/inotify.h>
#include <sys/stat.h>

#include "runtime/base/files/fd.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"
#include "runtime/base/text.h"
#include "runtime/kernel/process/privileges.h"
#include "runtime/jail/jail_state.h"
#include "runtime/session/files/session_path.h"

const char *const session_file_kind_names[SESSION_FILE_KIND_COUNT] = {
	[SESSION_FILE_REGULAR] = "file",    [SESSION_FILE_DIRECTORY] = "directory",
	[SESSION_FILE_SYMLINK] = "symlink", [SESSION_FILE_FIFO] = "fifo",
	[SESSION_FILE_SOCKET] = "socket",   [SESSION_FILE_OTHER] = "other",
};

const char *const file_error_names[FILE_ERROR_COUNT] = {
	[FILE_NOT_FOUND] = "not_found", [FILE_NOT_REGULAR] = "not_regular",
	[FILE_TOO_LARGE] = "too_large", [FILE_OUTSIDE] = "outside",
	[FILE_NO_SPACE] = "no_space",   [FILE_DENIED] = "denied",
	[FILE_EXISTS] = "exists",       [FILE_FAILED] = "failed",
};

enum file_error session_file_error(int code)
{
	static const struct {
		int code;
		enum file_error error;
	} rows[] = {
		{ ENOENT, FILE_NOT_FOUND },     { ENOTDIR, FILE_NOT_FOUND },
		{ ELOOP, FILE_NOT_FOUND },      { EISDIR, FILE_NOT_REGULAR },
		{ ENOTSUP, FILE_NOT_REGULAR },  { EFBIG, FILE_TOO_LARGE },
		{ EXDEV, FILE_OUTSIDE },        { EINVAL, FILE_OUTSIDE },
		{ ENAMETOOLONG, FILE_OUTSIDE }, { ENOSPC, FILE_NO_SPACE },
		{ EDQUOT, FILE_NO_SPACE },      { EACCES, FILE_DENIED },
		{ EPERM, FILE_DENIED },         { EBUSY, FILE_DENIED },
		{ EROFS, FILE_DENIED },         { EEXIST, FILE_EXISTS },
		{ ENOTEMPTY, FILE_EXISTS },
	};
	for (size_t i = 0; i < COUNT_OF(rows); i++)
		if (rows[i].code == code)
			return rows[i].error;
	return FILE_FAILED;
}

int session_files_become(const struct jail *j, struct cj_error *err)
{
	const struct idmap *ids = &j->ids;
	(void)umask(022);
	if (privileges_become(ids->uid, ids->gid, ids->may_setgroups, err) < 0 ||
	    privileges_keep_only(0, err) < 0)
		return cj_wrap(err, "become the user of the session");
	return 0;
}

static enum session_file_kind kind_of(mode_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFREG:
		return SESSION_FILE_REGULAR;
	case S_IFDIR:
		return SESSION_FILE_DIRECTORY;
	case S_IFLNK:
		return SESSION_FILE_SYMLINK;
	case S_IFIFO:
		return SESSION_FILE_FIFO;
	case S_IFSOCK:
		return SESSION_FILE_SOCKET;
	default:
		return SESSION_FILE_OTHER;
	}
}

/* A path as it is in a struct session_file.  NULL: no memory. */
static const char *shown_path(const char *path, struct arena *a)
{
	size_t size = strlen(path), room = 4 * size + 13; /* each byte becomes at most four */
	auto_free char *shown = malloc(room);
	if (!shown)
		return NULL;
	(void)text_escape(path, size, false, shown, room);
	return arena_strdup(a, shown);
}

/* False: no memory. */
static bool describe(const struct stat *st, const char *path, struct arena *a,
		     struct session_file *out)
{
	*out = (struct session_file){
		.path = shown_path(path, a),
		.kind = kind_of(st->st_mode),
		.bytes = S_ISDIR(st->st_mode) ? 0 : (uint64_t)st->st_size,
		.mode = st->st_mode & 07777,
		.mtime_ms =
		    (int64_t)((uint64_t)st->st_mtim.tv_sec * 1000) + st->st_mtim.tv_nsec / 1000000,
	};
	return out->path != NULL;
}

int session_file_stat(const struct jail *j, const char *path, struct arena *a,
		      struct session_file *out, struct cj_error *err)
{
	struct session_path at;
	struct stat st;
	if (session_path_parse(j, path, a, &at, err) < 0)
		return -err->code;
	auto_fd int fd = session_path_open(&at, O_PATH, err);
	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return session_path_fail(at.path, errno, "look at", err);
	return describe(&st, at.path, a, out) ? 0 : cj_fail(err, ENOMEM, "look at '%s'", at.path);
}

static int refuse_kind(const struct session_path *at, const struct stat *st, struct cj_error *err)
{
	if (S_ISREG(st->st_mode))
		return 0;
	int code = S_ISDIR(st->st_mode) ? EISDIR : ENOTSUP;
	return cj_reject_as(err, code, "'%s' is no regular file: its type is %s", at->path,
			    session_file_kind_names[kind_of(st->st_mode)]);
}

/*
 * Opening a FIFO would let a program go on that waits for a reader: so the type is checked before,
 * and again by descriptor, because the name may stand for another file by then.
 */
static int open_regular(const struct session_path *at, struct stat *st, struct cj_error *err)
{
	auto_fd int seen_fd = session_path_open(at, O_PATH, err);
	if (seen_fd < 0)
		return seen_fd;
	if (fstat(seen_fd, st) < 0)
		return session_path_fail(at->path, errno, "look at", err);
	if (refuse_kind(at, st, err) < 0)
		return -err->code;

	auto_fd int fd = session_path_open(at, O_RDONLY | O_NONBLOCK | O_NOCTTY, err);
	if (fd < 0)
		return fd;
	if (fstat(fd, st) < 0)
		return session_path_fail(at->path, errno, "look at", err);
	return refuse_kind(at, st, err) < 0 ? -err->code : take_fd(&fd);
}

int session_file_open(const struct jail *j, const char *path, uint64_t max_bytes, struct arena *a,
		      struct session_file *out, struct cj_error *err)
{
	struct session_path at;
	struct stat st;
	if (session_path_parse(j, path, a, &at, err) < 0)
		return -err->code;
	auto_fd int fd = open_regular(&at, &st, err);
	if (fd < 0)
		return fd;
	if ((uint64_t)st.st_size > max_bytes) /* before a sparse file is read for nothing */
		return cj_reject_as(err, EFBIG, "'%s' has %llu bytes; %llu may be read", at.path,
				    (unsigned long long)st.st_size, (unsigned long long)max_bytes);
	if (!describe(&st, at.path, a, out))
		return cj_fail(err, ENOMEM, "read '%s'", at.path);
	return take_fd(&fd);
}

struct lister {
	struct arena *arena;
	struct session_file *items;
	size_t count, max_entries, path_bytes;
	unsigned depth;
	bool is_truncated;
};

static int list_directory(struct lister *l, int fd, const char *path, unsigned depth,
			  struct cj_error *err);

/* An entry that is gone meanwhile is no failure.  Returns 1: there is no room for more. */
/* NOLINTNEXTLINE(misc-no-recursion): SESSION_LIST_DEPTH_MAX */
static int list_entry(struct lister *l, int dir_fd, const char *path, const char *name,
		      unsigned depth, struct cj_error *err)
{
	struct stat st;
	if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		l->is_truncated |= errno != ENOENT;
		return 0;
	}
	auto_arena struct arena a = { 0 };
	const char *full = arena_printf(&a, "%s/%s", path, name);
	if (!full)
		return cj_fail(err, ENOMEM, "list '%s'", path);
	l->path_bytes += strlen(full);
	if (l->count >= l->max_entries || l->path_bytes > SESSION_LIST_BYTES_MAX) {
		l->is_truncated = true;
		return 1;
	}
	struct session_file *items = arena_grow(l->arena, l->items, l->count, sizeof(*items));
	if (!items || !describe(&st, full, l->arena, &items[l->count]))
		return cj_fail(err, ENOMEM, "list the directory");
	l->items = items;
	l->count++;
	if (!S_ISDIR(st.st_mode) || depth + 1 >= l->depth)
		return 0;
	int fd = session_path_enter(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NONBLOCK);
	if (fd < 0) {
		l->is_truncated |= fd != -ENOENT;
		return 0;
	}
	return list_directory(l, fd, full, depth + 1, err);
}

/* Takes fd. */
/* NOLINTNEXTLINE(misc-no-recursion): SESSION_LIST_DEPTH_MAX */
static int list_directory(struct lister *l, int fd, const char *path, unsigned depth,
			  struct cj_error *err)
{
	auto_fd_dir struct fd_dir *dir = fd_take_dir(fd);
	if (!dir)
		return cj_fail(err, errno, "list '%s'", path);
	for (const struct dirent *e; (e = fd_next_entry(dir)) != NULL;) {
		int rc = list_entry(l, dir->fd, path, e->d_name, depth, err);
		if (rc != 0)
			return rc;
	}
	l->is_truncated |= errno != 0 && errno != ENOENT; /* ENOENT: it was removed meanwhile */
	return 0;
}

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct session_file *)a)->path,
		      ((const struct session_file *)b)->path);
}

int session_file_list(const struct jail *j, const struct session_list_request *request,
		      struct arena *a, struct session_listing *out, struct cj_error *err)
{
	struct session_path at;
	struct lister l = {
		.arena = a,
		.max_entries = request->max_entries,
		.depth = request->depth < SESSION_LIST_DEPTH_MAX ? request->depth
								 : SESSION_LIST_DEPTH_MAX,
	};
	if (session_path_parse(j, request->path, a, &at, err) < 0)
		return -err->code;
	int fd = session_path_open(&at, O_RDONLY | O_DIRECTORY | O_NONBLOCK, err);
	if (fd < 0)
		return fd;
	if (list_directory(&l, fd, at.path, 0, err) < 0)
		return -err->code;
	if (l.count > 1)
		qsort(l.items, l.count, sizeof(*l.items), by_path);
	*out = (struct session_listing){ l.items, l.count, l.is_truncated };
	return 0;
}

#define WATCH_ROOM 8192 /* of some 30 long names, or of 400 short ones */

const char *const session_change_names[SESSION_CHANGE_COUNT] = {
	[SESSION_CHANGE_CREATE] = "create", [SESSION_CHANGE_WRITE] = "write",
	[SESSION_CHANGE_CHMOD] = "chmod",   [SESSION_CHANGE_REMOVE] = "remove",
	[SESSION_CHANGE_RENAME] = "rename", [SESSION_CHANGE_OVERFLOW] = "overflow",
};

static const struct {
	uint32_t mask;
	enum session_change change;
} changes[] = {
	{ IN_CREATE | IN_MOVED_TO, SESSION_CHANGE_CREATE },
	{ IN_MODIFY, SESSION_CHANGE_WRITE },
	{ IN_ATTRIB, SESSION_CHANGE_CHMOD },
	{ IN_DELETE, SESSION_CHANGE_REMOVE },
	{ IN_MOVED_FROM, SESSION_CHANGE_RENAME },
	{ IN_Q_OVERFLOW, SESSION_CHANGE_OVERFLOW },
};
#define CHANGES   COUNT_OF(changes)
#define WATCH_END (IN_DELETE_SELF | IN_MOVE_SELF | IN_UNMOUNT | IN_IGNORED)

int session_watch_open(const struct jail *j, const char *path, struct arena *a,
		       struct session_watch *out, struct cj_error *err)
{
	struct session_path at;
	char name[32];
	uint32_t mask = IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR;
	if (session_path_parse(j, path, a, &at, err) < 0)
		return -err->code;
	/* For reading: a program needs that right to watch it. */
	auto_fd int dir_fd = session_path_open(&at, O_RDONLY | O_DIRECTORY | O_NONBLOCK, err);
	if (dir_fd < 0)
		return dir_fd;
	auto_fd int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	for (size_t i = 0; i < CHANGES; i++)
		mask |= changes[i].mask & IN_ALL_EVENTS;
	(void)snprintf(name, sizeof(name), "/proc/self/fd/%d", dir_fd);
	if (fd < 0 || inotify_add_watch(fd, name, mask) < 0)
		return session_path_fail(at.path, errno, "watch", err);
	*out = (struct session_watch){ at.path, take_fd(&fd) };
	return 0;
}

static int report(const struct session_watch *w, const struct inotify_event *e,
		  int (*see)(void *, enum session_change, const char *, struct cj_error *),
		  void *context, struct cj_error *err)
{
	auto_arena struct arena a = { 0 };
	const char *path = e->len > 0 ? arena_printf(&a, "%s/%s", w->path, e->name) : w->path;
	const char *shown = path ? shown_path(path, &a) : NULL;
	if (!shown)
		return cj_fail(err, ENOMEM, "watch '%s'", w->path);
	for (size_t i = 0; i < CHANGES; i++)
		if ((e->mask & changes[i].mask) && see(context, changes[i].change, shown, err) < 0)
			return -err->code;
	return 0;
}

int session_watch_read(const struct session_watch *w,
		       int (*see)(void *context, enum session_change change, const char *path,
				  struct cj_error *err),
		       void *context, struct cj_error *err)
{
	_Alignas(struct inotify_event) char room[WATCH_ROOM];
	ssize_t got = sys_read(w->fd, room, sizeof(room));
	if (got < 0 && errno == EAGAIN)
		return 1;
	if (got < 0)
		return cj_fail(err, errno, "watch '%s'", w->path);
	for (ssize_t at = 0; at < got;) {
		const struct inotify_event *e = (const void *)(room + at);
		if (e->mask & WATCH_END)
			return 0;
		if (report(w, e, see, context, err) < 0)
			return -err->code;
		at += (ssize_t)(sizeof(*e) + e->len);
	}
	return 1;
}
