/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api_mcp - the Model Context Protocol over HTTP: POST /mcp.  api_mcp.c reads messages and answers
 * those that need no run; api_mcp_call.c runs tools.
 *
 * A call of a tool is an operation of the same API (mcp_inner.h), with the rights of the caller:
 * accounts, ceilings, the queue, the audit and the metrics see what they see of any
 * request.  The answer is JSON; if it takes long, or there is progress, a stream of events.
 *
 * Nothing is kept between two requests.  A client that opens with `initialize` gets a session id
 * that only labels its calls, so that notifications/cancelled finds them.  A client that closes the
 * connection cancels its call, in all versions: no stream can be resumed, and the answer is lost.
 */
#pragma once

#include "runtime/run/mcp/mcp_protocol.h"
#include "runtime/service/api/api.h"

#define API_MCP_SESSION_MAX 64
#define API_MCP_TOOLS_MAX   64

void api_post_mcp(struct api_call *c);

/* The type of an answer that begins late, or has several messages. */
#define API_MCP_EVENTS "text/event-stream"

/* --- shared by api_mcp*.c only ---------------------------------------------------- */

/* The whole reply with a message; its exchange is answered. */
void api_mcp_reply(struct exchange *x, unsigned status, struct json_writer *w);
/* One message as an event of the stream.  False: the client is too slow. */
bool api_mcp_put_event(struct exchange *x, struct json_writer *w, bool must);

/* The call that the message asks for; the exchange of `c` is answered later. */
void api_mcp_call_begin(struct api_call *c, const struct mcp_asked *asked);
/* Cancels the calls of this caller with this label and id. */
void api_mcp_call_cancel(struct api_call *c, const struct mcp_id *id);
