/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_prose - sentences for a model, one after the other.  Pure. */
#pragma once

#include <stddef.h>

#define MCP_PROSE_MAX 2048

struct mcp_prose {
	char text[MCP_PROSE_MAX];
	size_t size;
};

/* Appends to the text; what has no room is cut. */
void mcp_say(struct mcp_prose *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
