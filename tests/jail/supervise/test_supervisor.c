/* SPDX-License-Identifier: Apache-2.0 */
/* WRAP: poll epoll_create1 epoll_ctl timerfd_create sys_pidfd_send_signal cgroup_kill */
/* WRAP: process_usage_take */
/*
 * The supervisor's loop: what cancels a run, what becomes of a jail whose init is killed from
 * outside, a terminal that changes its size, and the loop's waiting that fails.
 */
#include "tests/jail/whole_jail.h"

#include <poll.h>
#include <pthread.h>
#include <pty.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "runtime/base/scope.h"
#include "runtime/kernel/cgroup/cgroup.h"
#include "runtime/jail/record.h"
#include "runtime/jail/relay.h"
#include "runtime/jail/usage/process_usage.h"
#include "tests/failing.h"

/* --- calls that fail ------------------------------------------------------------------ */

static int code; /* how the loop's waiting fails */

/* A process that hangs in a call of the kernel's: SIGKILL waits, too. */
static bool is_stuck;

/* Signals with a handler of the caller's, which come while the end of init is awaited. */
static unsigned signals_after_kill, signals_left;

int __real_sys_pidfd_send_signal(int pidfd, int signal);
int __wrap_sys_pidfd_send_signal(int pidfd, int signal);
int __wrap_sys_pidfd_send_signal(int pidfd, int signal)
{
	if (signal == SIGKILL && signals_after_kill > 0) {
		signals_left = signals_after_kill;
		signals_after_kill = 0;
	}
	return is_stuck ? 0 : __real_sys_pidfd_send_signal(pidfd, signal);
}

void __real_cgroup_kill(const struct cgroup *c);
void __wrap_cgroup_kill(const struct cgroup *c);
void __wrap_cgroup_kill(const struct cgroup *c)
{
	if (!is_stuck)
		__real_cgroup_kill(c);
}

/* The loop's own is the one that waits for many. */
int __real_poll(struct pollfd *fds, nfds_t count, int ms);
int __wrap_poll(struct pollfd *fds, nfds_t count, int ms);
int __wrap_poll(struct pollfd *fds, nfds_t count, int ms)
{
	if (is_stuck && count == 1 && ms > 0)
		return 0;
	if (signals_left > 0 && count == 1 && ms > 0) {
		signals_left--;
		errno = EINTR;
		return -1;
	}
	return count >= RELAY_COUNT && is_next(code) ? -1 : __real_poll(fds, count, ms);
}

/* What the kernel counts for each user, the program may have used up. */
#define UNUSED __attribute__((unused))
#define USED_UP(name, ...)                                                                         \
	int __wrap_##name(__VA_ARGS__);                                                            \
	int __wrap_##name(__VA_ARGS__)                                                             \
	{                                                                                          \
		errno = ENOSPC;                                                                    \
		return -1;                                                                         \
	}
USED_UP(epoll_create1, UNUSED int flags)
USED_UP(epoll_ctl, UNUSED int epoll_fd, UNUSED int op, UNUSED int fd,
	UNUSED struct epoll_event *event)
USED_UP(timerfd_create, UNUSED int clock, UNUSED int flags)

#define SCRATCH_BYTES 4096

static bool only_zombies; /* is what samples find, and a file of the scratch */

bool __real_process_usage_take(int proc_fd, int box_fd, struct sampler *s,
			       struct process_usage *out);
bool __wrap_process_usage_take(int proc_fd, int box_fd, struct sampler *s,
			       struct process_usage *out);
bool __wrap_process_usage_take(int proc_fd, int box_fd, struct sampler *s,
			       struct process_usage *out)
{
	if (!only_zombies)
		return __real_process_usage_take(proc_fd, box_fd, s, out);
	*out = (struct process_usage){ .processes = 1, .memory_bytes = SCRATCH_BYTES };
	return true;
}

/* --- runs ------------------------------------------------------------------------------ */

struct run {
	struct plan plan;
	struct run_limits limits;
	struct jail_io io;
	struct outcome out;
	struct cj_error err;
	unsigned long before;
};

static int setup(void **state)
{
	static struct run r;
	memset(&r, 0, sizeof(r));
	r.plan = simple_plan();
	r.limits = simple_limits();
	r.io = (struct jail_io){
		.stdin_fd = -1, .stdout_fd = -1, .stderr_fd = -1, .tty_fd = -1, .hangup_fd = -1
	};
	outcome_init(&r.out, "supervisor", 4096);
	*calls = fail_at = 0;
	*state = &r;
	return 0;
}

static int teardown(void **state)
{
	outcome_fini(&((struct run *)*state)->out);
	return 0;
}

/* What is seen of `script`; only the loop's calls are counted, and may fail. */
static int watch(struct run *r, const char *script)
{
	const char *words[] = { "/bin/sh", "-c", script, NULL };
	const struct program program = { .workdir = "/box",
					 .argv = { words, 3 },
					 .limits = r->limits };
	struct jail *jail = NULL;
	r->before = open_descriptors();
	int rc = jail_prepare(&r->plan, unique_id(), &jail, &r->err);
	if (rc == 0)
		rc = jail_start(jail, &program, &r->io, &r->err);
	if (rc < 0)
		fail_msg("%s", r->err.msg);
	*calls = 0;
	is_armed = true;
	rc = jail_wait(jail, &r->out, &r->err);
	is_armed = false;
	jail_destroy(&jail);
	assert_nothing_held(r->before);
	return rc;
}

static bool has_warning(const struct outcome *out, const char *part)
{
	for (size_t i = 0; i < out->warnings.count; i++)
		if (strstr(out->warnings.items[i], part))
			return true;
	return false;
}

/* --- events ----------------------------------------------------------------------------- */

static void who_asked_going_away_cancels_the_run(void **state)
{
	struct run *r = *state;
	int ends[2];
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	close(ends[1]);
	r->io.hangup_fd = ends[0];
	assert_int_equal(watch(r, "exec sleep 100"), 0);
	close(ends[0]);
	assert_int_equal(r->out.status, STATUS_CANCELLED);
	assert_int_equal(r->out.cancel_signal, SIGPIPE);
}

static void a_regular_file_can_not_hang_up(void **state)
{
	struct run *r = *state;
	auto_file FILE *file = tmpfile();
	assert_non_null(file);
	r->io.hangup_fd = fileno(file);
	assert_int_equal(watch(r, "exit 3"), 0);
	assert_int_equal(r->out.status, STATUS_EXITED);
	assert_int_equal(r->out.exit_code, 3);
}

/* The only child that this process has. */
static pid_t init_pid(void)
{
	int pid = 0;
	auto_file FILE *file = fopen("/proc/thread-self/children", "re");
	return file && fscanf(file, "%d", &pid) == 1 ? pid : -1;
}

static void kill_init(void *context)
{
	(void)context;
	assert_int_equal(kill(init_pid(), SIGKILL), 0);
}

static void an_init_killed_from_outside_is_reported_with_the_usage(void **state)
{
	struct run *r = *state;
	r->io.started = kill_init;
	assert_int_equal(watch(r, "exec sleep 100"), 0);
	assert_int_equal(r->out.status, STATUS_SIGNALED);
	assert_int_equal(r->out.signal, SIGKILL);
	assert_true(has_warning(&r->out, "init was killed from outside"));
}

/* On a busy host the only sample of a short run may come when its process is ending. */
static void a_run_whose_samples_find_only_zombies_has_a_memory_peak(void **state)
{
	struct run *r = *state;
	only_zombies = true;
	assert_int_equal(watch(r, "sleep 0.2"), 0);
	only_zombies = false;
	assert_int_equal(r->out.status, STATUS_EXITED);
	assert_true(r->out.usage.has_memory_peak);
	assert_true(r->out.usage.memory_peak_bytes > SCRATCH_BYTES);
}

static int outer_fd = -1; /* our side of the caller's terminal */

/* The program has seen the first size; then the caller's window changes. */
static void change_size(void *context, size_t stream, const void *bytes, size_t size)
{
	(void)context;
	const struct winsize larger = { .ws_row = 33, .ws_col = 111 };
	if (stream != 0 || !memmem(bytes, size, "ready", 5))
		return;
	assert_int_equal(ioctl(outer_fd, TIOCSWINSZ, &larger), 0);
	assert_int_equal(raise(SIGWINCH), 0);
}

static void the_jails_terminal_follows_the_callers(void **state)
{
	struct run *r = *state;
	int inner_fd;
	const struct winsize first = { .ws_row = 22, .ws_col = 77 };
	assert_int_equal(openpty(&outer_fd, &inner_fd, NULL, NULL, &first), 0);
	r->plan.tty = r->plan.root.tty = true;
	r->io.tty_fd = inner_fd;
	r->io.output = change_size;
	int rc = watch(r, "until [ \"$(stty size)\" = '22 77' ]; do sleep 0.01; done; echo ready;"
			  "until [ \"$(stty size)\" = '33 111' ]; do sleep 0.01; done; exit 4");
	close(inner_fd);
	cj_close(&outer_fd);
	assert_int_equal(rc, 0);
	assert_int_equal(r->out.status, STATUS_EXITED);
	assert_int_equal(r->out.exit_code, 4);
}

static void a_process_that_does_not_die_is_not_waited_for(void **state)
{
	struct run *r = *state;
	const char *words[] = { "/bin/sleep", "100", NULL };
	struct program program = simple_program(words);
	struct jail *jail = NULL;
	program.limits.wall_ms = 100;
	assert_int_equal(jail_prepare(&r->plan, unique_id(), &jail, &r->err), 0);
	assert_int_equal(jail_start(jail, &program, &r->io, &r->err), 0);
	pid_t pid = init_pid();
	is_stuck = true;
	assert_int_equal(jail_wait(jail, &r->out, &r->err), 0);
	jail_destroy(&jail);
	is_stuck = false;
	assert_int_equal(r->out.status, STATUS_TIMEOUT);
	assert_true(has_warning(&r->out, "a process of the jail did not die"));

	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	int dir_fd = record_open_dir(&r->err); /* the next run's sweep has what it left */
	assert_true(dir_fd >= 0);
	assert_true(record_sweep(dir_fd, &r->err) >= 0);
	close(dir_fd);
}

static void a_signal_to_the_caller_does_not_end_the_wait_for_the_jails_end(void **state)
{
	struct run *r = *state;
	r->limits.wall_ms = 100;
	signals_after_kill = 2;
	int rc = watch(r, "exec sleep 100");
	assert_int_equal(rc, 0);
	assert_int_equal(r->out.status, STATUS_TIMEOUT);
	assert_int_equal(signals_left, 0);
	assert_false(has_warning(&r->out, "a process of the jail did not die"));
}

/* The receiver of events: a pipe that is full until the test empties it. */
struct hearer {
	int empty_fd, full_fd;
	pthread_t reader;
	size_t early;      /* bytes reported before it had room */
	atomic_size_t all; /* and altogether */
};

static bool can_write(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLOUT };
	return poll(&p, 1, 0) > 0;
}

static bool has_room(void *context)
{
	const struct hearer *h = context;
	return h->all == 0 || can_write(h->full_fd);
}

/* Once output has come, and more could have. */
static void *empty_later(void *context)
{
	struct hearer *h = context;
	char bytes[4096];
	while (atomic_load(&h->all) == 0)
		usleep(1000);
	usleep(300000);
	while (read(h->empty_fd, bytes, sizeof(bytes)) > 0)
		;
	return NULL;
}

/* A jail is begun without threads. */
static void start_reader(void *context)
{
	struct hearer *h = context;
	assert_int_equal(pthread_create(&h->reader, NULL, empty_later, h), 0);
}

static void count_output(void *context, size_t stream, const void *bytes, size_t size)
{
	struct hearer *h = context;
	(void)bytes;
	if (stream != 0)
		return;
	h->all += size;
	if (!can_write(h->full_fd))
		h->early += size;
}

static void output_waits_for_room_and_none_is_lost(void **state)
{
	struct run *r = *state;
	static char bytes[1 << 17]; /* more than a pipe holds */
	int ends[2];
	assert_int_equal(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
	assert_true(write(ends[1], bytes, sizeof(bytes)) > 0);

	struct hearer h = { .empty_fd = ends[0], .full_fd = ends[1] };
	r->io.started = start_reader;
	r->io.output = count_output;
	r->io.has_room = has_room;
	r->io.room_fd = ends[1];
	r->io.context = &h;
	assert_int_equal(watch(r, "head -c 300000 /dev/zero"), 0);
	assert_int_equal(pthread_join(h.reader, NULL), 0);
	close(ends[0]);
	close(ends[1]);
	assert_int_equal(r->out.status, STATUS_EXITED);
	assert_int_equal(r->out.output[0].total, 300000);
	assert_int_equal(h.all, 300000);
	assert_in_range(h.early, 1, RELAY_CHUNK);
}

static void input_that_is_left_and_taken_up_again_needs_nothing_new(void **state)
{
	struct run *r = *state;
	static char bytes[3 << 16]; /* more than its pipe takes at once */
	int ends[2];
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	assert_true(fcntl(ends[1], F_SETPIPE_SZ, 1 << 20) > 0);
	assert_int_equal(write(ends[1], bytes, sizeof(bytes)), sizeof(bytes));
	close(ends[1]);
	r->io.stdin_fd = ends[0];

	assert_int_equal(watch(r, "sleep 0.2; [ $(wc -c) = 196608 ]"), 0);
	close(ends[0]);
	assert_int_equal(r->out.status, STATUS_EXITED);
	assert_int_equal(r->out.exit_code, 0);
}

static void the_end_of_the_input_leaves_the_program_its_time(void **state)
{
	struct run *r = *state;
	r->io.stdin_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	r->io.input_grace_ms = 60000;
	assert_int_equal(watch(r, "cat; sleep 0.2; exit 4"), 0);
	close(r->io.stdin_fd);
	assert_int_equal(r->out.status, STATUS_EXITED);
	assert_int_equal(r->out.exit_code, 4);
}

static void a_program_that_goes_on_after_its_input_is_killed(void **state)
{
	struct run *r = *state;
	r->io.stdin_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	r->io.input_grace_ms = 100;
	assert_int_equal(watch(r, "exec sleep 100"), 0);
	close(r->io.stdin_fd);
	assert_int_equal(r->out.status, STATUS_CANCELLED);
	assert_int_equal(r->out.cancel_signal, SIGKILL);
}

/* More input than its pipe takes: so the end of file is never read, and only the hang-up tells. */
static void unread_input_does_not_hide_the_end_of_its_writer(void **state)
{
	struct run *r = *state;
	static char bytes[3 << 16];
	int kinds[2][2];
	assert_int_equal(pipe2(kinds[0], O_CLOEXEC), 0);
	assert_true(fcntl(kinds[0][1], F_SETPIPE_SZ, 1 << 20) > 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, kinds[1]), 0);
	for (size_t i = 0; i < 2; i++) {
		const int flags = i == 1 ? MSG_DONTWAIT : 0;
		if (i == 0)
			assert_int_equal(write(kinds[i][1], bytes, sizeof(bytes)), sizeof(bytes));
		else
			assert_true(send(kinds[i][1], bytes, sizeof(bytes), flags) > 2 << 16);
		close(kinds[i][1]);
		outcome_fini(&r->out);
		outcome_init(&r->out, "supervisor", 4096);
		r->io.stdin_fd = kinds[i][0];
		r->io.input_grace_ms = 100;
		assert_int_equal(watch(r, "exec sleep 100"), 0);
		close(kinds[i][0]);
		assert_int_equal(r->out.status, STATUS_CANCELLED);
	}
}

/* --- the loop's waiting ------------------------------------------------------------------ */

static const char busy[] = "echo out; echo err >&2; exec sleep 100";

/* The run has a time limit, so that its last call is certain: the end. */
static void a_failed_wait_is_a_failure_of_cejail(void **state)
{
	struct run *r = *state;
	r->plan.limits.cpu_ms = 60000; /* five looks in between */
	r->limits.wall_ms = 100;
	code = ENOMEM;
	int failed = 0;
	for (fail_at = 1; fail_at < 1000; fail_at++) {
		r->err = (struct cj_error){ 0 };
		outcome_fini(&r->out);
		outcome_init(&r->out, "supervisor", 4096);
		int rc = watch(r, busy);
		if (*calls < fail_at) {
			assert_int_equal(rc, 0);
			break;
		}
		failed++;
		assert_int_equal(rc, -ENOMEM);
		assert_string_equal(r->err.stage, "supervisor");
		assert_int_equal(r->out.status, STATUS_SETUP_ERROR);
		assert_string_equal(r->out.error.msg, r->err.msg);
	}
	assert_int_equal(r->out.status, STATUS_TIMEOUT);
	assert_int_equal(r->out.limits[LIMIT_WALL].value, 100);
	assert_int_equal(r->out.limits[LIMIT_OUTPUT].value, 4096);
	assert_in_range(failed, 1, 999); /* how many depends on how busy the machine is */
}

static void a_signal_in_between_is_no_failure(void **state)
{
	struct run *r = *state;
	r->limits.wall_ms = 0;
	code = EINTR;
	fail_at = 1;
	assert_int_equal(watch(r, "exit 3"), 0);
	assert_true(*calls >= fail_at);
	assert_int_equal(r->out.exit_code, 3);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(who_asked_going_away_cancels_the_run),
		TEST(a_regular_file_can_not_hang_up),
		TEST(an_init_killed_from_outside_is_reported_with_the_usage),
		TEST(a_run_whose_samples_find_only_zombies_has_a_memory_peak),
		TEST(the_jails_terminal_follows_the_callers),
		TEST(a_process_that_does_not_die_is_not_waited_for),
		TEST(a_signal_to_the_caller_does_not_end_the_wait_for_the_jails_end),
		TEST(output_waits_for_room_and_none_is_lost),
		TEST(input_that_is_left_and_taken_up_again_needs_nothing_new),
		TEST(the_end_of_the_input_leaves_the_program_its_time),
		TEST(a_program_that_goes_on_after_its_input_is_killed),
		TEST(unread_input_does_not_hide_the_end_of_its_writer),
		TEST(a_failed_wait_is_a_failure_of_cejail),
		TEST(a_signal_in_between_is_no_failure),
	};
	return RUN_TESTS_OF_JAILS(tests);
}
