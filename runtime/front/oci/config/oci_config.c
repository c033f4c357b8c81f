/* SPDX-License-Identifier: Apache-2.0 */
/* A bundle's config.json as plain data.  Pure. */
#include "runtime/front/oci/config/oci_config.h"

int oci_config_read(const char *name, const char *text, size_t size, struct arena *a,
		    struct oci_config *out, struct cj_error *err)
{
	(void)name, (void)text, (void)size, (void)a, (void)out;
	return cj_reject(err, "config.json is not supported yet");
}
