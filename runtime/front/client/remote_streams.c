/* SPDX-License-Identifier: Apache-2.0 */
/* What a run at a service is connected to here: its output, its input, and signals. */
#include <limits.h>
#include <poll.h>
#include <sys/signalfd.h>

#include "runtime/base/clock.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"
#include "runtime/base/text.h"
#include "runtime/front/client/remote_state.h"
#include "runtime/jail/relay.h"
#include "runtime/run/report/remote_result.h"
#include "runtime/session/session.h"

/* How long to wait for the result of a cancelled run. */
#define CANCEL_MS (CELL_CANCEL_MS + 3000)

#define PIECE    (32u << 10) /* of standard input in one request */
#define RETRY_MS 50
#define TOO_MANY 429 /* the service's buffer for this exec is full */

static const char *const stream_names[] = { "stdout", "stderr" };

/* Asks the service to cancel the run.  `signal`: 0 when a reader went away.  The second signal ends
 * the wait. */
static void cancel(struct remote *r, int signal);

static void end_stream(struct remote *r, struct remote_stream *s, int error)
{
	loop_unwatch(&r->loop, &r->readers[s - r->streams].watch);
	s->error = error;
	s->fd = -1;
	cj_close(&s->own_fd);
}

static void write_bytes(struct remote *r, struct remote_stream *s, const char *bytes, size_t size)
{
	uint64_t taken_ms = clock_ms();

	while (size > 0 && s->fd >= 0 && !r->gave_up) {
		struct pollfd fds[] = { { .fd = s->fd, .events = POLLOUT },
					{ .fd = r->signal_fd, .events = POLLIN } };
		/* As of a run here: output is delivered until the run's timeout.  After it, a
		 * reader that reads nothing for EVENTS_PATIENCE_MS is dropped. */
		uint64_t since_ms = taken_ms > r->run_ended_ms ? taken_ms : r->run_ended_ms;
		int patience_ms =
		    r->run_ended_ms == 0 ? -1 : clock_ms_until(since_ms + EVENTS_PATIENCE_MS);
		int ready = poll(fds, 2, patience_ms);
		if (ready == 0 && patience_ms == 0)
			end_stream(r, s, ETIMEDOUT);
		if (ready <= 0)
			continue;
		if (fds[1].revents)
			remote_read_signals(r);
		if (!fds[0].revents)
			continue;
		/* pipe(7): what POLLOUT promises */
		ssize_t put = sys_write(s->fd, bytes, size < PIPE_BUF ? size : PIPE_BUF);
		if (put >= 0) {
			bytes += put;
			size -= (size_t)put;
			taken_ms = clock_ms();
		} else if (errno != EAGAIN) {
			end_stream(r, s, errno);
			cancel(r, 0);
		} else if (patience_ms == 0) {
			end_stream(r, s, ETIMEDOUT);
		}
	}
}

void remote_output_write(struct remote *r, size_t which, const char *bytes, size_t size)
{
	struct remote_stream *s = &r->streams[which];

	if (s->fd < 0)
		return;
	s->written += size;
	(void)capture_add(&r->outcome->output[which], bytes, size); /* for notes_follow_output() */
	while (s->escape && size > 0 && s->fd >= 0) {
		char shown[4096];
		size_t used = text_escape(bytes, size, true, shown, sizeof(shown));
		write_bytes(r, s, shown, strlen(shown));
		bytes += used;
		size -= used;
	}
	if (!s->escape)
		write_bytes(r, s, bytes, size);
}

/* Writes what dropped events had of a stream, from the result.  False: it is not all there. */
static bool write_dropped(struct remote *r, size_t which)
{
	struct remote_stream *s = &r->streams[which];
	const struct json_node *node = json_get_typed(r->result, stream_names[which], JSON_OBJECT);
	const struct json_node *cut = json_get_typed(node, "truncated", JSON_BOOL);
	const char *bytes = NULL;
	uint64_t total = 0;
	size_t size = 0;

	if (s->fd < 0 || !json_get_u64(node, "bytes", &total) || total <= s->written)
		return true;
	bool is_whole = cut && !cut->boolean && remote_bytes_of(node, &r->tree, &bytes, &size) &&
			size == total;
	if (is_whole)
		remote_output_write(r, which, bytes + s->written, size - (size_t)s->written);
	else
		outcome_warn(r->outcome,
			     "%llu bytes of %s are lost: the reader here was too slow, and the "
			     "service dropped them",
			     (unsigned long long)(total - s->written), stream_names[which]);
	return is_whole;
}

/* A reader that went away shows in the status.  One that was too slow is a warning, no failure. */
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

bool remote_output_complete(struct remote *r, size_t which)
{
	return write_dropped(r, which) && is_written(r, which);
}

void remote_output_open(struct remote *r)
{
	bool passes = !r->call->delivery->to_stdout;

	for (int i = 0; i < 2; i++) {
		int fd = i == 0 ? STDOUT_FILENO : STDERR_FILENO;
		struct remote_stream *s = &r->streams[i];
		*s = (struct remote_stream){ .fd = -1, .own_fd = -1, .escape = isatty(fd) };
		if (!passes)
			continue;
		s->own_fd = relay_open_own(fd);
		s->fd = s->own_fd >= 0 ? s->own_fd : fd;
	}
}

void remote_output_close(struct remote *r)
{
	for (size_t i = 0; i < 2; i++)
		cj_close(&r->streams[i].own_fd);
}

static void on_gone(struct watch *w, uint32_t events)
{
	struct remote_reader *reader = watch_owner(w, struct remote_reader, watch);

	(void)events;
	loop_unwatch(&reader->of->loop, w);
	cancel(reader->of, 0);
}

/* epoll(7) takes no regular file, which has no reader to go away. */
void remote_watch_readers(struct remote *r)
{
	const int fds[] = { r->streams[0].fd, r->streams[1].fd,
			    delivery_hangup_fd(r->call->delivery) };
	struct cj_error ignored = { 0 };

	for (size_t i = 0; i < COUNT_OF(fds); i++)
		if (fds[i] >= 0 &&
		    loop_watch(&r->loop, &r->readers[i].watch, fds[i], on_gone, &ignored) == 0)
			loop_rewatch(&r->loop, &r->readers[i].watch, 0);
}

static void await_piece(struct remote *r);

static void forget_piece(struct remote_input *in)
{
	remote_exchange_close(&in->post);
	cj_free(&in->body);
	in->retry_at_ms = 0;
}

void remote_input_stop(struct remote *r)
{
	loop_unwatch(&r->loop, &r->input.watch);
	forget_piece(&r->input);
}

static void on_posted(struct remote_exchange *q, const struct cj_error *err)
{
	struct remote *r = watch_owner(q, struct remote, input.post);
	struct remote_input *in = &r->input;

	remote_exchange_close(q);
	if (err->code) {
		r->failure = *err;
		(void)!cj_wrap(&r->failure, "send standard input");
	} else if (q->answer.status == TOO_MANY) {
		in->retry_at_ms = clock_ms() + RETRY_MS;
	} else {
		/* after an error, the exec has ended, or has closed its input */
		bool is_over = in->is_last || !http_answer_is_success(&q->answer);
		forget_piece(in);
		if (!is_over)
			await_piece(r);
	}
}

static void send_piece(struct remote *r)
{
	struct remote_input *in = &r->input;
	const struct remote_message message = { .method = "POST",
						.path = r->stdin_url,
						.body = { in->body, in->size } };
	int fd = remote_link_connect(r->call->config->remote, 0, &r->failure);

	in->retry_at_ms = 0;
	in->post.loop = &r->loop;
	in->post.end = on_posted;
	if (fd >= 0)
		(void)!remote_exchange_start(&in->post, fd, &message, &r->failure);
}

/* A size of 0 is the end of the input. */
static int write_body(struct remote_input *in, const char *bytes, size_t size, struct cj_error *err)
{
	auto_json_writer struct json_writer *w = json_writer_create(false);
	struct blob text;

	in->is_last = size == 0;
	json_open_object(w);
	json_put_bytes(w, bytes, size);
	if (in->is_last)
		json_member_bool(w, "eof", true);
	json_close_object(w);
	if (json_writer_take(w, &text, err) < 0)
		return -err->code;
	in->body = strndup(text.bytes, text.size);
	in->size = text.size;
	return in->body ? 0 : cj_fail(err, ENOMEM, "--remote: prepare a request");
}

/* Of a program that reads slowly nothing is read, until it has taken the last piece. */
static void read_piece(struct remote *r)
{
	char bytes[PIECE];
	ssize_t got = sys_read(STDIN_FILENO, bytes, sizeof(bytes));

	if (got < 0 && errno == EAGAIN)
		return;
	loop_unwatch(&r->loop, &r->input.watch);
	if (got < 0)
		(void)!cj_fail(&r->failure, errno, "read standard input");
	else if (write_body(&r->input, bytes, (size_t)got, &r->failure) == 0)
		send_piece(r);
}

static void on_stdin(struct watch *w, uint32_t events)
{
	(void)events;
	read_piece(watch_owner(w, struct remote, input.watch));
}

/* epoll(7) takes no regular file, which is always ready. */
static void await_piece(struct remote *r)
{
	struct cj_error err = { 0 };

	if (loop_watch(&r->loop, &r->input.watch, STDIN_FILENO, on_stdin, &err) == 0)
		return;
	if (err.code == EPERM)
		read_piece(r);
	else
		r->failure = err;
}

void remote_input_start(struct remote *r)
{
	if (!r->input.body && r->input.watch.fd < 0) /* a second event "start" */
		await_piece(r);
}

int remote_input_tick(struct remote *r)
{
	if (r->input.retry_at_ms > 0 && clock_ms() >= r->input.retry_at_ms)
		send_piece(r);
	return clock_ms_until(r->input.retry_at_ms);
}

static struct remote_fetch request_of(const struct remote *r, const char *method, const char *url)
{
	return (struct remote_fetch){
		.socket = r->call->config->remote,
		.message = { .method = method, .path = url },
		.patience_s = REMOTE_PATIENCE_S,
	};
}

static void cancel(struct remote *r, int signal)
{
	const struct remote_fetch fetch = request_of(r, "DELETE", r->url);
	struct cj_error ignored = { 0 };

	if (r->is_cancelled) {
		r->gave_up |= signal != 0; /* the second signal */
		return;
	}
	r->is_cancelled = true;
	r->outcome->cancel_signal = signal;
	r->run_ended_ms = clock_ms();
	r->deadline_ms = r->run_ended_ms + CANCEL_MS;
	if (remote_fetch(&fetch, NULL, NULL, &ignored) < 0)
		r->gave_up = true; /* closing the connection cancels the run, too */
}

static bool interrupt(struct remote *r)
{
	static const char body[] = "{\"signal\":\"INT\"}";
	char url[REMOTE_URL_MAX] = "";
	struct cj_error ignored = { 0 };
	struct remote_fetch fetch = request_of(r, "POST", url);

	r->is_interrupted = true;
	fetch.message.body = (struct blob){ body, sizeof(body) - 1 };
	return remote_url(url, r->url, &ignored) == 0 &&
	       remote_url(url, "/signal", &ignored) == 0 &&
	       remote_fetch(&fetch, NULL, NULL, &ignored) == 0;
}

void remote_read_signals(struct remote *r)
{
	struct signalfd_siginfo info;

	while (sys_read(r->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		bool may_interrupt = r->call->exec && info.ssi_signo == SIGINT &&
				     !r->is_interrupted && !r->is_cancelled;
		if (!may_interrupt || !interrupt(r)) /* an exec that still waits takes no signal */
			cancel(r, (int)info.ssi_signo);
	}
}

/* NULL: the session lives, or the service does not say. */
static const char *reason_of_session(const struct remote *r, struct arena *a)
{
	char url[REMOTE_URL_MAX] = "";
	struct cj_error ignored = { 0 };
	const struct json_node *session = NULL;
	const struct remote_fetch fetch = request_of(r, "GET", url);

	if (!r->call->exec || remote_url(url, "/v1/sessions/", &ignored) < 0 ||
	    remote_url(url, r->call->exec->session, &ignored) < 0 ||
	    remote_fetch_json(&fetch, a, &session, &ignored) < 0)
		return NULL;
	return json_get_text(session, "message");
}

/* The exit status is that of a run which `cejail kill` cancels. */
void remote_explain_cancel(struct remote *r)
{
	auto_arena struct arena a = { 0 };
	const char *why = reason_of_session(r, &a);

	r->outcome->cancel_signal = SIGTERM;
	r->outcome->is_cancelled_elsewhere = true;
	outcome_warn(r->outcome, "cancelled: %s",
		     why ? why : "another request to the service cancelled it");
}
