/* SPDX-License-Identifier: Apache-2.0 */
/* Directories of the scratch.  Acts. */
#include "rootfs/tmpdirs.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

#include "rootfs/mounts.h"
#include "rootfs/scratch.h"

#define TMPDIR_MODE 01777 /* as of /tmp */

static int make_one(int scratch_fd, const struct rootfs_spec *spec, size_t number,
		    struct cj_error *err)
{
	char name[32];
	(void)snprintf(name, sizeof(name), "tmpfs%zu", number);
	if (mkdirat(scratch_fd, name, TMPDIR_MODE) < 0)
		return cj_fail(err, errno, "make '%s' of the scratch", name);
	return mounts_clone(scratch_fd, name, scratch_attrs(spec), name, err);
}

int tmpdirs_make(struct bind_sources *sources, const struct rootfs_spec *spec, int scratch_fd,
		 struct cj_error *err)
{
	for (size_t i = 0; i < sources->count; i++) {
		if (spec->binds[i].kind != BIND_TMPFS)
			continue;
		int fd = make_one(scratch_fd, spec, i, err);
		if (fd < 0)
			return cj_wrap(err, "--tmpfs '%s'", spec->binds[i].target);
		sources->items[i].fd = fd;
	}
	return 0;
}
