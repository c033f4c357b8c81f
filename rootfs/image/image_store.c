/* SPDX-License-Identifier: Apache-2.0 */
/* The directory with the images of this user, to read.  Acts. */
#include "rootfs/image/image_store.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "rootfs/image/image_limits.h"
#include "rootfs/image/image_name.h"
#include "runtime/base/files/fd.h"
#include "runtime/base/files/owned_dir.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"

#define STORE_OF_ROOT "/var/lib/cejail/images"
#define SUFFIX        ".json"

static int find_store(char out[static PATH_MAX], struct cj_error *err)
{
	const char *data = getenv("XDG_DATA_HOME"), *home = getenv("HOME");
	int used;

	if (data && data[0] == '/') /* a relative path is invalid: XDG Base Directory */
		used = snprintf(out, PATH_MAX, "%s/cejail/images", data);
	else if (geteuid() == 0)
		used = snprintf(out, PATH_MAX, STORE_OF_ROOT);
	else if (home && home[0] == '/')
		used = snprintf(out, PATH_MAX, "%s/.local/share/cejail/images", home);
	else {
		int rc = cj_reject(err, "there is no directory for images: HOME is not set");
		cj_hint(err, "set HOME or XDG_DATA_HOME");
		return rc;
	}
	return used < PATH_MAX ? 0 : cj_fail(err, ENAMETOOLONG, "find the directory for images");
}

/* Its owner decides what the jails of this user are made of. */
static int check_owner(int fd, const char *path, struct cj_error *err)
{
	struct stat st;
	if (fstat(fd, &st) < 0)
		return cj_fail(err, errno, "stat '%s'", path);
	if (st.st_uid == geteuid() && !(st.st_mode & (S_IWGRP | S_IWOTH)))
		return 0;
	int rc =
	    cj_reject_as(err, EPERM, "the images in '%s' are not only this user's to change", path);
	cj_hint(err, "the directory must belong to user %u and have mode 0700", geteuid());
	return rc;
}

static int open_store(mode_t mode, struct image_store *out, struct cj_error *err)
{
	struct image_store store = IMAGE_STORE_NULL;
	if (find_store(store.path, err) < 0)
		return -err->code;
	auto_fd int fd = owned_dir_open(store.path, 0755, mode, err);
	if (fd < 0)
		return fd;
	if (check_owner(fd, store.path, err) < 0)
		return -err->code;
	if (!fd_real_path(fd, store.path))
		return cj_fail(err, errno, "find the path of '%s'", store.path);
	store.fd = take_fd(&fd);
	*out = store;
	return 0;
}

int image_store_open(struct image_store *out, struct cj_error *err)
{
	return open_store(0, out, err);
}

int image_store_make(struct image_store *out, struct cj_error *err)
{
	return open_store(0700, out, err);
}

void image_store_close(struct image_store *store)
{
	cj_close(&store->fd);
}

static int reject_absent(const char *name, struct cj_error *err)
{
	int rc = cj_reject_as(err, ENOENT, "there is no installed image '%s'", name);
	cj_hint(err, "'cejail image list' shows the images; for a directory write './%s'", name);
	return rc;
}

int image_store_read(const struct image_store *store, const char *name, struct arena *a,
		     struct image_record *out, struct cj_error *err)
{
	char file[sizeof("images/") + IMAGE_NAME_MAX + sizeof(SUFFIX)];
	char *text;
	size_t size;

	if (!image_is_name(name))
		return reject_absent(name, err);
	(void)snprintf(file, sizeof(file), "images/%s" SUFFIX, name);
	if (store->fd < 0 || (faccessat(store->fd, file, F_OK, 0) < 0 && errno == ENOENT))
		return reject_absent(name, err);
	if (fd_read_file(store->fd, file, IMAGE_RECORD_MAX, a, &text, &size, err) < 0 ||
	    image_record_parse(file, text, size, a, out, err) < 0)
		return cj_wrap(err, "image '%s'", name);
	return 0;
}

/* --- listing ------------------------------------------------------------------ */

/* Adds the name in "NAME.json"; another file is none.  -1: no memory. */
static int add_name(const char *file, struct arena *a, struct strings *out)
{
	size_t size = strlen(file), suffix = strlen(SUFFIX);
	if (size <= suffix || strcmp(file + size - suffix, SUFFIX) != 0)
		return 0;
	const char *name = arena_strndup(a, file, size - suffix);
	if (!name)
		return -1;
	return image_is_name(name) ? strings_add(out, a, name) : 0;
}

static int compare(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

int image_store_list(const struct image_store *store, struct arena *a, struct strings *out,
		     struct cj_error *err)
{
	*out = (struct strings){ 0 };
	auto_dir DIR *dir =
	    fd_take_dir(openat(store->fd, "images", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	if (!dir)
		return cj_fail(err, errno, "open '%s/images'", store->path);

	for (;;) {
		errno = 0;
		const struct dirent *e = readdir(dir);
		if (!e)
			break;
		if (add_name(e->d_name, a, out) < 0)
			return cj_fail(err, ENOMEM, "list '%s/images'", store->path);
	}
	/* whoever removes what no image needs must know all images */
	if (errno != 0)
		return cj_fail(err, errno, "list '%s/images'", store->path);
	if (out->count > 0)
		qsort(out->items, out->count, sizeof(*out->items), compare);
	return 0;
}

const char *image_store_layer(const struct image_store *store, const char *sha256, struct arena *a)
{
	return arena_printf(a, "%s/layers/%s", store->path, sha256);
}
