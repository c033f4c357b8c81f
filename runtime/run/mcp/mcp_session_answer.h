/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcp_session_answer - the service's reply about a session becomes the result of tools/call.  Pure.
 *
 * The bytes of a file are chosen by the program, so an image must begin as its type says.
 */
#pragma once

#include "runtime/run/mcp/mcp_message.h"
#include "runtime/run/mcp/mcp_tool.h"

struct mcp_session_answer {
	struct mcp_id id; /* of the request */
	enum mcp_era era;
	enum mcp_tool_kind kind;    /* not that of a program */
	const char *session, *path; /* the arguments; NULL: not given */
	bool has_length;            /* of the part of a file */
};

/* The whole message.  Fails: the reply is not what the service should send, or too large. */
int mcp_session_answer_put(struct json_writer *w, const struct mcp_session_answer *answer,
			   const char *reply, size_t size, struct cj_error *err);
