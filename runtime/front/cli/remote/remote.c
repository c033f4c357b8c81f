/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `run --remote`.  Acts: one loop over the service's socket, our signals and whoever reads us.
 *
 * The service is asked for events, a JSON line each, whenever somebody waits for output or events;
 * they are passed on as they come, and the last line is the result.  A service waits for a
 * slow reader, but not for ever; what it left out of the output then is taken from the result.
 */
#include "runtime/front/cli/remote/remote.h"

#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"
#include "runtime/base/text.h"
#include "runtime/front/cli/remote/http_answer.h"
#include "runtime/front/cli/remote/remote_artifacts.h"
#include "runtime/front/cli/remote/remote_gather.h"
#include "runtime/front/cli/remote/remote_link.h"
#include "runtime/front/cli/remote/remote_result.h"
#include "runtime/jail/jail.h"
#include "runtime/jail/supervise/relay.h"

#define RUNS_PATH     "/v1/runs"
#define ANSWER_MAX    (768u << 20) /* two streams of 256M in base64, and more */
#define CHUNK         65536
#define CANCEL_MS     10000 /* a service that was asked to cancel has that long to tell */
#define LINE_ROOM_MIN 4096
#define LIMIT_MS_MAX  (UINT64_MAX / 4) /* of a run's time, as the service tells it */

/* One of the program's output streams, where it goes here. */
struct stream {
	int fd;     /* -1: nowhere */
	int own_fd; /* -1, or `fd` as an open file of ours */
	bool escape;
	uint64_t written; /* of the program's bytes */
	int error;        /* why it can't be written any more */
};

struct remote {
	const struct remote_call *call;
	struct outcome *outcome;
	int sock_fd, signal_fd;
	struct http_answer answer;
	char *line; /* [0, size): what has come of a line, or of an error's body */
	size_t size, room;
	struct stream streams[2];
	bool has_gap;      /* events were left out: what follows would stand in the wrong place */
	struct arena tree; /* what `result` lives in */
	const struct json_node *result;
	bool is_cancelled, gave_up;
	uint64_t deadline_ms; /* 0: none */
	uint64_t late_ms;     /* when the run's time is over; 0: not known */
};

static int ms_until(uint64_t at_ms)
{
	uint64_t now = clock_ms();
	uint64_t left = at_ms > now ? at_ms - now : 0;

	return left < INT_MAX ? (int)left : INT_MAX;
}

/* --- cancelling ------------------------------------------------------------- */

/* `signal` 0: whoever reads us went away. */
static void cancel(struct remote *r, int signal)
{
	struct cj_error err = { 0 };

	if (r->is_cancelled) {
		r->gave_up = signal != 0; /* the second signal */
		return;
	}
	r->is_cancelled = true;
	r->outcome->cancel_signal = signal;
	r->late_ms = clock_ms();
	r->deadline_ms = r->late_ms + CANCEL_MS;
	if (remote_link_cancel(r->call->config->remote, r->outcome->id, &err) < 0)
		r->gave_up = true; /* closing the connection cancels it, too */
}

static void hear_signals(struct remote *r)
{
	struct signalfd_siginfo info;

	while (sys_read(r->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
		cancel(r, (int)info.ssi_signo);
}

/* --- output ----------------------------------------------------------------- */

static void end_stream(struct stream *s, int error)
{
	s->error = error;
	s->fd = -1;
	cj_close(&s->own_fd);
}

/*
 * As of a run here: a reader may take until the run's time is over, and is not waited for after
 * that when it takes nothing for a while.
 */
static int patience_of(const struct remote *r, uint64_t taken_ms)
{
	if (r->late_ms == 0)
		return -1;
	return ms_until((taken_ms > r->late_ms ? taken_ms : r->late_ms) + EVENTS_PATIENCE_MS);
}

static void write_bytes(struct remote *r, struct stream *s, const char *bytes, size_t size)
{
	uint64_t taken_ms = clock_ms();

	while (size > 0 && s->fd >= 0 && !r->gave_up) {
		struct pollfd fds[] = { { .fd = s->fd, .events = POLLOUT },
					{ .fd = r->signal_fd, .events = POLLIN } };
		int patience_ms = patience_of(r, taken_ms);
		int ready = poll(fds, 2, patience_ms);
		if (ready == 0 && patience_ms == 0)
			end_stream(s, ETIMEDOUT);
		if (ready <= 0)
			continue;
		if (fds[1].revents)
			hear_signals(r);
		if (!fds[0].revents)
			continue;
		/* pipe(7): what POLLOUT promises */
		ssize_t put = sys_write(s->fd, bytes, size < PIPE_BUF ? size : PIPE_BUF);
		if (put >= 0) {
			bytes += put;
			size -= (size_t)put;
			taken_ms = clock_ms();
		} else if (errno != EAGAIN) {
			end_stream(s, errno);
			cancel(r, 0);
		} else if (patience_ms == 0) {
			end_stream(s, ETIMEDOUT);
		}
	}
}

static void write_escaped(struct remote *r, struct stream *s, const char *bytes, size_t size)
{
	char shown[4096];

	while (size > 0 && s->fd >= 0) {
		size_t used = text_escape(bytes, size, true, shown, sizeof(shown));
		write_bytes(r, s, shown, strlen(shown));
		bytes += used;
		size -= used;
	}
}

static void pass_output(struct remote *r, size_t which, const char *bytes, size_t size)
{
	struct stream *s = &r->streams[which];

	if (s->fd < 0)
		return;
	s->written += size;
	(void)capture_add(&r->outcome->output[which], bytes, size); /* for its last byte only */
	if (s->escape)
		write_escaped(r, s, bytes, size);
	else
		write_bytes(r, s, bytes, size);
}

/* What events that were left out had of a stream, from the result; false: not all of it. */
static bool complete_stream(struct remote *r, size_t which, const char *name)
{
	struct stream *s = &r->streams[which];
	const struct json_node *node = json_get(r->result, name), *count, *cut;
	struct cj_error err = { 0 };
	const char *bytes = NULL;
	uint64_t total = 0;
	size_t size = 0;

	if (s->fd < 0 || !node || node->type != JSON_OBJECT)
		return true;
	count = json_get(node, "bytes");
	cut = json_get(node, "truncated");
	if (!count || !count->text || parse_u64(count->text, 0, UINT64_MAX, &total, &err) < 0 ||
	    total <= s->written)
		return true;
	bool is_whole = cut && cut->type == JSON_BOOL && !cut->boolean &&
			remote_bytes_of(node, &r->tree, &bytes, &size) && size == total;
	if (is_whole)
		pass_output(r, which, bytes + s->written, size - (size_t)s->written);
	else
		outcome_warn(r->outcome,
			     "%llu bytes of %s are missing: they came faster than they were read "
			     "here, and the service left them out",
			     (unsigned long long)(total - s->written), name);
	return is_whole;
}

/* --- lines ------------------------------------------------------------------ */

/* From here on the result, which is parsed already, is all that counts. */
static int take_result(struct remote *r, const struct json_node *node, struct arena *tree,
		       struct cj_error *err)
{
	if (r->result)
		return cj_reject(err, "the service sent two results");
	r->result = node;
	r->tree = *tree;
	*tree = (struct arena){ 0 };
	return 0;
}

/* Without the limit, or with one that is none, a reader is waited for as long as it likes. */
static void note_limit(struct remote *r, const struct json_node *event)
{
	const struct json_node *limit = json_get(event, "timeout_ms");
	struct cj_error err = { 0 };
	uint64_t ms = 0;

	if (!r->is_cancelled && limit && limit->type == JSON_NUMBER &&
	    parse_u64(limit->text, 1, LIMIT_MS_MAX, &ms, &err) == 0)
		r->late_ms = clock_ms() + ms;
}

static int take_event(struct remote *r, const struct json_node *event, const char *type,
		      struct arena *tree, struct cj_error *err)
{
	const char *bytes;
	size_t size;

	for (size_t i = 0; i < 2; i++) {
		if (strcmp(type, i == 0 ? "stdout" : "stderr") != 0)
			continue;
		if (!r->has_gap && remote_bytes_of(event, tree, &bytes, &size))
			pass_output(r, i, bytes, size);
	}
	if (strcmp(type, "start") == 0)
		note_limit(r, event);
	if (strcmp(type, "dropped") == 0)
		r->has_gap = true;
	if (strcmp(type, "error") == 0)
		return remote_refusal_read(500, 0, r->line, r->size, err);
	events_pass(&r->call->delivery->events, r->line, r->size);
	return 0;
}

static int take_line(struct remote *r, struct cj_error *err)
{
	auto_arena struct arena tree = { 0 };
	const struct json_node *root;

	if (json_parse_capped("the service's answer", r->line, r->size, &tree, &root, err) < 0)
		return -err->code;
	if (root->type != JSON_OBJECT)
		return cj_reject(err, "the service's answer is no object");
	const struct json_node *type = json_get(root, "type");
	if (!type) /* the result alone */
		return take_result(r, root, &tree, err);
	const struct json_node *result = json_get(root, "result");
	if (type->type != JSON_STRING)
		return cj_reject(err, "the service sent an event without a type");
	if (strcmp(type->text, "result") == 0 && result)
		return take_result(r, result, &tree, err);
	return take_event(r, root, type->text, &tree, err);
}

static int append(struct remote *r, const char *bytes, size_t size, struct cj_error *err)
{
	if (size > ANSWER_MAX - r->size)
		return cj_reject_as(err, EFBIG, "the service's answer has more than %u MiB",
				    ANSWER_MAX >> 20);
	if (r->size + size + 1 > r->room) {
		size_t room = 2 * (r->size + size) + LINE_ROOM_MIN;
		char *line = realloc(r->line, room);
		if (!line)
			return cj_fail(err, ENOMEM, "keep the service's answer");
		r->line = line;
		r->room = room;
	}
	memcpy(r->line + r->size, bytes, size);
	r->size += size;
	r->line[r->size] = '\0';
	return 0;
}

/* An error's body is kept whole; of a run's each line is taken as it comes. */
static int take_body(void *context, const char *bytes, size_t size, struct cj_error *err)
{
	struct remote *r = context;
	const char *end;

	while (r->answer.status == 200 && (end = memchr(bytes, '\n', size))) {
		size_t part = (size_t)(end - bytes);
		if (append(r, bytes, part, err) < 0 || (r->size > 0 && take_line(r, err) < 0))
			return -err->code;
		r->size = 0;
		bytes += part + 1;
		size -= part + 1;
	}
	return append(r, bytes, size, err);
}

/* --- the loop --------------------------------------------------------------- */

/* 0: there may be more; 1: the answer is whole. */
static int read_some(struct remote *r, struct cj_error *err)
{
	char buf[CHUNK];
	ssize_t got = sys_read(r->sock_fd, buf, sizeof(buf));

	if (got < 0 && errno != ECONNRESET)
		return cj_fail(err, errno, "read the service's answer");
	if (got <= 0)
		return http_answer_end(&r->answer, err) < 0 ? -err->code : 1;
	if (http_answer_feed(&r->answer, buf, (size_t)got, take_body, r, err) < 0)
		return -err->code;
	return r->answer.part == HTTP_DONE;
}

enum { ON_SOCKET, ON_SIGNAL, ON_STDOUT, ON_STDERR, ON_READER, ON_COUNT };

static int turn(struct remote *r, struct cj_error *err)
{
	struct pollfd fds[ON_COUNT] = {
		[ON_SOCKET] = { .fd = r->sock_fd, .events = POLLIN },
		[ON_SIGNAL] = { .fd = r->signal_fd, .events = POLLIN },
		/* no events: only that the other end went away */
		[ON_STDOUT] = { .fd = r->is_cancelled ? -1 : r->streams[0].fd },
		[ON_STDERR] = { .fd = r->is_cancelled ? -1 : r->streams[1].fd },
		[ON_READER] = { .fd = r->is_cancelled ? -1
						      : delivery_hangup_fd(r->call->delivery) },
	};
	int ready = poll(fds, ON_COUNT, r->deadline_ms > 0 ? ms_until(r->deadline_ms) : -1);

	if (ready < 0 && errno != EINTR)
		return cj_fail(err, errno, "wait for the service");
	if (ready == 0)
		r->gave_up = true;
	if (ready <= 0)
		return 0;
	if (fds[ON_SIGNAL].revents)
		hear_signals(r);
	for (size_t i = ON_STDOUT; i < ON_COUNT; i++) {
		if (fds[i].revents & (POLLERR | POLLHUP))
			cancel(r, 0);
	}
	return fds[ON_SOCKET].revents && !r->gave_up ? read_some(r, err) : 0;
}

static int converse(struct remote *r, struct cj_error *err)
{
	int rc = 0;

	while (rc == 0 && !r->gave_up)
		rc = turn(r, err);
	if (rc < 0 || r->gave_up)
		return rc < 0 ? rc : 0;
	if (r->answer.status != 200)
		return remote_refusal_read(r->answer.status, r->answer.retry_after, r->line,
					   r->size, err);
	if (r->size > 0 && take_line(r, err) < 0)
		return -err->code;
	if (!r->result)
		return cj_reject_as(err, ECONNRESET, "the service's answer ended without a result");
	return 0;
}

/* --- asking ----------------------------------------------------------------- */

static int ask(struct remote *r, struct strings *warnings, struct cj_error *err)
{
	const struct remote_call *call = r->call;
	bool wants_events = r->streams[0].fd >= 0 || r->streams[1].fd >= 0 ||
			    call->delivery->events.fd >= 0;
	struct remote_request request = { .profile = call->profile, .id = r->outcome->id };
	auto_json_writer struct json_writer *w = json_writer_create(false);
	const char *body = NULL;
	size_t size = 0;

	if (!w)
		return cj_fail(err, ENOMEM, "prepare the request");
	if (remote_gather(call->config, call->options, call->invocation, &request, warnings, err) <
	    0)
		return -err->code;
	remote_request_write(w, &request);
	if (json_writer_take(w, &body, &size, err) < 0)
		return -err->code;
	r->sock_fd = remote_link_ask(call->config->remote, "POST", RUNS_PATH,
				     wants_events ? "application/x-ndjson" : "application/json",
				     body, size, err);
	return r->sock_fd < 0 ? r->sock_fd : 0;
}

static int hear(struct remote *r, struct cj_error *err)
{
	sigset_t ending;

	jail_ending_signals(&ending);
	r->signal_fd = signalfd(-1, &ending, SFD_CLOEXEC | SFD_NONBLOCK);
	if (r->signal_fd < 0)
		return cj_fail(err, errno, "open a descriptor for signals");
	if (sigprocmask(SIG_BLOCK, &ending, NULL) < 0)
		return cj_fail(err, errno, "block signals");
	return 0;
}

/* --- the end ---------------------------------------------------------------- */

/* A reader that went away is told by the status alone; one that did not take all is no failure. */
static bool is_written(struct remote *r, size_t which)
{
	int error = r->streams[which].error;

	const char *name = which == 0 ? "output" : "error";

	if (error == ETIMEDOUT)
		outcome_warn(r->outcome, "standard %s was not read to its end: the rest is lost",
			     name);
	if (error == 0 || error == EPIPE || error == ETIMEDOUT)
		return true;
	outcome_warn(r->outcome, "standard %s can't be written: %s", name, strerror(error));
	return false;
}

static int finish(struct remote *r, const struct strings *warnings, struct json_writer **out_result,
		  bool *out_complete, struct cj_error *err)
{
	static const char *const names[] = { "stdout", "stderr" };
	struct outcome *o = r->outcome;

	if (!r->result) {
		outcome_decide(o, STATUS_CANCELLED);
		return 0;
	}
	if (remote_result_read(r->result, o, err) < 0)
		return -err->code;
	for (size_t i = 0; i < warnings->count; i++)
		outcome_warn(o, "%s", warnings->items[i]);
	for (size_t i = 0; i < 2; i++)
		*out_complete = complete_stream(r, i, names[i]) && is_written(r, i) &&
				*out_complete;
	if (!remote_artifacts_store(r->result, r->call->artifacts_fd, o))
		*out_complete = false;

	struct json_writer *w = json_writer_create(false);
	if (!w)
		return cj_fail(err, ENOMEM, "write the result");
	remote_result_write(w, r->result, o);
	*out_result = w;
	return 0;
}

static void set_streams(struct remote *r)
{
	bool passes = !r->call->delivery->to_stdout;

	for (int i = 0; i < 2; i++) {
		int fd = i == 0 ? STDOUT_FILENO : STDERR_FILENO;
		struct stream *s = &r->streams[i];
		*s = (struct stream){ .fd = -1, .own_fd = -1, .escape = isatty(fd) };
		if (!passes)
			continue;
		s->own_fd = relay_open_own(fd);
		s->fd = s->own_fd >= 0 ? s->own_fd : fd;
	}
}

int remote_run(const struct remote_call *call, struct outcome *o, struct json_writer **out_result,
	       bool *out_complete, struct cj_error *err)
{
	auto_free struct remote *r = calloc(1, sizeof(*r));
	struct strings warnings = { 0 };

	if (!r)
		return cj_fail(err, ENOMEM, "ask the service");
	*r = (struct remote){ .call = call, .outcome = o, .sock_fd = -1, .signal_fd = -1 };
	http_answer_init(&r->answer);
	set_streams(r);
	int rc = ask(r, &warnings, err);
	if (rc == 0)
		rc = hear(r, err);
	if (rc == 0)
		rc = converse(r, err);
	if (rc == 0)
		rc = finish(r, &warnings, out_result, out_complete, err);
	if (rc < 0)
		cj_stage(err, "service");
	for (size_t i = 0; i < 2; i++)
		cj_close(&r->streams[i].own_fd);
	cj_close(&r->sock_fd);
	cj_close(&r->signal_fd);
	free(r->line);
	arena_fini(&r->tree);
	return rc;
}
