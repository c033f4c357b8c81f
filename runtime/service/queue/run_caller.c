/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/service/queue/run_caller.h"

#include "runtime/base/clock.h"
#include "runtime/base/scope.h"
#include "runtime/run/report/events.h"
#include "runtime/service/http/http.h"
#include "runtime/service/log/slog.h"
#include "runtime/service/queue/run_calls.h"
#include "runtime/service/queue/runs.h"
#include "runtime/service/worker/worker_conn.h"

/* Says how many events a slow caller did not get. */
static void report_dropped(struct run *run, struct exchange *x)
{
	char line[64];
	int size = snprintf(line, sizeof(line), "{\"type\":\"dropped\",\"events\":%llu}\n",
			    (unsigned long long)run->dropped);

	if (run->dropped > 0 && exchange_put(x, line, (size_t)size, false))
		run->dropped = 0;
}

static void on_taken(void *holder)
{
	const struct run *run = holder;
	worker_conn_pause(run->conn, false);
}

void run_caller_begin(struct run *run)
{
	if (run->ops.exchange && run->order.job.wants_events &&
	    !exchange_is_streaming(run->ops.exchange))
		exchange_begin_stream(run->ops.exchange, HTTP_JSON_LINES, on_taken);
}

/* One buffer: a caller gets the whole line or nothing of it. */
static bool put_line(struct exchange *x, const char *text, size_t size, bool must)
{
	auto_free char *line = malloc(size + 1);

	if (!line)
		return false;
	memcpy(line, text, size);
	line[size] = '\n';
	return exchange_put(x, line, size + 1, must);
}

/* Of a run whose caller has gone, the log has a line already. */
static void fail_call(struct run *run, const char *text)
{
	const bool is_gone = !run->ops.exchange;
	const uint64_t call = worker_conn_line_call(text);

	if (!run->calls)
		return; /* this process answers them itself, and knows them without events */
	if (!is_gone && run->lost_calls++ == 0)
		slog(SLOG_WARNING, run->order.job.trace.request_id,
		     "run %s: call %llu fails: there is no room for its event, since its caller "
		     "has too much unread; further ones are only counted",
		     run->order.job.id, (unsigned long long)call);
	run_calls_fail(run->calls, call,
		       is_gone ? "the caller has gone" : "the service has no room for this call");
}

void run_caller_tell(struct run *run, const char *text, size_t size)
{
	struct exchange *x = run->ops.exchange;
	char type[16];

	if (!run->order.job.wants_events)
		return;
	if (run->first_event_ms == 0)
		run->first_event_ms = clock_ms();
	worker_conn_line_type(text, type);
	const bool must = strcmp(type, event_type_names[EVENT_CALL]) == 0;
	if (x) {
		run_caller_begin(run);
		report_dropped(run, x);
		if ((run->dropped == 0 || must) && put_line(x, text, size, must)) {
			worker_conn_pause(run->conn, exchange_is_behind(x) && !run->is_cancelled);
			return;
		}
		run->dropped++;
	}
	if (must)
		fail_call(run, text);
}

static void end_stream(struct run *run, struct exchange *x, const char *line, size_t size,
		       enum api_code why, const char *message)
{
	size_t error_size = 0;

	if (line)
		report_dropped(run, x);
	if (line && exchange_put(x, line, size, true)) {
		(void)exchange_put(x, "\n", 1, true);
	} else {
		auto_free char *error =
		    api_error_text("error", line ? API_TOO_MANY_WAITING : why, message, NULL,
				   run->order.job.trace.request_id, &error_size);
		if (error)
			(void)exchange_put(x, error, error_size, true);
	}
	exchange_end_stream(x);
}

void run_caller_answer(struct run *run, const char *line, size_t size, enum api_code why)
{
	const char *message = why == API_SESSION_ENDED ? run->host_ended : NULL;
	size_t before = sizeof(RUN_RESULT_BEFORE) - 1;
	struct exchange *x = take_ptr(run->ops.exchange);
	struct http_reply reply = { .status = 200, .content_type = "application/json" };

	if (run->ops.on_complete)
		run->ops.on_complete(run->ops.context, line ? line + before : NULL,
				     line ? size - before - 1 : 0, why);
	if (!x)
		return;
	if (exchange_is_streaming(x)) {
		end_stream(run, x, line, size, why, message);
	} else if (line) {
		reply.skip = before;
		reply.size = size - before;
		reply.text = malloc(size + 1);
		if (reply.text) {
			memcpy(reply.text, line, size);
			reply.text[size - 1] = '\n';
		}
		exchange_reply(x, &reply);
	} else {
		exchange_refuse(x, why, message, NULL);
	}
}
