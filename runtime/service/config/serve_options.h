/* SPDX-License-Identifier: Apache-2.0 */
/*
 * serve_options - the arguments of `cejail serve`.
 *
 * The options are those rows of the tables of service_config.h that have one, and the few below.
 * They are kept as text and applied after each reading of the file, so that they hold after
 * SIGHUP, too.
 */
#pragma once

#include "runtime/base/error.h"
#include "runtime/service/config/service_config.h"

#define SERVE_OPTIONS_MAX 64 /* given in one command line */

struct serve_option {
	const struct service_key *key;
	const char *value; /* borrowed from the arguments */
};

struct serve_options {
	const char *config; /* NULL: SERVICE_CONFIG_FILE, or the user's, if there is one */
	bool wants_help;
	bool check_only; /* read and check the configuration, run nothing */
	bool until_idle; /* end when nobody uses it: server.h */
	struct serve_option given[SERVE_OPTIONS_MAX];
	size_t count;
};

/* `args` ends with a NULL.  Fails: unknown options (the nearest one is the hint), operands. */
int serve_options_parse(const char *const *args, struct serve_options *out, struct cj_error *err);
/* Overrides the values of the file. */
int serve_options_apply(const struct serve_options *o, struct service_config *c,
			struct cj_error *err);
/* `cejail serve --help`: usage, options, and the keys of the file; to standard output. */
void serve_options_print_help(void);

/* Without the tokens (tokens.h); malloc'ed.  Fails: also when the file of --config is missing. */
int serve_options_load(const struct serve_options *o, struct service_config **out,
		       struct cj_error *err);
void service_config_free(struct service_config **c);
