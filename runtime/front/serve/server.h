/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server - the life of `cejail serve`: it opens what it needs, turns the loop, ends.
 *
 *	start    sockets, the HTTP library, the pool; READY=1 when the first probe has succeeded
 *	reload   SIGHUP: a new configuration, or, if it is bad, the old one and a line in the log
 *	drain    SIGTERM, SIGINT: new runs are refused, those there are may end, for a while
 *	end      no run is left; or the drain time is over, or a second signal came, and all
 *	         runs were cancelled
 */
#pragma once

#include "runtime/base/error.h"
#include "runtime/front/serve/api/api.h"
#include "runtime/front/serve/config/serve_options.h"
#include "runtime/front/serve/worker/spawner.h"

/* Takes the configuration and the spawner.  Returns when the service has ended; fails with why. */
int server_run(const struct serve_options *o, struct service_config *config,
	       struct spawner *spawner, const struct api_filter *filter, struct cj_error *err);
