/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/front/client/remote_exchange.h"

#include <sys/socket.h>
#include <unistd.h>

#include "runtime/base/scope.h"
#include "runtime/base/sys.h"

#define CHUNK 65536

static int keep(void *context, const char *bytes, size_t size, struct cj_error *err)
{
	struct remote_exchange *q = context;
	return q->keep ? q->keep(q, bytes, size, err) : 0;
}

/* True: there is no more. */
static bool read_answer(struct remote_exchange *q, struct cj_error *err)
{
	char buf[CHUNK];
	ssize_t got = sys_read(q->fd, buf, sizeof(buf));

	if (got < 0 && errno == EAGAIN)
		return false;
	if (got < 0 && errno != ECONNRESET)
		(void)!cj_fail(err, errno, "read the service's answer");
	else if (got <= 0)
		(void)!http_answer_end(&q->answer, err);
	else
		(void)!http_answer_feed(&q->answer, buf, (size_t)got, keep, q, err);
	return err->code != 0 || q->is_over || got <= 0 || q->answer.part == HTTP_DONE;
}

/* False: the service closed the connection; its answer may say why. */
static bool send_request(struct remote_exchange *q)
{
	while (q->sent < q->head_size + q->size) {
		bool is_head = q->sent < q->head_size;
		const char *from = is_head ? q->head + q->sent : q->body + (q->sent - q->head_size);
		size_t size = is_head ? q->head_size - q->sent : q->size - (q->sent - q->head_size);
		ssize_t put = send(q->fd, from, size, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (put < 0 && errno == EINTR)
			continue;
		if (put < 0)
			return errno == EAGAIN;
		q->sent += (size_t)put;
	}
	return true;
}

static void watch_for_more(struct remote_exchange *q)
{
	bool is_sent = q->sent == q->head_size + q->size;
	loop_rewatch(q->loop, &q->watch, (is_sent ? 0 : EPOLLOUT) | (q->holds ? 0 : EPOLLIN));
}

/* Sends what the socket takes now, and waits for room only if it did not take all. */
static void continue_sending(struct remote_exchange *q)
{
	if (!send_request(q))
		q->sent = q->head_size + q->size;
	watch_for_more(q);
}

static void on_ready(struct watch *w, uint32_t events)
{
	struct remote_exchange *q = watch_owner(w, struct remote_exchange, watch);
	struct cj_error err = { 0 };

	if (events & EPOLLOUT)
		continue_sending(q);
	if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) && read_answer(q, &err))
		q->end(q, &err);
}

int remote_exchange_start(struct remote_exchange *q, int fd, const struct remote_message *message,
			  struct cj_error *err)
{
	http_answer_init(&q->answer);
	q->is_over = false;
	q->head_size = message ? remote_link_write_head(message, q->head) : 0;
	q->body = message ? message->body : NULL;
	q->size = message ? message->size : 0;
	q->sent = 0;
	q->fd = fd;
	if (loop_watch(q->loop, &q->watch, fd, on_ready, err) < 0) {
		cj_close(&q->fd);
		return -err->code;
	}
	continue_sending(q);
	return 0;
}

void remote_exchange_hold(struct remote_exchange *q, bool holds)
{
	q->holds = holds;
	watch_for_more(q);
}

void remote_exchange_close(struct remote_exchange *q)
{
	loop_unwatch(q->loop, &q->watch);
	cj_close(&q->fd);
}
