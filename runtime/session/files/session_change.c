/* SPDX-License-Identifier: Apache-2.0 */
/* Writes and moves files of a jail in which programs run. */
#include "runtime/session/files/session_change.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/scope.h"
#include "runtime/session/files/session_path.h"

#define NEW_DIRECTORY 0755

static int fail(const char *path, int code, const char *doing, struct cj_error *err)
{
	return session_path_fail(&(struct session_path){ .path = path }, code, doing, err);
}

/* --- a file ------------------------------------------------------------------------------ */

/* A rename would replace a file that its owner has made read-only; open(2) would not write it. */
static int check_replaced(int dir_fd, const char *name)
{
	struct stat st;
	if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
	if (session_path_is_mount(dir_fd, name))
		return -EBUSY;
	if (S_ISREG(st.st_mode) && faccessat(dir_fd, name, W_OK, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	return 0;
}

int session_file_create(const struct jail *j, const char *path, struct arena *a,
			struct session_put *out, struct cj_error *err)
{
	struct session_path at;
	struct session_put put = SESSION_PUT_NULL;
	if (session_path_parse(j, path, a, &at, err) < 0)
		return -err->code;
	put.path = at.path;
	auto_fd int dir_fd = session_path_open_parent(&at, NEW_DIRECTORY, a, &put.name, err);
	if (dir_fd < 0)
		return dir_fd;
	int rc = check_replaced(dir_fd, put.name);
	if (rc < 0)
		return session_path_fail(&at, -rc, "write", err);
	/* Our pid makes the name ours among all that write files from outside. */
	(void)snprintf(put.fresh, sizeof(put.fresh), ".cejail-put-%d", getpid());
	const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
	put.fd = openat(dir_fd, put.fresh, flags, 0600);
	if (put.fd < 0)
		return session_path_fail(&at, errno, "write", err);
	put.dir_fd = take_fd(&dir_fd);
	*out = put;
	return 0;
}

int session_file_publish(struct session_put *put, bool is_executable, struct cj_error *err)
{
	if (fchmod(put->fd, is_executable ? 0755 : 0644) < 0)
		return fail(put->path, errno, "set the mode of", err);
	int rc = check_replaced(put->dir_fd, put->name);
	if (rc < 0)
		return fail(put->path, -rc, "write", err);
	if (renameat(put->dir_fd, put->fresh, put->dir_fd, put->name) < 0)
		return fail(put->path, errno, "write", err);
	put->fresh[0] = '\0';
	return 0;
}

void session_put_fini(struct session_put *put)
{
	if (put->dir_fd >= 0 && put->fresh[0])
		(void)unlinkat(put->dir_fd, put->fresh, 0); /* a program may have moved it */
	cj_close(&put->fd);
	cj_close(&put->dir_fd);
}

/* --- directories and names ----------------------------------------------------------------- */

static bool is_directory(int dir_fd, const char *name)
{
	struct stat st;
	return fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

int session_file_mkdir(const struct jail *j, const char *path, bool *out_is_new,
		       struct cj_error *err)
{
	auto_arena struct arena a = { 0 };
	struct session_path at;
	const char *name;
	*out_is_new = false;
	if (session_path_parse(j, path, &a, &at, err) < 0)
		return -err->code;
	if (at.is_top)
		return 0;
	auto_fd int dir_fd = session_path_open_parent(&at, NEW_DIRECTORY, &a, &name, err);
	if (dir_fd < 0)
		return dir_fd;
	*out_is_new = mkdirat(dir_fd, name, NEW_DIRECTORY) == 0;
	int code = errno;
	if (*out_is_new || (code == EEXIST && is_directory(dir_fd, name)))
		return 0;
	return session_path_fail(&at, code, "make the directory", err);
}

int session_file_rename(const struct jail *j, const char *path, const char *to,
			struct cj_error *err)
{
	auto_arena struct arena a = { 0 };
	struct session_path from_at, to_at;
	const char *from_name, *to_name;
	if (session_path_parse(j, path, &a, &from_at, err) < 0 ||
	    session_path_parse(j, to, &a, &to_at, err) < 0)
		return -err->code;
	auto_fd int from_fd = session_path_open_parent(&from_at, 0, &a, &from_name, err);
	if (from_fd < 0)
		return from_fd;
	auto_fd int to_fd = session_path_open_parent(&to_at, 0, &a, &to_name, err);
	if (to_fd < 0)
		return to_fd;
	if (session_path_check_free(j, &from_at, "rename", err) < 0)
		return -err->code;
	if (session_path_is_mount(from_fd, from_name))
		return session_path_fail(&from_at, EBUSY, "rename", err);
	if (session_path_is_mount(to_fd, to_name))
		return session_path_fail(&to_at, EBUSY, "replace", err);
	if (renameat(from_fd, from_name, to_fd, to_name) < 0)
		return session_path_fail(&from_at, errno, "rename", err);
	return 0;
}
