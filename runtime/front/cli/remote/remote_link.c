/* SPDX-License-Identifier: Apache-2.0 */
/* Acts on the service's socket. */
#include "runtime/front/cli/remote/remote_link.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "runtime/base/scope.h"
#include "runtime/base/sys.h"
#include "runtime/front/cli/remote/http_answer.h"
#include "runtime/front/cli/remote/remote.h"
#include "runtime/jail/record.h"

#define TRACEPARENT_MAX 128

static int fail_connect(const char *path, int code, struct cj_error *err)
{
	int rc = cj_fail(err, code, "--remote: connect to '%s'", path);

	if (code == ENOENT || code == ECONNREFUSED)
		cj_hint(err, "no service listens there; start one: cejail serve --socket %s", path);
	else if (code == EACCES || code == EPERM)
		cj_hint(err, "only users in the service's \"socket_group\" may connect");
	else if (code == EAGAIN)
		cj_hint(err, "the service has too many connections; try again later");
	return rc;
}

int remote_find_socket(struct arena *a, const char **out_path, struct cj_error *err)
{
	static const char *const systems = "/run/cejail/" RECORD_SOCKET;
	char dirs[RECORD_DIRS_MAX];
	char *path = NULL;

	if (record_find(RECORD_SOCKET, a, &path, dirs, err) < 0)
		return -err->code;
	*out_path = path ? path : systems;
	if (path || access(systems, F_OK) == 0)
		return 0;
	(void)!cj_reject_as(err, ENOENT, "--remote: no service listens in %s%s", dirs,
			    geteuid() == 0 ? "" : " or /run/cejail");
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
static int connect_to(const char *path, struct cj_error *err)
{
	const struct timeval patience = { .tv_sec = REMOTE_PATIENCE_S };
	struct sockaddr_un address;

	if (remote_link_address(path, &address, err) < 0)
		return -err->code;
	auto_fd int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return cj_fail(err, errno, "--remote: create a socket");
	if (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)) < 0)
		return cj_fail(err, errno, "--remote: set the timeout of the socket");
	if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
		return fail_connect(path, errno, err);
	return take_fd(&fd);
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

	return (size_t)snprintf(out, REMOTE_HEAD_MAX,
				"%s %s HTTP/1.1\r\nHost: cejail\r\nConnection: close\r\n"
				"User-Agent: %s/%s\r\nAccept: %s\r\n%s%s%s"
				"Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n",
				message->method, message->path,
				message->agent ? message->agent : "cejail", CJ_VERSION,
				message->accept, has_trace ? "Traceparent: " : "",
				has_trace ? trace : "", has_trace ? "\r\n" : "", message->size);
}

int remote_link_ask(const char *socket_path, const struct remote_message *message,
		    struct cj_error *err)
{
	char head[REMOTE_HEAD_MAX];
	size_t length = remote_link_write_head(message, head);
	auto_fd int fd = connect_to(socket_path, err);

	if (fd < 0 || send_all(fd, head, length, err) < 0 ||
	    send_all(fd, message->body, message->size, err) < 0)
		return -err->code;
	return take_fd(&fd);
}

static int ignore(void *context, const char *bytes, size_t size, struct cj_error *err)
{
	(void)context;
	(void)bytes;
	(void)size;
	(void)err;
	return 0;
}

int remote_link_cancel(const char *socket_path, const char *id, struct cj_error *err)
{
	const struct timeval patience = { .tv_sec = REMOTE_PATIENCE_S };
	struct http_answer answer;
	char path[64], buf[4096];

	(void)snprintf(path, sizeof(path), "/v1/runs/%s", id);
	http_answer_init(&answer);
	const struct remote_message message = {
		.method = "DELETE",
		.path = path,
		.accept = "application/json",
	};
	auto_fd int fd = remote_link_ask(socket_path, &message, err);
	if (fd < 0)
		return fd;
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	for (ssize_t got; answer.part != HTTP_DONE;) {
		got = sys_read(fd, buf, sizeof(buf));
		if (got < 0)
			return cj_fail(err, errno, "--remote: read the answer of the service");
		if (got == 0)
			break;
		if (http_answer_feed(&answer, buf, (size_t)got, ignore, NULL, err) < 0)
			return -err->code;
	}
	if (answer.status < 200 || answer.status > 299)
		return cj_reject(err,
				 "--remote: the service did not cancel run '%s' (HTTP status %u)",
				 id, answer.status);
	return 0;
}
