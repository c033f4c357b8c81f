/* SPDX-License-Identifier: Apache-2.0 */
/* Results of runs as results of tools. */
#include "runtime/run/mcp/mcp_answer.h"

#include <inttypes.h>

#include "rootfs/files/types.h"
#include "runtime/base/scope.h"
#include "runtime/run/mcp/mcp_text.h"
#include "runtime/jail/outcome.h"

#define SIGNATURE_MAX 12             /* bytes of an image that say what it is */
#define REPLACEMENT   "\xef\xbf\xbd" /* U+FFFD */

/* Bytes that are not UTF-8, and NULs, become U+FFFD: a tool's output is text. */
static char *printable(const char *bytes, size_t size)
{
	char *text = malloc(3 * size + 1), *to = text;

	for (size_t at = 0; text && at < size;) {
		const char *nul = memchr(bytes + at, '\0', size - at);
		size_t whole =
		    utf8_prefix(bytes + at, nul ? (size_t)(nul - bytes) - at : size - at);
		memcpy(to, bytes + at, whole);
		to += whole;
		at += whole;
		if (at == size)
			break;
		memcpy(to, REPLACEMENT, 3);
		to += 3;
		at++;
	}
	if (text)
		*to = '\0';
	return text;
}

/* Where a character begins: `at`, or up to three bytes behind it or before it. */
static size_t find_character(const char *bytes, size_t at, bool is_behind)
{
	for (int i = 0; i < 3 && ((unsigned char)bytes[at] & 0xc0) == 0x80; i++)
		at += is_behind ? 1 : (size_t)-1;
	return at;
}

/* The beginning and the end of a stream that has `total` bytes; `bytes` has a NUL behind it. */
static void put_shortened(struct json_writer *w, const char *bytes, size_t size, size_t most,
			  uint64_t total)
{
	size_t head = size, tail = size;
	auto_free char *all = NULL;

	if (size > most) {
		head = find_character(bytes, most / 2, false);
		tail = find_character(bytes, size - most / 2, true);
	}
	auto_free char *first = printable(bytes, head),
		       *last = printable(bytes + tail, size - tail);
	uint64_t shown = head + size - tail, left_out = total > shown ? total - shown : 0;
	if (first && last && size > most &&
	    asprintf(&all, "%s\n[... %" PRIu64 " bytes left out ...]\n%s", first, left_out, last) <
		0)
		all = NULL; /* asprintf(3) leaves it undefined */
	json_put_string(w, all ? all : first ? first : "");
}

static void put_stream(struct json_writer *w, const struct mcp_answer *a, const char *name)
{
	const struct json_node *stream = mcp_member(a->result, name);
	const char *text = mcp_text(stream, "text"), *base64 = json_get_text(stream, "base64");
	size_t size = strlen(text), room = base64 ? strlen(base64) : 0;
	auto_free char *bytes = base64 ? calloc(1, TEXT_BASE64_ROOM(room) + 1) : NULL;

	if (bytes && text_base64_decode(base64, room, bytes, &size) < 0)
		size = 0;
	json_put_key(w, name);
	put_shortened(w, bytes ? bytes : text, size, mcp_tool_text_max(a->tool),
		      json_get_number(stream, "bytes"));
}

static void put_denied(struct json_writer *w, const struct json_node *result)
{
	const struct json_node *packets = json_get_items(mcp_member(result, "network"), "denied");

	json_member_array(w, "denied");
	for (const struct json_node *m = json_get_items(result, "denied_syscalls"); m;
	     m = m->next) {
		struct mcp_prose s = { "" };
		mcp_say(&s, "system call: %.64s", mcp_text(m, "name"));
		json_put_string(w, s.text);
	}
	for (const struct json_node *m = packets; m; m = m->next) {
		const char *address = json_get_text(m, "address");
		uint64_t port = json_get_number(m, "port");
		struct mcp_prose s = { "" };
		mcp_say(&s, "network: %.32s", mcp_text(m, "class"));
		if (address)
			mcp_say(&s, ", %.16s to %.64s", mcp_text(m, "protocol"), address);
		if (address && port > 0)
			mcp_say(&s, " port %u", (unsigned)port);
		if (json_is_true(m, "shared"))
			mcp_say(&s, ", perhaps sent by another exec");
		json_put_string(w, s.text);
	}
	json_close_array(w);
}

/* A model's API may refuse a whole conversation for an image that is none. */
static bool is_image(const struct json_node *file)
{
	const char *type = mcp_text(file, "type"), *base64 = json_get_text(file, "base64");
	char head[SIGNATURE_MAX];
	size_t size = 0;

	if (!text_begins_with(type, "image/") || !base64 ||
	    strlen(base64) < 4 * SIGNATURE_MAX / 3 ||
	    text_base64_decode(base64, 4 * SIGNATURE_MAX / 3, head, &size) < 0)
		return false;
	const char *found = type_of_signature(head, size);
	return found && strcmp(found, type) == 0;
}

/* A file of the result, and where it is in the answer. */
struct file {
	const struct json_node *node;
	enum { AS_IMAGE, AS_RESOURCE, AS_LINK, NOWHERE } placement;
	const char *uri; /* NULL: none */
};

struct facts {
	const struct mcp_answer *answer;
	struct arena *arena; /* of what follows */
	struct file *files;
	size_t nfiles;
};

/* *embedded: bytes of the files before this one that are part of the answer. */
static void place_file(const struct mcp_answer *a, struct file *f, uint64_t *embedded,
		       struct arena *arena)
{
	const char *path = mcp_text(f->node, "path");
	uint64_t bytes = json_get_number(f->node, "bytes");
	bool is_stored = a->stored->directory && strings_has(&a->stored->paths, path);
	bool may_embed = (json_get_text(f->node, "text") || json_get_text(f->node, "base64")) &&
			 *embedded + bytes <= MCP_FILES_MAX;

	f->placement = is_stored ? AS_LINK : NOWHERE;
	if (may_embed && bytes <= MCP_IMAGE_MAX && is_image(f->node))
		f->placement = AS_IMAGE;
	else if (may_embed && bytes <= MCP_FILE_MAX)
		f->placement = AS_RESOURCE;
	if (f->placement <= AS_RESOURCE)
		*embedded += bytes;
	if (is_stored)
		f->uri = mcp_uri_join("file://", a->stored->directory, path, arena);
	else if (f->placement != NOWHERE)
		f->uri = mcp_uri_join("cejail://run/", mcp_text(a->result, "id"), path, arena);
}

static int place_files(struct facts *facts)
{
	const struct json_node *list =
	    json_get_typed(facts->answer->result, "artifacts", JSON_ARRAY);
	uint64_t embedded = 0;

	facts->files =
	    arena_array(facts->arena, (list ? list->count : 0) + 1, sizeof(*facts->files));
	if (!facts->files)
		return -ENOMEM;
	for (const struct json_node *m = list ? list->child : NULL; m; m = m->next) {
		struct file *f = &facts->files[facts->nfiles++];
		f->node = m;
		place_file(facts->answer, f, &embedded, facts->arena);
	}
	return 0;
}

static void list_files(struct json_writer *w, const struct facts *facts)
{
	json_member_array(w, "files");
	for (size_t i = 0; i < facts->nfiles; i++) {
		const struct file *f = &facts->files[i];
		json_open_object(w);
		json_member_text(w, "path", mcp_text(f->node, "path"));
		json_member_u64(w, "bytes", json_get_number(f->node, "bytes"));
		json_member_text(w, "type", mcp_text(f->node, "type"));
		json_member_given(w, "uri", f->uri);
		json_close_object(w);
	}
	json_close_array(w);
}

void mcp_put_image(struct json_writer *w, const char *type, const char *base64)
{
	json_member_text(w, "type", "image");
	json_member_text(w, "data", base64);
	json_member_text(w, "mimeType", type);
}

void mcp_put_resource(struct json_writer *w, const char *uri, const char *type, const char *text,
		      const char *base64)
{
	json_member_text(w, "type", "resource");
	json_member_object(w, "resource");
	json_member_text(w, "uri", uri);
	json_member_text(w, "mimeType", type);
	json_member_text(w, text ? "text" : "blob", text ? text : base64);
	json_close_object(w);
}

/* Clients of before 2025-06-18 have no links. */
static void put_file(struct json_writer *w, const struct file *f, enum mcp_era era)
{
	const char *type = mcp_text(f->node, "type"), *base64 = mcp_text(f->node, "base64");

	if (!f->uri || f->placement == NOWHERE || (f->placement == AS_LINK && era == MCP_ERA_OLD))
		return;
	json_open_object(w);
	if (f->placement == AS_IMAGE) {
		mcp_put_image(w, type, base64);
	} else if (f->placement == AS_RESOURCE) {
		mcp_put_resource(w, f->uri, type, json_get_text(f->node, "text"), base64);
	} else {
		json_member_text(w, "type", "resource_link");
		json_member_text(w, "uri", f->uri);
		json_member_text(w, "name", mcp_text(f->node, "path"));
		json_member_text(w, "mimeType", type);
		json_member_u64(w, "size", json_get_number(f->node, "bytes"));
	}
	json_close_object(w);
}

/* As files are: images as images, all else as a resource.  What is too large is left out. */
static void put_display(struct json_writer *w, const struct json_node *display, const char *uri,
			uint64_t *room)
{
	const char *text = json_get_text(display, "text");
	const char *base64 = json_get_text(display, "base64");
	size_t size = text ? strlen(text) : base64 ? TEXT_BASE64_ROOM(strlen(base64)) : 0;
	bool is_shown_image = !text && is_image(display) && size <= MCP_IMAGE_MAX;

	if ((!text && !base64) || size > *room || (!is_shown_image && size > MCP_FILE_MAX))
		return;
	*room -= size;
	json_open_object(w);
	if (is_shown_image)
		mcp_put_image(w, mcp_text(display, "type"), base64);
	else
		mcp_put_resource(w, uri, mcp_text(display, "type"), text, base64);
	json_close_object(w);
}

static const char *way_for_large_files(const struct mcp_answer *a)
{
	if (json_get_text(a->result, "session"))
		return "read it in parts with session_get_file";
	if (a->tool->has_sessions)
		return "write it in a session and read it in parts with session_get_file, or ask "
		       "the user to start 'cejail mcp' with --files";
	return "write a smaller one, or ask the user to start 'cejail mcp' with --files";
}

bool mcp_answer_is_for_user(const char *warning)
{
	enum degraded what = degraded_of(warning);

	return what != DEGRADED_COUNT && what != DEGRADED_NETWORK;
}

static void put_warnings(struct json_writer *w, const struct facts *facts)
{
	const struct mcp_answer *a = facts->answer;

	json_member_array(w, "warnings");
	for (const struct json_node *m = json_get_items(a->result, "warnings"); m; m = m->next)
		if (m->type == JSON_STRING && !mcp_answer_is_for_user(m->text))
			json_put_string(w, m->text);
	for (size_t i = 0; i < a->stored->warnings.count; i++)
		json_put_string(w, a->stored->warnings.items[i]);
	for (size_t i = 0; i < facts->nfiles; i++) {
		struct mcp_prose s = { "" };
		if (facts->files[i].placement != NOWHERE)
			continue;
		mcp_say(&s, "file '%.200s' is too large for an answer; %s",
			mcp_text(facts->files[i].node, "path"), way_for_large_files(a));
		json_put_string(w, s.text);
	}
	json_close_array(w);
}

static void put_facts(struct json_writer *w, const void *context)
{
	const struct facts *facts = context;
	const struct mcp_answer *a = facts->answer;
	const struct json_node *result = a->result, *returned = mcp_member(result, "value");
	const char *session = json_get_text(result, "session");
	const char *last = json_get_text(mcp_member(result, "cell"), "value");
	struct mcp_prose message = { "" };
	uint64_t value = 0;

	mcp_say_result(&message, result, a->tool);
	json_member_text(w, "message", message.text);
	json_member_text(w, "status", mcp_text(result, "status"));
	if (json_get_u64(result, "exit_code", &value))
		json_member_u64(w, "exit_code", value);
	if (json_get_u64(result, "signal", &value))
		json_member_u64(w, "signal", value);
	put_stream(w, a, "stdout");
	put_stream(w, a, "stderr");
	json_member_bool(w, "truncated", mcp_text_is_truncated(result, a->tool));
	if (returned && returned->type != JSON_NULL)
		json_member_node(w, "value", returned);
	json_member_given(w, "session", session);
	json_member_given(w, "last_value", last);
	list_files(w, facts);
	const struct json_node *usage = mcp_member(result, "usage");
	uint64_t peak = 0;
	json_member_object(w, "usage");
	json_member_u64(w, "wall_ms", json_get_number(usage, "wall_ms"));
	json_member_u64(w, "cpu_ms",
			json_get_number(usage, "cpu_user_ms") +
			    json_get_number(usage, "cpu_system_ms"));
	if (json_get_u64(usage, "memory_peak_bytes", &peak))
		json_member_u64(w, "memory_peak_bytes", peak);
	json_close_object(w);
	const struct json_node *limits = json_get_typed(result, "limits", JSON_OBJECT);
	json_member_array(w, "limits_hit");
	for (const struct json_node *m = limits ? limits->child : NULL; m; m = m->next)
		if (json_is_true(m, "hit"))
			json_put_string(w, m->key);
	json_close_array(w);
	put_denied(w, result);
	put_warnings(w, facts);
	json_member_text(w, "run_id", mcp_text(result, "id"));
}

static void put_blocks(struct json_writer *w, const void *context)
{
	const struct facts *facts = context;

	uint64_t room = MCP_FILES_MAX;
	size_t number = 0;
	char name[24];
	for (const struct json_node *m =
		 json_get_items(mcp_member(facts->answer->result, "cell"), "displays");
	     m; m = m->next) {
		(void)snprintf(name, sizeof(name), "%zu", ++number);
		const char *uri = mcp_uri_join(
		    "cejail://cell/", mcp_text(facts->answer->result, "id"), name, facts->arena);
		if (uri)
			put_display(w, m, uri, &room);
	}
	for (size_t i = 0; i < facts->nfiles; i++)
		put_file(w, &facts->files[i], facts->answer->era);
}

void mcp_answer_put_frame(struct json_writer *w, const struct mcp_frame *f)
{
	mcp_begin_result(w, f->id, f->era);
	json_member_array(w, "content");
	auto_json_writer struct json_writer *facts = json_writer_create(false);
	struct cj_error err = { 0 };
	struct blob text = { .bytes = f->text };
	if (f->put_facts && facts) {
		json_open_object(facts);
		f->put_facts(facts, f->context);
		json_close_object(facts);
	}
	if (f->put_facts && (!facts || json_writer_take(facts, &text, &err) < 0))
		text.bytes = "no memory for the answer";
	json_open_object(w);
	json_member_text(w, "type", "text");
	json_member_text(w, "text", text.bytes);
	json_close_object(w);
	if (f->put_blocks)
		f->put_blocks(w, f->context);
	json_close_array(w);
	if (f->put_facts && f->era != MCP_ERA_OLD) {
		json_member_object(w, "structuredContent");
		f->put_facts(w, f->context);
		json_close_object(w);
	}
	json_member_bool(w, "isError", f->is_error);
	mcp_end(w);
}

void mcp_answer_put(struct json_writer *w, const struct mcp_answer *answer)
{
	auto_arena struct arena arena = { 0 };
	struct facts facts = { .answer = answer, .arena = &arena };
	struct mcp_frame frame = { &answer->id, answer->era, .put_facts = put_facts,
				   .put_blocks = put_blocks, .context = &facts };
	uint64_t exit_code = 1;

	frame.is_error = !json_get_u64(answer->result, "exit_code", &exit_code) || exit_code != 0;
	if (place_files(&facts) < 0)
		frame = (struct mcp_frame){ &answer->id, answer->era, true,
					    .text = "no memory for the answer" };
	mcp_answer_put_frame(w, &frame);
}
