/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image_unpack - the entries of a stream into a layer's directory.  Acts; runs confined.
 *
 * Device nodes, sockets and pipes are left out and counted: a jail makes its own /dev, and a pipe
 * in a shared layer could connect two jails.  Everything else that can't be carried out is an
 * error.
 */
#pragma once

#include "runtime/front/image/image_stream.h"

/*
 * image_unpack - all entries of `stream`, beneath root_fd, which is an empty directory.
 *
 * Fails: as image_name.h, image_tree.h and the limits of image_limits.h say; the message has the
 *        entry's path.  What was unpacked before stays for the caller to remove.
 */
int image_unpack(struct image_stream *stream, int root_fd, struct image_budget *budget,
		 struct cj_error *err);

/* Adds to what was unpacked.  Fails: EFBIG past the budget. */
int image_budget_take(struct image_budget *budget, uint64_t bytes, struct cj_error *err);

/* One more entry.  Fails: E2BIG past IMAGE_ENTRIES_MAX. */
int image_budget_count(struct image_budget *budget, uint64_t entries, struct cj_error *err);
