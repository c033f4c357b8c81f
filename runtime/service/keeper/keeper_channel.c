/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The messages between the server and the keeper of a session.
 *
 * A message to the keeper is a struct wire, sent by one sendmsg(2) over the stream socket.  It is
 * far smaller than the socket's buffer, so it is sent whole or not at all.  recvmsg(2) never reads
 * past a message with descriptors, and one read asks for the size of one message: unix(7).
 */
#include "runtime/service/keeper/keeper_channel.h"

#include <assert.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/base/files/fd.h"
#include "runtime/base/files/unix.h"
#include "runtime/base/json/json_record.h"
#include "runtime/base/scope.h"

#define LENGTH(table) (sizeof(table) / sizeof((table)[0]))

enum wire_fd { WIRE_SOCK, WIRE_CONTROL, WIRE_STDIN, WIRE_FD_COUNT };
#define WIRE_FD_MIN WIRE_STDIN /* of a worker without an input pipe */

struct wire {
	uint32_t kind, worker;
	int32_t signo;
	char id[PLAN_ID_MAX];
};

/* --- the server's side ------------------------------------------------------------- */

static int send_wire(const struct worker *keeper, struct wire *wire, const int *fds, size_t nfds,
		     struct cj_error *err)
{
	struct iovec bytes = { wire, sizeof(*wire) };
	const struct unix_message m = {
		.parts = &bytes,
		.nparts = 1,
		.fds = (int *)fds, /* only read */
		.nfds = nfds,
		.flags = MSG_DONTWAIT,
	};
	ssize_t sent = unix_send_message(keeper->sock_fd, &m);
	if (sent == (ssize_t)sizeof(*wire))
		return 0;
	return cj_fail(err, sent < 0 ? (int)-sent : EIO, "write to the keeper of the session");
}

static int set_id(struct wire *wire, const char *id, struct cj_error *err)
{
	if (strlen(id) >= sizeof(wire->id))
		return cj_reject(err, "the id '%.32s...' is too long", id);
	memcpy(wire->id, id, strlen(id) + 1);
	return 0;
}

static int open_stdin(int far[WIRE_FD_COUNT], int *near_fd, struct cj_error *err)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return cj_fail(err, errno, "create an exec's input pipe");
	far[WIRE_STDIN] = ends[0];
	*near_fd = ends[1];
	fd_set_nonblocking(*near_fd);
	return 0;
}

int keeper_send_worker(const struct worker *keeper, enum keeper_worker kind, const char *id,
		       struct worker *out, int *out_stdin_fd, struct cj_error *err)
{
	struct wire wire = { .kind = KEEPER_REQUEST_WORKER, .worker = kind };
	struct worker near = WORKER_NULL;
	int far[WIRE_FD_COUNT] = { -1, -1, -1 };
	auto_fd int stdin_fd = -1;

	int rc = set_id(&wire, id, err);
	if (rc == 0)
		rc = worker_open_ends(&near, &far[WIRE_SOCK], &far[WIRE_CONTROL], err);
	if (rc == 0 && out_stdin_fd)
		rc = open_stdin(far, &stdin_fd, err);
	if (rc == 0)
		rc = send_wire(keeper, &wire, far, out_stdin_fd ? WIRE_FD_COUNT : WIRE_FD_MIN, err);
	for (size_t i = 0; i < WIRE_FD_COUNT; i++)
		cj_close(&far[i]);
	if (rc < 0) {
		worker_close(&near);
		return rc;
	}
	*out = near;
	if (out_stdin_fd)
		*out_stdin_fd = take_fd(&stdin_fd);
	return 0;
}

int keeper_send_signal(const struct worker *keeper, const char *id, int signo, struct cj_error *err)
{
	struct wire wire = { .kind = KEEPER_REQUEST_SIGNAL, .signo = signo };

	if (set_id(&wire, id, err) < 0)
		return -err->code;
	return send_wire(keeper, &wire, NULL, 0, err);
}

/* --- the keeper's side ------------------------------------------------------------- */

void keeper_request_fini(struct keeper_request *r)
{
	cj_close(&r->sock_fd);
	cj_close(&r->control_fd);
	cj_close(&r->stdin_fd);
}

static bool is_valid(const struct wire *wire, size_t nfds)
{
	if (memchr(wire->id, '\0', sizeof(wire->id)) == NULL)
		return false;
	if (wire->kind == KEEPER_REQUEST_SIGNAL)
		return nfds == 0 && wire->signo > 0 && wire->signo < NSIG;
	return wire->kind == KEEPER_REQUEST_WORKER && wire->worker < KEEPER_WORKER_COUNT &&
	       nfds >= WIRE_FD_MIN;
}

/* One message as it came. */
struct received {
	struct wire wire;
	int fds[WIRE_FD_COUNT];
	size_t nfds;
	bool is_whole;
};

/* Returns 0 at the end of the stream, or a negative errno. */
static ssize_t receive_wire(int sock_fd, struct received *out)
{
	struct iovec bytes = { &out->wire, sizeof(out->wire) };
	struct unix_message m = {
		.parts = &bytes,
		.nparts = 1,
		.fds = out->fds,
		.nfds = WIRE_FD_COUNT,
		.flags = MSG_DONTWAIT,
	};
	ssize_t got = unix_receive_message(sock_fd, &m);
	if (got < 0)
		return got;
	out->nfds = m.nfds;
	out->is_whole = got == (ssize_t)sizeof(out->wire) && !m.is_cut;
	return got;
}

int keeper_receive(int sock_fd, struct keeper_request *out, struct cj_error *err)
{
	struct received r = { .fds = { -1, -1, -1 } };
	ssize_t got = receive_wire(sock_fd, &r);

	if (got == -EAGAIN)
		return 0;
	if (got < 0)
		return cj_fail(err, (int)-got, "read from the server");
	if (got == 0)
		return cj_reject_as(err, EPIPE, "the server has ended");
	struct keeper_request request = { .kind = r.wire.kind,
					  .worker = r.wire.worker,
					  .signo = r.wire.signo,
					  .sock_fd = r.fds[WIRE_SOCK],
					  .control_fd = r.fds[WIRE_CONTROL],
					  .stdin_fd = r.fds[WIRE_STDIN] };
	if (!r.is_whole || !is_valid(&r.wire, r.nfds)) {
		keeper_request_fini(&request);
		return cj_reject_as(err, EPROTO, "the server sent a message that is not whole");
	}
	memcpy(request.id, r.wire.id, sizeof(request.id));
	*out = request;
	return 1;
}

/* --- lines of the keeper ----------------------------------------------------------- */

/* The names of session_ends[], from the first one that a keeper reports. */
static int set_reason(const struct json_reader *in, const struct json_key *k, const char *text,
		      void *record, struct cj_error *err)
{
	enum session_end *out = (enum session_end *)((char *)record + k->offset);

	for (int i = SESSION_CLOSED; i < SESSION_END_COUNT; i++) {
		if (strcmp(text, session_ends[i].name) != 0)
			continue;
		*out = (enum session_end)i;
		return 0;
	}
	(void)in;
	return cj_reject(err, "'%s' is no end of a session", text);
}

static void write_reason(struct json_writer *w, const struct json_key *k, const void *record)
{
	const enum session_end *reason = (const void *)((const char *)record + k->offset);

	json_put_string(w, session_ends[*reason].name);
}

#define NEEDED(type) JSON_TAKES_##type, .is_required = true
#define AT(member)   .offset = offsetof(struct keeper_line, member)
#define U64          NEEDED(NUMBER), .set = json_set_u64, .write = json_write_u64
#define FLAG         NEEDED(BOOL), .set = json_set_bool, .write = json_write_bool
#define CUT(member)                                                                                \
	NEEDED(STRING), .set = json_set_chars_cut, .write = json_write_chars, AT(member),          \
			.max = sizeof(((struct keeper_line *)0)->member) - 1

static int skip_type(const struct json_reader *in, const struct json_key *k, const char *text,
		     void *record, struct cj_error *err)
{
	(void)in, (void)k, (void)text, (void)record, (void)err; /* it has chosen the record */
	return 0;
}
#define TYPE "type", NEEDED(STRING), .set = skip_type

static const struct json_key lives_keys[] = {
	{ TYPE },
	{ "isolated", FLAG, AT(is_isolated) },
};
static const struct json_key status_keys[] = {
	{ TYPE },
	{ "cpu_ms", U64, AT(cpu_ms) },
	{ "memory_bytes", U64, AT(memory_bytes) },
	{ "pids", U64, AT(pids) },
	{ "used_bytes", U64, AT(used_bytes) },
	{ "denied_syscalls", U64, AT(denied_syscalls) },
	{ "denied_packets", U64, AT(denied_packets) },
};
static const struct json_key ended_keys[] = {
	{ TYPE },
	{ "reason", NEEDED(STRING), .set = set_reason, .write = write_reason, AT(reason) },
	{ "stage", CUT(stage) },
	{ "message", CUT(message) },
	{ "is_callers_own", FLAG, AT(is_callers_own) },
};

static const struct line_kind {
	const char *type;
	struct json_record record;
} line_kinds[] = {
	[KEEPER_LINE_LIVES] = { "session", JSON_RECORD(lives_keys, "the line") },
	[KEEPER_LINE_STATUS] = { "status", JSON_RECORD(status_keys, "the line") },
	[KEEPER_LINE_ENDED] = { "ended", JSON_RECORD(ended_keys, "the line") },
};

int keeper_line_send(int sock_fd, const struct keeper_line *line, struct cj_error *err)
{
	auto_json_writer struct json_writer *w = json_writer_create(false);

	if (!w)
		return cj_fail(err, ENOMEM, "write a line of the session");
	json_open_object(w);
	json_member_text(w, "type", line_kinds[line->type].type);
	json_record_write(w, &line_kinds[line->type].record, line);
	json_close_object(w);
	return job_send_line(sock_fd, w, err);
}

static enum keeper_line_type type_of(const struct json_node *root)
{
	const char *type = json_get_text(root, "type");

	for (size_t i = KEEPER_LINE_NONE + 1; type && i < LENGTH(line_kinds); i++)
		if (strcmp(type, line_kinds[i].type) == 0)
			return (enum keeper_line_type)i;
	return KEEPER_LINE_NONE;
}

/* The socket is not blocking: a server that does not read for a while loses the reason. */
void keeper_line_send_end(int sock_fd, enum session_end reason, const struct cj_error *why,
			  bool is_callers_own, int wait_ms)
{
	struct keeper_line line = {
		.type = KEEPER_LINE_ENDED,
		.reason = reason,
		.is_callers_own = is_callers_own,
	};
	struct pollfd server = { .fd = sock_fd, .events = POLLOUT };
	struct cj_error ignored = { 0 };

	(void)snprintf(line.stage, sizeof(line.stage), "%s", why->stage);
	if (why->hint[0])
		(void)snprintf(line.message, sizeof(line.message), "%s (%s)", why->msg, why->hint);
	else
		(void)snprintf(line.message, sizeof(line.message), "%s", why->msg);
	if (keeper_line_send(sock_fd, &line, &ignored) == 0 || ignored.code != EAGAIN)
		return;
	if (poll(&server, 1, wait_ms) > 0)
		(void)!keeper_line_send(sock_fd, &line, &ignored);
}

void keeper_line_read(const char *text, size_t size, struct keeper_line *out)
{
	auto_arena struct arena a = { 0 };
	const struct json_node *root = NULL;
	const struct json_reader in = { .file = "keeper" };
	struct cj_error ignored = { 0 }; /* the caller ends a keeper that breaks the protocol */
	struct keeper_line line = { .type = KEEPER_LINE_NONE };

	*out = line;
	if (json_parse("keeper", text, size, &a, &root, &ignored) < 0)
		return;
	line.type = type_of(root);
	if (line.type != KEEPER_LINE_NONE &&
	    json_record_read(&in, root, &line_kinds[line.type].record, &line, &ignored) == 0)
		*out = line;
}
