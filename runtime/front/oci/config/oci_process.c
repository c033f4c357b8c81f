/* SPDX-License-Identifier: Apache-2.0 */
/* The "process" of a config.json, and the file of `exec --process`.  Pure. */
#include "runtime/front/oci/config/oci_process.h"

int oci_process_read(const char *name, const char *text, size_t size, struct arena *a,
		     struct oci_process *out, struct cj_error *err)
{
	(void)name, (void)text, (void)size, (void)a, (void)out;
	return cj_reject(err, "exec --process is not supported yet");
}

int oci_user_parse(const char *text, uint32_t *out_uid, uint32_t *out_gid, struct cj_error *err)
{
	(void)text, (void)out_uid, (void)out_gid;
	return cj_reject(err, "exec --user is not supported yet");
}
