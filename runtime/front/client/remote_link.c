/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/front/client/remote_link.h"

#include <assert.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "runtime/base/files/fd.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"
#include "runtime/base/text.h"
#include "runtime/front/client/remote.h"
#include "runtime/jail/record.h"
#include "runtime/run/report/remote_result.h"

#define TRACEPARENT_MAX 128
#define CHUNK           65536
#define REFUSAL_MAX     (64u << 10)

int remote_find_socket(struct arena *a, const char **out_path, struct cj_error *err)
{
	struct record_sockets found;

	if (record_find_sockets(a, &found, err) < 0)
		return -err->code;
	*out_path = found.of_user ? found.of_user : found.of_system;
	if (*out_path)
		return 0;
	cj_refuse_as(err, ENOENT, "--remote: no service listens in %s", found.searched);
	return cj_hint(err, "start one: cejail serve; or name its socket: --remote=SOCKET");
}

int remote_link_address(const char *socket_path, struct sockaddr_un *out, struct cj_error *err)
{
	*out = (struct sockaddr_un){ .sun_family = AF_UNIX };
	if (strlen(socket_path) >= sizeof(out->sun_path))
		return cj_reject(err, "--remote: '%s' is longer than %zu characters: unix(7)",
				 socket_path, sizeof(out->sun_path) - 1);
	memcpy(out->sun_path, socket_path, strlen(socket_path));
	return 0;
}

/* unix(7): if the queue is full, connect(2) waits for at most SO_SNDTIMEO. */
int remote_link_connect(const char *path, int flags, struct cj_error *err)
{
	const struct timeval patience = { .tv_sec = REMOTE_PATIENCE_S };
	struct sockaddr_un address;

	if (remote_link_address(path, &address, err) < 0)
		return -err->code;
	auto_fd int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);
	if (fd < 0)
		return cj_fail(err, errno, "--remote: create a socket");
	if (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)) < 0)
		return cj_fail(err, errno, "--remote: set the timeout of the socket");
	if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0)
		return take_fd(&fd);

	int rc = cj_fail(err, errno, "--remote: connect to '%s'", path);
	if (rc == -ENOENT || rc == -ECONNREFUSED)
		cj_hint(err, "no service listens there; start one: cejail serve --socket %s", path);
	else if (rc == -EACCES || rc == -EPERM)
		cj_hint(err, "only users in the service's \"socket_group\" may connect");
	else if (rc == -EAGAIN)
		cj_hint(err, "the service has too many connections; try again later");
	return rc;
}

/* A service that refuses early closes the connection; its answer can still be read. */
static int send_all(int fd, const char *bytes, size_t size, struct cj_error *err)
{
	while (size > 0) {
		ssize_t put = send(fd, bytes, size, MSG_NOSIGNAL);
		if (put < 0 && errno == EINTR)
			continue;
		if (put < 0 && (errno == EPIPE || errno == ECONNRESET))
			return 0;
		if (put < 0 && errno == EAGAIN)
			return cj_reject_as(err, ETIMEDOUT,
					    "--remote: the service has read nothing for %d s",
					    REMOTE_PATIENCE_S);
		if (put < 0)
			return cj_fail(err, errno, "--remote: send the request");
		bytes += put;
		size -= (size_t)put;
	}
	return 0;
}

size_t remote_link_write_head(const struct remote_message *message,
			      char out[static REMOTE_HEAD_MAX])
{
	const char *trace = message->traceparent;
	bool has_trace = trace && strspn(trace, "0123456789abcdef-") == strlen(trace) &&
			 strlen(trace) < TRACEPARENT_MAX;

	return (size_t)snprintf(
	    out, REMOTE_HEAD_MAX,
	    "%s %s HTTP/1.1\r\nHost: cejail\r\nConnection: close\r\n"
	    "User-Agent: %s/%s\r\nAccept: %s\r\n%s%s%s"
	    "Content-Type: %s\r\nContent-Length: %zu\r\n\r\n",
	    message->method, message->path, message->agent ? message->agent : "cejail", CJ_VERSION,
	    message->accept ? message->accept : "application/json",
	    has_trace ? "Traceparent: " : "", has_trace ? trace : "", has_trace ? "\r\n" : "",
	    message->type ? message->type : "application/json", message->body.size);
}

int remote_link_ask(const char *socket_path, const struct remote_message *message,
		    struct cj_error *err)
{
	char head[REMOTE_HEAD_MAX];
	size_t length = remote_link_write_head(message, head);
	assert(length < sizeof(head)); /* its path is shorter than REMOTE_URL_MAX */
	auto_fd int fd = remote_link_connect(socket_path, 0, err);

	if (fd < 0 || send_all(fd, head, length, err) < 0 ||
	    send_all(fd, message->body.bytes, message->body.size, err) < 0)
		return -err->code;
	return take_fd(&fd);
}

int remote_url(char url[static REMOTE_URL_MAX], const char *part, struct cj_error *err)
{
	const size_t used = strlen(url);

	if (3 * strlen(part) >= REMOTE_URL_MAX - used)
		return cj_fail(err, ENAMETOOLONG, "write the URL of the request");
	(void)text_put_url(url + used, part);
	return 0;
}

int remote_buffer_add(void *buffer, const char *bytes, size_t size, struct cj_error *err)
{
	struct remote_buffer *b = buffer;

	if (size > b->max - byte_queue_size(&b->text))
		return cj_reject_as(err, EFBIG, "the service's answer is larger than %zu bytes",
				    b->max);
	if (byte_queue_add_text(&b->text, bytes, size) < 0)
		return cj_fail(err, ENOMEM, "keep the service's answer");
	return 0;
}

/* A whole answer: what the caller wants, or the error that the service sent. */
struct link_reading {
	struct http_answer answer;
	http_sink sink;
	void *context;
	struct remote_buffer refusal;
};

static int take_bytes(void *context, const char *bytes, size_t size, struct cj_error *err)
{
	struct link_reading *r = context;

	if (!http_answer_is_success(&r->answer))
		return remote_buffer_add(&r->refusal, bytes, size, err);
	return r->sink ? r->sink(r->context, bytes, size, err) : 0;
}

/* Reads once.  Returns: 1 when the answer is whole, 0 when more is to come. */
static int receive(int fd, struct http_answer *answer, http_sink sink, void *context,
		   struct cj_error *err)
{
	char buf[CHUNK];
	ssize_t got = sys_read(fd, buf, sizeof(buf));

	if (got < 0 && errno == EAGAIN)
		return 0;
	if (got < 0 && errno != ECONNRESET)
		return cj_fail(err, errno, "--remote: read the answer of the service");
	if (got <= 0)
		return http_answer_end(answer, err) < 0 ? -err->code : 1;
	if (http_answer_feed(answer, buf, (size_t)got, sink, context, err) < 0)
		return -err->code;
	return answer->part == HTTP_DONE;
}

int remote_fetch(const struct remote_fetch *f, http_sink sink, void *context, struct cj_error *err)
{
	const int patience_ms = f->patience_s > 0 ? (int)f->patience_s * 1000 : -1;
	struct link_reading r = { .sink = sink,
				  .context = context,
				  .refusal = { .max = REFUSAL_MAX } };
	auto_fd int fd = remote_link_ask(f->socket, &f->message, err);

	if (fd < 0)
		return fd;
	http_answer_init(&r.answer);
	int rc = 0;
	while (rc == 0)
		rc = fd_await(fd, POLLIN, patience_ms)
			 ? receive(fd, &r.answer, take_bytes, &r, err)
			 : cj_reject_as(err, ETIMEDOUT, "--remote: the service does not answer");
	if (rc > 0)
		rc = 0;
	if (rc == 0 && !http_answer_is_success(&r.answer))
		rc = remote_refusal_read(r.answer.status, r.answer.retry_after,
					 r.refusal.text.bytes, r.refusal.text.end, err);
	byte_queue_fini(&r.refusal.text);
	return rc;
}

int remote_fetch_json(const struct remote_fetch *f, struct arena *a, const struct json_node **out,
		      struct cj_error *err)
{
	static const char name[] = "the service's answer";
	struct remote_buffer body = { .max = REMOTE_JSON_MAX };
	const struct json_node *root = NULL;
	int rc = remote_fetch(f, remote_buffer_add, &body, err);

	if (rc == 0)
		rc = json_parse_capped(name, body.text.bytes ? body.text.bytes : "", body.text.end,
				       a, &root, err);
	byte_queue_fini(&body.text);
	if (rc < 0)
		return rc;
	if (root->type != JSON_OBJECT)
		return cj_reject(err, "%s is not a JSON object", name);
	*out = root;
	return 0;
}

static int take_piece(void *context, const char *bytes, size_t size, struct cj_error *err)
{
	struct remote_exchange *q = context;
	return q->keep ? q->keep(q, bytes, size, err) : 0;
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
	if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) &&
	    (receive(q->fd, &q->answer, take_piece, q, &err) != 0 || q->is_over))
		q->end(q, &err);
}

int remote_exchange_start(struct remote_exchange *q, int fd, const struct remote_message *message,
			  struct cj_error *err)
{
	http_answer_init(&q->answer);
	q->is_over = false;
	q->head_size = message ? remote_link_write_head(message, q->head) : 0;
	q->body = message ? message->body.bytes : NULL;
	q->size = message ? message->body.size : 0;
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
