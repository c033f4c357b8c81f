/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcp_options - the arguments of `cejail mcp`.  Acts: reads --env-file and the environment.
 *
 * The options of `cejail run` that describe a jail apply to every call.  They are the only source
 * of host paths, connections and variables, and the most that a call may use.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "profiles/config.h"
#include "runtime/run/options/options.h"
#include "runtime/run/mcp/mcp_arguments.h"

#define MCP_PROFILES_MAX 16

struct mcp_options {
	struct config config; /* the options of `run`, without a profile; owns all texts */
	struct options run;
	struct mcp_given given;
	const char *profiles[MCP_PROFILES_MAX + 1]; /* in the order given; NULL-terminated */
	const char *prefix;                         /* of the tools' names; "": none */
	const char *files;                          /* NULL: none */
	const char *text_size;                      /* NULL: not given */
	uint64_t text_max;                          /* struct mcp_tool */
	const char *host;                           /* --print-config; NULL: not given */
	const char *url;                            /* for it; NULL: not given */
	const char **others;                        /* the arguments without --print-config */
	bool wants_help;
};

/*
 * mcp_options_parse - read the arguments after the verb.
 *
 * Owns: the caller calls mcp_options_fini(), also after a failure.
 */
int mcp_options_parse(const char *const *args, const char *const *caller_env, struct mcp_options *o,
		      struct cj_error *err);
void mcp_options_fini(struct mcp_options *o);

void mcp_options_print_help(void);
