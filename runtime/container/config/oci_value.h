/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci_value - the values of which a config.json consists.
 *
 * Zeroed memory is "not given" in each of them.  The rows' functions are for the tables of this
 * room only.
 */
#pragma once

#include <assert.h>

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
/* With a struct oci_names, a struct json_record, the sentence that says why not. */
#define OCI_NAME(names)     JSON_TAKES_STRING, .set = json_set_oci_name, .detail = &(names)
#define OCI_BITS(names)     OCI_STRING, .is_list = true, .set = json_set_oci_bit, .detail = &(names)
#define OCI_RECORD(record)  OCI_OBJECT, .read = json_read_record, .detail = &(record)
#define OCI_RECORDS(record) OCI_OBJECT, .is_list = true, .read = json_read_item, .detail = &(record)
#define OCI_NAMED(record)   OCI_OBJECT, .read = json_read_named, .detail = &(record)
#define OCI_REFUSED(why)    JSON_TAKES_ANY, .read = json_read_oci_refused, .detail = (why)

#define AT(type, member)           .offset = offsetof(struct type, member)
#define ITEMS(type, member, count) AT(type, member), .known = offsetof(struct type, count)
#define LIST(type, member)         ITEMS(type, member.items, member.count)
#define NAMES(table)                                                                               \
	{                                                                                          \
		(table), COUNT_OF(table)                                                           \
	}
/* Fields of later versions are ignored. */
#define OCI_TABLE(rows, ...)                                                                       \
	{                                                                                          \
		.keys = (rows), .count = COUNT_OF(rows), .name = "the file",                       \
		.ignores_unknown = true, __VA_ARGS__                                               \
	}

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
JSON_SETTER(oci_values); /* likewise: const uint32_t *, one more item */
JSON_SETTER(oci_set);    /* const struct oci_set *; empty: NULL */
JSON_SETTER(oci_ids);    /* const uint32_t *, one more item */
JSON_READER(oci_pairs);  /* struct oci_pairs */
/* Takes only what asks for nothing: null, false, 0, -1, "", [] and {}. */
JSON_READER(oci_refused);
/* The record's first member, bool is_given, becomes true. */
JSON_CHECK(oci_given);

/* "FILE:LINE:COLUMN: WITHIN: TEXT", for checks. */
int oci_reject(const struct json_reader *in, const struct json_node *node, struct cj_error *err,
	       const char *fmt, ...) __attribute__((warn_unused_result, format(printf, 4, 5)));

/* A whole file: capped in size, parsed, read into a struct of `out_size` bytes; or nothing. */
int oci_file_read(const char *name, const char *text, size_t size, struct arena *a,
		  const struct json_record *record, void *out, size_t out_size,
		  struct cj_error *err);
