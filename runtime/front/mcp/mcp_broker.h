/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcp_broker - this program as the child of another cejail, which runs a program with the tools of
 * MCP servers: `mcp broker --tools-from FILE [--calls-fd N] [--quiet]`.
 *
 * It starts the servers, writes {"tools": [...]} to standard output as one line, and closes it.
 * Then it carries out the calls that arrive on the socket N (struct broker_stream) until that is closed,
 * and ends all servers.  Without a socket it ends after the list.
 *
 * It fails before it writes the list if the file is wrong, a server cannot be started or has not
 * listed its tools in time, or a pattern is wrong.  In place of the list it then writes a struct
 * cj_error, whose first byte is no '{'.
 */
#pragma once

#include "runtime/base/error.h"
#include "runtime/front/mcp/upstream/broker.h"

/* Fails: the error is written already. */
int mcp_broker_main(const char *const *args);

/* --check: starts the servers, and prints the names of their tools.  Fails with the error of the
 * first server that has failed. */
int mcp_broker_print(const char *path, struct cj_error *err);

/* A warning for each server that has failed, or that offers no tool. */
void mcp_broker_warn(const struct broker *b);

/*
 * mcp_broker_describe - what a model reads: the names of the tools by server, how code calls them,
 * and the servers that have failed.  NULL: there are none, or no memory.
 */
const char *mcp_broker_describe(const struct broker *b, struct arena *a);
