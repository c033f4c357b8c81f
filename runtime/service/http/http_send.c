/* SPDX-License-Identifier: Apache-2.0 */
/* A reply's bytes on their way to the caller.  Acts: writes to the connection. */
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "runtime/service/http/http_parts.h"

static struct iovec rest_of(char *bytes, size_t start, size_t end)
{
	return (struct iovec){ .iov_base = start < end ? bytes + start : NULL,
			       .iov_len = end - start };
}

/* The next unsent piece: first the head, then the text or the stream's lines. */
static void list_output(struct exchange *x, struct iovec out[static 2])
{
	struct stream *s = &x->stream;

	out[0] = rest_of(x->reply_head, x->reply_head_sent, x->reply_head_size);
	out[1] = s->is_on ? rest_of(s->bytes, s->start, s->end)
			  : rest_of(x->reply, x->reply_sent, x->reply_size);
}

bool exchange_has_output(const struct exchange *x)
{
	const struct stream *s = &x->stream;
	size_t waiting = s->is_on ? s->end - s->start : x->reply_size - x->reply_sent;

	return x->is_answered && waiting + x->reply_head_size - x->reply_head_sent > 0;
}

static void note_sent(struct exchange *x, size_t size)
{
	size_t head = x->reply_head_size - x->reply_head_sent;
	struct stream *s = &x->stream;

	head = size < head ? size : head;
	x->reply_head_sent += head;
	size -= head;
	if (!s->is_on) {
		x->reply_sent += size;
		return;
	}
	s->start += size;
	if (s->start < s->end || size == 0)
		return;
	s->start = s->end = 0;
	if (x->holder)
		s->taken(x->holder);
}

/* Is the reply complete when nothing is unsent?  The end of a stream is one more piece. */
static bool is_over(struct exchange *x)
{
	static const char tail[] = "0\r\n\r\n";
	struct stream *s = &x->stream;

	if (!s->is_on)
		return true;
	if (!s->has_ended)
		return false;
	if (s->has_tail || !x->head.is_1_1)
		return true;
	s->has_tail = true;
	memcpy(x->reply_head, tail, sizeof(tail) - 1);
	x->reply_head_size = sizeof(tail) - 1;
	x->reply_head_sent = 0;
	return false;
}

bool exchange_send(struct exchange *x)
{
	while (x->is_answered && !x->is_abandoned) {
		struct iovec out[2];
		struct msghdr message = { .msg_iov = out, .msg_iovlen = 2 };
		if (!exchange_has_output(x)) {
			if (is_over(x))
				return true;
			if (!exchange_has_output(x))
				return false;
		}
		list_output(x, out);
		ssize_t sent = sendmsg(x->fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (sent < 0 && (errno == EAGAIN || errno == EINTR))
			return false;
		if (sent < 0)
			x->is_abandoned = true;
		else
			note_sent(x, (size_t)sent);
	}
	return false;
}
