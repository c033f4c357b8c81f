/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcp_headers - the headers of a message over HTTP, which repeat members of its body.  Pure.
 *
 * A proxy may decide by the headers, so they must say what the body says.
 * https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http
 */
#pragma once

#include "runtime/run/mcp/mcp_message.h"

/* NULL: the request has no such header. */
struct mcp_headers {
	const char *version; /* MCP-Protocol-Version */
	const char *method;  /* Mcp-Method */
	const char *name;    /* Mcp-Name */
};

/*
 * mcp_headers_check - the headers of a request of 2026-07-28.
 *
 * `version`: the one in its body.  Fails: a header is missing, or differs from the body.
 */
int mcp_headers_check(const struct mcp_headers *h, const struct mcp_message *m, const char *version,
		      struct mcp_fault *fault);

/* "a/b;q=0.1, c/d": does the value of Accept allow this media type?  NULL allows each. */
bool mcp_headers_accept(const char *accept, const char *type);
