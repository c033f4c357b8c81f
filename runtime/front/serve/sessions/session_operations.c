/* SPDX-License-Identifier: Apache-2.0 */
/* Operations on the files of sessions: a worker of the keeper for each.  Acts. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/clock.h"
#include "runtime/base/json/json.h"
#include "runtime/base/scope.h"
#include "runtime/base/text.h"
#include "runtime/front/serve/api/api_reply.h"
#include "runtime/front/serve/http/http.h"
#include "runtime/front/serve/operations/slog.h"
#include "runtime/front/serve/sessions/keeper_parts.h"

#define RETRY_SOON_MS 1000
#define LIST_LINE_MAX (16u << 20)
#define LINE_ROOM     (64u << 10) /* beside the bytes */

/* --- answers --------------------------------------------------------------------- */

static const char *request_id_of(const struct file_operation *f)
{
	return f->exchange ? exchange_trace(f->exchange)->request_id : "";
}

static void refuse(struct file_operation *f, enum api_code code, const char *message)
{
	struct exchange *x = take_ptr(f->exchange);

	f->is_over = true;
	if (x)
		exchange_refuse(x, code, message, NULL,
				api_rows[code].http_status == 429 ? RETRY_SOON_MS : 0);
}

/* The worker did not answer. */
static void fail(struct file_operation *f, const char *why)
{
	const struct session_entry *e = f->keeper->entry;

	if (e->state >= ENTRY_ENDING) {
		refuse(f, API_SESSION_ENDED, e->message);
		return;
	}
	slog(SLOG_ERROR, request_id_of(f), "session %s: a file operation failed: %s", e->id, why);
	refuse(f, API_INTERNAL, NULL);
}

static void reply_node(struct file_operation *f, const struct json_node *result)
{
	auto_json_writer struct json_writer *w = json_writer_create(false);

	if (w)
		json_put_node(w, result);
	api_reply_json(take_ptr(f->exchange), 200, w);
}

static void reply_bytes(struct file_operation *f, const struct json_node *result)
{
	struct http_reply reply = { .status = 200, .content_type = "application/octet-stream" };
	const struct json_node *base64 = json_get_typed(result, "base64", JSON_STRING);

	if (!base64) {
		fail(f, "its worker sent no bytes");
		return;
	}
	if (json_get_typed(result, "offset", JSON_NUMBER)) { /* a part */
		reply_node(f, result);
		return;
	}
	size_t size = strlen(base64->text);
	reply.text = malloc(TEXT_BASE64_ROOM(size) + 1);
	if (reply.text && text_base64_decode(base64->text, size, reply.text, &reply.size) < 0) {
		free(reply.text);
		fail(f, "its worker sent bytes that are not base64");
		return;
	}
	exchange_reply(take_ptr(f->exchange), &reply);
}

static void reply_path(struct file_operation *f, const struct json_node *result)
{
	auto_json_writer struct json_writer *w = json_writer_create(false);
	const struct json_node *bytes = json_get_typed(result, "bytes", JSON_NUMBER);

	if (w) {
		json_open_object(w);
		json_member_text(w, "path", f->path);
		if (bytes) {
			json_put_key(w, "bytes");
			json_put_node(w, bytes);
		}
		json_close_object(w);
	}
	api_reply_json(take_ptr(f->exchange), 200, w);
}

static enum api_code code_of(enum file_error error)
{
	static const enum api_code codes[FILE_ERROR_COUNT] = {
		[FILE_NOT_FOUND] = API_NOT_FOUND, [FILE_NOT_REGULAR] = API_NOT_REGULAR,
		[FILE_TOO_LARGE] = API_TOO_LARGE, [FILE_OUTSIDE] = API_BAD_REQUEST,
		[FILE_NO_SPACE] = API_NO_SPACE,   [FILE_DENIED] = API_FORBIDDEN_FILE,
		[FILE_FAILED] = API_INTERNAL,
	};
	return codes[error];
}

static void answer(struct file_operation *f, const struct file_answer *a)
{
	static void (*const replies[FILE_OP_COUNT])(struct file_operation *,
						    const struct json_node *) = {
		[FILE_GET] = reply_bytes,
		[FILE_PUT] = reply_path,
		[FILE_LIST] = reply_node,
		[FILE_REMOVE] = reply_path,
	};

	f->is_over = true;
	if (!f->exchange)
		return;
	if (a->is_ok)
		replies[f->op](f, a->result);
	else if (a->error == FILE_FAILED)
		fail(f, a->message);
	else
		refuse(f, code_of(a->error), a->message);
}

/* --- the worker ------------------------------------------------------------------- */

static void on_line(struct worker_conn *conn, const char *text, size_t size)
{
	struct file_operation *f = conn->owner;
	auto_arena struct arena a = { 0 };
	struct readiness_line said;
	struct file_answer got;
	struct cj_error err = { 0 };
	char type[16];

	if (f->is_over)
		return;
	worker_conn_line_type(text, type);
	if (strcmp(type, "ready") == 0)
		return;
	if (strcmp(type, "unready") == 0) {
		ready_read(text, size, &said);
		slog(SLOG_WARNING, request_id_of(f), "session %s: %s", f->keeper->entry->id,
		     said.why);
		refuse(f, API_TOO_MANY_WAITING, NULL);
	} else if (file_answer_read(text, size, &a, &got, &err) < 0) {
		fail(f, err.msg);
	} else {
		answer(f, &got);
	}
}

static void destroy(struct file_operation *f)
{
	TAILQ_REMOVE(&f->keeper->files, f, link);
	f->keeper->entry->files--;
	session_entry_touch(f->keeper->entry, clock_ms());
	worker_conn_destroy(&f->conn);
	free(f->path);
	free(f);
}

static void on_ended(struct worker_conn *conn, const char *why)
{
	struct file_operation *f = conn->owner;

	if (!f->is_over)
		fail(f, why[0] ? why : "its worker ended without an answer");
	destroy(f);
}

/* Nobody wants the answer: the worker ends with its socket. */
static void on_caller_gone(void *holder)
{
	struct file_operation *f = holder;

	f->exchange = NULL;
	destroy(f);
}

static int send_job(struct file_operation *f, const struct file_job *job, struct cj_error *err)
{
	auto_free char *body = NULL;
	struct job whole = { .kind = JOB_FILE, .trace = *exchange_trace(f->exchange) };

	if (file_job_write(job, &body, &whole.body_size, err) < 0)
		return -err->code;
	whole.body = body;
	(void)snprintf(whole.id, sizeof(whole.id), "%s", f->keeper->entry->id);
	return worker_send_job(&f->conn->worker, &whole, err);
}

static size_t line_max(const struct file_job *job)
{
	return job->op == FILE_GET ? (size_t)job->max_bytes / 3 * 4 + LINE_ROOM : LIST_LINE_MAX;
}

static int begin(struct file_operation *f, const struct file_job *job, struct cj_error *err)
{
	struct keeper *k = f->keeper;
	struct worker worker = WORKER_NULL;

	if (session_send_worker(&k->conn->worker,
				job->op == FILE_PUT ? SESSION_WORKER_PUT : SESSION_WORKER_FILE, "",
				&worker, NULL, err) < 0)
		return -err->code;
	f->conn = worker_conn_create(k->all->context.loop, &worker, err);
	if (!f->conn)
		return -err->code;
	f->conn->owner = f;
	f->conn->line = on_line;
	f->conn->ended = on_ended;
	f->conn->line_max = line_max(job);
	return send_job(f, job, err);
}

static struct file_operation *create(struct keeper *k, const struct file_job *job,
				     struct exchange *x)
{
	struct file_operation *f = calloc(1, sizeof(*f));
	char *path = f ? strdup(job->path) : NULL;

	if (!path) {
		free(f);
		return NULL;
	}
	*f = (struct file_operation){ .keeper = k,
				      .exchange = x,
				      .op = job->op,
				      .path = path,
				      .deadline_ms = clock_ms() + SESSION_FILE_MS };
	TAILQ_INSERT_TAIL(&k->files, f, link);
	k->entry->files++;
	session_entry_touch(k->entry, clock_ms());
	return f;
}

/* API_CODE_COUNT: there is room for one more. */
static enum api_code admit(const struct keepers *all, const struct session_entry *e)
{
	const struct keeper *k;
	unsigned callers = 0, total = 0;

	TAILQ_FOREACH(k, &all->list, link) {
		total += k->entry->files;
		callers += strcmp(k->entry->caller, e->caller) == 0 ? k->entry->files : 0;
	}
	if (callers >= SESSION_FILES_MAX)
		return API_TOO_MANY_WAITING;
	return total >= SESSION_ALL_FILES_MAX ? API_QUEUE_FULL : API_CODE_COUNT;
}

void keeper_file(struct keepers *all, struct session_entry *e, const struct file_job *job,
		 struct exchange *x)
{
	enum api_code code = admit(all, e);
	struct cj_error err = { 0 };

	if (code != API_CODE_COUNT) {
		exchange_refuse(x, code, NULL, NULL, RETRY_SOON_MS);
		return;
	}
	struct file_operation *f = create(e->keeper, job, x);
	if (!f) {
		exchange_refuse(x, API_INTERNAL, NULL, NULL, 0);
		return;
	}
	exchange_hold(x, on_caller_gone, f);
	if (begin(f, job, &err) < 0) {
		fail(f, err.msg);
		destroy(f);
	}
}

/* --- time ------------------------------------------------------------------------- */

void keeper_tick_files(struct keeper *k, uint64_t now_ms, int *wait_ms)
{
	struct file_operation *f, *next;

	for (f = TAILQ_FIRST(&k->files); f; f = next) {
		next = TAILQ_NEXT(f, link);
		if (f->deadline_ms > now_ms) {
			*wait_ms = loop_sooner(*wait_ms, (int)(f->deadline_ms - now_ms));
			continue;
		}
		if (!f->is_over)
			fail(f, "it took too long");
		destroy(f);
	}
}

void keeper_close_files(struct keeper *k)
{
	struct file_operation *f;

	while ((f = TAILQ_FIRST(&k->files)) != NULL) {
		if (!f->is_over)
			fail(f, "the session has ended");
		destroy(f);
	}
}
