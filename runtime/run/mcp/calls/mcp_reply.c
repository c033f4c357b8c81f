/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies, lines and errors of the API. */
#include "runtime/run/mcp/calls/mcp_reply.h"

#include <inttypes.h>

#include "runtime/base/json/json.h"
#include "runtime/base/text.h"

#define RESULT_BEFORE "{\"type\":\"result\",\"result\":"
#define ERROR_BEFORE  "{\"type\":\"error\","
#define CALL_BEFORE   "{\"type\":\"call\","
#define ANSWER_BEFORE "{\"type\":\"answer\","

void mcp_reply_fini(struct mcp_reply *r)
{
	byte_queue_fini(&r->kept);
}

static void finish(struct mcp_reply *r, const char *result, size_t size, const char *why)
{
	if (r->is_done)
		return;
	r->is_done = true;
	r->run->done(r->run, result, size, why);
}

void mcp_reply_fail(struct mcp_reply *r, const struct cj_error *why)
{
	char text[CJ_ERROR_TEXT_MAX];

	finish(r, NULL, 0, cj_error_text(why, text));
}

/* What a model does next, where the hint of the API is for a program that sends requests. */
static const struct {
	const char *code, *message; /* "": any */
	const char *words;
} next_steps[] = {
	{ "not_found", "there is no session with this id", "create one with session_create" },
	{ "not_found", "", "session_list_files lists the files that are there" },
	{ "session_ended", "", "create a new one with session_create" },
	{ "bad_request", "has no 'repl'", "leave out 'context', or choose another profile" },
	{ "not_running", "session is not ready", "try again in a second" },
	{ "not_regular", "", "name a file; session_list_files lists a directory" },
	{ "too_large", "", "send less in one call" },
	{ "no_space", "", "remove files of the session first" },
	{ "too_many_sessions", "", "end one with session_end first" },
	{ "sessions_full", "", "end a session with session_end, or try again later" },
	{ "forbidden_profile", "", "use a profile that the tools name" },
	{ "internal", "", "try once more, and then tell the user" },
};

/* Without "request:LINE:COLUMN: ": the model has not written that text. */
static const char *without_place(const char *message)
{
	const char *at = text_after(message, "request:");

	if (!at)
		return message;
	at += strspn(at, "0123456789:");
	return *at == ' ' ? at + 1 : message;
}

static const char *find_next_step(const struct json_node *error, const char *message)
{
	const char *code = json_get_text(error, "code"), *hint = json_get_text(error, "hint");

	for (size_t i = 0; code && i < COUNT_OF(next_steps); i++)
		if (strcmp(next_steps[i].code, code) == 0 && strstr(message, next_steps[i].message))
			return next_steps[i].words;
	bool is_for_programs =
	    hint && (strstr(hint, "/v1/") || strstr(hint, ".../") || strstr(hint, "HTTP"));
	return is_for_programs ? NULL : hint;
}

static void fail_refused(struct mcp_reply *r, unsigned status, uint64_t retry_after,
			 const char *body, size_t size)
{
	auto_arena struct arena a = { 0 };
	const struct json_node *root = NULL, *error = NULL;
	struct cj_error err = { 0 };

	if (size > 0 && json_parse("the service's answer", body, size, &a, &root, &err) == 0)
		error = json_get_typed(root, "error", JSON_OBJECT);
	const char *message = json_get_text(error, "message");
	const char *hint = message ? find_next_step(error, message) : NULL;
	if (!message)
		cj_refuse(&err, "the service failed with status %u", status);
	else
		cj_refuse(&err, "%s", without_place(message));
	if (hint)
		cj_hint(&err, "%s", hint);
	else if (retry_after > 0)
		cj_hint(&err, "try again in %" PRIu64 " s", retry_after);
	mcp_reply_fail(r, &err);
}

bool mcp_reply_has_lines(const struct mcp_reply *r)
{
	return r->call_event || r->run->wants_events;
}

static void take_lines(struct mcp_reply *r)
{
	size_t size, searched = 0;

	while ((size = byte_queue_find_line(&r->kept, &searched)) != SIZE_MAX) {
		char *line = r->kept.bytes + r->kept.start;
		line[size] = '\0';
		size_t before = sizeof(RESULT_BEFORE) - 1;
		if (!r->is_done) {
			if (text_begins_with(line, RESULT_BEFORE) && size > before + 1)
				finish(r, line + before, size - before - 1, NULL);
			else if (text_begins_with(line, ERROR_BEFORE))
				fail_refused(r, 200, 0, line, size);
			else if (r->call_event && (text_begins_with(line, CALL_BEFORE) ||
						   text_begins_with(line, ANSWER_BEFORE)))
				r->call_event(r, line, size);
			else if (r->run->wants_events)
				r->run->event(r->run, line, size);
		}
		byte_queue_take(&r->kept, size + 1);
	}
}

int mcp_reply_keep(struct mcp_reply *r, unsigned status, const char *bytes, size_t size,
		   struct cj_error *err)
{
	if (r->is_done)
		return 0; /* the run is gone */
	if (size >= MCP_REPLY_MAX || byte_queue_size(&r->kept) >= MCP_REPLY_MAX - size)
		return cj_reject(err, "the service's answer is larger than %u MiB",
				 MCP_REPLY_MAX >> 20);
	if (byte_queue_add_text(&r->kept, bytes, size) < 0)
		return cj_fail(err, ENOMEM, "read the service's answer");
	if (status == 200 && mcp_reply_has_lines(r) && memchr(bytes, '\n', size))
		take_lines(r);
	return 0;
}

void mcp_reply_end(struct mcp_reply *r, unsigned status, uint64_t retry_after)
{
	const char *body = r->kept.bytes ? r->kept.bytes + r->kept.start : "";
	size_t size = byte_queue_size(&r->kept);
	struct cj_error err = { 0 };

	if (r->is_done)
		return;
	if (status < 200 || status >= 300) {
		fail_refused(r, status, retry_after, body, size);
	} else if (!mcp_reply_has_lines(r)) {
		finish(r, body, size, NULL);
	} else {
		cj_refuse(&err, "the service closed the connection before the result");
		mcp_reply_fail(r, &err);
	}
}
