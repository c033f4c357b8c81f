/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image_remove - removes trees from the store, and what no image needs.  Acts.
 *
 * A layer is renamed into tmp/ before its first file goes.  So a directory in layers/ is always
 * complete, whenever cejail is killed; the next import or removal clears tmp/.
 */
#pragma once

#include "rootfs/image/image_store.h"

/* The tree dir_fd/name.  Follows no link.  Succeeds when there is none. */
int image_remove_tree(int dir_fd, const char *name, struct cj_error *err);

/*
 * image_remove_unused - empty tmp/, and remove each layer that is in no record.
 *
 * A layer that a jail uses stays: *out_kept counts these.
 * Must not: run without the store's lock.
 */
int image_remove_unused(const struct image_store *store, size_t *out_kept, struct cj_error *err);
