/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes on their way into a pipe that takes them without blocking. */

#include "runtime/base/scope.h"
#include "runtime/base/sys.h"
#include "runtime/service/http/http.h"
#include "runtime/service/sessions/sessions_parts.h"

static void report(struct sessions_pipe *p, size_t written, enum sessions_pipe_state state)
{
	p->flushed(p, written, state);
	if (state >= SESSIONS_PIPE_WHOLE)
		sessions_pipe_close(p);
	else if (state == SESSIONS_PIPE_EMPTY && p->source)
		exchange_resume_body(p->source);
}

void sessions_pipe_flush(struct sessions_pipe *p)
{
	enum sessions_pipe_state state = SESSIONS_PIPE_EMPTY;
	size_t written = 0;

	if (p->fd < 0)
		return;
	while (byte_queue_size(&p->queue) > 0 && state == SESSIONS_PIPE_EMPTY) {
		const char *begin = p->queue.bytes + p->queue.start;
		ssize_t put = sys_write(p->fd, begin, byte_queue_size(&p->queue));
		if (put < 0) {
			state = errno == EAGAIN  ? SESSIONS_PIPE_WAITS
				: errno == EPIPE ? SESSIONS_PIPE_GONE
						 : SESSIONS_PIPE_LOST;
			continue;
		}
		byte_queue_take(&p->queue, (size_t)put);
		written += (size_t)put;
	}
	if (state == SESSIONS_PIPE_EMPTY && !p->is_open && !p->source)
		state = SESSIONS_PIPE_WHOLE;
	loop_rewatch(p->loop, &p->watch, state == SESSIONS_PIPE_WAITS ? EPOLLOUT : 0);
	report(p, written, state);
}

static void on_ready(struct watch *w, uint32_t events)
{
	struct sessions_pipe *p = watch_owner(w, struct sessions_pipe, watch);

	if (events & EPOLLERR) /* the reader is gone */
		report(p, 0, SESSIONS_PIPE_GONE);
	else
		sessions_pipe_flush(p);
}

int sessions_pipe_adopt(struct sessions_pipe *p, int *fd, struct cj_error *err)
{
	p->fd = take_fd(fd);
	if (loop_watch(p->loop, &p->watch, p->fd, on_ready, err) < 0)
		return -err->code;
	sessions_pipe_flush(p);
	return 0;
}

void sessions_pipe_close(struct sessions_pipe *p)
{
	loop_unwatch(p->loop, &p->watch);
	cj_close(&p->fd);
	byte_queue_fini(&p->queue);
	p->is_open = false;
	p->is_closed = true;
	if (p->source)
		exchange_resume_body(p->source); /* the rest is dropped */
}
