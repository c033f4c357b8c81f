/* SPDX-License-Identifier: Apache-2.0 */
/* Execs of one session: one after another and at once, and how they end. */
#include "tests/session/whole_session.h"

#include "runtime/session/session_state.h"

static void files_of_one_exec_are_there_for_the_next(void **state)
{
	(void)state;
	struct whole_session w;
	const struct plan plan = session_plan();
	begin_session(&w, &plan);
	struct exec_result first = run_shell(&w, "echo kept > /box/file; exit 3", NULL);
	struct exec_result second = run_shell(&w, "cat /box/file; cat /box/file >&2", NULL);
	assert_exited(&first, 3);
	assert_exited(&second, 0);
	assert_string_equal(second.out, "kept\n");
	end_session(&w);
}

static void an_exec_ends_as_a_run_does(void **state)
{
	(void)state;
	struct whole_session w;
	const struct plan plan = session_plan();
	begin_session(&w, &plan);
	struct exec_result killed = run_shell(&w, "kill -TERM $$", NULL);
	assert_int_equal(killed.status, STATUS_SIGNALED);
	assert_int_equal(killed.signal, SIGTERM);

	const char *nothing[] = { "/no/such/program", NULL };
	const struct program program = simple_program(nothing);
	struct exec_handle h = start_program(&w, &program);
	struct exec_result missing = finish_exec(&w, &h);
	assert_int_equal(missing.exec_errno, ENOENT);
	assert_true(serve_until_gone(&w, h.slot));
	end_session(&w);
}

/* What a run's program sees of itself, and the same of an exec's. */
static void a_program_of_a_session_has_the_restrictions_of_a_run(void **state)
{
	(void)state;
	static const char look[] =
	    "grep -E '^(Uid|Gid|Groups|Cap|NoNewPrivs|Seccomp|SigBlk|SigIgn)' /proc/self/status; "
	    "ulimit -a; cut -d' ' -f2-4 /proc/mounts | sed s/,.id=.*//; ls /dev; id; unshare -U true; mount -t tmpfs t /tmp; :";
	const char *argv[] = { "/bin/sh", "-c", look, NULL };
	struct whole_session w;
	const struct plan plan = session_plan();
	const struct program program = simple_program(argv);
	struct outcome out;
	struct cj_error err = { 0 };
	size_t size, kept;
	outcome_init(&out, "run", sizeof(((struct exec_result *)NULL)->out) - 1);
	if (run_program(&plan, &program, &out, &err) < 0)
		fail_msg("%s", err.msg);
	auto_free char *of_run = capture_text(&out.output[0], &size, &kept);

	begin_session(&w, &plan);
	struct exec_result r = run_shell(&w, look, NULL);
	assert_exited(&r, 0);
	assert_string_equal(r.out, of_run);
	outcome_fini(&out);
	end_session(&w);
}

static void two_execs_run_at_once(void **state)
{
	(void)state;
	struct whole_session w;
	const struct plan plan = session_plan();
	begin_session(&w, &plan);
	struct exec_handle waits = start_shell(
	    &w, "until [ -e /box/b ]; do sleep 0.01; done; echo 1 > /box/a; echo first", NULL);
	struct exec_handle makes = start_shell(
	    &w, "echo 1 > /box/b; until [ -e /box/a ]; do sleep 0.01; done; echo second", NULL);
	struct exec_result first = finish_exec(&w, &waits), second = finish_exec(&w, &makes);
	assert_exited(&first, 0);
	assert_exited(&second, 0);
	assert_string_equal(first.out, "first\n");
	assert_string_equal(second.out, "second\n");
	end_session(&w);
}

static void a_file_of_an_earlier_exec_is_replaced(void **state)
{
	(void)state;
	struct whole_session w;
	const struct plan plan = session_plan();
	begin_session(&w, &plan);
	struct exec_result trap = run_shell(&w, "mkfifo /box/main.sh", NULL);
	assert_exited(&trap, 0);
	const char *words[] = { "/bin/sh", "/box/main.sh", NULL };
	for (int i = 0; i < 2; i++) {
		const struct program program = shell_program(words, 2, i ? "echo 1" : "echo 0");
		struct exec_handle h = start_program(&w, &program);
		struct exec_result r = finish_exec(&w, &h);
		assert_exited(&r, 0);
		assert_string_equal(r.out, i ? "1\n" : "0\n");
	}
	struct exec_result rest = run_shell(&w, "ls -A /box", NULL);
	assert_string_equal(rest.out, "main.sh\nout\n");
	end_session(&w);
}

/* --- what stays and what does not --------------------------------------------------------- */

#define START_SERVER "sleep 1000 >/dev/null 2>&1 & echo $! > /box/pid"
#define IS_THERE     "[ -d /proc/$(cat /box/pid || echo none) ]"
/* Nothing of an exec lives when its slot is free; init reaps the dead a moment later. */
#define AWAIT_REAPED   "while " IS_THERE "; do :; done; "
#define AWAIT_NO_SLEEP "while pgrep sleep >/dev/null; do :; done; "

static void a_server_stays_after_its_exec_until_it_is_signalled(void **state)
{
	(void)state;
	struct whole_session w;
	const struct plan plan = session_plan();
	begin_session(&w, &plan);
	struct exec_handle starts = start_shell(&w, START_SERVER, NULL);
	struct exec_result first = finish_exec(&w, &starts);
	assert_exited(&first, 0);
	struct exec_result second = run_shell(&w, IS_THERE, NULL);
	assert_exited(&second, 0);
	assert_true(session_slot_has_exec(&w.session->slots[starts.slot]));

	assert_int_equal(session_exec_signal(w.session, starts.slot, SIGTERM, &w.err), 0);
	assert_true(serve_until_gone(&w, starts.slot));
	struct exec_result third = run_shell(&w, AWAIT_REAPED "exit 0", NULL);
	assert_exited(&third, 0);
	end_session(&w);
}

static void what_an_ended_exec_left_can_be_killed_by_its_name(void **state)
{
	(void)state;
	struct whole_session w;
	const struct plan plan = session_plan();
	begin_session(&w, &plan);
	struct exec_handle h = start_shell(&w, START_SERVER "; (setsid sleep 1000 &)", NULL);
	(void)snprintf(w.session->slots[h.slot].id, PLAN_ID_MAX, "server");
	assert_false(session_exec_kill_left(w.session, "server")); /* it runs */
	struct exec_result r = finish_exec(&w, &h);
	assert_exited(&r, 0);
	assert_false(session_exec_kill_left(w.session, "other"));
	assert_true(session_exec_kill_left(w.session, "server"));
	assert_true(serve_until_gone(&w, h.slot));
	assert_false(session_exec_kill_left(w.session, "server"));
	end_session(&w);
}

/* Its later output is lost; the result does not wait for it. */
static void a_server_that_holds_the_output_does_not_delay_the_result(void **state)
{
	(void)state;
	struct whole_session w;
	const struct plan plan = session_plan();
	begin_session(&w, &plan);
	struct exec_handle h = start_shell(&w, "sleep 1000 & echo started", NULL);
	struct exec_result r = finish_exec(&w, &h);
	assert_exited(&r, 0);
	assert_string_equal(r.out, "started\n");
	assert_true(session_slot_has_exec(&w.session->slots[h.slot]));
	end_session(&w);
}

static void an_exec_above_its_output_limit_ends_with_all_its_processes(void **state)
{
	(void)state;
	struct whole_session w;
	const struct plan plan = session_plan();
	struct run_limits noisy = simple_limits();
	noisy.output_bytes = 1024;
	noisy.on_output_limit = OUTPUT_KILL;
	begin_session(&w, &plan);
	struct exec_handle h =
	    start_shell(&w, "sleep 1000 & while :; do echo 0123456789abcdef; done", &noisy);
	struct exec_result r = finish_exec(&w, &h);
	assert_int_equal(r.status, STATUS_OUTPUT_LIMIT);
	assert_true(serve_until_gone(&w, h.slot));
	end_session(&w);
}

static const struct run_limits short_limits = { .wall_ms = 2000, .output_bytes = 1024 };

static void a_timeout_kills_every_process_of_its_exec_and_no_other(void **state)
{
	(void)state;
	struct whole_session w;
	const struct plan plan = session_plan();
	begin_session(&w, &plan);
	struct exec_handle other =
	    start_shell(&w, "until [ -e /box/go ]; do sleep 0.01; done; echo alive", NULL);
	struct exec_handle late =
	    start_shell(&w, "(setsid sh -c '(" START_SERVER ") &' &); sleep 1000", &short_limits);
	struct exec_result r = finish_exec(&w, &late);
	assert_int_equal(r.status, STATUS_TIMEOUT);
	assert_true(serve_until_gone(&w, late.slot));
	struct exec_result gone = run_shell(&w, AWAIT_REAPED ": > /box/go", NULL);
	assert_exited(&gone, 0);
	struct exec_result alive = finish_exec(&w, &other);
	assert_exited(&alive, 0);
	assert_string_equal(alive.out, "alive\n");
	end_session(&w);
}

static void a_timeout_that_interrupts_lets_the_main_process_end(void **state)
{
	(void)state;
	struct whole_session w;
	const struct plan plan = session_plan();
	begin_session(&w, &plan);
	struct run_limits interrupting = { .output_bytes = 1024, .interrupts = true };
	struct exec_result polite;
	/* Again with more time, if the shell could not set its trap or run it. */
	for (int wall_ms = 250;; wall_ms *= 2) {
		interrupting.wall_ms = (uint64_t)wall_ms;
		polite = run_shell(&w,
				   "trap 'echo bye; exit 4' INT; echo set; "
				   "while :; do sleep 0.01; done",
				   &interrupting);
		assert_int_equal(polite.status, STATUS_TIMEOUT);
		if (strstr(polite.out, "bye") || wall_ms > patience_ms(60000))
			break;
	}
	assert_string_equal(polite.out, "set\nbye\n");
	struct exec_result deaf =
	    run_shell(&w, "trap '' INT; while :; do sleep 0.01; done", &interrupting);
	assert_int_equal(deaf.status, STATUS_TIMEOUT);
	end_session(&w);
}

static void an_exec_whose_worker_is_killed_leaves_no_process(void **state)
{
	(void)state;
	struct whole_session w;
	const struct plan plan = session_plan();
	begin_session(&w, &plan);
	struct exec_handle h =
	    start_shell(&w, "(sleep 1000 &); echo $$ > /box/pid; sleep 1000", NULL);
	struct exec_result wait = run_shell(&w, "until [ -s /box/pid ]; do sleep 0.01; done", NULL);
	assert_exited(&wait, 0);
	assert_int_equal(kill(h.pid, SIGKILL), 0);
	struct exec_result none = finish_exec(&w, &h);
	assert_false(none.is_there);
	assert_true(serve_until_gone(&w, h.slot));
	struct exec_result after = run_shell(&w, AWAIT_REAPED AWAIT_NO_SLEEP "echo gone", NULL);
	assert_string_equal(after.out, "gone\n");
	end_session(&w);
}

/* At each moment of its life, as far as time has it. */
static void a_worker_may_be_killed_at_any_time(void **state)
{
	(void)state;
	struct whole_session w;
	const struct plan plan = session_plan();
	begin_session(&w, &plan);
	for (int i = 0; i < 40; i++) {
		struct exec_handle h = start_shell(&w, "sleep 1000 & sleep 1000", NULL);
		(void)nanosleep(&(struct timespec){ .tv_nsec = i * 150000 }, NULL);
		assert_int_equal(kill(h.pid, SIGKILL), 0);
		(void)finish_exec(&w, &h);
		assert_true(serve_until_gone(&w, h.slot));
	}
	struct exec_result after = run_shell(&w, AWAIT_NO_SLEEP "echo gone", NULL);
	assert_string_equal(after.out, "gone\n");
	end_session(&w);
}

static void an_exec_that_uses_too_much_memory_ends_alone(void **state)
{
	(void)state;
	struct whole_session w;
	const struct plan plan = session_plan();
	if (HAS_SANITIZER) /* there is no limit that can be reached */
		return;
	begin_session(&w, &plan);
	struct exec_result made = run_shell(&w, "mkfifo /box/go", NULL);
	assert_exited(&made, 0);
	/* it waits without a fork(2), for which there may be no memory */
	struct exec_handle other = start_shell(&w, "read x < /box/go; echo alive", NULL);
	struct exec_result greedy =
	    run_shell(&w, "x=$(head -c 300000000 /dev/zero | tr '\\0' a); sleep 1000", NULL);
	if (w.end == SESSION_LIVES) {
		assert_int_equal(greedy.status, STATUS_OOM);
		struct exec_result go = run_shell(&w, ": > /box/go", NULL);
		assert_exited(&go, 0);
	}
	struct exec_result alive = finish_exec(&w, &other);
	assert_exited(&alive, 0);
	end_session(&w);
}

/* Init has forked it: a machine under load may take longer for all of them than SESSION_KILL_MS. */
static void await_reaper(const struct whole_session *w, unsigned slot)
{
	struct pollfd link = { .fd = w->session->slots[slot].link_fd, .events = POLLIN };
	assert_int_equal(poll(&link, 1, (int)TEST_PATIENCE_MS), 1);
}

static void slots_are_bounded_and_used_again(void **state)
{
	(void)state;
	struct whole_session w;
	const struct plan plan = session_plan();
	begin_session(&w, &plan);
	unsigned slot;
	for (int i = 0; i < SESSION_EXECS_MAX; i++)
		assert_int_equal(session_exec_reserve(w.session, "", &slot, &w.err), 0);
	assert_int_equal(session_exec_reserve(w.session, "", &slot, &w.err), -EBUSY);
	for (unsigned i = 0; i < SESSION_EXECS_MAX; i++)
		await_reaper(&w, i);
	for (unsigned i = 0; i < SESSION_EXECS_MAX; i++)
		session_exec_done(w.session, i);
	for (unsigned i = 0; i < SESSION_EXECS_MAX; i++)
		assert_true(serve_until_gone(&w, i));
	struct exec_result r = run_shell(&w, "exit 0", NULL);
	assert_exited(&r, 0);
	end_session(&w);
}

static void a_program_can_be_held_by_the_keeper_itself(void **state)
{
	(void)state;
	struct whole_session w;
	const struct plan plan = session_plan();
	begin_session(&w, &plan);
	int ends[2];
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	const char *argv[] = { "/bin/sh", "-c", "echo hello >&3; sleep 1000", NULL };
	const struct program program = simple_program(argv);
	const struct jail_io io = { .stdin_fd = -1,
				    .stdout_fd = -1,
				    .stderr_fd = -1,
				    .channel_fd = ends[1],
				    .tty_fd = -1,
				    .hangup_fd = -1 };
	struct jail *view = NULL;
	unsigned slot;
	char text[16] = "";
	assert_int_equal(session_exec_reserve(w.session, "", &slot, &w.err), 0);
	assert_int_equal(session_exec_open(w.session, slot, "repl", &view, &w.err), 0);
	assert_int_equal(jail_start(view, &program, &io, &w.err), 0);
	(void)close(ends[1]);
	assert_int_equal(read(ends[0], text, sizeof(text) - 1), 6);
	assert_string_equal(text, "hello\n");
	jail_destroy(&view);
	session_exec_done(w.session, slot);
	assert_true(serve_until_gone(&w, slot));
	(void)close(ends[0]);
	struct exec_result r = run_shell(&w, "exit 0", NULL);
	assert_exited(&r, 0);
	end_session(&w);
}

static void an_ended_session_cancels_its_execs(void **state)
{
	(void)state;
	struct whole_session w;
	const struct plan plan = session_plan();
	begin_session(&w, &plan);
	struct exec_handle h = start_shell(&w, "echo 1 > /box/pid; sleep 1000", NULL);
	struct exec_result wait = run_shell(&w, "until [ -s /box/pid ]; do sleep 0.01; done", NULL);
	assert_exited(&wait, 0);
	session_finish(&w.session);
	struct exec_result r = { 0 };
	assert_int_equal(read(h.result_fd, &r, sizeof(r)), sizeof(r));
	assert_int_equal(r.status, STATUS_CANCELLED);
	assert_int_equal(waitpid(h.pid, NULL, 0), h.pid);
	cj_close(&h.result_fd);
	cj_close(&h.pidfd);
	end_session(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(files_of_one_exec_are_there_for_the_next),
		cmocka_unit_test(an_exec_ends_as_a_run_does),
		cmocka_unit_test(a_program_of_a_session_has_the_restrictions_of_a_run),
		cmocka_unit_test(two_execs_run_at_once),
		cmocka_unit_test(a_file_of_an_earlier_exec_is_replaced),
		cmocka_unit_test(a_server_stays_after_its_exec_until_it_is_signalled),
		cmocka_unit_test(what_an_ended_exec_left_can_be_killed_by_its_name),
		cmocka_unit_test(a_server_that_holds_the_output_does_not_delay_the_result),
		cmocka_unit_test(an_exec_above_its_output_limit_ends_with_all_its_processes),
		cmocka_unit_test(a_timeout_kills_every_process_of_its_exec_and_no_other),
		cmocka_unit_test(a_timeout_that_interrupts_lets_the_main_process_end),
		cmocka_unit_test(an_exec_whose_worker_is_killed_leaves_no_process),
		cmocka_unit_test(a_worker_may_be_killed_at_any_time),
		cmocka_unit_test(an_exec_that_uses_too_much_memory_ends_alone),
		cmocka_unit_test(slots_are_bounded_and_used_again),
		cmocka_unit_test(a_program_can_be_held_by_the_keeper_itself),
		cmocka_unit_test(an_ended_session_cancels_its_execs),
	};
	return RUN_TESTS_OF_JAILS(tests);
}
