/* SPDX-License-Identifier: Apache-2.0 */
/* Output events as progress.  Pure. */
#include "runtime/run/mcp/mcp_progress.h"

#include <string.h>

#define MESSAGE_MAX 200

void mcp_progress_init(struct mcp_progress *p, const struct mcp_id *token, uint64_t total_ms,
		       uint64_t now_ms)
{
	*p = (struct mcp_progress){
		.token = *token, .begun_ms = now_ms, .total_ms = total_ms, .sent_ms = now_ms
	};
}

static void put(struct mcp_progress *p, const char *message, uint64_t now_ms, struct json_writer *w)
{
	uint64_t passed_ms = now_ms - p->begun_ms;

	p->last = passed_ms > p->last ? passed_ms : p->last + 1;
	p->sent_ms = now_ms;
	mcp_begin_notification(w, "notifications/progress");
	mcp_id_put(w, "progressToken", &p->token);
	json_member_u64(w, "progress", p->last);
	if (p->total_ms > p->last)
		json_member_u64(w, "total", p->total_ms);
	if (message)
		json_member_text(w, "message", message);
	mcp_end(w);
}

/* The last line with something in it, cut; it ends the text.  NULL: there is none. */
static char *last_line(char *text)
{
	size_t size = strlen(text);

	while (size > 0 && strchr("\r\n\t ", text[size - 1]))
		size--;
	if (size == 0)
		return NULL;
	text[size] = '\0';
	char *newline = strrchr(text, '\n');
	char *line = newline ? newline + 1 : text;
	if (strlen(line) > MESSAGE_MAX)
		line[MESSAGE_MAX] = '\0'; /* half a character becomes U+FFFD */
	return line;
}

bool mcp_progress_note(struct mcp_progress *p, const char *line, size_t size, uint64_t now_ms,
		       struct json_writer *w)
{
	auto_arena struct arena a = { 0 };
	const struct json_node *event = NULL;
	struct cj_error ignored = { 0 };

	if (p->token.kind == MCP_ID_NONE || now_ms < p->sent_ms + MCP_PROGRESS_PAUSE_MS ||
	    json_parse_capped("event", line, size, &a, &event, &ignored) < 0)
		return false;
	const char *text = json_get_text(event, "text");
	char *copy = text ? arena_strdup(&a, text) : NULL;
	char *message = copy ? last_line(copy) : NULL;
	if (!message)
		return false;
	put(p, message, now_ms, w);
	return true;
}

bool mcp_progress_beat(struct mcp_progress *p, uint64_t now_ms, struct json_writer *w)
{
	if (p->token.kind == MCP_ID_NONE || now_ms < p->sent_ms + MCP_PROGRESS_BEAT_MS)
		return false;
	put(p, NULL, now_ms, w);
	return true;
}

int mcp_progress_wait(const struct mcp_progress *p, uint64_t now_ms)
{
	uint64_t at_ms = p->sent_ms + MCP_PROGRESS_BEAT_MS;

	return at_ms > now_ms ? (int)(at_ms - now_ms) : 0;
}
