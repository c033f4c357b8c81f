/* SPDX-License-Identifier: Apache-2.0 */
/*
 * remote_gather - `run --remote`: reads everything that goes to the service: code, files,
 * standard input, arguments as data, variables.
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
 * `c` has the options and no profile; all that is read lives in its arena.  What is sent changed
 * or not at all is a sentence in *warnings (an empty directory); a symbolic link in a directory
 * is refused, because no service could tell what it would mean there.
 */
int remote_gather(struct config *c, const struct options *o, const struct invocation *inv,
		  struct remote_request *out, struct strings *warnings, struct cj_error *err);
