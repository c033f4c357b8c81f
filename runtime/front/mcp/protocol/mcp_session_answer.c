/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions, lists and files as results of tools.  Pure. */
#include "runtime/front/mcp/protocol/mcp_session_answer.h"

#include <stdlib.h>
#include <string.h>

#include "rootfs/files/types.h"
#include "runtime/base/scope.h"
#include "runtime/base/text.h"
#include "runtime/front/mcp/text/mcp_prose.h"
#include "runtime/front/mcp/text/mcp_uri.h"

/* What the reply is made of. */
struct reply {
	const struct mcp_session_answer *answer;
	const struct json_node *root; /* NULL: a file */
	const char *bytes;            /* of a file */
	size_t size;
	const char *type; /* of a file */
	bool is_text, is_image;
};

static void put_member_of(struct json_writer *w, const struct json_node *object, const char *key)
{
	const struct json_node *node = mcp_member(object, key);

	if (!node || node->type == JSON_NULL)
		return;
	json_put_key(w, key);
	json_put_node(w, node);
}

/* --- facts, by tool ----------------------------------------------------------------- */

static void put_message(struct json_writer *w, const char *text)
{
	json_member_text(w, "message", text);
}

/* The lease or the idle time, whichever is over first: two times of one format. */
static const char *end_of(const struct json_node *session)
{
	const char *lease = mcp_text(session, "lease_until"),
		   *idle = mcp_text(session, "idle_until");

	return idle[0] && strcmp(idle, lease) < 0 ? idle : lease;
}

static void put_create(struct json_writer *w, const struct reply *r)
{
	struct mcp_prose s = { .size = 0 };

	mcp_say(
	    &s,
	    "The session is ready: pass \"%.40s\" as 'session'. It ends at %.40s, unless a call "
	    "uses it before: each call renews its lease.",
	    mcp_text(r->root, "id"), end_of(r->root));
	put_message(w, s.text);
	json_member_text(w, "session", mcp_text(r->root, "id"));
	json_member_text(w, "profile", mcp_text(r->root, "profile"));
	json_member_text(w, "context", mcp_text(r->root, "context"));
	json_member_text(w, "state", mcp_text(r->root, "state"));
	json_member_text(w, "lease_until", end_of(r->root));
}

static void put_end(struct json_writer *w, const struct reply *r)
{
	put_message(w, "The session has ended; its files are gone.");
	json_member_text(w, "session", mcp_text(r->root, "id"));
	json_member_text(w, "state", mcp_text(r->root, "state"));
}

static void put_written(struct json_writer *w, const struct reply *r)
{
	put_message(w, "The file is written.");
	put_member_of(w, r->root, "path");
	put_member_of(w, r->root, "bytes");
}

static void put_entries(struct json_writer *w, const struct reply *r)
{
	const struct json_node *list = json_get_typed(r->root, "entries", JSON_ARRAY);
	struct mcp_prose s = { .size = 0 };

	mcp_say(&s, "Entries: %zu.", list ? list->count : 0);
	put_message(w, s.text);
	json_put_key(w, "entries");
	json_open_array(w);
	for (const struct json_node *m = list ? list->child : NULL; m; m = m->next) {
		json_open_object(w);
		put_member_of(w, m, "path");
		put_member_of(w, m, "type");
		put_member_of(w, m, "bytes");
		json_close_object(w);
	}
	json_close_array(w);
	put_member_of(w, r->root, "truncated");
}

static void put_read(struct json_writer *w, const struct reply *r)
{
	put_message(w, r->is_image  ? "The image is below."
		       : r->is_text ? "The file is text."
				    : "The file is below, as a resource.");
	json_member_text(w, "path", r->answer->path ? r->answer->path : "");
	json_member_u64(w, "bytes", r->size);
	json_member_text(w, "type", r->type);
	if (r->is_text)
		json_member_text(w, "text", r->bytes);
}

static void put_facts(struct json_writer *w, const struct reply *r)
{
	static void (*const puts[])(struct json_writer * w, const struct reply *r) = {
		[MCP_TOOL_SESSION_CREATE] = put_create, [MCP_TOOL_SESSION_PUT_FILE] = put_written,
		[MCP_TOOL_SESSION_GET_FILE] = put_read, [MCP_TOOL_SESSION_LIST_FILES] = put_entries,
		[MCP_TOOL_SESSION_END] = put_end,
	};

	json_open_object(w);
	puts[r->answer->kind](w, r);
	json_close_object(w);
}

/* --- the content ----------------------------------------------------------------------- */

static int put_base64(struct json_writer *w, const char *key, const struct reply *r,
		      struct cj_error *err)
{
	auto_free char *base64 = malloc(4 * ((r->size + 2) / 3) + 1);

	if (!base64)
		return cj_fail(err, ENOMEM, "write the answer");
	(void)text_base64(r->bytes, r->size, base64);
	json_member_text(w, key, base64);
	return 0;
}

static int put_file(struct json_writer *w, const struct reply *r, struct cj_error *err)
{
	const char *path = r->answer->path ? r->answer->path : "";
	auto_free char *uri = mcp_uri_join("cejail://session/",
					   r->answer->session ? r->answer->session : "",
					   path + strspn(path, "/"));
	int rc = 0;

	if (!uri)
		return cj_fail(err, ENOMEM, "write the answer");
	json_open_object(w);
	json_member_text(w, "type", r->is_image ? "image" : "resource");
	if (r->is_image) {
		rc = put_base64(w, "data", r, err);
		json_member_text(w, "mimeType", r->type);
	} else {
		json_put_key(w, "resource");
		json_open_object(w);
		json_member_text(w, "uri", uri);
		json_member_text(w, "mimeType", r->type);
		rc = put_base64(w, "blob", r, err);
		json_close_object(w);
	}
	json_close_object(w);
	return rc;
}

static int put_text_block(struct json_writer *w, const struct reply *r, struct cj_error *err)
{
	auto_json_writer struct json_writer *facts = json_writer_create(false);
	const char *text = NULL;
	size_t size = 0;

	if (!facts)
		return cj_fail(err, ENOMEM, "write the answer");
	put_facts(facts, r);
	if (json_writer_take(facts, &text, &size, err) < 0)
		return -err->code;
	json_open_object(w);
	json_member_text(w, "type", "text");
	json_member_text(w, "text", text);
	json_close_object(w);
	return 0;
}

static int put_content(struct json_writer *w, const struct reply *r, struct cj_error *err)
{
	json_put_key(w, "content");
	json_open_array(w);
	int rc = put_text_block(w, r, err);
	if (rc == 0 && !r->root && !r->is_text)
		rc = put_file(w, r, err);
	json_close_array(w);
	return rc;
}

/* --- the reply ------------------------------------------------------------------------- */

static int read_file(struct reply *r, const char *bytes, size_t size, struct cj_error *err)
{
	const char *found = type_of_signature(bytes, size);

	r->bytes = bytes;
	r->size = size;
	r->is_image = found && strncmp(found, "image/", 6) == 0 && size <= MCP_IMAGE_MAX;
	r->is_text = !r->is_image && utf8_prefix(bytes, size) == size && !memchr(bytes, '\0', size);
	r->type = r->is_text ? "text/plain" : found ? found : "application/octet-stream";
	if (r->is_image || size <= MCP_FILE_MAX)
		return 0;
	return cj_reject(err,
			 "the file has %zu bytes, and an answer at most %u; read a part of it with "
			 "session_exec",
			 size, MCP_FILE_MAX);
}

int mcp_session_answer_put(struct json_writer *w, const struct mcp_session_answer *answer,
			   const char *reply, size_t size, struct cj_error *err)
{
	auto_arena struct arena a = { 0 };
	struct reply r = { .answer = answer };
	int rc;

	if (answer->kind == MCP_TOOL_SESSION_GET_FILE)
		rc = read_file(&r, reply, size, err);
	else
		rc = json_parse_capped("the reply", reply, size, &a, &r.root, err);
	if (rc < 0)
		return rc;
	mcp_begin_result(w, &answer->id, answer->era);
	if (put_content(w, &r, err) < 0)
		return -err->code;
	if (answer->era != MCP_ERA_OLD) {
		json_put_key(w, "structuredContent");
		put_facts(w, &r);
	}
	json_member_bool(w, "isError", false);
	mcp_end(w);
	return 0;
}
