/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/front/mcp/mcp_far.h"

#include <sys/socket.h>
#include <unistd.h>

#include "runtime/base/scope.h"
#include "runtime/base/sys.h"

#define CHUNK 65536

static int keep(void *context, const char *bytes, size_t size, struct cj_error *err)
{
	struct far_request *q = context;
	return q->keep ? q->keep(q, bytes, size, err) : 0;
}

/* True: there is no more. */
static bool read_answer(struct far_request *q, struct cj_error *err)
{
	char buf[CHUNK];
	ssize_t got = sys_read(q->fd, buf, sizeof(buf));

	if (got < 0 && errno == EAGAIN)
		return false;
	if (got < 0)
		(void)!cj_fail(err, errno, "read the service's answer");
	else if (got == 0)
		(void)!http_answer_end(&q->answer, err);
	else
		(void)!http_answer_feed(&q->answer, buf, (size_t)got, keep, q, err);
	return err->code != 0 || q->is_over || got == 0 || q->answer.part == HTTP_DONE;
}

/* False: the service closed the connection; its answer may say why. */
static bool send_request(struct far_request *q)
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

static void watch_for_more(struct far_request *q)
{
	bool is_sent = q->sent == q->head_size + q->size;
	loop_rewatch(q->loop, &q->watch, (is_sent ? 0 : EPOLLOUT) | (q->holds ? 0 : EPOLLIN));
}

/* Sends what the socket takes now, and waits for room only if it did not take all. */
static void continue_sending(struct far_request *q)
{
	if (!send_request(q))
		q->sent = q->head_size + q->size;
	watch_for_more(q);
}

static void on_ready(struct watch *w, uint32_t events)
{
	struct far_request *q = watch_owner(w, struct far_request, watch);
	struct cj_error err = { 0 };

	if (events & EPOLLOUT)
		continue_sending(q);
	if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) && read_answer(q, &err))
		q->end(q, &err);
}

static int connect_to(const char *path, struct cj_error *err)
{
	struct sockaddr_un address;

	if (remote_link_address(path, &address, err) < 0)
		return -err->code;
	auto_fd int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return cj_fail(err, errno, "create a socket");
	if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0) {
		int rc = cj_fail(err, errno, "connect to the service at '%s'", path);
		cj_hint(err, "ask the user to start 'cejail serve'");
		return rc;
	}
	return take_fd(&fd);
}

int far_request_start(struct far_request *q, const struct remote_message *message,
		      struct cj_error *err)
{
	http_answer_init(&q->answer);
	q->is_over = false;
	q->head_size = remote_link_write_head(message, q->head);
	q->body = message->body;
	q->size = message->size;
	q->sent = 0;
	q->fd = connect_to(q->socket_path, err);
	if (q->fd < 0)
		return -err->code;
	if (loop_watch(q->loop, &q->watch, q->fd, on_ready, err) < 0) {
		cj_close(&q->fd);
		return -err->code;
	}
	continue_sending(q);
	return 0;
}

void far_request_hold(struct far_request *q, bool holds)
{
	q->holds = holds;
	watch_for_more(q);
}

void far_request_close(struct far_request *q)
{
	loop_unwatch(q->loop, &q->watch);
	cj_close(&q->fd);
}
