/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcp_progress - notifications/progress of one call.  Pure: time is an argument.
 *
 * The progress is the time in ms since the call began, of its time limit; it always increases.  The
 * message is the last line that the program wrote.
 */
#pragma once

#include "runtime/run/mcp/mcp_message.h"

#include <stdint.h>

#define MCP_PROGRESS_PAUSE_MS 100  /* between two notifications */
#define MCP_PROGRESS_BEAT_MS  5000 /* the longest time without one */

struct mcp_progress {
	struct mcp_id token; /* MCP_ID_NONE: none are wanted */
	uint64_t begun_ms, total_ms, sent_ms, last;
};

/* total_ms 0: there is no limit. */
void mcp_progress_init(struct mcp_progress *p, const struct mcp_id *token, uint64_t total_ms,
		       uint64_t now_ms);

/* An event of the run.  True: the writer has a notification. */
bool mcp_progress_note(struct mcp_progress *p, const char *line, size_t size, uint64_t now_ms,
		       struct json_writer *w);

/* True: nothing was sent for a long time, and the writer has a notification. */
bool mcp_progress_beat(struct mcp_progress *p, uint64_t now_ms, struct json_writer *w);
/* The time in ms until the next beat. */
int mcp_progress_wait(const struct mcp_progress *p, uint64_t now_ms);
