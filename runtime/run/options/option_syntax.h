/* SPDX-License-Identifier: Apache-2.0 */
/*
 * option_syntax - what the options of all command lines of cejail have in common: their syntax, the
 * tables of a verb's own options, and the layout of --help.
 *
 * "--name=value" or "--name value".  Names cannot be abbreviated, so that a new option never
 * changes the meaning of an existing command line.
 */
#pragma once

#include "runtime/base/arena.h"
#include "runtime/base/error.h"

/* An argument "--NAME" or "--NAME=VALUE"; its strings are borrowed from the argument. */
struct long_option {
	const char *name; /* without "--"; ends after name_size bytes */
	size_t name_size;
	const char *value; /* what follows "="; NULL: there is no "=" */
};

/* False: `arg` is not a long option ("--" is not one). */
bool option_split(const char *arg, struct long_option *out);

bool option_has_name(const struct long_option *o, const char *name);

/*
 * option_take_value - the value of an option: `attached`, or else the next argument, even if it
 * looks like an option.
 *
 * `next` points to the remaining arguments, and advances if the value is one of them.
 * `named` and `value_name` are for the message: "--memory", "SIZE".  `verb`: "run".
 * Fails: EINVAL when no argument is left.
 */
int option_take_value(const char *attached, const char *const **next, const char *named,
		      const char *value_name, const char *verb, const char **out,
		      struct cj_error *err);

/* Fails with "unknown option".  The hint has the `nearest` name, or if it is NULL, the --help. */
int option_reject_unknown(const char *named, const char *nearest, const char *verb,
			  struct cj_error *err);

/*
 * The options of a verb that also takes options of `cejail run`.  All other arguments are left for
 * options_scan().
 */
struct own_option {
	const char *name;  /* without "--" */
	char letter;       /* 0: none */
	const char *value; /* how --help calls it; NULL: a flag */
	const char *help;
	size_t offset; /* of a const char * in the verb's structure; of a flag, of a bool */
};

struct own_options {
	const char *verb; /* for messages: "mcp" */
	const struct own_option *rows;
	size_t count;
	void *out; /* the verb's structure */
};

/* The other arguments, in their order; NULL-terminated. */
struct own_rest {
	const char **args;
	size_t count;
	const char **all; /* NULL; or room for all arguments, without the option `left_out` */
	size_t nall;
	const char *left_out;
};

/* Room for as many arguments as `args` has. */
int own_rest_init(struct own_rest *rest, const char *const *args, struct arena *a,
		  struct cj_error *err);

/*
 * own_options_take - take the own options that stand before the first operand or "--".
 *
 * Options of `run`, with their values, are appended to *rest.  *next then points to the operand,
 * the "--" or the NULL.
 * Fails: a value is missing, or one is given to a flag.
 */
int own_options_take(const struct own_options *own, const char *const **next, struct own_rest *rest,
		     struct cj_error *err);

/* Takes the next argument, and its value, if it is an own option. */
int own_options_take_one(const struct own_options *own, const char *const **next, bool *out_is_own,
			 struct cj_error *err);

/* Prints the rows for --help. */
void own_options_print_help(const struct own_option *rows, size_t count);

/*
 * Prints the text of --help after a name of `width` columns that is already printed.  The caller
 * checks standard output for errors once, at the end.
 */
void help_print(int width, const char *text);
