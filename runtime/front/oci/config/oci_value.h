/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci_value - the values of which a config.json consists.  Pure.
 *
 * Zeroed memory is "not given" in each of them.  The rows' functions are for the tables of this
 * room only.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/json/json_record.h"

/* A number that config.json may leave out. */
struct oci_u64 {
	bool is_set;
	uint64_t value;
};
struct oci_i64 {
	bool is_set;
	int64_t value;
};

/* A JSON object whose values are strings: annotations, sysctl, unified. */
struct oci_pair {
	const char *name, *value;
};
struct oci_pairs {
	const struct oci_pair *items; /* in the file's order; no name twice */
	size_t count;
};

/* The value of `name`, or NULL. */
const char *oci_pairs_get(const struct oci_pairs *pairs, const char *name);

#define OCI_ID_MAX (UINT32_MAX - 1) /* UINT32_MAX is (uid_t)-1: "do not change" for chown(2) */

/* --- rows' functions --------------------------------------------------------------- */

JSON_SETTER(oci_u64);  /* struct oci_u64 within min..max */
JSON_SETTER(oci_i64);  /* struct oci_i64, any */
JSON_SETTER(oci_u32);  /* uint32_t within min..max */
JSON_SETTER(oci_flag); /* bool that the row's `known` offset says is set */
JSON_SETTER(oci_path); /* const char *, absolute */

/* struct oci_pairs. */
int json_read_oci_pairs(const struct json_reader *in, const struct json_key *k,
			const struct json_node *node, void *record, struct cj_error *err);

/* One item of a list of structs: *items grows by one zeroed item of `size`.  NULL: no memory. */
void *oci_list_add(const struct json_reader *in, const void **items, size_t *count, size_t size,
		   struct cj_error *err);
