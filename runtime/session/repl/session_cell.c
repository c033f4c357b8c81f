/* SPDX-License-Identifier: Apache-2.0 */
/* The channel of an interpreter while one cell runs. */
#include "runtime/session/repl/session_cell.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "runtime/jail/jail_state.h"
#include "runtime/session/session_state.h"

#define CHUNK 65536
#define READS 16 /* of one turn: the program's streams are read in between */

static struct pollfd watch(const struct jail *j)
{
	const struct session_cell *c = j->run.cell;
	return (struct pollfd){
		.fd = c->has_ended ? -1 : c->channel_fd,
		.events = (short)(POLLIN | (c->sent < c->size ? POLLOUT : 0)),
	};
}

/* A program may have closed the other end.  Then the end of its process, or the time limit, ends
 * the cell. */
static void send_request(struct session_cell *c)
{
	while (c->sent < c->size) {
		ssize_t put = send(c->channel_fd, c->request + c->sent, c->size - c->sent,
				   MSG_NOSIGNAL | MSG_DONTWAIT);
		if (put < 0 && errno == EINTR)
			continue;
		if (put < 0 && errno == EAGAIN)
			return;
		if (put < 0) {
			c->sent = c->size;
			return;
		}
		c->sent += (size_t)put;
	}
}

/* Returns 1 when there is nothing to read for now. */
static int receive(struct session_cell *c, struct cj_error *err)
{
	uint8_t chunk[CHUNK];
	ssize_t got = recv(c->channel_fd, chunk, sizeof(chunk), MSG_DONTWAIT);
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return 1;
	if (got <= 0) { /* closed, or reset with a part of the request unread */
		c->channel_fd = -1;
		return 1;
	}
	int rc = repl_reader_take(&c->reader, chunk, (size_t)got, err);
	if (rc < 0)
		return rc;
	c->has_ended |= rc == REPL_ENDED;
	return 0;
}

static int turn(struct session_cell *c, struct cj_error *err)
{
	int rc = 0;
	send_request(c);
	for (int i = 0; i < READS && !c->has_ended && rc == 0; i++)
		rc = receive(c, err);
	if (rc < 0)
		c->channel_fd = -1;
	return rc;
}

static void serve(struct jail *j, struct outcome *out)
{
	struct session_cell *c = j->run.cell;
	struct cj_error broken = { 0 };
	int rc = turn(c, &broken);
	bool runs = c->outcome.has_begun && !c->has_ended;
	session_exec_set_cell(j, runs ? c->outcome.number : 0);
	if (out->has_status)
		return;
	if (rc < 0) {
		jail_warn(j, "%s: the interpreter was killed", broken.msg);
		out->signal = SIGKILL;
		outcome_decide(out, STATUS_SIGNALED);
	} else if (c->has_ended) {
		out->exit_code = c->outcome.exit_code;
		outcome_decide(out, STATUS_EXITED);
	}
}

static bool interrupt(const struct jail *j, const struct outcome *out)
{
	bool may_live = out->status == STATUS_TIMEOUT || out->status == STATUS_CANCELLED ||
			out->status == STATUS_OUTPUT_LIMIT;
	return !j->run.cell->has_ended && may_live && j->ops->interrupt(j);
}

static bool has_ended(const struct jail *j)
{
	return j->run.cell->has_ended;
}

const struct cell_ops session_cell_ops = {
	.watch = watch,
	.serve = serve,
	.interrupt = interrupt,
	.has_ended = has_ended,
};

void session_cell_fini(struct session_cell *c)
{
	free(c->request);
	arena_fini(&c->arena);
	*c = SESSION_CELL_NULL;
}
