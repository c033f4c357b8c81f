/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci_value - the values of which a config.json consists.
 *
 * Zeroed memory is "not given" in each of them.  The rows' functions are for the tables of this
 * room only.
 */
#pragma once

#include <assert.h>
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

/* A list of CPUs or memory nodes, "0-3,7", for sched_setaffinity(2) and set_mempolicy(2). */
#define OCI_SET_MAX  8192 /* the most CPUs for which Linux can be built */
#define OCI_SET_BITS (8 * sizeof(unsigned long))
struct oci_set {
	unsigned long bits[OCI_SET_MAX / OCI_SET_BITS];
};

#define OCI_CONFIG_BYTES_MAX (4u << 20)       /* podman's with its default filter has 40 kB */
#define OCI_ID_MAX           (UINT32_MAX - 1) /* UINT32_MAX is (uid_t)-1: "do not change" for chown(2) */

/* Names in config.json and their numbers. */
struct oci_name {
	const char *name;
	uint32_t value;
};
struct oci_names {
	const struct oci_name *items;
	size_t count;
};

/* --- for the tables of this room ----------------------------------------------------- */

/* Types of a row.  Go writes an empty list or object as null. */
#define OCI_NUMBER (JSON_TAKES_NUMBER | JSON_NULL_IS_ABSENT)
#define OCI_STRING (JSON_TAKES_STRING | JSON_NULL_IS_ABSENT)
#define OCI_OBJECT (JSON_TAKES_OBJECT | JSON_NULL_IS_ABSENT)
#define OCI_FLAG   (JSON_TAKES_BOOL | JSON_NULL_IS_ABSENT), .set = json_set_bool
#define OCI_TEXT   OCI_STRING, .set = json_set_oci_text
#define OCI_PATH   OCI_STRING, .set = json_set_oci_path
#define OCI_TEXTS  OCI_STRING, .is_list = true, .set = json_set_strings
#define OCI_PATHS  OCI_STRING, .is_list = true, .set = json_set_oci_paths
#define OCI_PAIRS  OCI_OBJECT, .read = json_read_oci_pairs
#define OCI_ID     JSON_TAKES_NUMBER, .set = json_set_oci_u32
/* With a struct oci_names, a struct oci_object, the sentence that says why not. */
#define OCI_NAME(names)    JSON_TAKES_STRING, .set = json_set_oci_name, .detail = &(names)
#define OCI_BITS(names)    OCI_STRING, .is_list = true, .set = json_set_oci_bit, .detail = &(names)
#define OCI_RECORD(object) OCI_OBJECT, .read = json_read_oci_object, .detail = &(object)
#define OCI_RECORDS(object)                                                                        \
	OCI_OBJECT, .is_list = true, .read = json_read_oci_item, .detail = &(object)
#define OCI_REFUSED(why) JSON_TAKES_ANY, .read = json_read_oci_refused, .detail = (why)

#define LIST(type, items, count)                                                                   \
	static_assert(offsetof(struct type, count) ==                                              \
			  offsetof(struct type, items) + sizeof(void *),                           \
		      "a list's count follows its pointer")
#define AT(type, member) .offset = offsetof(struct type, member)
/* Fields of later versions, too, are ignored. */
#define NAMES(table)                                                                               \
	{                                                                                          \
		(table), COUNT(table)                                                              \
	}
#define OCI_TABLE(keys)                                                                            \
	{                                                                                          \
		(keys), COUNT(keys), "the file", true                                              \
	}

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

JSON_SETTER(oci_u64);    /* struct oci_u64 within min..max */
JSON_SETTER(oci_i64);    /* struct oci_i64 */
JSON_SETTER(oci_u32);    /* uint32_t within min..max; max 0: OCI_ID_MAX */
JSON_SETTER(oci_s64);    /* int64_t */
JSON_SETTER(oci_i32);    /* int32_t */
JSON_SETTER(oci_text);   /* const char *; empty: NULL */
JSON_SETTER(oci_path);   /* likewise, absolute */
JSON_SETTER(oci_paths);  /* struct strings, each absolute */
JSON_SETTER(oci_name);   /* uint32_t; `detail` is a struct oci_names */
JSON_SETTER(oci_bit);    /* likewise, of a list: one bit more */
JSON_SETTER(oci_values); /* likewise: const uint32_t *, and behind it its count */
JSON_SETTER(oci_set);    /* const struct oci_set *; empty: NULL */
JSON_SETTER(oci_ids);    /* const uint32_t *, and behind it its count */

/* "-12": one sign, then digits only. */
int oci_parse_i64(const char *text, int64_t *out, struct cj_error *err);

struct oci_object {
	const struct json_record *record;
	size_t size; /* of an item in a list: at `offset` is its pointer, behind it the count */
	/* NULL, or what no row can say alone. */
	int (*check)(const struct json_reader *in, const struct json_node *node, void *object,
		     struct cj_error *err);
};
/* A check: the object's first member, bool is_given, becomes true. */
int oci_mark_given(const struct json_reader *in, const struct json_node *node, void *object,
		   struct cj_error *err);
int json_read_oci_object(const struct json_reader *in, const struct json_key *k,
			 const struct json_node *node, void *record, struct cj_error *err);
int json_read_oci_item(const struct json_reader *in, const struct json_key *k,
		       const struct json_node *node, void *record, struct cj_error *err);
/* struct oci_pairs. */
int json_read_oci_pairs(const struct json_reader *in, const struct json_key *k,
			const struct json_node *node, void *record, struct cj_error *err);
/* Takes only what asks for nothing: null, false, 0, -1, "", [] and {}. */
int json_read_oci_refused(const struct json_reader *in, const struct json_key *k,
			  const struct json_node *node, void *record, struct cj_error *err);

/* "FILE:LINE:COLUMN: WITHIN: TEXT", for checks. */
int oci_reject(const struct json_reader *in, const struct json_node *node, struct cj_error *err,
	       const char *fmt, ...) __attribute__((warn_unused_result, format(printf, 4, 5)));

/* A whole file: capped in size, parsed, read. */
int oci_file_read(const char *name, const char *text, size_t size, struct arena *a,
		  const struct oci_object *object, void *out, struct cj_error *err);
