/* SPDX-License-Identifier: Apache-2.0 */
/*
 * return_value_file - the file of return_value.h, read out of a dead jail.
 *
 * Runs in the supervisor when every process of the jail is dead, as artifacts.h does.  Only a
 * regular file with one link is read, and not more than VALUE_BYTES_MAX of it.
 */
#pragma once

#include "rootfs/files/artifacts.h"
#include "runtime/base/json/json.h"

/*
 * value_read - the value in the file at `from`; *out is NULL if there is no such file.
 * Owns:  the value lives in `a`.
 * Fails: with the reason why the file is not used, in printable text.
 */
int value_read(const struct artifact_place *from, struct arena *a, const struct json_node **out,
	       struct cj_error *err);
