/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_schema - parts of the JSON schemas of tools.  Pure. */
#pragma once

#include "runtime/base/json/json.h"

/* "KEY": {"type": TYPE, "description": TEXT; the caller closes it.  NULL: any type, no text. */
void mcp_schema_open(struct json_writer *w, const char *key, const char *type, const char *text);
void mcp_schema_put(struct json_writer *w, const char *key, const char *type, const char *text);
/* A list of strings. */
void mcp_schema_put_list(struct json_writer *w, const char *key, const char *text);
/* One of these strings, which a NULL ends. */
void mcp_schema_put_enum(struct json_writer *w, const char *key, const char *const *values,
			 const char *text);

/* {"type": "object", "properties": {; the caller closes both. */
void mcp_schema_open_object(struct json_writer *w);
/* "required": the names, which a NULL ends; then nothing else is allowed. */
void mcp_schema_put_required(struct json_writer *w, const char *const *names);
