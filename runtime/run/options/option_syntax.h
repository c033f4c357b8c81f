/* SPDX-License-Identifier: Apache-2.0 */
/*
 * option_syntax - the syntax of long options on all command lines of cejail.  Pure.
 *
 * "--name=value" or "--name value".  Names cannot be abbreviated, so that a new option never
 * changes the meaning of an existing command line.  The caller has the table of names.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

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
