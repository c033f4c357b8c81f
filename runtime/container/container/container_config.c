/* SPDX-License-Identifier: Apache-2.0 */
/* Reads config.json.  Acts. */
#include "runtime/container/container/container_config.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>

#include "runtime/base/files/fd.h"
#include "runtime/base/scope.h"

#define CONFIG "config.json"

static int find_rootfs(struct container_bundle *b, struct arena *a, struct cj_error *err)
{
	const char *root = b->config.root_path;

	b->rootfs = root[0] == '/' ? root : arena_printf(a, "%s/%s", b->path, root);
	if (!b->rootfs)
		return cj_fail(err, ENOMEM, "read the bundle");
	return 0;
}

int container_config_bundle(const struct oci_options *o, struct arena *a,
			    struct container_bundle *out, struct cj_error *err)
{
	struct container_bundle b = { 0 };
	char resolved[PATH_MAX], *text;
	const char *given = o->bundle && o->bundle[0] != '\0' ? o->bundle : ".";
	const char *config = o->config ? o->config : CONFIG;

	if (!realpath(given, resolved))
		return cj_fail(err, errno, "open the bundle '%s'", given);
	b.path = arena_strdup(a, resolved);
	if (!b.path)
		return cj_fail(err, ENOMEM, "read the bundle");

	auto_fd int dir_fd = open(b.path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir_fd < 0)
		return cj_fail(err, errno, "open the bundle '%s'", b.path);
	auto_fd int fd = openat(dir_fd, config, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return cj_fail(err, errno, "open '%s' of the bundle '%s'", config, b.path);
	if (fd_read_all(fd, OCI_CONFIG_BYTES_MAX, a, &text, &b.size, config, err) < 0)
		return -err->code;
	b.text = text;
	if (oci_config_read(config, b.text, b.size, a, &b.config, err) < 0 ||
	    find_rootfs(&b, a, err) < 0)
		return -err->code;
	*out = b;
	return 0;
}

int container_config_stored(const struct state *s, struct arena *a, struct oci_config *out,
			    struct cj_error *err)
{
	char *text;
	size_t size;

	if (state_get_file(s, STATE_CONFIG, a, &text, &size, err) < 0)
		return cj_wrap(err, "container '%s'", s->id);
	return oci_config_read(STATE_CONFIG, text, size, a, out, err);
}
