/* SPDX-License-Identifier: Apache-2.0 */
/*
 * return_value - the value that a program leaves as JSON in a file, for its result.
 *
 * The file is untrusted.  The limits leave room for what stands around the value where it is read
 * again: a result within an event has two levels more, and members of its own.
 */
#pragma once

#include "rootfs/files/artifacts.h"
#include "runtime/base/json/json.h"

#define RETURN_VALUE_BYTES_MAX JSON_BYTES_MAX
#define RETURN_VALUE_DEPTH_MAX 24
#define RETURN_VALUE_NODES_MAX (1u << 16)

/*
 * return_value_parse - the text as one JSON value; `name` is for messages.  Points into `a`.
 * Fails: EINVAL with the place; EFBIG past a limit, naming it; ENOMEM.
 */
int return_value_parse(const char *name, const char *text, size_t size, struct arena *a,
		       const struct json_node **out, struct cj_error *err);

/*
 * return_value_read - the value in the file at `from`; *out is NULL if there is no such file.
 *
 * Runs in the supervisor when every process of the jail is dead.  Only a regular file with one link
 * is read, and not more than RETURN_VALUE_BYTES_MAX of it.
 * Owns:  the value lives in `a`.
 * Fails: with the reason why the file is not used, in printable text.
 */
int return_value_read(const struct artifact_place *from, struct arena *a,
		      const struct json_node **out, struct cj_error *err);
