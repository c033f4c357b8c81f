/* SPDX-License-Identifier: Apache-2.0 */
/* Pure. */
#include "rootfs/files/return_value.h"

#include <errno.h>

struct extent {
	size_t nodes;
	unsigned depth;
};

/* The reader's own limit is JSON_DEPTH_MAX; NOLINTNEXTLINE(misc-no-recursion) */
static void measure(const struct json_node *node, unsigned depth, struct extent *e)
{
	e->nodes++;
	if (node->type != JSON_ARRAY && node->type != JSON_OBJECT)
		return;
	if (depth > e->depth)
		e->depth = depth;
	for (const struct json_node *n = node->child; n; n = n->next)
		measure(n, depth + 1, e);
}

int value_check(const struct json_node *root, struct cj_error *err)
{
	struct extent e = { 0 };

	measure(root, 1, &e);
	if (e.depth > VALUE_DEPTH_MAX)
		return cj_reject_as(err, EFBIG, "it has more than %d levels", VALUE_DEPTH_MAX);
	if (e.nodes > VALUE_NODES_MAX)
		return cj_reject_as(err, EFBIG, "it has more than %u values", VALUE_NODES_MAX);
	return 0;
}

int value_parse(const char *name, const char *text, size_t size, struct arena *a,
		const struct json_node **out, struct cj_error *err)
{
	const struct json_node *root;

	if (size > VALUE_BYTES_MAX)
		return cj_reject_as(err, EFBIG, "it has more than %u bytes", VALUE_BYTES_MAX);
	if (json_parse(name, text, size, a, &root, err) < 0 || value_check(root, err) < 0)
		return -err->code;
	*out = root;
	return 0;
}
