/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The runtime directory: a directory that only this user can write to.
 *
 * If a place does not exist the next one is tried.  A directory that is not trusted has another
 * owner than us, or a mode with which other users could write.  Only in /dev/shm, the last place,
 * can another user plant one.  record_open_dir() fails there: another place would have another set
 * of locks.  The search for a socket skips it, because a service listens only in a trusted one.
 */
#include "runtime/jail/record.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "runtime/base/scope.h"
#include "runtime/base/sys.h"
#include "runtime/base/text.h"
#include "runtime/kernel/ids/idmap.h"

#define PLACE_MAX     256
#define PATH_ROOM     (PLACE_MAX + 64)
#define SYSTEM_DIR    "/run/cejail"
#define SYSTEM_SOCKET SYSTEM_DIR "/" RECORD_SOCKET

struct record_place {
	char parent[PLACE_MAX]; /* "": not for this caller */
	char name[32];
	bool is_shared; /* the parent is writable by all, and sticky */
	mode_t mode;    /* at most */
	uid_t uid;      /* whose it must be: ours */
};

/* The places in the order in which they are tried. */
enum { PLACE_OF_ROOT, PLACE_OF_SESSION, PLACE_OF_USER, PLACE_IN_MEMORY, PLACES };

/*
 * Whose directories these are.  In a user namespace that an ordinary user has made, its root is
 * that user: it must not take the name of the host's root in /dev/shm.
 */
static uid_t user_of_places(uid_t uid)
{
	return uid == 0 ? idmap_outside_uid() : uid;
}

static struct record_place place_at(size_t which, uid_t uid)
{
	struct record_place place = { .name = "cejail", .mode = 0700, .uid = uid };
	const char *dir = getenv("XDG_RUNTIME_DIR");
	if (which == PLACE_OF_ROOT) {
		/* Other users may pass through to the service's socket; the jails' files have their
		 * own modes. */
		place.mode = 0755;
		(void)snprintf(place.parent, PLACE_MAX, "%s", uid == 0 ? "/run" : "");
	} else if (which == PLACE_OF_SESSION) {
		if (dir && dir[0] == '/' && strlen(dir) < PLACE_MAX)
			memcpy(place.parent, dir, strlen(dir) + 1);
	} else if (which == PLACE_OF_USER) {
		/* The path of pam_systemd(8), for callers with an emptied environment. */
		(void)snprintf(place.parent, PLACE_MAX, "/run/user/%u", user_of_places(uid));
	} else {
		(void)snprintf(place.parent, PLACE_MAX, "/dev/shm");
		(void)snprintf(place.name, sizeof(place.name), "cejail-%u", user_of_places(uid));
		place.is_shared = true;
	}
	return place;
}

/* Then the next place is tried: this one doesn't exist, or we can't create anything in it. */
#define PLACE_IS_CLOSED (-ENOENT)
/* There is something else than a directory of ours. */
#define PLACE_IS_UNTRUSTED (-EPERM)

static bool is_closed_by(int code)
{
	return code == ENOENT || code == ENOTDIR || code == EACCES;
}

/* `others`: the bits of the mode that it may not have. */
static int open_parent(const struct record_place *place, mode_t others, struct cj_error *err)
{
	auto_fd int fd = open(place->parent, O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct stat st;
	if (fd < 0 && is_closed_by(errno))
		return PLACE_IS_CLOSED;
	if (fd < 0 || fstat(fd, &st) < 0)
		return cj_fail(err, errno, "open '%s'", place->parent);
	/* In a sticky directory no other user can replace ours; any other must be ours alone. */
	bool is_safe = place->is_shared ? (st.st_mode & S_ISVTX) != 0
					: st.st_uid == place->uid && (st.st_mode & others) == 0;
	return is_safe ? take_fd(&fd) : PLACE_IS_CLOSED;
}

/* Who may not remove it from a sticky directory needs another place. */
static int distrust(const char *path, const struct stat *st, const struct record_place *place,
		    mode_t mode, struct cj_error *err)
{
	const char *kind = S_ISDIR(st->st_mode) ? "" : "is no directory, ";
	cj_refuse_as(err, EPERM, "trust '%s': it %sbelongs to uid %u and has mode %04o", path, kind,
		     st->st_uid, st->st_mode & 07777u);
	if (st->st_uid != place->uid && place->uid != 0)
		(void)cj_hint(err, "set XDG_RUNTIME_DIR to a directory of yours with mode 0700, or "
				   "ask root to remove it");
	else
		(void)cj_hint(err, "remove it, or make it a directory of yours with mode %04o",
			      mode);
	return PLACE_IS_UNTRUSTED;
}

static bool is_private(const struct stat *st, const struct record_place *place, mode_t mode)
{
	return S_ISDIR(st->st_mode) && st->st_uid == place->uid &&
	       (st->st_mode & S_IRWXU) == S_IRWXU && (st->st_mode & 07777 & ~mode) == 0;
}

/* dir_fd/name of a place, only if it is ours and private.  `path` is for messages. */
static int open_private(int dir_fd, const char *name, const char *path,
			const struct record_place *place, mode_t mode, struct cj_error *err)
{
	struct stat st;
	auto_fd int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int code = fd < 0 ? errno : 0;
	if (code == ENOENT)
		return PLACE_IS_CLOSED;
	/* A link, a file, or a directory of another user: what it is says more than the errno. */
	if ((fd < 0 ? fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) : fstat(fd, &st)) < 0)
		return cj_fail(err, code ? code : errno, "open directory '%s'", path);
	if (!is_private(&st, place, mode))
		return distrust(path, &st, place, mode, err);
	return fd < 0 ? cj_fail(err, code, "open directory '%s'", path) : take_fd(&fd);
}

static int make_private(int dir_fd, const char *name, const char *path,
			const struct record_place *place, mode_t mode, struct cj_error *err)
{
	int fd = open_private(dir_fd, name, path, place, mode, err);
	if (fd != PLACE_IS_CLOSED)
		return fd;
	if (mkdirat(dir_fd, name, mode) < 0 && errno != EEXIST) {
		bool is_closed = errno == EACCES || errno == EROFS;
		return is_closed ? PLACE_IS_CLOSED : cj_fail(err, errno, "make '%s'", path);
	}
	return open_private(dir_fd, name, path, place, mode, err);
}

static int make_place(const struct record_place *place, struct cj_error *err)
{
	char path[PATH_ROOM];
	struct stat st;
	auto_fd int parent_fd = open_parent(place, S_IWGRP | S_IWOTH, err);
	if (parent_fd < 0)
		return parent_fd;

	(void)snprintf(path, sizeof(path), "%s/%s", place->parent, place->name);
	auto_fd int dir_fd = make_private(parent_fd, place->name, path, place, place->mode, err);
	if (dir_fd < 0)
		return dir_fd;

	/* By its name: nobody else can put another one there. */
	if (fstatat(dir_fd, "runs", &st, AT_SYMLINK_NOFOLLOW) == 0 && is_private(&st, place, 0700))
		return take_fd(&dir_fd);
	(void)snprintf(path, sizeof(path), "%s/%s/runs", place->parent, place->name);
	auto_fd int runs_fd = make_private(dir_fd, "runs", path, place, 0700, err);
	/* Only if the directory was removed meanwhile: another place would have other locks. */
	if (runs_fd == PLACE_IS_CLOSED)
		return cj_fail(err, EACCES, "make '%s'", path);
	return runs_fd < 0 ? runs_fd : take_fd(&dir_fd);
}

int record_open_dir(struct cj_error *err)
{
	const uid_t uid = geteuid();
	for (size_t i = 0; i < PLACES; i++) {
		struct record_place place = place_at(i, uid);
		if (place.parent[0] == '\0')
			continue;
		int fd = make_place(&place, err);
		if (fd != PLACE_IS_CLOSED)
			return fd;
	}
	cj_refuse(err, "there is no place for a runtime directory of uid %u", user_of_places(uid));
	return cj_hint(err, "set XDG_RUNTIME_DIR to a directory of yours with mode 0700");
}

/* A symbolic link on the way could be replaced in the directory that has it. */
static int guard_links(const struct record_place *place, const char *path, struct arena *a,
		       struct guard *out, struct cj_error *err)
{
	auto_fd int direct_fd =
	    sys_openat2(AT_FDCWD, place->parent, O_PATH, 0, RESOLVE_NO_SYMLINKS);
	if (direct_fd >= 0)
		return 0;
	if (errno != ELOOP)
		return cj_fail(err, errno, "open '%s'", place->parent);
	for (size_t size = 1; place->parent[size] != '\0'; size++) {
		char above[PLACE_MAX];
		if (place->parent[size] != '/')
			continue;
		(void)snprintf(above, sizeof(above), "%.*s", (int)size, place->parent);
		auto_fd int fd = open(above, O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (fd < 0)
			return cj_fail(err, errno, "open '%s'", above);
		if (guard_add(out, fd, 0, path, a, err) < 0)
			return -err->code;
	}
	return 0;
}

/* Where the directory does not exist yet a program could make it: then its parent is guarded. */
static int guard_place(const struct record_place *place, int parent_fd, struct arena *a,
		       struct guard *out, struct cj_error *err)
{
	const char *const own[] = { place->name, "runs" };
	const char *path = arena_printf(a, "%s/%s", place->parent, place->name);
	auto_fd int fd = parent_fd;
	size_t count = 0;
	if (!path)
		return cj_fail(err, ENOMEM, "guard the runtime directory");
	for (; count < COUNT_OF(own); count++) {
		int next_fd = openat(fd, own[count], O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (next_fd < 0 && is_closed_by(errno))
			break;
		if (next_fd < 0)
			return cj_fail(err, errno, "open '%s' of '%s'", own[count], place->parent);
		cj_close(&fd);
		fd = next_fd;
	}
	if (guard_add(out, fd, count, path, a, err) < 0)
		return -err->code;
	return guard_links(place, path, a, out, err);
}

int record_guard(struct arena *a, struct guard *out, struct cj_error *err)
{
	const uid_t uid = geteuid();
	for (size_t i = 0; i < PLACES; i++) {
		struct record_place place = place_at(i, uid);
		/* Of other places whatever the mode: a program of the owner could change that. */
		const mode_t others = i == PLACE_OF_ROOT ? S_IWGRP | S_IWOTH : 0;
		int parent_fd = place.parent[0] == '\0' ? PLACE_IS_CLOSED
							: open_parent(&place, others, err);
		if (parent_fd == PLACE_IS_CLOSED)
			continue;
		if (parent_fd < 0 || guard_place(&place, parent_fd, a, out, err) < 0)
			return -err->code;
		if (i == PLACE_OF_ROOT) /* which never looks further */
			break;
	}
	return 0;
}

static void add_searched(struct record_sockets *s, const char *path, const char *why)
{
	text_append(s->searched, sizeof(s->searched), "%s%s%s%s%s", s->searched[0] ? ", " : "",
		    path, why ? " (skipped: cannot " : "", why ? why : "", why ? ")" : "");
}

/* *out_ends: the directory is there, and this user's services listen in no later place. */
static int search_place(const struct record_place *place, struct arena *a,
			struct record_sockets *out, bool *out_ends, struct cj_error *err)
{
	char path[PATH_ROOM];
	(void)snprintf(path, sizeof(path), "%s/%s", place->parent, place->name);
	auto_fd int parent_fd = open_parent(place, S_IWGRP | S_IWOTH, err);
	auto_fd int fd = parent_fd < 0
			     ? parent_fd
			     : open_private(parent_fd, place->name, path, place, place->mode, err);
	if (fd < 0 && fd != PLACE_IS_CLOSED && fd != PLACE_IS_UNTRUSTED)
		return fd;
	add_searched(out, path, fd == PLACE_IS_UNTRUSTED ? err->msg : NULL);
	*out_ends = strcmp(path, SYSTEM_DIR) == 0 && fd != PLACE_IS_CLOSED;
	if (fd < 0 || faccessat(fd, RECORD_SOCKET, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	out->of_user = arena_printf(a, "%s/" RECORD_SOCKET, path);
	return out->of_user ? 0 : cj_fail(err, ENOMEM, "find the socket of a service");
}

int record_find_sockets(struct arena *a, struct record_sockets *out, struct cj_error *err)
{
	const uid_t uid = geteuid();
	bool ends = false;

	*out = (struct record_sockets){ .of_user = NULL };
	for (size_t i = 0; i < PLACES && !ends && !out->of_user; i++) {
		struct record_place place = place_at(i, uid);
		struct cj_error problem = { 0 };
		if (place.parent[0] != '\0' && search_place(&place, a, out, &ends, &problem) < 0) {
			*err = problem;
			return -err->code;
		}
	}
	if (uid != 0)
		add_searched(out, SYSTEM_DIR, NULL);
	/* root's own place is this directory, which it has looked at and may not trust */
	if (!ends && access(SYSTEM_SOCKET, F_OK) == 0)
		out->of_system = SYSTEM_SOCKET;
	return 0;
}
