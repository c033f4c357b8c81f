/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json - read and write JSON; the only files that know yajl.
 *
 * The reader trusts nothing: it caps bytes and depth before it allocates, wants
 * strict UTF-8, refuses duplicate keys, \u0000, lone surrogates, comments and
 * trailing data, and keeps numbers as their text for parse_u64() and friends.
 * Errors name line and column: "profile.json:3:14: duplicate key 'memory'".
 */
#pragma once

#include "runtime/base/arena.h"
#include "runtime/base/byte_queue.h"
#include "runtime/base/error.h"

#define JSON_DEPTH_MAX 32
#define JSON_BYTES_MAX (1u << 20) /* a profile is a page, an OCI seccomp file 20 kB */
#define JSON_NODES_MAX (1u << 17) /* values: 10 MB of memory at most */

enum json_type {
	JSON_NULL,
	JSON_BOOL,
	JSON_NUMBER,
	JSON_STRING,
	JSON_ARRAY,
	JSON_OBJECT,
	JSON_TYPE_COUNT
};

/* A value in a tree; everything lives in the arena that json_parse() was given. */
struct json_node {
	enum json_type type;
	unsigned line, column;         /* where it begins, from 1, in characters */
	unsigned key_line, key_column; /* where its key begins; 0: it has none */
	size_t begin, end;             /* its bytes in the text */
	bool boolean;                  /* JSON_BOOL */
	const char *key;               /* in an object: this member's key, else NULL */
	const char *text;        /* JSON_STRING: the string; JSON_NUMBER: its digits as written */
	struct json_node *child; /* JSON_ARRAY, JSON_OBJECT: first member or NULL */
	struct json_node *next;  /* next sibling or NULL */
	size_t count;            /* members */
};

/*
 * json_parse - text to tree.  `name` is the file as the user knows it, for messages.
 * Fails: EINVAL with name:line:column; EFBIG past JSON_BYTES_MAX or JSON_NODES_MAX; ENOMEM.
 */
int json_parse(const char *name, const char *text, size_t size, struct arena *a,
	       const struct json_node **out, struct cj_error *err);

/*
 * json_parse_capped - the same for a text whose size the caller has capped: its strings are copied
 * once, and once more while one with escapes is read.
 */
int json_parse_capped(const char *name, const char *text, size_t size, struct arena *a,
		      const struct json_node **out, struct cj_error *err);

/* The member called `key`, or NULL. */
const struct json_node *json_get(const struct json_node *object, const char *key);

/*
 * For texts of another process, which may lack anything: the member of this type.  NULL or false:
 * there is none, or `object` is NULL or not an object.
 */
const struct json_node *json_get_typed(const struct json_node *object, const char *key,
				       enum json_type type);
const char *json_get_text(const struct json_node *object, const char *key);
bool json_get_u64(const struct json_node *object, const char *key, uint64_t *out);
bool json_is_true(const struct json_node *object, const char *key);
/* The number, else 0. */
uint64_t json_get_number(const struct json_node *object, const char *key);
/* The first item of the array. */
const struct json_node *json_get_items(const struct json_node *object, const char *key);

/* The bytes of a value as they stand in `text`, which was parsed. */
struct blob json_written(const struct json_node *node, const char *text);

/* "NAME:LINE:COLUMN: TEXT".  Returns -EINVAL. */
int json_refuse(const char *name, unsigned line, unsigned column, struct cj_error *err,
		const char *fmt, ...) __attribute__((warn_unused_result, format(printf, 5, 6)));

/* The same with the place of a node, or of a member's key. */
#define json_reject(name, node, err, ...)                                                          \
	json_refuse(name, (node)->line, (node)->column, err, __VA_ARGS__)
#define json_reject_key(name, member, err, ...)                                                    \
	json_refuse(name, (member)->key_line, (member)->key_column, err, __VA_ARGS__)

const char *json_type_name(enum json_type type);

/*
 * The writer: one value, streamed into memory.  Calls after a failure, or with NULL, do nothing,
 * so a caller checks once, at json_writer_take().  Strings must be strict UTF-8;
 * json_put_bytes() picks "text" or "base64" for bytes of unknown origin.
 */
struct json_writer;

struct json_writer *json_writer_create(bool pretty); /* NULL: no memory */
void json_writer_destroy(struct json_writer **w);
#define auto_json_writer __attribute__((cleanup(json_writer_destroy)))

void json_open_object(struct json_writer *w);
void json_close_object(struct json_writer *w);
void json_open_array(struct json_writer *w);
void json_close_array(struct json_writer *w);
void json_put_key(struct json_writer *w, const char *key);
void json_put_string(struct json_writer *w,
		     const char *text); /* NULL writes null; bad UTF-8 becomes U+FFFD */
void json_put_u64(struct json_writer *w, uint64_t value);
void json_put_i64(struct json_writer *w, int64_t value);
void json_put_bool(struct json_writer *w, bool value);
void json_put_null(struct json_writer *w);
void json_put_milli(struct json_writer *w, uint64_t thousandths); /* 1500 -> 1.5 */

/* A member of the open object. */
void json_member_text(struct json_writer *w, const char *key, const char *text); /* NULL: null */
void json_member_filled(struct json_writer *w, const char *key,
			const char *text); /* empty: null, too */
void json_member_given(struct json_writer *w, const char *key,
		       const char *text); /* NULL: there is none */
void json_member_u64(struct json_writer *w, const char *key, uint64_t value);
void json_member_known(struct json_writer *w, const char *key, bool is_known,
		       uint64_t value); /* null when it is not known: not 0 */
void json_member_milli(struct json_writer *w, const char *key, uint64_t thousandths);
void json_member_bool(struct json_writer *w, const char *key, bool value);
/* A member whose value is open until json_close_object() or json_close_array(). */
void json_member_object(struct json_writer *w, const char *key);
void json_member_array(struct json_writer *w, const char *key);
/* An already parsed tree. */
void json_member_node(struct json_writer *w, const char *key, const struct json_node *node);
/* An array of at most `count` strings; a NULL among them ends it. */
void json_member_texts(struct json_writer *w, const char *key, const char *const *texts,
		       size_t count);

/* Inside an object: "text": ... when the bytes are strict UTF-8 without NUL, else "base64": ... */
void json_put_bytes(struct json_writer *w, const void *bytes, size_t size);

/* A value that is JSON already, byte for byte: json_parse() has accepted it. */
void json_put_raw(struct json_writer *w, const char *text, size_t size);

/* Writes an already parsed tree (profiles shown, --dry-run). */
void json_put_node(struct json_writer *w, const struct json_node *node);

/*
 * json_writer_take - the finished text (no newline; a NUL follows), borrowed from the writer until
 * destroyed.
 * Fails: ENOMEM, or EINVAL when a call was out of order (a bug).
 */
int json_writer_take(struct json_writer *w, struct blob *out, struct cj_error *err);

/* The finished text and a newline, malloc'ed.  NULL: no memory, or as json_writer_take() fails. */
char *json_writer_line(struct json_writer *w, size_t *out_size);

/*
 * json_print - write the finished text and a newline to standard output.
 *
 * Fails: as json_writer_take().  Whether the output could be written, stdout's error flag says.
 */
int json_print(struct json_writer *w, struct cj_error *err);
