/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The messages between server and worker.
 *
 * Each message is a table of keys, which one reader and one writer walk.  Each member is required
 * and no other one is taken: both sides are one build of one program, and a difference is a fault.
 */
#include "runtime/service/worker/job.h"

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
#include "runtime/base/json/json_record.h"
#include "runtime/base/scope.h"
#include "runtime/base/text.h"

#define JOB_SEALS     (F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK)
#define LENGTH(table) (sizeof(table) / sizeof((table)[0]))
#define HEADER_MAX    2048 /* a dozen short members */

const char *const tier_names[] = {
	[TIER_COLD] = "cold",
	[TIER_JAIL] = "jail",
	[TIER_INTERPRETER] = "interpreter",
	[TIER_REPL] = "repl",
};
static_assert(sizeof(tier_names) / sizeof(tier_names[0]) == TIER_COUNT, "every tier has a name");

const char *const job_kind_names[] = {
	[JOB_RUN] = "run",
	[JOB_SESSION] = "session",
	[JOB_EXEC] = "exec",
	[JOB_FILE] = "file",
};
static_assert(sizeof(job_kind_names) / sizeof(job_kind_names[0]) == JOB_KIND_COUNT,
	      "every kind of job has a name");

/* --- the messages' members -------------------------------------------------------- */

#define U64  JSON_TAKES_NUMBER, .set = json_set_u64, .write = json_write_u64, .is_required = true
#define FLAG JSON_TAKES_BOOL, .set = json_set_bool, .write = json_write_bool, .is_required = true
#define CODE                                                                                       \
	(JSON_TAKES_NUMBER | JSON_TAKES_NULL), .set = json_set_int, .write = json_write_int,       \
					       .is_required = true
#define KNOWN                                                                                      \
	(JSON_TAKES_NUMBER | JSON_TAKES_NULL), .set = json_set_known_u64,                          \
					       .write = json_write_known_u64, .is_required = true
#define STATUS                                                                                     \
	JSON_TAKES_STRING, .set = json_set_name, .write = json_write_name, .is_required = true,    \
			   .detail = status_names, .max = STATUS_COUNT
/* char[]: refused when it is too long, or cut. */
#define CHARS_BY(how, type, member)                                                                \
	JSON_TAKES_STRING, .set = (how), .write = json_write_chars, .is_required = true,           \
			   .offset = offsetof(struct type, member),                                \
			   .max = sizeof(((struct type *)0)->member) - 1
#define CHARS(type, member)     CHARS_BY(json_set_chars, type, member)
#define CUT_CHARS(type, member) CHARS_BY(json_set_chars_cut, type, member)

#define AT(member) .offset = offsetof(struct job, member)
static const struct json_key job_keys[] = {
	{ "id", CHARS(job, id) },
	{ "kind", JSON_TAKES_STRING, .set = json_set_name, .write = json_write_name,
	  .is_required = true, .detail = job_kind_names, .max = JOB_KIND_COUNT, AT(kind) },
	{ "request_id", CHARS(job, trace.request_id) },
	{ "traceparent", CHARS(job, trace.traceparent) },
	{ "sent_us", U64, AT(sent_us) },
	{ "wants_events", FLAG, AT(wants_events) },
	{ "may_name_host_paths", FLAG, AT(may_name_host_paths) },
	{ "profile_sha256", CHARS(job, profile_sha256) },
	{ "memory_bytes", U64, AT(clamp.ceilings.memory_bytes) },
	{ "millicpus", U64, AT(clamp.ceilings.millicpus) },
	{ "pids", U64, AT(clamp.ceilings.pids) },
	{ "wall_ms", U64, AT(clamp.ceilings.wall_ms) },
	{ "disk_bytes", U64, AT(clamp.ceilings.disk_bytes) },
	{ "output_bytes", U64, AT(clamp.ceilings.output_bytes) },
	{ "no_network", FLAG, AT(clamp.no_network) },
};
#undef AT
static const struct json_record job_record = JSON_RECORD(job_keys, "the job");

static int set_type(const struct json_reader *in, const struct json_key *k, const char *text,
		    void *record, struct cj_error *err)
{
	(void)in;
	(void)k;
	(void)record;
	return strcmp(text, "summary") == 0 ? 0 : cj_reject(err, "'%.32s' is not 'summary'", text);
}

static void write_type(struct json_writer *w, const struct json_key *k, const void *record)
{
	(void)k;
	(void)record;
	json_put_string(w, "summary");
}

#define AT(member) .offset = offsetof(struct summary, member)
static const struct json_key summary_keys[] = {
	{ "type", JSON_TAKES_STRING, .set = set_type, .write = write_type, .is_required = true },
	{ "status", STATUS, AT(status) },
	{ "exit_code", CODE, AT(exit_code) },
	{ "signal", CODE, AT(signal) },
	{ "error_stage", CUT_CHARS(summary, error_stage) },
	{ "error_message", CUT_CHARS(summary, error_message) },
	{ "is_callers_own", FLAG, AT(is_callers_own) },
	{ "profile_sha256", CHARS(summary, profile_sha256) },
	{ "code_sha256", CHARS(summary, code_sha256) },
	{ "wall_ms", U64, AT(usage.wall_ms) },
	{ "cpu_user_ms", U64, AT(usage.cpu_user_ms) },
	{ "cpu_system_ms", U64, AT(usage.cpu_system_ms) },
	{ "memory_peak_bytes", KNOWN, AT(usage.memory_peak_bytes),
	  .known = offsetof(struct summary, usage.has_memory_peak) },
	{ "pids_peak", KNOWN, AT(usage.pids_peak),
	  .known = offsetof(struct summary, usage.has_pids_peak) },
	{ "has_network", FLAG, AT(has_network) },
	{ "network_state", JSON_TAKES_STRING, .set = json_set_name, .write = json_write_name,
	  .is_required = true, .detail = network_state_names, .max = NETWORK_STATE_COUNT,
	  AT(network_state) },
	{ "setup_us", U64, AT(setup_us) },
	{ "denied_packets", U64, AT(denied_packets) },
	{ "denied_syscalls", U64, AT(denied_syscalls) },
	{ "stdout_bytes", U64, AT(stdout_bytes) },
	{ "stderr_bytes", U64, AT(stderr_bytes) },
	{ "artifacts", U64, AT(artifacts) },
};
#undef AT
static const struct json_record summary_record = JSON_RECORD(summary_keys, "the summary");

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
	json_record_write(w, &job_record, job);
	json_close_object(w);
	if (json_writer_take(w, &header, &size, err) < 0)
		return cj_wrap(err, "write a job");
	const struct iovec parts[] = {
		{ (void *)header, size },
		{ newline, 1 },
		{ job->body, job->body_size },
	};
	return fd_memfd_sealed_parts("job", parts, LENGTH(parts), err);
}

static int read_memfd(int memfd, struct arena *a, char **out_text, size_t *out_size,
		      struct cj_error *err)
{
	struct stat st;
	int seals = fcntl(memfd, F_GET_SEALS);
	if (seals < 0 || fstat(memfd, &st) < 0)
		return cj_fail(err, errno, "check the memfd of the job");
	if ((seals & JOB_SEALS) != JOB_SEALS)
		return cj_reject(err, "the memfd of the job is not sealed");

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
	char *end = memchr(text, '\n', size < HEADER_MAX ? size : HEADER_MAX);
	if (!end)
		return cj_reject(err, "the job has no header");
	const struct json_reader in = { .file = "job", .arena = a };
	if (json_parse("job", text, (size_t)(end - text), a, &header, err) < 0 ||
	    json_record_read(&in, header, &job_record, &job, err) < 0)
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
	return sent < 0 ? cj_fail(err, errno, "send a job to its worker") : 0;
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
	json_open_object(w);
	json_record_write(w, &summary_record, s);
	json_close_object(w);
}

int summary_read(const struct json_node *line, struct summary *out, struct cj_error *err)
{
	struct summary s = { 0 };
	const struct json_reader in = { .file = "summary" };
	if (json_record_read(&in, line, &summary_record, &s, err) < 0)
		return -err->code;
	*out = s;
	return 0;
}

int job_send_line(int sock_fd, struct json_writer *w, struct cj_error *err)
{
	const char *text = NULL;
	char newline[] = "\n";
	size_t size = 0;

	if (json_writer_take(w, &text, &size, err) < 0)
		return -err->code;
	const struct iovec parts[] = { { (void *)text, size }, { newline, 1 } };
	if (writev(sock_fd, parts, LENGTH(parts)) != (ssize_t)size + 1)
		return cj_fail(err, errno, "write to the server");
	return 0;
}

static void put_reason(struct json_writer *w, const struct cj_error *why)
{
	json_member_text(w, "stage", why->stage);
	json_member_text(w, "message", why->msg);
	json_member_filled(w, "hint", why->hint);
}

int ready_tell(int sock_fd, bool is_of_zygote, const struct cj_error *zygote_failure,
	       struct cj_error *err)
{
	auto_json_writer struct json_writer *w = json_writer_create(false);
	if (!w)
		return cj_fail(err, ENOMEM, "report that the jail is ready");
	open_line(w, "ready");
	json_member_bool(w, "zygote", is_of_zygote);
	if (zygote_failure)
		put_reason(w, zygote_failure);
	json_close_object(w);
	return job_send_line(sock_fd, w, err);
}

void unready_tell(int sock_fd, const struct cj_error *why)
{
	struct cj_error ignored; /* end of file reports a failure as well, without a reason */
	auto_json_writer struct json_writer *w = json_writer_create(false);
	if (!w)
		return;
	open_line(w, "unready");
	put_reason(w, why);
	json_close_object(w);
	(void)!job_send_line(sock_fd, w, &ignored);
}

void stale_tell(int sock_fd)
{
	struct cj_error ignored; /* the server has gone: the keeper notices */
	auto_json_writer struct json_writer *w = json_writer_create(false);
	if (!w)
		return;
	open_line(w, "stale");
	json_close_object(w);
	(void)!job_send_line(sock_fd, w, &ignored);
}

void ready_read(const char *line, size_t size, struct readiness_line *out)
{
	auto_arena struct arena a = { 0 };
	const struct json_node *root = NULL;
	struct cj_error ignored = { 0 }; /* without a reason that can be read */

	*out = (struct readiness_line){ 0 };
	(void)!json_parse("worker", line, size, &a, &root, &ignored);
	const char *message = json_get_text(root, "message"), *hint = json_get_text(root, "hint");
	const char *stage = json_get_text(root, "stage"), *type = json_get_text(root, "type");
	const struct json_node *zygote = root ? json_get(root, "zygote") : NULL;
	out->is_of_zygote = zygote && zygote->type == JSON_BOOL && zygote->boolean;
	if (stage)
		(void)snprintf(out->stage, sizeof(out->stage), "%s", stage);
	if (!message && type && strcmp(type, "ready") == 0)
		return;
	if (!message || !message[0])
		message = "it gave no reason";
	if (hint && hint[0])
		(void)snprintf(out->why, sizeof(out->why), "%s (%s)", message, hint);
	else
		(void)snprintf(out->why, sizeof(out->why), "%s", message);
}
