/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keeper - one session with its keeper, its workers and a server that is a child: for fault
 * injection (tests/system/faults/inject.c).  Acts.
 *
 *	keeper ID PROFILE FILE [COMMAND [ARG...]]
 *
 * This process becomes the keeper of a session whose jail is called ID.  FILE is in the jail as
 * /mnt/posture.  The child, the "server", puts FILE there as /box/file, runs COMMAND twice, and
 * reads /box/kept.  Without a COMMAND it uses each operation on files instead.  It prints a line
 * for each answer, and the output of each exec; then it closes the session and prints how it ended.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "profiles/profile.h"
#include "runtime/base/files/fd.h"
#include "runtime/base/json/json.h"
#include "runtime/base/scope.h"
#include "runtime/service/keeper/keeper_channel.h"
#include "runtime/service/keeper/keeper.h"
#include "runtime/service/worker/work.h"

#define FILE_MAX  (64u << 20)
#define LINE_ROOM (1u << 20)

struct server {
	struct worker keeper;
	const char *file;
	char **command;
};

/* --- the server ---------------------------------------------------------------------- */

/* The next line, or NULL at the end. */
static char *read_line(FILE *file, char *line)
{
	if (!fgets(line, LINE_ROOM, file))
		return NULL;
	line[strcspn(line, "\n")] = '\0';
	return line;
}

static FILE *open_lines(int fd)
{
	(void)fcntl(fd, F_SETFL, 0); /* the server's end does not block; this one may wait */
	return fdopen(fd, "r");
}

static const char *text_of(const struct json_node *object, const char *key)
{
	const char *text = json_get_text(object, key);
	return text ? text : "";
}

static void tell(const char *what, const struct json_node *error)
{
	(void)printf("%s: %s: %s\n", what,
		     text_of(error, json_get_text(error, "stage") ? "stage" : "code"),
		     text_of(error, "message"));
}

/* A program that was killed may have written a part of a line. */
static void tell_lines(const struct json_node *stream)
{
	const char *text = text_of(stream, "text");
	const char *last = strrchr(text, '\n');
	(void)printf("%.*s", last ? (int)(last + 1 - text) : 0, text);
}

static void tell_result(const struct json_node *result)
{
	const struct json_node *error = json_get_typed(result, "error", JSON_OBJECT);

	const struct json_node *code = json_get_typed(result, "exit_code", JSON_NUMBER);
	(void)printf("exec: %s %s\n", text_of(result, "status"), code ? code->text : "");
	if (error)
		tell("exec", error);
	tell_lines(json_get(result, "stdout"));
	tell_lines(json_get(result, "stderr"));
	const struct json_node *warnings = json_get_typed(result, "warnings", JSON_ARRAY);
	for (const struct json_node *w = warnings ? warnings->child : NULL; w; w = w->next)
		(void)printf("warning: %s\n", w->text);
}

/* What a line of a worker is. */
enum said { SAID_NOTHING, SAID_ANSWER, SAID_END, SAID_ERROR };

static enum said tell_line(const char *line)
{
	auto_arena struct arena a = { 0 };
	const struct json_node *root = NULL;
	struct cj_error err = { 0 };

	if (json_parse("line", line, strlen(line), &a, &root, &err) < 0)
		(void)printf("bad line: %s\n", err.msg);
	const char *type = text_of(root, "type");
	const struct json_node *error = json_get_typed(root, "error", JSON_OBJECT);
	if (strcmp(type, "summary") == 0)
		return SAID_NOTHING;
	if (strcmp(type, "result") == 0)
		tell_result(json_get(root, "result"));
	else if (strcmp(type, "unready") == 0)
		tell("unready", root);
	else if (error)
		tell("file", error);
	else
		(void)printf("%s\n", line);
	if (error || strcmp(type, "unready") == 0)
		return SAID_ERROR;
	return strcmp(type, "end") == 0 ? SAID_END : SAID_ANSWER;
}

/* Prints what the lines of a worker say, at most `most`.  Those of a file that is read have an end.
 * False: there was none, or an error. */
static bool read_lines(FILE *lines, bool wants_end, unsigned most)
{
	auto_free char *room = malloc(LINE_ROOM);
	enum said last = SAID_NOTHING;
	char *line;

	while (room && most-- > 0 && (line = read_line(lines, room)) != NULL) {
		enum said now = tell_line(line);
		last = now != SAID_NOTHING ? now : last;
	}
	bool is_whole = last != SAID_NOTHING && (!wants_end || last != SAID_ANSWER);
	if (!is_whole)
		(void)printf("worker: ended without a line\n");
	return is_whole && last != SAID_ERROR;
}

static FILE *take_lines(struct worker *w)
{
	FILE *lines = open_lines(w->sock_fd);
	w->sock_fd = -1;
	return lines;
}

/* False: it could not be asked. */
static bool begin(const struct server *s, enum keeper_request_kind kind, enum job_kind job_kind,
		  struct blob body, const struct blob *input, struct worker *w)
{
	auto_fd int stdin_fd = -1;
	struct cj_error err = { 0 };
	const struct job job = { .kind = job_kind,
				 .id = "exec",
				 .body = (char *)body.bytes,
				 .body_size = body.size,
				 .may_name_host_paths = true };

	if (keeper_send_worker(&s->keeper, kind, "exec", w, input ? &stdin_fd : NULL, &err) < 0 ||
	    worker_send_job(w, &job, &err) < 0) {
		(void)printf("worker: %s\n", err.code == EPIPE ? "ended without a line" : err.msg);
		worker_close(w);
		return false;
	}
	if (input) {
		struct cj_error ignored = { 0 }; /* the worker has ended, and says why */
		(void)fcntl(stdin_fd, F_SETFL, 0);
		(void)!fd_write_all(stdin_fd, input->bytes, input->size, "the pipe", &ignored);
		cj_close(&stdin_fd);
	}
	return true;
}

static bool ask(const struct server *s, enum keeper_request_kind kind, enum job_kind job_kind,
		struct blob body, const struct blob *input, bool wants_end)
{
	struct worker w = WORKER_NULL;

	if (!begin(s, kind, job_kind, body, input, &w))
		return false;
	FILE *lines = take_lines(&w);
	bool is_well = read_lines(lines, wants_end, UINT_MAX);
	(void)fclose(lines);
	worker_close(&w);
	return is_well;
}

static struct blob body_of(const struct file_job *job)
{
	struct blob body = { 0 };
	struct cj_error err = { 0 };
	char *text = NULL;

	if (file_job_write(job, &text, &body.size, &err) < 0)
		(void)printf("file: %s\n", err.msg);
	body.bytes = text;
	return body;
}

static bool ask_file(const struct server *s, const struct file_job *job, const struct blob *input)
{
	const struct blob body = body_of(job);
	bool is_change = input || job->op == FILE_MKDIR;

	bool is_well = ask(s, is_change ? KEEPER_WORKER_WRITE : KEEPER_WORKER_FILE, JOB_FILE, body,
			   input, job->op == FILE_GET);
	free((char *)body.bytes);
	return is_well;
}

static void put_file(const struct server *s)
{
	struct arena a = { 0 };
	struct cj_error err = { 0 };
	const struct file_job job = { .op = FILE_PUT,
				      .path = "/box/file",
				      .to = "",
				      .max_bytes = FILE_MAX,
				      .is_executable = true };
	char *text = NULL;
	size_t size = 0;

	if (fd_read_file(AT_FDCWD, s->file, FILE_MAX, &a, &text, &size, &err) < 0)
		(void)printf("server: %s\n", err.msg);
	(void)ask_file(s, &job, &(struct blob){ text, size });
	arena_fini(&a);
}

static void run_command(const struct server *s)
{
	auto_json_writer struct json_writer *w = json_writer_create(false);
	struct cj_error err = { 0 };
	struct blob body = { 0 };

	json_open_object(w);
	json_put_key(w, "command");
	json_open_array(w);
	for (char **word = s->command; *word; word++)
		json_put_string(w, *word);
	json_close_array(w);
	json_close_object(w);
	if (json_writer_take(w, &body, &err) == 0)
		(void)ask(s, KEEPER_WORKER_EXEC, JOB_EXEC, body, NULL, false);
}

static void use_programs(const struct server *s)
{
	const struct file_job get = {
		.op = FILE_GET, .path = "/box/kept", .to = "", .max_bytes = FILE_MAX
	};

	put_file(s);
	run_command(s);
	run_command(s);
	(void)ask_file(s, &get, NULL);
}

/* The directory sees a file come; then it is removed, and the watch has an end.  Without these
 * changes nothing would come, and so nothing is awaited. */
static void watch_directory(const struct server *s)
{
	const struct file_job watch = { .op = FILE_WATCH, .path = "/box/seen", .to = "" };
	const struct file_job move = { .op = FILE_RENAME,
				       .path = "/box/dir/small",
				       .to = "/box/seen/moved" };
	const struct file_job remove = { .op = FILE_REMOVE, .path = "/box/seen", .to = "" };
	const struct blob body = body_of(&watch);
	struct worker w = WORKER_NULL;

	if (begin(s, KEEPER_WORKER_FILE, JOB_FILE, body, NULL, &w)) {
		FILE *lines = take_lines(&w);
		if (read_lines(lines, false, 1) && ask_file(s, &move, NULL) &&
		    read_lines(lines, false, 1) && ask_file(s, &remove, NULL))
			(void)read_lines(lines, true, UINT_MAX);
		(void)fclose(lines);
		worker_close(&w);
	}
	free((char *)body.bytes);
}

static void use_files(const struct server *s)
{
	static const struct blob small = { "small\n", 6 };
	static const struct file_job puts[] = {
		{ .op = FILE_PUT, .path = "/box/dir/small", .to = "", .max_bytes = FILE_MAX },
		{ .op = FILE_PUT, .path = "/box/dir/a/b/c/deep", .to = "", .max_bytes = FILE_MAX },
	};
	static const struct file_job jobs[] = {
		{ .op = FILE_MKDIR, .path = "/box/seen", .to = "" },
		{ .op = FILE_LIST, .path = "/box", .to = "", .depth = 8 },
		{ .op = FILE_STAT, .path = "/box/dir/small", .to = "" },
		{ .op = FILE_GET, .path = "/box/dir/small", .to = "", .max_bytes = FILE_MAX },
		{ .op = FILE_PART,
		  .path = "/box/dir/small",
		  .to = "",
		  .offset = 1,
		  .max_bytes = FILE_MAX },
	};
	const struct file_job remove = { .op = FILE_REMOVE, .path = "/box/dir", .to = "" };

	for (size_t i = 0; i < sizeof(puts) / sizeof(puts[0]); i++)
		(void)ask_file(s, &puts[i], &small);
	for (size_t i = 0; i < sizeof(jobs) / sizeof(jobs[0]); i++)
		(void)ask_file(s, &jobs[i], NULL);
	watch_directory(s);
	(void)ask_file(s, &remove, NULL);
}

static enum keeper_line_type next_line(FILE *lines, char *room, struct keeper_line *out)
{
	char *line;

	*out = (struct keeper_line){ .type = KEEPER_LINE_NONE };
	while ((line = read_line(lines, room)) != NULL) {
		keeper_line_read(line, strlen(line), out);
		if (out->type == KEEPER_LINE_LIVES || out->type == KEEPER_LINE_ENDED)
			return out->type;
	}
	return KEEPER_LINE_NONE;
}

static void tell_end(enum keeper_line_type type, const struct keeper_line *line)
{
	if (type != KEEPER_LINE_ENDED)
		(void)printf("ended: without a line\n");
	else if (line->reason == SESSION_CLOSED)
		(void)printf("ended: closed\n");
	else
		(void)printf("ended: %s: %s: %s\n", session_ends[line->reason].name, line->stage,
			     line->message);
}

static int serve(struct server *s)
{
	FILE *lines = open_lines(s->keeper.sock_fd);
	char *room = malloc(LINE_ROOM);
	struct keeper_line line;
	struct cj_error err = { 0 };
	char body[512];

	if (!lines || !room)
		return 99;
	(void)snprintf(body, sizeof(body),
		       "{\"profile\":\"base\",\"network\":\"none\","
		       "\"ro_bind\":[\"%s:/mnt/posture\"]}",
		       s->file);
	const struct job job = { .kind = JOB_SESSION,
				 .id = "the-session",
				 .body = body,
				 .body_size = strlen(body),
				 .may_name_host_paths = true };
	if (worker_send_job(&s->keeper, &job, &err) < 0)
		return 99;
	enum keeper_line_type type = next_line(lines, room, &line);
	if (type == KEEPER_LINE_LIVES) {
		(void)printf("lives: %s\n", line.is_isolated ? "isolated" : "not isolated");
		if (s->command[0])
			use_programs(s);
		else
			use_files(s);
		cj_close(&s->keeper.control_fd);
		type = next_line(lines, room, &line);
	}
	tell_end(type, &line);
	(void)fflush(stdout);
	return 0;
}

/* --- the keeper ---------------------------------------------------------------------- */

static void keep(struct worker *far, const char *id, const char *profile)
{
	struct work w = { .profile = profile,
			  .tier = TIER_COLD,
			  .sock_fd = far->sock_fd,
			  .control_fd = far->control_fd,
			  .stdin_fd = -1 };
	struct cj_error early = { 0 };
	sigset_t term;

	(void)signal(SIGPIPE, SIG_IGN);
	sigemptyset(&term);
	sigaddset(&term, SIGTERM);
	(void)sigprocmask(SIG_BLOCK, &term, NULL);
	int signal_fd = signalfd(-1, &term, SFD_CLOEXEC);
	(void)snprintf(w.jail_name, sizeof(w.jail_name), "%s", id);
	config_init(&w.config);
	if (signal_fd < 0)
		(void)!cj_fail(&early, errno, "open a descriptor for signals");
	else if (profile_load(&w.config, profile, &early) < 0)
		cj_stage(&early, "profile");
	if (work_await_job(&w, signal_fd) && work_read_job(&w, &early) == 0)
		keeper_main(&w, signal_fd, &early);
	cj_close(&w.sock_fd);
	jail_destroy(&w.driver.jail);
}

int main(int argc, char **argv)
{
	struct worker near = WORKER_NULL, far = WORKER_NULL;
	struct cj_error err = { 0 };

	if (argc < 4)
		return 99;
	if (worker_open_ends(&near, &far.sock_fd, &far.control_fd, false, &err) < 0)
		return 99;
	pid_t pid = fork();
	if (pid < 0)
		return 99;
	if (pid == 0) {
		struct server s = { near, argv[3], argv + 4 };
		(void)signal(SIGPIPE, SIG_IGN);
		worker_close(&far);
		_exit(serve(&s));
	}
	worker_close(&near);
	keep(&far, argv[1], argv[2]);
	return 0;
}
