/* SPDX-License-Identifier: Apache-2.0 */
/* A client of the service with many requests at once. */

#include "runtime/front/mcp/mcp_server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/base/scope.h"
#include "runtime/base/sys.h"
#include "runtime/front/client/http_answer.h"
#include "runtime/front/client/remote_link.h"
#include "runtime/run/report/remote_result.h"
#include "runtime/run/mcp/calls/mcp_reply.h"

#define CHUNK     65536
#define CALLS_MAX 64

struct far_call {
	LIST_ENTRY(far_call) link;
	struct mcp_remote *remote;
	struct watch watch;
	int fd;
	char head[REMOTE_HEAD_MAX];
	char *request; /* the body */
	size_t head_size, size, sent;
	struct http_answer answer;
	struct mcp_reply reply;
};

struct mcp_remote {
	struct loop *loop;
	const char *path;
	LIST_HEAD(, far_call) calls;
	size_t count;
	bool holds; /* answers wait in the service, which drops a reader that is too slow */
};

/* --- the end of a call ---------------------------------------------------------------- */

static void destroy(struct far_call *c)
{
	LIST_REMOVE(c, link);
	c->remote->count--;
	loop_unwatch(c->remote->loop, &c->watch);
	cj_close(&c->fd);
	free(c->request);
	mcp_reply_fini(&c->reply);
	free(c);
}

static void fail(struct far_call *c, const char *why)
{
	struct cj_error err = { 0 };

	cj_refuse(&err, "%s", why);
	mcp_reply_fail(&c->reply, &err);
	destroy(c);
}

/* --- the answer ------------------------------------------------------------------------ */

static int keep(void *context, const char *bytes, size_t size, struct cj_error *err)
{
	struct far_call *c = context;
	return mcp_reply_keep(&c->reply, c->answer.status, bytes, size, err);
}

/* True: the call has ended. */
static bool read_answer(struct far_call *c)
{
	char buf[CHUNK];
	struct cj_error err = { 0 };
	ssize_t got = sys_read(c->fd, buf, sizeof(buf));

	if (got < 0 && errno == EAGAIN)
		return false;
	if (got < 0)
		(void)!cj_fail(&err, errno, "read the service's answer");
	else if (got == 0)
		(void)!http_answer_end(&c->answer, &err);
	else
		(void)!http_answer_feed(&c->answer, buf, (size_t)got, keep, c, &err);
	if (err.code)
		mcp_reply_fail(&c->reply, &err);
	else if (got == 0 || c->answer.part == HTTP_DONE)
		mcp_reply_end(&c->reply, c->answer.status, c->answer.retry_after);
	return c->reply.is_done;
}

/* --- the request ------------------------------------------------------------------------ */

/* False: the service closed the connection; its answer may say why. */
static bool send_request(struct far_call *c)
{
	while (c->sent < c->head_size + c->size) {
		bool is_head = c->sent < c->head_size;
		const char *from = is_head ? c->head + c->sent
					   : c->request + (c->sent - c->head_size);
		size_t size = is_head ? c->head_size - c->sent : c->size - (c->sent - c->head_size);
		ssize_t put = send(c->fd, from, size, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (put < 0 && errno == EINTR)
			continue;
		if (put < 0)
			return errno == EAGAIN;
		c->sent += (size_t)put;
	}
	return true;
}

static void watch_for_more(struct far_call *c)
{
	bool is_sent = c->sent == c->head_size + c->size;
	loop_rewatch(c->remote->loop, &c->watch,
		     (is_sent ? 0 : EPOLLOUT) | (c->remote->holds ? 0 : EPOLLIN));
}

/* Sends what the socket takes now, and waits for room only if it did not take all. */
static void continue_sending(struct far_call *c)
{
	if (!send_request(c))
		c->sent = c->head_size + c->size;
	watch_for_more(c);
}

static void on_ready(struct watch *w, uint32_t events)
{
	struct far_call *c = watch_owner(w, struct far_call, watch);

	if (events & EPOLLOUT)
		continue_sending(c);
	if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) && read_answer(c))
		destroy(c);
}

static void write_head(struct far_call *c)
{
	char target[MCP_TARGET_MAX];
	struct remote_message message = {
		.path = target,
		.accept = c->reply.run->wants_events ? "application/x-ndjson" : "*/*",
		.body = c->request,
		.size = c->size,
		.agent = "cejail-mcp",
		.traceparent = c->reply.run->traceparent,
	};

	message.method = mcp_request_put_http(c->reply.run->request, target, &message.type);
	c->head_size = remote_link_write_head(&message, c->head);
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

static int start(void *context, struct mcp_run *r, char *request, size_t size, struct cj_error *err)
{
	struct mcp_remote *remote = context;
	struct far_call *c = calloc(1, sizeof(*c));

	if (!c) {
		free(request);
		return cj_fail(err, ENOMEM, "send the request");
	}
	c->remote = remote;
	c->reply.run = r;
	c->watch = (struct watch)WATCH_NULL;
	c->fd = -1;
	c->request = request;
	c->size = size;
	http_answer_init(&c->answer);
	write_head(c);
	LIST_INSERT_HEAD(&remote->calls, c, link);
	remote->count++;
	r->state = c;
	int rc =
	    remote->count > CALLS_MAX
		? cj_reject(err, "%d calls are waiting already; wait for their answers", CALLS_MAX)
		: 0;
	if (rc == 0)
		rc = c->fd = connect_to(remote->path, err);
	if (rc >= 0)
		rc = loop_watch(remote->loop, &c->watch, c->fd, on_ready, err);
	if (rc >= 0)
		continue_sending(c);
	else
		destroy(c);
	return rc < 0 ? rc : 0;
}

static void cancel(void *context, struct mcp_run *r)
{
	struct far_call *c = r->state;

	(void)context;
	fail(c, "cancelled");
}

static void hold(void *context, bool holds)
{
	struct mcp_remote *remote = context;
	struct far_call *c;

	if (remote->holds == holds)
		return;
	remote->holds = holds;
	LIST_FOREACH(c, &remote->calls, link)
	watch_for_more(c);
}

static void close_remote(void *context)
{
	struct mcp_remote *remote = context;
	struct far_call *c;

	while ((c = LIST_FIRST(&remote->calls)) != NULL)
		fail(c, "the server ends");
	free(remote);
}

int mcp_remote_open(struct loop *loop, const char *socket_path, struct mcp_place *out,
		    struct cj_error *err)
{
	struct mcp_remote *remote = calloc(1, sizeof(*remote));

	if (!remote)
		return cj_fail(err, ENOMEM, "start the server");
	remote->loop = loop;
	remote->path = socket_path;
	LIST_INIT(&remote->calls);
	*out = (struct mcp_place){ .context = remote,
				   .start = start,
				   .cancel = cancel,
				   .hold = hold,
				   .close = close_remote };
	return 0;
}

/* --- the profiles of the service ---------------------------------------------------------- */

int mcp_remote_list_profiles(const char *socket_path, struct arena *a, const struct json_node **out,
			     struct cj_error *err)
{
	const struct remote_fetch fetch = {
		.socket = socket_path,
		.message = { .method = "GET",
			     .path = "/v1/profiles",
			     .accept = "application/json" },
		.patience_s = REMOTE_PATIENCE_S,
	};
	const struct json_node *root = NULL;

	if (remote_fetch_json(&fetch, a, &root, err) < 0)
		return -err->code;
	*out = json_get_typed(root, "profiles", JSON_ARRAY);
	return *out ? 0 : cj_reject(err, "--remote: the service sent no list of profiles");
}
