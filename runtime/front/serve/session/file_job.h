/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file_job - one operation on a file in a session's jail: the body of a JOB_FILE, and its answer.
 * Pure.
 *
 *	{"op":"get","path":"/box/a","max_bytes":N}      {"bytes":N,"base64":"..."}
 *	the same with "part":true,"offset":N            {"bytes":N of the whole file,"offset":N,
 *	                                                "base64":"..."}
 *	{"op":"put","path":"/box/a","executable":false} {"bytes":N}; the bytes follow the object
 *	{"op":"list","path":"/box"}                     {"entries":[{"path","type","bytes","mode",
 *	                                                "mtime"}],"truncated":false}
 *	{"op":"remove","path":"/box/a"}                 {}, a directory with all that is in it
 *
 * The body is one line of JSON with all six members, and the bytes of a put.  The answer is one
 * line: {"type":"file","result":{...}}, or
 * {"type":"file","error":{"code":"not_found","message":"..."}}.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/arena.h"
#include "runtime/base/error.h"
#include "runtime/base/json/json_record.h"

enum file_op { FILE_GET, FILE_PUT, FILE_LIST, FILE_REMOVE, FILE_OP_COUNT };
extern const char *const file_op_names[FILE_OP_COUNT]; /* "get", "put", ... */

struct file_job {
	enum file_op op;
	const char *path;   /* in the jail, absolute: below /box or /tmp */
	uint64_t max_bytes; /* of get; 0: FILE_BYTES_MAX */
	uint64_t offset;    /* of get: a part that begins here, if: */
	bool is_part;
	struct blob content; /* of put */
	bool is_executable;  /* of put */
};

/* Of both a get and a put: all of it is in memory of each process. */
#define FILE_BYTES_MAX (64u << 20)

/* The body of a JOB_FILE; malloc'ed, the caller's. */
int file_job_write(const struct file_job *job, char **out, size_t *out_size, struct cj_error *err);
/* The bytes and the path live in the arena. */
int file_job_read(struct blob body, struct arena *a, struct file_job *out, struct cj_error *err);

enum file_error {
	FILE_NOT_FOUND,
	FILE_NOT_REGULAR, /* a FIFO, a device, a socket; a directory where a file is wanted */
	FILE_TOO_LARGE,
	FILE_OUTSIDE, /* not below /box or /tmp, or a symbolic link on the way */
	FILE_NO_SPACE,
	FILE_DENIED, /* the jail's user has no access */
	FILE_FAILED, /* the session has ended, or cejail failed */
	FILE_ERROR_COUNT
};
/* As session_file_fault() names them: "not_found", "not_regular", ... */
extern const char *const file_error_names[FILE_ERROR_COUNT];

#define FILE_ANSWER_MAX (FILE_BYTES_MAX / 3 * 4 + (16u << 20)) /* of the line, with its JSON */

/* The line of a worker, taken apart. */
struct file_answer {
	bool is_ok;
	const struct json_node *result; /* an object; in the arena */
	enum file_error error;
	const char *message;
};
/* Fails when the line is another one. */
int file_answer_read(const char *line, size_t size, struct arena *a, struct file_answer *out,
		     struct cj_error *err);
