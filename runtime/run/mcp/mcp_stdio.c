/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/run/mcp/mcp_stdio.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "runtime/base/files/fd.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"
#include "runtime/jail/relay.h"
#include "runtime/run/mcp/mcp_message.h"

#define CHUNK 65536

/* An answer that is lost would leave the client waiting. */
static void fail_stream(struct mcp_stdio *s, int code, const char *what)
{
	s->is_over = true;
	if (code != EPIPE && code != ECONNRESET) /* else the client has ended */
		(void)!cj_fail(&s->failure, code, "%s", what);
}

static const char *reading(const struct mcp_stdio *s)
{
	return s->owns_fds ? "read from it" : "read standard input";
}

static size_t waiting(const struct mcp_stdio *s)
{
	return byte_queue_size(&s->queue);
}

/* A pipe that poll(2) calls writable takes PIPE_BUF bytes without blocking: pipe(7). */
static ssize_t write_some(struct mcp_stdio *s, const char *bytes, size_t size)
{
	if (s->is_socket)
		return send(s->out_fd, bytes, size, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (s->own_out_fd >= 0)
		return sys_write(s->own_out_fd, bytes, size);
	if (fd_await(s->out_fd, POLLOUT, 0))
		return sys_write(s->out_fd, bytes, size < PIPE_BUF ? size : PIPE_BUF);
	errno = EAGAIN;
	return -1;
}

static void flush(struct mcp_stdio *s)
{
	while (waiting(s) > 0) {
		ssize_t put = write_some(s, s->queue.bytes + s->queue.start, waiting(s));
		if (put < 0 && errno == EINTR)
			continue;
		if (put < 0 && errno != EAGAIN)
			fail_stream(s, errno,
				    s->owns_fds ? "write to it" : "write to standard output");
		if (put < 0)
			break;
		byte_queue_take(&s->queue, (size_t)put);
	}
	if (waiting(s) == 0 && s->queue.room > MCP_QUEUE_FULL / 2)
		byte_queue_fini(&s->queue);
	loop_rewatch(s->loop, &s->out, waiting(s) > 0 ? EPOLLOUT : 0);
}

static bool is_reading(const struct mcp_stdio *s)
{
	return !s->is_held && (!s->is_paused || s->reads_on);
}

static void watch_lines(struct mcp_stdio *s)
{
	loop_rewatch(s->loop, &s->in, is_reading(s) ? EPOLLIN : EPOLLRDHUP);
}

static void pause_input(struct mcp_stdio *s, bool is_paused)
{
	if (s->is_paused == is_paused)
		return;
	s->is_paused = is_paused;
	watch_lines(s);
}

void mcp_stdio_put(struct mcp_stdio *s, const char *text, size_t size, bool may_drop)
{
	if (s->is_over || (may_drop && waiting(s) > MCP_QUEUE_SHORT))
		return;
	const struct blob line[] = { { text, size }, { "\n", 1 } };
	if (byte_queue_add_all(&s->queue, line, 2) < 0) {
		fail_stream(s, ENOMEM, "answer");
		return;
	}
	flush(s);
	if (waiting(s) > MCP_QUEUE_FULL)
		pause_input(s, true);
}

/* Calls back for whole lines until the input is paused, and keeps the rest. */
static void handle_lines(struct mcp_stdio *s)
{
	size_t size;

	while (is_reading(s) && !s->is_over &&
	       (size = byte_queue_find_line(&s->input, &s->searched)) != SIZE_MAX) {
		char *line = s->input.bytes + s->input.start, *newline = line + size;
		bool is_cut = s->is_cut;
		*newline = '\0';
		s->is_cut = false;
		if (is_cut)
			s->cut(s, (struct blob){ line, MCP_LINE_EDGE },
			       (struct blob){ newline - MCP_LINE_EDGE, MCP_LINE_EDGE });
		else
			s->line(s, line, size);
		if (s->is_held)
			*newline = '\n';
		else
			byte_queue_take(&s->input, size + 1);
	}
}

void mcp_stdio_hold(struct mcp_stdio *s, bool is_held)
{
	s->is_held = is_held;
	watch_lines(s);
	if (!is_held)
		handle_lines(s);
}

static void read_input(struct mcp_stdio *s)
{
	struct byte_queue *q = &s->input;

	if (q->room - q->end < CHUNK && byte_queue_grow(q, CHUNK + byte_queue_size(q) / 2) < 0) {
		fail_stream(s, ENOMEM, reading(s));
		return;
	}
	ssize_t got = sys_read(s->in_fd, q->bytes + q->end, CHUNK);
	if (got < 0 && errno == EAGAIN)
		return;
	if (got < 0)
		fail_stream(s, errno, reading(s));
	if (got <= 0) {
		s->is_over = true;
		return;
	}
	q->end += (size_t)got;
	handle_lines(s);
	/* Else the buffer has no newline: of a line that is too long both ends are kept. */
	if (!is_reading(s) || byte_queue_size(q) <= (s->is_cut ? 2 * MCP_LINE_EDGE : MCP_LINE_MAX))
		return;
	memmove(q->bytes + q->start + MCP_LINE_EDGE, q->bytes + q->end - MCP_LINE_EDGE,
		MCP_LINE_EDGE);
	s->is_cut = true;
	s->searched = 2 * MCP_LINE_EDGE;
	q->end = q->start + s->searched;
}

/* The end comes also while paused (EPOLLRDHUP of a socket): the client needs no answers. */
static void on_input(struct watch *w, uint32_t events)
{
	struct mcp_stdio *s = watch_owner(w, struct mcp_stdio, in);

	if (is_reading(s))
		read_input(s);
	else
		s->is_over = (events & (EPOLLHUP | EPOLLERR | EPOLLRDHUP)) != 0;
}

static void on_output(struct watch *w, uint32_t events)
{
	struct mcp_stdio *s = watch_owner(w, struct mcp_stdio, out);

	if (events & EPOLLERR) { /* nobody reads any more */
		s->is_over = true;
		return;
	}
	flush(s);
	if (!s->is_paused || waiting(s) > MCP_QUEUE_FULL / 2)
		return;
	pause_input(s, false);
	handle_lines(s);
}

/* epoll(7) cannot watch a file: what is in it is a client that does not wait for answers. */
static int watch_input(struct mcp_stdio *s, struct cj_error *err)
{
	if (loop_watch(s->loop, &s->in, s->in_fd, on_input, err) == 0)
		return 0;
	if (err->code == EPERM && !s->owns_fds) {
		cj_refuse(err, "standard input is a file, and no MCP client");
		cj_hint(err, "a client starts 'cejail mcp' and talks to it through pipes; see "
			     "cejail-mcp(1)");
	}
	return -err->code;
}

/* A file takes all at once, so nothing waits for it. */
static int watch_output(struct mcp_stdio *s, struct cj_error *err)
{
	struct cj_error why = { 0 };

	if (loop_watch(s->loop, &s->out, s->out_fd, on_output, &why) < 0 && why.code != EPERM) {
		*err = why;
		return -err->code;
	}
	loop_rewatch(s->loop, &s->out, 0);
	return 0;
}

int mcp_stdio_open(struct mcp_stdio *s, struct cj_error *err)
{
	struct stat st;

	s->in = s->out = WATCH_NULL;
	s->in_fd = STDIN_FILENO;
	s->out_fd = STDOUT_FILENO;
	s->own_out_fd = relay_open_own(STDOUT_FILENO);
	s->is_socket = fstat(STDOUT_FILENO, &st) == 0 && S_ISSOCK(st.st_mode);
	if (watch_input(s, err) < 0)
		return -err->code;
	return watch_output(s, err);
}

/* epoll(7) watches a descriptor once, so both directions of a socket need one each. */
int mcp_stdio_open_fds(struct mcp_stdio *s, int in_fd, int out_fd, struct cj_error *err)
{
	s->in = s->out = WATCH_NULL;
	s->own_out_fd = -1;
	s->owns_fds = true;
	s->is_socket = in_fd == out_fd;
	s->in_fd = in_fd;
	s->out_fd = in_fd == out_fd ? fcntl(in_fd, F_DUPFD_CLOEXEC, 0) : out_fd;
	if (s->out_fd < 0)
		return cj_fail(err, errno, "copy a descriptor");
	if (!s->is_socket)
		s->own_out_fd = s->out_fd;
	fd_set_nonblocking(s->in_fd);
	fd_set_nonblocking(s->out_fd);
	if (watch_input(s, err) < 0)
		return -err->code;
	return watch_output(s, err);
}

void mcp_stdio_close(struct mcp_stdio *s)
{
	loop_unwatch(s->loop, &s->in);
	loop_unwatch(s->loop, &s->out);
	if (s->owns_fds) {
		s->own_out_fd = -1; /* the same as out_fd */
		cj_close(&s->in_fd);
		cj_close(&s->out_fd);
	}
	cj_close(&s->own_out_fd);
	byte_queue_fini(&s->input);
	byte_queue_fini(&s->queue);
}
