/* SPDX-License-Identifier: Apache-2.0 */
/*
 * review - warnings about a valid configuration that probably does not do what its author wants,
 * for `serve --check`.  Acts: reads the profiles that it names.
 */
#pragma once

#include <sys/types.h>

#include "runtime/service/config/service_config.h"

/* Calls `warn` with one line for each; `own_uid` is the service's.  Fails: no memory. */
int review_config(const struct service_config *c, uid_t own_uid, void (*warn)(const char *line),
		  struct cj_error *err);
