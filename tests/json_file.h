/* SPDX-License-Identifier: Apache-2.0 */
/* json_file - a JSON file of the tree: a schema, an example.  Include it after <cmocka.h>. */
#pragma once

#include <fcntl.h>

#include "runtime/base/files/fd.h"
#include "runtime/base/json/json.h"

/* The path is relative to the top of the tree.  The nodes are the arena's. */
static inline const struct json_node *json_of_file(const char *path, struct arena *a)
{
	char *text;
	size_t size;
	const struct json_node *root = NULL;
	struct cj_error err = { 0 };
	if (fd_read_file(AT_FDCWD, path, JSON_BYTES_MAX, a, &text, &size, &err) < 0 ||
	    json_parse(path, text, size, a, &root, &err) < 0)
		fail_msg("%s (run from the top of the tree)", err.msg);
	return root;
}
