/* SPDX-License-Identifier: Apache-2.0 */
/* The execs of sessions: their workers, their standard input, callers that wait. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/clock.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"
#include "runtime/service/http/http.h"
#include "runtime/base/loop.h"
#include "runtime/service/log/slog.h"
#include "runtime/service/sessions/sessions_parts.h"
#include "runtime/service/sessions/sessions.h"

#define RETRY_MS 1000

struct exec_waiter {
	TAILQ_ENTRY(exec_waiter) link;
	struct exec_acts *acts;
	struct exchange *exchange;
	uint64_t until_ms;
};
TAILQ_HEAD(exec_waiters, exec_waiter);

struct input {
	struct sessions_pipe pipe;
	struct exchange *source; /* its body is the rest; NULL: none, or it is whole */
	size_t accepted;         /* of that body */
	bool is_closed;          /* the program takes no more */
};

struct exec_acts {
	size_t body_size; /* that is counted: of a detached exec, until its worker has it */
	struct exec_entry *exec;
	struct keeper_conn *keeper;
	uint64_t signals; /* came while it was queued: bit N-1 is signal N */
	struct exec_waiters waiters;
	struct input input;
};

static struct loop *loop_of(const struct exec_acts *acts)
{
	return acts->keeper->all->context.loop;
}

static struct sessions *sessions_of(const struct exec_acts *acts)
{
	return acts->keeper->all->context.sessions;
}

/* --- standard input ------------------------------------------------------------- */

static void close_input(struct exec_acts *acts)
{
	struct input *in = &acts->input;

	sessions_release(sessions_of(acts), acts->exec, sessions_pipe_waiting(&in->pipe));
	sessions_pipe_close(&in->pipe, loop_of(acts));
	in->pipe.is_open = false;
	in->is_closed = true;
	if (in->source)
		exchange_resume_body(in->source); /* the rest is dropped */
}

/* Writes what the pipe takes.  A program that has closed its end gets nothing more. */
static void flush_input(struct exec_acts *acts)
{
	struct input *in = &acts->input;
	size_t written = 0;

	if (in->pipe.fd < 0)
		return;
	enum sessions_pipe_state state = sessions_pipe_flush(&in->pipe, loop_of(acts), &written);
	sessions_release(sessions_of(acts), acts->exec, written);
	bool is_empty = state == SESSIONS_PIPE_EMPTY;
	bool is_whole = is_empty && !in->pipe.is_open && !in->source;
	if (state == SESSIONS_PIPE_LOST || state == SESSIONS_PIPE_GONE || is_whole)
		close_input(acts);
	else if (is_empty && in->source)
		exchange_resume_body(in->source);
	if (state == SESSIONS_PIPE_LOST)
		execution_cancel(acts->exec->run);
}

static void on_input_ready(struct watch *w, uint32_t events)
{
	struct exec_acts *acts = watch_owner(w, struct exec_acts, input.pipe.watch);

	if (events & EPOLLERR) /* the reader is gone */
		close_input(acts);
	else
		flush_input(acts);
}

static int adopt_input(struct exec_acts *acts, int *fd, struct cj_error *err)
{
	struct sessions_pipe *p = &acts->input.pipe;

	p->fd = take_fd(fd);
	if (loop_watch(loop_of(acts), &p->watch, p->fd, on_input_ready, err) < 0)
		return -err->code;
	flush_input(acts);
	return 0;
}

static enum api_code take_input(struct exec_acts *acts, const struct exec_input *bytes)
{
	enum api_code why = sessions_hold(sessions_of(acts), acts->exec, bytes->size);

	if (why != API_OK || bytes->size == 0)
		return why;
	if (sessions_pipe_add(&acts->input.pipe, bytes->bytes, bytes->size))
		return API_OK;
	sessions_release(sessions_of(acts), acts->exec, bytes->size);
	return API_QUEUE_FULL;
}

enum api_code sessions_feed_exec(struct exec_entry *x, const struct exec_input *in,
				 size_t *out_buffered)
{
	struct input *input = x->acts ? &x->acts->input : NULL;

	if (!input || !input->pipe.is_open || x->is_finished)
		return API_NOT_RUNNING;
	size_t waiting = sessions_pipe_waiting(&input->pipe);
	if (in->size > SESSION_STDIN_MAX - waiting)
		return waiting > 0 ? API_TOO_MANY_WAITING : API_TOO_LARGE;
	enum api_code why = take_input(x->acts, in);
	if (why != API_OK)
		return why;
	input->pipe.is_open = !in->is_end;
	flush_input(x->acts);
	*out_buffered = sessions_pipe_waiting(&input->pipe);
	return API_OK;
}

/* --- standard input from the body of a request ------------------------------------ */

static void refuse_source(struct exec_acts *acts, enum api_code why)
{
	struct exchange *source = take_ptr(acts->input.source);

	if (!source)
		return;
	exchange_release(source);
	exchange_refuse(source, why, NULL, NULL, api_rows[why].http_status >= 429 ? RETRY_MS : 0);
}

static bool on_source_bytes(void *holder, const char *bytes, size_t size)
{
	struct exec_acts *acts = holder;
	struct input *in = &acts->input;

	if (in->is_closed)
		return true;
	enum api_code why = take_input(acts, &(struct exec_input){ bytes, size, false });
	if (why != API_OK) {
		refuse_source(acts, why);
		execution_cancel(acts->exec->run);
		return true;
	}
	in->accepted += size;
	flush_input(acts);
	return sessions_pipe_waiting(&in->pipe) < SESSION_FILE_BUFFER;
}

static void on_source_gone(void *holder)
{
	struct exec_acts *acts = holder;

	acts->input.source = NULL;
	execution_cancel(acts->exec->run);
}

enum api_code keeper_stream_exec(struct exec_entry *x, struct exchange *exchange, size_t max)
{
	struct input *in = x->acts ? &x->acts->input : NULL;
	const struct http_diversion body = { on_source_bytes, on_source_gone, x->acts, max };

	if (!in || !in->pipe.is_open || x->is_finished)
		return API_NOT_RUNNING;
	in->pipe.is_open = false; /* for others */
	in->source = exchange;
	exchange_divert_body(exchange, &body);
	return API_OK;
}

const struct exec_entry *keeper_stream_whole(struct exchange *exchange, size_t *out_accepted,
					     size_t *out_buffered)
{
	struct exec_acts *acts = exchange_diverted_to(exchange);
	struct input *in = &acts->input;

	exchange_release(exchange);
	in->source = NULL;
	flush_input(acts);
	*out_accepted = in->accepted;
	*out_buffered = sessions_pipe_waiting(&in->pipe);
	return acts->exec;
}

/* --- callers that wait ------------------------------------------------------------ */

static void reply_exec(struct exchange *exchange, const struct exec_entry *x)
{
	struct http_reply reply = { .status = 200, .content_type = "application/json" };

	reply.text = sessions_json_exec(x, &reply.size);
	exchange_reply(exchange, &reply);
}

static void remove_waiter(struct exec_waiter *waiter)
{
	TAILQ_REMOVE(&waiter->acts->waiters, waiter, link);
	free(waiter);
}

static void forget_acts(struct exec_acts *acts)
{
	if (!acts->exec->is_finished || !TAILQ_EMPTY(&acts->waiters))
		return;
	acts->exec->acts = NULL;
	free(acts);
}

static void on_waiter_gone(void *holder)
{
	struct exec_waiter *waiter = holder;

	remove_waiter(waiter);
}

void sessions_await_exec(struct keeper_conns *all, struct exec_entry *x, struct exchange *exchange,
			 uint64_t until_ms)
{
	struct exec_waiter *waiter;
	(void)all;

	if (x->is_finished || !x->acts || until_ms <= clock_ms() ||
	    (waiter = calloc(1, sizeof(*waiter))) == NULL) {
		reply_exec(exchange, x);
		return;
	}
	*waiter =
	    (struct exec_waiter){ .acts = x->acts, .exchange = exchange, .until_ms = until_ms };
	TAILQ_INSERT_TAIL(&x->acts->waiters, waiter, link);
	exchange_hold(exchange, on_waiter_gone, waiter);
}

/* Those whose time is over, or all. */
static void answer_waiters(struct exec_acts *acts, uint64_t now_ms, int *wait_ms)
{
	struct exec_waiter *waiter, *next;

	for (waiter = TAILQ_FIRST(&acts->waiters); waiter; waiter = next) {
		next = TAILQ_NEXT(waiter, link);
		struct exchange *exchange = waiter->exchange;
		if (!acts->exec->is_finished && waiter->until_ms > now_ms) {
			*wait_ms = loop_sooner(*wait_ms, (int)(waiter->until_ms - now_ms));
			continue;
		}
		remove_waiter(waiter);
		reply_exec(exchange, acts->exec);
	}
}

void keeper_conn_tick_execs(struct keeper_conn *k, uint64_t now_ms, int *wait_ms)
{
	struct exec_entry *x;

	TAILQ_FOREACH(x, &k->entry->execs, link)
		if (x->acts)
			answer_waiters(x->acts, now_ms, wait_ms);
}

/* --- an exec ------------------------------------------------------------------------ */

/* Behind the request for its worker, so that the keeper holds them until the program runs. */
static int send_held_signals(struct exec_acts *acts, struct cj_error *err)
{
	for (int signo = 1; acts->signals != 0 && signo < NSIG; signo++) {
		if ((acts->signals & keeper_signal_bit(signo)) == 0)
			continue;
		if (keeper_send_signal(&acts->keeper->conn->worker, acts->exec->id, signo, err) < 0)
			return -err->code;
		acts->signals &= ~keeper_signal_bit(signo);
	}
	return 0;
}

static int spawn(void *context, struct worker_conn **out, struct cj_error *err)
{
	struct exec_acts *acts = context;
	struct keeper_conn *k = acts->keeper;
	struct worker worker = WORKER_NULL;
	auto_fd int stdin_fd = -1;
	bool has_stdin = acts->input.pipe.is_open || acts->input.source || acts->input.pipe.end > 0;

	if (!keeper_conn_is_live(k))
		return cj_fail(err, EPIPE, "ask the keeper of session %s", k->entry->id);
	const enum keeper_request_kind kind = acts->exec->is_cell ? KEEPER_WORKER_CELL
								  : KEEPER_WORKER_EXEC;
	if (keeper_send_worker(&k->conn->worker, kind, acts->exec->id, &worker,
			       has_stdin ? &stdin_fd : NULL, err) < 0)
		return -err->code;
	if (send_held_signals(acts, err) < 0 ||
	    (has_stdin && adopt_input(acts, &stdin_fd, err) < 0)) {
		worker_close(&worker);
		return -err->code;
	}
	*out = worker_conn_create(k->all->context.loop, &worker, err);
	sessions_release(sessions_of(acts), acts->exec, acts->body_size);
	acts->body_size = 0;
	return *out ? 0 : -err->code;
}

static void on_complete(void *context, const char *result, size_t size, enum api_code why)
{
	struct exec_acts *acts = context;
	struct keeper_conn *k = acts->keeper;
	int unused_ms = -1;

	refuse_source(acts, API_NOT_RUNNING);
	close_input(acts);
	sessions_finish_exec(k->all->context.sessions, acts->exec, result, size, why, clock_ms(),
			     clock_epoch_ms());
	k->execs++;
	answer_waiters(acts, 0, &unused_ms);
	forget_acts(acts);
}

static struct exec_acts *create_acts(struct keeper_conn *k, struct exec_entry *x, bool has_stdin)
{
	struct exec_acts *acts = calloc(1, sizeof(*acts));

	if (!acts)
		return NULL;
	*acts = (struct exec_acts){ .exec = x,
				    .keeper = k,
				    .input.pipe = { .fd = -1, .watch = WATCH_NULL } };
	acts->input.pipe.is_open = has_stdin;
	TAILQ_INIT(&acts->waiters);
	return acts;
}

/* Nobody's connection counts for the request of a detached exec. */
static enum api_code hold_body(struct exec_acts *acts, const struct exec_order *order)
{
	if (!order->is_detached)
		return API_OK;
	enum api_code why = sessions_hold(sessions_of(acts), acts->exec, order->run.job.body_size);
	if (why == API_OK)
		acts->body_size = order->run.job.body_size;
	return why;
}

static enum api_code refuse_exec(struct exec_acts *acts, char *body, enum api_code why)
{
	sessions_drop_exec(sessions_of(acts), acts->exec);
	free(acts);
	free(body);
	return why;
}

enum api_code sessions_exec(struct keeper_conns *all, struct session_entry *e,
			    const struct exec_order *order, struct exec_entry **out,
			    struct cj_error *err)
{
	struct run_order run = order->run;
	struct exec_entry *x = sessions_add_exec(e, run.job.id);
	struct exec_acts *acts = x ? create_acts(e->keeper, x, order->has_stdin) : NULL;

	if (!acts) {
		if (x)
			sessions_drop_exec(all->context.sessions, x);
		free(run.job.body);
		(void)!cj_fail(err, ENOMEM, "queue an exec");
		return API_INTERNAL;
	}
	enum api_code why = hold_body(acts, order);
	if (why != API_OK)
		return refuse_exec(acts, run.job.body, why);
	x->acts = acts;
	x->is_detached = order->is_detached;
	x->is_cell = order->is_cell;
	(void)snprintf(run.session, sizeof(run.session), "%s", e->id);
	run.gate = x->is_cell ? &e->cell_gate : &e->exec_gate;
	const struct run_ops ops = { .exchange = order->exchange,
				     .spawn = spawn,
				     .on_complete = on_complete,
				     .context = acts };
	x->run = execution_begin(all->context.executions, &run, &ops, err);
	if (!x->run)
		return refuse_exec(acts, NULL, API_INTERNAL); /* the body was taken */
	sessions_touch(e, clock_ms());
	*out = x;
	return API_OK;
}

enum api_code sessions_signal_exec(struct exec_entry *x, int signo)
{
	struct keeper_conn *k = x->session->keeper;
	struct cj_error err = { 0 };

	if (x->is_finished || !keeper_conn_is_live(k))
		return API_NOT_RUNNING;
	if (x->run->state == RUN_QUEUED) { /* the keeper does not know it yet */
		x->acts->signals = keeper_signals_join(x->acts->signals, keeper_signal_bit(signo));
		return API_OK;
	}
	if (keeper_send_signal(&k->conn->worker, x->id, signo, &err) == 0)
		return API_OK;
	slog_failure(SLOG_WARNING, x->run->order.job.trace.request_id, &err,
		     "send a signal to an exec");
	return err.code == EAGAIN ? API_QUEUE_FULL : API_NOT_RUNNING;
}

void sessions_kill_left(const struct exec_entry *x)
{
	struct keeper_conn *k = x->session->keeper;
	struct cj_error err = { 0 };

	if (keeper_conn_is_live(k) &&
	    keeper_send_signal(&k->conn->worker, x->id, SIGKILL, &err) < 0)
		slog_failure(SLOG_WARNING, "", &err, "kill what an exec left");
}

/* --- the end of the session ------------------------------------------------------------ */

/* The first that is to be told.  Its end may remove others from the list. */
static struct exec_entry *next_to_end(const struct session_entry *e, bool is_gone)
{
	struct exec_entry *x;

	TAILQ_FOREACH(x, &e->execs, link)
		if (!x->is_finished && !x->is_told && (is_gone || x->run->state == RUN_QUEUED))
			return x;
	return NULL;
}

void keeper_conn_end_execs(struct keeper_conn *k, bool is_gone)
{
	struct exec_entry *x;

	while ((x = next_to_end(k->entry, is_gone)) != NULL) {
		x->is_told = true;
		execution_host_ended(x->run, k->entry->message);
	}
}
