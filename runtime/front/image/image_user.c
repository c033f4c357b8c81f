/* SPDX-License-Identifier: Apache-2.0 */
/* USER of an image.  Acts. */
#include "runtime/front/image/image_user.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "rootfs/image/image_passwd.h"
#include "runtime/base/files/fd.h"
#include "runtime/base/scope.h"

#define DIRECTORY (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
#define OPAQUE    "user.overlay.opaque"

static int open_layer(const struct image_user_dirs *dirs, const char *name)
{
	int fd = openat(dirs->work_fd, name, DIRECTORY);
	return fd >= 0 ? fd : openat(dirs->layers_fd, name, DIRECTORY);
}

enum found { FOUND_HERE, FOUND_NOWHERE, FOUND_MAYBE_BELOW };

/* As overlayfs looks it up: whiteouts and opaque directories end the search. */
static enum found look_in(int layer_fd, int *out_fd)
{
	struct stat st;
	char value;
	auto_fd int etc_fd = openat(layer_fd, "etc", DIRECTORY);
	if (etc_fd < 0)
		return errno == ENOENT ? FOUND_MAYBE_BELOW : FOUND_NOWHERE;
	if (fstatat(etc_fd, "passwd", &st, AT_SYMLINK_NOFOLLOW) == 0) {
		if (S_ISREG(st.st_mode))
			*out_fd = openat(etc_fd, "passwd", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
		return *out_fd >= 0 ? FOUND_HERE : FOUND_NOWHERE;
	}
	return fgetxattr(etc_fd, OPAQUE, &value, 1) == 1 ? FOUND_NOWHERE : FOUND_MAYBE_BELOW;
}

/* -1: the image has none. */
static int open_passwd(const struct image_user_dirs *dirs)
{
	for (size_t i = 0; i < dirs->names->count; i++) {
		int passwd_fd = -1;
		auto_fd int layer_fd = open_layer(dirs, dirs->names->items[i]);
		if (layer_fd < 0)
			return -1;
		if (look_in(layer_fd, &passwd_fd) != FOUND_MAYBE_BELOW)
			return passwd_fd;
	}
	return -1;
}

int image_user_find(const struct image_user_dirs *dirs, const char *user, uint32_t *out_uid,
		    struct cj_error *err)
{
	auto_arena struct arena a = { 0 };
	auto_fd int fd = user[0] ? open_passwd(dirs) : -1;
	char *text = NULL;
	size_t size;
	if (fd >= 0 && fd_read_all(fd, IMAGE_PASSWD_MAX, &a, &text, &size, "/etc/passwd", err) < 0)
		return cj_wrap(err, "the image");
	return image_passwd_find(user, text, out_uid, err);
}
