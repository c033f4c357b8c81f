/* SPDX-License-Identifier: Apache-2.0 */
/* What a program of a session tries against its reaper, the other execs and the keeper. */
/* WRAP: landlock_domain_ruleset process_tree_kill cgroup_kill */
#include "tests/session/whole_session.h"

#include "runtime/kernel/seccomp/policy.h"
#include "runtime/kernel/cgroup/cgroup.h"
#include "runtime/kernel/process/landlock.h"
#include "runtime/kernel/process/process_tree.h"
#include "tests/forked.h"

static bool has_no_landlock, has_no_scopes; /* ABI 0; 2 to 5 */

int __real_landlock_domain_ruleset(bool *out_has_scopes, struct cj_error *err);
int __wrap_landlock_domain_ruleset(bool *out_has_scopes, struct cj_error *err);
int __wrap_landlock_domain_ruleset(bool *out_has_scopes, struct cj_error *err)
{
	if (has_no_landlock)
		return cj_fail(err, ENOSYS, "Landlock");
	int ruleset_fd = __real_landlock_domain_ruleset(out_has_scopes, err);
	*out_has_scopes = *out_has_scopes && !has_no_scopes;
	return ruleset_fd;
}

static bool no_kill_works;

size_t __real_process_tree_kill(int proc_fd, pid_t root_pid);
size_t __wrap_process_tree_kill(int proc_fd, pid_t root_pid);
size_t __wrap_process_tree_kill(int proc_fd, pid_t root_pid)
{
	return no_kill_works ? 1 : __real_process_tree_kill(proc_fd, root_pid);
}

void __real_cgroup_kill(const struct cgroup *c);
void __wrap_cgroup_kill(const struct cgroup *c);
void __wrap_cgroup_kill(const struct cgroup *c)
{
	if (!no_kill_works)
		__real_cgroup_kill(c);
}

/* A program that waits in the session; its pid is in /box/victim. */
#define VICTIM "echo $$ > /box/victim; until [ -e /box/go ]; do sleep 0.01; done; echo alive"
#define FIND_VICTIM                                                                                \
	"until [ -s /box/victim ]; do sleep 0.01; done; v=$(cat /box/victim); "                    \
	"r=$(sed -n 's/^PPid:.//p' /proc/$v/status); "

static bool is_isolated(const struct whole_session *w)
{
	return session_isolation(w->session) == SESSION_ISOLATED;
}

/* `attack` runs beside a victim, with the victim's pid in $v and its reaper's in $r. */
static struct exec_result attack_victim(struct whole_session *w, const char *attack)
{
	char script[2048];
	struct exec_handle victim = start_shell(w, VICTIM, NULL);
	(void)snprintf(script, sizeof(script), FIND_VICTIM "%s", attack);
	struct exec_result r = run_shell(w, script, NULL);
	struct exec_result go = run_shell(w, ": > /box/go", NULL);
	assert_exited(&go, 0);
	struct exec_result alive = finish_exec(w, &victim);
	assert_exited(&alive, 0);
	assert_string_equal(alive.out, "alive\n");
	return r;
}

static void no_exec_can_signal_another_or_a_reaper(void **state)
{
	(void)state;
	struct whole_session w;
	const struct plan plan = session_plan();
	begin_session(&w, &plan);
	if (is_isolated(&w)) {
		struct exec_result r =
		    attack_victim(&w, "for p in $v $r $PPID 1; do for s in KILL STOP TERM; do "
				      "kill -$s $p 2>/dev/null && echo signalled $p; done; done; "
				      "kill -KILL -1 2>/dev/null; :");
		assert_exited(&r, 0);
		assert_string_equal(r.out, "");
	}
	end_session(&w);
}

static void no_exec_can_open_the_proc_files_of_another(void **state)
{
	(void)state;
	struct whole_session w;
	const struct plan plan = session_plan();
	begin_session(&w, &plan);
	if (session_isolation(w.session) != SESSION_SHARED) {
		struct exec_result r = attack_victim(
		    &w, "for p in $v $r $PPID 1; do for f in mem environ maps auxv; do "
			"head -c 1 /proc/$p/$f >/dev/null 2>&1 && echo read $f; done; "
			"for f in exe cwd root; do readlink /proc/$p/$f; done; "
			"for f in 0 1 2 3 4 5; do ls /proc/$p/fd/$f 2>/dev/null; "
			"echo forged 2>/dev/null >/proc/$p/fd/$f; done; done; :");
		assert_exited(&r, 0);
		assert_string_equal(r.out, "");
	}
	end_session(&w);
}

static void a_program_gets_its_three_streams_and_no_other_descriptor(void **state)
{
	(void)state;
	struct whole_session w;
	const struct plan plan = session_plan();
	begin_session(&w, &plan);
	struct exec_handle other = start_shell(&w, VICTIM, NULL);
	struct exec_result r = run_shell(&w,
					 "for i in 3 4 5 6 7 8 9 10 11 12; do "
					 "[ -e /proc/$$/fd/$i ] && echo $i; done; : > /box/go",
					 NULL);
	assert_exited(&r, 0);
	assert_string_equal(r.out, "");
	struct exec_result alive = finish_exec(&w, &other);
	assert_exited(&alive, 0);
	end_session(&w);
}

static void a_move_to_another_directory_still_works(void **state)
{
	(void)state;
	struct whole_session w;
	const struct plan plan = session_plan();
	begin_session(&w, &plan);
	struct exec_result r = run_shell(
	    &w,
	    "mkdir /box/a /box/b && echo 1 > /box/a/f && mv -n /box/a/f /box/b/f && "
	    "ln /box/b/f /box/a/g && python3 -c 'import os; os.rename(\"/box/a\", \"/box/b/a\")' "
	    "&& cat /box/b/a/g",
	    NULL);
	assert_exited(&r, 0);
	assert_string_equal(r.out, "1\n");
	end_session(&w);
}

/*
 * What a process hands on to its children.  The settings of init and of each reaper are those of
 * all later execs, and no process of the jail can undo most of them: setpriority(2), setrlimit(2).
 */
#define SYSCALLS                                                                                   \
	"import ctypes, os, platform, resource, signal, sys, time\n"                               \
	"arm = platform.machine() == 'aarch64'\n"                                                  \
	"def call(x86_nr, arm_nr, *args):\n"                                                       \
	"  return ctypes.CDLL(None).syscall(ctypes.c_long(arm_nr if arm else x86_nr),\n"           \
	"                                   *[ctypes.c_ulong(a) for a in args])\n"

#define SHOW_SETTINGS                                                                              \
	SYSCALLS                                                                                   \
	"def text(name):\n"                                                                        \
	"  try: return open('/proc/self/' + name).read().split()[-1:]\n"                           \
	"  except OSError: return None\n"                                                          \
	"print(os.getpriority(os.PRIO_PROCESS, 0), os.sched_getscheduler(0),\n"                    \
	"      sorted(os.sched_getaffinity(0)), call(252, 31, 1, 0),\n"                            \
	"      [resource.getrlimit(i) for i in range(16)])\n"                                      \
	"print([text(n) for n in ('oom_score_adj', 'timerslack_ns', 'coredump_filter')])\n"

/*
 * For 300 ms, so that the reaper of a later exec is attacked, too.  It says what it could change.
 * It may write the files in /proc of other execs' programs, which have the same user.
 */
#define CHANGE_SETTINGS                                                                            \
	SYSCALLS                                                                                   \
	"idle = ctypes.create_string_buffer(48)\n"                                                 \
	"idle[0:8] = (48).to_bytes(4, sys.byteorder) + (5).to_bytes(4, sys.byteorder)\n"           \
	"none = (ctypes.c_ulong * 2)(40, 40)\n"                                                    \
	"at = ctypes.addressof\n"                                                                  \
	"def write(pid, name, text):\n"                                                            \
	"  with open('/proc/%d/%s' % (pid, name), 'w') as f: f.write(text)\n"                      \
	"  with open('/proc/%d/comm' % pid) as f:\n"                                               \
	"    if not f.read().startswith('cejail-'): raise OSError\n"                               \
	"cpu = max(os.sched_getaffinity(0))\n"                                                     \
	"def raw(*args):\n"                                                                        \
	"  if call(*args) != 0: raise OSError\n"                                                   \
	"attacks = {\n"                                                                            \
	"  'nice': lambda p: os.setpriority(os.PRIO_PROCESS, p, 19),\n"                            \
	"  'nice, high bits': lambda p: raw(141, 140, 1 << 32, (1 << 32) + p, 19),\n"              \
	"  'nice of the group': lambda p: os.setpriority(os.PRIO_PGRP, p, 19),\n"                  \
	"  'nice of the user': lambda p: os.setpriority(os.PRIO_USER, 0, 19),\n"                   \
	"  'scheduler': lambda p: os.sched_setscheduler(p, os.SCHED_IDLE, os.sched_param(0)),\n"   \
	"  'attributes': lambda p: raw(314, 274, p, at(idle), 0),\n"                               \
	"  'affinity': lambda p: os.sched_setaffinity(p, {cpu}),\n"                                \
	"  'i/o': lambda p: raw(251, 30, 1, p, 3 << 13),\n"                                        \
	"  'i/o of the group': lambda p: raw(251, 30, 2, p, 3 << 13),\n"                           \
	"  'i/o of the user': lambda p: raw(251, 30, 3, os.getuid(), 3 << 13),\n"                  \
	"  'limit': lambda p: raw(302, 261, p, resource.RLIMIT_NOFILE, at(none), 0),\n"            \
	"  'oom': lambda p: write(p, 'oom_score_adj', '1000'),\n"                                  \
	"  'slack': lambda p: write(p, 'timerslack_ns', '1000000000'),\n"                          \
	"  'dump': lambda p: write(p, 'coredump_filter', '0'),\n"                                  \
	"  'autogroup': lambda p: write(p, 'autogroup', '19'),\n"                                  \
	"}\n"                                                                                      \
	"done = set()\n"                                                                           \
	"end = time.monotonic() + 0.3\n"                                                           \
	"while time.monotonic() < end:\n"                                                          \
	"  own = os.getpid()\n"                                                                    \
	"  for p in [int(p) for p in os.listdir('/proc') if p.isdigit()]:\n"                       \
	"    for name, attack in attacks.items():\n"                                               \
	"      if p == own: continue\n"                                                            \
	"      try: attack(p)\n"                                                                   \
	"      except OSError: continue\n"                                                         \
	"      done.add(name)\n"                                                                   \
	"  open('/box/attacks', 'w').close()\n"                                                    \
	"print(sorted(done))\n"

static struct exec_handle start_python(struct whole_session *w, const char *code)
{
	const char *argv[] = { "/usr/bin/python3", "-c", code, NULL };
	const struct program program = simple_program(argv);
	return start_program(w, &program);
}

static struct exec_result run_python(struct whole_session *w, const char *code)
{
	struct exec_handle h = start_python(w, code);
	return finish_exec(w, &h);
}

static void try_to_change_settings(const struct plan *plan)
{
	struct whole_session w;
	begin_session(&w, plan);
	struct exec_result before = run_python(&w, SHOW_SETTINGS);
	assert_exited(&before, 0);
	struct exec_handle attacker = start_python(&w, CHANGE_SETTINGS);
	serve_until_file(&w, "attacks");
	struct exec_result beside = run_python(&w, SHOW_SETTINGS);
	struct exec_result attack = finish_exec(&w, &attacker);
	assert_exited(&attack, 0);
	assert_string_equal(attack.out, "[]\n");
	struct exec_result after = run_python(&w, SHOW_SETTINGS);
	assert_memory_equal(beside.out, before.out, strcspn(before.out, "\n"));
	assert_string_equal(after.out, before.out);
	end_session(&w);
}

static void no_exec_can_change_what_later_execs_inherit(void **state)
{
	(void)state;
	const struct plan plan = session_plan();
	try_to_change_settings(&plan);
}

/* The default policy refuses prlimit(2) for another process; a caller's policy may not. */
static void no_policy_lets_an_exec_change_what_later_execs_inherit(void **state)
{
	(void)state;
	static const char all[] = "{\"defaultAction\":\"SCMP_ACT_ALLOW\"}";
	auto_arena struct arena arena = { 0 };
	struct cj_error err;
	struct plan plan = session_plan();
	assert_return_code(policy_parse("all", all, strlen(all), &arena, &plan.policy, &err), 0);
	try_to_change_settings(&plan);
}

static void an_exec_can_change_its_own_priority_and_limits(void **state)
{
	(void)state;
	struct whole_session w;
	const struct plan plan = session_plan();
	begin_session(&w, &plan);
	struct exec_result r =
	    run_python(&w, SYSCALLS
		       "import threading\n"
		       "def change(own):\n"
		       "  os.setpriority(os.PRIO_PROCESS, own, 19)\n"
		       "  os.sched_setaffinity(own, {max(os.sched_getaffinity(own))})\n"
		       "  os.sched_setscheduler(own, os.SCHED_BATCH, os.sched_param(0))\n"
		       "  print(os.getpriority(os.PRIO_PROCESS, own), os.sched_getscheduler(own),\n"
		       "        call(251, 30, 1, own, 3 << 13))\n"
		       "change(0); change(os.getpid())\n"
		       "t = threading.Thread(target=lambda: change(threading.get_native_id()))\n"
		       "t.start(); t.join()\n"
		       "os.setpriority(os.PRIO_PGRP, 0, 19)\n"
		       "resource.setrlimit(resource.RLIMIT_NOFILE, (50, 50))\n");
	assert_exited(&r, 0);
	assert_string_equal(r.out, "19 3 0\n19 3 0\n19 3 0\n");
	end_session(&w);
}

/* --- processes that do not want to end ----------------------------------------------------- */

static const struct run_limits short_limits = { .wall_ms = 400, .output_bytes = 1024 };

static const char *const stubborn[] = {
	/* a fork bomb; the main process forks once, while there is room */
	"b() { b | b & }; b & exec sleep 1000",
	/* every process in a session of its own, without a living parent */
	"for i in 1 2 3 4 5; do setsid sh -c '(sleep 1000 &) &'; done; sleep 1000",
	/* each forks the next and ends */
	"c() { (c) & exit; }; (c & c) & exec sleep 1000",
	/* a subreaper, whose children outlive their parents */
	"exec python3 -c 'import ctypes, os, time\n"
	"ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)\n"
	"for i in range(5):\n"
	"  if os.fork() == 0:\n"
	"    os.fork(); os.fork() or time.sleep(1000)\n"
	"    os._exit(0)\n"
	"time.sleep(1000)'",
	/* CLONE_PARENT: a sibling of the main process, which is the reaper's own child */
	"exec python3 -c 'import ctypes, time\n"
	"ctypes.CDLL(None).syscall(56, 0x8000 | 17, 0, 0, 0, 0)\n"
	"time.sleep(1000)'",
	/* stopped processes, and one that ignores all it can */
	"trap '' TERM INT HUP; (kill -STOP $$) & sh -c 'kill -STOP $$' & sleep 1000",
};

static void a_timeout_ends_every_process_however_it_was_made(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(stubborn) / sizeof(stubborn[0]); i++) {
		struct whole_session w;
		struct plan plan = session_plan();
		plan.limits.memory_bytes *= 4; /* a page of several processes counts for each */
		begin_session(&w, &plan);
		struct exec_handle h = start_shell(&w, stubborn[i], &short_limits);
		struct exec_result r = finish_exec(&w, &h);
		assert_int_equal(r.status, STATUS_TIMEOUT);
		assert_true(serve_until_gone(&w, h.slot));
		/* What is dead is listed until init has reaped it. */
		struct exec_result after =
		    run_shell(&w,
			      "while for p in /proc/[0-9]*; do grep -q cejail $p/comm || "
			      "cat $p/comm; done 2>/dev/null | grep -vq '^sh$\\|^cat$\\|^grep$'; "
			      "do :; done",
			      NULL);
		if (after.status != STATUS_EXITED)
			fail_msg("case %zu left a process", i);
		end_session(&w);
	}
}

static void a_worker_that_is_killed_leaves_no_fork_bomb(void **state)
{
	(void)state;
	struct whole_session w;
	const struct plan plan = session_plan();
	begin_session(&w, &plan);
	struct exec_handle h =
	    start_shell(&w, "b() { : > /box/bombs; b | b & }; b & exec sleep 1000", NULL);
	struct exec_result bombs =
	    run_shell(&w, "until [ -e /box/bombs ]; do :; done", NULL); /* it can't fork */
	if (bombs.rc != -EAGAIN) /* the bombs were so fast that nothing else could be forked */
		assert_exited(&bombs, 0);
	assert_int_equal(kill(h.pid, SIGKILL), 0);
	(void)finish_exec(&w, &h);
	assert_true(serve_until_gone(&w, h.slot));
	struct exec_result after = run_shell_after_kill(&w, "echo fine");
	assert_exited(&after, 0);
	end_session(&w);
}

/* --- without Landlock ------------------------------------------------------------------------ */

static void without_landlock_each_exec_warns_and_strict_refuses(void **state)
{
	(void)state;
	struct whole_session w;
	struct plan plan = session_plan();
	has_no_landlock = true;
	begin_session(&w, &plan);
	assert_int_equal(session_isolation(w.session), SESSION_SHARED);
	struct exec_result r = run_shell(&w, "exit 0", NULL);
	assert_exited(&r, 0);
	assert_non_null(strstr(r.warnings, "isolat"));
	end_session(&w);

	plan.strict = true;
	assert_true(try_session(&w, &plan) < 0);
	end_session(&w);
	has_no_landlock = false;
}

static void without_scopes_each_exec_warns_and_strict_refuses(void **state)
{
	(void)state;
	struct whole_session w;
	struct plan plan = session_plan();
	has_no_scopes = true;
	begin_session(&w, &plan);
	if (landlock_abi() > 0)
		assert_int_equal(session_isolation(w.session), SESSION_UNTRACED);
	struct exec_result r = run_shell(&w, "exit 0", NULL);
	assert_exited(&r, 0);
	if (landlock_abi() > 0)
		assert_non_null(strstr(r.warnings, "signal each other"));
	end_session(&w);

	plan.strict = true;
	assert_true(try_session(&w, &plan) < 0);
	end_session(&w);
	has_no_scopes = false;
}

static void a_killed_reaper_ends_the_session(void **state)
{
	(void)state;
	struct whole_session w;
	const struct plan plan = session_plan();
	has_no_landlock = true;
	begin_session(&w, &plan);
	struct exec_handle h =
	    start_shell(&w, "(setsid sleep 1000 &); kill -KILL $PPID; sleep 1000", NULL);
	struct exec_result r = finish_exec(&w, &h);
	if (!r.is_there || r.rc != 0 || r.status != STATUS_SIGNALED)
		fail_msg("is_there %d rc %d status %s: %s; %s", r.is_there, r.rc,
			 status_names[r.status], r.message, r.warnings);
	assert_non_null(strstr(r.warnings, "reaper"));
	if (serve_until_gone(&w, h.slot)) { /* it had a cgroup of its own, which was killed */
		assert_true(has_cgroup(&w));
	} else {
		assert_int_equal(w.end, SESSION_STUCK);
		assert_string_equal(w.err.msg, "the reaper of a program was killed, so the "
					       "processes that it left can't be told apart from "
					       "others");
	}
	end_session(&w);
	has_no_landlock = false;
}

/* As if a process were in an uninterruptible call. */
static void a_process_that_does_not_die_in_time_ends_the_session(void **state)
{
	(void)state;
	struct whole_session w;
	const struct plan plan = session_plan();
	begin_session(&w, &plan);
	no_kill_works = true;
	struct exec_handle h = start_shell(&w, "sleep 1000", &short_limits);
	struct exec_result r = finish_exec(&w, &h);
	assert_int_equal(r.status, STATUS_TIMEOUT);
	assert_non_null(strstr(r.warnings, "did not die"));
	assert_false(serve_until_gone(&w, h.slot));
	assert_int_equal(w.end, SESSION_STUCK);
	assert_string_equal(w.err.msg, "a program's processes could not be killed within 5 s");
	no_kill_works = false;
	end_session(&w);
}

/* When init is dead, so is every process of its pid namespace: pid_namespaces(7). */
static void a_keeper_that_is_killed_leaves_no_process(void **state)
{
	(void)state;
	int ends[2];
	pid_t init = 0;
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	pid_t keeper = test_fork();
	assert_true(keeper >= 0);
	if (keeper == 0) {
		struct whole_session w;
		const struct plan plan = session_plan();
		begin_session(&w, &plan);
		(void)start_shell(&w, VICTIM, NULL);
		struct exec_result r = run_shell(&w, FIND_VICTIM, NULL);
		assert_exited(&r, 0);
		if (write(ends[1], &w.jail->init_pid, sizeof(init)) == (ssize_t)sizeof(init))
			(void)raise(SIGKILL);
		_exit(1);
	}
	assert_int_equal(read(ends[0], &init, sizeof(init)), sizeof(init));
	assert_int_equal(waitpid(keeper, NULL, 0), keeper);
	const uint64_t deadline = clock_ms() + TEST_PATIENCE_MS;
	while (kill(init, 0) == 0 && clock_ms() < deadline)
		(void)nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	assert_true(kill(init, 0) < 0);
	(void)cgroup_sweep(); /* the killed keeper left its leaf */
	(void)close(ends[0]);
	(void)close(ends[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_exec_can_signal_another_or_a_reaper),
		cmocka_unit_test(no_exec_can_open_the_proc_files_of_another),
		cmocka_unit_test(a_program_gets_its_three_streams_and_no_other_descriptor),
		cmocka_unit_test(a_move_to_another_directory_still_works),
		cmocka_unit_test(no_exec_can_change_what_later_execs_inherit),
		cmocka_unit_test(no_policy_lets_an_exec_change_what_later_execs_inherit),
		cmocka_unit_test(an_exec_can_change_its_own_priority_and_limits),
		cmocka_unit_test(a_timeout_ends_every_process_however_it_was_made),
		cmocka_unit_test(a_worker_that_is_killed_leaves_no_fork_bomb),
		cmocka_unit_test(without_landlock_each_exec_warns_and_strict_refuses),
		cmocka_unit_test(without_scopes_each_exec_warns_and_strict_refuses),
		cmocka_unit_test(a_killed_reaper_ends_the_session),
		cmocka_unit_test(a_process_that_does_not_die_in_time_ends_the_session),
		cmocka_unit_test(a_keeper_that_is_killed_leaves_no_process),
	};
	return RUN_TESTS_OF_JAILS(tests);
}
