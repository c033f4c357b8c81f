/* SPDX-License-Identifier: Apache-2.0 */
/* One cell: its request, and the channel of its interpreter while it runs. */
#include "runtime/session/repl/session_interpreter.h"

#include <signal.h>
#include <sys/socket.h>

#include "runtime/base/files/sha256.h"
#include "runtime/jail/jail_state.h"
#include "runtime/jail/supervise/start.h"
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
	/* for session_interpreter_runs_code() */
	atomic_store(&j->exec->session->shared->rows[j->exec->slot].cell,
		     runs ? c->outcome.number : 0);
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

static const struct cell_ops cell_ops = {
	.watch = watch,
	.serve = serve,
	.interrupt = interrupt,
	.has_ended = has_ended,
};

static bool has_same_env(const struct strings *a, const struct strings *b)
{
	if (a->count != b->count)
		return false;
	for (size_t k = 0; k < a->count; k++)
		if (strcmp(a->items[k], b->items[k]) != 0)
			return false;
	return true;
}

static int check_program(const struct session_interpreter *i, const struct program *p,
			 struct cj_error *err)
{
	if (p->code_source != CODE_STRING)
		return cj_reject(err, "a cell needs code");
	if (!has_same_env(&p->env, &i->program.env))
		return cj_reject(err, "the interpreter of a session keeps its environment: leave "
				      "out env, or set it in the code");
	if (strcmp(p->workdir, i->program.workdir) != 0)
		return cj_reject(err, "the interpreter of a session keeps its directory: leave out "
				      "workdir, or change it in the code");
	for (size_t k = 0; k < p->nfiles; k++)
		if (p->files[k].source)
			return cj_reject(err,
					 "a cell gets no files of the host: put '%s' into the "
					 "session first",
					 p->files[k].target);
	return 0;
}

int session_cell_start(struct session_interpreter *i, const struct program *program,
		       const struct jail_io *io, struct blob input, struct session_cell *cell,
		       struct cj_error *err)
{
	*cell = SESSION_CELL_NULL;
	if (check_program(i, program, err) < 0)
		return cj_stage(err, "options");
	cell->request = repl_request_write(i->cells, program, input, &cell->size);
	if (!cell->request) {
		(void)!cj_fail(err, ENOMEM, "gather the cell");
		return cj_stage(err, "options");
	}
	cell->channel_fd = i->channel_fd;
	cell->outcome.number = i->cells;
	cell->outcome.is_new = i->is_new && i->cells == 1;
	repl_reader_init(&cell->reader, &cell->arena, &cell->outcome);
	sha256_hex(program->code_text, program->code_size, i->view->run.code_sha256);
	/* What was counted until now is not the cell's. */
	cgroup_read_usage(&i->view->exec->session->jail->cgroup, &i->view->exec->before);
	return start_cell(i->view, cell, &cell_ops, &i->calls_fd, program, io, err);
}
