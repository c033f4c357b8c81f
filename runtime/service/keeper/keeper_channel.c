/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The messages between the server and the keeper of a session.
 *
 * A message to the keeper is the begin of a struct keeper_request, sent by one sendmsg(2) over the
 * stream socket.  It is far smaller than the socket's buffer, so it is sent whole or not at all.
 * recvmsg(2) never reads past a message with descriptors, and one read asks for the size of one
 * message: unix(7).
 */
#include "runtime/service/keeper/keeper_channel.h"

#include <assert.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include "runtime/base/files/fd.h"
#include "runtime/base/unix.h"
#include "runtime/base/scope.h"

/* The descriptors of a message, in this order. */
enum { FD_SOCK, FD_CONTROL, FD_STDIN, FD_COUNT };
#define FD_MIN FD_STDIN /* of a worker without an input pipe */

#define MESSAGE_SIZE offsetof(struct keeper_request, sock_fd)

static int send_request(const struct worker *keeper, struct keeper_request *r, const char *id,
			int *fds, size_t nfds, struct cj_error *err)
{
	struct iovec bytes = { r, MESSAGE_SIZE };
	const struct unix_message m = {
		.parts = &bytes, .nparts = 1, .fds = fds, .nfds = nfds, .flags = MSG_DONTWAIT
	};

	if (strlen(id) >= sizeof(r->id))
		return cj_reject(err, "the id '%.32s...' is too long", id);
	memcpy(r->id, id, strlen(id) + 1);
	ssize_t sent = unix_send_message(keeper->sock_fd, &m);
	if (sent == (ssize_t)MESSAGE_SIZE)
		return 0;
	return cj_fail(err, sent < 0 ? (int)-sent : EIO, "write to the keeper of the session");
}

static int open_stdin(int *far_fd, int *near_fd, struct cj_error *err)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return cj_fail(err, errno, "create an exec's input pipe");
	*far_fd = ends[0];
	*near_fd = ends[1];
	fd_set_nonblocking(*near_fd);
	return 0;
}

int keeper_send_worker(const struct worker *keeper, enum keeper_request_kind kind, const char *id,
		       struct worker *out, int *out_stdin_fd, struct cj_error *err)
{
	struct keeper_request request = { .kind = kind };
	struct worker near = WORKER_NULL;
	int far[FD_COUNT] = { -1, -1, -1 };
	auto_fd int stdin_fd = -1;

	int rc = worker_open_ends(&near, &far[FD_SOCK], &far[FD_CONTROL], false, err);
	if (rc == 0 && out_stdin_fd)
		rc = open_stdin(&far[FD_STDIN], &stdin_fd, err);
	if (rc == 0)
		rc = send_request(keeper, &request, id, far, out_stdin_fd ? FD_COUNT : FD_MIN, err);
	for (size_t i = 0; i < FD_COUNT; i++)
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
	struct keeper_request request = { .kind = KEEPER_SIGNAL, .signo = signo };

	return send_request(keeper, &request, id, NULL, 0, err);
}

#define NETWORK_BYTES_MAX (64u << 10)

int keeper_send_network(const struct worker *keeper, const struct network_lists *lists,
			struct cj_error *err)
{
	struct keeper_request request = { .kind = KEEPER_NETWORK };
	auto_json_writer struct json_writer *w = json_writer_create(false);
	struct blob text = { 0 };

	json_open_object(w);
	json_member_bool(w, "list", lists->is_list);
	json_member_texts(w, "allow", lists->allow.items, lists->allow.count);
	json_member_texts(w, "deny", lists->deny.items, lists->deny.count);
	json_close_object(w);
	if (json_writer_take(w, &text, err) < 0)
		return -err->code;
	auto_fd int fd = fd_memfd_sealed("network", text.bytes, text.size, err);
	return fd < 0 ? fd : send_request(keeper, &request, "", &fd, 1, err);
}

static int read_texts(const struct json_node *root, const char *key, struct arena *a,
		      struct strings *out)
{
	const struct json_node *list = json_get_typed(root, key, JSON_ARRAY);

	for (const struct json_node *n = list ? list->child : NULL; n; n = n->next)
		if (n->type != JSON_STRING || strings_add(out, a, n->text) < 0)
			return -EINVAL;
	return 0;
}

int keeper_read_network(const struct keeper_request *r, struct arena *a, struct network_lists *out,
			struct cj_error *err)
{
	const struct json_node *root = NULL;
	char *text = NULL;
	size_t size = 0;

	*out = (struct network_lists){ 0 };
	if (fd_read_all(r->sock_fd, NETWORK_BYTES_MAX, a, &text, &size, "the network", err) < 0 ||
	    json_parse("network", text, size, a, &root, err) < 0)
		return -err->code;
	const struct json_node *is_list = json_get_typed(root, "list", JSON_BOOL);
	out->is_list = !is_list || is_list->boolean;
	if (read_texts(root, "allow", a, &out->allow) < 0 ||
	    read_texts(root, "deny", a, &out->deny) < 0)
		return cj_fail(err, EINVAL, "read the network");
	return 0;
}

void keeper_request_fini(struct keeper_request *r)
{
	cj_close(&r->sock_fd);
	cj_close(&r->control_fd);
	cj_close(&r->stdin_fd);
}

static bool is_valid(const struct keeper_request *r, size_t nfds)
{
	if (memchr(r->id, '\0', sizeof(r->id)) == NULL)
		return false;
	if (r->kind == KEEPER_SIGNAL)
		return nfds == 0 && r->signo > 0 && r->signo < NSIG;
	if (r->kind == KEEPER_NETWORK)
		return nfds == 1;
	return r->kind < KEEPER_SIGNAL && nfds >= FD_MIN;
}

int keeper_receive(int sock_fd, struct keeper_request *out, struct cj_error *err)
{
	struct keeper_request r = KEEPER_REQUEST_NULL;
	struct iovec bytes = { &r, MESSAGE_SIZE };
	int fds[FD_COUNT] = { -1, -1, -1 };
	struct unix_message m = {
		.parts = &bytes, .nparts = 1, .fds = fds, .nfds = FD_COUNT, .flags = MSG_DONTWAIT
	};
	ssize_t got = unix_receive_message(sock_fd, &m);

	if (got == -EAGAIN)
		return 0;
	if (got < 0)
		return cj_fail(err, (int)-got, "read from the server");
	if (got == 0)
		return cj_reject_as(err, EPIPE, "the server has ended");
	r.sock_fd = fds[FD_SOCK];
	r.control_fd = fds[FD_CONTROL];
	r.stdin_fd = fds[FD_STDIN];
	if (got != (ssize_t)MESSAGE_SIZE || m.is_cut || !is_valid(&r, m.nfds)) {
		keeper_request_fini(&r);
		return cj_reject_as(err, EPROTO, "the server sent a message that is not whole");
	}
	*out = r;
	return 1;
}

/* The names of session_ends[], from the first one that a keeper reports. */
static JSON_SETTER(reason)
{
	enum session_end *out = (enum session_end *)((char *)record + k->offset);

	for (int i = SESSION_CLOSED; i < SESSION_END_COUNT; i++) {
		if (strcmp(text, session_ends[i].name) != 0)
			continue;
		*out = (enum session_end)i;
		return 0;
	}
	return cj_reject(err, "'%s' is no end of a session", text);
}

static JSON_WRITER(reason)
{
	const enum session_end *reason = (const void *)((const char *)record + k->offset);

	json_put_string(w, session_ends[*reason].name);
}

static const char *const line_types[] = {
	[KEEPER_LINE_NONE] = "",         [KEEPER_LINE_LIVES] = "session",
	[KEEPER_LINE_STATUS] = "status", [KEEPER_LINE_NETWORK] = "network",
	[KEEPER_LINE_ENDED] = "ended",
};

#define NEEDED(type) JSON_TAKES_##type, .is_required = true
#define AT(member)   .offset = offsetof(struct keeper_line, member)
#define U64          NEEDED(NUMBER), .set = json_set_u64, .write = json_write_u64
#define FLAG         NEEDED(BOOL), .set = json_set_bool, .write = json_write_bool
#define CUT(member)                                                                                \
	NEEDED(STRING), .set = json_set_chars_cut, .write = json_write_chars, AT(member),          \
			.max = sizeof(((struct keeper_line *)0)->member) - 1

#define TYPE                                                                                       \
	"type", NEEDED(STRING), .set = json_set_name, .write = json_write_name, AT(type),          \
				.detail = line_types, .max = COUNT_OF(line_types)

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
static const struct json_key network_keys[] = {
	{ TYPE },
	{ "message", CUT(message) },
	{ "is_callers_own", FLAG, AT(is_callers_own) },
};
static const struct json_key ended_keys[] = {
	{ TYPE },
	{ "reason", NEEDED(STRING), .set = json_set_reason, .write = json_write_reason,
	  AT(reason) },
	{ "stage", CUT(stage) },
	{ "message", CUT(message) },
	{ "is_callers_own", FLAG, AT(is_callers_own) },
};

static const struct json_record line_records[] = {
	[KEEPER_LINE_LIVES] = JSON_RECORD(lives_keys, "the line"),
	[KEEPER_LINE_STATUS] = JSON_RECORD(status_keys, "the line"),
	[KEEPER_LINE_NETWORK] = JSON_RECORD(network_keys, "the line"),
	[KEEPER_LINE_ENDED] = JSON_RECORD(ended_keys, "the line"),
};

int keeper_line_send(int sock_fd, const struct keeper_line *line, struct cj_error *err)
{
	auto_json_writer struct json_writer *w = json_writer_create(false);

	json_record_write(w, &line_records[line->type], line);
	return job_send_line(sock_fd, w, err);
}

static enum keeper_line_type type_of(const struct json_node *root)
{
	const char *type = json_get_text(root, "type");

	for (size_t i = KEEPER_LINE_NONE + 1; type && i < COUNT_OF(line_types); i++)
		if (strcmp(type, line_types[i]) == 0)
			return (enum keeper_line_type)i;
	return KEEPER_LINE_NONE;
}

int keeper_line_send_network(int sock_fd, const struct cj_error *why, struct cj_error *err)
{
	struct keeper_line line = { .type = KEEPER_LINE_NETWORK,
				    .is_callers_own = why->code == EINVAL ||
						      why->code == EOPNOTSUPP ||
						      why->code == EAGAIN || /* of a name */
						      why->code == E2BIG };
	(void)cj_error_text(why, line.message);
	return keeper_line_send(sock_fd, &line, err);
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
	struct cj_error ignored = { 0 };

	(void)snprintf(line.stage, sizeof(line.stage), "%s", why->stage);
	(void)cj_error_text(why, line.message);
	if (keeper_line_send(sock_fd, &line, &ignored) == 0 || ignored.code != EAGAIN)
		return;
	if (fd_await(sock_fd, POLLOUT, wait_ms))
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
	    json_record_read(&in, root, &line_records[line.type], &line, &ignored) == 0)
		*out = line;
}

const char *const file_op_names[] = {
	[FILE_GET] = "get",     [FILE_PART] = "part",     [FILE_PUT] = "put",
	[FILE_LIST] = "list",   [FILE_REMOVE] = "remove", [FILE_STAT] = "stat",
	[FILE_MKDIR] = "mkdir", [FILE_RENAME] = "rename", [FILE_WATCH] = "watch",
};
static_assert(COUNT_OF(file_op_names) == FILE_OP_COUNT, "every operation has a name");

#undef AT
#define AT(member) .offset = offsetof(struct file_job, member)
#define TEXT       NEEDED(STRING), .set = json_set_string, .write = json_write_string
#define OP         NEEDED(STRING), .set = json_set_name, .write = json_write_name
static const struct json_key job_keys[] = {
	{ "op", OP, .detail = file_op_names, .max = FILE_OP_COUNT, AT(op) },
	{ "path", TEXT, AT(path) },
	{ "to", TEXT, AT(to) },
	{ "max_bytes", U64, AT(max_bytes) },
	{ "offset", U64, AT(offset) },
	{ "depth", U64, AT(depth) },
	{ "executable", FLAG, AT(is_executable) },
};
static const struct json_record job_record = JSON_RECORD(job_keys, "the job");

int file_job_write(const struct file_job *job, char **out, size_t *out_size, struct cj_error *err)
{
	auto_json_writer struct json_writer *w = json_writer_create(false);
	struct blob text = { 0 };

	json_record_write(w, &job_record, job);
	if (json_writer_take(w, &text, err) < 0)
		return cj_wrap(err, "write a file job");
	*out = strndup(text.bytes, text.size);
	*out_size = text.size;
	return *out ? 0 : cj_fail(err, ENOMEM, "write a file job");
}

int file_job_read(struct blob body, struct arena *a, struct file_job *out, struct cj_error *err)
{
	const struct json_reader in = { .file = "file job", .arena = a };
	const struct json_node *root = NULL;
	struct file_job job = { 0 };

	if (json_parse("file job", body.bytes, body.size, a, &root, err) < 0 ||
	    json_record_read(&in, root, &job_record, &job, err) < 0)
		return -err->code;
	*out = job;
	return 0;
}

int file_answer_read(const char *line, size_t size, struct arena *a, struct file_answer *out,
		     struct cj_error *err)
{
	const struct json_node *root = NULL;

	if (json_parse_capped("file answer", line, size, a, &root, err) < 0)
		return -err->code;
	const char *type = json_get_text(root, "type");
	if (!type || strcmp(type, "file") != 0)
		return cj_reject(err, "the line is no answer of a file worker");
	const struct json_node *result = json_get_typed(root, "result", JSON_OBJECT);
	const struct json_node *error = json_get_typed(root, "error", JSON_OBJECT);
	const char *message = json_get_text(error, "message"), *code = json_get_text(error, "code");
	size_t i = 0;
	while (code && i < FILE_ERROR_COUNT && strcmp(file_error_names[i], code) != 0)
		i++;
	*out = (struct file_answer){
		.is_ok = result != NULL,
		.result = result,
		.error = code && i < FILE_ERROR_COUNT ? (enum file_error)i : FILE_FAILED,
		.message = message ? message : "it gave no reason",
	};
	return 0;
}
