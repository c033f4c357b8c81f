/* SPDX-License-Identifier: Apache-2.0 */
/*
 * settings - the one table: a row is a `run` option, a profile key, a line of
 * --help, an entry of cejail(1), of the completions and of the schema.
 */
#pragma once

#include "profiles/config.h"

struct json_writer;

enum setting_kind { SETTING_FLAG, SETTING_VALUE, SETTING_LIST };

/*
 * What a request over the service's API may do with a key.  The first fails closed: a request
 * can't use a new row until the row says so.
 */
enum setting_scope {
	SCOPE_NO_REQUEST,
	SCOPE_RUN,  /* concerns the program alone: any jail of the profile serves */
	SCOPE_EXEC, /* the program, too, but an interpreter that waits already has it */
	SCOPE_JAIL, /* the jail's shape */
	SCOPE_HOST, /* the jail's shape, and names something of the host */
};

struct setting {
	const char *option; /* long option without "--"; NULL: a profile key only */
	const char *key;    /* dotted profile key; NULL: an option only */
	char letter;        /* short option or 0 */
	enum setting_kind kind;
	const char *value;     /* how the value is called in --help: "SIZE"; NULL for flags */
	bool value_optional;   /* --json[=FILE] */
	const char *value_end; /* the next argument is the value if it ends so; NULL: it never is */
	int (*parse)(struct config *c, const struct setting *s, const char *text,
		     struct cj_error *err); /* one value (a list is called once per item) */
	size_t offset;                      /* of the field in struct config */
	const char *help;                   /* one line */
	enum setting_scope scope;

	bool is_number;             /* a profile may give it as a JSON number, too */
	uint64_t min, max;          /* sizes and counts: what can work */
	const char *const *choices; /* of an enum: its names, and what the refusal says */
	unsigned choice_count;
	const char *not_a_choice;
	/* Puts `"key": value` into an open object, or nothing where it is unset; NULL: not shown.
	 */
	void (*write)(struct json_writer *w, const struct config *c, const struct setting *s);
};

/* A value must follow the option. */
static inline bool setting_needs_value(const struct setting *s)
{
	return s->kind != SETTING_FLAG && !s->value_optional;
}

extern const struct setting settings[];
extern const size_t settings_count;

const struct setting *setting_by_option(const char *name); /* NULL: none */
const struct setting *setting_by_letter(char letter);
const struct setting *setting_by_key(const char *dotted);

/*
 * setting_set - one value from text; the message begins with how the user named it
 * ("--memory" or "profile.json:4:12: memory").  Copies the text.  NULL: a flag, or an
 * optional value, that was given without one.
 */
int setting_set(struct config *c, const struct setting *s, const char *named, const char *text,
		struct cj_error *err);

/* The nearest option, or key, for "did you mean"; NULL when nothing is near. */
const char *setting_suggest_option(const char *name);
const char *setting_suggest_key(const char *name);
