/* SPDX-License-Identifier: Apache-2.0 */
/* The output of a run at a service.  Acts: writes to our standard streams. */
#include "runtime/front/client/remote_state.h"

#include <limits.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/scope.h"
#include "runtime/base/sys.h"
#include "runtime/base/text.h"
#include "runtime/run/report/remote_result.h"
#include "runtime/jail/supervise/relay.h"

static const char *const stream_names[] = { "stdout", "stderr" };

static void end_stream(struct remote_stream *s, int error)
{
	s->error = error;
	s->fd = -1;
	cj_close(&s->own_fd);
}

/*
 * As of a run here: output is delivered until the run's timeout.  After it, a reader that reads
 * nothing for EVENTS_PATIENCE_MS is dropped.
 */
static int patience_ms_of(const struct remote *r, uint64_t taken_ms)
{
	if (r->run_ended_ms == 0)
		return -1;
	return clock_ms_until((taken_ms > r->run_ended_ms ? taken_ms : r->run_ended_ms) +
			      EVENTS_PATIENCE_MS);
}

static void write_bytes(struct remote *r, struct remote_stream *s, const char *bytes, size_t size)
{
	uint64_t taken_ms = clock_ms();

	while (size > 0 && s->fd >= 0 && !r->gave_up) {
		struct pollfd fds[] = { { .fd = s->fd, .events = POLLOUT },
					{ .fd = r->signal_fd, .events = POLLIN } };
		int patience_ms = patience_ms_of(r, taken_ms);
		int ready = poll(fds, 2, patience_ms);
		if (ready == 0 && patience_ms == 0)
			end_stream(s, ETIMEDOUT);
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
			end_stream(s, errno);
			remote_cancel(r, 0);
		} else if (patience_ms == 0) {
			end_stream(s, ETIMEDOUT);
		}
	}
}

static void write_escaped(struct remote *r, struct remote_stream *s, const char *bytes, size_t size)
{
	char shown[4096];

	while (size > 0 && s->fd >= 0) {
		size_t used = text_escape(bytes, size, true, shown, sizeof(shown));
		write_bytes(r, s, shown, strlen(shown));
		bytes += used;
		size -= used;
	}
}

void remote_output_write(struct remote *r, size_t which, const char *bytes, size_t size)
{
	struct remote_stream *s = &r->streams[which];

	if (s->fd < 0)
		return;
	s->written += size;
	(void)capture_add(&r->outcome->output[which], bytes, size); /* for notes_follow_output() */
	if (s->escape)
		write_escaped(r, s, bytes, size);
	else
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
