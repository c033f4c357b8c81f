/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bind_sources - the opened source of each bind_spec.
 *
 * binds.c opens and attaches them; overlays.c and tmpdirs.c replace those of their kind.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct bind_source {
	int fd; /* detached tree; of an overlay the directory below it: overlays.h */
	bool is_dir;
	bool is_detached; /* of an overlay: fd is a detached tree already */
};

struct bind_sources {
	struct bind_source *items; /* in the order of the spec; in the caller's arena */
	size_t count;
};
