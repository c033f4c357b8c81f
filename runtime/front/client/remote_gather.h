/* SPDX-License-Identifier: Apache-2.0 */
/*
 * remote_gather - `run --remote`: reads everything that the request contains: code, files, standard
 * input, arguments as data, variables.
 */
#pragma once

#include "runtime/front/client/remote.h"
#include "runtime/front/client/remote_request.h"

#define REMOTE_INPUT_MAX (64u << 20)  /* standard input, and each file */
#define REMOTE_FILES_MAX (128u << 20) /* all files together */

/*
 * remote_gather - fill *out.
 *
 * Data read lives in the arena of call->config, which has no profile.  An empty directory is not
 * sent, and *warnings says so.  Standard input of an exec is not read: remote_input.h sends it.
 * Fails: among others, a symbolic link in a directory, whose target the service could not know.
 */
int remote_gather(const struct remote_call *call, struct remote_request *out,
		  struct strings *warnings, struct cj_error *err);

/*
 * remote_gather_settings - the options as settings of a request, without contents of files.
 *
 * Variables get their values, and host paths become absolute.  *out_wanted has the rows of
 * settings[] that were given; it lives in the arena of `c`.
 */
int remote_gather_settings(struct config *c, const struct options *o, const bool **out_wanted,
			   struct cj_error *err);
