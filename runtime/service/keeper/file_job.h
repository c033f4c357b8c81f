/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file_job - one operation on files in a session's jail: the body of a JOB_FILE, and its answer.
 *
 *	get     {"bytes":N}; then the bytes as lines {"type":"bytes","base64":"..."}, and
 *	        {"type":"end"}
 *	part    {"bytes":N of the whole file,"offset":N,"base64":"..."}
 *	put     {"bytes":N}; the bytes come through the pipe of the worker's request, to its end
 *	list    {"entries":[{"path","type","bytes","mode","mtime"}],"truncated":false}
 *	remove  {}; a directory with all that is in it
 *	stat    an entry, as in a list
 *	mkdir   {"created":true}
 *	rename  {}
 *	watch   {}; then a line {"type":"event","event":{"event":"create","path":"..."}} for each
 *	        change, until the socket is closed or the directory is gone
 *
 * The body is an object with all members of struct file_job.  The first answer is one line:
 * {"type":"file","result":{...}}, or
 * {"type":"file","error":{"code":"not_found","message":"..."}}.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/arena.h"
#include "runtime/base/error.h"
#include "runtime/base/json/json_record.h"

enum file_op {
	FILE_GET,
	FILE_PART,
	FILE_PUT,
	FILE_LIST,
	FILE_REMOVE,
	FILE_STAT,
	FILE_MKDIR,
	FILE_RENAME,
	FILE_WATCH,
	FILE_OP_COUNT
};
extern const char *const file_op_names[FILE_OP_COUNT]; /* "get", "put", ... */

struct file_job {
	enum file_op op;
	const char *path;   /* in the jail, absolute */
	const char *to;     /* of rename: likewise; else "" */
	uint64_t max_bytes; /* of get, part and put */
	uint64_t offset;    /* of part */
	uint64_t depth;     /* of list; 0: LIST_DEPTH */
	bool is_executable; /* of put */
};

#define FILE_LIST_DEPTH 8           /* of a list that names none */
#define FILE_PART_MAX   (4u << 20)  /* bytes in a part */
#define FILE_PIECE      (48u << 10) /* bytes in a line of a get */

/* The body of a JOB_FILE; malloc'ed, the caller's. */
int file_job_write(const struct file_job *job, char **out, size_t *out_size, struct cj_error *err);
/* The paths live in the arena. */
int file_job_read(struct blob body, struct arena *a, struct file_job *out, struct cj_error *err);

enum file_error {
	FILE_NOT_FOUND,   /* also: a symbolic link is on the way */
	FILE_NOT_REGULAR, /* a FIFO, a device, a socket; a directory where a file is wanted */
	FILE_TOO_LARGE,
	FILE_OUTSIDE, /* no path of the session's files */
	FILE_NO_SPACE,
	FILE_DENIED, /* the jail's user has no access */
	FILE_EXISTS,
	FILE_FAILED, /* the session has ended, or cejail failed */
	FILE_ERROR_COUNT
};
/* As session_file_fault() names them: "not_found", "not_regular", ... */
extern const char *const file_error_names[FILE_ERROR_COUNT];

/* The first line of a worker, taken apart. */
struct file_answer {
	bool is_ok;
	const struct json_node *result; /* an object; in the arena */
	enum file_error error;
	const char *message;
};
/* Fails when the line is another one. */
int file_answer_read(const char *line, size_t size, struct arena *a, struct file_answer *out,
		     struct cj_error *err);
