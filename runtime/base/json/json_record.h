/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_record - a JSON object into a C struct and back, by a table of keys.
 *
 * A row is a key: which JSON values it takes, where they go, and within which limits.  The reader
 * refuses unknown keys, values of another type and missing required keys.  json_parse() has
 * refused duplicate keys before.  Each message has the place and the key's full name:
 *
 *	serve.json:4:12: callers.uid:7.pids must be a string or a number, not true or false
 */
#pragma once

#include "runtime/base/byte_queue.h"
#include "runtime/base/json/json.h"

#define JSON_PATH_MAX 160

/* Where a tree comes from and where the record's texts are kept. */
struct json_reader {
	const char *file; /* as the user knows it */
	struct arena *arena;
	void *context;              /* of the table's own functions */
	char within[JSON_PATH_MAX]; /* the keys above this object: "callers.uid:7"; "": none */
};

/* The types that a key takes; of a list, the types of its items. */
enum {
	JSON_TAKES_ANY = 0,                /* `read` checks the type */
	JSON_TAKES_NULL = 1u << JSON_NULL, /* `set` gets NULL */
	JSON_TAKES_BOOL = 1u << JSON_BOOL, /* `set` gets "true" or "false" */
	JSON_TAKES_NUMBER = 1u << JSON_NUMBER,
	JSON_TAKES_STRING = 1u << JSON_STRING,
	JSON_TAKES_ARRAY = 1u << JSON_ARRAY,
	JSON_TAKES_OBJECT = 1u << JSON_OBJECT,
	JSON_NULL_IS_ABSENT = 1u << JSON_TYPE_COUNT, /* Go writes an empty list as null */
};

struct json_key {
	const char *name;
	unsigned types;
	const char *wanted; /* what "KEY must be ..." says; NULL: made from the types */
	bool is_required;

	bool is_list;         /* an array; `set` or `read` is called for each item */
	bool replaces;        /* the struct strings at `offset` is emptied first */
	const char *if_empty; /* why a list must not be empty; NULL: it may be */

	size_t offset;      /* of the field in the record */
	uint64_t min, max;  /* a number's range, a text's length; max 0: no limit */
	size_t known;       /* offset of the bool that says whether there is a value, or of the
				 number of items that the field points to */
	const void *detail; /* of the table's own functions */

	/* One of the two.  `set` takes the value as text, and its messages get place and key in
	 * front.  `read` takes the node, and its messages have them already. */
	int (*set)(const struct json_reader *in, const struct json_key *k, const char *text,
		   void *record, struct cj_error *err);
	int (*read)(const struct json_reader *in, const struct json_key *k,
		    const struct json_node *node, void *record, struct cj_error *err);
	/* NULL: json_record_write() leaves the key out. */
	void (*write)(struct json_writer *w, const struct json_key *k, const void *record);
};

struct json_record {
	const struct json_key *keys;
	size_t count;         /* at most JSON_KEYS_MAX */
	const char *name;     /* of the outermost object, in messages: "the configuration" */
	bool ignores_unknown; /* another version may have written it */
	size_t stride;        /* of a table whose rows only begin with a key; 0: they are keys */
	size_t size;          /* of the struct, for json_read_item() */
	/* What no row can say alone; NULL: nothing. */
	int (*check)(const struct json_reader *in, const struct json_node *node, void *record,
		     struct cj_error *err);
};
#define JSON_KEYS_MAX 64
#define JSON_RECORD(table, called)                                                                 \
	{                                                                                          \
		(table), COUNT_OF(table), (called)                                                 \
	}

/* Heads of functions. */
#define JSON_SETTER(type)                                                                          \
	int json_set_##type(MAYBE_UNUSED const struct json_reader *in,                             \
			    MAYBE_UNUSED const struct json_key *k, MAYBE_UNUSED const char *text,  \
			    MAYBE_UNUSED void *record, MAYBE_UNUSED struct cj_error *err)
#define JSON_READER(type)                                                                          \
	int json_read_##type(MAYBE_UNUSED const struct json_reader *in,                            \
			     MAYBE_UNUSED const struct json_key *k,                                \
			     MAYBE_UNUSED const struct json_node *node, MAYBE_UNUSED void *record, \
			     MAYBE_UNUSED struct cj_error *err)
#define JSON_CHECK(type)                                                                           \
	int json_check_##type(MAYBE_UNUSED const struct json_reader *in,                           \
			      MAYBE_UNUSED const struct json_node *node,                           \
			      MAYBE_UNUSED void *record, MAYBE_UNUSED struct cj_error *err)
#define JSON_WRITER(type)                                                                          \
	void json_write_##type(struct json_writer *w, const struct json_key *k, const void *record)

/*
 * json_record_read - the members of `node` into *record, which has its defaults already.
 *
 * Texts that it points to live in the arena that json_parse() was given.
 */
int json_record_read(const struct json_reader *in, const struct json_node *node,
		     const struct json_record *table, void *record, struct cj_error *err);

/* A row's `read`: an object whose keys are the struct json_record at `detail`, into the struct at
 * `offset`. */
JSON_READER(record);

/* Likewise an item of a list: one more struct, zeroed before.  The field points to the first. */
JSON_READER(item);
/* Likewise an object of any names and such structs, which begin with their name. */
JSON_READER(named);

/* One more zeroed item for the array of a field; NULL: no memory. */
void *json_add_item(const struct json_reader *in, const struct json_key *k, size_t size,
		    void *record);

/* One member by its row, for a table that has rows of another kind. */
int json_key_read(const struct json_reader *in, const struct json_key *k,
		  const struct json_node *node, void *record, struct cj_error *err);

/* The reader of the object that stands at `key`. */
struct json_reader json_below(const struct json_reader *in, const char *key);

/* "FILE:LINE:COLUMN: unknown key 'KEY'", with `near` in the hint unless it is NULL. */
int json_reject_unknown(const char *file, const struct json_node *member, const char *key,
			const char *near, struct cj_error *err) __attribute__((warn_unused_result));

/* An object with a member for each key. */
void json_record_write(struct json_writer *w, const struct json_record *table, const void *record);

/* --- fields ------------------------------------------------------------------------ */

static inline void *json_field(const struct json_key *k, void *record)
{
	return (char *)record + k->offset;
}

JSON_SETTER(u64);
JSON_SETTER(known_u64); /* NULL is no value */
JSON_SETTER(int);       /* or unsigned; NULL is -1 */
JSON_SETTER(bool);
JSON_SETTER(string);    /* const char *, as it stands in the tree */
JSON_SETTER(strings);   /* struct strings: one more */
JSON_SETTER(chars);     /* char[max + 1] */
JSON_SETTER(chars_cut); /* likewise, without what does not fit */
JSON_SETTER(duration);  /* uint64_t, in ms; `min` and `max` are, too */
JSON_SETTER(name);      /* an enum; `detail` has its `max` names */
JSON_WRITER(u64);
JSON_WRITER(known_u64);
JSON_WRITER(int); /* below 0: null */
JSON_WRITER(bool);
JSON_WRITER(string);
JSON_WRITER(chars);
JSON_WRITER(name);

/* Bytes of any kind: at least `min`, at most `max` (EFBIG).  Here max 0 allows none: a limit
 * that was forgotten refuses. */
JSON_READER(base64);
/* "text", or {"base64": "..."}. */
JSON_READER(blob);
