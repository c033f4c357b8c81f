/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/jail/supervise/call_line.h"

#include <inttypes.h>

#include "runtime/base/files/sha256.h"
#include "runtime/base/json/json.h"

#define ID_NUMBER_MAX "9007199254740991" /* 2^53-1: every language counts to it */

/* An integer, or a short string. */
static bool is_id(const struct json_node *node)
{
	if (node->type == JSON_STRING)
		return strlen(node->text) <= CALL_ID_MAX;
	const size_t size = node->type == JSON_NUMBER ? strlen(node->text) : 0;
	const size_t most = strlen(ID_NUMBER_MAX);
	return size > 0 && strspn(node->text, "0123456789") == size &&
	       (size < most || (size == most && strcmp(node->text, ID_NUMBER_MAX) <= 0));
}

void call_line_flatten(char *text, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (text[i] == '\n' || text[i] == '\r')
			text[i] = ' ';
}

int call_line_read(char *line, size_t size, struct arena *a, struct written_call *out,
		   struct cj_error *err)
{
	const struct json_node *root;
	*out = (struct written_call){ .id = "null", .arguments = { "{}", 2 } };
	if (json_parse_capped("call", line, size, a, &root, err) < 0)
		return -err->code;
	call_line_flatten(line, size);
	if (root->type != JSON_OBJECT)
		return cj_reject(err, "a call is one JSON object");
	const struct json_node *id = json_get(root, "id"), *name = json_get(root, "name");
	const struct json_node *arguments = json_get(root, "arguments");
	if (!id || !is_id(id))
		return cj_reject(err,
				 "\"id\" must be an integer from 0 to " ID_NUMBER_MAX
				 ", or a string of at most %d bytes",
				 CALL_ID_MAX);
	struct blob written = json_written(id, line);
	(void)snprintf(out->id, sizeof(out->id), "%.*s", (int)written.size, written.bytes);
	if (!name || name->type != JSON_STRING)
		return cj_reject(err, "\"name\" must be the name of a tool");
	out->name = name->text;
	if (arguments && arguments->type != JSON_OBJECT)
		return cj_reject(err, "\"arguments\" must be a JSON object");
	if (root->count != (size_t)(arguments ? 3 : 2))
		return cj_reject(err, "a call has the members \"id\", \"name\" and \"arguments\", "
				      "and no other");
	if (arguments)
		out->arguments = json_written(arguments, line);
	return 0;
}

const char *call_line_read_answer(char *line, size_t size, struct written_answer *out)
{
	auto_arena struct arena a = { 0 };
	const struct json_node *root;
	struct cj_error err = { 0 };
	*out = (struct written_answer){ .id = 0 };
	if (json_parse_capped("answer", line, size, &a, &root, &err) < 0 ||
	    !json_get_u64(root, "id", &out->id))
		return err.code == EFBIG ? "the caller's answer has more values than cejail reads"
					 : "the caller's answer can't be read: it is no JSON "
					   "object with an \"id\"";
	call_line_flatten(line, size);
	const struct json_node *result = json_get(root, "result");
	const struct json_node *error = json_get_typed(root, "error", JSON_OBJECT);
	const struct json_node *message = json_get_typed(error, "message", JSON_STRING);
	const struct json_node *value = message ? message : error ? NULL : result;
	out->is_error = message != NULL;
	if (value)
		out->value = json_written(value, line);
	return NULL;
}

#define TEXT(text)                                                                                 \
	{                                                                                          \
		.bytes = (text), .size = strlen(text)                                              \
	}

#define PUT(q, ...)                                                                                \
	byte_queue_add_all(q, (const struct blob[]){ __VA_ARGS__ },                                \
			   sizeof((const struct blob[]){ __VA_ARGS__ }) / sizeof(struct blob))

static int put_call(struct byte_queue *q, uint64_t id, const struct written_call *call,
		    const char *members, struct blob arguments)
{
	char head[64];
	(void)snprintf(head, sizeof(head), "{\"id\":%" PRIu64 ",\"name\":\"", id);
	return PUT(q, TEXT(head), TEXT(call->name), TEXT("\""), TEXT(members),
		   TEXT(arguments.size > 0 ? ",\"arguments\":" : ""), arguments, TEXT("}\n"));
}

int call_line_put_call(struct byte_queue *q, uint64_t id, const struct written_call *call)
{
	return put_call(q, id, call, "", call->arguments);
}

int call_line_put_brief(struct byte_queue *q, uint64_t id, const struct written_call *call,
			uint64_t most)
{
	const struct blob none = { "", 0 };
	char brief[128], hash[SHA256_HEX_MAX];
	sha256_hex(call->arguments.bytes, call->arguments.size, hash);
	(void)snprintf(brief, sizeof(brief), ",\"bytes\":%zu,\"sha256\":\"%s\"",
		       call->arguments.size, hash);
	return put_call(q, id, call, brief, call->arguments.size <= most ? call->arguments : none);
}

int call_line_put_end(struct byte_queue *q, uint64_t id, const char *end, uint64_t ms)
{
	char line[128];
	(void)snprintf(line, sizeof(line),
		       "{\"id\":%" PRIu64 ",\"ended\":\"%s\",\"ms\":%" PRIu64 "}\n", id, end, ms);
	return byte_queue_add(q, line, strlen(line));
}

int call_line_put_refusal(struct byte_queue *q, const char *name, const char *end)
{
	auto_json_writer struct json_writer *w = json_writer_create(false);
	struct cj_error err = { 0 };
	struct blob text;
	json_open_object(w);
	json_member_u64(w, "id", 0);
	json_member_text(w, "name", name);
	json_member_text(w, "ended", end);
	json_close_object(w);
	if (json_writer_take(w, &text, &err) < 0)
		return -ENOMEM;
	return PUT(q, text, TEXT("\n"));
}

int call_line_put_answer(struct byte_queue *q, const char *program_id, bool is_error,
			 struct blob value)
{
	return PUT(q, TEXT("{\"id\":"), TEXT(program_id),
		   TEXT(is_error ? ",\"error\":{\"message\":" : ",\"result\":"), value,
		   TEXT(is_error ? "}}\n" : "}\n"));
}
