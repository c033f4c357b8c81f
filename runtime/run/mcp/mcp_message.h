/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcp_message - the lines of the Model Context Protocol: JSON-RPC 2.0 over stdio.
 *
 * A message is one line of JSON.  The protocol has two eras: up to 2025-11-25 a connection begins
 * with `initialize`; from 2026-07-28 on every request names its version in params._meta.
 * https://modelcontextprotocol.io/specification, https://www.jsonrpc.org/specification
 */
#pragma once

#include "runtime/base/arena.h"
#include "runtime/base/error.h"
#include "runtime/base/json/json.h"
#include "runtime/base/json/json_record.h"

#define MCP_LINE_MAX (16u << 20) /* of a message; code and files are in it */
#define MCP_ID_MAX   256         /* bytes of an id or a progress token */

/* Codes of JSON-RPC and, below -32020, of MCP. */
enum mcp_code {
	MCP_PARSE_ERROR = -32700,
	MCP_INVALID_REQUEST = -32600,
	MCP_METHOD_NOT_FOUND = -32601,
	MCP_INVALID_PARAMS = -32602,
	MCP_INTERNAL_ERROR = -32603,
	MCP_HEADER_MISMATCH = -32020,
	MCP_MISSING_CAPABILITY = -32021,
	MCP_UNSUPPORTED_VERSION = -32022,
};

/* The member of any type; NULL: there is none, or `object` is NULL or not an object. */
const struct json_node *mcp_member(const struct json_node *object, const char *key);
/* The text of the member; without it "". */
const char *mcp_text(const struct json_node *object, const char *key);

/* An id, or a progress token: a string or an integer. */
enum mcp_id_kind { MCP_ID_NONE, MCP_ID_NUMBER, MCP_ID_STRING };
struct mcp_id {
	enum mcp_id_kind kind;
	char text[MCP_ID_MAX + 1]; /* the string, or the digits as the client wrote them */
};
/* False: the node is neither, or too long. */
bool mcp_id_read(const struct json_node *node, struct mcp_id *out);
bool mcp_id_equals(const struct mcp_id *a, const struct mcp_id *b);

/*
 * mcp_id_find - the id of a message that cannot be parsed, so that its sender receives the error.
 *
 * `head`: the message, or the beginning of a longer one whose end is `tail`.  Takes only a member
 * of the message itself.  MCP_ID_NONE in doubt: two ids, or the message may be a response.
 */
void mcp_id_find(struct blob head, struct blob tail, struct mcp_id *out);

enum mcp_kind { MCP_REQUEST, MCP_NOTIFICATION, MCP_RESPONSE };

/* It points into the arena of the tree. */
struct mcp_message {
	enum mcp_kind kind;
	struct mcp_id id; /* of a request or a response; MCP_ID_NONE: an error about no request */
	const char *method;
	const struct json_node *result, *error; /* of a response: one of them */
	const struct json_node *params;         /* an object; NULL: none */
	const struct json_node *meta;           /* its "_meta", an object; NULL: none */
};

/* What is wrong with a message: the error that answers it. */
struct mcp_fault {
	enum mcp_code code;
	char text[CJ_ERROR_MSG_MAX];
};
/* Fills *fault; returns -EINVAL. */
int mcp_refuse(struct mcp_fault *fault, enum mcp_code code, const char *fmt, ...)
    __attribute__((warn_unused_result, format(printf, 3, 4)));

/* The same for a message of more than MCP_LINE_MAX bytes. */
int mcp_refuse_size(struct mcp_fault *fault) __attribute__((warn_unused_result));

/*
 * mcp_message_read - one line without its newline.
 *
 * Fails: *fault says why; out->id is the id of the request if it could be read or found.
 */
int mcp_message_read(const char *line, size_t size, struct arena *a, struct mcp_message *out,
		     struct mcp_fault *fault);

/* --- messages of the server; each is one object ---------------------------------- */

enum mcp_era {
	MCP_ERA_OLD,    /* before 2025-06-18: no structured results, no links to resources */
	MCP_ERA_LEGACY, /* up to 2025-11-25 */
	MCP_ERA_MODERN, /* 2026-07-28 */
};

/* {"jsonrpc":"2.0","id":ID,"result":{ and what each result of the era has; mcp_end() closes it. */
void mcp_begin_result(struct json_writer *w, const struct mcp_id *id, enum mcp_era era);
/* A result of 2026-07-28 whose type is not "complete". */
void mcp_begin_typed_result(struct json_writer *w, const struct mcp_id *id, const char *type);
/* {"jsonrpc":"2.0","method":METHOD,"params":{; mcp_end() closes it. */
void mcp_begin_notification(struct json_writer *w, const char *method);
void mcp_end(struct json_writer *w);

/* {"jsonrpc":"2.0","id":ID,"error":{"code":...,"message":...}}; an unknown id is left out. */
void mcp_put_fault(struct json_writer *w, const struct mcp_id *id, const struct mcp_fault *fault);
/* The same with "data": {"supported": [...], "requested": ...}. */
void mcp_put_version_fault(struct json_writer *w, const struct mcp_id *id,
			   const char *const *supported, const char *requested);

/* Members of "_meta" of each request of 2026-07-28. */
#define MCP_META_VERSION      "io.modelcontextprotocol/protocolVersion"
#define MCP_META_CAPABILITIES "io.modelcontextprotocol/clientCapabilities"

/* The client must declare MCP_TASKS in its capabilities. */
#define MCP_TASKS "io.modelcontextprotocol/tasks"
void mcp_put_capability_fault(struct json_writer *w, const struct mcp_id *id);
/* "extensions": {MCP_TASKS: {}} */
void mcp_put_extensions(struct json_writer *w);

/* "name" and "version" of this server, as the member `key`. */
void mcp_put_implementation(struct json_writer *w, const char *key);

/*
 * mcp_progress - notifications/progress of one call.
 *
 * The progress is the time in ms since the call began, of its time limit; it always increases.  The
 * message is the last line that the program wrote since the notification before.
 */

#define MCP_PROGRESS_PAUSE_MS 100  /* between two notifications */
#define MCP_PROGRESS_BEAT_MS  5000 /* the longest time without one */
#define MCP_PROGRESS_TEXT_MAX 200

struct mcp_progress {
	struct mcp_id token; /* MCP_ID_NONE: none are wanted */
	uint64_t begun_ms, total_ms, sent_ms, last;
	char message[MCP_PROGRESS_TEXT_MAX + 1]; /* "": there is none to send */
};

/* total_ms 0: there is no limit. */
void mcp_progress_init(struct mcp_progress *p, const struct mcp_id *token, uint64_t total_ms,
		       uint64_t now_ms);

/* An event of the run: keeps the line that the program wrote. */
void mcp_progress_note(struct mcp_progress *p, const char *line, size_t size);

/* True: it is time for a notification, and the writer has it. */
bool mcp_progress_beat(struct mcp_progress *p, uint64_t now_ms, struct json_writer *w);
/* The time in ms until the next beat. */
int mcp_progress_wait(const struct mcp_progress *p, uint64_t now_ms);
