/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/run/report/result_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "runtime/base/files/fd.h"
#include "runtime/base/scope.h"

#define FILE_MODE 0666 /* the caller's umask decides */

/* Opening a FIFO without a reader would block; with O_NONBLOCK it fails with ENXIO: fifo(7). */
static int open_in_place(const struct result_file *f, const char *path, struct cj_error *err)
{
	int flags = O_WRONLY | O_TRUNC | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
	auto_fd int fd = openat(f->dir_fd, f->name, flags);
	if (fd < 0 && errno == ENXIO) {
		(void)!cj_fail(err, ENXIO, "open '%s'", path);
		return cj_hint(err, "no process has the FIFO open for reading");
	}
	if (fd < 0)
		return cj_fail(err, errno, "open '%s'", path);
	if (fcntl(fd, F_SETFL, O_WRONLY) < 0) /* writing may block again */
		return cj_fail(err, errno, "open '%s'", path);
	return take_fd(&fd);
}

static int open_file(struct result_file *f, const char *path, struct cj_error *err)
{
	const char *slash = strrchr(path, '/');
	struct stat st;

	auto_free char *dir = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
	f->name = strdup(slash ? slash + 1 : path);
	if (!dir || !f->name)
		return cj_fail(err, ENOMEM, "open '%s'", path);
	f->dir_fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (f->dir_fd < 0)
		return cj_fail(err, errno, "open the directory of '%s'", path);
	if (f->name[0] == '\0')
		return cj_reject(err, "'%s' is a directory; write the name of a file", path);

	bool exists = fstatat(f->dir_fd, f->name, &st, AT_SYMLINK_NOFOLLOW) == 0;
	if (!exists && errno != ENOENT)
		return cj_fail(err, errno, "stat '%s'", path);
	if (exists && S_ISDIR(st.st_mode))
		return cj_reject(err, "'%s' is a directory; write the name of a file", path);
	f->is_in_place = exists && !S_ISREG(st.st_mode);

	if (f->is_in_place) {
		f->new.fd = open_in_place(f, path, err);
		return f->new.fd < 0 ? f->new.fd : 0;
	}
	int rc = atomic_file_open(f->dir_fd, FILE_MODE, &f->new);
	if (rc == 0)
		return 0;
	(void)!cj_fail(err, -rc, "create '%s'", path);
	return cj_hint(err, "choose a file in a directory that you may write");
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

int result_file_publish(struct result_file *f, struct cj_error *err)
{
	int rc = f->is_in_place ? 0 : atomic_file_publish(&f->new, f->dir_fd, f->name);
	return rc < 0 ? cj_fail(err, -rc, "rename the new file to '%s'", f->name) : 0;
}

int result_file_commit(struct result_file *f, const char *text, size_t size, struct cj_error *err)
{
	if (fd_write_line(f->new.fd, text, size, f->name, err) < 0)
		return -err->code;
	return result_file_publish(f, err);
}

void result_file_fini(struct result_file *f)
{
	int saved = errno;

	atomic_file_fini(&f->new);
	cj_close(&f->dir_fd);
	free(f->name);
	*f = (struct result_file)RESULT_FILE_NULL;
	errno = saved;
}
