/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options - the arguments of `cejail run`, split into options and operands.
 *
 * The syntax is the usual one, without abbreviations: options end at the first operand, or at "--";
 * "--name=value" and "--name value"; letters may be combined ("-qv") and may have their value
 * attached ("-m64M").  The options are rows of settings[] in profiles/settings.h; only --help is
 * added here.
 */
#pragma once

#include "profiles/settings.h"

/* One option on the command line. */
struct given {
	const struct setting *setting;
	const char *named; /* "--memory", "-m": for messages */
	const char *value; /* NULL: none was given */
};

struct options {
	struct given *items;
	size_t count;
	const char *const *operands; /* the rest; NULL-terminated, borrowed from the arguments */
	bool has_separator;          /* "--" stood before them */
	bool wants_help;
};

/*
 * options_scan - split the arguments; values are not checked yet.
 *
 * `verb`: the command of cejail that takes them, for hints.
 * Fails: an unknown option (with the nearest one as the hint), a missing value.  *out then has the
 * options before it: they may say where the error is to be delivered.
 */
int options_scan(const char *verb, const char *const *args, struct arena *a, struct options *out,
		 struct cj_error *err);

/* Refuses the first option that 'cejail VERB' does not take. */
int options_check(const struct options *o, bool (*takes)(const struct setting *), const char *verb,
		  struct cj_error *err);

/*
 * options_expand - replace every --env-file by its variables.  They go before all other options,
 * so that --env overrides them at any position.
 *
 * `caller_env`: the caller's environment, for a NAME without a value.
 */
int options_expand(struct options *o, const char *const *caller_env, struct arena *a,
		   struct cj_error *err);

/* The value of the last `option` given; NULL: none. */
const char *options_find(const struct options *o, const char *option);
/* Was it given, with or without a value? */
bool options_has(const struct options *o, const char *option);

/*
 * The options of delivery (--json, --result-fd, ...) are applied first, so that a later error is
 * delivered there.  Then the caller reads the profile, and applies the rest.  Both skip --profile.
 */
int options_apply_delivery(const struct options *o, struct config *c, struct cj_error *err);
int options_apply_rest(const struct options *o, struct config *c, struct cj_error *err);

/* Prints the options for `cejail run --help` in 80 columns: all, or those that are `wanted`. */
void options_print_help(bool (*wanted)(const struct setting *s));
