/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Overlays by descriptor.
 *
 * overlayfs takes its layers as text, and one option holds 255 bytes.  In the directory
 * /proc/self/fd a descriptor's path is its number, so no path is resolved twice and no text
 * needs escaping.  (Options that take descriptors exist since Linux 6.13.)
 */
#include "rootfs/layers.h"

#include <fcntl.h>

#include "rootfs/mounts.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"

int layers_open(struct layers *out, const struct strings *paths, struct arena *a,
		struct cj_error *err)
{
	*out = (struct layers){ 0 };
	if (paths->count == 0)
		return cj_reject(err, "a root of layers needs at least one");
	if (paths->count > LAYERS_MAX)
		return cj_reject(err, "%zu layers; at most %d can be laid over each other",
				 paths->count, LAYERS_MAX);

	out->fds = arena_array(a, paths->count, sizeof(*out->fds));
	if (!out->fds)
		return cj_fail(err, errno, "list the layers");
	for (; out->count < paths->count; out->count++) {
		const char *path = paths->items[out->count];
		int fd = sys_openat2(AT_FDCWD, path, O_PATH | O_DIRECTORY, 0,
				     RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
		if (fd < 0) {
			int rc =
			    errno == ELOOP
				? cj_reject(err, "layer '%s' has a symbolic link in its path", path)
				: cj_fail(err, errno, "open layer '%s'", path);
			layers_close(out);
			return rc;
		}
		out->fds[out->count] = fd;
	}
	return 0;
}

void layers_close(struct layers *layers)
{
	for (size_t i = 0; i < layers->count; i++)
		cj_close(&layers->fds[i]);
	layers->count = 0;
}

static void add_number(char *text, size_t size, int fd)
{
	size_t used = strlen(text);
	(void)snprintf(text + used, size - used, "%s%d", used > 0 ? ":" : "", fd);
}

int layers_create(const struct mounts_option *options, size_t noptions, uint64_t attrs,
		  const char *name, struct cj_error *err)
{
	if (chdir("/proc/self/fd") < 0)
		return cj_fail(err, errno, "enter '/proc/self/fd'");

	int fd = mounts_create("overlay", options, noptions, attrs, err);
	if (fd >= 0)
		return fd;
	if (fd == -EINVAL)
		cj_hint(err, "an overlay can't be laid over a directory that has other file "
			     "systems mounted below it, or that lies on two overlays itself");
	else if (fd == -ENODEV || fd == -EPERM)
		cj_hint(err, "the kernel must have overlayfs (modprobe overlay) and allow it in "
			     "user namespaces (Linux 5.11)");
	return cj_wrap(err, "overlay '%s'", name);
}

int layers_join(const struct overlay *overlay, uint64_t attrs, struct cj_error *err)
{
	char lower[MOUNTS_OPTION_MAX + 1] = "", upper[16] = "", work[16] = "";
	if (overlay->top_fd >= 0)
		add_number(lower, sizeof(lower), overlay->top_fd);
	for (size_t i = 0; i < overlay->below.count; i++)
		add_number(lower, sizeof(lower), overlay->below.fds[i]);
	if (strlen(lower) + 1 == sizeof(lower))
		return cj_fail(err, ENAMETOOLONG, "overlay '%s'", overlay->name);
	add_number(upper, sizeof(upper), overlay->upper_fd);
	add_number(work, sizeof(work), overlay->work_fd);

	/*
	 * userxattr: in a user namespace overlayfs can't use trusted.* attributes (overlayfs.rst).
	 * It implies redirect_dir=nofollow and metacopy=off: user.overlay.* attributes on a lower
	 * layer have no effect.  index: the module's parameter may be on.
	 */
	const struct mounts_option options[] = {
		{ "userxattr", NULL }, { "index", "off" },  { "lowerdir", lower },
		{ "upperdir", upper }, { "workdir", work },
	};
	size_t noptions = overlay->upper_fd >= 0 ? 5 : 3;
	return layers_create(options, noptions, attrs, overlay->name, err);
}
