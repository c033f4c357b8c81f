/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keeper of a session: it serves several execs at once, ends what they leave, and ends the
 * session for a reason that it names.
 */
#include "tests/session/whole_session.h"

#include "runtime/session/files/session_files.h"

static struct exec_result run_well(struct whole_session *w, const char *script)
{
	struct exec_result r = run_shell(w, script, NULL);
	if (!r.is_there || r.rc < 0)
		fail_msg("no outcome: %s", r.message);
	return r;
}

static void execs_run_one_after_another_in_one_jail(void **state)
{
	(void)state;
	struct whole_session w;
	const struct plan plan = session_plan();
	begin_session(&w, &plan);
	struct exec_result r = run_well(&w, "echo one >/box/a; echo hi; exit 3");
	assert_int_equal(r.status, STATUS_EXITED);
	assert_int_equal(r.exit_code, 3);
	assert_string_equal(r.out, "hi\n");
	r = run_well(&w, "cat /box/a");
	assert_string_equal(r.out, "one\n");

	struct session_status status;
	session_status(w.session, &status);
	end_session(&w);
}

static void a_jail_with_a_program_becomes_no_session(void **state)
{
	(void)state;
	struct whole_session w;
	const struct plan plan = session_plan();
	const char *argv[] = { "/bin/sleep", "30", NULL };
	const struct program program = simple_program(argv);
	const struct jail_io io = {
		.stdin_fd = -1, .stdout_fd = -1, .stderr_fd = -1, .tty_fd = -1, .hangup_fd = -1
	};
	w = (struct whole_session){ .descriptors_before = open_descriptors() };
	assert_int_equal(session_prepare(&plan, unique_id(), &w.jail, &w.err), 0);
	assert_int_equal(jail_start(w.jail, &program, &io, &w.err), 0);
	assert_int_equal(session_begin(w.jail, &w.session, &w.err), -EBUSY);
	assert_null(w.session);
	session_finish(&w.session); /* of none: nothing */
	end_session(&w);
}

static void a_jail_of_a_run_becomes_no_session(void **state)
{
	(void)state;
	struct whole_session w = { .plan = session_plan(),
				   .descriptors_before = open_descriptors() };
	assert_int_equal(jail_prepare(&w.plan, unique_id(), &w.jail, &w.err), 0);
	assert_int_equal(session_begin(w.jail, &w.session, &w.err), -EINVAL);
	end_session(&w);
}

static void the_callers_descriptors_wait_in_the_same_round(void **state)
{
	(void)state;
	struct whole_session w;
	const struct plan plan = session_plan();
	int ends[2];
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	begin_session(&w, &plan);
	struct pollfd fds[2] = { { .fd = ends[0], .events = POLLIN }, { .fd = -1 } };
	assert_int_equal(session_serve(w.session, fds, 2, 0, &w.end, &w.err), 0);
	assert_int_equal(fds[0].revents, 0);
	assert_int_equal(write(ends[1], "x", 1), 1);
	assert_int_equal(session_serve(w.session, fds, 2, -1, &w.end, &w.err), 1);
	assert_int_equal(fds[0].revents, POLLIN);
	end_session(&w);
	cj_close(&ends[0]);
	cj_close(&ends[1]);
}

static void a_server_stays_when_its_exec_has_ended_and_keeps_the_slot(void **state)
{
	(void)state;
	struct whole_session w;
	const struct plan plan = session_plan();
	begin_session(&w, &plan);
	struct exec_handle e = start_shell(&w,
					   "(while [ ! -e /box/stop ]; do sleep 0.1; done; "
					   "echo bye >/box/bye) >/dev/null 2>&1 & echo up",
					   NULL);
	assert_string_equal(finish_exec(&w, &e).out, "up\n");
	assert_string_equal(run_well(&w, "echo other").out, "other\n");
	assert_true(session_slot_has_exec(&w.session->slots[e.slot]));
	assert_int_equal(run_well(&w, ">/box/stop").exit_code, 0);
	assert_true(serve_until_gone(&w, e.slot));
	serve_until_file(&w, "bye");
	end_session(&w);
}

static void what_a_killed_worker_left_is_killed(void **state)
{
	(void)state;
	struct whole_session w;
	const struct plan plan = session_plan();
	begin_session(&w, &plan);
	struct exec_handle e = start_shell(&w,
					   "(trap '' TERM; while :; do sleep 0.05; done) & "
					   ">/box/up; sleep 1000",
					   NULL);
	serve_until_file(&w, "up");
	assert_int_equal(sys_pidfd_send_signal(e.pidfd, SIGKILL), 0);
	assert_false(finish_exec(&w, &e).is_there);
	assert_true(serve_until_gone(&w, e.slot));
	assert_string_equal(run_well(&w, "while pgrep sleep >/dev/null; do :; done; echo end").out,
			    "end\n");
	end_session(&w);
}

static void the_death_of_init_ends_the_session(void **state)
{
	(void)state;
	struct whole_session w;
	const struct plan plan = session_plan();
	begin_session(&w, &plan);
	struct exec_handle e = start_shell(&w, ">/box/up; sleep 1000", NULL);
	serve_until_file(&w, "up");
	assert_int_equal(sys_pidfd_send_signal(w.jail->init_pidfd, SIGKILL), 0);
	serve_until_end(&w);
	assert_int_equal(w.end, SESSION_KILLED);
	assert_string_equal(w.err.msg, "the session's init was killed");
	struct exec_result r = finish_exec(&w, &e);
	if (r.is_there &&
	    r.rc == 0) /* else init died before its worker knew that the program runs */
		assert_int_equal(r.status, STATUS_SIGNALED);
	end_session(&w);
}

static void all_slots_in_use_is_ebusy(void **state)
{
	(void)state;
	struct whole_session w;
	struct plan plan = session_plan();
	plan.limits.pids = 4 * SESSION_EXECS_MAX;
	begin_session(&w, &plan);
	unsigned slots[SESSION_EXECS_MAX], more;
	for (unsigned i = 0; i < SESSION_EXECS_MAX; i++)
		assert_int_equal(session_exec_reserve(w.session, "", &slots[i], &w.err), 0);
	assert_int_equal(session_exec_reserve(w.session, "", &more, &w.err), -EBUSY);
	struct session_status status;
	session_status(w.session, &status);
	assert_int_equal(status.execs, SESSION_EXECS_MAX);
	for (unsigned i = 0; i < SESSION_EXECS_MAX; i++)
		session_exec_done(w.session, slots[i]);
	for (unsigned i = 0; i < SESSION_EXECS_MAX; i++)
		assert_true(serve_until_gone(&w, slots[i]));
	assert_string_equal(run_well(&w, "echo again").out, "again\n");
	end_session(&w);
}

static void a_signal_reaches_the_main_process(void **state)
{
	(void)state;
	struct whole_session w;
	const struct plan plan = session_plan();
	begin_session(&w, &plan);
	struct exec_handle e = start_shell(&w,
					   "trap 'echo got; exit 7' USR1; >/box/up; "
					   "while :; do sleep 0.05; done",
					   NULL);
	serve_until_file(&w, "up");
	assert_int_equal(session_exec_signal(w.session, e.slot, SIGUSR1, &w.err), 0);
	assert_int_equal(finish_exec(&w, &e).exit_code, 7);
	assert_true(serve_until_gone(&w, e.slot));
	assert_int_equal(session_exec_signal(w.session, e.slot, SIGUSR1, &w.err), -ESRCH);
	end_session(&w);
}

/* --- limits of the whole session ------------------------------------------------------------- */

/* Takes so many MiB, says so, and waits. */
#define TAKE                                                                                       \
	"exec python3 -c 'import time; b = bytearray(%u << 20); b[::4096] = b\"x\" * "             \
	"len(b[::4096]); open(\"/box/up%u\", \"w\"); time.sleep(1000)'"

static struct exec_handle take(struct whole_session *w, unsigned mib, unsigned number)
{
	static char script[4][256];
	(void)snprintf(script[number % 4], sizeof(script[0]), TAKE, mib, number);
	return start_shell(w, script[number % 4], NULL);
}

static bool is_sampled(const struct whole_session *w)
{
	return w->jail->limits[LIMIT_MEMORY].enforced_by == ENFORCED_BY_SUPERVISOR;
}

static void one_exec_that_needs_too_much_memory_ends_and_the_others_live(void **state)
{
	(void)state;
	struct whole_session w;
	struct plan plan = session_plan();
	if (HAS_SANITIZER) /* there is no limit that can be reached */
		return;
	plan.limits.memory_bytes = TEST_MEMORY_BYTES * 4;
	begin_session(&w, &plan);
	if (!is_sampled(&w)) {
		end_session(&w);
		skip();
	}
	struct exec_handle small = take(&w, 40, 1);
	serve_until_file(&w, "up1");
	struct exec_handle large = take(&w, 230, 2);
	struct exec_result r = finish_exec(&w, &large);
	assert_int_equal(r.status, STATUS_OOM);
	assert_int_equal(r.memory_hit, HIT_YES);
	assert_string_equal(run_well(&w, "echo alive").out, "alive\n");
	assert_int_equal(session_exec_signal(w.session, small.slot, SIGKILL, &w.err), 0);
	assert_int_equal(finish_exec(&w, &small).status, STATUS_SIGNALED);
	end_session(&w);
}

static void execs_that_together_need_too_much_memory_end_the_session(void **state)
{
	(void)state;
	struct whole_session w;
	struct plan plan = session_plan();
	if (HAS_SANITIZER) /* there is no limit that can be reached */
		return;
	plan.limits.memory_bytes = TEST_MEMORY_BYTES * 4;
	begin_session(&w, &plan);
	if (!is_sampled(&w)) {
		end_session(&w);
		skip();
	}
	struct exec_handle execs[3];
	for (unsigned i = 0; i < 3; i++)
		execs[i] = take(&w, 100, i);
	serve_until_end(&w);
	assert_int_equal(w.end, SESSION_OOM);
	session_finish(&w.session);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(finish_exec(&w, &execs[i]).status, STATUS_OOM);
	end_session(&w);
}

static void a_mount_is_entered_with_the_rights_of_a_program_and_stays(void **state)
{
	(void)state;
	struct whole_session w;
	struct plan plan = session_plan();
	static const struct bind_spec bind = { BIND_READ_ONLY, "/etc", "/box/etc" };
	struct session_file file;
	struct session_put put = SESSION_PUT_NULL;
	bool is_new = true;
	auto_arena struct arena a = { 0 };
	plan.root.binds = &bind;
	plan.root.nbinds = 1;
	begin_session(&w, &plan);
	int fd = session_file_open(w.jail, "/box/etc/passwd", 1 << 20, &a, &file, &w.err);
	assert_true(fd >= 0);
	cj_close(&fd);
	assert_int_equal(session_file_create(w.jail, "/box/etc/x", &a, &put, &w.err), -EROFS);
	assert_int_equal(session_file_mkdir(w.jail, "/box/etc/x", &is_new, &w.err), -EROFS);
	assert_int_equal(run_well(&w, "mkdir /box/d; >/tmp/t; test -e /box/etc/passwd").exit_code,
			 0);
	assert_int_equal(session_file_rename(w.jail, "/box/d", "/box/etc", &w.err), -EACCES);
	assert_int_equal(session_file_rename(w.jail, "/box/etc", "/box/f", &w.err), -EACCES);
	assert_int_equal(session_file_remove(w.jail, "/box/etc", &w.err), -EACCES);
	assert_int_equal(session_file_remove(w.jail, "/box/d", &w.err), 0);
	assert_int_equal(session_file_remove(w.jail, "/tmp/t", &w.err), 0);
	assert_int_equal(run_well(&w, "test -e /box/etc/passwd").exit_code, 0);
	end_session(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(execs_run_one_after_another_in_one_jail),
		cmocka_unit_test(a_jail_with_a_program_becomes_no_session),
		cmocka_unit_test(a_jail_of_a_run_becomes_no_session),
		cmocka_unit_test(the_callers_descriptors_wait_in_the_same_round),
		cmocka_unit_test(a_server_stays_when_its_exec_has_ended_and_keeps_the_slot),
		cmocka_unit_test(what_a_killed_worker_left_is_killed),
		cmocka_unit_test(the_death_of_init_ends_the_session),
		cmocka_unit_test(all_slots_in_use_is_ebusy),
		cmocka_unit_test(a_signal_reaches_the_main_process),
		cmocka_unit_test(one_exec_that_needs_too_much_memory_ends_and_the_others_live),
		cmocka_unit_test(execs_that_together_need_too_much_memory_end_the_session),
		cmocka_unit_test(a_mount_is_entered_with_the_rights_of_a_program_and_stays),
	};
	return RUN_TESTS_OF_JAILS(tests);
}
