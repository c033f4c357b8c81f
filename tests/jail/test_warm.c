/* SPDX-License-Identifier: Apache-2.0 */
/* WRAP: poll setsockopt socketpair send clock_gettime */
/*
 * A launcher that waits in a sealed jail: it becomes the program, once; whatever else becomes of it
 * is an error that says so, and nothing stays open afterwards.
 */
#include "tests/jail/whole_jail.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "runtime/base/scope.h"
#include "runtime/base/sys.h"
#include "runtime/kernel/cgroup/cgroup.h"
#include "runtime/jail/jail_state.h"
#include "runtime/jail/protocol.h"
#include "tests/forked.h"

/* --- calls of ours, otherwise than the kernel would answer them ------------------------------ */

static const char *failing = ""; /* the call that fails in init, which inherits it */
static int poll_ms;              /* in place of a poll(2) for STEP_TIMEOUT_MS; 0: that much */
static int message_s;            /* in place of a step's limit for one message; 0: as it is */

int __real_poll(struct pollfd *fds, nfds_t count, int timeout);
int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout);
/* Once, of a wait that can take long: in init, whose wait has no end, or in the supervisor. */
static int poll_errno;
static bool is_inits;

static bool poll_fails(int timeout)
{
	bool is_wait = is_inits ? timeout < 0 && getpid() == 1 : timeout > STEP_TIMEOUT_MS / 2;
	if (poll_errno == 0 || !is_wait)
		return false;
	errno = poll_errno;
	poll_errno = 0;
	return true;
}

int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout)
{
	if (poll_fails(timeout))
		return -1;
	bool is_step = poll_ms > 0 && timeout > STEP_TIMEOUT_MS / 2;
	return __real_poll(fds, count, is_step ? poll_ms : timeout);
}

int __real_setsockopt(int fd, int level, int name, const void *value, socklen_t size);
int __wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t size);
int __wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t size)
{
	struct timeval limit = { .tv_sec = 0 };
	bool is_limit = level == SOL_SOCKET && (name == SO_RCVTIMEO || name == SO_SNDTIMEO);
	if (is_limit)
		memcpy(&limit, value, sizeof(limit));
	if (limit.tv_sec > 0 && message_s > 0)
		limit = (struct timeval){ .tv_sec = message_s };
	return __real_setsockopt(fd, level, name, is_limit ? &limit : value, size);
}

static bool is_slow; /* a launcher that has used a second */

int __real_clock_gettime(clockid_t clock, struct timespec *out);
int __wrap_clock_gettime(clockid_t clock, struct timespec *out);
int __wrap_clock_gettime(clockid_t clock, struct timespec *out)
{
	int rc = __real_clock_gettime(clock, out);
	if (is_slow && clock < 0) /* a process' own: clock_getcpuclockid(3) */
		*out = (struct timespec){ .tv_sec = 1 };
	return rc;
}

static bool fails(const char *call)
{
	errno = ENOBUFS;
	return strcmp(failing, call) == 0 && getpid() == 1;
}

int __real_socketpair(int domain, int type, int protocol, int ends[2]);
int __wrap_socketpair(int domain, int type, int protocol, int ends[2]);
int __wrap_socketpair(int domain, int type, int protocol, int ends[2])
{
	bool is_launchers = (type & SOCK_SEQPACKET) != SOCK_SEQPACKET; /* all others are links */
	return is_launchers && fails("socketpair")
		   ? -1
		   : __real_socketpair(domain, type, protocol, ends);
}

ssize_t __real_send(int fd, const void *bytes, size_t size, int flags);
ssize_t __wrap_send(int fd, const void *bytes, size_t size, int flags);
ssize_t __wrap_send(int fd, const void *bytes, size_t size, int flags)
{
	return fails("send") ? -1 : __real_send(fd, bytes, size, flags);
}

/* --- a run ---------------------------------------------------------------------------------- */

struct run {
	struct plan plan;
	struct jail *jail;
	struct outcome out;
	struct jail_io io;
	const char *launcher_words[4];
	struct program launcher;
	const char *words[5];
	struct program program;
	struct cj_error err;
	unsigned long descriptors;
	unsigned starts;
};

static void count_start(void *context)
{
	struct run *r = context;
	r->starts++;
}

/* The launcher is a shell's; so is the program, which is the file /box/main.sh. */
static void run_init(struct run *r, const char *launcher, const char *code)
{
	*r = (struct run){
		.plan = simple_plan(),
		.io = { .stdin_fd = -1,
			.stdout_fd = -1,
			.stderr_fd = -1,
			.tty_fd = -1,
			.hangup_fd = -1,
			.started = count_start,
			.context = r },
		.launcher_words = { "/bin/sh", "-c", launcher ? launcher : BECOME },
		.launcher = { .workdir = "/box", .argv = { r->launcher_words, 3 } },
		.words = { "/bin/sh", "/box/main.sh", "one", "t w o" },
		.program = shell_program(r->words, 4, code),
		.descriptors = open_descriptors(),
	};
	outcome_init(&r->out, "warm", 4096);
}

static int warm(struct run *r)
{
	int rc = jail_prepare(&r->plan, unique_id(), &r->jail, &r->err);
	assert_int_equal(rc, 0);
	return jail_warm(r->jail, JAIL_NO_ZYGOTE, &r->launcher, &r->err);
}

static int start(struct run *r)
{
	return jail_start(r->jail, &r->program, &r->io, &r->err);
}

static void run_warm(struct run *r)
{
	int rc = warm(r);
	if (rc == 0)
		rc = start(r);
	if (rc == 0)
		rc = jail_wait(r->jail, &r->out, &r->err);
	if (rc < 0)
		fail_msg("%s (%s)", r->err.msg, r->err.hint);
}

static void run_fini(struct run *r)
{
	jail_destroy(&r->jail);
	outcome_fini(&r->out);
	assert_nothing_held(r->descriptors);
}

static void assert_output(const struct run *r, size_t stream, const char *expected)
{
	size_t size, kept;
	auto_free char *text = capture_text(&r->out.output[stream], &size, &kept);
	assert_non_null(text);
	assert_string_equal(text, expected);
}

static void assert_exited(const struct run *r, int code)
{
	assert_int_equal(r->out.status, STATUS_EXITED);
	assert_int_equal(r->out.exit_code, code);
}

static void assert_said(const struct run *r, const char *part)
{
	if (!strstr(r->err.msg, part))
		fail_msg("'%s' is not in '%s'", part, r->err.msg);
	assert_string_equal(r->err.stage, "program");
}

/* --- what becomes the program ------------------------------------------------------------------
 */

static void a_launcher_becomes_the_program(void **state)
{
	(void)state;
	struct run r;
	run_init(&r, NULL, "tr '\\0' '|' </tmp/words; echo; pwd; echo err >&2; exit 7");
	run_warm(&r);
	assert_exited(&r, 7);
	assert_output(&r, 0, "0|0|/box/main.sh|one|t w o|\n/box\n");
	assert_output(&r, 1, "err\n");
	assert_int_equal(r.starts, 1);
	assert_string_not_equal(r.out.code_sha256, "");
	run_fini(&r);
}

static void the_programs_input_reaches_it(void **state)
{
	(void)state;
	int ends[2];
	struct run r;
	run_init(&r, NULL, "tr '\\0' '|' </tmp/words; cat");
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(write(ends[1], "hello", 5), 5);
	close(ends[1]);
	r.io.stdin_fd = ends[0];
	run_warm(&r);
	assert_exited(&r, 0);
	assert_output(&r, 0, "1|0|/box/main.sh|one|t w o|hello");
	close(ends[0]);
	run_fini(&r);
}

static void a_program_without_input_reads_end_of_file_at_once(void **state)
{
	(void)state;
	struct run r;
	run_init(&r, NULL, "cat; echo end");
	run_warm(&r);
	assert_output(&r, 0, "end\n");
	run_fini(&r);
}

static void the_programs_files_exist_when_it_starts(void **state)
{
	(void)state;
	const struct copy_spec file = { .target = "/box/data", .bytes = "abc", .size = 3 };
	struct run r;
	run_init(&r, NULL, "cat data args.json");
	r.program.files = &file;
	r.program.nfiles = 1;
	r.program.args_json = "{}";
	run_warm(&r);
	assert_output(&r, 0, "abc{}");
	run_fini(&r);
}

static void long_arguments_arrive_whole(void **state)
{
	(void)state;
	static char word[100000];
	const char *words[14] = { "/bin/sh", "/box/main.sh" };
	struct run r;
	run_init(&r, NULL, "wc -c </tmp/words");
	memset(word, 'x', sizeof(word) - 1);
	for (size_t i = 2; i < 14; i++)
		words[i] = word;
	r.program.argv = (struct strings){ .items = words, .count = 14 };
	r.plan.root.scratch_bytes = 4 << 20;
	r.plan.limits.disk_bytes = 4 << 20;
	run_warm(&r);
	assert_output(&r, 0, "1200017\n");
	run_fini(&r);
}

static void the_program_keeps_neither_the_socket_nor_the_shells_arguments(void **state)
{
	(void)state;
	struct run r;
	run_init(&r, NULL, "[ -e /proc/$$/fd/3 ] || echo closed; env | grep -c SECRET");
	setenv("SECRET", "x", 1);
	run_warm(&r);
	unsetenv("SECRET");
	assert_output(&r, 0, "closed\n0\n");
	run_fini(&r);
}

static void output_of_a_launcher_is_not_output_of_the_program(void **state)
{
	(void)state;
	struct run r;
	run_init(&r, "echo noise; echo more >&2; printf . >&3; cat <&3 >/tmp/words; . /box/main.sh",
		 "echo mine");
	run_warm(&r);
	assert_output(&r, 0, "mine\n");
	assert_output(&r, 1, "");
	run_fini(&r);
}

/* With a limit of `message_s` for each message.  False: this machine needs more. */
static bool warms_in_time(struct run *r)
{
	int rc = jail_prepare(&r->plan, unique_id(), &r->jail, &r->err);
	if (rc == 0)
		rc = jail_warm(r->jail, JAIL_NO_ZYGOTE, &r->launcher, &r->err);
	return rc == 0;
}

static void a_launcher_may_wait_longer_than_the_limit_of_a_step(void **state)
{
	(void)state;
	struct run r;
	for (message_s = 3;; message_s *= 2) {
		run_init(&r, NULL, "echo late");
		if (warms_in_time(&r))
			break;
		if (message_s > patience_ms(60))
			fail_msg("%s", r.err.msg);
		run_fini(&r);
	}
	(void)usleep(((unsigned)message_s * 1000 + 500) * 1000);
	/* The limit of init is what the launcher outlived; the supervisor may wait for init. */
	const struct timeval none = { .tv_sec = 0 };
	assert_int_equal(
	    __real_setsockopt(r.jail->link.sock_fd, SOL_SOCKET, SO_RCVTIMEO, &none, sizeof(none)),
	    0);
	assert_int_equal(start(&r), 0);
	message_s = 0;
	assert_int_equal(jail_wait(r.jail, &r.out, &r.err), 0);
	assert_output(&r, 0, "late\n");
	run_fini(&r);
}

/* --- limits --------------------------------------------------------------------------------------
 */

/* A shell that uses CPU time: proc_pid_stat(5) has it in hundredths of a second. */
#define BURN(ticks)                                                                                \
	"u=0; s=0; while [ $((u+s)) -lt " #ticks " ]; do "                                         \
	"n=0; while [ $n -lt 1000 ]; do n=$((n+1)); done; "                                        \
	"read -r a b c d e f g h i j k l m u s rest </proc/self/stat; done; "

static void the_time_limit_begins_with_the_program(void **state)
{
	(void)state;
	static const char *const launchers[] = { "sleep 2; " BECOME, "sleep 4; " BECOME,
						 "sleep 8; " BECOME };
	uint64_t wall_ms = 1900;
	for (size_t i = 0; i < 3; i++, wall_ms *= 2) { /* again, if the program had no time */
		struct run r;
		run_init(&r, launchers[i], "echo quick; sleep 100");
		r.program.limits.wall_ms = wall_ms;
		run_warm(&r);
		assert_int_equal(r.out.status, STATUS_TIMEOUT);
		assert_true(r.out.usage.wall_ms >= wall_ms);
		bool is_last = i == 2 || r.out.output[0].total > 0;
		if (is_last)
			assert_output(&r, 0, "quick\n");
		run_fini(&r);
		if (is_last)
			return;
	}
}

static void cpu_time_of_a_launcher_is_not_counted_for_the_program(void **state)
{
	(void)state;
	struct run r;
	run_init(&r, BURN(50) BECOME, "exit 0");
	r.plan.limits.cpu_ms = 5000;
	assert_int_equal(warm(&r), 0);
	uint64_t ready_us = r.jail->warm.cpu_us;
	assert_true(ready_us > 400000);
	assert_int_equal(start(&r), 0);
	assert_int_equal(jail_wait(r.jail, &r.out, &r.err), 0);
	assert_exited(&r, 0);
	assert_true((r.out.usage.cpu_user_ms + r.out.usage.cpu_system_ms) * 1000 < ready_us);
	run_fini(&r);
}

static void a_limit_of_cpu_time_counts_from_the_start_of_the_program(void **state)
{
	(void)state;
	struct run r;
	run_init(&r, BURN(30) BECOME, "while :; do :; done");
	r.plan.limits.cpu_ms = 1200;
	run_warm(&r);
	assert_int_equal(r.out.status, STATUS_CPU_LIMIT);
	assert_true(r.out.usage.wall_ms >= 1150); /* it has one thread, and cpus 1 */
	if (r.out.layers[LAYER_CGROUP] == LAYER_ON)
		assert_true(r.out.usage.cpu_user_ms + r.out.usage.cpu_system_ms >= 1180);
	run_fini(&r);
}

static void a_launcher_that_uses_too_much_cpu_time_is_refused_where_it_is_limited(void **state)
{
	(void)state;
	struct run r;
	run_init(&r, NULL, "exit 0");
	r.plan.limits.cpu_ms = 20000;
	is_slow = true;
	assert_int_equal(warm(&r), -EINVAL);
	is_slow = false;
	assert_said(&r, "it took 1000 ms of CPU time to be ready");
	assert_non_null(strstr(r.err.hint, "preload less"));
	run_fini(&r);
}

static void denied_calls_do_not_delay_a_launcher(void **state)
{
	(void)state;
	struct run r;
	run_init(&r, "unshare -U true 2>/dev/null; " BECOME, "exit 0");
	run_warm(&r);
	assert_exited(&r, 0);
	if (r.out.layers[LAYER_SYSCALL_REPORT] == LAYER_ON) {
		assert_int_equal(r.out.ndenied, 1);
		assert_non_null(strstr(r.out.denied[0].name, "unshare"));
	}
	run_fini(&r);
}

/* --- what goes wrong
 * ------------------------------------------------------------------------------ */

static void a_launcher_that_is_never_ready_times_out(void **state)
{
	(void)state;
	struct run r;
	run_init(&r, "echo I am slow >&2; sleep 1000", "exit 0");
	poll_ms = 4500;
	assert_int_equal(warm(&r), -ETIMEDOUT);
	poll_ms = 0;
	assert_said(&r, "program: interpreter '/bin/sh': wait for the interpreter to be ready");
	assert_string_equal(r.err.hint, "it said: I am slow");
	run_fini(&r);
}

static void a_launcher_that_never_stops_printing_times_out(void **state)
{
	(void)state;
	struct run r;
	run_init(&r, "yes >&2", "exit 0");
	poll_ms = 1000;
	assert_int_equal(warm(&r), -ETIMEDOUT);
	poll_ms = 0;
	run_fini(&r);
}

static void the_error_names_how_a_launcher_ended(void **state)
{
	(void)state;
	static const struct {
		const char *launcher, *said, *hint;
	} cases[] = {
		{ "printf 'a\\nboom\\033\\n' >&2; exit 3", "(exit status 3)",
		  "it said: boom\\x1b" },
		{ "kill -9 $$", "(signal 9)", "" },
		{ "exec 3>&-; exit 0", "(exit status 0)", "" },
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct run r;
		run_init(&r, cases[i].launcher, "exit 0");
		assert_int_equal(warm(&r), -ECHILD);
		assert_said(&r, "the interpreter ended before its program came");
		assert_said(&r, cases[i].said);
		assert_string_equal(r.err.hint, cases[i].hint);
		assert_int_equal(start(&r), -EPIPE); /* nor is it a cold jail now */
		run_fini(&r);
	}
}

static void a_missing_launcher_is_named(void **state)
{
	(void)state;
	struct run r;
	run_init(&r, NULL, "exit 0");
	r.launcher_words[0] = "/no/such";
	assert_int_equal(warm(&r), -ENOENT);
	assert_said(&r, "interpreter '/no/such'");
	assert_said(&r, "execute the interpreter: No such file");
	run_fini(&r);
}

static pid_t only_child(pid_t parent)
{
	char path[64];
	int child = 0;
	(void)snprintf(path, sizeof(path), "/proc/%d/task/%d/children", parent, parent);
	auto_file FILE *children = fopen(path, "re");
	assert_non_null(children);
	assert_int_equal(fscanf(children, "%d", &child), 1);
	return child;
}

static void a_launcher_that_ends_while_it_waits_is_an_error(void **state)
{
	(void)state;
	struct run r;
	run_init(&r, "printf . >&3; kill -STOP $$; exit 4", "exit 0");
	assert_int_equal(warm(&r), 0);
	struct pollfd end = { .fd = jail_waiting_fd(r.jail), .events = POLLIN };
	assert_int_equal(poll(&end, 1, 0), 0);
	const pid_t launcher = only_child(r.jail->init_pid);
	for (int i = 0; i < patience_ms(60000) && poll(&end, 1, 1) == 0; i++)
		(void)kill(launcher, SIGCONT); /* it may be too early, or too late */
	assert_int_equal(poll(&end, 1, 0), 1);
	assert_int_equal(start(&r), -ECHILD);
	assert_said(&r, "the interpreter ended before its program came (exit status 4)");
	run_fini(&r);
}

static void failed_calls_of_init_are_reported(void **state)
{
	(void)state;
	static const struct {
		const char *call, *said;
	} cases[] = {
		{ "socketpair", "create a socket pair for the interpreter" },
		{ "send", "hand the interpreter its program" },
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct run r;
		run_init(&r, NULL, "exit 0");
		failing = cases[i].call;
		int rc = warm(&r);
		if (rc == 0)
			rc = start(&r);
		failing = "";
		assert_int_equal(rc, -ENOBUFS);
		assert_said(&r, cases[i].said);
		run_fini(&r);
	}
}

static void an_interrupted_wait_continues_and_any_other_failure_is_reported(void **state)
{
	(void)state;
	for (int i = 0; i < 4; i++) {
		bool is_interrupted = i < 2;
		struct run r;
		run_init(&r, NULL, "exit 0");
		is_inits = i % 2 == 1;
		poll_errno = is_interrupted ? EINTR : ENOMEM;
		int rc = warm(&r);
		if (rc == 0)
			rc = start(&r);
		poll_errno = 0;
		assert_int_equal(rc, is_interrupted ? 0 : -ENOMEM);
		if (is_interrupted)
			assert_int_equal(jail_wait(r.jail, &r.out, &r.err), 0);
		else
			assert_said(&r, is_inits ? "wait for the program" : "wait for the interp");
		run_fini(&r);
	}
}

static void a_jail_is_used_once(void **state)
{
	(void)state;
	struct run r;
	run_init(&r, NULL, "exit 0");
	assert_int_equal(warm(&r), 0);
	assert_int_equal(jail_warm(r.jail, JAIL_NO_ZYGOTE, &r.launcher, &r.err), -EBUSY);
	assert_int_equal(start(&r), 0);
	assert_int_equal(jail_warm(r.jail, JAIL_NO_ZYGOTE, &r.launcher, &r.err), -EBUSY);
	assert_int_equal(start(&r), -EBUSY);
	assert_string_equal(r.err.msg, "program: a jail is used once");
	assert_int_equal(jail_wait(r.jail, &r.out, &r.err), 0);
	assert_int_equal(start(&r), -EBUSY);
	assert_exited(&r, 0);
	run_fini(&r);
}

static void a_program_for_another_launcher_is_refused(void **state)
{
	(void)state;
	const char *env[] = { "A=1", NULL };
	for (int i = 0; i < 5; i++) {
		struct run r;
		run_init(&r, NULL, "exit 0");
		if (i == 0)
			r.words[0] = "/bin/bash";
		if (i == 1)
			r.program.workdir = "/tmp";
		if (i == 2)
			r.program.env = (struct strings){ .items = env, .count = 1 };
		if (i == 3)
			r.launcher.env = (struct strings){ .items = env, .count = 1 };
		if (i == 4)
			r.program.code_path = NULL, r.program.code_source = CODE_NONE;
		assert_int_equal(warm(&r), 0);
		assert_int_equal(start(&r), -EINVAL);
		assert_said(&r, "started for another command, environment or working directory");
		run_fini(&r);
	}
}

static void a_terminal_has_no_launcher(void **state)
{
	(void)state;
	struct run r;
	run_init(&r, NULL, "exit 0");
	r.plan.tty = r.plan.root.tty = true;
	assert_int_equal(warm(&r), -EINVAL);
	assert_said(&r, "a terminal has no waiting interpreter");
	run_fini(&r);
}

/* From here: a supervisor that will be killed. */
static void wait_to_be_killed(int told_fd)
{
	struct run r;
	run_init(&r, NULL, "exit 0");
	if (warm(&r) < 0 || write(told_fd, &r.jail->init_pid, sizeof(pid_t)) != sizeof(pid_t))
		_exit(1);
	for (;;)
		pause();
}

static void a_waiting_jail_ends_with_its_supervisor(void **state)
{
	(void)state;
	int ends[2];
	pid_t init_pid = 0;
	assert_int_equal(pipe(ends), 0);
	pid_t pid = test_fork();
	assert_true(pid >= 0);
	if (pid == 0)
		wait_to_be_killed(ends[1]);
	assert_int_equal(read(ends[0], &init_pid, sizeof(init_pid)), sizeof(init_pid));

	auto_fd int init_fd = sys_pidfd_open(init_pid);
	assert_true(init_fd >= 0);
	struct pollfd end = { .fd = init_fd, .events = POLLIN };
	assert_int_equal(poll(&end, 1, 0), 0);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	/* and all else in its pid namespace before it */
	assert_int_equal(poll(&end, 1, patience_ms(60000)), 1);
	(void)cgroup_sweep(); /* the killed supervisor left its leaf */
	close(ends[0]);
	close(ends[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_launcher_becomes_the_program),
		cmocka_unit_test(the_programs_input_reaches_it),
		cmocka_unit_test(a_program_without_input_reads_end_of_file_at_once),
		cmocka_unit_test(the_programs_files_exist_when_it_starts),
		cmocka_unit_test(long_arguments_arrive_whole),
		cmocka_unit_test(the_program_keeps_neither_the_socket_nor_the_shells_arguments),
		cmocka_unit_test(output_of_a_launcher_is_not_output_of_the_program),
		cmocka_unit_test(a_launcher_may_wait_longer_than_the_limit_of_a_step),
		cmocka_unit_test(the_time_limit_begins_with_the_program),
		cmocka_unit_test(cpu_time_of_a_launcher_is_not_counted_for_the_program),
		cmocka_unit_test(a_limit_of_cpu_time_counts_from_the_start_of_the_program),
		cmocka_unit_test(
		    a_launcher_that_uses_too_much_cpu_time_is_refused_where_it_is_limited),
		cmocka_unit_test(denied_calls_do_not_delay_a_launcher),
		cmocka_unit_test(a_launcher_that_is_never_ready_times_out),
		cmocka_unit_test(a_launcher_that_never_stops_printing_times_out),
		cmocka_unit_test(the_error_names_how_a_launcher_ended),
		cmocka_unit_test(a_missing_launcher_is_named),
		cmocka_unit_test(a_launcher_that_ends_while_it_waits_is_an_error),
		cmocka_unit_test(failed_calls_of_init_are_reported),
		cmocka_unit_test(an_interrupted_wait_continues_and_any_other_failure_is_reported),
		cmocka_unit_test(a_jail_is_used_once),
		cmocka_unit_test(a_program_for_another_launcher_is_refused),
		cmocka_unit_test(a_terminal_has_no_launcher),
		cmocka_unit_test(a_waiting_jail_ends_with_its_supervisor),
	};
	return RUN_TESTS_OF_JAILS(tests);
}
