/* SPDX-License-Identifier: Apache-2.0 */
/*
 * remote_gather - `run --remote`: reads everything that the request contains: code, files, standard
 * input, arguments as data, variables.
 */
#pragma once

#include "profiles/plan/plan.h"
#include "runtime/front/cli/arguments/options.h"
#include "runtime/front/cli/remote/remote_request.h"

#define REMOTE_INPUT_MAX (64u << 20)  /* standard input, and each file */
#define REMOTE_FILES_MAX (128u << 20) /* all files together */

/*
 * remote_gather - fill *out.
 *
 * `c` has the options without a profile; data read lives in its arena.  An empty directory is not
 * sent, and *warnings says so.
 * Fails: among others, a symbolic link in a directory, whose target the service could not know.
 */
int remote_gather(struct config *c, const struct options *o, const struct invocation *inv,
		  struct remote_request *out, struct strings *warnings, struct cj_error *err);
