/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci_path - paths of config.json that lie in the container.  Pure.
 */
#pragma once

#include "runtime/base/arena.h"

/*
 * oci_path_clean - the path without "//", "." and ".."; a relative one begins at "/", as config.md
 * of the runtime specification says.
 *
 * Only the text counts: the kernel resolves the result, inside the root.
 * Returns: a path in the arena, "/" at least; NULL: no memory.
 */
const char *oci_path_clean(const char *path, struct arena *a);
