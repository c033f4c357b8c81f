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
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include "runtime/base/files/fd.h"
#include "runtime/base/unix.h"
#include "runtime/base/json/json_record.h"
#include "runtime/base/scope.h"
#include "runtime/run/report/result.h"

#define JOB_SEALS  (F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK)
#define HEADER_MAX 2048 /* a dozen short members */

const char *const tier_names[] = {
	[TIER_COLD] = "cold",
	[TIER_JAIL] = "jail",
	[TIER_INTERPRETER] = "interpreter",
	[TIER_REPL] = "repl",
};
static_assert(COUNT_OF(tier_names) == TIER_COUNT, "every tier has a name");

const char *const job_kind_names[] = {
	[JOB_RUN] = "run",
	[JOB_SESSION] = "session",
	[JOB_EXEC] = "exec",
	[JOB_FILE] = "file",
};
static_assert(COUNT_OF(job_kind_names) == JOB_KIND_COUNT, "every kind of job has a name");

/* A row of a table: the key, and the field of the struct. */
#define ROW(key, type, field, takes, setter, writer, ...)                                          \
	{                                                                                          \
		.name = (key), .types = (takes), .is_required = true,                              \
		.offset = offsetof(type, field), .set = (setter), .write = (writer), __VA_ARGS__   \
	}
#define NUMBER(key, type, field)                                                                   \
	ROW(key, type, field, JSON_TAKES_NUMBER, json_set_u64, json_write_u64, )
#define FLAG(key, type, field)                                                                     \
	ROW(key, type, field, JSON_TAKES_BOOL, json_set_bool, json_write_bool, )
#define ENUM(key, type, field, names, count)                                                       \
	ROW(key, type, field, JSON_TAKES_STRING, json_set_name, json_write_name,                   \
	    .detail = (names), .max = (count))
/* char[]; `how` refuses a text that is too long, or cuts it. */
#define TEXT(key, type, field, how)                                                                \
	ROW(key, type, field, JSON_TAKES_STRING, how, json_write_chars,                            \
	    .max = sizeof(((type *)0)->field) - 1)
/* An int, null below 0. */
#define CODE(key, type, field)                                                                     \
	ROW(key, type, field, JSON_TAKES_NUMBER | JSON_TAKES_NULL, json_set_int, json_write_int, )
/* A number, null without the flag has_FIELD. */
#define KNOWN(key, type, field, has_field)                                                         \
	ROW(key, type, field, JSON_TAKES_NUMBER | JSON_TAKES_NULL, json_set_known_u64,             \
	    json_write_known_u64, .known = offsetof(type, has_field))

static const struct json_key job_keys[] = {
	TEXT("id", struct job, id, json_set_chars),
	ENUM("kind", struct job, kind, job_kind_names, JOB_KIND_COUNT),
	TEXT("request_id", struct job, trace.request_id, json_set_chars),
	TEXT("traceparent", struct job, trace.traceparent, json_set_chars),
	NUMBER("sent_us", struct job, sent_us),
	FLAG("wants_events", struct job, wants_events),
	FLAG("session_tools", struct job, session_tools),
	FLAG("calls_brief", struct job, calls_brief),
	NUMBER("calls_quoted", struct job, calls_quoted),
	FLAG("may_name_host_paths", struct job, may_name_host_paths),
	TEXT("profile_sha256", struct job, profile_sha256, json_set_chars),
	/* as GET /v1/profiles has them, where 1500 millicpus are 1.5 cpus */
	NUMBER("memory_bytes", struct job, clamp.ceilings.memory_bytes),
	NUMBER("millicpus", struct job, clamp.ceilings.millicpus),
	NUMBER("pids", struct job, clamp.ceilings.pids),
	NUMBER("timeout_ms", struct job, clamp.ceilings.wall_ms),
	NUMBER("disk_bytes", struct job, clamp.ceilings.disk_bytes),
	NUMBER("max_output_bytes", struct job, clamp.ceilings.output_bytes),
	FLAG("no_network", struct job, clamp.no_network),
};
static const struct json_record job_record = JSON_RECORD(job_keys, "the job");

static const char *const summary_types[] = { "summary" };

static const struct json_key summary_keys[] = {
	ENUM("type", struct summary, type, summary_types, 1),
	ENUM("status", struct summary, totals.status, status_names, STATUS_COUNT),
	CODE("exit_code", struct summary, totals.exit_code),
	CODE("signal", struct summary, totals.signal),
	TEXT("error_stage", struct summary, error_stage, json_set_chars_cut),
	TEXT("error_message", struct summary, error_message, json_set_chars_cut),
	FLAG("is_callers_own", struct summary, is_callers_own),
	TEXT("profile_sha256", struct summary, profile_sha256, json_set_chars),
	TEXT("code_sha256", struct summary, code_sha256, json_set_chars),
	NUMBER("wall_ms", struct summary, totals.usage.wall_ms),
	NUMBER("cpu_user_ms", struct summary, totals.usage.cpu_user_ms),
	NUMBER("cpu_system_ms", struct summary, totals.usage.cpu_system_ms),
	KNOWN("memory_peak_bytes", struct summary, totals.usage.memory_peak_bytes,
	      totals.usage.has_memory_peak),
	KNOWN("pids_peak", struct summary, totals.usage.pids_peak, totals.usage.has_pids_peak),
	FLAG("has_network", struct summary, has_network),
	ENUM("network_state", struct summary, network_state, network_state_names,
	     NETWORK_STATE_COUNT),
	NUMBER("setup_us", struct summary, setup_us),
	NUMBER("denied_packets", struct summary, totals.denied_packets),
	NUMBER("denied_syscalls", struct summary, totals.denied_syscalls),
	NUMBER("stdout_bytes", struct summary, totals.stdout_bytes),
	NUMBER("stderr_bytes", struct summary, totals.stderr_bytes),
	NUMBER("artifacts", struct summary, totals.artifacts),
	NUMBER("limits_hit", struct summary, totals.limits_hit),
};
static const struct json_record summary_record = JSON_RECORD(summary_keys, "the summary");

int job_write(const struct job *job, struct cj_error *err)
{
	auto_json_writer struct json_writer *w = json_writer_create(false);
	struct blob header = { 0 };
	char newline[] = "\n";

	json_record_write(w, &job_record, job);
	if (json_writer_take(w, &header, err) < 0)
		return cj_wrap(err, "write a job");
	const struct iovec parts[] = {
		{ (void *)header.bytes, header.size },
		{ newline, 1 },
		{ job->body, job->body_size },
	};
	return fd_memfd_sealed_parts("job", parts, COUNT_OF(parts), err);
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

int job_send(int sock_fd, int memfd, int calls_fd, struct cj_error *err)
{
	char mark = 0;
	int fds[] = { memfd, calls_fd };
	struct iovec byte = { &mark, sizeof(mark) };
	const struct unix_message m = {
		.parts = &byte, .nparts = 1, .fds = fds, .nfds = calls_fd > 0 ? 2 : 1
	};
	ssize_t sent = unix_send_message(sock_fd, &m);

	return sent < 0 ? cj_fail(err, (int)-sent, "send a job to its worker") : 0;
}

int job_receive(int sock_fd, int *out_calls_fd, struct cj_error *err)
{
	char mark = 0;
	int fds[] = { -1, -1 };
	struct iovec byte = { &mark, 1 };
	struct unix_message m = {
		.parts = &byte, .nparts = 1, .fds = fds, .nfds = out_calls_fd ? 2 : 1
	};
	ssize_t got = unix_receive_message(sock_fd, &m);
	if (got < 0)
		return cj_fail(err, (int)-got, "receive a job");
	if (got == 0)
		return cj_reject_as(err, EPIPE, "the server ended before it had a job");
	if (m.nfds == 0 || m.is_cut) {
		cj_close(&fds[0]);
		cj_close(&fds[1]);
		return cj_reject(err, "the job came without its descriptor");
	}
	if (out_calls_fd)
		*out_calls_fd = m.nfds == 2 ? fds[1] : -1;
	return fds[0];
}

void summary_write(struct json_writer *w, const struct summary *s)
{
	json_record_write(w, &summary_record, s);
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
	struct blob text = { 0 };
	char newline[] = "\n";

	if (json_writer_take(w, &text, err) < 0)
		return -err->code;
	const struct iovec parts[] = { { (void *)text.bytes, text.size }, { newline, 1 } };
	if (writev(sock_fd, parts, COUNT_OF(parts)) != (ssize_t)text.size + 1)
		return cj_fail(err, errno, "write to the server");
	return 0;
}

/* `zygote` and `why` may be NULL. */
static int tell(int sock_fd, const char *type, const bool *zygote, const struct cj_error *why,
		struct cj_error *err)
{
	auto_json_writer struct json_writer *w = json_writer_create(false);
	json_open_object(w);
	json_member_text(w, "type", type);
	if (zygote)
		json_member_bool(w, "zygote", *zygote);
	if (why) {
		json_member_text(w, "stage", why->stage);
		json_member_text(w, "message", why->msg);
		json_member_filled(w, "hint", why->hint);
	}
	json_close_object(w);
	return job_send_line(sock_fd, w, err);
}

int ready_tell(int sock_fd, bool is_of_zygote, const struct cj_error *zygote_failure,
	       struct cj_error *err)
{
	return tell(sock_fd, "ready", &is_of_zygote, zygote_failure, err);
}

void unready_tell(int sock_fd, const struct cj_error *why)
{
	struct cj_error ignored; /* end of file reports a failure as well, without a reason */
	(void)!tell(sock_fd, "unready", NULL, why, &ignored);
}

void stale_tell(int sock_fd)
{
	struct cj_error ignored; /* the server has gone: the keeper notices */
	(void)!tell(sock_fd, "stale", NULL, NULL, &ignored);
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
	out->is_of_zygote = json_is_true(root, "zygote");
	if (stage)
		(void)snprintf(out->stage, sizeof(out->stage), "%s", stage);
	if (!message && type && strcmp(type, "ready") == 0)
		return;
	if (!message || !message[0])
		message = "it gave no reason";
	bool has_hint = hint && hint[0];
	(void)snprintf(out->why, sizeof(out->why), "%s%s%s%s", message, has_hint ? " (" : "",
		       has_hint ? hint : "", has_hint ? ")" : "");
}

char *order_write_cancelled(const struct run_order *order, size_t *out_size)
{
	auto_json_writer struct json_writer *w = json_writer_create(false);
	const struct result_about about = { .profile_name = order->profile,
					    .profile_sha256 = order->job.profile_sha256,
					    .session = order->session[0] ? order->session : NULL };
	struct cj_error err = { 0 };
	struct outcome o;
	struct blob text;

	outcome_init(&o, order->job.id, 0);
	outcome_decide(&o, STATUS_CANCELLED);
	(void)snprintf(o.code_sha256, sizeof(o.code_sha256), "%s", order->code_sha256);
	json_open_object(w);
	json_member_text(w, "type", "result");
	json_put_key(w, "result");
	int rc = result_write(w, &o, &about, &err);
	json_close_object(w);
	outcome_fini(&o);
	if (rc < 0 || json_writer_take(w, &text, &err) < 0)
		return NULL;
	*out_size = text.size;
	return strndup(text.bytes, text.size);
}
