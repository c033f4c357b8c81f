/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of JSON schemas.  Pure. */
#include "runtime/run/mcp/text/mcp_schema.h"

void mcp_schema_open(struct json_writer *w, const char *key, const char *type, const char *text)
{
	json_put_key(w, key);
	json_open_object(w);
	if (type)
		json_member_text(w, "type", type);
	if (text)
		json_member_text(w, "description", text);
}

void mcp_schema_put(struct json_writer *w, const char *key, const char *type, const char *text)
{
	mcp_schema_open(w, key, type, text);
	json_close_object(w);
}

void mcp_schema_put_list(struct json_writer *w, const char *key, const char *text)
{
	mcp_schema_open(w, key, "array", text);
	json_put_key(w, "items");
	json_open_object(w);
	json_member_text(w, "type", "string");
	json_close_object(w);
	json_close_object(w);
}

void mcp_schema_put_required(struct json_writer *w, const char *const *names)
{
	json_put_key(w, "required");
	json_open_array(w);
	for (; *names; names++)
		json_put_string(w, *names);
	json_close_array(w);
	json_member_bool(w, "additionalProperties", false);
}

void mcp_schema_open_object(struct json_writer *w)
{
	json_open_object(w);
	json_member_text(w, "type", "object");
	json_put_key(w, "properties");
	json_open_object(w);
}

void mcp_schema_put_enum(struct json_writer *w, const char *key, const char *const *values,
			 const char *text)
{
	mcp_schema_open(w, key, "string", text);
	json_put_key(w, "enum");
	json_open_array(w);
	for (; *values; values++)
		json_put_string(w, *values);
	json_close_array(w);
	json_close_object(w);
}
