/* SPDX-License-Identifier: Apache-2.0 */
/* Removes trees from the store.  Acts. */
#include "runtime/front/image/image_remove.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "rootfs/image/image_store.h"
#include "runtime/base/files/fd.h"
#include "runtime/base/scope.h"

/* A layer's tree, and tmp/WORK/LAYER above it. */
#define DEPTH_MAX (IMAGE_DEPTH_MAX + 8)

static bool is_self(const char *name)
{
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

static int remove_any(int dir_fd, const char *name, unsigned depth, struct cj_error *err);

/* NOLINTNEXTLINE(misc-no-recursion): DEPTH_MAX */
static int remove_content(int dir_fd, const char *name, unsigned depth, struct cj_error *err)
{
	auto_dir DIR *dir = fd_open_dir(dir_fd, name);
	if (!dir)
		return cj_fail(err, errno, "open '%s' to remove it", name);
	if (depth >= DEPTH_MAX)
		return cj_fail(err, ELOOP, "remove '%s'", name);
	for (const struct dirent *e; (e = readdir(dir)) != NULL;)
		if (!is_self(e->d_name) && remove_any(dirfd(dir), e->d_name, depth + 1, err) < 0)
			return -err->code;
	return 0;
}

/* NOLINTNEXTLINE(misc-no-recursion): DEPTH_MAX */
static int remove_any(int dir_fd, const char *name, unsigned depth, struct cj_error *err)
{
	if (unlinkat(dir_fd, name, 0) == 0 || errno == ENOENT)
		return 0;
	if (errno != EISDIR)
		return cj_fail(err, errno, "remove '%s'", name);
	if (remove_content(dir_fd, name, depth, err) < 0)
		return -err->code;
	return unlinkat(dir_fd, name, AT_REMOVEDIR) < 0 ? cj_fail(err, errno, "remove '%s'", name)
							: 0;
}

int image_remove_tree(int dir_fd, const char *name, struct cj_error *err)
{
	return remove_any(dir_fd, name, 0, err);
}

/* --- what no image needs --------------------------------------------------------------- */

/* The layers of all records.  One that can't be read is an error: its layers are not known. */
static int list_used(const struct image_store *store, struct arena *a, struct strings *out,
		     struct cj_error *err)
{
	struct strings names;
	if (image_store_list(store, a, &names, err) < 0)
		return -err->code;
	for (size_t i = 0; i < names.count; i++) {
		struct image_record r;
		if (image_store_read(store, names.items[i], a, &r, err) < 0)
			return -err->code;
		for (size_t k = 0; k < r.layers.count; k++)
			if (strings_add(out, a, r.layers.items[k]) < 0)
				return cj_fail(err, ENOMEM, "list the layers");
	}
	return 0;
}

/* Moves the layer into tmp/, unless a jail uses it. */
static int retire(const struct image_store *store, int layers_fd, const char *name, size_t *kept,
		  struct cj_error *err)
{
	char to[sizeof("tmp/") + NAME_MAX];
	auto_fd int claimed_fd = -1;
	if (image_use_claim(layers_fd, name, &claimed_fd, err) < 0)
		return -err->code;
	if (claimed_fd < 0) {
		++*kept;
		return 0;
	}
	(void)snprintf(to, sizeof(to), "tmp/%s", name);
	if (renameat(layers_fd, name, store->fd, to) < 0)
		return cj_fail(err, errno, "remove the layer '%s'", name);
	return 0;
}

static int retire_unused(const struct image_store *store, const struct strings *used, size_t *kept,
			 struct cj_error *err)
{
	auto_dir DIR *dir = fd_open_dir(store->fd, "layers");
	if (!dir)
		return cj_fail(err, errno, "open '%s/layers'", store->path);
	for (const struct dirent *e; (e = readdir(dir)) != NULL;) {
		if (!image_is_sha256(e->d_name) || strings_has(used, e->d_name))
			continue;
		if (retire(store, dirfd(dir), e->d_name, kept, err) < 0)
			return -err->code;
	}
	return 0;
}

int image_remove_unused(const struct image_store *store, size_t *out_kept, struct cj_error *err)
{
	auto_arena struct arena a = { 0 };
	struct strings used = { 0 };
	*out_kept = 0;
	if (list_used(store, &a, &used, err) < 0 || remove_content(store->fd, "tmp", 0, err) < 0 ||
	    retire_unused(store, &used, out_kept, err) < 0)
		return -err->code;
	return remove_content(store->fd, "tmp", 0, err);
}
