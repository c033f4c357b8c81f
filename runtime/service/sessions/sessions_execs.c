/* SPDX-License-Identifier: Apache-2.0 */
/* The execs of sessions: their workers, their standard input, the callers that wait. */
#include <signal.h>

#include "runtime/base/clock.h"
#include "runtime/base/scope.h"
#include "runtime/service/http/http.h"
#include "runtime/service/log/slog.h"
#include "runtime/service/sessions/sessions_parts.h"

static void on_input_flushed(struct sessions_pipe *p, size_t written,
			     enum sessions_pipe_state state)
{
	struct exec_entry *x = watch_owner(p, struct exec_entry, input);
	size_t dropped = state >= SESSIONS_PIPE_WHOLE ? byte_queue_size(&p->queue) : 0;

	sessions_release(x->session->all, x, written + dropped);
	if (state == SESSIONS_PIPE_LOST)
		execution_cancel(x->run);
}

static enum api_code take_input(struct exec_entry *x, const char *bytes, size_t size)
{
	enum api_code why = sessions_hold(x->session->all, x, size);

	if (why != API_OK || size == 0)
		return why;
	if (byte_queue_add(&x->input.queue, bytes, size) == 0)
		return API_OK;
	sessions_release(x->session->all, x, size);
	return API_QUEUE_FULL;
}

enum api_code sessions_feed_exec(struct exec_entry *x, struct blob input, bool is_end,
				 size_t *out_buffered)
{
	size_t waiting = byte_queue_size(&x->input.queue);

	if (!x->input.is_open)
		return API_NOT_RUNNING;
	if (input.size > SESSION_STDIN_MAX - waiting)
		return waiting > 0 ? API_TOO_MANY_WAITING : API_TOO_LARGE;
	enum api_code why = take_input(x, input.bytes, input.size);
	if (why != API_OK)
		return why;
	x->input.is_open = !is_end;
	sessions_pipe_flush(&x->input);
	*out_buffered = byte_queue_size(&x->input.queue);
	return API_OK;
}

static void refuse_source(struct exec_entry *x, enum api_code why)
{
	struct exchange *source = take_ptr(x->input.source);

	if (!source)
		return;
	exchange_release(source);
	exchange_refuse(source, why, NULL, NULL);
}

static bool on_source_bytes(void *holder, const char *bytes, size_t size)
{
	struct exec_entry *x = holder;

	if (x->input.is_closed)
		return true;
	enum api_code why = take_input(x, bytes, size);
	if (why != API_OK) {
		refuse_source(x, why);
		execution_cancel(x->run);
		return true;
	}
	x->accepted += size;
	sessions_pipe_flush(&x->input);
	return byte_queue_size(&x->input.queue) < SESSION_FILE_BUFFER;
}

static void on_source_gone(void *holder)
{
	struct exec_entry *x = holder;

	x->input.source = NULL;
	execution_cancel(x->run);
}

enum api_code keeper_stream_exec(struct exec_entry *x, struct exchange *exchange, size_t max)
{
	const struct http_diversion body = { on_source_bytes, on_source_gone, x, max };

	if (!x->input.is_open)
		return API_NOT_RUNNING;
	x->input.is_open = false; /* for others */
	x->input.source = exchange;
	exchange_divert_body(exchange, &body);
	return API_OK;
}

const struct exec_entry *keeper_stream_whole(struct exchange *exchange, size_t *out_accepted,
					     size_t *out_buffered)
{
	struct exec_entry *x = exchange_diverted_to(exchange);

	exchange_release(exchange);
	x->input.source = NULL;
	sessions_pipe_flush(&x->input);
	*out_accepted = x->accepted;
	*out_buffered = byte_queue_size(&x->input.queue);
	return x;
}

void sessions_reply_exec(const struct exec_entry *x, struct exchange *exchange)
{
	struct http_reply reply = { .status = 200, .content_type = "application/json" };

	reply.text = sessions_json_exec(x, &reply.size);
	exchange_reply(exchange, &reply);
}

void sessions_await_exec(struct exec_entry *x, struct exchange *exchange, uint64_t until_ms)
{
	const struct session_waiter waiter = {
		.session = x->session, .exec = x, .exchange = exchange, .until_ms = until_ms
	};

	if (x->is_finished || until_ms <= clock_ms())
		sessions_reply_exec(x, exchange);
	else
		(void)sessions_wait(&waiter);
}

/* Behind the request for its worker, so that the keeper holds them until the program runs. */
static int send_held_signals(struct exec_entry *x, struct cj_error *err)
{
	for (int signo = 1; x->signals != 0 && signo < NSIG; signo++) {
		if ((x->signals & keeper_signal_bit(signo)) == 0)
			continue;
		if (keeper_send_signal(&x->session->conn->worker, x->id, signo, err) < 0)
			return -err->code;
		x->signals &= ~keeper_signal_bit(signo);
	}
	return 0;
}

static int spawn(void *context, struct worker_conn **out, struct cj_error *err)
{
	struct exec_entry *x = context;
	struct session_entry *e = x->session;
	struct worker worker = WORKER_NULL;
	auto_fd int stdin_fd = -1;

	if (!sessions_is_live(e))
		return cj_fail(err, EPIPE, "ask the keeper of session %s", e->id);
	const enum keeper_request_kind kind = x->is_cell ? KEEPER_WORKER_CELL : KEEPER_WORKER_EXEC;
	if (keeper_send_worker(&e->conn->worker, kind, x->id, &worker,
			       x->has_stdin ? &stdin_fd : NULL, err) < 0)
		return -err->code;
	if (send_held_signals(x, err) < 0 ||
	    (x->has_stdin && sessions_pipe_adopt(&x->input, &stdin_fd, err) < 0)) {
		worker_close(&worker);
		return -err->code;
	}
	*out = worker_conn_create(e->all->loop, &worker, err);
	sessions_release(e->all, x, x->body_size);
	x->body_size = 0;
	return *out ? 0 : -err->code;
}

static void on_complete(void *context, const char *result, size_t size, enum api_code why)
{
	struct exec_entry *x = context;
	struct session_entry *e = x->session;
	uint64_t now_ms = clock_ms();

	refuse_source(x, API_NOT_RUNNING);
	sessions_pipe_close(&x->input);
	e->execs_ended++;
	sessions_finish_exec(e->all, x, result, size, why, now_ms, clock_epoch_ms());
	(void)sessions_answer(e, now_ms);
}

enum api_code sessions_exec(struct session_entry *e, const struct exec_order *order,
			    struct exec_entry **out, struct cj_error *err)
{
	struct run_order run = order->run;
	struct exec_entry *x = sessions_add_exec(e, run.job.id);
	const struct run_ops ops = { order->exchange, spawn, on_complete, x };

	if (!x) {
		free(run.job.body);
		(void)!cj_fail(err, ENOMEM, "queue an exec");
		return API_INTERNAL;
	}
	x->is_detached = order->exchange == NULL;
	x->is_cell = order->is_cell;
	x->has_stdin = order->has_stdin;
	x->input = (struct sessions_pipe){ .loop = e->all->loop,
					   .fd = -1,
					   .watch = WATCH_NULL,
					   .is_open = order->has_stdin,
					   .flushed = on_input_flushed };
	/* nobody's connection counts for the request of a detached exec */
	x->body_size = x->is_detached ? run.job.body_size : 0;
	(void)snprintf(run.session, sizeof(run.session), "%s", e->id);
	run.gate = x->is_cell ? &e->cell_gate : &e->exec_gate;
	enum api_code why = sessions_hold(e->all, x, x->body_size);
	if (why == API_OK) {
		x->run = execution_begin(e->all->executions, &run, &ops, err);
		why = x->run ? API_OK : API_INTERNAL;
	} else {
		free(run.job.body);
	}
	if (why != API_OK) {
		sessions_drop_exec(e->all, x);
		return why;
	}
	sessions_touch(e, clock_ms());
	*out = x;
	return API_OK;
}

enum api_code sessions_signal_exec(struct exec_entry *x, int signo)
{
	struct session_entry *e = x->session;
	struct cj_error err = { 0 };

	if (x->is_finished || !sessions_is_live(e))
		return API_NOT_RUNNING;
	if (x->run->state == RUN_QUEUED) { /* the keeper does not know it yet */
		x->signals = keeper_signals_join(x->signals, keeper_signal_bit(signo));
		return API_OK;
	}
	if (keeper_send_signal(&e->conn->worker, x->id, signo, &err) == 0)
		return API_OK;
	slog_failure(SLOG_WARNING, x->run->order.job.trace.request_id, &err,
		     "send a signal to an exec");
	return err.code == EAGAIN ? API_QUEUE_FULL : API_NOT_RUNNING;
}

void sessions_kill_left(const struct exec_entry *x)
{
	const struct session_entry *e = x->session;
	struct cj_error err = { 0 };

	if (sessions_is_live(e) && keeper_send_signal(&e->conn->worker, x->id, SIGKILL, &err) < 0)
		slog_failure(SLOG_WARNING, "", &err, "kill what an exec left");
}

/* The first that is to be told.  Its end may remove others from the list. */
static struct exec_entry *next_to_end(const struct session_entry *e, bool is_gone)
{
	struct exec_entry *x;

	TAILQ_FOREACH(x, &e->execs, link)
		if (!x->is_finished && !x->is_told && (is_gone || x->run->state == RUN_QUEUED))
			return x;
	return NULL;
}

void sessions_end_execs(struct session_entry *e, bool is_gone)
{
	struct exec_entry *x;

	while ((x = next_to_end(e, is_gone)) != NULL) {
		x->is_told = true;
		execution_host_ended(x->run, e->message);
	}
}
