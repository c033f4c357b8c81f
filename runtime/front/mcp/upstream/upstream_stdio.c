/* SPDX-License-Identifier: Apache-2.0 */
/* The link to a server that cejail starts: lines through pipes; its stderr goes to the log. */
#include "runtime/front/mcp/upstream/upstream.h"

#include <poll.h>

#include "runtime/base/clock.h"
#include "runtime/base/files/fd.h"
#include "runtime/base/log.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"
#include "runtime/base/text.h"
#include "runtime/front/mcp/upstream/server_process.h"
#include "runtime/run/mcp/mcp_stdio.h"

#define LOG_LINE_MAX 1000 /* bytes; the rest is left out */
#define LOG_LINES    100  /* in LOG_MS */
#define LOG_MS       10000
#define OVER_MS      500 /* from the end of its output to its own */
#define REST_READS   16  /* of the log of a server that ended */

struct stdio_link {
	struct upstream *owner;
	struct server_process process;
	struct mcp_stdio stdio;
	struct watch log, end;
	char line[LOG_LINE_MAX];
	size_t line_size;
	uint64_t log_ms; /* since when these are counted */
	unsigned lines;
	uint64_t over_ms; /* the server closed a stream; when it must have ended; 0: it did not */
	bool is_open;
};

static struct stdio_link *link_of(const struct upstream *u)
{
	return u->link_state;
}

static void end_line(struct stdio_link *l)
{
	uint64_t now_ms = clock_ms();
	size_t size = l->line_size;

	l->line_size = 0;
	while (size > 0 && strchr("\r\t ", l->line[size - 1]))
		size--;
	if (size == 0)
		return;
	(void)text_escape(l->line, size, false, l->owner->last_line, sizeof(l->owner->last_line));
	if (now_ms >= l->log_ms + LOG_MS) {
		if (l->lines > LOG_LINES)
			log_note("the server '%s' wrote %u more lines", l->owner->spec->name,
				 l->lines - LOG_LINES);
		l->log_ms = now_ms;
		l->lines = 0;
	}
	if (++l->lines <= LOG_LINES)
		log_note("the server '%s': %.*s", l->owner->spec->name, (int)size, l->line);
}

static void on_log(struct watch *w, uint32_t events)
{
	struct stdio_link *l = watch_owner(w, struct stdio_link, log);
	char buffer[4096];

	(void)events;
	ssize_t got = sys_read(l->process.stderr_fd, buffer, sizeof(buffer));
	if (got < 0 && errno == EAGAIN)
		return;
	if (got <= 0) {
		loop_unwatch(l->owner->loop, &l->log);
		return;
	}
	for (ssize_t i = 0; i < got; i++) {
		if (buffer[i] == '\n')
			end_line(l);
		else if (l->line_size < sizeof(l->line))
			l->line[l->line_size++] = buffer[i];
	}
}

static void on_line(struct mcp_stdio *s, const char *text, size_t size)
{
	upstream_take(s->owner, text, size);
}

static void on_cut(struct mcp_stdio *s, struct blob head, struct blob tail)
{
	(void)head;
	(void)tail;
	upstream_fail(s->owner, "sent a line of more than %u bytes", MCP_LINE_MAX);
}

/* The tick looks. */
static void on_end(struct watch *w, uint32_t events)
{
	struct stdio_link *l = watch_owner(w, struct stdio_link, end);

	(void)events;
	loop_unwatch(l->owner->loop, &l->end);
}

static int open_stdio(struct upstream *u, struct cj_error *err)
{
	struct stdio_link *l = u->link_state ? u->link_state : calloc(1, sizeof(*l));

	if (!l)
		return cj_fail(err, ENOMEM, "start it");
	*l = (struct stdio_link){
		.owner = u, .log = WATCH_NULL, .end = WATCH_NULL, .process = SERVER_PROCESS_NULL
	};
	u->link_state = l;
	if (server_process_start(u->spec, &l->process, err) < 0)
		return -err->code;
	struct loop *loop = l->owner->loop;
	l->stdio = (struct mcp_stdio){
		.loop = loop, .owner = l->owner, .line = on_line, .cut = on_cut, .reads_on = true
	}; /* it may write before it reads on */
	l->is_open = true;
	if (mcp_stdio_open_fds(&l->stdio, take_fd(&l->process.stdout_fd),
			       take_fd(&l->process.stdin_fd), err) < 0)
		return -err->code;
	fd_set_nonblocking(l->process.stderr_fd);
	if (loop_watch(loop, &l->log, l->process.stderr_fd, on_log, err) < 0)
		return -err->code;
	return loop_watch(loop, &l->end, l->process.pidfd, on_end, err);
}

static void send_stdio(struct upstream *u, const struct upstream_message *m)
{
	mcp_stdio_put(&link_of(u)->stdio, m->line.bytes, m->line.size, false);
}

static bool is_busy(const struct upstream *u)
{
	return link_of(u)->stdio.is_paused;
}

/* The keeper reports the status some time after the end of the output. */
static int tick_over(struct stdio_link *l, uint64_t now_ms)
{
	loop_unwatch(l->owner->loop, &l->stdio.in);
	loop_unwatch(l->owner->loop, &l->stdio.out);
	if (l->over_ms == 0)
		l->over_ms = now_ms + OVER_MS;
	if (now_ms < l->over_ms)
		return (int)(l->over_ms - now_ms);
	upstream_fail(l->owner, "closed its standard input or output");
	return -1;
}

static int tick_stdio(struct upstream *u, uint64_t now_ms)
{
	struct stdio_link *l = link_of(u);
	int status = 0;

	if (!server_process_has_ended(&l->process, &status))
		return l->stdio.is_over ? tick_over(l, now_ms) : -1;
	/* What it wrote before it ended. */
	for (unsigned i = 0;
	     i < REST_READS && l->log.fd >= 0 && fd_await(l->process.stderr_fd, POLLIN, 0); i++)
		on_log(&l->log, 0);
	end_line(l);
	upstream_fail(u, "has ended with status %d", status);
	u->has_ended = true;
	return -1;
}

static void close_stdio(struct upstream *u)
{
	struct stdio_link *l = link_of(u);

	if (!l)
		return;
	if (l->is_open)
		mcp_stdio_close(&l->stdio);
	l->is_open = false;
	loop_unwatch(u->loop, &l->log);
	server_process_stop(&l->process);
}

/* Waits for the rest only when the loop is over: the end is watched until then. */
static bool is_closed(struct upstream *u)
{
	struct stdio_link *l = link_of(u);
	int status;

	if (!l)
		return true;
	if (!server_process_has_ended(&l->process, &status))
		return false;
	loop_unwatch(u->loop, &l->end);
	server_process_fini(&l->process);
	free(l);
	u->link_state = NULL;
	return true;
}

const struct upstream_link upstream_stdio = {
	.open = open_stdio,
	.send = send_stdio,
	.is_busy = is_busy,
	.tick = tick_stdio,
	.close = close_stdio,
	.is_closed = is_closed,
};
