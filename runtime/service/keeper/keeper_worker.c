/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The workers of a session: one operation on files, or one exec.
 *
 * A worker begins as a copy of the keeper: the config is the session's, and the request of an exec
 * goes onto it.  Its settings may differ as those of a request for a jail that was prepared ahead
 * may.
 *
 * Files are looked at and changed from outside while untrusted programs run:
 * runtime/session/files/session_files.h has the rules.  The worker is no process of the jail, so it
 * works in a session that may start no further one.  A worker that writes is in the jail's cgroup:
 * the session pays for the memory of its files.
 */
#include "runtime/service/keeper/keeper_state.h"

#include <sys/prctl.h>
#include <time.h>

#include "runtime/base/child.h"
#include "runtime/base/files/fd.h"
#include "runtime/base/json/json.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"
#include "runtime/base/text.h"
#include "runtime/jail/jail.h"
#include "runtime/run/report/result.h"
#include "runtime/session/files/session_files.h"

#define LIST_ENTRIES 1000
/* Between two signs of life.  Nothing here waits for a program, but a machine may be slow, and a
 * file system of a bind may hang. */
#define LIFE_S 60

struct file_work {
	const struct jail *jail;
	struct work work; /* its job, the arena, the socket and the pipe */
	struct file_job job;
	int content_fd; /* of get */
	struct session_watch watch;
};

/* Takes what has come into w as one line. */
static int send_line(const struct file_work *f, struct json_writer *w, struct cj_error *err)
{
	struct blob text = { 0 };

	/* Whoever watches may read as slowly as it likes: the kernel notes what it misses. */
	(void)alarm(f->job.op == FILE_WATCH ? 0 : LIFE_S);
	if (json_writer_take(w, &text, err) < 0)
		return -err->code;
	return fd_write_line(f->work.sock_fd, text.bytes, text.size, "the server", err);
}

/* A line {"type":TYPE, NAME:VALUE, NAME2:VALUE2}; NULL: no further member. */
static int send_text(const struct file_work *f, const char *type, const char *const members[4],
		     struct cj_error *err)
{
	auto_json_writer struct json_writer *w = json_writer_create(false);

	json_open_object(w);
	json_member_text(w, "type", type);
	for (size_t i = 0; i < 4 && members[i]; i += 2)
		json_member_text(w, members[i], members[i + 1]);
	json_close_object(w);
	return send_line(f, w, err);
}

static int send_end(const struct file_work *f, struct cj_error *err)
{
	return send_text(f, "end", (const char *const[4]){ NULL }, err);
}

/* Operations: each writes the members of its result. */

static int get(struct file_work *f, struct json_writer *w, struct cj_error *err)
{
	struct session_file file = { 0 };

	f->content_fd =
	    session_file_open(f->jail, f->job.path, f->job.max_bytes, &f->work.arena, &file, err);
	if (f->content_fd < 0)
		return f->content_fd;
	json_member_u64(w, "bytes", file.bytes);
	return 0;
}

/* The file may shrink meanwhile. */
static int get_part(struct file_work *f, struct json_writer *w, struct cj_error *err)
{
	static char bytes[FILE_PART_MAX], text[4 * ((FILE_PART_MAX + 2) / 3) + 1];
	const struct file_job *job = &f->job;
	struct session_file file = { 0 };
	size_t most = job->max_bytes < sizeof(bytes) ? (size_t)job->max_bytes : sizeof(bytes);
	size_t size = 0;
	ssize_t got = 1;

	auto_fd int fd =
	    session_file_open(f->jail, job->path, UINT64_MAX, &f->work.arena, &file, err);
	if (fd < 0)
		return fd;
	for (; size < most && got > 0 && job->offset + size < file.bytes; size += (size_t)got) {
		got = pread(fd, bytes + size, most - size, (off_t)(job->offset + size));
		if (got < 0)
			return cj_fail(err, errno, "read '%s'", job->path);
	}
	(void)text_base64(bytes, size, text);
	json_member_u64(w, "bytes", file.bytes);
	json_member_u64(w, "offset", job->offset);
	json_member_text(w, "base64", text);
	return 0;
}

static int send_content(struct file_work *f, struct cj_error *err)
{
	static char piece[FILE_PIECE], text[4 * ((FILE_PIECE + 2) / 3) + 1];
	const char *const members[4] = { "base64", text };

	for (uint64_t sent = 0;;) {
		ssize_t got = sys_read(f->content_fd, piece, sizeof(piece));
		if (got < 0)
			return cj_fail(err, errno, "read '%s'", f->job.path);
		if (got == 0)
			return send_end(f, err);
		sent += (uint64_t)got;
		if (sent > f->job.max_bytes) /* it grows meanwhile */
			return cj_fail(err, EFBIG, "read '%s'", f->job.path);
		(void)text_base64(piece, (size_t)got, text);
		if (send_text(f, "bytes", members, err) < 0)
			return -err->code;
	}
}

static void put_entry(struct json_writer *w, const struct session_file *file)
{
	char mode[8];

	json_member_text(w, "path", file->path);
	json_member_text(w, "type",
			 file->kind == SESSION_FILE_FIFO || file->kind == SESSION_FILE_SOCKET
			     ? "other"
			     : session_file_kind_names[file->kind]);
	json_member_u64(w, "bytes", file->bytes);
	(void)snprintf(mode, sizeof(mode), "%04o", file->mode & 07777);
	json_member_text(w, "mode", mode);
	result_put_ms(w, "mtime", file->mtime_ms);
}

static int list(struct file_work *f, struct json_writer *w, struct cj_error *err)
{
	const struct session_list_request request = { f->job.path, (unsigned)f->job.depth,
						      LIST_ENTRIES };
	struct session_listing listing = { 0 };

	if (session_file_list(f->jail, &request, &f->work.arena, &listing, err) < 0)
		return -err->code;
	json_member_array(w, "entries");
	for (size_t i = 0; i < listing.count; i++) {
		json_open_object(w);
		put_entry(w, &listing.items[i]);
		json_close_object(w);
	}
	json_close_array(w);
	json_member_bool(w, "truncated", listing.is_truncated);
	return 0;
}

static int remove_file(struct file_work *f, struct json_writer *w, struct cj_error *err)
{
	(void)w;
	return session_file_remove(f->jail, f->job.path, err);
}

static int look(struct file_work *f, struct json_writer *w, struct cj_error *err)
{
	struct session_file file = { 0 };

	if (session_file_stat(f->jail, f->job.path, &f->work.arena, &file, err) < 0)
		return -err->code;
	put_entry(w, &file);
	return 0;
}

static int make_directory(struct file_work *f, struct json_writer *w, struct cj_error *err)
{
	bool is_new = false;

	if (session_file_mkdir(f->jail, f->job.path, &is_new, err) < 0)
		return -err->code;
	json_member_bool(w, "created", is_new);
	return 0;
}

static int rename_file(struct file_work *f, struct json_writer *w, struct cj_error *err)
{
	(void)w;
	return session_file_rename(f->jail, f->job.path, f->job.to, err);
}

static int watch(struct file_work *f, struct json_writer *w, struct cj_error *err)
{
	(void)w;
	return session_watch_open(f->jail, f->job.path, &f->work.arena, &f->watch, err);
}

static int send_change(void *context, enum session_change change, const char *path,
		       struct cj_error *err)
{
	const char *const members[4] = { "event", session_change_names[change], "path", path };

	return send_text(context, "event", members, err);
}

/* Until the directory or the server has gone; the keeper's SIGTERM ends it with the session. */
static int send_changes(struct file_work *f, struct cj_error *err)
{
	struct pollfd sources[] = { { .fd = f->watch.fd, .events = POLLIN },
				    { .fd = f->work.sock_fd } };
	int rc = 1;

	while (rc > 0) {
		if (poll(sources, 2, -1) < 0 && errno != EINTR)
			return cj_fail(err, errno, "wait for changes");
		if (sources[1].revents != 0)
			return 0;
		rc = session_watch_read(&f->watch, send_change, f, err);
	}
	return rc < 0 ? rc : send_end(f, err);
}

static int receive(struct file_work *f, const struct session_put *file, uint64_t *out_size,
		   struct cj_error *err)
{
	static char piece[FILE_PIECE];

	for (*out_size = 0;;) {
		(void)alarm(LIFE_S);
		ssize_t got = sys_read(f->work.stdin_fd, piece, sizeof(piece));
		if (got < 0)
			return cj_fail(err, errno, "receive '%s'", f->job.path);
		/* The server closes the control pipe first when the caller is gone, and then the
		 * end of the bytes is not that of the file. */
		if (got == 0 && fd_await(f->work.control_fd, 0, 0))
			return cj_reject_as(err, ECANCELED, "the caller has gone");
		if (got == 0)
			return 0;
		*out_size += (uint64_t)got;
		if (*out_size > f->job.max_bytes)
			return cj_reject_as(err, EFBIG, "'%s' has more than %llu bytes",
					    f->job.path, (unsigned long long)f->job.max_bytes);
		if (fd_write_all(file->fd, piece, (size_t)got, f->job.path, err) < 0)
			return -err->code;
	}
}

static int put(struct file_work *f, struct json_writer *w, struct cj_error *err)
{
	struct session_put file = SESSION_PUT_NULL;
	uint64_t size = 0;

	int rc = session_file_create(f->jail, f->job.path, &f->work.arena, &file, err);
	if (rc == 0)
		rc = receive(f, &file, &size, err);
	if (rc == 0)
		rc = session_file_publish(&file, f->job.is_executable, err);
	session_put_fini(&file);
	json_member_u64(w, "bytes", size);
	return rc;
}

static const struct {
	int (*answer)(struct file_work *f, struct json_writer *w, struct cj_error *err);
	int (*go_on)(struct file_work *f, struct cj_error *err); /* after the answer, or NULL */
} operations[FILE_OP_COUNT] = {
	[FILE_GET] = { get, send_content },
	[FILE_PART] = { get_part },
	[FILE_PUT] = { put },
	[FILE_LIST] = { list },
	[FILE_REMOVE] = { remove_file },
	[FILE_STAT] = { look },
	[FILE_MKDIR] = { make_directory },
	[FILE_RENAME] = { rename_file },
	[FILE_WATCH] = { watch, send_changes },
};

static int send_error(const struct file_work *f, const struct cj_error *why, struct cj_error *err)
{
	auto_json_writer struct json_writer *w = json_writer_create(false);

	json_open_object(w);
	json_member_text(w, "type", "file");
	json_member_object(w, "error");
	json_member_text(w, "code", file_error_names[session_file_error(why->code)]);
	json_member_text(w, "message", why->msg);
	json_close_object(w);
	json_close_object(w);
	return send_line(f, w, err);
}

static int operate(struct file_work *f, struct json_writer *w, struct cj_error *err)
{
	const struct job *job = &f->work.job;
	const struct blob body = { job->body, job->body_size };

	if (job->kind != JOB_FILE)
		return cj_reject_as(err, EPROTO, "a job of the kind '%s' is not one of a file",
				    job_kind_names[job->kind]);
	if (file_job_read(body, &f->work.arena, &f->job, err) < 0)
		return -err->code;
	return operations[f->job.op].answer(f, w, err);
}

static int answer(struct file_work *f, const struct cj_error *early, struct cj_error *err)
{
	auto_json_writer struct json_writer *w = json_writer_create(false);
	struct cj_error why = *early;

	if (!w)
		return cj_fail(err, ENOMEM, "write the answer of a file worker");
	json_open_object(w);
	json_member_text(w, "type", "file");
	json_member_object(w, "result");
	if (why.code != 0 || operate(f, w, &why) < 0)
		return send_error(f, &why, err);
	json_close_object(w);
	json_close_object(w);
	int rc = send_line(f, w, err);
	if (rc == 0 && operations[f->job.op].go_on)
		rc = operations[f->job.op].go_on(f, err);
	return rc;
}

static void serve_file(const struct keeper *k, const struct keeper_child *c)
{
	struct file_work f = {
		.jail = k->work->driver.jail,
		.work = { .sock_fd = c->request.sock_fd,
			  .control_fd = c->request.control_fd,
			  .stdin_fd = c->request.stdin_fd },
		.content_fd = -1,
		.watch = SESSION_WATCH_NULL,
	};
	struct cj_error early = { 0 }, ignored = { 0 }; /* the server sees the socket end */

	/* Nothing here is worth waiting for at the end of the session. */
	if (child_unblock_signals(&early) == 0 && session_files_become(f.jail, &early) == 0)
		(void)!child_die_with_parent(-1, &early); /* new credentials have cleared that */
	(void)alarm(LIFE_S);
	if (!work_await_job(&f.work, k->signal_fd))
		return;
	if (work_read_job(&f.work, &early) < 0 && early.code == EPIPE)
		return;
	(void)!answer(&f, &early, &ignored);
}

static struct work make_work(const struct keeper *k, const struct keeper_child *c)
{
	const struct work *keeper = k->work;
	struct work w = {
		.profile = keeper->profile,
		.tier = TIER_JAIL,
		.sock_fd = c->request.sock_fd,
		.control_fd = c->request.control_fd,
		.stdin_fd = c->request.stdin_fd,
		.session_id = keeper->job.id,
		.session_tools = keeper->request.tools_json,
		.exec_number = c->number,
		.config = keeper->config,
		.plan = keeper->plan,
	};

	memcpy(w.jail_name, keeper->jail_name, sizeof(w.jail_name));
	return w;
}

static bool serve_cell(const struct keeper *k, const struct keeper_child *c)
{
	struct work w = make_work(k, c);
	struct cj_error early = { 0 }, err = { 0 };

	w.interpreter = k->interpreter;
	if (!k->interpreter) {
		early = k->no_start;
	} else if (w.stdin_fd >= 0) {
		cj_refuse(&early, "a cell can't have open_stdin: its stdin is in the request");
		cj_stage(&early, "options");
	}
	/* An interpreter that has ended is the result of the job, which comes in any case. */
	if (!work_await_job(&w, k->signal_fd) || work_read_job(&w, &err) < 0)
		return true;
	if (early.code == 0)
		w.driver.jail = k->interpreter->view;
	work_serve(&w, &early);
	/* The cell had not begun, or the interpreter waits for the next one. */
	return !w.driver.cell.outcome.number || w.driver.cell.has_ended;
}

static void serve_exec(const struct keeper *k, const struct keeper_child *c)
{
	struct work w = make_work(k, c);
	struct jail *view = NULL;
	struct cj_error early = { 0 }, err = { 0 };

	if (session_exec_open(k->session, c->slot, c->request.id, &view, &early) < 0)
		(void)snprintf(early.stage, sizeof(early.stage), "session");
	/* A reaper that has ended is the result of the job, which comes in any case. */
	if (!work_await_job(&w, k->signal_fd) || work_read_job(&w, &err) < 0)
		return;
	w.driver.jail = view;
	work_serve(&w, &early);
	cj_close(&w.sock_fd); /* the server can answer now and does not wait for the clean-up */
	jail_destroy(&w.driver.jail);
}

/*
 * It has no descriptor of the keeper's: a copy of the keeper's socket would hide the end of the
 * session.  And it dies with the keeper, as init does.
 */
_Noreturn void keeper_worker_main(const struct keeper *k, const struct keeper_child *c,
				  pid_t keeper_pid)
{
	const struct keeper_request *r = &c->request;
	const bool is_file = r->kind == KEEPER_WORKER_FILE || r->kind == KEEPER_WORKER_WRITE;
	struct cj_error err = { 0 };
	int own[4 + INTERPRETER_OWN] = { r->sock_fd, r->control_fd, r->stdin_fd, k->signal_fd };
	size_t count = 4;
	bool is_well = true;

	if (child_die_with_parent(-1, &err) < 0 || getppid() != keeper_pid)
		_exit(EXIT_FAILURE);
	if (k->interpreter && r->kind == KEEPER_WORKER_CELL)
		count += session_interpreter_own(k->interpreter, own + count);
	if (session_fork_keep(k->session, c->slot, own, count, &err) < 0)
		_exit(EXIT_FAILURE);
	/* only what ps(1) shows */
	(void)prctl(PR_SET_NAME, is_file ? "cejail-file" : "cejail-exec", 0, 0, 0);
	if (is_file)
		serve_file(k, c);
	else if (r->kind == KEEPER_WORKER_CELL)
		is_well = serve_cell(k, c);
	else
		serve_exec(k, c);
	_exit(is_well ? EXIT_SUCCESS : EXIT_FAILURE);
}
