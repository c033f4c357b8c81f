/* SPDX-License-Identifier: Apache-2.0 */
/* Operations on the files of sessions: a worker of the keeper for each. */

#include "runtime/base/clock.h"
#include "runtime/base/json/json.h"
#include "runtime/base/scope.h"
#include "runtime/base/text.h"
#include "runtime/service/http/http.h"
#include "runtime/service/log/slog.h"
#include "runtime/service/sessions/sessions_parts.h"

#define LONG_LINE_MAX  (16u << 20)
#define LINE_MAX_BYTES (2 * FILE_PIECE)
#define BYTES_TYPE     "application/octet-stream"

struct file_operation {
	TAILQ_ENTRY(file_operation) link;
	struct session_entry *session;
	struct exchange *exchange; /* NULL: answered */
	struct worker_conn *conn;
	enum file_op op;
	bool wants_head; /* of get: its caller wants no bytes */
	char *path;
	uint64_t deadline_ms; /* for the next sign of life; 0: none */
	bool is_over;
	struct sessions_pipe pipe; /* of put */
	struct byte_queue held;    /* of get, for a caller without a connection */
};

static const char *request_id_of(const struct file_operation *f)
{
	return f->exchange ? exchange_trace(f->exchange)->request_id : "";
}

/* NULL: it is answered already. */
static struct exchange *take_exchange(struct file_operation *f)
{
	struct exchange *x = take_ptr(f->exchange);

	f->pipe.source = NULL;
	if (x)
		exchange_release(x);
	return x;
}

/* At the next tick: what it still sends is of no use. */
static void end_worker(struct file_operation *f)
{
	f->deadline_ms = clock_ms();
}

static void refuse(struct file_operation *f, enum api_code code, const char *message)
{
	struct exchange *x = take_exchange(f);

	f->is_over = true;
	end_worker(f);
	if (x && exchange_is_streaming(x) && f->op == FILE_WATCH &&
	    f->session->state >= ENTRY_ENDING)
		exchange_end_stream(x); /* with the session, so no change is missing */
	else if (x && exchange_is_streaming(x))
		exchange_break_stream(x);
	else if (x)
		exchange_refuse(x, code, message, NULL);
}

/* The worker did not answer. */
static void fail(struct file_operation *f, const char *why)
{
	const struct session_entry *e = f->session;

	if (e->state >= ENTRY_ENDING) {
		refuse(f, API_SESSION_ENDED, e->message);
		return;
	}
	slog(SLOG_ERROR, request_id_of(f), "session %s: a file operation failed: %s", e->id, why);
	refuse(f, API_INTERNAL, NULL);
}

/* The path, and a member of the result if it is there. */
static void reply_path(struct file_operation *f, const struct json_node *result)
{
	static const char *const members[] = { "bytes", "created" };
	auto_json_writer struct json_writer *w = json_writer_create(false);

	json_open_object(w);
	json_member_text(w, "path", f->path);
	for (size_t i = 0; i < COUNT_OF(members); i++) {
		const struct json_node *member = json_get(result, members[i]);
		if (member)
			json_member_node(w, members[i], member);
	}
	json_close_object(w);
	exchange_reply_json(take_exchange(f), 200, w);
}

static void reply_result(struct file_operation *f, const struct json_node *result)
{
	auto_json_writer struct json_writer *w = json_writer_create(false);

	json_put_node(w, result);
	exchange_reply_json(take_exchange(f), 200, w);
}

static void on_taken(void *holder)
{
	struct file_operation *f = holder;

	worker_conn_pause(f->conn, false);
}

static void begin_stream(struct file_operation *f, const struct json_node *result)
{
	(void)result;
	f->is_over = false;
	exchange_begin_stream(f->exchange, f->op == FILE_GET ? BYTES_TYPE : "application/x-ndjson",
			      on_taken);
	if (f->op == FILE_WATCH)
		f->deadline_ms = 0;
}

static void reply_bytes(struct file_operation *f, const struct json_node *result)
{
	struct http_reply head = { .status = 200, .content_type = BYTES_TYPE, .text = NULL };
	uint64_t bytes = 0;

	if (f->wants_head) { /* which http_reply.c sends without a body */
		(void)json_get_u64(result, "bytes", &bytes);
		head.text = strdup("");
		head.size = (size_t)bytes;
		exchange_reply(take_exchange(f), &head);
		end_worker(f);
	} else if (exchange_is_inner(f->exchange)) {
		f->is_over = false; /* it has no connection that could be read slowly */
	} else {
		begin_stream(f, result);
	}
}

static void pass_on(struct file_operation *f, const char *bytes, size_t size)
{
	bool is_put = exchange_is_inner(f->exchange)
			  ? byte_queue_add(&f->held, bytes, size) == 0
			  : exchange_put(f->exchange, bytes, size, false);

	if (!is_put)
		refuse(f, API_TOO_MANY_WAITING, NULL);
	else if (exchange_is_behind(f->exchange))
		worker_conn_pause(f->conn, true);
	if (f->deadline_ms > 0)
		f->deadline_ms = clock_ms() + SESSION_FILE_MS;
}

static void on_bytes(struct file_operation *f, const struct json_node *line)
{
	static char bytes[TEXT_BASE64_ROOM(4 * ((FILE_PIECE + 2) / 3)) + 1];
	const char *text = json_get_text(line, "base64");
	size_t length = text ? strlen(text) : SIZE_MAX, size = 0;

	if (length > 4 * ((FILE_PIECE + 2) / 3) ||
	    text_base64_decode(text, length, bytes, &size) < 0)
		fail(f, "its worker sent bytes that are not base64");
	else
		pass_on(f, bytes, size);
}

static void on_end(struct file_operation *f)
{
	struct http_reply reply = { .status = 200, .content_type = BYTES_TYPE };
	struct exchange *x = take_exchange(f);

	f->is_over = true;
	if (!exchange_is_inner(x)) {
		exchange_end_stream(x);
		return;
	}
	reply.size = byte_queue_size(&f->held);
	reply.text = reply.size > 0 ? take_ptr(f->held.bytes) : strdup("");
	exchange_reply(x, &reply);
}

/* After the first line of a get or a watch. */
static void on_more(struct file_operation *f, const char *type, const char *text, size_t size)
{
	auto_arena struct arena a = { 0 };
	const struct json_node *line = NULL;
	struct cj_error err = { 0 };

	if (json_parse_capped("file line", text, size, &a, &line, &err) < 0) {
		fail(f, err.msg);
	} else if (strcmp(type, "bytes") == 0 && f->op == FILE_GET) {
		on_bytes(f, line);
	} else if (strcmp(type, "event") == 0 && f->op == FILE_WATCH) {
		pass_on(f, text, size);
		if (f->exchange)
			pass_on(f, "\n", 1);
	} else if (strcmp(type, "end") == 0) {
		on_end(f);
	} else {
		fail(f, "its worker sent another line");
	}
}

/* The end of the bytes alone would publish the part that the worker has. */
static void give_up(struct file_operation *f, const char *why)
{
	worker_conn_close_control(f->conn); /* before the pipe */
	fail(f, why);
}

/* A worker that has ended takes no more; its answer says why. */
static void on_flushed(struct sessions_pipe *p, size_t written, enum sessions_pipe_state state)
{
	struct file_operation *f = watch_owner(p, struct file_operation, pipe);

	if (written > 0)
		f->deadline_ms = clock_ms() + SESSION_FILE_MS;
	if (state == SESSIONS_PIPE_LOST)
		give_up(f, "its bytes can't be passed on");
}

/* Of a caller's body: what does not fit into the pipe waits here, and the caller then too. */
static bool on_body(void *holder, const char *bytes, size_t size)
{
	struct file_operation *f = holder;

	if (f->pipe.is_closed)
		return true; /* the worker's answer is on its way */
	if (byte_queue_add(&f->pipe.queue, bytes, size) < 0) {
		give_up(f, "no memory for the bytes of a file");
		sessions_pipe_close(&f->pipe);
		return true;
	}
	sessions_pipe_flush(&f->pipe);
	return byte_queue_size(&f->pipe.queue) < SESSION_FILE_BUFFER;
}

void sessions_file_whole(struct exchange *x)
{
	struct file_operation *f = exchange_diverted_to(x);

	f->pipe.source = NULL;
	sessions_pipe_flush(&f->pipe);
}

static void answer(struct file_operation *f, const struct file_answer *a)
{
	static const enum api_code codes[FILE_ERROR_COUNT] = {
		[FILE_NOT_FOUND] = API_NOT_FOUND, [FILE_NOT_REGULAR] = API_NOT_REGULAR,
		[FILE_TOO_LARGE] = API_TOO_LARGE, [FILE_OUTSIDE] = API_BAD_REQUEST,
		[FILE_NO_SPACE] = API_NO_SPACE,   [FILE_DENIED] = API_FORBIDDEN_FILE,
		[FILE_EXISTS] = API_EXISTS,       [FILE_FAILED] = API_INTERNAL,
	};
	static void (*const replies[FILE_OP_COUNT])(struct file_operation *,
						    const struct json_node *) = {
		[FILE_GET] = reply_bytes,   [FILE_PART] = reply_result, [FILE_PUT] = reply_path,
		[FILE_LIST] = reply_result, [FILE_REMOVE] = reply_path, [FILE_STAT] = reply_result,
		[FILE_MKDIR] = reply_path,  [FILE_RENAME] = reply_path, [FILE_WATCH] = begin_stream,
	};

	f->is_over = true;
	if (!f->exchange)
		return;
	if (a->is_ok)
		replies[f->op](f, a->result);
	else if (a->error == FILE_FAILED)
		fail(f, a->message);
	else
		refuse(f, codes[a->error], a->message);
}

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
		slog(SLOG_WARNING, request_id_of(f), "session %s: %s", f->session->id, said.why);
		refuse(f, API_TOO_MANY_WAITING, NULL);
	} else if (strcmp(type, "file") != 0) {
		on_more(f, type, text, size);
	} else if (file_answer_read(text, size, &a, &got, &err) < 0) {
		fail(f, err.msg);
	} else {
		answer(f, &got);
	}
}

/* A watch may last as long as the session, so it is no use of it. */
static void count_use(const struct file_operation *f, int change)
{
	struct session_entry *e = f->session;

	if (f->op == FILE_WATCH)
		return;
	e->files += (unsigned)change;
	sessions_touch(e, clock_ms());
}

static void destroy(struct file_operation *f)
{
	TAILQ_REMOVE(&f->session->operations, f, link);
	f->session->noperations--;
	count_use(f, -1);
	worker_conn_destroy(&f->conn); /* first, as in on_body() */
	sessions_pipe_close(&f->pipe);
	byte_queue_fini(&f->held);
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

	f->exchange = f->pipe.source = NULL;
	destroy(f);
}

static int begin(struct file_operation *f, const struct file_job *job, struct cj_error *err)
{
	struct session_entry *e = f->session;
	struct worker worker = WORKER_NULL;
	bool is_put = job->op == FILE_PUT;
	auto_fd int pipe_fd = -1;

	if (keeper_send_worker(&e->conn->worker,
			       is_put || job->op == FILE_MKDIR ? KEEPER_WORKER_WRITE
							       : KEEPER_WORKER_FILE,
			       "", &worker, is_put ? &pipe_fd : NULL, err) < 0)
		return -err->code;
	f->conn = worker_conn_create(e->all->loop, &worker, err);
	if (!f->conn)
		return -err->code;
	f->conn->owner = f;
	f->conn->line = on_line;
	f->conn->ended = on_ended;
	f->conn->line_max = job->op == FILE_LIST || job->op == FILE_PART ? LONG_LINE_MAX
									 : LINE_MAX_BYTES;
	auto_free char *body = NULL;
	struct job whole = { .kind = JOB_FILE, .trace = *exchange_trace(f->exchange) };
	if (file_job_write(job, &body, &whole.body_size, err) < 0)
		return -err->code;
	whole.body = body;
	(void)snprintf(whole.id, sizeof(whole.id), "%s", f->session->id);
	if (worker_send_job(&f->conn->worker, &whole, err) < 0)
		return -err->code;
	return is_put ? sessions_pipe_adopt(&f->pipe, &pipe_fd, err) : 0;
}

static struct file_operation *create(struct session_entry *e, const struct file_order *order,
				     struct exchange *x)
{
	struct file_operation *f = calloc(1, sizeof(*f));
	char *path = f ? strdup(order->job.path) : NULL;
	size_t given = order->bytes ? order->size : 0;

	if (!path) {
		free(f);
		return NULL;
	}
	*f = (struct file_operation){ .session = e,
				      .exchange = x,
				      .op = order->job.op,
				      .wants_head = order->wants_head,
				      .path = path,
				      .deadline_ms = clock_ms() + SESSION_FILE_MS,
				      .pipe = { .loop = e->all->loop,
						.fd = -1,
						.watch = WATCH_NULL,
						.queue = { order->bytes, 0, given, given },
						.flushed = on_flushed } };
	if (f->op == FILE_PUT && !order->bytes)
		f->pipe.source = x;
	TAILQ_INSERT_TAIL(&e->operations, f, link);
	e->noperations++;
	count_use(f, 1);
	return f;
}

/* API_OK: there is room for one more. */
static enum api_code admit(const struct session_entry *of)
{
	const struct session_entry *e;
	unsigned callers = 0, total = 0;

	TAILQ_FOREACH(e, &of->all->entries, link) {
		total += e->noperations;
		callers += strcmp(e->caller, of->caller) == 0 ? e->noperations : 0;
	}
	if (callers >= SESSION_FILES_MAX)
		return API_TOO_MANY_WAITING;
	return total >= SESSION_ALL_FILES_MAX ? API_QUEUE_FULL : API_OK;
}

void sessions_file(struct session_entry *e, const struct file_order *order, struct exchange *x)
{
	enum api_code code = admit(e);
	struct cj_error err = { 0 };
	struct file_operation *f = code == API_OK ? create(e, order, x) : NULL;

	if (!f) {
		free(order->bytes);
		exchange_refuse(x, code == API_OK ? API_INTERNAL : code, NULL, NULL);
		return;
	}
	const struct http_diversion body = { on_body, on_caller_gone, f, order->job.max_bytes };
	if (f->pipe.source)
		exchange_divert_body(x, &body);
	else
		exchange_hold(x, on_caller_gone, f);
	if (begin(f, &order->job, &err) < 0) {
		fail(f, err.msg);
		destroy(f);
	}
}

void sessions_tick_files(struct session_entry *e, uint64_t now_ms, int *wait_ms)
{
	struct file_operation *f, *next;

	for (f = TAILQ_FIRST(&e->operations); f; f = next) {
		next = TAILQ_NEXT(f, link);
		if (f->deadline_ms == 0)
			continue;
		if (f->deadline_ms > now_ms) {
			*wait_ms = loop_sooner(*wait_ms, (int)(f->deadline_ms - now_ms));
			continue;
		}
		if (!f->is_over)
			fail(f, "it took too long");
		destroy(f);
	}
}

void sessions_close_files(struct session_entry *e)
{
	struct file_operation *f;

	while ((f = TAILQ_FIRST(&e->operations)) != NULL) {
		if (!f->is_over)
			fail(f, "the session has ended");
		destroy(f);
	}
}
