/* SPDX-License-Identifier: Apache-2.0 */
/*
 * own_options - the options of a verb that also takes options of `cejail run`.  Pure.
 *
 * A verb has a table of its own options.  All other arguments are left for options_scan().
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "runtime/base/arena.h"
#include "runtime/base/error.h"

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

/* Prints the rows for --help. */
void own_options_print_help(const struct own_option *rows, size_t count);
