/* SPDX-License-Identifier: Apache-2.0 */
/* call_line - the lines of JSON of calls.h.  Of what a program writes every byte is hostile. */
#pragma once

#include "runtime/base/arena.h"
#include "runtime/base/error.h"
#include "runtime/base/json/json_record.h"

#define CALL_ID_MAX  64 /* bytes of an id that is a string */
#define CALL_ID_TEXT (6 * CALL_ID_MAX + 3)

struct written_call {
	char id[CALL_ID_TEXT]; /* the value as it is written; "null": it could not be read */
	const char *name;      /* in the arena; NULL: it could not be read */
	struct blob arguments; /* in the line: the bytes of one JSON object, without line ends */
};

/*
 * call_line_flatten - the line ends between the tokens of a JSON text become spaces.
 *
 * Readers of text lines, such as Python's, take a carriage return for one, too: what follows it
 * would be a line that nobody has validated.  A string has none: json.h.
 */
void call_line_flatten(char *text, size_t size);

/*
 * call_line_read - {"id":ID,"name":TEXT,"arguments":OBJECT}, of which the last may be left out.
 *
 * Fails: EINVAL with a sentence for the program.  *out has what could be read, for the answer.
 */
int call_line_read(char *line, size_t size, struct arena *a, struct written_call *out,
		   struct cj_error *err);

struct written_answer {
	uint64_t id;
	bool is_error;     /* the value is the message of an error: a string */
	struct blob value; /* in the line, without line ends; bytes NULL: it has neither */
};

#define CALL_ANSWER_EMPTY                                                                          \
	"the caller's answer has no \"result\" and no \"error\" with a \"message\""

/*
 * call_line_read_answer - {"id":N,"result":ANY} or {"id":N,"error":{"message":TEXT}} of the caller.
 *
 * Returns NULL, or a sentence that says why the line has no id.
 */
const char *call_line_read_answer(char *line, size_t size, struct written_answer *out);

/* These queue a line, or nothing of it.  Fails: ENOMEM. */

/* To the caller. */
int call_line_put_call(struct byte_queue *q, uint64_t id, const struct written_call *call);
/* The same with the size and the hash of the arguments, which follow if they have at most `most`
 * bytes. */
int call_line_put_brief(struct byte_queue *q, uint64_t id, const struct written_call *call,
			uint64_t most);
int call_line_put_end(struct byte_queue *q, uint64_t id, const char *end, uint64_t ms);
/* name NULL: it has none. */
int call_line_put_refusal(struct byte_queue *q, const char *name, const char *end);
/* To the program; `value` is JSON: the result, or the message of an error. */
int call_line_put_answer(struct byte_queue *q, const char *program_id, bool is_error,
			 struct blob value);
