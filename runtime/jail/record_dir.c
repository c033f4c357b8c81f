/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_open_dir: a directory that only this user can write to.  Acts.
 *
 * If a place does not exist the next one is tried.  A place with other modes or another owner than
 * ours is an error: another place would have another set of locks.
 */
#include "runtime/jail/record.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/scope.h"

#define PLACE_MAX 256

struct place {
	char parent[PLACE_MAX]; /* "": not for this caller */
	char name[32];
	bool is_shared; /* the parent is writable by all, and sticky */
	mode_t mode;    /* at most */
};

/* Other users may pass through to the service's socket; the jails' files have their own modes. */
static struct place place_of_root(uid_t uid)
{
	struct place place = { .name = "cejail", .mode = 0755 };
	if (uid == 0)
		(void)snprintf(place.parent, sizeof(place.parent), "/run");
	return place;
}

static struct place place_of_session(uid_t uid)
{
	(void)uid;
	struct place place = { .name = "cejail", .mode = 0700 };
	const char *dir = getenv("XDG_RUNTIME_DIR");
	if (dir && dir[0] == '/' && strlen(dir) < sizeof(place.parent))
		memcpy(place.parent, dir, strlen(dir) + 1);
	return place;
}

/* The path of pam_systemd(8), for callers with an emptied environment. */
static struct place place_of_user(uid_t uid)
{
	struct place place = { .name = "cejail", .mode = 0700 };
	(void)snprintf(place.parent, sizeof(place.parent), "/run/user/%u", uid);
	return place;
}

static struct place place_in_memory(uid_t uid)
{
	struct place place = { .parent = "/dev/shm", .is_shared = true, .mode = 0700 };
	(void)snprintf(place.name, sizeof(place.name), "cejail-%u", uid);
	return place;
}

static struct place (*const places[])(uid_t uid) = {
	place_of_root,
	place_of_session,
	place_of_user,
	place_in_memory,
};

/* In a sticky directory no other user can replace our directory; any other must be ours alone. */
static bool is_safe_parent(const struct stat *st, bool is_shared)
{
	if (is_shared)
		return (st->st_mode & S_ISVTX) != 0;
	return st->st_uid == geteuid() && (st->st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

/* Then the next place is tried: this one doesn't exist, or we can't create anything in it. */
#define PLACE_IS_CLOSED (-ENOENT)

static int open_parent(const struct place *place, struct cj_error *err)
{
	auto_fd int fd = open(place->parent, O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct stat st;
	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR || errno == EACCES))
		return PLACE_IS_CLOSED;
	if (fd < 0 || fstat(fd, &st) < 0)
		return cj_fail(err, errno, "open '%s'", place->parent);
	return is_safe_parent(&st, place->is_shared) ? take_fd(&fd) : PLACE_IS_CLOSED;
}

static int check_private(int fd, const char *path, mode_t mode, struct cj_error *err)
{
	struct stat st;
	if (fstat(fd, &st) < 0)
		return cj_fail(err, errno, "look at '%s'", path);
	if (st.st_uid == geteuid() && (st.st_mode & S_IRWXU) == S_IRWXU &&
	    (st.st_mode & 07777 & ~mode) == 0)
		return 0;
	int rc = cj_fail(err, EPERM, "trust '%s': it belongs to uid %u and has mode %04o", path,
			 st.st_uid, st.st_mode & 07777u);
	(void)cj_hint(err, "remove it, or make it yours with mode %04o", mode);
	return rc;
}

/* dir_fd/name, made if missing.  `path` is for messages. */
static int open_private(int dir_fd, const char *name, const char *path, mode_t mode,
			struct cj_error *err)
{
	auto_fd int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT) {
		if (mkdirat(dir_fd, name, mode) < 0 && errno != EEXIST) {
			bool is_closed = errno == EACCES || errno == EROFS;
			return is_closed ? PLACE_IS_CLOSED : cj_fail(err, errno, "make '%s'", path);
		}
		fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	}
	if (fd < 0) {
		int rc = cj_fail(err, errno, "open directory '%s'", path);
		if (rc == -ENOTDIR || rc == -ELOOP)
			(void)cj_hint(err, "remove it: cejail makes it anew");
		return rc;
	}
	int rc = check_private(fd, path, mode, err);
	return rc < 0 ? rc : take_fd(&fd);
}

static int open_place(const struct place *place, struct cj_error *err)
{
	char path[PLACE_MAX + 64];
	auto_fd int parent_fd = open_parent(place, err);
	if (parent_fd < 0)
		return parent_fd;

	(void)snprintf(path, sizeof(path), "%s/%s", place->parent, place->name);
	auto_fd int dir_fd = open_private(parent_fd, place->name, path, place->mode, err);
	if (dir_fd < 0)
		return dir_fd;

	(void)snprintf(path, sizeof(path), "%s/%s/runs", place->parent, place->name);
	auto_fd int runs_fd = open_private(dir_fd, "runs", path, 0700, err);
	/* Only if the directory was removed meanwhile: another place would have other locks. */
	if (runs_fd == PLACE_IS_CLOSED)
		return cj_fail(err, EACCES, "make '%s'", path);
	return runs_fd < 0 ? runs_fd : take_fd(&dir_fd);
}

/* As open_private(), but creates nothing. */
static int look_into(const struct place *place, const char *path, struct cj_error *err)
{
	auto_fd int parent_fd = open_parent(place, err);
	if (parent_fd < 0)
		return parent_fd;

	auto_fd int fd =
	    openat(parent_fd, place->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? PLACE_IS_CLOSED
				       : cj_fail(err, errno, "open directory '%s'", path);
	int rc = check_private(fd, path, place->mode, err);
	return rc < 0 ? rc : take_fd(&fd);
}

int record_find(const char *file, struct arena *a, char **out_path,
		char out_dirs[static RECORD_DIRS_MAX], struct cj_error *err)
{
	size_t used = 0;

	*out_path = NULL;
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		struct place place = places[i](geteuid());
		char path[PLACE_MAX + 64];
		if (place.parent[0] == '\0')
			continue;
		(void)snprintf(path, sizeof(path), "%s/%s", place.parent, place.name);
		used += (size_t)snprintf(out_dirs + used, RECORD_DIRS_MAX - used, "%s%s",
					 used ? ", " : "", path);
		auto_fd int fd = look_into(&place, path, err);
		if (fd < 0 && fd != PLACE_IS_CLOSED)
			return fd;
		if (fd < 0 || faccessat(fd, file, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		*out_path = arena_printf(a, "%s/%s", path, file);
		return *out_path ? 0 : cj_fail(err, ENOMEM, "find '%s'", file);
	}
	return 0;
}

int record_open_dir(struct cj_error *err)
{
	uid_t uid = geteuid();
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		struct place place = places[i](uid);
		if (place.parent[0] == '\0')
			continue;
		int fd = open_place(&place, err);
		if (fd != PLACE_IS_CLOSED)
			return fd;
	}
	int rc = cj_reject(err, "there is no place for a runtime directory of uid %u", uid);
	(void)cj_hint(err, "set XDG_RUNTIME_DIR to a directory of yours with mode 0700");
	return rc;
}
