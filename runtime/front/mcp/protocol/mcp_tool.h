/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcp_tool - a tool as tools/list shows it: one for each profile.  Pure.
 *
 * Title, description, schemas and annotations are made from the settings that are in force: the
 * profile's, with the options of the command line.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/json/json.h"
#include "runtime/front/mcp/protocol/mcp_message.h"

#define MCP_TOOL_NAME_MAX 128
#define MCP_FILE_MAX      (256u << 10) /* a larger file is not part of an answer */
#define MCP_IMAGE_MAX     (4u << 20)
#define MCP_FILES_MAX     (8u << 20) /* files and images of one answer together */

struct mcp_tool {
	char name[MCP_TOOL_NAME_MAX + 1]; /* "run_python" */
	const char *profile;
	const char *about;      /* the profile's description; NULL: none */
	const char *value_path; /* where the program leaves its return value; NULL: nowhere */
	/* 0: no limit, or the service did not say */
	uint64_t memory_bytes, millicpus, wall_ms, disk_bytes, output_bytes;
	bool has_network;    /* the public one */
	bool has_allow_list; /* only some destinations of it */
	bool writes_host;    /* a host directory is mounted writable */
	bool reaches_host;   /* it may connect to an end point of the host */
	bool stores_files;   /* the server has a directory for files */
};

/* One element of "tools". */
void mcp_tool_put(struct json_writer *w, const struct mcp_tool *tool, enum mcp_era era);
