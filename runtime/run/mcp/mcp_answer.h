/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcp_answer - the result of a run, or a reply about a session, becomes the result of tools/call.
 *
 * The answer has the same facts as an object and as text, and the files of the program: images as
 * images, small files as resources, stored files as links.  The program chose names and bytes of
 * its files, so an image must begin as its type says.
 */
#pragma once

#include "runtime/base/json/json.h"
#include "runtime/run/mcp/mcp_message.h"
#include "runtime/run/mcp/mcp_tool.h"

/* Which files of a result are stored. */
struct mcp_stored {
	const char *directory; /* absolute; NULL: none is stored */
	struct strings paths;  /* below it */
	struct strings warnings;
};

struct mcp_answer {
	struct mcp_id id; /* of the request */
	enum mcp_era era;
	const struct mcp_tool *tool;
	const struct json_node *result;  /* profiles/schema/result.json */
	const struct mcp_stored *stored; /* its warnings are in addition to those of the result */
};

/* The whole message. */
void mcp_answer_put(struct json_writer *w, const struct mcp_answer *answer);

/* What every result of tools/call has: the facts as an object and as text, and further blocks. */
struct mcp_frame {
	const struct mcp_id *id; /* of the request */
	enum mcp_era era;
	bool is_error;
	const char *text; /* in place of facts: of a call that did not run, what to change */
	/* The members of the open object; called twice.  NULL: there is only `text`. */
	void (*put_facts)(struct json_writer *w, const void *context);
	/* The elements of "content" behind the text; may be NULL. */
	void (*put_blocks)(struct json_writer *w, const void *context);
	const void *context;
};
void mcp_answer_put_frame(struct json_writer *w, const struct mcp_frame *f);

/* Members of a block of "content": an image; a resource, of text or, with NULL, of base64. */
void mcp_put_image(struct json_writer *w, const char *type, const char *base64);
void mcp_put_resource(struct json_writer *w, const char *uri, const char *type, const char *text,
		      const char *base64);

/* Is the warning about what this host lacks?  Each result has it, and no model can change it. */
bool mcp_answer_is_for_user(const char *warning);

/* The service's reply about a session becomes the result of tools/call. */
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
