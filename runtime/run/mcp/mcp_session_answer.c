/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions, lists and files as results of tools. */
#include "runtime/run/mcp/mcp_answer.h"

#include <inttypes.h>

#include "rootfs/files/types.h"
#include "runtime/run/mcp/mcp_text.h"

/* What the reply is made of. */
struct reply {
	const struct mcp_session_answer *answer;
	const struct json_node *root;
	char *bytes, *base64; /* of a part of a file, with a NUL; NULL: another reply */
	const char *uri;
	size_t size;
	uint64_t offset, whole; /* where the part begins; bytes of the file */
	const char *type;       /* of a file */
	bool is_text, is_image;
};

static void put_member_of(struct json_writer *w, const struct json_node *object, const char *key)
{
	const struct json_node *node = mcp_member(object, key);

	if (!node || node->type == JSON_NULL)
		return;
	json_member_node(w, key, node);
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
	struct mcp_prose s = { "" };

	mcp_say(
	    &s,
	    "The session is ready: pass \"%.40s\" as 'session'. It ends at %.40s, unless a call "
	    "uses it before: each call renews its lease.",
	    mcp_text(r->root, "id"), end_of(r->root));
	json_member_text(w, "message", s.text);
	json_member_text(w, "session", mcp_text(r->root, "id"));
	json_member_text(w, "profile", mcp_text(r->root, "profile"));
	json_member_text(w, "context", mcp_text(r->root, "context"));
	json_member_text(w, "state", mcp_text(r->root, "state"));
	json_member_text(w, "lease_until", end_of(r->root));
}

static void put_end(struct json_writer *w, const struct reply *r)
{
	json_member_text(w, "message", "The session has ended; its files are gone.");
	json_member_text(w, "session", mcp_text(r->root, "id"));
	json_member_text(w, "state", mcp_text(r->root, "state"));
}

/* What is open now, and that no call opens it again. */
static void put_network(struct json_writer *w, const struct reply *r)
{
	const struct json_node *network = json_get_typed(r->root, "network", JSON_OBJECT);
	struct mcp_prose s = { "" };

	mcp_say_rules(&s, network);
	mcp_say(&s, " No call can open it again: do not retry what is refused.");
	json_member_text(w, "message", s.text);
	json_member_text(w, "session", mcp_text(r->root, "id"));
	put_member_of(w, network, "mode");
	put_member_of(w, network, "allow");
	put_member_of(w, network, "deny");
}

static void put_written(struct json_writer *w, const struct reply *r)
{
	json_member_text(w, "message", "The file is written.");
	put_member_of(w, r->root, "path");
	put_member_of(w, r->root, "bytes");
}

static void put_entries(struct json_writer *w, const struct reply *r)
{
	const struct json_node *list = json_get_typed(r->root, "entries", JSON_ARRAY);
	struct mcp_prose s = { "" };

	mcp_say(&s, "Entries: %zu.", list ? list->count : 0);
	json_member_text(w, "message", s.text);
	json_member_array(w, "entries");
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
	uint64_t next = r->offset + r->size;
	struct mcp_prose s = { "" };

	mcp_say(&s, r->is_image  ? "The image is below."
		    : r->is_text ? "The file is text."
				 : "The file is below, as a resource.");
	if (r->offset > 0 || next < r->whole)
		mcp_say(&s,
			" This is the part from byte %" PRIu64 " to %" PRIu64 " of %" PRIu64
			" bytes.",
			r->offset, next, r->whole);
	if (next < r->whole)
		mcp_say(&s, " To read on, pass %" PRIu64 " as 'offset'.", next);
	json_member_text(w, "message", s.text);
	json_member_text(w, "path", r->answer->path ? r->answer->path : "");
	json_member_u64(w, "bytes", r->whole);
	json_member_u64(w, "offset", r->offset);
	if (next < r->whole)
		json_member_u64(w, "next_offset", next);
	json_member_text(w, "type", r->type);
	if (r->is_text)
		json_member_text(w, "text", r->bytes);
}

static void put_facts(struct json_writer *w, const void *context)
{
	static void (*const puts[])(struct json_writer * w, const struct reply *r) = {
		[MCP_TOOL_SESSION_CREATE] = put_create,
		[MCP_TOOL_SESSION_PUT_FILE] = put_written,
		[MCP_TOOL_SESSION_GET_FILE] = put_read,
		[MCP_TOOL_SESSION_LIST_FILES] = put_entries,
		[MCP_TOOL_SESSION_NETWORK] = put_network,
		[MCP_TOOL_SESSION_END] = put_end,
	};
	const struct reply *r = context;

	puts[r->answer->kind](w, r);
}

/* The part of a file, unless it is text, which is one of the facts. */
static void put_file(struct json_writer *w, const void *context)
{
	const struct reply *r = context;

	if (!r->bytes || r->is_text)
		return;
	json_open_object(w);
	if (r->is_image)
		mcp_put_image(w, r->type, r->base64);
	else
		mcp_put_resource(w, r->uri, r->type, NULL, r->base64);
	json_close_object(w);
}

static int read_part(struct reply *r, struct arena *a, struct cj_error *err)
{
	const char *base64 = json_get_text(r->root, "base64");
	const char *path = r->answer->path ? r->answer->path : "";

	if (!base64 || !json_get_u64(r->root, "offset", &r->offset) ||
	    !json_get_u64(r->root, "bytes", &r->whole))
		return cj_reject(err, "the service's answer is no part of a file");
	r->bytes = arena_alloc(a, TEXT_BASE64_ROOM(strlen(base64)) + 1);
	if (!r->bytes)
		return cj_fail(err, ENOMEM, "write the answer");
	if (text_base64_decode(base64, strlen(base64), r->bytes, &r->size) < 0 ||
	    r->offset > UINT64_MAX - r->size)
		return cj_reject(err, "the service's answer has no valid base64");
	/* How much of the part the answer has: of an image all; of a text no part of a
	 * character. */
	bool is_whole = r->offset == 0 && r->size >= r->whole;
	const char *found = r->offset == 0 ? type_of_signature(r->bytes, r->size) : NULL;
	r->is_image = is_whole && found && text_begins_with(found, "image/");
	if (!r->is_image && !r->answer->has_length && r->size > MCP_FILE_MAX)
		r->size = MCP_FILE_MAX;
	size_t unfinished = r->offset + r->size < r->whole ? utf8_unfinished(r->bytes, r->size) : 0;
	size_t text = unfinished < r->size ? r->size - unfinished : r->size;
	r->is_text = !r->is_image && utf8_prefix(r->bytes, text) == text &&
		     !memchr(r->bytes, '\0', text);
	if (r->is_text)
		r->size = text;
	r->bytes[r->size] = '\0';
	r->type = r->is_text ? "text/plain" : found ? found : "application/octet-stream";
	if (r->is_text)
		return 0;
	r->base64 = arena_alloc(a, 4 * ((r->size + 2) / 3) + 1);
	r->uri = mcp_uri_join("cejail://session/", r->answer->session ? r->answer->session : "",
			      path + strspn(path, "/"), a);
	if (!r->base64 || !r->uri)
		return cj_fail(err, ENOMEM, "write the answer");
	(void)text_base64(r->bytes, r->size, r->base64);
	return 0;
}

int mcp_session_answer_put(struct json_writer *w, const struct mcp_session_answer *answer,
			   const char *reply, size_t size, struct cj_error *err)
{
	auto_arena struct arena a = { 0 };
	struct reply r = { .answer = answer };
	const struct mcp_frame frame = { &answer->id, answer->era, .put_facts = put_facts,
					 .put_blocks = put_file, .context = &r };

	if (json_parse_capped("the reply", reply, size, &a, &r.root, err) < 0 ||
	    (answer->kind == MCP_TOOL_SESSION_GET_FILE && read_part(&r, &a, err) < 0))
		return -err->code;
	mcp_answer_put_frame(w, &frame);
	return 0;
}
