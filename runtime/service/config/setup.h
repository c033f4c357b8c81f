/* SPDX-License-Identifier: Apache-2.0 */
/*
 * setup - the configuration in force: the file, if there is one, then the options.  Acts: reads the
 * file.  Called at the start, and again at SIGHUP.
 */
#pragma once

#include "runtime/base/error.h"
#include "runtime/service/config/serve_options.h"

/* Without the tokens (tokens.h); malloc'ed.  Fails: also when the file of --config is missing. */
int setup_read(const struct serve_options *o, struct service_config **out, struct cj_error *err);
void setup_free(struct service_config **c);
