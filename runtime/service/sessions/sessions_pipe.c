/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes on their way into a pipe that takes them without blocking. */
#include <stdlib.h>
#include <string.h>

#include "runtime/base/loop.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"
#include "runtime/service/sessions/sessions_parts.h"

bool sessions_pipe_add(struct sessions_pipe *p, const char *bytes, size_t size)
{
	if (p->start > 0) {
		p->end -= p->start;
		memmove(p->bytes, p->bytes + p->start, p->end);
		p->start = 0;
	}
	if (p->end + size > p->room) {
		char *grown = realloc(p->bytes, p->end + size);
		if (!grown)
			return false;
		p->bytes = grown;
		p->room = p->end + size;
	}
	memcpy(p->bytes + p->end, bytes, size);
	p->end += size;
	return true;
}

enum sessions_pipe_state sessions_pipe_flush(struct sessions_pipe *p, struct loop *loop,
					     size_t *out_written)
{
	for (*out_written = 0; p->start < p->end;) {
		ssize_t put = sys_write(p->fd, p->bytes + p->start, p->end - p->start);
		if (put < 0 && errno == EAGAIN)
			break;
		if (put < 0)
			return errno == EPIPE ? SESSIONS_PIPE_GONE : SESSIONS_PIPE_LOST;
		p->start += (size_t)put;
		*out_written += (size_t)put;
	}
	bool is_empty = p->start == p->end;
	loop_rewatch(loop, &p->watch, is_empty ? 0 : EPOLLOUT);
	return is_empty ? SESSIONS_PIPE_EMPTY : SESSIONS_PIPE_WAITS;
}

void sessions_pipe_close(struct sessions_pipe *p, struct loop *loop)
{
	loop_unwatch(loop, &p->watch);
	cj_close(&p->fd);
	cj_free(&p->bytes);
	p->start = p->end = p->room = 0;
}
