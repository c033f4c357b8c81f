/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/base/files/line_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "runtime/base/scope.h"
#include "runtime/base/sys.h"

int line_file_open(const char *path, mode_t mode, struct line_file *out, struct cj_error *err)
{
	/* O_NONBLOCK: opening a fifo does not wait for a reader; it is refused afterwards */
	auto_fd int fd = open(
	    path, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC,
	    mode);
	struct stat st;
	if (fd < 0)
		return cj_fail(err, errno, "open '%s'", path);
	if (fstat(fd, &st) < 0)
		return cj_fail(err, errno, "stat '%s'", path);
	if (!S_ISREG(st.st_mode))
		return cj_reject(err, "'%s' is not a regular file", path);
	*out = (struct line_file){ .fd = take_fd(&fd) };
	(void)snprintf(out->path, sizeof(out->path), "%s", path); /* open(2) limits its length */
	return 0;
}

int line_file_reopen(struct line_file *f, mode_t mode, struct cj_error *err)
{
	struct line_file again = LINE_FILE_NULL;

	if (f->fd < 0)
		return 0;
	if (line_file_open(f->path, mode, &again, err) < 0)
		return -err->code;
	line_file_close(f);
	*f = again;
	return 0;
}

void line_file_close(struct line_file *f)
{
	cj_close(&f->fd);
}

int line_file_append(struct line_file *f, const char *text, size_t size, struct cj_error *err)
{
	auto_free char *line = malloc(size + 2);
	size_t at = 0;

	if (!line)
		return cj_fail(err, ENOMEM, "write '%s'", f->path);
	if (f->is_torn)
		line[at++] = '\n';
	memcpy(line + at, text, size);
	at += size;
	line[at++] = '\n';

	ssize_t put = sys_write(f->fd, line, at);
	if (put < 0)
		return cj_fail(err, errno, "write '%s'", f->path);
	/* Other processes may write here, too, and know nothing of half a line. */
	f->is_torn = (size_t)put < at && sys_write(f->fd, "\n", 1) != 1;
	if ((size_t)put < at)
		return cj_fail(err, ENOSPC, "write '%s': only %zd of %zu bytes", f->path, put, at);
	return 0;
}
