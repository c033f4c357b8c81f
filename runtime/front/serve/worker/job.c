/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The words between server and worker.  Pure but for the memfd.
 *
 * Both messages are flat, so each is a table of fields, and one reader and one writer
 * walk it.  All members are always there and no others: both sides are one build of one program,
 * and what differs is a fault.
 */
#include "runtime/front/serve/worker/job.h"

#include <assert.h>
#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "runtime/base/files/fd.h"
#include "runtime/base/json/json.h"
#include "runtime/base/scope.h"
#include "runtime/base/text.h"

#define JOB_SEALS  (F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK)
#define HEADER_MAX 2048 /* a dozen short members */

const char *const tier_names[] = {
	[TIER_COLD] = "cold",
	[TIER_JAIL] = "jail",
	[TIER_INTERPRETER] = "interpreter",
};
static_assert(sizeof(tier_names) / sizeof(tier_names[0]) == TIER_COUNT, "every tier has a name");

/* --- flat messages --------------------------------------------------------------- */

enum kind {
	KIND_WORD,     /* char[]: whole or refused */
	KIND_SENTENCE, /* char[]: what fits of it */
	KIND_NUMBER,   /* uint64_t */
	KIND_MAYBE,    /* uint64_t, and the bool at `with` says if it is known; else null */
	KIND_CODE,     /* int; below 0 is null */
	KIND_FLAG,     /* bool */
	KIND_STATUS    /* enum status */
};

struct field {
	const char *key;
	enum kind kind;
	size_t offset;
	size_t with; /* text: its room; KIND_MAYBE: the offset of its bool */
};

#define TEXT(type, kind, member)                                                                   \
	{                                                                                          \
#member, kind, offsetof(struct type, member), sizeof(((struct type *)0)->member)   \
	}
#define PLAIN(type, kind, member)                                                                  \
	{                                                                                          \
#member, kind, offsetof(struct type, member), 0                                    \
	}
#define LENGTH(table) (sizeof(table) / sizeof((table)[0]))

static const struct field job_fields[] = {
	TEXT(job, KIND_WORD, id),
	{ "request_id", KIND_WORD, offsetof(struct job, trace.request_id), TRACE_REQUEST_ID_MAX },
	{ "traceparent", KIND_WORD, offsetof(struct job, trace.traceparent),
	  TRACE_TRACEPARENT_MAX },
	PLAIN(job, KIND_NUMBER, sent_us),
	PLAIN(job, KIND_FLAG, wants_events),
	PLAIN(job, KIND_FLAG, may_name_host_paths),
	TEXT(job, KIND_WORD, profile_sha256),
	PLAIN(job, KIND_NUMBER, memory_bytes),
	PLAIN(job, KIND_NUMBER, millicpus),
	PLAIN(job, KIND_NUMBER, pids),
	PLAIN(job, KIND_NUMBER, wall_ms),
	PLAIN(job, KIND_NUMBER, disk_bytes),
	PLAIN(job, KIND_NUMBER, output_bytes),
	PLAIN(job, KIND_FLAG, no_network),
};

#define USAGE(member) offsetof(struct summary, usage.member)
static const struct field summary_fields[] = {
	PLAIN(summary, KIND_STATUS, status),
	PLAIN(summary, KIND_CODE, exit_code),
	PLAIN(summary, KIND_CODE, signal),
	TEXT(summary, KIND_SENTENCE, error_stage),
	TEXT(summary, KIND_SENTENCE, error_message),
	PLAIN(summary, KIND_FLAG, is_callers_own),
	TEXT(summary, KIND_WORD, profile_sha256),
	TEXT(summary, KIND_WORD, code_sha256),
	{ "wall_ms", KIND_NUMBER, USAGE(wall_ms), 0 },
	{ "cpu_user_ms", KIND_NUMBER, USAGE(cpu_user_ms), 0 },
	{ "cpu_system_ms", KIND_NUMBER, USAGE(cpu_system_ms), 0 },
	{ "memory_peak_bytes", KIND_MAYBE, USAGE(memory_peak_bytes), USAGE(has_memory_peak) },
	{ "pids_peak", KIND_MAYBE, USAGE(pids_peak), USAGE(has_pids_peak) },
	PLAIN(summary, KIND_NUMBER, setup_us),
	PLAIN(summary, KIND_NUMBER, denied_packets),
	PLAIN(summary, KIND_NUMBER, denied_syscalls),
	PLAIN(summary, KIND_NUMBER, stdout_bytes),
	PLAIN(summary, KIND_NUMBER, stderr_bytes),
	PLAIN(summary, KIND_NUMBER, artifacts),
};

static void put_value(struct json_writer *w, const struct field *f, const char *record)
{
	const void *at = record + f->offset;

	switch (f->kind) {
	case KIND_WORD:
	case KIND_SENTENCE:
		json_put_string(w, at);
		break;
	case KIND_MAYBE:
		if (!*(const bool *)(record + f->with)) {
			json_put_null(w);
			break;
		}
		json_put_u64(w, *(const uint64_t *)at);
		break;
	case KIND_NUMBER:
		json_put_u64(w, *(const uint64_t *)at);
		break;
	case KIND_CODE:
		if (*(const int *)at < 0)
			json_put_null(w);
		else
			json_put_i64(w, *(const int *)at);
		break;
	case KIND_FLAG:
		json_put_bool(w, *(const bool *)at);
		break;
	case KIND_STATUS:
		json_put_string(w, status_names[*(const enum status *)at]);
		break;
	}
}

static void put_fields(struct json_writer *w, const struct field *table, size_t count,
		       const void *record)
{
	for (size_t i = 0; i < count; i++) {
		json_put_key(w, table[i].key);
		put_value(w, &table[i], record);
	}
}

static bool get_text(const struct field *f, const char *text, char *at)
{
	size_t size = strlen(text);
	if (size >= f->with) {
		if (f->kind == KIND_WORD)
			return false;
		size = utf8_prefix(text, f->with - 1);
	}
	memcpy(at, text, size);
	at[size] = '\0';
	return true;
}

static bool get_number(const struct json_node *node, uint64_t max, uint64_t *out)
{
	struct cj_error ignored = { 0 };
	return node->type == JSON_NUMBER && parse_u64(node->text, 0, max, out, &ignored) == 0;
}

static bool get_code(const struct json_node *node, int *out)
{
	uint64_t value = 0;
	bool is_none = node->type == JSON_NULL;
	if (!is_none && !get_number(node, INT_MAX, &value))
		return false;
	*out = is_none ? -1 : (int)value;
	return true;
}

static bool get_status(const struct json_node *node, enum status *out)
{
	for (unsigned i = 0; node->type == JSON_STRING && i < STATUS_COUNT; i++) {
		if (strcmp(node->text, status_names[i]) == 0) {
			*out = (enum status)i;
			return true;
		}
	}
	return false;
}

static bool get_value(const struct field *f, const struct json_node *node, char *record)
{
	void *at = record + f->offset;

	switch (f->kind) {
	case KIND_WORD:
	case KIND_SENTENCE:
		return node->type == JSON_STRING && get_text(f, node->text, at);
	case KIND_MAYBE:
		*(bool *)(record + f->with) = node->type != JSON_NULL;
		return node->type == JSON_NULL || get_number(node, UINT64_MAX, at);
	case KIND_NUMBER:
		return get_number(node, UINT64_MAX, at);
	case KIND_CODE:
		return get_code(node, at);
	case KIND_FLAG:
		*(bool *)at = node->boolean;
		return node->type == JSON_BOOL;
	case KIND_STATUS:
		return get_status(node, at);
	}
	return false;
}

/* `others` members are there beside the table's. */
static int get_fields(const char *what, const struct json_node *object, const struct field *table,
		      size_t count, size_t others, void *record, struct cj_error *err)
{
	if (object->type != JSON_OBJECT)
		return cj_reject(err, "%s: not an object", what);
	for (size_t i = 0; i < count; i++) {
		const struct json_node *node = json_get(object, table[i].key);
		if (!node || !get_value(&table[i], node, record))
			return cj_reject(err, "%s: '%s' is %s", what, table[i].key,
					 node ? "wrong" : "missing");
	}
	if (object->count != count + others)
		return cj_reject(err, "%s: it has more members than are known", what);
	return 0;
}

/* --- the job ------------------------------------------------------------------------ */

int job_write(const struct job *job, struct cj_error *err)
{
	auto_json_writer struct json_writer *w = json_writer_create(false);
	const char *header = NULL;
	char newline[] = "\n";
	size_t size = 0;

	if (!w)
		return cj_fail(err, ENOMEM, "write a job");
	json_open_object(w);
	put_fields(w, job_fields, LENGTH(job_fields), job);
	json_close_object(w);
	if (json_writer_take(w, &header, &size, err) < 0)
		return cj_wrap(err, "write a job");
	const struct iovec parts[] = {
		{ (void *)header, size },
		{ newline, 1 },
		{ (void *)job->body, job->body_size },
	};
	return fd_memfd_sealed_parts("job", parts, LENGTH(parts), err);
}

static int read_memfd(int memfd, struct arena *a, char **out_text, size_t *out_size,
		      struct cj_error *err)
{
	struct stat st;
	int seals = fcntl(memfd, F_GET_SEALS);
	if (seals < 0 || fstat(memfd, &st) < 0)
		return cj_fail(err, errno, "look at the job");
	if ((seals & JOB_SEALS) != JOB_SEALS)
		return cj_reject(err, "the job can still be changed");

	size_t size = (size_t)st.st_size;
	char *text = arena_alloc(a, size + 1);
	if (!text)
		return cj_fail(err, ENOMEM, "read the job");
	for (size_t at = 0; at < size;) {
		ssize_t got = pread(memfd, text + at, size - at, (off_t)at);
		if (got <= 0)
			return cj_fail(err, got < 0 ? errno : EIO, "read the job");
		at += (size_t)got;
	}
	*out_text = text;
	*out_size = size;
	return 0;
}

int job_read(int memfd, struct arena *a, struct job *out, struct cj_error *err)
{
	char *text = NULL;
	size_t size = 0;
	const struct json_node *header = NULL;
	struct job job = { 0 };

	if (read_memfd(memfd, a, &text, &size, err) < 0)
		return -err->code;
	assert(text); /* read_memfd() has set it */
	const char *end = memchr(text, '\n', size < HEADER_MAX ? size : HEADER_MAX);
	if (!end)
		return cj_reject(err, "the job has no header");
	if (json_parse("job", text, (size_t)(end - text), a, &header, err) < 0 ||
	    get_fields("job", header, job_fields, LENGTH(job_fields), 0, &job, err) < 0)
		return -err->code;
	job.body = end + 1;
	job.body_size = size - (size_t)(end + 1 - text);
	*out = job;
	return 0;
}

union descriptor_room {
	struct cmsghdr header;
	char room[CMSG_SPACE(sizeof(int))];
};

static struct msghdr job_message(struct iovec *byte, union descriptor_room *control)
{
	return (struct msghdr){ .msg_iov = byte,
				.msg_iovlen = 1,
				.msg_control = control,
				.msg_controllen = sizeof(*control) };
}

int job_send(int sock_fd, int memfd, struct cj_error *err)
{
	char mark = 0;
	struct iovec byte = { &mark, 1 };
	union descriptor_room control = { 0 };
	const struct msghdr msg = job_message(&byte, &control);

	control.header.cmsg_level = SOL_SOCKET;
	control.header.cmsg_type = SCM_RIGHTS;
	control.header.cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(&control.header), &memfd, sizeof(memfd));
	ssize_t sent;
	do
		sent = sendmsg(sock_fd, &msg, MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	return sent < 0 ? cj_fail(err, errno, "hand a job to its worker") : 0;
}

int job_receive(int sock_fd, struct cj_error *err)
{
	char mark = 0;
	struct iovec byte = { &mark, 1 };
	union descriptor_room control = { 0 };
	struct msghdr msg = job_message(&byte, &control);
	int memfd = -1;

	ssize_t got;
	do
		got = recvmsg(sock_fd, &msg, MSG_CMSG_CLOEXEC);
	while (got < 0 && errno == EINTR);
	if (got < 0)
		return cj_fail(err, errno, "receive a job");
	if (got == 0)
		return cj_reject_as(err, EPIPE, "the server ended before it had a job");
	const struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
	if (!c || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS ||
	    c->cmsg_len != CMSG_LEN(sizeof(int)))
		return cj_reject(err, "the job came without its descriptor");
	memcpy(&memfd, CMSG_DATA(c), sizeof(memfd));
	return memfd;
}

/* --- lines upwards ------------------------------------------------------------------- */

static void open_line(struct json_writer *w, const char *type)
{
	json_open_object(w);
	json_member_text(w, "type", type);
}

void summary_write(struct json_writer *w, const struct summary *s)
{
	open_line(w, "summary");
	put_fields(w, summary_fields, LENGTH(summary_fields), s);
	json_close_object(w);
}

int summary_read(const struct json_node *line, struct summary *out, struct cj_error *err)
{
	struct summary s = { 0 };
	const struct json_node *type = json_get(line, "type");

	if (!type || type->type != JSON_STRING || strcmp(type->text, "summary") != 0)
		return cj_reject(err, "summary: it is another line");
	if (get_fields("summary", line, summary_fields, LENGTH(summary_fields), 1, &s, err) < 0)
		return -err->code;
	*out = s;
	return 0;
}

/* In one piece: the socket is empty, and the line shorter than its buffer. */
static int send_line(int sock_fd, struct json_writer *w, struct cj_error *err)
{
	const char *text = NULL;
	char newline[] = "\n";
	size_t size = 0;

	json_close_object(w);
	if (json_writer_take(w, &text, &size, err) < 0)
		return -err->code;
	const struct iovec parts[] = { { (void *)text, size }, { newline, 1 } };
	if (writev(sock_fd, parts, LENGTH(parts)) != (ssize_t)size + 1)
		return cj_fail(err, errno, "write to the server");
	return 0;
}

int ready_tell(int sock_fd, struct cj_error *err)
{
	auto_json_writer struct json_writer *w = json_writer_create(false);
	if (!w)
		return cj_fail(err, ENOMEM, "tell that the jail waits");
	open_line(w, "ready");
	return send_line(sock_fd, w, err);
}

void unready_tell(int sock_fd, const struct cj_error *why)
{
	struct cj_error ignored; /* the end of file tells the same with fewer words */
	auto_json_writer struct json_writer *w = json_writer_create(false);
	if (!w)
		return;
	open_line(w, "unready");
	json_member_text(w, "stage", why->stage);
	json_member_text(w, "message", why->msg);
	json_member_filled(w, "hint", why->hint);
	(void)!send_line(sock_fd, w, &ignored);
}

static const char *text_of(const struct json_node *line, const char *key)
{
	const struct json_node *node = line && line->type == JSON_OBJECT ? json_get(line, key)
									 : NULL;
	return node && node->type == JSON_STRING ? node->text : "";
}

void unready_read(const char *line, size_t size, char *out, size_t out_size)
{
	auto_arena struct arena a = { 0 };
	const struct json_node *root = NULL;
	struct cj_error ignored = { 0 }; /* then it gave no reason that can be read */

	(void)!json_parse("worker", line, size, &a, &root, &ignored);
	const char *message = text_of(root, "message"), *hint = text_of(root, "hint");
	(void)snprintf(out, out_size, "%s%s%s%s", message[0] ? message : "it gave no reason",
		       hint[0] ? " (" : "", hint, hint[0] ? ")" : "");
}
