/* SPDX-License-Identifier: Apache-2.0 */
/* byte_queue - bytes that wait to be written or read: they go in at the end, out at the start. */
#pragma once

/* Borrowed bytes of any kind. */
struct blob {
	const char *bytes;
	size_t size;
};

struct byte_queue {
	char *bytes; /* [start, end) of `room` */
	size_t start, end, room;
};

void byte_queue_fini(struct byte_queue *q);

static inline size_t byte_queue_size(const struct byte_queue *q)
{
	return q->end - q->start;
}

/* Makes room for `size` more bytes behind q->end.  Fails: ENOMEM; nothing has changed then. */
int byte_queue_grow(struct byte_queue *q, size_t size);
int byte_queue_add(struct byte_queue *q, const void *bytes, size_t size);
/* The same with a NUL behind, which does not count, and with room for more parts of a text. */
int byte_queue_add_text(struct byte_queue *q, const char *text, size_t size);
/* All pieces, one behind the other, or none of them. */
int byte_queue_add_all(struct byte_queue *q, const struct blob *pieces, size_t count);
/* Removes bytes from the start. */
void byte_queue_take(struct byte_queue *q, size_t size);

/*
 * byte_queue_find_line - the size of the first line without its newline, or SIZE_MAX.
 *
 * *searched: so many bytes at the start are known to have no newline; 0 for a new line.
 */
size_t byte_queue_find_line(const struct byte_queue *q, size_t *searched);

/* As much as the socket takes at once.  Returns 0, or the errno of a send(2) that failed. */
int byte_queue_send(struct byte_queue *q, int sock_fd);
/*
 * byte_queue_receive - one recv(2) of at most `max` bytes, which does not wait.
 * Returns the number of bytes; 0 at the end of file; -EAGAIN; another negative errno.
 */
ssize_t byte_queue_receive(struct byte_queue *q, int sock_fd, size_t max);
