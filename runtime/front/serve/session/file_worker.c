/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One operation on a file of a session.  Acts.
 *
 * A file is read from outside while untrusted programs run: jail/session/files/session_files.h has
 * the rules.  It is written inside, by a process that has the rights of a program (STEP_INPUT), as
 * the input of a "program" that can't be executed.  So its failure to execute says that the file
 * is written, and no protocol of its own is needed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "profiles/plan/plan.h"
#include "runtime/base/child.h"
#include "runtime/base/files/fd.h"
#include "runtime/base/json/json.h"
#include "runtime/base/scope.h"
#include "runtime/base/text.h"
#include "runtime/front/report/result.h"
#include "runtime/front/serve/session/exec_worker.h"
#include "runtime/front/serve/session/file_job.h"
#include "runtime/jail/jail.h"
#include "runtime/jail/session/files/session_files.h"
#include "runtime/jail/session/files/session_remove.h"

#define LIST_DEPTH   8
#define LIST_ENTRIES 1000
/* Opening a file may have to wait for nothing, but a machine may be slow. */
#define LIFE_MS 60000

struct file_work {
	const struct exec_order *order;
	const struct jail *jail;
	struct work work; /* its job, the arena and the socket */
	struct file_job job;
};

/* --- operations: each writes its result when nothing of it can fail any more ----------- */

static void open_result(struct json_writer *w)
{
	json_put_key(w, "result");
	json_open_object(w);
}

static int get(struct file_work *f, struct json_writer *w, struct cj_error *err)
{
	uint64_t max = f->job.max_bytes;
	struct session_content content = { 0 };

	if (max == 0 || max > FILE_BYTES_MAX)
		max = FILE_BYTES_MAX;
	int rc = f->job.is_part ? session_file_read_part(f->jail, f->job.path, f->job.offset,
							 (size_t)max, &f->work.arena, &content, err)
				: session_file_read(f->jail, f->job.path, (size_t)max,
						    &f->work.arena, &content, err);
	if (rc < 0)
		return rc;
	char *text = arena_alloc(&f->work.arena, 4 * ((content.size + 2) / 3) + 1);
	if (!text)
		return cj_fail(err, ENOMEM, "send '%s'", f->job.path);
	(void)text_base64(content.bytes, content.size, text);
	open_result(w);
	json_member_u64(w, "bytes", f->job.is_part ? content.file.bytes : content.size);
	if (f->job.is_part)
		json_member_u64(w, "offset", f->job.offset);
	json_member_text(w, "base64", text);
	json_close_object(w);
	return 0;
}

static void put_entry(struct json_writer *w, const struct session_file *file)
{
	const struct timespec mtime = { .tv_sec = (time_t)(file->mtime_ms / 1000),
					.tv_nsec = (long)(file->mtime_ms % 1000) * 1000000 };
	char mode[8];

	json_open_object(w);
	json_member_text(w, "path", file->path);
	json_member_text(w, "type",
			 file->kind == SESSION_FILE_FIFO || file->kind == SESSION_FILE_SOCKET
			     ? "other"
			     : session_file_kind_names[file->kind]);
	json_member_u64(w, "bytes", file->bytes);
	(void)snprintf(mode, sizeof(mode), "%04o", file->mode & 07777);
	json_member_text(w, "mode", mode);
	result_put_time(w, "mtime", &mtime);
	json_close_object(w);
}

static int list(struct file_work *f, struct json_writer *w, struct cj_error *err)
{
	const struct session_list_request request = { f->job.path, LIST_DEPTH, LIST_ENTRIES };
	struct session_listing listing = { 0 };

	if (session_file_list(f->jail, &request, &f->work.arena, &listing, err) < 0)
		return -err->code;
	open_result(w);
	json_put_key(w, "entries");
	json_open_array(w);
	for (size_t i = 0; i < listing.count; i++)
		put_entry(w, &listing.items[i]);
	json_close_array(w);
	json_member_bool(w, "truncated", listing.is_truncated);
	json_close_object(w);
	return 0;
}

static int remove_file(struct file_work *f, struct json_writer *w, struct cj_error *err)
{
	if (session_file_remove(f->jail, f->job.path, true, err) < 0)
		return -err->code;
	open_result(w);
	json_close_object(w);
	return 0;
}

/* execve(2) of a directory fails in any jail. */
static const char *const no_program[] = { "/" };

static int wait_for_put(struct jail *view, const struct program *program, struct cj_error *err)
{
	const struct jail_io io = { .stdin_fd = -1,
				    .stdout_fd = -1,
				    .stderr_fd = -1,
				    .tty_fd = -1,
				    .room_fd = -1,
				    .hangup_fd = -1 };
	struct outcome outcome;

	outcome_init(&outcome, program->id, 0);
	int rc = jail_start(view, program, &io, err);
	if (rc == 0)
		rc = jail_wait(view, &outcome, err);
	if (rc == 0 && outcome.exec_errno == 0)
		rc = cj_fail(err, EIO, "write a file: it was executed");
	outcome_fini(&outcome);
	return rc;
}

static int put(struct file_work *f, struct json_writer *w, struct cj_error *err)
{
	const struct blob *content = &f->job.content;
	const struct copy_spec copy = { .target = f->job.path,
					.bytes = content->size > 0 ? content->bytes : "",
					.size = content->size,
					.is_executable = f->job.is_executable };
	const struct program program = { .argv = { (const char **)no_program, 1 },
					 .workdir = "/",
					 .files = &copy,
					 .nfiles = 1 };
	struct jail *view = NULL;

	if (content->size > FILE_BYTES_MAX)
		return cj_reject_as(err, EFBIG, "'%s' has more than %u bytes", f->job.path,
				    FILE_BYTES_MAX);
	/* the jail's user may write elsewhere, too; a caller of the API may not */
	if (strncmp(f->job.path, "/box/", 5) != 0 && strncmp(f->job.path, "/tmp/", 5) != 0)
		return cj_reject_as(err, EXDEV, "'%.64s' is not below /box or /tmp", f->job.path);
	if (session_exec_open(f->order->session, f->order->slot, "put", &view, err) < 0)
		return -err->code;
	int rc = wait_for_put(view, &program, err);
	jail_destroy(&view);
	if (rc < 0)
		return rc;
	open_result(w);
	json_member_u64(w, "bytes", content->size);
	json_close_object(w);
	return 0;
}

static int (*const operations[FILE_OP_COUNT])(struct file_work *f, struct json_writer *w,
					      struct cj_error *err) = {
	[FILE_GET] = get,
	[FILE_PUT] = put,
	[FILE_LIST] = list,
	[FILE_REMOVE] = remove_file,
};

/* --- the answer ------------------------------------------------------------------ */

/* The kind of worker decided whether it has a slot in the jail. */
static int carry_out(struct file_work *f, struct json_writer *w, struct cj_error *err)
{
	bool is_put = f->job.op == FILE_PUT;

	if (is_put != (f->order->request->worker == SESSION_WORKER_PUT))
		return cj_reject_as(err, EPROTO, "a worker of another kind was asked for");
	return operations[f->job.op](f, w, err);
}

static void put_error(struct json_writer *w, const struct cj_error *why)
{
	json_put_key(w, "error");
	json_open_object(w);
	json_member_text(w, "code", session_file_fault(why->code));
	json_member_text(w, "message", why->msg);
	json_close_object(w);
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
	return carry_out(f, w, err);
}

static int answer(struct file_work *f, const struct cj_error *early, struct cj_error *err)
{
	auto_json_writer struct json_writer *w = json_writer_create(false);
	struct cj_error why = *early;
	const char *text = NULL;
	size_t size = 0;

	if (!w)
		return cj_fail(err, ENOMEM, "write the answer of a file worker");
	json_open_object(w);
	json_member_text(w, "type", "file");
	if (why.code != 0 || operate(f, w, &why) < 0)
		put_error(w, &why);
	json_close_object(w);
	if (json_writer_take(w, &text, &size, err) < 0 ||
	    fd_write_all(f->work.sock_fd, text, size, "the server", err) < 0)
		return -err->code;
	return fd_write_all(f->work.sock_fd, "\n", 1, "the server", err);
}

void file_worker_run(const struct exec_order *order)
{
	struct file_work f = {
		.order = order,
		.jail = order->keeper->driver.jail,
		.work = { .sock_fd = order->request->sock_fd,
			  .control_fd = order->request->control_fd },
	};
	struct cj_error early = { 0 }, ignored = { 0 }; /* the server sees the socket end */

	/* Nothing here is worth waiting for at the end of the session. */
	if (child_unblock_signals(&early) == 0)
		(void)!work_limit_life(LIFE_MS, &early);
	if (!work_await_job(&f.work, order->signal_fd))
		return;
	if (work_read_job(&f.work, &early) < 0 && early.code == EPIPE)
		return;
	(void)!answer(&f, &early, &ignored);
}
