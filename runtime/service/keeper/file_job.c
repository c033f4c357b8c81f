/* SPDX-License-Identifier: Apache-2.0 */
/* A file operation's job and its answer, as text and back. */
#include "runtime/service/keeper/file_job.h"

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/text.h"

#define LENGTH(table) (sizeof(table) / sizeof((table)[0]))

const char *const file_op_names[] = {
	[FILE_GET] = "get",     [FILE_PART] = "part",     [FILE_PUT] = "put",
	[FILE_LIST] = "list",   [FILE_REMOVE] = "remove", [FILE_STAT] = "stat",
	[FILE_MKDIR] = "mkdir", [FILE_RENAME] = "rename", [FILE_WATCH] = "watch",
};
static_assert(LENGTH(file_op_names) == FILE_OP_COUNT, "every operation has a name");

const char *const file_error_names[] = {
	[FILE_NOT_FOUND] = "not_found", [FILE_NOT_REGULAR] = "not_regular",
	[FILE_TOO_LARGE] = "too_large", [FILE_OUTSIDE] = "outside",
	[FILE_NO_SPACE] = "no_space",   [FILE_DENIED] = "denied",
	[FILE_EXISTS] = "exists",       [FILE_FAILED] = "failed",
};
static_assert(LENGTH(file_error_names) == FILE_ERROR_COUNT, "every error has a name");

/* --- the job -------------------------------------------------------------------- */

#define NEEDED(kind, how)                                                                          \
	JSON_TAKES_##kind, .is_required = true, .set = json_set_##how, .write = json_write_##how
#define AT(member) .offset = offsetof(struct file_job, member)
static const struct json_key job_keys[] = {
	{ "op", NEEDED(STRING, name), .detail = file_op_names, .max = FILE_OP_COUNT, AT(op) },
	{ "path", NEEDED(STRING, string), AT(path) },
	{ "to", NEEDED(STRING, string), AT(to) },
	{ "max_bytes", NEEDED(NUMBER, u64), AT(max_bytes) },
	{ "offset", NEEDED(NUMBER, u64), AT(offset) },
	{ "depth", NEEDED(NUMBER, u64), AT(depth) },
	{ "executable", NEEDED(BOOL, bool), AT(is_executable) },
};
#undef AT
static const struct json_record job_record = JSON_RECORD(job_keys, "the job");

int file_job_write(const struct file_job *job, char **out, size_t *out_size, struct cj_error *err)
{
	auto_json_writer struct json_writer *w = json_writer_create(false);
	const char *text = NULL;
	size_t size = 0;

	if (!w)
		return cj_fail(err, ENOMEM, "write a file job");
	json_open_object(w);
	json_record_write(w, &job_record, job);
	json_close_object(w);
	if (json_writer_take(w, &text, &size, err) < 0)
		return cj_wrap(err, "write a file job");
	*out = strndup(text, size);
	*out_size = size;
	return *out ? 0 : cj_fail(err, ENOMEM, "write a file job");
}

int file_job_read(struct blob body, struct arena *a, struct file_job *out, struct cj_error *err)
{
	const struct json_reader in = { .file = "file job", .arena = a };
	const struct json_node *root = NULL;
	struct file_job job = { 0 };

	if (json_parse("file job", body.bytes, body.size, a, &root, err) < 0 ||
	    json_record_read(&in, root, &job_record, &job, err) < 0)
		return -err->code;
	*out = job;
	return 0;
}

/* --- the answer ------------------------------------------------------------------ */

static enum file_error error_by_name(const char *name)
{
	for (size_t i = 0; name && i < FILE_ERROR_COUNT; i++)
		if (strcmp(file_error_names[i], name) == 0)
			return (enum file_error)i;
	return FILE_FAILED;
}

int file_answer_read(const char *line, size_t size, struct arena *a, struct file_answer *out,
		     struct cj_error *err)
{
	const struct json_node *root = NULL;

	if (json_parse_capped("file answer", line, size, a, &root, err) < 0)
		return -err->code;
	const char *type = json_get_text(root, "type");
	if (!type || strcmp(type, "file") != 0)
		return cj_reject(err, "the line is no answer of a file worker");
	const struct json_node *result = json_get_typed(root, "result", JSON_OBJECT);
	const struct json_node *error = json_get_typed(root, "error", JSON_OBJECT);
	const char *message = json_get_text(error, "message");
	*out = (struct file_answer){
		.is_ok = result != NULL,
		.result = result,
		.error = error_by_name(json_get_text(error, "code")),
		.message = message ? message : "it gave no reason",
	};
	return 0;
}
