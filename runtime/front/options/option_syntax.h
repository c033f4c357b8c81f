/* SPDX-License-Identifier: Apache-2.0 */
/*
 * option_syntax - how options are written on every command line of cejail.  Pure.
 *
 * "--name=value" or "--name value".  A name is never abbreviated: an option that is added later
 * must not change what an older command line means.  Which names exist is the caller's table.
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

/* False: `arg` is no long option; "--" is none. */
bool option_split(const char *arg, struct long_option *out);

bool option_has_name(const struct long_option *o, const char *name);

/*
 * option_take_value - the value of an option: `attached`, or else the next argument, whatever it
 * looks like.
 *
 * `next` points to the arguments that are still to be read; moves on when the value is one of them.
 * `named` and `value_name` are for the message: "--memory", "SIZE".  `verb`: "run".
 * Fails: EINVAL when no argument is left.
 */
int option_take_value(const char *attached, const char *const **next, const char *named,
		      const char *value_name, const char *verb, const char **out,
		      struct cj_error *err);

/* "unknown option '--NAMED'", with the nearest name as the hint, or NULL: the verb's help. */
int option_reject_unknown(const char *named, const char *nearest, const char *verb,
			  struct cj_error *err);
