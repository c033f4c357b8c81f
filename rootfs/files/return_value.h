/* SPDX-License-Identifier: Apache-2.0 */
/*
 * return_value - the value that a program leaves as JSON in a file, for its result.  Pure.
 *
 * The file is untrusted.  The limits leave room for what stands around the value where it is read
 * again: a result within an event has two levels more, and members of its own.
 */
#pragma once

#include "runtime/base/json/json.h"

#define VALUE_BYTES_MAX JSON_BYTES_MAX
#define VALUE_DEPTH_MAX 24
#define VALUE_NODES_MAX (1u << 16)

/*
 * value_parse - the text as one JSON value; `name` is for messages.  Points into `a`.
 * Fails: EINVAL with the place; EFBIG past a limit, naming it; ENOMEM.
 */
int value_parse(const char *name, const char *text, size_t size, struct arena *a,
		const struct json_node **out, struct cj_error *err);

/* Is a value that was read already within the limits of depth and number?  EFBIG. */
int value_check(const struct json_node *root, struct cj_error *err);
