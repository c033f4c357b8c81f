/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host - the part of this host that a jail with the root "host" sees: the tables of public.h.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "runtime/base/arena.h"
#include "runtime/base/error.h"

struct host_entry {
	const char *path; /* the table's, or in the arena given */
	const char *link; /* the target, if the host has a link there; else NULL */
	const char *text; /* a small file's content, copied in place of a mount; else NULL */
	size_t size;      /* of the text, bytes */
	int fd;           /* detached tree; for "/usr" under an overlay the directory itself */
	bool is_dir;
};

struct host_view {
	struct host_entry *entries; /* rows that exist; in the arena given */
	size_t count;
	size_t copied;   /* bytes of all texts */
	size_t copy_max; /* bytes of one text */
	int root_fd;     /* while it is filled: borrowed; else -1 */
};

/*
 * host_open - resolve and clone, or copy, every row that this host has and all users may read.
 *
 * usr_is_lower: /usr is not cloned, it will be the lower layer of an overlay.
 * Runs in:  init, with the caller's ids.  On failure nothing is open.
 */
int host_open(struct host_view *view, bool usr_is_lower, struct arena *a, struct cj_error *err);
void host_close(struct host_view *view);

/* The row "/usr"; there always is one. */
struct host_entry *host_usr(struct host_view *view);

/* Adds links, copies and mount points of the view to the skeleton. */
int host_add_places(const struct host_view *view, int skeleton_fd, struct cj_error *err);

int host_attach(const struct host_view *view, int root_fd, struct cj_error *err);
