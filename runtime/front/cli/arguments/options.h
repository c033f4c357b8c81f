/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options - the words of `cejail run`, split into settings and operands.  Pure, but for
 * options_expand().
 *
 * The grammar is the usual one: options end at the first word that is none, or at "--";
 * "--name=value" and "--name value"; letters may be bundled ("-it") and carry their
 * value ("-m64M").  Which options there are is the table of profiles/settings.h; this
 * file knows none by itself but --help.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "profiles/settings.h"

/* One option as it was given. */
struct given {
	const struct setting *setting;
	const char *named; /* "--memory", "-m": for messages */
	const char *value; /* NULL: none was given */
};

struct options {
	struct given *items;
	size_t count;
	const char *const *operands; /* what follows; NULL-terminated, borrowed from the words */
	bool has_separator;          /* "--" stood before them */
	bool wants_help;
};

/*
 * options_scan - take the words apart; values are not looked at yet.
 *
 * Fails: an unknown option (with the nearest one as hint), a value that is missing.  What stood
 * before the failure is in *out even then, so that the error can go where the result was asked.
 */
int options_scan(const char *const *words, struct arena *a, struct options *out,
		 struct cj_error *err);

/*
 * options_expand - put the variables of every --env-file in its place, before all that was given,
 * so that --env is stronger wherever it stands.  Acts: reads the files.
 *
 * `caller_env`: the caller's, for a NAME without a value.
 */
int options_expand(struct options *o, const char *const *caller_env, struct arena *a,
		   struct cj_error *err);

/* The value of the last `option` given; NULL: none. */
const char *options_find(const struct options *o, const char *option);

/*
 * How the result comes (--json, --result-fd, ...) is applied first, so that whatever fails later
 * is told there; then the profile is read; then all the rest.  --profile is in neither.
 */
int options_apply_delivery(const struct options *o, struct config *c, struct cj_error *err);
int options_apply_rest(const struct options *o, struct config *c, struct cj_error *err);

/* The options part of `cejail run --help`: one entry a row, 80 columns; to standard output. */
void options_print_help(void);
