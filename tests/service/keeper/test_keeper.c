/* SPDX-License-Identifier: Apache-2.0 */
/* WRAP: sys_clone3 sys_pidfd_open clock_ms jail_destroy */
/*
 * The keeper of a session and its workers, as the server sees them: each exec has its own result,
 * and nothing outlives the session, wherever it ends.
 */
#include "runtime/service/keeper/keeper.h"

#include <semaphore.h>
#include <sys/mman.h>

#include "runtime/base/text.h"
#include "runtime/service/keeper/keeper_channel.h"
#include "tests/service/worker/workers.h"

static int *forks_left;     /* shared with the keeper; below 0: as many as one likes */
static bool *refuses_pidfd; /* shared with the keeper: its next one, as of a full table */

static bool is_refused(void)
{
	bool is_it = refuses_pidfd && *refuses_pidfd;

	if (is_it)
		*refuses_pidfd = false;
	return is_it;
}

pid_t __real_sys_clone3(const struct clone_args *args);
pid_t __wrap_sys_clone3(const struct clone_args *args);
pid_t __wrap_sys_clone3(const struct clone_args *args)
{
	bool is_full = (args->flags & CLONE_PIDFD) && is_refused();

	if (is_full || (forks_left && *forks_left == 0)) {
		errno = is_full ? EMFILE : EAGAIN;
		return -1;
	}
	return __real_sys_clone3(args);
}

/* For a process that runs already, the failure comes when it has done its work. */
int __real_sys_pidfd_open(pid_t pid);
int __wrap_sys_pidfd_open(pid_t pid);
int __wrap_sys_pidfd_open(pid_t pid)
{
	siginfo_t ignored;

	if (!is_refused())
		return __real_sys_pidfd_open(pid);
	(void)waitid(P_PID, (id_t)pid, &ignored, WEXITED | WNOWAIT);
	errno = EMFILE;
	return -1;
}

static uint64_t *clock_ahead_ms; /* shared with the keeper and its workers */

uint64_t __real_clock_ms(void);
uint64_t __wrap_clock_ms(void);
uint64_t __wrap_clock_ms(void)
{
	return __real_clock_ms() + (clock_ahead_ms ? *clock_ahead_ms : 0);
}

static const struct worker_life life = { .main = worker_main, .keep_session = keeper_main };

static bool *has_to_wait; /* shared with the keeper: it may destroy its jail after may_destroy */
static sem_t *may_destroy;

void __real_jail_destroy(struct jail **jail);
void __wrap_jail_destroy(struct jail **jail);
void __wrap_jail_destroy(struct jail **jail)
{
	while (has_to_wait && *has_to_wait && sem_wait(may_destroy) < 0)
		;
	__real_jail_destroy(jail);
}

/* --- a session, as the server sees it --- */

struct side {
	struct spawner spawner;
	struct worker keeper;
	struct runs runs;
	char line[4096]; /* the keeper's last one */
};

/* False: end of file. */
static bool read_line(int fd, char *out, size_t room)
{
	for (size_t size = 0; size < room; size++) {
		assert_true(wait_readable(fd));
		ssize_t got = read(fd, out + size, 1);
		if (got <= 0)
			return false;
		if (out[size] == '\n') {
			out[size] = '\0';
			return true;
		}
	}
	fail_msg("a line is too long");
	return false;
}

/* The keeper's next line that is no status. */
static struct keeper_line next_line(struct side *side)
{
	struct keeper_line line;

	do {
		if (!read_line(side->keeper.sock_fd, side->line, sizeof(side->line)))
			fail_msg("the keeper ended without a line");
		keeper_line_read(side->line, strlen(side->line), &line);
	} while (line.type == KEEPER_LINE_STATUS);
	return line;
}

static bool has_session_tools; /* what the server says of each exec */

static void send_kind(struct worker *w, enum job_kind kind, const char *body, size_t size,
		      bool wants_events)
{
	struct cj_error err = { 0 };
	struct job job = {
		.kind = kind,
		.trace = { "req-7", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "" },
		.wants_events = wants_events,
		.session_tools = has_session_tools,
		.body = (char *)body,
		.body_size = size,
	};

	(void)snprintf(job.id, sizeof(job.id), "%s",
		       kind == JOB_SESSION ? "the-session" : "the-run");
	/* EPIPE: it was refused already, and its line says why */
	if (worker_send_job(w, &job, &err) < 0 && err.code != EPIPE)
		fail_msg("%s", err.msg);
}

static struct side asked(enum tier tier, const char *name, const char *body)
{
	struct side side = { .spawner = started() };

	side.keeper = asked_for(&side.spawner, name, tier);
	send_kind(&side.keeper, JOB_SESSION, body, strlen(body), false);
	assert_true(read_line(side.keeper.sock_fd, side.line, sizeof(side.line)));
	assert_non_null(strstr(side.line, "\"ready\""));
	return side;
}

static struct side opened_by(enum tier tier)
{
	struct side side = asked(tier, profile, "{\"profile\":\"test\"}");

	if (next_line(&side).type != KEEPER_LINE_LIVES)
		fail_msg("no session: %s", side.line);
	side.runs = await_runs(1);
	return side;
}

static struct side opened(void)
{
	return opened_by(TIER_COLD);
}

static void assert_ended(struct side *side, enum session_end reason)
{
	char byte;
	struct keeper_line line = next_line(side);

	if (line.type != KEEPER_LINE_ENDED || line.reason != reason)
		fail_msg("not '%s': %s", session_ends[reason].name, side->line);
	assert_true(wait_readable(side->keeper.sock_fd));
	assert_true(read(side->keeper.sock_fd, &byte, 1) <= 0);
}

static void close_side(struct side *side)
{
	worker_close(&side->keeper);
	spawner_end(&side->spawner);
	assert_nothing_left(&side->runs);
}

static void end_orderly(struct side *side)
{
	cj_close(&side->keeper.control_fd);
	assert_ended(side, SESSION_CLOSED);
	close_side(side);
}

static struct worker asked_exec(struct side *side, const char *id, const char *body,
				bool wants_events)
{
	struct worker w = WORKER_NULL;
	struct cj_error err = { 0 };

	if (keeper_send_worker(&side->keeper, KEEPER_WORKER_EXEC, id, &w, NULL, &err) < 0)
		fail_msg("%s", err.msg);
	send_kind(&w, JOB_EXEC, body, strlen(body), wants_events);
	return w;
}

#define SHELL(script) "{\"command\":[\"sh\",\"-c\",\"" script "\"]}"

static struct said run_exec(struct side *side, const char *body)
{
	struct worker w = asked_exec(side, "x", body, false);
	return hear(&w);
}

static void assert_output(struct said *said, const char *text)
{
	assert_status(said, "exited");
	const char *got = word(json_get(result_of(said), "stdout"), "text");
	if (strcmp(got, text) != 0)
		fail_msg("not '%s': %s", text, said->text);
	arena_fini(&said->arena);
}

/* --- execs --- */

static void execs_share_the_files_of_the_session(void **state)
{
	(void)state;
	static const enum tier tiers[] = { TIER_COLD, TIER_JAIL };

	for (size_t i = 0; i < 2; i++) {
		struct side side = opened_by(tiers[i]);
		struct said said = run_exec(&side, SHELL("echo kept > /box/a; echo first"));
		assert_string_equal(word(result_of(&said), "session"), "the-session");
		assert_output(&said, "first\n");
		said = run_exec(&side, SHELL("cat /box/a"));
		assert_output(&said, "kept\n");
		end_orderly(&side);
	}
}

static void the_settings_of_an_exec_are_the_sessions_and_its_own(void **state)
{
	(void)state;
	struct side side = asked(TIER_COLD, profile,
				 "{\"profile\":\"test\",\"env\":{\"A\":\"session\"},"
				 "\"lease\":\"5m\"}");

	assert_int_equal(next_line(&side).type, KEEPER_LINE_LIVES);
	struct said said = run_exec(&side, SHELL("echo $A"));
	assert_output(&said, "session\n");
	said = run_exec(&side,
			"{\"command\":[\"sh\",\"-c\",\"echo $A $PWD\"],\"env\":{\"A\":\"its\"},"
			"\"workdir\":\"/tmp\"}");
	assert_output(&said, "its /tmp\n");
	said = run_exec(&side, SHELL("echo $A"));
	assert_output(&said, "session\n");
	said = run_exec(&side, "{\"command\":[\"true\"],\"memory\":\"77M\"}");
	assert_status(&said, "setup_error");
	assert_non_null(strstr(said.text, "memory"));
	arena_fini(&said.arena);
	end_orderly(&side);
}

static void an_exec_has_the_tools_of_its_session_where_the_server_says_so(void **state)
{
	(void)state;
#define LIST "\"command\":[\"sh\",\"-c\",\"cat /box/tools.json; echo ${CEJAIL_CALLS_FD-none}\"]"
	struct side side =
	    asked(TIER_COLD, profile, "{\"profile\":\"test\",\"tools\":[{\"name\":\"search\"}]}");

	assert_int_equal(next_line(&side).type, KEEPER_LINE_LIVES);
	side.runs = await_runs(1);
	struct said said = run_exec(&side, "{" LIST "}");
	assert_output(&said, "none\n");
	has_session_tools = true;
	said = run_exec(&side, "{" LIST "}");
	assert_output(&said, "{\"tools\":[{\"name\":\"search\"}],\"names\":[\"search\"]}4\n");
	said = run_exec(&side, "{\"tools\":[{\"name\":\"other\"}]," LIST "}");
	assert_output(&said, "{\"tools\":[{\"name\":\"other\"}],\"names\":[\"other\"]}4\n");
	said = run_exec(&side, "{\"tools\":[]," LIST "}");
	assert_output(&said, "{\"tools\":[],\"names\":[]}4\n");
	has_session_tools = false;
	end_orderly(&side);
}

static void code_and_input_reach_each_exec(void **state)
{
	(void)state;
	struct side side = opened();

	for (int i = 0; i < 3; i++) {
		struct said said =
		    run_exec(&side, "{\"code\":\"cat; echo $0\",\"stdin\":\"in\\n\"}");
		assert_output(&said, "in\n/box/main\n");
	}
	end_orderly(&side);
}

static void sixteen_execs_run_at_once(void **state)
{
	(void)state;
	enum { MANY = 16 };
	struct side side = opened();
	struct worker w[MANY];
	char body[256], id[16], wanted[16];
	static const char counts[] = "while [ $(ls /tmp | grep -c begun) -lt 16 ]; do sleep 0.2; "
				     "done; touch /tmp/all;";

	/* Each waits until all have begun; the last one counts them. */
	for (int i = 0; i < MANY; i++) {
		(void)snprintf(id, sizeof(id), "e%d", i);
		(void)snprintf(body, sizeof(body),
			       "{\"code\":\"touch /tmp/begun.%d; %s until [ -e /tmp/all ]; do "
			       "sleep 0.2; done; echo %d\"}",
			       i, i < MANY - 1 ? "" : counts, i);
		w[i] = asked_exec(&side, id, body, false);
	}
	for (int i = 0; i < MANY; i++) {
		struct said said = hear(&w[i]);
		(void)snprintf(wanted, sizeof(wanted), "%d\n", i);
		assert_output(&said, wanted);
	}
	end_orderly(&side);
}

static void events_of_an_exec_come_as_those_of_a_run(void **state)
{
	(void)state;
	struct side side = opened();
	struct worker w = asked_exec(&side, "x", SHELL("printf out"), true);
	struct said said = hear(&w);

	assert_string_equal(word(said.line[0], "type"), "start");
	assert_string_equal(word(said.line[1], "type"), "stdout");
	assert_output(&said, "out");
	end_orderly(&side);
}

static void closing_its_control_pipe_cancels_one_exec(void **state)
{
	(void)state;
	struct side side = opened();
	struct worker stays = asked_exec(
	    &side, "stays", SHELL("until [ -e /box/go ]; do sleep 0.05; done; echo stayed"), false);
	struct worker goes = asked_exec(&side, "goes", SHELL("echo begun; sleep 1000"), true);

	await_output(&goes, "begun");
	cj_close(&goes.control_fd);
	struct said said = hear(&goes);
	assert_status(&said, "cancelled");
	arena_fini(&said.arena);
	said = run_exec(&side, SHELL("touch /box/go; echo ok"));
	assert_output(&said, "ok\n");
	said = hear(&stays);
	assert_output(&said, "stayed\n");
	end_orderly(&side);
}

static void a_signal_reaches_the_main_process_even_before_it_runs(void **state)
{
	(void)state;
	struct side side = opened();
	struct cj_error err = { 0 };
	struct worker w = asked_exec(&side, "x", SHELL("sleep 1000"), false);

	assert_int_equal(keeper_send_signal(&side.keeper, "none", SIGINT, &err), 0);
	assert_int_equal(keeper_send_signal(&side.keeper, "x", SIGUSR1, &err), 0);
	struct said said = hear(&w);
	assert_status(&said, "signaled");
	assert_int_equal(summary_of(&said).totals.signal, SIGUSR1);
	arena_fini(&said.arena);
	end_orderly(&side);
}

static void an_open_input_is_written_in_parts(void **state)
{
	(void)state;
	static const char body[] = "{\"command\":[\"cat\"],\"open_stdin\":true}";
	struct side side = opened();
	struct worker w = WORKER_NULL;
	struct cj_error err = { 0 };
	int stdin_fd = -1;

	assert_int_equal(
	    keeper_send_worker(&side.keeper, KEEPER_WORKER_EXEC, "x", &w, &stdin_fd, &err), 0);
	send_kind(&w, JOB_EXEC, body, strlen(body), true);
	assert_int_equal(write(stdin_fd, "one ", 4), 4);
	await_output(&w, "one ");
	assert_int_equal(write(stdin_fd, "two", 3), 3);
	cj_close(&stdin_fd);
	struct said said = hear(&w);
	assert_output(&said, "one two");
	end_orderly(&side);
}

/* --- files --- */

static struct file_answer ask(struct side *side, struct file_job job, const struct blob *content,
			      struct worker *w, struct arena *a)
{
	struct cj_error err = { 0 };
	struct file_answer answer = { 0 };
	auto_free char *body = NULL;
	auto_fd int pipe_fd = -1;
	size_t size = 0;
	char *line = arena_alloc(a, 1 << 20);

	job.to = "";
	job.max_bytes = 1 << 20;
	job.depth = FILE_LIST_DEPTH;
	assert_int_equal(file_job_write(&job, &body, &size, &err), 0);
	assert_int_equal(keeper_send_worker(&side->keeper,
					    content ? KEEPER_WORKER_WRITE : KEEPER_WORKER_FILE, "",
					    w, content ? &pipe_fd : NULL, &err),
			 0);
	send_kind(w, JOB_FILE, body, size, false);
	if (content)
		/* EPIPE: it was refused already, and its answer says why */
		if (write(pipe_fd, content->bytes, content->size) < 0)
			assert_int_equal(errno, EPIPE);
	cj_close(&pipe_fd);
	assert_true(read_line(w->sock_fd, line, 1 << 20));
	if (file_answer_read(line, strlen(line), a, &answer, &err) < 0)
		fail_msg("%s: %s", err.msg, line);
	return answer;
}

static struct file_answer operate(struct side *side, const struct file_job *job, struct arena *a)
{
	struct worker w = WORKER_NULL;
	struct file_answer answer = ask(side, *job, NULL, &w, a);

	worker_close(&w);
	return answer;
}

static struct file_answer put_bytes(struct side *side, const char *path, struct blob content,
				    struct arena *a)
{
	struct worker w = WORKER_NULL;
	const struct file_job job = { .op = FILE_PUT, .path = path };
	struct file_answer answer = ask(side, job, &content, &w, a);

	worker_close(&w);
	return answer;
}

static void assert_holds(struct side *side, const char *path, struct blob content)
{
	auto_arena struct arena a = { 0 };
	struct worker w = WORKER_NULL;
	const struct file_job job = { .op = FILE_GET, .path = path };
	struct file_answer got = ask(side, job, NULL, &w, &a);
	char decoded[64], line[256];
	const struct json_node *root = NULL;
	struct cj_error err = { 0 };
	size_t size = 0;

	if (!got.is_ok)
		fail_msg("get: %s", got.message);
	assert_true(read_line(w.sock_fd, line, sizeof(line)));
	if (content.size > 0) {
		assert_int_equal(json_parse("line", line, strlen(line), &a, &root, &err), 0);
		const char *text = word(root, "base64");
		assert_int_equal(text_base64_decode(text, strlen(text), decoded, &size), 0);
		assert_int_equal(size, content.size);
		assert_memory_equal(decoded, content.bytes, size);
		assert_true(read_line(w.sock_fd, line, sizeof(line)));
	}
	assert_string_equal(line, "{\"type\":\"end\"}");
	worker_close(&w);
}

static void a_file_is_put_got_listed_and_removed(void **state)
{
	(void)state;
	static const char bytes[] = "\0\n\xff binary \x80";
	auto_arena struct arena a = { 0 };
	struct side side = opened();
	struct blob content = { bytes, sizeof(bytes) };
	const struct file_job get = { .op = FILE_GET, .path = "/box/new/dir/a" };
	const struct file_job list = { .op = FILE_LIST, .path = "/box/new" };
	const struct file_job removed = { .op = FILE_REMOVE, .path = "/box/new" };

	for (int i = 0; i < 2; i++) { /* the second one replaces the first */
		struct file_answer got = put_bytes(&side, get.path, content, &a);
		if (!got.is_ok)
			fail_msg("put: %s", got.message);
		assert_holds(&side, get.path, content);
		content = (struct blob){ "", 0 };
	}
	struct file_answer listed = operate(&side, &list, &a);
	assert_true(listed.is_ok);
	const struct json_node *entries = json_get(listed.result, "entries");
	assert_int_equal(entries->count, 2);
	assert_string_equal(word(entries->child, "path"), "/box/new/dir");
	assert_string_equal(word(entries->child, "type"), "directory");
	assert_true(operate(&side, &removed, &a).is_ok);
	struct file_answer gone = operate(&side, &get, &a);
	assert_false(gone.is_ok);
	assert_int_equal(gone.error, FILE_NOT_FOUND);
	struct said said = run_exec(&side, SHELL("ls /box"));
	assert_output(&said, "out\n");
	end_orderly(&side);
}

static void a_file_outside_or_of_another_kind_is_refused(void **state)
{
	(void)state;
	auto_arena struct arena a = { 0 };
	struct side side = opened();
	struct said said = run_exec(&side, SHELL("mkfifo /box/fifo; ln -s /etc /box/link; "
						 "ln -s /etc/passwd /box/file; mkdir /box/d"));
	arena_fini(&said.arena);
	static const struct {
		const char *path;
		enum file_error error;
	} rows[] = {
		{ "/etc/passwd", FILE_OUTSIDE },        { "/box/../etc/passwd", FILE_OUTSIDE },
		{ "/box/link/passwd", FILE_NOT_FOUND }, { "/box/file", FILE_NOT_REGULAR },
		{ "/box/fifo", FILE_NOT_REGULAR },      { "/box/d", FILE_NOT_REGULAR },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct file_job get = { .op = FILE_GET, .path = rows[i].path };
		struct file_answer answer = operate(&side, &get, &a);
		assert_false(answer.is_ok);
		if (answer.error != rows[i].error)
			fail_msg("%s: %s: %s", rows[i].path, file_error_names[answer.error],
				 answer.message);
	}
	assert_int_equal(put_bytes(&side, "/etc/x", (struct blob){ "x", 1 }, &a).error,
			 FILE_OUTSIDE);
	end_orderly(&side);
}

/* --- what fails --- */

static void assert_unready(struct worker *w, const char *why)
{
	struct said said = hear(w);
	assert_int_equal(said.lines, 1);
	assert_string_equal(word(said.line[0], "type"), "unready");
	assert_non_null(strstr(word(said.line[0], "message"), why));
	arena_fini(&said.arena);
}

static void a_session_that_cannot_be_built_says_why(void **state)
{
	(void)state;
	static const struct {
		const char *profile, *body, *stage;
		bool is_callers_own;
	} rows[] = {
		{ "none-such", "{\"profile\":\"none-such\"}", "profile", false },
		{ NULL, "{\"profile\":", "options", true },
		{ NULL, "{\"profile\":\"test\",\"command\":[\"true\"]}", "options", true },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct side side =
		    asked(TIER_COLD, rows[i].profile ? rows[i].profile : profile, rows[i].body);
		struct keeper_line line = next_line(&side);
		assert_int_equal(line.type, KEEPER_LINE_ENDED);
		assert_int_equal(line.reason, SESSION_FAILED);
		assert_string_equal(line.stage, rows[i].stage);
		assert_int_equal(line.is_callers_own, rows[i].is_callers_own);
		close_side(&side);
	}
}

static void an_exec_that_fails_leaves_the_session(void **state)
{
	(void)state;
	static const struct {
		const char *body, *stage;
	} rows[] = {
		{ "", "options" },
		{ "{\"command\":[\"true\"],\"lease\":\"1m\"}", "options" },
		{ "{\"command\":[\"/no/such/program\"]}", "exec" },
		{ "{\"profile\":\"python\",\"command\":[\"true\"]}", "options" },
	};
	struct side side = opened();

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct said said = run_exec(&side, rows[i].body);
		assert_string_equal(word(json_get(result_of(&said), "error"), "stage"),
				    rows[i].stage);
		arena_fini(&said.arena);
	}
	struct said said = run_exec(&side, SHELL("echo lives"));
	assert_output(&said, "lives\n");
	end_orderly(&side);
}

/* The reaper of an exec ends in its own time: until then the slot is taken. */
static struct said run_when_there_is_a_slot(struct side *side, const char *body)
{
	for (;;) {
		struct said said = run_exec(side, body);
		if (said.lines != 1 ||
		    !strstr(word(said.line[0], "message"), "left processes behind"))
			return said;
		arena_fini(&said.arena);
	}
}

static void a_worker_that_cannot_be_forked_is_reported(void **state)
{
	(void)state;
	struct side side = opened();

	*forks_left = 0;
	for (int i = 0; i < 40; i++) { /* more than there are slots */
		struct said said = run_when_there_is_a_slot(&side, SHELL("true"));
		assert_int_equal(said.lines, 1);
		assert_string_equal(word(said.line[0], "type"), "unready");
		if (!strstr(word(said.line[0], "message"), "fork a worker"))
			fail_msg("exec %d: %s", i, word(said.line[0], "message"));
		arena_fini(&said.arena);
	}
	*forks_left = -1;
	struct said said = run_when_there_is_a_slot(&side, SHELL("echo lives"));
	assert_output(&said, "lives\n");
	end_orderly(&side);
}

/* If its worker has begun, it has answered, too. */
static void a_file_request_without_a_free_descriptor_has_one_answer(void **state)
{
	(void)state;
	auto_arena struct arena a = { 0 };
	struct side side = opened();
	struct worker w = WORKER_NULL;
	struct cj_error err = { 0 };
	auto_free char *body = NULL;
	size_t size = 0;
	const struct file_job removed = { .op = FILE_REMOVE, .path = "/box/a", .to = "" };
	const struct file_job get = { .op = FILE_GET, .path = "/box/a" };

	assert_true(put_bytes(&side, "/box/a", (struct blob){ "x", 1 }, &a).is_ok);
	*refuses_pidfd = true;
	assert_int_equal(file_job_write(&removed, &body, &size, &err), 0);
	assert_int_equal(keeper_send_worker(&side.keeper, KEEPER_WORKER_FILE, "", &w, NULL, &err),
			 0);
	send_kind(&w, JOB_FILE, body, size, false);
	assert_unready(&w, "fork a worker");
	assert_true(operate(&side, &get, &a).is_ok);
	end_orderly(&side);
}

/* --- ends --- */

static void closing_the_control_pipe_cancels_every_exec_and_their_results_arrive(void **state)
{
	(void)state;
	struct side side = opened();
	struct worker w[3];

	for (int i = 0; i < 3; i++) {
		w[i] =
		    asked_exec(&side, "x", SHELL("trap '' INT TERM; echo begun; sleep 1000"), true);
		await_output(&w[i], "begun");
	}
	cj_close(&side.keeper.control_fd);
	for (int i = 0; i < 3; i++) {
		struct said said = hear(&w[i]);
		assert_status(&said, "cancelled");
		arena_fini(&said.arena);
	}
	assert_ended(&side, SESSION_CLOSED);
	close_side(&side);
}

static void a_session_that_waits_ends_when_its_server_does(void **state)
{
	(void)state;
	struct side side = opened();

	worker_close(&side.keeper);
	close_side(&side);
}

static void the_removal_of_the_jail_does_not_delay_the_end(void **state)
{
	(void)state;
	struct side side = opened();

	*has_to_wait = true;
	cj_close(&side.keeper.control_fd);
	assert_ended(&side, SESSION_CLOSED);
	*has_to_wait = false;
	assert_int_equal(sem_post(may_destroy), 0);
	close_side(&side);
}

static void a_worker_without_a_job_does_not_delay_the_end(void **state)
{
	(void)state;
	struct side side = opened();
	struct worker w[2] = { WORKER_NULL, WORKER_NULL };
	struct cj_error err = { 0 };

	for (int i = 0; i < 2; i++)
		assert_int_equal(keeper_send_worker(&side.keeper,
						    i ? KEEPER_WORKER_FILE : KEEPER_WORKER_EXEC,
						    "x", &w[i], NULL, &err),
				 0);
	struct said said = run_exec(&side, SHELL("echo between"));
	assert_output(&said, "between\n");
	end_orderly(&side);
	for (int i = 0; i < 2; i++) {
		said = hear(&w[i]);
		assert_int_equal(said.lines, 0);
		arena_fini(&said.arena);
	}
}

static void an_init_that_is_killed_ends_the_session_and_its_execs(void **state)
{
	(void)state;
	struct side side = opened();
	struct worker w = asked_exec(&side, "x", SHELL("echo begun; sleep 1000"), true);

	await_output(&w, "begun");
	assert_int_equal(kill(side.runs.init[0], SIGKILL), 0);
	struct said said = hear(&w);
	assert_int_equal(said.results, 1);
	arena_fini(&said.arena);
	assert_ended(&side, SESSION_KILLED);
	close_side(&side);
}

static void sigterm_to_the_keeper_ends_the_session(void **state)
{
	(void)state;
	struct side side = opened();
	struct worker w = asked_exec(&side, "x", SHELL("echo begun; sleep 1000"), true);

	await_output(&w, "begun");
	assert_int_equal(kill(side.runs.worker[0], SIGTERM), 0);
	struct said said = hear(&w);
	assert_status(&said, "cancelled");
	arena_fini(&said.arena);
	assert_ended(&side, SESSION_KILLED);
	close_side(&side);
}

static void a_keeper_that_is_killed_leaves_nothing(void **state)
{
	(void)state;
	struct side side = opened();
	struct worker w =
	    asked_exec(&side, "x", SHELL("echo begun; sleep 1000 & sleep 1000"), true);

	await_output(&w, "begun");
	assert_int_equal(kill(side.runs.worker[0], SIGKILL), 0);
	struct said said = hear(&w); /* a worker may still see that the program was killed */
	assert_true(said.results <= 1);
	arena_fini(&said.arena);
	worker_close(&side.keeper);
	spawner_end(&side.spawner);
	sweep();
	assert_nothing_left(&side.runs);
}

/* --- prepared ahead --- */

#define REPL "{\"profile\":\"python\",\"context\":\"repl\"}"

static struct side prepared(const char *name)
{
	struct side side = { .spawner = started() };

	side.keeper = asked_for(&side.spawner, name, TIER_REPL);
	assert_true(read_line(side.keeper.sock_fd, side.line, sizeof(side.line)));
	return side;
}

static struct side prepared_python(void)
{
	struct side side = prepared(python);

	if (!strstr(side.line, "\"ready\""))
		fail_msg("not ready: %s", side.line);
	side.runs = await_runs(1);
	return side;
}

static void take(struct side *side, const char *body)
{
	send_kind(&side->keeper, JOB_SESSION, body, strlen(body), false);
}

/* Its job has not been sent. */
static struct worker asked_cell_worker(struct side *side, const char *id)
{
	struct worker w = WORKER_NULL;
	struct cj_error err = { 0 };

	if (keeper_send_worker(&side->keeper, KEEPER_WORKER_CELL, id, &w, NULL, &err) < 0)
		fail_msg("%s", err.msg);
	return w;
}

static struct worker asked_cell(struct side *side, const char *id, const char *body)
{
	struct worker w = asked_cell_worker(side, id);
	send_kind(&w, JOB_EXEC, body, strlen(body), false);
	return w;
}

static struct said run_cell(struct side *side, const char *body)
{
	struct worker w = asked_cell(side, "cell", body);
	return hear(&w);
}

/* Its first cell: no other was there before. */
static void assert_session_works(struct side *side)
{
	if (next_line(side).type != KEEPER_LINE_LIVES)
		fail_msg("no session: %s", side->line);
	struct said said = run_cell(side, "{\"code\":\"1 + 1\",\"timeout\":\"60s\"}");
	assert_status(&said, "exited");
	const struct json_node *cell = json_get(result_of(&said), "cell");
	assert_string_equal(word(cell, "value"), "2");
	assert_non_null(strstr(said.text, "\"restarted\":false"));
	arena_fini(&said.arena);
}

/* 0: none. */
static pid_t first_child(pid_t pid)
{
	char path[64];
	int child = 0;

	(void)snprintf(path, sizeof(path), "/proc/%d/task/%d/children", pid, pid);
	auto_file FILE *children = fopen(path, "re");
	return children && fscanf(children, "%d", &child) == 1 ? child : 0;
}

/* The end of the line of first children: init, the reaper, the interpreter. */
static pid_t last_below(pid_t pid)
{
	for (pid_t child; (child = first_child(pid)) > 0; pid = child)
		;
	return pid;
}

static void a_prepared_session_has_an_interpreter_that_waits(void **state)
{
	(void)state;
	struct side side = prepared_python();
	pid_t interpreter = last_below(side.runs.init[0]);

	assert_int_not_equal(interpreter, side.runs.init[0]);
	take(&side, REPL);
	assert_session_works(&side);
	assert_int_equal(last_below(side.runs.init[0]), interpreter);
	end_orderly(&side);
}

static void read_cgroup(pid_t pid, char *out, size_t room)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/cgroup", pid);
	auto_file FILE *file = fopen(path, "re");
	assert_non_null(file);
	while (fgets(out, (int)room, file)) /* the last line is that of cgroup v2 */
		;
}

/* Else a program out of memory takes the session with it, and limits of one exec count nowhere. */
static void init_and_the_interpreter_of_a_prepared_session_have_cgroups_of_their_own(void **state)
{
	(void)state;
	struct side side = prepared_python();
	char of_init[600] = "", of_interpreter[600] = "";

	read_cgroup(side.runs.init[0], of_init, sizeof(of_init));
	read_cgroup(last_below(side.runs.init[0]), of_interpreter, sizeof(of_interpreter));
	if (strstr(of_init, "/cejail-")) { /* else the host lets us create none */
		assert_non_null(strstr(of_init, "/init\n"));
		assert_non_null(strstr(of_interpreter, "/e1\n"));
	}
	take(&side, REPL);
	assert_session_works(&side);
	end_orderly(&side);
}

static void a_prepared_interpreter_that_was_killed_is_replaced(void **state)
{
	(void)state;
	struct side side = prepared_python();
	pid_t interpreter = last_below(side.runs.init[0]);

	int pidfd = sys_pidfd_open(interpreter);

	assert_int_not_equal(interpreter, side.runs.init[0]);
	assert_int_equal(kill(interpreter, SIGKILL), 0);
	assert_true(wait_readable(pidfd));
	cj_close(&pidfd);
	take(&side, REPL);
	assert_session_works(&side);
	end_orderly(&side);
}

/* The keeper is stopped, and sees both when it goes on. */
static void a_job_that_finds_the_prepared_jail_dead_gets_a_new_one(void **state)
{
	(void)state;
	struct side side = prepared_python();
	int pidfd = sys_pidfd_open(last_below(side.runs.init[0]));

	assert_int_equal(kill(side.runs.worker[0], SIGSTOP), 0);
	assert_int_equal(kill(side.runs.init[0], SIGKILL), 0);
	assert_true(wait_readable(pidfd)); /* the interpreter has ended */
	cj_close(&pidfd);
	take(&side, REPL);
	assert_int_equal(kill(side.runs.worker[0], SIGCONT), 0);
	assert_session_works(&side);
	end_orderly(&side);
}

static void a_prepared_session_that_dies_says_so_and_ends(void **state)
{
	(void)state;
	struct side side = prepared_python();
	char byte;

	assert_int_equal(kill(side.runs.init[0], SIGKILL), 0);
	assert_true(read_line(side.keeper.sock_fd, side.line, sizeof(side.line)));
	assert_non_null(strstr(side.line, "\"unready\""));
	assert_true(wait_readable(side.keeper.sock_fd));
	assert_true(read(side.keeper.sock_fd, &byte, 1) <= 0);
	close_side(&side);
}

static void a_prepared_session_that_nobody_takes_ends_quietly(void **state)
{
	(void)state;

	for (int i = 0; i < 3; i++) {
		struct side side = prepared_python();
		if (i == 0)
			cj_close(&side.keeper.control_fd);
		else if (i == 1)
			assert_int_equal(kill(side.runs.worker[0], SIGTERM), 0);
		else
			worker_close(&side.keeper);
		if (side.keeper.sock_fd >= 0)
			assert_false(read_line(side.keeper.sock_fd, side.line, sizeof(side.line)));
		close_side(&side);
	}
}

static void a_prepared_session_takes_no_other_job(void **state)
{
	(void)state;
	static const char *const bodies[][2] = {
		{ "{\"profile\":\"python\",\"context\":\"repl\",\"memory\":\"77M\"}", "limits" },
		{ "{\"profile\":\"python\",\"context\":\"repl\",\"env\":{\"A\":\"1\"}}", "env" },
		{ "{\"profile\":\"python\"}", "wants none" },
	};

	for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
		struct side side = prepared_python();
		take(&side, bodies[i][0]);
		assert_ended(&side, SESSION_FAILED);
		if (!strstr(side.line, bodies[i][1]))
			fail_msg("no '%s': %s", bodies[i][1], side.line);
		close_side(&side);
	}
}

static void an_interpreter_that_can_not_start_ahead_is_a_reason(void **state)
{
	(void)state;
	struct side side = prepared(profile); /* its command is a shell */

	assert_non_null(strstr(side.line, "\"unready\""));
	assert_non_null(strstr(side.line, "interpreter"));
	worker_close(&side.keeper);
	spawner_end(&side.spawner);
}

/* --- signals to cells --- */

#define CELL(code) "{\"code\":\"" code "\",\"timeout\":\"600s\"}"
#define SLEEPS     "import time\\ntime.sleep(1000)"
#define UNTIL_GO   "while not os.path.exists('/box/go'): time.sleep(0.01)\\n"
#define SAY_TAKEN  "open('/box/taken', 'w').close()\\n"

static struct side opened_repl(void)
{
	struct side side = prepared_python();

	take(&side, REPL);
	if (next_line(&side).type != KEEPER_LINE_LIVES)
		fail_msg("no session: %s", side.line);
	return side;
}

/* The keeper has handled all earlier requests by then. */
static void run_shell(struct side *side, const char *body)
{
	struct said said = run_exec(side, body);
	assert_status(&said, "exited");
	arena_fini(&said.arena);
}
#define AWAIT_TAKEN SHELL("until [ -e /box/taken ]; do sleep 0.01; done")
#define LET_IT_GO   SHELL("touch /box/go")

static void assert_cell_ended(struct said *said, const char *exception)
{
	assert_status(said, "exited");
	const struct json_node *cell = json_get(result_of(said), "cell");
	const char *type = word(json_get(cell, "exception"), "type");
	if (strcmp(type, exception) != 0)
		fail_msg("not '%s': %s", exception, said->text);
	arena_fini(&said->arena);
}

static void interrupt(struct side *side, const char *id)
{
	struct cj_error err = { 0 };
	assert_int_equal(keeper_send_signal(&side->keeper, id, SIGINT, &err), 0);
}

/* An interpreter that has taken a cell, and begins its code only when it may go. */
static void a_signal_is_held_until_the_interpreter_begins_the_cell(void **state)
{
	(void)state;
	struct side side = opened_repl();
	struct said said =
	    run_cell(&side, CELL("import os, time\\n"
				 "own = display.__globals__\\n"
				 "take = own['take_cell']\\n"
				 "def late():\\n"
				 "    cell = take()\\n"
				 "    " SAY_TAKEN "    " UNTIL_GO "    own['take_cell'] = take\\n"
				 "    return cell\\n"
				 "own['take_cell'] = late"));
	assert_cell_ended(&said, "");
	struct worker w = asked_cell(&side, "late", CELL(SLEEPS));
	run_shell(&side, AWAIT_TAKEN);
	interrupt(&side, "late");
	run_shell(&side, LET_IT_GO);
	said = hear(&w);
	assert_cell_ended(&said, "KeyboardInterrupt");
	end_orderly(&side);
}

static void a_signal_to_a_cell_that_waits_reaches_it(void **state)
{
	(void)state;
	struct side side = opened_repl();
	struct worker w = asked_cell(&side, "first", CELL("import os, time\\n" SAY_TAKEN UNTIL_GO));

	run_shell(&side, AWAIT_TAKEN);
	struct worker next = asked_cell(&side, "next", CELL(SLEEPS));
	interrupt(&side, "next");
	run_shell(&side, LET_IT_GO);
	struct said said = hear(&w);
	assert_cell_ended(&said, "");
	said = hear(&next);
	assert_cell_ended(&said, "KeyboardInterrupt");
	end_orderly(&side);
}

/* The program has changed its interpreter. */
static void a_signal_is_held_for_a_limited_time(void **state)
{
	(void)state;
	struct side side = opened_repl();
	struct said said = run_cell(
	    &side, CELL("own = display.__globals__\\n"
			"send = own['send']\\n"
			"own['send'] = lambda kind, data=b'': kind == b'B' or send(kind, data)"));
	assert_cell_ended(&said, "");
	struct worker w = asked_cell(&side, "silent", CELL(SAY_TAKEN SLEEPS));
	run_shell(&side, AWAIT_TAKEN);
	interrupt(&side, "silent");
	run_shell(&side, LET_IT_GO);
	*clock_ahead_ms = 60000;
	said = hear(&w);
	assert_cell_ended(&said, "KeyboardInterrupt");
	end_orderly(&side);
	*clock_ahead_ms = 0;
}

static void one_cell_may_wait_and_makes_room_when_it_is_cancelled(void **state)
{
	(void)state;
	struct side side = opened_repl();
	struct worker first =
	    asked_cell(&side, "first", CELL("import os, time\\n" SAY_TAKEN UNTIL_GO));

	run_shell(&side, AWAIT_TAKEN);
	struct worker second = asked_cell(&side, "second", CELL("1"));
	struct worker third = asked_cell(&side, "third", CELL("1"));
	assert_unready(&third, "waits already");
	cj_close(&second.control_fd);
	struct worker fourth = asked_cell(&side, "fourth", CELL("raise KeyError"));
	assert_unready(&second, "cancelled before it began");
	run_shell(&side, LET_IT_GO);
	struct said said = hear(&first);
	assert_cell_ended(&said, "");
	said = hear(&fourth);
	assert_cell_ended(&said, "KeyError");
	end_orderly(&side);
}

static void an_interpreter_that_ends_before_the_job_comes_is_its_result(void **state)
{
	(void)state;
	struct side side = opened_repl();
	const pid_t reaper = first_child(side.runs.init[0]), interpreter = last_below(reaper);
	int pidfd = sys_pidfd_open(reaper);
	struct worker w = asked_cell_worker(&side, "cell");

	run_shell(&side, SHELL("true"));
	assert_int_equal(kill(interpreter, SIGKILL), 0);
	assert_true(wait_readable(pidfd));
	cj_close(&pidfd);
	send_kind(&w, JOB_EXEC, CELL("1"), sizeof(CELL("1")) - 1, false);
	struct said said = hear(&w);
	assert_status(&said, "signaled");
	assert_non_null(strstr(said.text, "\"lost\":true"));
	arena_fini(&said.arena);
	said = run_cell(&side, CELL("2"));
	assert_cell_ended(&said, "");
	end_orderly(&side);
}

/* --- while an interpreter starts --- */

/*
 * Its interpreter was killed, and init, which is to start another one, is stopped.  The reaper has
 * ended, too: a test that moves the clock would let the keeper believe that it can't be killed.
 */
static struct side opened_with_stuck_start(void)
{
	struct side side = opened_repl();
	const pid_t reaper = first_child(side.runs.init[0]), interpreter = last_below(reaper);
	int pidfds[] = { sys_pidfd_open(reaper), sys_pidfd_open(interpreter) };

	assert_int_not_equal(interpreter, reaper);
	assert_int_equal(kill(side.runs.init[0], SIGSTOP), 0);
	assert_int_equal(kill(interpreter, SIGKILL), 0);
	for (size_t i = 0; i < 2; i++) {
		assert_true(wait_readable(pidfds[i]));
		cj_close(&pidfds[i]);
	}
	return side;
}

static void assert_files_are_listed(struct side *side)
{
	auto_arena struct arena a = { 0 };
	const struct file_job list = { .op = FILE_LIST, .path = "/box" };
	struct file_answer answer = operate(side, &list, &a);

	if (!answer.is_ok)
		fail_msg("list: %s", answer.message);
}

static void a_start_that_takes_long_delays_neither_files_nor_signals(void **state)
{
	(void)state;
	struct side side = opened_with_stuck_start();
	struct worker w = asked_cell(&side, "late", CELL(SLEEPS));

	assert_files_are_listed(&side);
	interrupt(&side, "late");
	assert_files_are_listed(&side); /* behind the signal */
	assert_int_equal(kill(side.runs.init[0], SIGCONT), 0);
	struct said said = hear(&w);
	assert_cell_ended(&said, "KeyboardInterrupt");
	end_orderly(&side);
}

static void a_session_ends_while_its_interpreter_never_starts(void **state)
{
	(void)state;
	struct side side = opened_with_stuck_start();
	struct worker w = asked_cell(&side, "never", CELL("1"));

	assert_files_are_listed(&side);
	cj_close(&side.keeper.control_fd);
	assert_unready(&w, "ended before the cell began"); /* not: the start failed */
	assert_ended(&side, SESSION_CLOSED);
	close_side(&side);
}

static void a_start_that_takes_too_long_is_the_result_of_the_cell(void **state)
{
	(void)state;
	struct side side = opened_with_stuck_start();
	struct worker w = asked_cell(&side, "never", CELL("1"));

	assert_files_are_listed(&side);
	*clock_ahead_ms = 2 * INTERPRETER_START_MS;
	assert_files_are_listed(&side); /* wakes the keeper */
	struct said said = hear(&w);
	assert_status(&said, "setup_error");
	assert_non_null(strstr(said.text, "wait until it is ready"));
	arena_fini(&said.arena);
	*clock_ahead_ms = 0;
	cj_close(&side.keeper.control_fd);
	assert_ended(&side, SESSION_CLOSED);
	close_side(&side);
}

/* --- set-up --- */

static int share_forks(void **state)
{
	struct {
		int forks;
		bool refuses_pidfd;
		uint64_t ahead_ms;
		bool has_to_wait;
		sem_t may_destroy;
	} *shared =
	    mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED || sem_init(&shared->may_destroy, 1, 0) < 0)
		return 1;
	has_to_wait = &shared->has_to_wait;
	may_destroy = &shared->may_destroy;
	forks_left = &shared->forks;
	clock_ahead_ms = &shared->ahead_ms;
	*forks_left = -1;
	refuses_pidfd = &shared->refuses_pidfd;
	return can_make_jails(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(execs_share_the_files_of_the_session),
		TEST(the_settings_of_an_exec_are_the_sessions_and_its_own),
		TEST(an_exec_has_the_tools_of_its_session_where_the_server_says_so),
		TEST(code_and_input_reach_each_exec),
		TEST(sixteen_execs_run_at_once),
		TEST(events_of_an_exec_come_as_those_of_a_run),
		TEST(closing_its_control_pipe_cancels_one_exec),
		TEST(a_signal_reaches_the_main_process_even_before_it_runs),
		TEST(an_open_input_is_written_in_parts),
		TEST(a_file_is_put_got_listed_and_removed),
		TEST(a_file_outside_or_of_another_kind_is_refused),
		TEST(a_session_that_cannot_be_built_says_why),
		TEST(an_exec_that_fails_leaves_the_session),
		TEST(a_worker_that_cannot_be_forked_is_reported),
		TEST(a_file_request_without_a_free_descriptor_has_one_answer),
		TEST(closing_the_control_pipe_cancels_every_exec_and_their_results_arrive),
		TEST(a_session_that_waits_ends_when_its_server_does),
		TEST(the_removal_of_the_jail_does_not_delay_the_end),
		TEST(a_worker_without_a_job_does_not_delay_the_end),
		TEST(an_init_that_is_killed_ends_the_session_and_its_execs),
		TEST(sigterm_to_the_keeper_ends_the_session),
		TEST(a_keeper_that_is_killed_leaves_nothing),
		TEST(a_prepared_session_has_an_interpreter_that_waits),
		TEST(init_and_the_interpreter_of_a_prepared_session_have_cgroups_of_their_own),
		TEST(a_prepared_interpreter_that_was_killed_is_replaced),
		TEST(a_job_that_finds_the_prepared_jail_dead_gets_a_new_one),
		TEST(a_prepared_session_that_dies_says_so_and_ends),
		TEST(a_prepared_session_that_nobody_takes_ends_quietly),
		TEST(a_prepared_session_takes_no_other_job),
		TEST(an_interpreter_that_can_not_start_ahead_is_a_reason),
		TEST(a_signal_is_held_until_the_interpreter_begins_the_cell),
		TEST(a_signal_to_a_cell_that_waits_reaches_it),
		TEST(a_signal_is_held_for_a_limited_time),
		TEST(one_cell_may_wait_and_makes_room_when_it_is_cancelled),
		TEST(an_interpreter_that_ends_before_the_job_comes_is_its_result),
		TEST(a_start_that_takes_long_delays_neither_files_nor_signals),
		TEST(a_session_ends_while_its_interpreter_never_starts),
		TEST(a_start_that_takes_too_long_is_the_result_of_the_cell),
	};
	(void)signal(SIGPIPE, SIG_IGN); /* as the server does */
	return cmocka_run_group_tests_name("session keeper", tests, share_forks, remove_home);
}
