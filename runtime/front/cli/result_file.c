/* SPDX-License-Identifier: Apache-2.0 */
/* The file of `--json=FILE`.  Acts, with the caller's rights. */
#include "runtime/front/cli/result_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "profiles/plan.h"
#include "runtime/base/fd.h"
#include "runtime/base/scope.h"

#define FILE_MODE 0666 /* the caller's umask decides */

static int open_directory(const char *path, const char *slash, struct cj_error *err)
{
	auto_free char *dir = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
	if (!dir)
		return cj_fail(err, ENOMEM, "open '%s'", path);

	int fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return cj_fail(err, errno, "open the directory of '%s'", path);
	return fd;
}

/* A fifo without a reader would block for ever; with O_NONBLOCK it is ENXIO: fifo(7). */
static int open_in_place(const struct result_file *f, const char *path, struct cj_error *err)
{
	int flags = O_WRONLY | O_TRUNC | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
	auto_fd int fd = openat(f->dir_fd, f->name, flags);
	if (fd < 0 && errno == ENXIO) {
		int rc = cj_fail(err, ENXIO, "open '%s'", path);
		cj_hint(err, "nobody reads it");
		return rc;
	}
	if (fd < 0)
		return cj_fail(err, errno, "open '%s'", path);
	if (fcntl(fd, F_SETFL, O_WRONLY) < 0) /* writing may wait for the reader again */
		return cj_fail(err, errno, "open '%s'", path);
	return take_fd(&fd);
}

/* "." for a file without a name, which few file systems lack (open(2), O_TMPFILE). */
static int open_temporary(struct result_file *f, const char *path, struct cj_error *err)
{
	char id[PLAN_ID_MAX];
	if (plan_mint_id(id, err) < 0)
		return -err->code;

	auto_fd int fd = openat(f->dir_fd, ".", O_WRONLY | O_TMPFILE | O_CLOEXEC, FILE_MODE);
	if (fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR)) {
		(void)snprintf(f->temp, sizeof(f->temp), ".cejail-%s", id);
		fd = openat(f->dir_fd, f->temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, FILE_MODE);
	}
	if (fd < 0) {
		f->temp[0] = '\0';
		int rc = cj_fail(err, errno, "create '%s'", path);
		cj_hint(err, "the result needs a directory that can be written");
		return rc;
	}
	return take_fd(&fd);
}

static int open_file(struct result_file *f, const char *path, struct cj_error *err)
{
	const char *slash = strrchr(path, '/');
	struct stat st;

	f->dir_fd = open_directory(path, slash, err);
	if (f->dir_fd < 0)
		return f->dir_fd;
	f->name = strdup(slash ? slash + 1 : path);
	if (!f->name)
		return cj_fail(err, ENOMEM, "open '%s'", path);
	if (f->name[0] == '\0')
		return cj_reject(err, "'%s' is a directory, not a file to write", path);

	bool exists = fstatat(f->dir_fd, f->name, &st, AT_SYMLINK_NOFOLLOW) == 0;
	if (!exists && errno != ENOENT)
		return cj_fail(err, errno, "look at '%s'", path);
	if (exists && S_ISDIR(st.st_mode))
		return cj_reject(err, "'%s' is a directory, not a file to write", path);
	f->is_in_place = exists && !S_ISREG(st.st_mode);

	f->fd = f->is_in_place ? open_in_place(f, path, err) : open_temporary(f, path, err);
	return f->fd < 0 ? f->fd : 0;
}

int result_file_open(const char *path, struct result_file *out, struct cj_error *err)
{
	struct result_file f = RESULT_FILE_NULL;

	if (open_file(&f, path, err) < 0) {
		result_file_fini(&f);
		return -err->code;
	}
	*out = f;
	return 0;
}

/* linkat(2) names AT_EMPTY_PATH as needing a capability and this way as the one without. */
static int give_temporary_name(struct result_file *f, struct cj_error *err)
{
	char self[32], temp[sizeof(f->temp)], id[PLAN_ID_MAX];

	if (f->temp[0] != '\0')
		return 0;
	if (plan_mint_id(id, err) < 0)
		return -err->code;
	(void)snprintf(self, sizeof(self), "/proc/self/fd/%d", f->fd);
	(void)snprintf(temp, sizeof(temp), ".cejail-%s", id);
	if (linkat(AT_FDCWD, self, f->dir_fd, temp, AT_SYMLINK_FOLLOW) < 0)
		return cj_fail(err, errno, "name '%s'", f->name);
	memcpy(f->temp, temp, sizeof(temp));
	return 0;
}

int result_file_commit(struct result_file *f, const char *text, size_t size, struct cj_error *err)
{
	if (fd_write_all(f->fd, text, size, f->name, err) < 0 ||
	    fd_write_all(f->fd, "\n", 1, f->name, err) < 0)
		return -err->code;
	if (f->is_in_place)
		return 0;
	if (give_temporary_name(f, err) < 0)
		return -err->code;
	if (renameat(f->dir_fd, f->temp, f->dir_fd, f->name) < 0)
		return cj_fail(err, errno, "put '%s' in its place", f->name);
	f->temp[0] = '\0';
	return 0;
}

void result_file_fini(struct result_file *f)
{
	int saved = errno;

	if (f->temp[0] != '\0')
		(void)unlinkat(f->dir_fd, f->temp, 0); /* ours; if it is gone, so much the better */
	cj_close(&f->fd);
	cj_close(&f->dir_fd);
	free(f->name);
	*f = (struct result_file)RESULT_FILE_NULL;
	errno = saved;
}
