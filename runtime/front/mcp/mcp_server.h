/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcp_server - the life of the server: one thread, one epoll loop over the client, the runs and
 * signals.  Acts.
 *
 *	a line of the client -> mcp_protocol: answered at once, or a call
 *	a call -> mcp_arguments: a request -> mcp_run: here, or at a service
 *	its events -> progress; its result -> mcp_answer -> the client
 *
 * The end of standard input, SIGTERM, SIGINT and SIGHUP end the server, and all its jails.
 */
#pragma once

#include "runtime/front/mcp/mcp_options.h"
#include "runtime/front/mcp/mcp_setup.h"
#include "runtime/service/worker/spawner.h"

/* Takes the spawner; it is not started if runs take place at a service. */
int mcp_server_run(const struct mcp_options *o, const struct mcp_setup *setup,
		   struct spawner *spawner, struct cj_error *err);
