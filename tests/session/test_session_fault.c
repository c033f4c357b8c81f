/* SPDX-License-Identifier: Apache-2.0 */
/* WRAP: fork socketpair sendmsg sendto recvmsg setsockopt prctl sigaction openat getrusage chdir */
/* WRAP: mmap malloc calloc sys_close_range sys_pidfd_open sys_pidfd_send_signal sys_read */
/* WRAP: sys_write landlock_restrict landlock_domain_ruleset system_file_write arena_array */
/*
 * A session with one exec, again and again: each call of keeper, exec worker, init and reaper fails
 * once, and each of the four dies at each of its calls.  Either all went as it should, or an error
 * or the session's end says so; nobody waits for ever, and nothing is left.
 */
#include "tests/session/whole_session.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "runtime/base/files/system_file.h"
#include "runtime/kernel/process/landlock.h"
#include "tests/failing.h"
#include "tests/forked.h"

enum role { KEEPER, WORKER, INIT, REAPER, ROLE_COUNT };
static const char *const role_names[ROLE_COUNT] = { "keeper", "worker", "init", "reaper" };

/* Shared with all of them. */
static struct trial {
	enum role role;
	bool is_armed, dies;
	int calls;
	pid_t keeper, worker, init;
} * trial;

static enum role my_role(void)
{
	pid_t pid = getpid();
	if (pid == trial->keeper)
		return KEEPER;
	if (pid == 1)
		return INIT;
	return pid == trial->worker ? WORKER : REAPER;
}

static bool is_of_role(void)
{
	return trial->is_armed && my_role() == trial->role;
}

static void die(void)
{
	if (!trial->dies)
		return;
	if (trial->role == INIT)
		_exit(1); /* a signal of its own does not kill it: pid_namespaces(7) */
	(void)kill(getpid(), SIGKILL);
}

FAILS(pid_t, fork, (void), (), -1, EAGAIN)
FAILS(int, socketpair, (int domain, int kind, int protocol, int ends[2]),
      (domain, kind, protocol, ends), -1, EMFILE)
FAILS(ssize_t, sendmsg, (int fd, const struct msghdr *msg, int flags), (fd, msg, flags), -1, ENOMEM)
FAILS(ssize_t, sendto,
      (int fd, const void *bytes, size_t size, int flags, const struct sockaddr *to,
       socklen_t to_size),
      (fd, bytes, size, flags, to, to_size), -1, ENOMEM)
FAILS(ssize_t, recvmsg, (int fd, struct msghdr *msg, int flags), (fd, msg, flags), -1, ENOMEM)
FAILS(int, setsockopt, (int fd, int level, int name, const void *value, socklen_t size),
      (fd, level, name, value, size), -1, ENOMEM)
FAILS(int, sigaction, (int signal, const struct sigaction *act, struct sigaction *old),
      (signal, act, old), -1, EINVAL)
FAILS(int, getrusage, (__rusage_who_t who, struct rusage *out), (who, out), -1, EINVAL)
FAILS(int, chdir, (const char *path), (path), -1, EACCES)
FAILS(void *, mmap, (void *at, size_t size, int protection, int flags, int fd, off_t offset),
      (at, size, protection, flags, fd, offset), MAP_FAILED, ENOMEM)
FAILS(void *, malloc, (size_t size), (size), NULL, ENOMEM)
FAILS(void *, calloc, (size_t count, size_t size), (count, size), NULL, ENOMEM)
FAILS(void *, arena_array, (struct arena * a, size_t count, size_t size), (a, count, size), NULL,
      ENOMEM)
FAILS(int, sys_close_range, (unsigned first, unsigned last, unsigned flags), (first, last, flags),
      -1, EMFILE)
FAILS(int, sys_pidfd_open, (pid_t pid), (pid), -1, EMFILE)
FAILS(int, sys_pidfd_send_signal, (int pidfd, int sig), (pidfd, sig), -1, EPERM)
FAILS(ssize_t, sys_read, (int fd, void *buf, size_t size), (fd, buf, size), -1, EIO)
FAILS(ssize_t, sys_write, (int fd, const void *buf, size_t size), (fd, buf, size), -1, EIO)
FAILS(int, system_file_write, (int dir_fd, const char *name, const char *text),
      (dir_fd, name, text), -EBUSY, EBUSY)

int __real_openat(int dir_fd, const char *path, int flags, mode_t mode);
int __wrap_openat(int dir_fd, const char *path, int flags, mode_t mode);
int __wrap_openat(int dir_fd, const char *path, int flags, mode_t mode)
{
	return is_next(EMFILE) ? -1 : __real_openat(dir_fd, path, flags, mode);
}

int __real_prctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d);
int __wrap_prctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d);
int __wrap_prctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d)
{
	return is_next(EINVAL) ? -1 : __real_prctl(option, a, b, c, d);
}

int __real_landlock_restrict(int ruleset_fd, struct cj_error *err);
int __wrap_landlock_restrict(int ruleset_fd, struct cj_error *err);
int __wrap_landlock_restrict(int ruleset_fd, struct cj_error *err)
{
	return is_next(E2BIG) ? cj_fail(err, E2BIG, "landlock_restrict_self(2)")
			      : __real_landlock_restrict(ruleset_fd, err);
}

int __real_landlock_domain_ruleset(bool *out_has_scopes, struct cj_error *err);
int __wrap_landlock_domain_ruleset(bool *out_has_scopes, struct cj_error *err);
int __wrap_landlock_domain_ruleset(bool *out_has_scopes, struct cj_error *err)
{
	return is_next(ENOMEM) ? cj_fail(err, ENOMEM, "landlock_create_ruleset(2)")
			       : __real_landlock_domain_ruleset(out_has_scopes, err);
}

/* --- one session --------------------------------------------------------------------------- */

static const struct run_limits limits = { .wall_ms = 1000, .output_bytes = 1024 };

/* Also the signal may be what fails. */
static void end_rest(struct whole_session *w, unsigned slot)
{
	const uint64_t deadline = clock_ms() + TEST_PATIENCE_MS;
	while (w->end == SESSION_LIVES && session_slot_has_exec(&w->session->slots[slot])) {
		(void)session_exec_signal(w->session, slot, SIGKILL, &w->err);
		(void)session_serve(w->session, NULL, 0, 10, &w->end, &w->err);
		assert_true(clock_ms() < deadline);
	}
}

/* The worker's result, if it has one. */
static struct exec_result one_exec(struct whole_session *w)
{
	struct exec_result r = { 0 };
	struct exec_handle h = { 0 };
	const char *argv[] = { "/bin/sh", "-c", "sleep 1000 >/dev/null & echo hi; exit 3", NULL };
	struct program program = simple_program(argv);
	int ends[2];
	program.limits = limits;
	program.code_source = CODE_STRING;
	program.code_name = "-c";
	program.code_text = "x";
	program.code_size = 1;
	program.code_path = "/box/x";
	if (session_exec_reserve(w->session, "", &h.slot, &w->err) < 0)
		return r;
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	h.pid = __real_fork();
	assert_true(h.pid >= 0);
	if (h.pid == 0) {
		struct exec_result mine = { .is_there = true };
		leave_test_runner();
		trial->worker = getpid();
		(void)__real_prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
		if (session_fork_keep(w->session, h.slot, &ends[1], 1, &w->err) == 0)
			mine.rc = work(w, h.slot, &program, &mine);
		else
			mine.rc = -1;
		_exit(write(ends[1], &mine, sizeof(mine)) == (ssize_t)sizeof(mine) ? 0 : 1);
	}
	(void)close(ends[1]);
	h.result_fd = ends[0];
	h.pidfd = __real_sys_pidfd_open(h.pid);
	(void)serve_until(w, h.pidfd);
	if (w->end != SESSION_LIVES)
		session_finish(&w->session); /* its worker notices */
	if (read(h.result_fd, &r, sizeof(r)) != (ssize_t)sizeof(r))
		r.is_there = false;
	assert_int_equal(waitpid(h.pid, NULL, 0), h.pid);
	cj_close(&h.result_fd);
	cj_close(&h.pidfd);
	if (w->end != SESSION_LIVES)
		return r;
	session_exec_done(w->session, h.slot);
	end_rest(w, h.slot);
	return r;
}

static void check_result(const struct exec_result *r, bool was_isolated)
{
	if (!r->is_there || r->rc != 0)
		return;
	if (r->status == STATUS_EXITED && r->exec_errno == 0) {
		assert_int_equal(r->exit_code, 3);
		assert_true(r->out[0] == '\0' || strcmp(r->out, "hi\n") == 0);
	}
	assert_true(was_isolated || strstr(r->warnings, "isolated") ||
		    strstr(r->warnings, "signal each other"));
}

/* Returns what was counted. */
static int try_once(const struct plan *plan)
{
	struct whole_session w = { .plan = *plan, .descriptors_before = open_descriptors() };
	struct exec_result r = { 0 };
	*calls = 0;
	if (session_prepare(&w.plan, unique_id(), &w.jail, &w.err) < 0)
		fail_msg("no jail: %s", w.err.msg);
	trial->init = w.jail->init_pid;
	trial->is_armed = true;
	if (session_begin(w.jail, &w.session, &w.err) == 0) {
		bool is_isolated = session_isolation(w.session) == SESSION_ISOLATED;
		r = one_exec(&w);
		trial->is_armed = false;
		check_result(&r, is_isolated);
	}
	trial->is_armed = false;
	session_finish(&w.session);
	jail_destroy(&w.jail);
	if (open_descriptors() != w.descriptors_before)
		print_error("%s, call %d: %s\n", role_names[trial->role], fail_at, w.err.msg);
	assert_nothing_held(w.descriptors_before);
	return *calls;
}

/* Of 370 sessions every third, which take half a minute; make proof tries all. */
static int step(void)
{
	const char *is_long = getenv("CEJAIL_TEST_LONG");
	return is_long && strcmp(is_long, "1") == 0 ? 1 : 3;
}

/* Until a role makes fewer calls. */
static void try_each_call(enum role role, bool dies)
{
	const struct plan plan = session_plan();
	trial->role = role;
	trial->dies = dies;
	trial->keeper = getpid();
	for (fail_at = 1; fail_at < 2000; fail_at += step()) {
		int made = try_once(&plan);
		if (made < fail_at) {
			print_message("%s: %d calls\n", role_names[role], made);
			assert_true(fail_at > 3);
			return;
		}
	}
	fail_msg("it has no end");
}

static void every_failing_call_of_the_keeper_leaves_nothing(void **state)
{
	(void)state;
	try_each_call(KEEPER, false);
}

static void every_failing_call_of_a_worker_leaves_nothing(void **state)
{
	(void)state;
	try_each_call(WORKER, false);
}

static void every_failing_call_of_init_leaves_nothing(void **state)
{
	(void)state;
	try_each_call(INIT, false);
}

static void every_failing_call_of_a_reaper_leaves_nothing(void **state)
{
	(void)state;
	try_each_call(REAPER, false);
}

static void a_worker_that_dies_at_any_call_leaves_nothing(void **state)
{
	(void)state;
	try_each_call(WORKER, true);
}

static void an_init_that_dies_at_any_call_leaves_nothing(void **state)
{
	(void)state;
	try_each_call(INIT, true);
}

static void a_reaper_that_dies_at_any_call_leaves_nothing(void **state)
{
	(void)state;
	try_each_call(REAPER, true);
}

/* When init is dead, so is every process of its pid namespace: pid_namespaces(7). */
static void wait_for_death(pid_t pid)
{
	const uint64_t deadline = clock_ms() + TEST_PATIENCE_MS;
	while (kill(pid, 0) == 0 && clock_ms() < deadline)
		(void)nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	assert_true(kill(pid, 0) < 0);
}

static void a_keeper_that_dies_at_any_call_leaves_no_process(void **state)
{
	(void)state;
	const struct plan plan = session_plan();
	trial->role = KEEPER;
	trial->dies = true;
	for (fail_at = 1; fail_at < 2000; fail_at += step()) {
		int status;
		pid_t pid = __real_fork();
		assert_true(pid >= 0);
		if (pid == 0) {
			leave_test_runner();
			trial->keeper = getpid();
			(void)try_once(&plan);
			_exit(0);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		wait_for_death(trial->init);
		if (WIFEXITED(status)) {
			assert_int_equal(WEXITSTATUS(status), 0);
			return;
		}
	}
	fail_msg("it has no end");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_failing_call_of_the_keeper_leaves_nothing),
		cmocka_unit_test(every_failing_call_of_a_worker_leaves_nothing),
		cmocka_unit_test(every_failing_call_of_init_leaves_nothing),
		cmocka_unit_test(every_failing_call_of_a_reaper_leaves_nothing),
		cmocka_unit_test(a_worker_that_dies_at_any_call_leaves_nothing),
		cmocka_unit_test(an_init_that_dies_at_any_call_leaves_nothing),
		cmocka_unit_test(a_reaper_that_dies_at_any_call_leaves_nothing),
		cmocka_unit_test(a_keeper_that_dies_at_any_call_leaves_no_process),
	};
	trial = __real_mmap(NULL, sizeof(*trial), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (trial == MAP_FAILED)
		return 1;
	calls = &trial->calls;
	is_counted = is_of_role;
	on_failure = die;
	is_armed = true;
	return RUN_TESTS_OF_JAILS(tests);
}
