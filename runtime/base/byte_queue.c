/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/base/byte_queue.h"

#include <sys/socket.h>

#define ROOM_STEP 4096 /* lines are short */

void byte_queue_fini(struct byte_queue *q)
{
	free(q->bytes);
	*q = (struct byte_queue){ 0 };
}

int byte_queue_grow(struct byte_queue *q, size_t size)
{
	if (q->room - q->end >= size)
		return 0;
	if (q->start > 0) {
		memmove(q->bytes, q->bytes + q->start, byte_queue_size(q));
		q->end -= q->start;
		q->start = 0;
	}
	if (q->room - q->end >= size)
		return 0;
	size_t room = (q->end + size + ROOM_STEP - 1) / ROOM_STEP * ROOM_STEP;
	char *bytes = realloc(q->bytes, room);
	if (!bytes)
		return -ENOMEM;
	q->bytes = bytes;
	q->room = room;
	return 0;
}

int byte_queue_add(struct byte_queue *q, const void *bytes, size_t size)
{
	if (byte_queue_grow(q, size) < 0)
		return -ENOMEM;
	memcpy(q->bytes + q->end, bytes, size);
	q->end += size;
	return 0;
}

int byte_queue_add_text(struct byte_queue *q, const char *text, size_t size)
{
	size_t more = size + 1 > q->room / 2 ? size + 1 : q->room / 2; /* a text has many parts */
	if (q->room - q->end <= size && byte_queue_grow(q, more) < 0)
		return -ENOMEM;
	(void)!byte_queue_add(q, text, size);
	q->bytes[q->end] = '\0';
	return 0;
}

int byte_queue_add_all(struct byte_queue *q, const struct blob *pieces, size_t count)
{
	size_t size = 0;
	for (size_t i = 0; i < count; i++)
		size += pieces[i].size;
	if (byte_queue_grow(q, size) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		(void)!byte_queue_add(q, pieces[i].bytes, pieces[i].size);
	return 0;
}

void byte_queue_take(struct byte_queue *q, size_t size)
{
	q->start += size;
	if (q->start == q->end)
		q->start = q->end = 0;
}

size_t byte_queue_find_line(const struct byte_queue *q, size_t *searched)
{
	const size_t size = byte_queue_size(q);
	const char *begin = size > 0 ? q->bytes + q->start : NULL;
	const char *newline = size > *searched ? memchr(begin + *searched, '\n', size - *searched)
					       : NULL;
	*searched = newline ? 0 : size;
	return newline ? (size_t)(newline - begin) : SIZE_MAX;
}

int byte_queue_send(struct byte_queue *q, int sock_fd)
{
	while (byte_queue_size(q) > 0) {
		ssize_t put = send(sock_fd, q->bytes + q->start, byte_queue_size(q),
				   MSG_NOSIGNAL | MSG_DONTWAIT);
		if (put < 0 && errno == EAGAIN)
			return 0;
		if (put < 0 && errno != EINTR)
			return errno;
		byte_queue_take(q, put > 0 ? (size_t)put : 0);
	}
	return 0;
}

ssize_t byte_queue_receive(struct byte_queue *q, int sock_fd, size_t max)
{
	if (byte_queue_grow(q, max) < 0)
		return -ENOMEM;
	ssize_t got = TEMP_FAILURE_RETRY(recv(sock_fd, q->bytes + q->end, max, MSG_DONTWAIT));
	if (got < 0)
		return -errno;
	q->end += (size_t)got;
	return got;
}
