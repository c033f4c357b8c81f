/* SPDX-License-Identifier: Apache-2.0 */
/* Locks on the layers of an image.  Acts. */
#include "rootfs/image/image_use.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "runtime/base/scope.h"
#include "runtime/base/sys.h"

#define DIRECTORY (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

static int reject_removed(const char *path, struct cj_error *err)
{
	int rc = cj_reject_as(err, ENOENT, "the image's layer '%s' was removed", path);
	cj_hint(err, "'cejail image list' shows the images");
	return rc;
}

/* A removal may have renamed the directory between open(2) and flock(2); while it is locked none
 * does. */
static int check_place(int fd, const char *path, struct cj_error *err)
{
	struct stat locked, there;
	if (fstat(fd, &locked) < 0)
		return cj_fail(err, errno, "stat layer '%s'", path);
	if (stat(path, &there) < 0)
		return errno == ENOENT ? reject_removed(path, err)
				       : cj_fail(err, errno, "stat layer '%s'", path);
	if (locked.st_dev != there.st_dev || locked.st_ino != there.st_ino)
		return reject_removed(path, err);
	return 0;
}

static int hold(const char *path, struct cj_error *err)
{
	auto_fd int fd = open(path, DIRECTORY);
	if (fd < 0)
		return errno == ENOENT ? reject_removed(path, err)
				       : cj_fail(err, errno, "open layer '%s'", path);
	if (sys_flock(fd, LOCK_SH | LOCK_NB) < 0)
		return errno == EWOULDBLOCK ? reject_removed(path, err)
					    : cj_fail(err, errno, "lock layer '%s'", path);
	return check_place(fd, path, err) < 0 ? -err->code : take_fd(&fd);
}

int image_use_begin(struct image_use *out, const struct strings *layers, struct arena *a,
		    struct cj_error *err)
{
	*out = (struct image_use){ .fds = arena_array(a, layers->count + 1, sizeof(*out->fds)) };
	if (!out->fds)
		return cj_fail(err, ENOMEM, "list the layers");
	for (; out->count < layers->count; out->count++) {
		int fd = hold(layers->items[out->count], err);
		if (fd < 0) {
			image_use_end(out);
			return fd;
		}
		out->fds[out->count] = fd;
	}
	return 0;
}

void image_use_end(struct image_use *use)
{
	while (use->count > 0)
		cj_close(&use->fds[--use->count]);
}

int image_use_claim(int dir_fd, const char *name, int *out_fd, struct cj_error *err)
{
	auto_fd int fd = openat(dir_fd, name, DIRECTORY);
	if (fd < 0)
		return cj_fail(err, errno, "open layer '%s'", name);
	*out_fd = -1;
	if (sys_flock(fd, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK ? 0 : cj_fail(err, errno, "lock layer '%s'", name);
	*out_fd = take_fd(&fd);
	return 0;
}
