/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `run --remote`: one loop over the service's socket, our signals and our output's readers.
 *
 * When output or events are wanted as they happen, the service sends events, one JSON object per
 * line.  They are forwarded at once, and the last line is the result.  The service waits for a slow
 * reader only for a limited time, then it drops output events.  Output that was dropped is taken
 * from the result.
 */
#include "runtime/front/client/remote.h"

#include <sys/signalfd.h>

#include "profiles/plan/env_file.h"
#include "runtime/base/clock.h"
#include "runtime/base/log.h"
#include "runtime/base/scope.h"
#include "runtime/front/client/remote_link.h"
#include "runtime/front/client/remote_request.h"
#include "runtime/run/report/remote_result.h"
#include "runtime/front/client/remote_state.h"
#include "runtime/jail/jail.h"

#define ANSWER_MAX   (768u << 20)     /* two streams of 256M in base64, and more */
#define AWAIT_QUERY  "?wait=60s"      /* the longest wait of one request */
#define LIMIT_MS_MAX (UINT64_MAX / 4) /* of timeout_ms in the event "start" */

/* Takes the tree: the result lives until the end of the run. */
static int take_result(struct remote *r, const struct json_node *node, struct arena *tree,
		       struct cj_error *err)
{
	if (r->result)
		return cj_reject(err, "the service sent two results");
	r->result = node;
	arena_move(&r->tree, tree);
	return 0;
}

static int take_event(struct remote *r, const struct json_node *event, const char *type,
		      struct arena *tree, struct cj_error *err)
{
	const bool is_stderr = strcmp(type, "stderr") == 0;
	const char *bytes;
	uint64_t ms = 0;
	size_t size;

	if ((is_stderr || strcmp(type, "stdout") == 0) && !r->has_gap &&
	    remote_bytes_of(event, tree, &bytes, &size))
		remote_output_write(r, is_stderr, bytes, size);
	if (strcmp(type, "start") == 0) {
		/* without a time limit, a slow reader is waited for without limit */
		if (!r->is_cancelled && json_get_u64(event, "timeout_ms", &ms) && ms >= 1 &&
		    ms <= LIMIT_MS_MAX)
			r->run_ended_ms = clock_ms() + ms;
		if (r->stdin_url[0] != '\0')
			remote_input_start(r);
	}
	if (strcmp(type, "dropped") == 0)
		r->has_gap = true;
	if (strcmp(type, "call") == 0 && json_get(event, "arguments"))
		return cj_reject(err, "the service sent a call in another form than cejail's");
	if (strcmp(type, "answer") == 0)
		remote_calls_end(r, event);
	if (strcmp(type, "error") == 0)
		return remote_refusal_read(500, 0, r->line.text.bytes, r->line.text.end, err);
	events_add_json(&r->call->delivery->events, r->line.text.bytes, r->line.text.end);
	return 0;
}

static int take_line(struct remote *r, struct cj_error *err)
{
	auto_arena struct arena tree = { 0 };
	const struct json_node *root;

	if (call_event_is(r->line.text.bytes, r->line.text.end))
		return remote_calls_take(r, err);
	if (json_parse_capped("the service's answer", r->line.text.bytes, r->line.text.end, &tree,
			      &root, err) < 0)
		return -err->code;
	if (root->type != JSON_OBJECT)
		return cj_reject(err, "the service's answer is not a JSON object");
	const struct json_node *type = json_get(root, "type");
	if (!type) /* no events were asked for: the result itself */
		return take_result(r, root, &tree, err);
	const struct json_node *result = json_get(root, "result");
	if (type->type != JSON_STRING)
		return cj_reject(err, "the service sent an event without a type");
	if (strcmp(type->text, "result") == 0 && result)
		return take_result(r, result, &tree, err);
	return take_event(r, root, type->text, &tree, err);
}

/* The body of an error is kept whole.  The body of a run is processed line by line. */
static int take_body(struct remote_exchange *q, const char *bytes, size_t size,
		     struct cj_error *err)
{
	struct remote *r = watch_owner(q, struct remote, request);
	const char *end;

	while (q->answer.status == 200 && (end = memchr(bytes, '\n', size))) {
		size_t part = (size_t)(end - bytes);
		if (remote_buffer_add(&r->line, bytes, part, err) < 0 ||
		    (r->line.text.end > 0 && take_line(r, err) < 0))
			return -err->code;
		r->line.text.end = 0;
		bytes += part + 1;
		size -= part + 1;
	}
	return remote_buffer_add(&r->line, bytes, size, err);
}

static void on_answered(struct remote_exchange *q, const struct cj_error *err)
{
	struct remote *r = watch_owner(q, struct remote, request);

	remote_exchange_close(q);
	r->is_answered = true;
	if (err->code)
		r->failure = *err;
}

static int turn(struct remote *r, struct cj_error *err)
{
	const int wait_ms = loop_sooner(remote_input_tick(r), remote_calls_tick(r));

	if (r->failure.code == 0) {
		remote_exchange_hold(&r->request, remote_calls_are_behind(&r->calls));
		if (loop_turn(&r->loop, loop_sooner(wait_ms, clock_ms_until(r->deadline_ms)), err) <
		    0)
			return -err->code;
	}
	if (r->deadline_ms > 0 && clock_ms_until(r->deadline_ms) == 0)
		r->gave_up = true;
	*err = r->failure;
	return -err->code;
}

static int receive(struct remote *r, struct cj_error *err)
{
	const struct http_answer *answer = &r->request.answer;

	while (!r->is_answered && !r->gave_up)
		if (turn(r, err) < 0)
			return -err->code;
	if (r->gave_up)
		return 0;
	if (answer->status != 200)
		return remote_refusal_read(answer->status, answer->retry_after, r->line.text.bytes,
					   r->line.text.end, err);
	if (r->line.text.end > 0 && take_line(r, err) < 0)
		return -err->code;
	if (!r->result)
		return cj_reject_as(err, ECONNRESET, "the service's answer ended without a result");
	return 0;
}

/* "/v1/runs" or "/v1/sessions/ID/execs". */
static int write_list_url(const struct remote_call *call, char url[static REMOTE_URL_MAX],
			  struct cj_error *err)
{
	const struct remote_exec *exec = call->exec;

	url[0] = '\0';
	if (remote_url(url, exec ? "/v1/sessions/" : "/v1/runs", err) < 0 ||
	    (exec && remote_url(url, exec->session, err) < 0))
		return -err->code;
	return exec ? remote_url(url, "/execs", err) : 0;
}

/* Fills r->url and r->stdin_url. */
static int write_urls(struct remote *r, struct cj_error *err)
{
	if (write_list_url(r->call, r->url, err) < 0 || remote_url(r->url, "/", err) < 0 ||
	    remote_url(r->url, r->outcome->id, err) < 0)
		return -err->code;
	if (!r->call->exec || !r->call->config->interactive)
		return 0;
	if (remote_url(r->stdin_url, r->url, err) < 0)
		return -err->code;
	return remote_url(r->stdin_url, "/stdin", err);
}

/* *message borrows from the writer and the URL. */
static int make_message(const struct remote_call *call, struct remote_request *request,
			struct json_writer *w, char url[static REMOTE_URL_MAX],
			struct strings *warnings, struct remote_message *message,
			struct cj_error *err)
{
	request->profile = call->profile;
	if (remote_request_gather(call, request, warnings, err) < 0 ||
	    write_list_url(call, url, err) < 0)
		return -err->code;
	remote_request_write(w, request);
	*message = (struct remote_message){
		.method = "POST",
		.path = url,
		.traceparent = env_value(call->invocation->environ, "TRACEPARENT"),
	};
	return json_writer_take(w, &message->body, err);
}

static int send_request(struct remote *r, struct strings *warnings, struct cj_error *err)
{
	const struct remote_call *call = r->call;
	auto_json_writer struct json_writer *w = json_writer_create(false);
	struct remote_request request = { .id = r->outcome->id, .tools = &r->calls.tools };
	char url[REMOTE_URL_MAX];
	struct remote_message message;

	if (write_urls(r, err) < 0 || remote_calls_open(r, err) < 0 ||
	    make_message(call, &request, w, url, warnings, &message, err) < 0)
		return -err->code;
	/* an exec whose standard input is forwarded must say when it begins */
	if (r->streams[0].fd >= 0 || r->streams[1].fd >= 0 || call->delivery->events.fd >= 0 ||
	    r->stdin_url[0] != '\0' || r->calls.caller.fd >= 0)
		message.accept = "application/x-ndjson";
	int fd = remote_link_ask(call->config->remote, &message, err);
	return fd < 0 ? fd : remote_exchange_start(&r->request, fd, NULL, err);
}

static void on_signal(struct watch *w, uint32_t events)
{
	(void)events;
	remote_read_signals(watch_owner(w, struct remote, signals));
}

static int watch_signals(struct remote *r, struct cj_error *err)
{
	sigset_t ending;

	jail_ending_signals(&ending);
	r->signal_fd = signalfd(-1, &ending, SFD_CLOEXEC | SFD_NONBLOCK);
	if (r->signal_fd < 0)
		return cj_fail(err, errno, "open a descriptor for signals");
	if (sigprocmask(SIG_BLOCK, &ending, NULL) < 0)
		return cj_fail(err, errno, "block signals");
	return loop_watch(&r->loop, &r->signals, r->signal_fd, on_signal, err);
}

static int finish(struct remote *r, const struct strings *warnings, struct json_writer **out_result,
		  bool *out_complete, struct cj_error *err)
{
	const struct json_node *cell = json_get_typed(r->result, "cell", JSON_OBJECT);
	const char *value = json_get_text(cell, "value");
	struct outcome *o = r->outcome;

	if (!r->result) {
		outcome_decide(o, STATUS_CANCELLED);
		return 0;
	}
	if (remote_result_read(r->result, o, err) < 0)
		return -err->code;
	if (o->status == STATUS_CANCELLED && !r->is_cancelled)
		remote_explain_cancel(r);
	for (size_t i = 0; i < warnings->count; i++)
		outcome_warn(o, "%s", warnings->items[i]);
	for (size_t i = 0; i < 2; i++)
		*out_complete = remote_output_complete(r, i) && *out_complete;
	if (value) { /* as an interpreter at a terminal does: on a line of its own */
		remote_output_write(r, 0, value, strlen(value));
		remote_output_write(r, 0, "\n", 1);
		*out_complete = remote_output_complete(r, 0) && *out_complete;
	}
	if (!remote_result_store(r->result, r->call->artifacts_fd, o))
		*out_complete = false;

	*out_result = json_writer_create(false);
	if (!*out_result)
		return cj_fail(err, ENOMEM, "write the result");
	remote_result_write(*out_result, r->result, o, r->call->config->artifacts_inline_bytes > 0);
	return 0;
}

static struct remote *create(const struct remote_call *call, struct outcome *o,
			     struct cj_error *err)
{
	struct remote *r = calloc(1, sizeof(*r));

	if (!r) {
		(void)!cj_fail(err, ENOMEM, "ask the service");
		return NULL;
	}
	r->call = call;
	r->outcome = o;
	r->loop = LOOP_NULL;
	r->signal_fd = r->request.fd = r->input.post.fd = -1;
	r->signals = r->input.watch = r->calls.caller = WATCH_NULL;
	r->request.loop = &r->loop;
	r->request.keep = take_body;
	r->request.end = on_answered;
	r->request.watch = r->input.post.watch = WATCH_NULL;
	r->line.max = ANSWER_MAX;
	for (size_t i = 0; i < COUNT_OF(r->readers); i++)
		r->readers[i] = (struct remote_reader){ .watch = WATCH_NULL, .of = r };
	remote_output_open(r);
	return r;
}

static int destroy(struct remote *r, int rc, struct cj_error *err)
{
	if (rc < 0)
		cj_stage(err, "service");
	remote_output_close(r);
	remote_input_stop(r);
	remote_calls_close(r);
	remote_exchange_close(&r->request);
	cj_close(&r->signal_fd);
	loop_close(&r->loop);
	byte_queue_fini(&r->line.text);
	arena_fini(&r->tree);
	free(r);
	return rc;
}

int remote_run(const struct remote_call *call, struct outcome *o, struct json_writer **out_result,
	       bool *out_complete, struct cj_error *err)
{
	struct remote *r = create(call, o, err);
	struct strings warnings = { 0 };

	if (!r)
		return -err->code;
	int rc = loop_open(&r->loop, err);
	if (rc == 0)
		rc = send_request(r, &warnings, err);
	if (rc == 0)
		rc = watch_signals(r, err);
	remote_watch_readers(r);
	if (rc == 0)
		rc = receive(r, err);
	if (rc == 0)
		rc = finish(r, &warnings, out_result, out_complete, err);
	return destroy(r, rc, err);
}

/* Why a finished exec has no result. */
static int explain_missing(const struct json_node *exec, struct cj_error *err)
{
	const struct json_node *error = json_get_typed(exec, "error", JSON_OBJECT);
	const char *why = json_get_text(error, "message");

	if (why)
		return cj_reject_as(err, EREMOTEIO, "the service: %s", why);
	if (json_is_true(exec, "result_dropped"))
		return cj_reject_as(err, ENODATA,
				    "the service does not keep the result any more: "
				    "cejail-serve(8), Sessions");
	if (!json_is_true(exec, "detached"))
		return cj_reject_as(err, ENODATA,
				    "the exec was not detached: its caller has its result");
	return cj_reject_as(err, ENODATA, "the service sent no result");
}

static int await_end(struct remote *r, struct cj_error *err)
{
	char url[REMOTE_URL_MAX];
	const struct remote_fetch fetch = {
		.socket = r->call->config->remote,
		.message = { .method = "GET", .path = url },
	};

	if (snprintf(url, sizeof(url), "%s" AWAIT_QUERY, r->url) >= (int)sizeof(url))
		return cj_fail(err, ENAMETOOLONG, "write the URL of the request");
	while (!r->result) {
		auto_arena struct arena tree = { 0 };
		const struct json_node *exec = NULL;
		if (remote_fetch_json(&fetch, &tree, &exec, err) < 0)
			return -err->code;
		const char *state = json_get_text(exec, "state");
		const struct json_node *result = json_get_typed(exec, "result", JSON_OBJECT);
		if (!state)
			return cj_reject(err, "the service's answer is not an exec");
		if (result)
			return take_result(r, result, &tree, err);
		if (strcmp(state, "finished") == 0)
			return explain_missing(exec, err);
	}
	return 0;
}

int remote_await(const struct remote_call *call, struct outcome *o, struct json_writer **out_result,
		 bool *out_complete, struct cj_error *err)
{
	const struct strings none = { 0 };
	struct remote *r = create(call, o, err);

	if (!r)
		return -err->code;
	int rc = write_urls(r, err);
	if (rc == 0)
		rc = await_end(r, err);
	if (rc == 0)
		rc = finish(r, &none, out_result, out_complete, err);
	return destroy(r, rc, err);
}

int remote_start_detached(const struct remote_call *call, const char *id,
			  const struct json_node **out, struct cj_error *err)
{
	auto_json_writer struct json_writer *w = json_writer_create(false);
	char url[REMOTE_URL_MAX];
	struct strings warnings = { 0 };
	struct remote_request request = { .id = id };
	struct remote_fetch fetch = { .socket = call->config->remote };

	if (make_message(call, &request, w, url, &warnings, &fetch.message, err) < 0)
		return -err->code;
	for (size_t i = 0; i < warnings.count; i++)
		log_warning("%s", warnings.items[i]);
	return remote_fetch_json(&fetch, &call->config->arena, out, err);
}
