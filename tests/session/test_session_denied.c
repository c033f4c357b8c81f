/* SPDX-License-Identifier: Apache-2.0 */
/* A refused system call is reported by the exec that made it, and by no other. */
#include "tests/session/whole_session.h"

#include "runtime/session/session_state.h"

/* unshare(1) is refused its system call; the shell goes on. */
#define CALL    "unshare(CLONE_NEWUSER)"
#define REFUSED "unshare -U true 2>/dev/null; "

static void begin_watched(struct whole_session *w)
{
	const struct plan plan = session_plan();
	begin_session(w, &plan);
	if (!w->jail->watch) {
		end_session(w);
		print_message("skipped: an outer sandbox has the listener\n");
		skip();
	}
}

static bool was_denied(const struct exec_result *r, const char *name, unsigned count)
{
	for (size_t i = 0; i < r->ndenied; i++)
		if (strcmp(r->denied[i].name, name) == 0)
			return r->denied[i].count == count;
	for (size_t i = 0; i < r->ndenied; i++)
		print_error("denied: %s %u\n", r->denied[i].name, r->denied[i].count);
	print_error("%s%s", r->message, r->warnings);
	return false;
}

static void a_call_is_counted_for_its_exec_alone(void **state)
{
	(void)state;
	struct whole_session w;
	begin_watched(&w);
	struct exec_handle h =
	    start_shell(&w, REFUSED REFUSED REFUSED ">/box/up; sleep 1000", NULL);
	serve_until_file(&w, "up");
	struct exec_result good = run_shell(&w, "echo fine", NULL);
	assert_exited(&good, 0);
	assert_int_equal(good.ndenied, 0);
	struct exec_result other =
	    run_shell(&w, "(sh -c '" REFUSED "'); setsid " REFUSED "true", NULL);
	assert_true(was_denied(&other, CALL, 2));
	assert_int_equal(session_exec_signal(w.session, h.slot, SIGKILL, &w.err), 0);
	struct exec_result bad = finish_exec(&w, &h);
	assert_true(was_denied(&bad, CALL, 3));
	assert_int_equal(bad.ndenied, 1);

	struct session_status status;
	session_status(w.session, &status);
	assert_int_equal(status.ndenied, 1);
	assert_string_equal(status.denied[0].name, CALL);
	assert_int_equal(status.denied[0].count, 5);
	assert_true(status.denied_is_complete);
	end_session(&w);
}

/* Its worker reads the row when the main process has ended: the call was counted before that. */
static void the_last_call_of_a_program_is_in_its_result(void **state)
{
	(void)state;
	struct whole_session w;
	begin_watched(&w);
	for (unsigned i = 0; i < 20; i++) {
		struct exec_result r = run_shell(&w, "exec unshare -U true", NULL);
		assert_true(was_denied(&r, CALL, 1));
	}
	end_session(&w);
}

/* Its parents are gone: the reaper is its parent now. */
static void a_call_of_an_orphan_belongs_to_its_exec(void **state)
{
	(void)state;
	struct whole_session w;
	begin_watched(&w);
	struct exec_handle h = start_shell(&w,
					   "(sh -c '(while [ ! -e /box/go ]; do sleep 0.02; done; "
					   "unshare -U true; >/box/done) & true') 2>/dev/null; "
					   ">/box/up; sleep 1000",
					   NULL);
	serve_until_file(&w, "up");
	struct exec_result second =
	    run_shell(&w, ">/box/go; while [ ! -e /box/done ]; do sleep 0.02; done", NULL);
	assert_exited(&second, 0);
	assert_int_equal(second.ndenied, 0);
	assert_int_equal(session_exec_signal(w.session, h.slot, SIGKILL, &w.err), 0);
	struct exec_result first = finish_exec(&w, &h);
	assert_true(was_denied(&first, CALL, 1));
	end_session(&w);
}

/* A process at the end of a chain of 160 has its exec too far above. */
static void a_caller_that_is_too_deep_is_missing_in_every_exec(void **state)
{
	(void)state;
	static const char deep[] = "d() { if [ $1 -gt 0 ]; then (d $(($1 - 1)); true); "
				   "else unshare -U true 2>/dev/null; fi; }; d 160";
	struct whole_session w;
	struct plan plan = session_plan();
	plan.limits.pids = 300;
	begin_session(&w, &plan);
	struct exec_result r = run_shell(&w, deep, NULL);
	assert_int_equal(r.ndenied, 0);
	assert_non_null(strstr(r.warnings, "some denied system calls were not counted"));
	r = run_shell(&w, "true", NULL); /* a new row */
	assert_exited(&r, 0);
	assert_null(strstr(r.warnings, "some denied system calls were not counted"));
	end_session(&w);
}

/* A filter stays with its process: the next exec may load as many. */
static void filters_that_are_loaded_count_for_each_exec(void **state)
{
	(void)state;
	static const char load[] =
	    "exec python3 -c '\n"
	    "import ctypes, os\n"
	    "c = ctypes.CDLL(None, use_errno=True)\n"
	    "class P(ctypes.Structure): _fields_ = [(\"n\", ctypes.c_ushort), (\"f\", "
	    "ctypes.c_void_p)]\n"
	    "f = ctypes.create_string_buffer(b\"\\x06\\0\\0\\0\\0\\0\\xff\\x7f\", 8)\n"
	    "p = P(1, ctypes.addressof(f))\n"
	    "n = 0\n"
	    "while n < 100:\n"
	    "  pid = os.fork()\n"
	    "  if pid == 0: os._exit(0 if c.prctl(22, 2, ctypes.byref(p), 0, 0) == 0 else 1)\n"
	    "  if os.waitpid(pid, 0)[1] != 0: break\n"
	    "  n += 1\n"
	    "print(n)'";
	struct whole_session w;
	begin_watched(&w);
	char expected[16];
	(void)snprintf(expected, sizeof(expected), "%d\n", FILTER_LOADS_MAX);
	for (unsigned i = 0; i < 3; i++)
		assert_string_equal(run_shell(&w, load, NULL).out, expected);
	end_session(&w);
}

/* --- rows ---------------------------------------------------------------------------- */

static struct session_row *row_of(unsigned count)
{
	static struct session_row row;
	memset(&row, 0, sizeof(row));
	for (unsigned i = 0; i < count; i++) {
		(void)snprintf(row.denied[i].name, sizeof(row.denied[i].name), "call %u", i);
		atomic_store(&row.denied[i].count, i + 1);
	}
	atomic_store(&row.ndenied, count);
	return &row;
}

static void a_row_becomes_the_report_of_its_exec(void **state)
{
	(void)state;
	struct outcome out;
	struct cj_error err = { 0 };
	outcome_init(&out, "x", 10);
	assert_int_equal(session_denied_read(row_of(0), &out, &err), 0);
	assert_int_equal(out.ndenied + out.warnings.count, 0);
	struct session_row *row = row_of(SESSION_DENIED_MAX);
	atomic_store(&row->denied_is_incomplete, true);
	assert_int_equal(session_denied_read(row, &out, &err), 0);
	assert_int_equal(out.ndenied, SESSION_DENIED_MAX);
	assert_string_equal(out.denied[SESSION_DENIED_MAX - 1].name, "call 31");
	assert_int_equal(out.denied[SESSION_DENIED_MAX - 1].count, 32);
	assert_int_equal(out.warnings.count, 1);
	outcome_fini(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_row_becomes_the_report_of_its_exec),
		cmocka_unit_test(a_call_is_counted_for_its_exec_alone),
		cmocka_unit_test(the_last_call_of_a_program_is_in_its_result),
		cmocka_unit_test(a_call_of_an_orphan_belongs_to_its_exec),
		cmocka_unit_test(a_caller_that_is_too_deep_is_missing_in_every_exec),
		cmocka_unit_test(filters_that_are_loaded_count_for_each_exec),
	};
	return RUN_TESTS_OF_JAILS(tests);
}
