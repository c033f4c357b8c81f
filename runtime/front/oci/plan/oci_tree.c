/* SPDX-License-Identifier: Apache-2.0 */
/* The plan of a container's file tree.  Pure. */
#include "runtime/front/oci/plan/oci_tree.h"

int oci_tree_plan(const struct oci_config *config, struct arena *a, struct oci_tree *out,
		  struct cj_error *err)
{
	(void)config, (void)a, (void)out;
	return cj_reject(err, "the tree of a container is not supported yet");
}
