/* SPDX-License-Identifier: Apache-2.0 */
/* The interpreter of a session and its cells, in whole jails: what keeps it and what ends it. */
#include "runtime/session/repl/session_interpreter.h"

#include <sys/wait.h>

#include "profiles/profile.h"
#include "runtime/session/session_state.h"
#include "tests/forked.h"
#include "tests/session/whole_session.h"

struct repl {
	struct config config;
	struct plan plan;
	struct program launcher;
	struct whole_session whole;
	struct session_interpreter *interpreter;
};

struct cell_result {
	bool is_there;
	int rc;
	enum status status;
	int exit_code, signal;
	bool lives, is_new, has_exception;
	char value[256], out[1024], message[CJ_ERROR_MSG_MAX], warnings[512];
};

static void make_plan(struct repl *r)
{
	static const char *const words[] = { "true", NULL };
	const struct invocation inv = { .args = words, .is_command = true };
	struct cj_error err = { 0 };
	struct program unused;
	config_init(&r->config);
	int rc = profile_load(&r->config, "python", &err);
	r->config.network = NETWORK_NONE;
	if (rc == 0)
		rc = plan_make(&r->config, &inv, &r->plan, &unused, &err);
	if (rc == 0)
		rc = plan_repl(&r->config, &r->plan, &r->launcher, &err);
	if (rc < 0)
		fail_msg("%s", err.msg);
}

static void serve(struct repl *r, int timeout_ms)
{
	struct whole_session *w = &r->whole;
	struct pollfd fds[INTERPRETER_FDS];
	session_interpreter_watch(r->interpreter, fds);
	(void)session_serve(w->session, fds, INTERPRETER_FDS, timeout_ms, &w->end, &w->err);
	session_interpreter_turn(r->interpreter, &w->err);
}

static void begin_start(struct repl *r, bool is_new)
{
	struct whole_session *w = &r->whole;
	if (session_interpreter_start(w->session, &r->launcher, is_new, &r->interpreter, &w->err) <
	    0)
		fail_msg("no interpreter: %s", w->err.msg);
}

static void serve_until_started(struct repl *r)
{
	const uint64_t deadline = clock_ms() + TEST_PATIENCE_MS;
	while (r->interpreter->state == INTERPRETER_STARTS) {
		serve(r, 100);
		assert_true(clock_ms() < deadline);
	}
}

static void assert_waits(const struct repl *r)
{
	if (r->interpreter->state != INTERPRETER_WAITS)
		fail_msg("not ready: %s", r->whole.err.msg);
}

static void start_interpreter(struct repl *r, bool is_new)
{
	begin_start(r, is_new);
	serve_until_started(r);
	assert_waits(r);
}

static void begin_repl(struct repl *r)
{
	*r = (struct repl){ .interpreter = NULL };
	make_plan(r);
	begin_session(&r->whole, &r->plan);
	start_interpreter(r, false);
}

static void end_repl(struct repl *r)
{
	session_interpreter_end(&r->interpreter);
	end_session(&r->whole);
	config_fini(&r->config);
}

static void note_cell(const struct outcome *out, const struct session_cell *cell,
		      struct cell_result *to)
{
	size_t size, kept;
	auto_free char *text = capture_text(&out->output[0], &size, &kept);
	to->status = out->status;
	to->exit_code = out->exit_code;
	to->signal = out->signal;
	to->lives = cell->has_ended;
	to->is_new = cell->outcome.is_new;
	to->has_exception = cell->outcome.exception_type != NULL;
	(void)snprintf(to->value, sizeof(to->value), "%s",
		       cell->outcome.value ? cell->outcome.value : "");
	(void)snprintf(to->out, sizeof(to->out), "%s", text ? text : "");
	for (size_t i = 0, at = 0; i < out->warnings.count && at < sizeof(to->warnings); i++)
		at += (size_t)snprintf(to->warnings + at, sizeof(to->warnings) - at, "%s\n",
				       out->warnings.items[i]);
}

static struct cell_result work_on(struct repl *r, const struct program *program)
{
	const struct jail_io io = {
		.stdin_fd = -1, .stdout_fd = -1, .stderr_fd = -1, .tty_fd = -1, .hangup_fd = -1
	};
	struct cell_result to = { .is_there = true };
	struct session_cell cell = SESSION_CELL_NULL;
	struct cj_error err = { 0 };
	struct outcome out;
	outcome_init(&out, "cell", 1000);
	to.rc = session_cell_start(r->interpreter, program, &io, (struct blob){ 0 }, &cell, &err);
	if (to.rc == 0)
		to.rc = jail_wait(r->interpreter->view, &out, &err);
	(void)snprintf(to.message, sizeof(to.message), "%s", err.msg);
	note_cell(&out, &cell, &to);
	outcome_fini(&out);
	free(cell.request); /* in the product both end with the worker of the cell */
	arena_fini(&cell.arena);
	return to;
}

static struct program program_of(const struct repl *r, const char *code, uint64_t wall_ms)
{
	static const char *words[] = { "python3", "/box/main.py", NULL };
	return (struct program){
		.argv = { words, 2 },
		.env = r->launcher.env,
		.workdir = r->launcher.workdir,
		.code_source = CODE_STRING,
		.code_path = "/box/main.py",
		.code_text = code,
		.code_size = strlen(code),
		.limits = { .wall_ms = wall_ms, .output_bytes = 1000 },
	};
}

static bool is_idle(const struct repl *r)
{
	return r->whole.session->slots[r->interpreter->slot].state == SLOT_BETWEEN_CELLS;
}

static struct cell_result run_program_of(struct repl *r, const struct program *program)
{
	struct whole_session *w = &r->whole;
	struct cell_result to = { .is_there = false };
	int ends[2];
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	session_interpreter_begin_cell(r->interpreter);
	assert_false(is_idle(r));
	pid_t pid = test_fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
		to = work_on(r, program);
		_exit(write(ends[1], &to, sizeof(to)) == (ssize_t)sizeof(to) ? 0 : 1);
	}
	(void)close(ends[1]);
	int pidfd = sys_pidfd_open(pid);
	(void)serve_until(w, pidfd);
	to.is_there = read(ends[0], &to, sizeof(to)) == (ssize_t)sizeof(to);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	(void)close(ends[0]);
	(void)close(pidfd);
	session_interpreter_end_cell(r->interpreter, to.is_there && (to.lives || to.rc < 0));
	return to;
}

static struct cell_result run_cell(struct repl *r, const char *code, uint64_t wall_ms)
{
	const struct program program = program_of(r, code, wall_ms);
	return run_program_of(r, &program);
}

static void assert_cell(const struct cell_result *c, enum status status, bool lives)
{
	if (!c->is_there || c->rc != 0 || c->status != status || c->lives != lives)
		fail_msg("is_there %d rc %d status %s exit code %d lives %d: %s %s %s", c->is_there,
			 c->rc, status_names[c->status], c->exit_code, c->lives, c->message, c->out,
			 c->warnings);
}

#define LONG_MS  ((uint64_t)patience_ms(60000)) /* only a cell that hangs takes so long */
#define SHORT_MS 1500                           /* an interrupt waits until the cell has begun */

static void variables_stay_from_cell_to_cell(void **state)
{
	(void)state;
	struct repl r;
	begin_repl(&r);
	assert_true(is_idle(&r));
	struct cell_result c = run_cell(&r, "x = 40; print('a')", LONG_MS);
	assert_true(is_idle(&r));
	assert_cell(&c, STATUS_EXITED, true);
	assert_string_equal(c.out, "a\n");
	c = run_cell(&r, "x + 2", LONG_MS);
	assert_cell(&c, STATUS_EXITED, true);
	assert_string_equal(c.value, "42");
	assert_string_equal(c.out, "");
	c = run_cell(&r, "1 / 0", LONG_MS);
	assert_cell(&c, STATUS_EXITED, true);
	assert_true(c.has_exception && c.exit_code == 1);
	end_repl(&r);
}

/* Its socket is that of the interpreter; the list of tools is the cell's. */
static void each_cell_has_its_own_tools(void **state)
{
	(void)state;
	static const char code[] = "import os\n"
				   "os.write(4, b'{\"id\":1,\"name\":\"add\"}\\n')\n"
				   "print(os.environ['CEJAIL_CALLS_FD'], os.read(4, 200).decode())";
	static const char *names[] = { "add" };
	const struct tool_list tools = { .names = { names, 1 } };
	struct repl r;
	begin_repl(&r);
	struct program program = program_of(&r, code, LONG_MS);
	program.limits.calls = program.limits.calls_outstanding = 1;
	program.limits.calls_per_second = 100;
	for (int i = 0; i < 3; i++) {
		program.tools = i == 1 ? &tools : NULL;
		struct cell_result c = run_program_of(&r, &program);
		assert_cell(&c, STATUS_EXITED, true);
		assert_int_equal(strncmp(c.out, "4 {\"id\":1,\"error\"", 17), 0);
		assert_non_null(strstr(c.out, i == 1 ? "nobody answers" : "no tool 'add'"));
	}
	end_repl(&r);
}

static void a_late_cell_is_interrupted_and_variables_stay(void **state)
{
	(void)state;
	struct repl r;
	begin_repl(&r);
	struct cell_result c = run_cell(&r, "x = 1", LONG_MS);
	c = run_cell(&r, "while True: pass", SHORT_MS);
	assert_cell(&c, STATUS_TIMEOUT, true);
	c = run_cell(&r, "x", LONG_MS);
	assert_string_equal(c.value, "1");
	end_repl(&r);
}

/* As the interpreter does when the signal comes before it has begun the cell. */
static void a_cell_that_missed_the_first_interrupt_gets_a_second(void **state)
{
	(void)state;
	struct repl r;
	begin_repl(&r);
	struct cell_result c = run_cell(&r,
					"import signal\n"
					"interrupts = 0\n"
					"def on_interrupt(*unused):\n"
					"    global interrupts\n"
					"    interrupts += 1\n"
					"    if interrupts > 1: raise KeyboardInterrupt\n"
					"_ = signal.signal(signal.SIGINT, on_interrupt)\n",
					LONG_MS);
	assert_cell(&c, STATUS_EXITED, true);
	c = run_cell(&r, "while True: pass", SHORT_MS);
	assert_cell(&c, STATUS_TIMEOUT, true);
	c = run_cell(&r, "interrupts", LONG_MS);
	assert_string_equal(c.value, "2");
	end_repl(&r);
}

static void a_cell_that_ignores_the_interrupt_is_killed_and_replaced(void **state)
{
	(void)state;
	struct repl r;
	begin_repl(&r);
	struct cell_result c = run_cell(&r,
					"import signal, time\n"
					"_ = signal.signal(signal.SIGINT, signal.SIG_IGN)\n",
					LONG_MS);
	assert_cell(&c, STATUS_EXITED, true);
	c = run_cell(&r, "while True: time.sleep(1)", SHORT_MS);
	assert_cell(&c, STATUS_TIMEOUT, false);
	assert_int_equal(r.interpreter->state, INTERPRETER_ENDED);
	const unsigned slot = r.interpreter->slot;
	session_interpreter_end(&r.interpreter);
	assert_true(serve_until_gone(&r.whole, slot));
	start_interpreter(&r, true);
	c = run_cell(&r, "1", LONG_MS);
	assert_cell(&c, STATUS_EXITED, true);
	assert_true(c.is_new);
	end_repl(&r);
}

static void junk_on_the_channel_kills_the_interpreter(void **state)
{
	(void)state;
	struct repl r;
	begin_repl(&r);
	struct cell_result c =
	    run_cell(&r, "import os, time\nos.write(3, b'hello')\ntime.sleep(600)", LONG_MS);
	assert_cell(&c, STATUS_SIGNALED, false);
	assert_int_equal(c.signal, SIGKILL);
	assert_non_null(strstr(c.warnings, "channel"));
	end_repl(&r);
}

static void exit_ends_a_cell_and_the_end_of_the_process_its_interpreter(void **state)
{
	(void)state;
	struct repl r;
	begin_repl(&r);
	struct cell_result c = run_cell(&r, "raise SystemExit(7)", LONG_MS);
	assert_cell(&c, STATUS_EXITED, true);
	assert_int_equal(c.exit_code, 7);
	c = run_cell(&r, "import os; os._exit(8)", LONG_MS);
	assert_cell(&c, STATUS_EXITED, false);
	assert_int_equal(c.exit_code, 8);
	end_repl(&r);
}

static void an_interpreter_that_ends_between_cells_is_noticed(void **state)
{
	(void)state;
	struct repl r;
	begin_repl(&r);
	struct cell_result c =
	    run_cell(&r,
		     "import threading, time, os\n"
		     "def end():\n"
		     "    while not os.path.exists('/box/go'): time.sleep(0.01)\n"
		     "    os._exit(5)\n"
		     "threading.Thread(target=end).start()",
		     LONG_MS);
	assert_cell(&c, STATUS_EXITED, true);
	assert_waits(&r);
	struct exec_result go = run_shell(&r.whole, ": > /box/go", NULL);
	assert_exited(&go, 0);
	const uint64_t deadline = clock_ms() + TEST_PATIENCE_MS;
	while (r.interpreter->state == INTERPRETER_WAITS) {
		serve(&r, 100);
		assert_true(clock_ms() < deadline);
	}
	assert_int_equal(r.interpreter->state, INTERPRETER_ENDED);
	end_repl(&r);
}

static void what_a_running_interpreter_cannot_take_is_refused_and_it_stays(void **state)
{
	(void)state;
	struct repl r;
	begin_repl(&r);
	static const char *env[] = { "A=b", NULL };
	struct program program = program_of(&r, "1", LONG_MS);
	program.env = (struct strings){ env, 1 };
	struct cell_result c = run_program_of(&r, &program);
	assert_int_equal(c.rc, -EINVAL);
	assert_non_null(strstr(c.message, "keeps its environment"));

	program = program_of(&r, "1", LONG_MS);
	program.workdir = "/tmp";
	c = run_program_of(&r, &program);
	assert_int_equal(c.rc, -EINVAL);

	program = program_of(&r, "1", LONG_MS);
	const struct copy_spec file = { .source = "/etc/hostname", .target = "/box/a" };
	program.files = &file;
	program.nfiles = 1;
	c = run_program_of(&r, &program);
	assert_int_equal(c.rc, -EINVAL);

	c = run_cell(&r, "2", LONG_MS);
	assert_string_equal(c.value, "2");
	end_repl(&r);
}

static void one_that_cannot_be_executed_or_ends_at_once_is_an_error(void **state)
{
	(void)state;
	static const char *const programs[] = { "/no/such/python", "/bin/true" };
	static const int codes[] = { ENOENT, ECHILD };
	struct repl r = { .interpreter = NULL };
	make_plan(&r);
	begin_session(&r.whole, &r.plan);
	for (size_t k = 0; k < 2; k++) {
		const char *words[] = { programs[k], NULL };
		r.launcher.argv = (struct strings){ words, 1 };
		begin_start(&r, false);
		serve_until_started(&r);
		assert_int_equal(r.interpreter->state, INTERPRETER_ENDED);
		assert_int_equal(r.whole.err.code, codes[k]);
		session_interpreter_end(&r.interpreter);
	}
	end_repl(&r);
}

/* The only child, which the process has just made or will make. */
static pid_t await_child(pid_t parent)
{
	char path[64];
	int child = 0;
	(void)snprintf(path, sizeof(path), "/proc/%d/task/%d/children", parent, parent);
	for (int i = 0; child == 0 && i < patience_ms(60000); i++) {
		auto_file FILE *children = fopen(path, "re");
		if (!children || fscanf(children, "%d", &child) != 1)
			(void)poll(NULL, 0, 1);
	}
	assert_true(child > 0);
	return child;
}

static void assert_still_starts(struct repl *r)
{
	for (int i = 0; i < 3; i++)
		serve(r, 10);
	assert_int_equal(r->interpreter->state, INTERPRETER_STARTS);
}

static void its_start_waits_neither_for_init_nor_for_its_reaper(void **state)
{
	(void)state;
	struct repl r = { .interpreter = NULL };
	make_plan(&r);
	begin_session(&r.whole, &r.plan);
	const pid_t init_pid = r.whole.jail->init_pid;
	assert_int_equal(kill(init_pid, SIGSTOP), 0);
	begin_start(&r, false);
	assert_still_starts(&r);
	assert_int_equal(kill(init_pid, SIGCONT), 0);
	const pid_t reaper_pid = await_child(init_pid);
	assert_int_equal(kill(reaper_pid, SIGSTOP), 0);
	assert_still_starts(&r);
	assert_int_equal(kill(reaper_pid, SIGCONT), 0);
	serve_until_started(&r);
	assert_waits(&r);
	end_repl(&r);
}

/* In each step of the start: nothing of it stays, and the next start succeeds. */
static void one_that_is_given_up_while_it_starts_leaves_nothing(void **state)
{
	(void)state;
	struct repl r = { .interpreter = NULL };
	make_plan(&r);
	begin_session(&r.whole, &r.plan);
	for (int rounds = 0; rounds < 4; rounds++) {
		begin_start(&r, false);
		const unsigned slot = r.interpreter->slot;
		for (int i = 0; i < rounds; i++)
			serve(&r, patience_ms(60000));
		session_interpreter_end(&r.interpreter);
		assert_true(serve_until_gone(&r.whole, slot));
	}
	start_interpreter(&r, false);
	end_repl(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(variables_stay_from_cell_to_cell),
		cmocka_unit_test(each_cell_has_its_own_tools),
		cmocka_unit_test(a_late_cell_is_interrupted_and_variables_stay),
		cmocka_unit_test(a_cell_that_missed_the_first_interrupt_gets_a_second),
		cmocka_unit_test(a_cell_that_ignores_the_interrupt_is_killed_and_replaced),
		cmocka_unit_test(junk_on_the_channel_kills_the_interpreter),
		cmocka_unit_test(exit_ends_a_cell_and_the_end_of_the_process_its_interpreter),
		cmocka_unit_test(an_interpreter_that_ends_between_cells_is_noticed),
		cmocka_unit_test(what_a_running_interpreter_cannot_take_is_refused_and_it_stays),
		cmocka_unit_test(one_that_cannot_be_executed_or_ends_at_once_is_an_error),
		cmocka_unit_test(its_start_waits_neither_for_init_nor_for_its_reaper),
		cmocka_unit_test(one_that_is_given_up_while_it_starts_leaves_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
