/* SPDX-License-Identifier: Apache-2.0 */
/*
 * start - sends a program into a sealed jail: its streams, inputs, arguments.
 *
 * Either init executes the program, or a launcher that jail_warm() has started becomes it.
 */
#include "runtime/jail/supervise/start.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "runtime/base/clock.h"
#include "runtime/base/files/fd.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"
#include "runtime/base/text.h"
#include "runtime/jail/jail_state.h"
#include "runtime/jail/supervise/jail_network.h"
#include "runtime/jail/supervise/bind_watch.h"
#include "runtime/jail/supervise/calls.h"
#include "runtime/jail/usage/usage_watch.h"

/* The relay has the near end of each pipe, which is non-blocking; the payload gets the far end. */
static int open_pipes(struct jail *j, bool has_stdin, int out_far[3], struct cj_error *err)
{
	for (int i = 0; i < 3; i++) {
		const bool is_input = i == RELAY_STDIN;
		struct relay *r = &j->run.relays[i];
		int ends[2];
		if (is_input && !has_stdin)
			continue;
		if (pipe2(ends, O_CLOEXEC) < 0)
			return cj_fail(err, errno, "create a pipe");
		out_far[i] = ends[is_input ? 0 : 1];
		*(is_input ? &r->out_fd : &r->in_fd) = ends[is_input ? 1 : 0];
		*(is_input ? &r->owns_out : &r->owns_in) = true;
		/* a new pipe has no other flag to keep */
		if (fcntl(ends[is_input ? 1 : 0], F_SETFL, O_NONBLOCK) < 0)
			return cj_fail(err, errno, "make a pipe non-blocking");
	}
	if (out_far[0] >= 0)
		return 0;
	out_far[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
	return out_far[0] < 0 ? cj_fail(err, errno, "open '/dev/null'") : 0;
}

int start_open_calls(int *out_near_fd, int *out_far_fd, struct cj_error *err)
{
	int ends[2];
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
		return cj_fail(err, errno, "create a socket pair for the program's calls");
	*out_near_fd = ends[0];
	*out_far_fd = ends[1];
	return 0;
}

/* A launcher has a socket in any case, which a program without tools does not use. */
static int open_calls(struct jail *j, int *out_far_fd, struct cj_error *err)
{
	if (j->run.io.calls_far_fd > 0) { /* the near end is the caller's: session_interpreter.c */
		*out_far_fd = fcntl(j->run.io.calls_far_fd, F_DUPFD_CLOEXEC, 0);
		return *out_far_fd < 0 ? cj_fail(err, errno, "keep the socket for calls") : 0;
	}
	if (!j->run.program->tools)
		cj_close(&j->warm.calls_fd);
	else if (!j->warm.launcher && start_open_calls(&j->warm.calls_fd, out_far_fd, err) < 0)
		return -err->code;
	return j->run.program->tools ? calls_create(take_fd(&j->warm.calls_fd), j->run.program,
						    &j->run.io, &j->run.calls, err)
				     : 0;
}

static void connect_relays(struct jail *j)
{
	struct relay *in = &j->run.relays[RELAY_STDIN];
	if (j->run.io.stdin_fd < 0)
		relay_fini(in); /* a launcher has one in any case; this program has no input */
	in->in_fd = j->run.io.stdin_fd;
	in->is_caller_in = true;
	const int to[] = { j->run.io.stdout_fd, j->run.io.stderr_fd };
	for (size_t i = 0; i < 2; i++) {
		struct relay *r = &j->run.relays[RELAY_STDOUT + i];
		r->out_fd = to[i];
		r->is_caller_out = true;
		r->escape = j->run.io.escape[i];
	}
}

void start_resize_terminal(const struct jail *j)
{
	struct winsize size;
	if (j->run.master_fd >= 0 && j->run.io.tty_fd >= 0 &&
	    ioctl(j->run.io.tty_fd, TIOCGWINSZ, &size) == 0)
		(void)ioctl(j->run.master_fd, TIOCSWINSZ, &size); /* a wrong size is only ugly */
}

/* One terminal serves all three streams: two relays, and its output counts as stdout. */
static int connect_terminal(struct jail *j, struct step_msg *started, struct cj_error *err)
{
	if (started->nfds != 1)
		return cj_fail(err, EPROTO, "receive the program's terminal");
	j->run.master_fd = take_fd(&started->fds[0]);
	fd_set_nonblocking(j->run.master_fd);

	struct relay *in = &j->run.relays[RELAY_STDIN], *out = &j->run.relays[RELAY_STDOUT];
	in->in_fd = j->run.io.stdin_fd;
	in->is_caller_in = true;
	in->out_fd = j->run.master_fd;
	in->farewell =
	    "\x04\x04"; /* VEOF, once for a line begun and once for the end: termios(3) */
	out->in_fd = j->run.master_fd;
	out->out_fd = j->run.io.stdout_fd;
	out->is_caller_out = true;

	start_resize_terminal(j);
	return 0;
}

/* The jail has no interpreter of the program's "#!" line: the profile's interpreter runs it. */
static void warn_of_script(struct jail *j, int why)
{
	char name[4 * SCRIPT_LINE_MAX + 1];
	const char *argv[SCRIPT_ARGV_MAX] = { "" };
	(void)script_command(&j->run.script_line, argv);
	(void)text_escape(argv[0], strlen(argv[0]), false, name, sizeof(name));
	jail_warn(
	    j, "'%s' of the program's '#!' line can't be executed in the jail (%s): '%s' runs it",
	    name, strerror(why), j->run.program->argv.items[0]);
}

static int await_started(struct jail *j, struct cj_error *err)
{
	auto_step_msg struct step_msg msg = { 0 };
	struct executed how;
	if (step_next(&j->link, &msg, err) < 0)
		return -err->code;
	if ((msg.step != STEP_STARTED && msg.step != STEP_EXEC_FAILED) || msg.size != sizeof(how))
		return cj_fail(err, EPROTO, "start the program: init sent step %u", msg.step);

	memcpy(&how, msg.data, sizeof(how));
	if (how.own_errno != 0)
		warn_of_script(j, how.own_errno);
	if (msg.step == STEP_EXEC_FAILED) {
		j->run.exec_errno = how.exec_errno;
		return 0;
	}
	if (j->ops->starts)
		j->ops->starts(j, how.main_pid);
	return j->plan->tty ? connect_terminal(j, &msg, err) : 0;
}

static void note_start(struct jail *j)
{
	/* Neither can fail for these clocks. */
	j->run.started_epoch_ms = clock_epoch_ms();
	(void)clock_gettime(CLOCK_REALTIME_COARSE, &j->run.started_tick);
	j->run.started_ms = clock_ms();
}

static int send_program(struct jail *j, int far[3], struct cj_error *err)
{
	auto_fd int calls_fd = -1;
	if (handover_inputs(j, err) < 0 || open_calls(j, &calls_fd, err) < 0)
		return -err->code;
	if (!j->plan->tty && !j->warm.launcher &&
	    open_pipes(j, j->run.io.stdin_fd >= 0, far, err) < 0)
		return -err->code;

	note_start(j);
	if (j->ops->starts)
		j->ops->starts(j, 0);
	const enum step step = j->is_setting_up ? STEP_SETUP : STEP_START;
	int rc = j->warm.launcher ? handover_go(j, err)
				  : handover_start(j, step, j->run.program, far, calls_fd, err);
	if (rc == 0 && !j->plan->tty)
		connect_relays(j);
	return rc;
}

static int refuse_second(struct cj_error *err)
{
	return cj_reject_as(err, EBUSY, "program: a jail is used once");
}

/* Twice the capacity of a pipe, pipe(7): a launcher that goes on printing is not read further. */
#define LAST_OUTPUT_MAX   4096
#define LAST_OUTPUT_READS 32

/* The launcher's output is not the program's.  Its last line goes into the error as a hint. */
void start_take_last_line(struct jail *j, struct cj_error *err)
{
	char text[LAST_OUTPUT_MAX], line[CJ_ERROR_HINT_MAX - 16];
	ssize_t size = 0;
	for (size_t i = RELAY_STDOUT; i <= RELAY_STDERR; i++) {
		ssize_t got = 1;
		for (int n = 0; got > 0 && n < LAST_OUTPUT_READS; n++) {
			got = sys_read(j->run.relays[i].in_fd, text, sizeof(text));
			size = got > 0 ? got : size;
		}
	}
	while (size > 0 && text[size - 1] == '\n')
		size--;
	const char *begin = size > 0 ? memrchr(text, '\n', (size_t)size) : NULL;
	begin = begin ? begin + 1 : text;
	if (err->code == 0 || text + size <= begin)
		return;
	(void)text_escape(begin, (size_t)(text + size - begin), false, line, sizeof(line));
	cj_hint(err, "it said: %s", line);
}

/* The next part of the network that a call waits for; then the end of the wait, or of a pause. */
static uint64_t next_look(struct jail *j, uint64_t now, uint64_t deadline)
{
	uint64_t until = deadline;
	/* A module that the launcher loads may open a socket, too. */
	if (j->watch && filter_watch_wants_network(j->watch) && !jail_network_advance(j))
		until = now + NETWORK_LOOK_MS;
	uint64_t pause = j->watch ? filter_watch_paused_until_ms(j->watch) : 0;
	if (pause > 0 && pause < until)
		until = pause;
	return until > now ? until : now;
}

/* Waits for init's next step, and answers the launcher's refused calls meanwhile. */
static int serve_until_warmed(struct jail *j, struct cj_error *err)
{
	const uint64_t deadline = clock_ms() + STEP_TIMEOUT_MS;
	for (;;) {
		uint64_t now = clock_ms();
		if (now >= deadline)
			return cj_fail(err, ETIMEDOUT, "wait for the interpreter to be ready");
		uint64_t until = next_look(j, now, deadline);
		struct pollfd ends[] = {
			{ .fd = j->link.sock_fd, .events = POLLIN },
			{ .fd = j->watch ? filter_watch_fd(j->watch) : -1, .events = POLLIN },
		};
		int rc = poll(ends, 2, (int)(until - now));
		if (rc < 0 && errno != EINTR)
			return cj_fail(err, errno, "wait for the interpreter");
		const char *name;
		if (rc > 0 && ends[1].revents)
			filter_watch_answer(j->watch, &name);
		if (rc > 0 && ends[0].revents)
			return 0;
	}
}

/*
 * RLIMIT_CPU counts from the start of the process, and is a second above the program's limit
 * (limits.c).  A launcher that uses more would take from the program's time.
 */
#define WARM_CPU_US_MAX 1000000

static int await_warmed(struct jail *j, struct cj_error *err)
{
	auto_step_msg struct step_msg msg = { 0 };
	struct warmed warmed;
	if (serve_until_warmed(j, err) < 0 || step_await(&j->link, STEP_WARMED, &msg, err) < 0)
		return -err->code;
	if (msg.size != sizeof(warmed))
		return cj_fail(err, EPROTO, "wait for the interpreter to be ready");
	memcpy(&warmed, msg.data, sizeof(warmed));

	cgroup_read_usage(&j->cgroup, &j->warm.before);
	j->warm.cpu_us = warmed.cpu_us;
	if (j->plan->limits.cpu_ms == 0 || warmed.cpu_us < WARM_CPU_US_MAX)
		return 0;
	cj_refuse(err, "it took %llu ms of CPU time to be ready",
		  (unsigned long long)(warmed.cpu_us / 1000));
	return cj_hint(err, "preload less, or set no 'cpu_time'");
}

/* Of neighbours one call closes all. */
static void close_all(int fds[3])
{
	auto_fd_bag struct fd_bag all = { 0 };
	for (size_t i = 0; i < 3; i++)
		fd_bag_add(&all, take_fd(&fds[i]));
}

static int warm(struct jail *j, int zygote_fd, int far[3], struct cj_error *err)
{
	if (j->plan->tty)
		return cj_reject(err, "a terminal has no waiting interpreter");
	auto_fd int calls_fd = -1;
	if (open_pipes(j, true, far, err) < 0 ||
	    start_open_calls(&j->warm.calls_fd, &calls_fd, err) < 0)
		return -err->code;
	int sent = zygote_fd == JAIL_NO_ZYGOTE
		       ? handover_start(j, STEP_WARM, j->warm.launcher, far, calls_fd, err)
		       : adopt_launcher(j, zygote_fd, far, calls_fd, err);
	if (sent < 0)
		return sent;
	cj_close(&calls_fd);
	close_all(far); /* our copies would delay the end of file */
	int rc = await_warmed(j, err);
	start_take_last_line(j, err);
	return rc;
}

int jail_warm(struct jail *j, int zygote_fd, const struct program *launcher, struct cj_error *err)
{
	int far[3] = { -1, -1, -1 };
	if (j->warm.launcher || j->run.program || j->is_shared)
		return refuse_second(err);
	j->warm.launcher = launcher;
	int rc = warm(j, zygote_fd, far, err);
	close_all(far);
	if (rc == 0)
		return 0;
	cj_stage(err, "program");
	return cj_wrap(err, "program: interpreter '%s'", launcher->argv.items[0]);
}

/* Limits of the program, not of the jail: a prepared jail does not know them. */
static void note_run_limits(struct jail *j)
{
	const struct run_limits *l = &j->run.program->limits;
	j->limits[LIMIT_WALL] = (struct limit_state){ l->wall_ms, ENFORCED_BY_SUPERVISOR, HIT_NO };
	j->limits[LIMIT_OUTPUT] =
	    (struct limit_state){ l->output_bytes, ENFORCED_BY_SUPERVISOR, HIT_NO };
}

static void send_started(const struct jail *j)
{
	const struct jail_io *io = &j->run.io;
	if (io->started)
		io->started(io->context);
}

/* What the interpreter used before does not count as the cell's. */
static void note_usage_before(struct jail *j)
{
	struct usage_watch usage;
	cgroup_read_usage(&j->cgroup, &j->warm.before);
	if (j->warm.before.has_cpu)
		return;
	usage_watch_init(&usage, j);
	usage_watch_last(&usage, j);
	j->warm.cpu_us = process_usage_cpu_us(&usage.peak);
	usage_watch_fini(&usage);
}

int start_cell(struct jail *j, struct session_cell *cell, const struct cell_ops *ops, int *calls_fd,
	       const struct program *program, const struct jail_io *io, struct cj_error *err)
{
	j->run.program = program;
	j->run.io = *io;
	j->run.cell = cell;
	j->run.cell_ops = ops;
	if (calls_create(take_fd(calls_fd), program, &j->run.io, &j->run.calls, err) < 0)
		return -err->code;
	note_run_limits(j);
	note_usage_before(j);
	connect_relays(j);
	note_start(j);
	send_started(j);
	return 0;
}

static int fail_program(struct cj_error *err)
{
	cj_stage(err, "program");
	return cj_wrap(err, "program");
}

int start_send(struct jail *j, const struct program *program, const struct jail_io *io,
	       struct cj_error *err)
{
	int far[3] = { -1, -1, -1 };
	if (j->run.program)
		return refuse_second(err);
	j->run.program = program;
	j->run.io = *io;
	note_run_limits(j);
	if (!j->run.binds)
		j->run.binds = bind_watch_begin(&j->plan->root);
	int rc = send_program(j, far, err);
	close_all(far); /* our copies would delay the end of file */
	if (rc < 0)
		return fail_program(err);
	jail_record_started(j); /* while init starts it */
	return 0;
}

int start_await(struct jail *j, struct cj_error *err)
{
	if (await_started(j, err) < 0)
		return fail_program(err);
	if (j->run.exec_errno == 0)
		send_started(j);
	return 0;
}

int jail_start(struct jail *j, const struct program *program, const struct jail_io *io,
	       struct cj_error *err)
{
	if (start_send(j, program, io, err) < 0)
		return -err->code;
	return start_await(j, err);
}
