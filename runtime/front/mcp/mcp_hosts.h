/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_hosts - `--print-config`: how well-known programs are told to start this server.  Pure. */
#pragma once

#include "runtime/base/error.h"
#include "runtime/base/json/json.h"

struct mcp_hosts_server {
	const char *program;     /* the absolute path of cejail */
	const char *const *args; /* after "mcp"; NULL-terminated */
	const char *url;         /* of a service's /mcp, instead of the two; NULL: none */
};

/*
 * mcp_hosts_write - the configuration for `host`, malloc'ed, with a newline at its end.
 *
 * *out_file is where the text belongs.
 * Fails: EINVAL for an unknown host; the hint lists those that are known.
 */
int mcp_hosts_write(const char *host, const struct mcp_hosts_server *server, char **out_text,
		    const char **out_file, struct cj_error *err);
