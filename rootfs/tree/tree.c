/* SPDX-License-Identifier: Apache-2.0 */
/* Mounts on a root file system that may be hostile.  Acts. */
#include "rootfs/tree/tree.h"

static int refuse(struct cj_error *err)
{
	return cj_reject(err, "a given root file system is not supported yet");
}

int tree_open_outside(const struct tree_spec *spec, struct tree_sources **out, struct cj_error *err)
{
	(void)spec, (void)out;
	return refuse(err);
}

int tree_open_sources(const struct tree_spec *spec, struct tree_sources *sources,
		      struct cj_error *err)
{
	(void)spec, (void)sources;
	return refuse(err);
}

int tree_build(const struct tree_spec *spec, struct tree_sources *sources, struct cj_error *err)
{
	(void)spec, (void)sources;
	return refuse(err);
}

int tree_finish(const struct tree_spec *spec, const struct tree_sources *sources, int root_fd,
		struct cj_error *err)
{
	(void)spec, (void)sources, (void)root_fd;
	return refuse(err);
}

int tree_enter(const struct tree_spec *spec, int root_fd, struct cj_error *err)
{
	(void)spec, (void)root_fd;
	return refuse(err);
}

int tree_seal(const struct tree_spec *spec, struct cj_error *err)
{
	(void)spec;
	return refuse(err);
}

void tree_close(struct tree_sources **sources)
{
	*sources = NULL;
}
