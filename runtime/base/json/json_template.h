/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_template - JSON that a file shows as it is written, with values that the program fills in.
 *
 *	"{name}"                     the value, as JSON; without one the member is left out
 *	"text {name} text"           the value in a text
 *	{"if": name, "then": VALUE}  VALUE; left out where the value is false or there is none
 *	{"say": [TEXT, {"if": name, "say": TEXT}]}
 *	                             one text of several parts
 *	"use NAME": true             the members of NAME in "groups"
 *	"//": "..."                  a comment
 *
 * The file is a part of the program, and its names are the caller's: an unknown one is a bug.
 */
#pragma once

#include "runtime/base/json/json.h"

enum json_value_kind {
	JSON_VALUE_NONE,
	JSON_VALUE_TEXT,
	JSON_VALUE_BOOL,
	JSON_VALUE_U64,
	JSON_VALUE_MILLI,
	JSON_VALUE_TEXTS
};

struct json_value {
	const char *name;
	enum json_value_kind kind;
	const char *text;
	uint64_t number; /* BOOL, U64; MILLI: thousandths */
	/* TEXTS, a column of a table: the first, the bytes from one to the next, how many */
	const char *const *texts;
	size_t stride, count;
};

struct json_template {
	const char *name;             /* for messages */
	const struct json_node *root; /* the file, as json_parse() reads it */
	const struct json_value *values;
	size_t nvalues;
};

/* Writes the member `member` of the file, as one value.  Fails: ENOMEM. */
int json_template_write(struct json_writer *w, const struct json_template *t, const char *member,
			struct cj_error *err);
