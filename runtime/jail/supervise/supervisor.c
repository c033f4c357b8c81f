/* SPDX-License-Identifier: Apache-2.0 */
/*
 * supervisor - watches a running program until its first terminal event, kills the jail, delivers
 * the remaining output: jail_wait().
 *
 * One thread, one poll(2).  Each source has a row in handlers[].  A handler may decide the outcome;
 * the first decision counts.
 *
 * Nothing here waits for the payload.  Grandchildren can delay an end of file, and a process can be
 * stopped or traced.  Init reports the end of the main process, and then every process is killed.
 *
 * The loop uses no epoll and no timers: the kernel counts both per user, and the payload may have
 * the same user, so it could use them up.
 */
#include "runtime/jail/jail.h"

#include <poll.h>
#include <sys/signalfd.h>

#include "runtime/base/clock.h"
#include "runtime/base/sys.h"
#include "runtime/jail/jail_state.h"
#include "runtime/jail/supervise/jail_network.h"
#include "runtime/jail/protocol.h"
#include "runtime/jail/supervise/calls.h"
#include "runtime/jail/supervise/start.h"
#include "runtime/jail/supervise/verdict.h"
#include "runtime/jail/usage/usage_watch.h"

#define READER_MS 5000 /* past the time limit: so long may the output's reader take nothing */

/* In the order in which the events of one poll(2) are handled. */
enum source {
	SOURCE_RELAYS, /* two for each: its in side, its out side; before SOURCE_LINK, so that
			  output written before the end is read before it */
	SOURCE_CELL = SOURCE_RELAYS + 2 * RELAY_COUNT, /* the channel of a session's interpreter */
	SOURCE_CALLS, /* of tools: from the program, then the caller's answers */
	SOURCE_LINK = SOURCE_CALLS + CALLS_FDS, /* init reports the main process' end */
	SOURCE_INIT,                            /* init has ended */
	SOURCE_SIGNALS,                         /* INT, TERM, HUP to us; WINCH with a terminal */
	SOURCE_SYSCALLS,                        /* notifications of refused system calls */
	SOURCE_NETWORK, /* denials, names, forwards, the uplink; once it is built */
	SOURCE_HANGUP,  /* the reader of the result went away */
	SOURCE_INPUT,   /* the writer of the input went away, with io.input_grace_ms */
	SOURCE_ROOM,    /* the receiver of events has room again */
	SOURCE_COUNT
};

struct supervision {
	struct jail *j;
	struct outcome *out;
	struct cj_error *err;            /* of a handler that fails */
	struct pollfd fds[SOURCE_COUNT]; /* fd -1: not watched */
	uint64_t wall_at_ms;             /* on clock_ms(); 0: never */
	uint64_t grace_at_ms;            /* an interrupted cell is killed then; 0: there is none */
	uint64_t input_end_at_ms;        /* the time after the input's end is over; 0: never */
	struct usage_watch usage;
	struct watched seen;
	bool was_signalled;  /* do not wait for a slow reader */
	bool is_rushed;      /* do not wait for room for events either */
	bool is_late;        /* the time limit has passed */
	bool is_interrupted; /* it has passed, and the main process may still end by SIGINT */
	bool is_idle;        /* and no event has come for READER_MS */
};

static void watch_fd(struct supervision *w, unsigned source, int fd, short events)
{
	w->fds[source] = (struct pollfd){ .fd = fd, .events = events };
}

/* Its event of this round, if it has one, is not handled either. */
static void unwatch(struct supervision *w, unsigned source)
{
	w->fds[source].fd = -1;
}

static unsigned relay_source(size_t i, bool is_out)
{
	return SOURCE_RELAYS + 2 * (unsigned)i + is_out;
}

/*
 * An in side is watched only while there is room for its bytes: a closed pipe is always ready.  An
 * out side is always watched, for the error that reports its reader's end.
 */
static void watch_relay(struct supervision *w, size_t i)
{
	const struct relay *r = &w->j->run.relays[i];
	watch_fd(w, relay_source(i, false), relay_wants_more(r) ? r->in_fd : -1, POLLIN);
	watch_fd(w, relay_source(i, true), r->out_fd, relay_has_pending(r) ? POLLOUT : 0);
}

static void cancel(struct supervision *w, int signal)
{
	if (!w->out->has_status)
		w->out->cancel_signal = signal;
	outcome_decide(w->out, STATUS_CANCELLED);
}

static int on_link(struct supervision *w)
{
	auto_step_msg struct step_msg msg = { 0 };
	int rc = step_next(&w->j->link, &msg, w->err);
	/* EPIPE: init ended without a message.  Any other failure is init's error or ours. */
	if (rc < 0 && rc != -EPIPE)
		return rc;
	if (rc < 0) {
		unwatch(w, SOURCE_LINK);
		if (!w->out->has_status)
			w->j->ops->lose(w->j, &w->seen.ended, w->out);
		return 0;
	}
	if (msg.step != STEP_ENDED || msg.size != sizeof(w->seen.ended))
		return cj_fail(w->err, EPROTO, "wait for the program's end: init sent step %u",
			       msg.step);
	memcpy(&w->seen.ended, msg.data, sizeof(w->seen.ended));
	w->seen.has_ended = true;
	if (w->is_interrupted)
		outcome_decide(w->out, STATUS_TIMEOUT);
	verdict_decide(w->j, &w->seen.ended, w->seen.ended.wait_status, w->out);
	return 0;
}

/* A message that init sent before it ended is still in the socket: on_link() reads it first. */
static int on_init(struct supervision *w)
{
	unwatch(w, SOURCE_INIT);
	bool may_say_more = w->fds[SOURCE_LINK].fd >= 0 && !w->seen.has_ended;
	return may_say_more ? on_link(w) : 0;
}

static int on_signals(struct supervision *w)
{
	struct signalfd_siginfo info;
	while (sys_read(w->j->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		if (info.ssi_signo == SIGWINCH) {
			start_resize_terminal(w->j);
			continue;
		}
		cancel(w, (int)info.ssi_signo);
		w->was_signalled = true;
	}
	return 0;
}

/* Of an exec, once: its main process may end, as by Ctrl-C, before it is killed. */
static bool may_interrupt(struct supervision *w)
{
	if (!w->j->ops->interrupt || w->j->run.cell_ops || !w->j->run.program->limits.interrupts ||
	    w->is_interrupted || w->out->has_status)
		return false; /* a cell: interrupt_cell() */
	w->is_interrupted = w->j->ops->interrupt(w->j);
	return w->is_interrupted;
}

static void on_wall(struct supervision *w)
{
	if (may_interrupt(w)) {
		w->wall_at_ms = clock_ms() + INTERRUPT_MS;
		return;
	}
	w->wall_at_ms = 0;
	w->is_late = true;
	outcome_decide(w->out, STATUS_TIMEOUT);
}

static int on_syscalls(struct supervision *w)
{
	const struct jail_io *io = &w->j->run.io;
	const char *name = NULL;
	filter_watch_answer(w->j->watch, &name);
	if (name && io->denied)
		io->denied(io->context, &(struct jail_denied){ .syscall = name });
	return 0;
}

static int on_cell(struct supervision *w)
{
	w->j->run.cell_ops->serve(w->j, w->out);
	return 0;
}

static int on_calls(struct supervision *w)
{
	struct pollfd *seen = &w->fds[SOURCE_CALLS];
	calls_serve(w->j->run.calls, seen);
	seen[0].revents = seen[1].revents = 0; /* once a turn */
	return 0;
}

static int on_network(struct supervision *w)
{
	int rc = network_serve(w->j->network, w->err);
	jail_network_report(w->j);
	return rc;
}

/* A call of the program waits for the network.  All else that happens is handled meanwhile. */
static bool is_network_wanted(const struct supervision *w)
{
	return !w->out->has_status && w->j->watch && filter_watch_wants_network(w->j->watch);
}

static void advance_network(struct supervision *w)
{
	struct jail *j = w->j;
	if (!is_network_wanted(w))
		return;
	(void)jail_network_advance(j);
	jail_network_report(j);
	watch_fd(w, SOURCE_NETWORK, network_fd(j->network), POLLIN);
}

static int on_hangup(struct supervision *w)
{
	unwatch(w, SOURCE_HANGUP);
	cancel(w, SIGPIPE);
	return 0;
}

/* At the end of file; or at the hang-up, before what the program has not read yet. */
static int on_input_end(struct supervision *w)
{
	unwatch(w, SOURCE_INPUT);
	if (w->j->run.io.input_grace_ms > 0 && w->input_end_at_ms == 0 && !w->out->has_status)
		w->input_end_at_ms = clock_ms() + w->j->run.io.input_grace_ms;
	return 0;
}

/* Output is read only while the receiver of events has room. */
static bool pause_output(struct supervision *w)
{
	const struct jail_io *io = &w->j->run.io;
	bool is_paused = io->has_room && !w->is_rushed && !io->has_room(io->context);
	for (size_t i = RELAY_STDOUT; i < RELAY_COUNT; i++)
		w->j->run.relays[i].is_paused = is_paused;
	return is_paused;
}

static void watch_room(struct supervision *w)
{
	watch_fd(w, SOURCE_ROOM, pause_output(w) ? w->j->run.io.room_fd : -1, POLLOUT);
}

static void keep_output(struct supervision *w, size_t i, const uint8_t *bytes, size_t size)
{
	size_t stream = i - RELAY_STDOUT;
	struct capture *kept = &w->out->output[stream];
	/* Without memory the bytes are still counted, and so the output is truncated. */
	(void)capture_add(kept, bytes, size);
	if (w->j->run.io.output)
		w->j->run.io.output(w->j->run.io.context, stream, bytes, size);
	(void)pause_output(w);
	if (w->j->run.program->limits.on_output_limit != OUTPUT_KILL || !capture_is_truncated(kept))
		return;
	if (w->out->status == STATUS_EXITED)
		w->out->has_status = false; /* its last bytes may be read after its end */
	outcome_decide(w->out, STATUS_OUTPUT_LIMIT);
}

/* The end of a stream is no failure.  A terminal reports it as EIO: pty(7). */
static void warn_of_stream(struct supervision *w, size_t i, bool is_read, int code)
{
	bool is_jails_side = is_read == (i != RELAY_STDIN);
	bool is_end = code == 0 || code == EPIPE ||
		      (code == EIO && is_jails_side && w->j->plan->tty);
	if (!is_end)
		jail_warn(w->j, "%s can't be %s: %s", relay_names[i], is_read ? "read" : "written",
			  strerror(code));
}

/* The payload may close its input at any time; a reader that closes the output cancels the run. */
static void reader_gone(struct supervision *w, size_t i)
{
	struct relay *r = &w->j->run.relays[i];
	warn_of_stream(w, i, false, r->out_error);
	unwatch(w, relay_source(i, true));
	relay_end_out(r);
	if (i == RELAY_STDIN) {
		unwatch(w, relay_source(i, false));
		relay_end_in(r);
	} else {
		cancel(w, SIGPIPE);
	}
}

static void writer_gone(struct supervision *w, size_t i)
{
	struct relay *r = &w->j->run.relays[i];
	warn_of_stream(w, i, true, r->in_error);
	if (i == RELAY_STDIN)
		(void)on_input_end(w);
	unwatch(w, relay_source(i, false));
	if (r->owns_out && !relay_has_pending(r))
		unwatch(w, relay_source(i, true));
	relay_end_in(r);
}

/* Writes pending bytes, then moves at most one more chunk.  False: nothing could be moved. */
static bool pump(struct supervision *w, size_t i)
{
	struct relay *r = &w->j->run.relays[i];
	const uint8_t *bytes;
	size_t size;

	enum relay_result flushed = relay_flush(r);
	if (flushed == RELAY_END)
		reader_gone(w, i);
	if (relay_has_pending(r) || r->in_fd < 0)
		return flushed == RELAY_MOVED;

	enum relay_result filled = relay_fill(r, &bytes, &size);
	if (filled == RELAY_END)
		writer_gone(w, i);
	if (filled == RELAY_MOVED) {
		if (i != RELAY_STDIN)
			keep_output(w, i, bytes, size);
		relay_pass(r);
	}
	if (relay_flush(r) == RELAY_END)
		reader_gone(w, i);
	return filled == RELAY_MOVED;
}

static void on_relay(struct supervision *w, unsigned source, short events)
{
	size_t i = (source - SOURCE_RELAYS) / 2;
	bool is_out = (source - SOURCE_RELAYS) % 2 == 1;
	/* A hang-up is final: the other end of the socket is closed, or the terminal is. */
	if (is_out && (events & (POLLERR | POLLHUP)))
		reader_gone(w, i);
	else
		(void)pump(w, i);
}

static int (*const handlers[SOURCE_COUNT])(struct supervision *w) = {
	[SOURCE_CELL] = on_cell,         [SOURCE_CALLS] = on_calls,
	[SOURCE_CALLS + 1] = on_calls,   [SOURCE_LINK] = on_link,
	[SOURCE_INIT] = on_init,         [SOURCE_SIGNALS] = on_signals,
	[SOURCE_SYSCALLS] = on_syscalls, [SOURCE_NETWORK] = on_network,
	[SOURCE_HANGUP] = on_hangup,     [SOURCE_INPUT] = on_input_end,
	[SOURCE_ROOM] = on_calls, /* a call may have waited for it, too; output: watch_room() */
};

/* In ms, for poll(2): the time until the next deadline. */
static int poll_timeout(const struct supervision *w)
{
	uint64_t at_ms = clock_earlier(w->usage.next_at_ms, w->wall_at_ms);
	at_ms = clock_earlier(at_ms, w->j->watch ? filter_watch_paused_until_ms(w->j->watch) : 0);
	at_ms = clock_earlier(at_ms, calls_at_ms(w->j->run.calls));
	if (w->is_late)
		at_ms = clock_ms() + READER_MS;
	if (is_network_wanted(w))
		at_ms = clock_ms() + NETWORK_LOOK_MS;
	at_ms = clock_earlier(at_ms, w->input_end_at_ms);
	return clock_ms_until(clock_earlier(at_ms, w->grace_at_ms));
}

static int look_at_clock(struct supervision *w)
{
	uint64_t now_ms = clock_ms();
	if (w->wall_at_ms > 0 && now_ms >= w->wall_at_ms)
		on_wall(w);
	if (w->input_end_at_ms > 0 && now_ms >= w->input_end_at_ms) {
		w->input_end_at_ms = 0;
		w->was_signalled |= !w->out->has_status;
		cancel(w, SIGKILL);
	}
	calls_look_at_clock(w->j->run.calls, now_ms);
	if (w->usage.next_at_ms == 0 || now_ms < w->usage.next_at_ms)
		return 0;
	return usage_watch_sample(&w->usage, w->j, w->out, w->err);
}

static int wait_once(struct supervision *w)
{
	const struct cell_ops *cell = w->j->run.cell_ops;
	bool was_late = w->is_late;
	watch_room(w);
	/* Not while answering pauses or a call waits for the network; filter_watch_fd() decides. */
	watch_fd(w, SOURCE_SYSCALLS, w->j->watch ? filter_watch_fd(w->j->watch) : -1, POLLIN);
	w->fds[SOURCE_CELL] = cell ? cell->watch(w->j) : (struct pollfd){ .fd = -1 };
	calls_watch(w->j->run.calls, &w->fds[SOURCE_CALLS]);
	for (size_t i = 0; i < RELAY_COUNT; i++)
		watch_relay(w, i);

	int n = poll(w->fds, SOURCE_COUNT, poll_timeout(w));
	if (n < 0 && errno != EINTR)
		return cj_fail(w->err, errno, "wait for events");
	w->is_idle = was_late && n == 0;
	for (unsigned source = 0; n > 0 && source < SOURCE_COUNT; source++) {
		if (w->fds[source].fd < 0 || w->fds[source].revents == 0)
			continue;
		if (!handlers[source])
			on_relay(w, source, w->fds[source].revents);
		else if (handlers[source](w) < 0)
			return -w->err->code;
	}
	advance_network(w);
	return look_at_clock(w);
}

static void open_watch(struct supervision *w)
{
	struct jail *j = w->j;
	watch_fd(w, SOURCE_LINK, j->link.sock_fd, POLLIN);
	watch_fd(w, SOURCE_INIT, j->init_pidfd, POLLIN);
	watch_fd(w, SOURCE_SIGNALS, j->signal_fd, POLLIN);
	watch_fd(w, SOURCE_NETWORK, j->network ? network_fd(j->network) : -1, POLLIN);
	watch_fd(w, SOURCE_HANGUP, j->run.io.hangup_fd, 0); /* poll(2) always reports a hang-up */
	watch_fd(w, SOURCE_INPUT, j->run.io.input_grace_ms > 0 ? j->run.io.stdin_fd : -1,
		 POLLRDHUP);
	for (size_t i = 0; i < RELAY_COUNT; i++)
		if (j->run.relays[i].is_caller_out)
			relay_own_output(&j->run.relays[i]);

	if (j->run.program->limits.wall_ms > 0)
		w->wall_at_ms = j->run.started_ms + j->run.program->limits.wall_ms;
	usage_watch_init(&w->usage, j);
}

static bool has_left_cell(const struct jail *j)
{
	return j->run.cell_ops && j->run.cell_ops->has_ended(j);
}

/* An interpreter whose cell has ended lives on, if its next cell can call tools. */
static bool end_everything(struct supervision *w)
{
	bool has_ended_itself =
	    w->seen.has_ended && w->out->has_status &&
	    (w->out->status == STATUS_EXITED || w->out->status == STATUS_SIGNALED);
	return (has_left_cell(w->j) && !calls_are_cut(w->j->run.calls)) ||
	       w->j->ops->end(w->j, &w->seen.ended, has_ended_itself);
}

static bool has_output_left(const struct jail *j)
{
	for (size_t i = RELAY_STDOUT; i < RELAY_COUNT; i++)
		if (j->run.relays[i].in_fd >= 0 || relay_has_pending(&j->run.relays[i]))
			return true;
	return false;
}

/* Only after relay_complete(), which limits how much is read. */
static void take_remaining(struct supervision *w, size_t i)
{
	while (w->j->run.relays[i].in_fd >= 0 && pump(w, i))
		;
}

/* The readers are too slow: what is left is counted, kept for the result, and reported as lost. */
static void forget_readers(struct supervision *w)
{
	w->is_rushed = true;
	(void)pause_output(w);
	for (size_t i = RELAY_STDOUT; i < RELAY_COUNT; i++) {
		struct relay *r = &w->j->run.relays[i];
		if (relay_has_pending(r)) {
			jail_warn(w->j, "%s was not read to its end: the rest is lost",
				  relay_names[i]);
			unwatch(w, relay_source(i, true));
			relay_end_out(r);
		}
		take_remaining(w, i);
	}
}

/*
 * Delivers the remaining output when every process of the jail is dead.
 *
 * The pipes may never reach their end of file: a program can send its end to a service of
 * --connect, which may even go on writing.  So relay_complete() limits how much is read.  A reader
 * may take until the time limit; a signal, or the reader's own end, ends the wait.
 */
static int drain(struct supervision *w)
{
	struct jail *j = w->j;
	writer_gone(w, RELAY_STDIN);
	unwatch(w, SOURCE_LINK);
	unwatch(w, SOURCE_INIT);
	w->usage.next_at_ms = 0;

	for (size_t i = RELAY_STDOUT; i < RELAY_COUNT; i++) {
		relay_complete(&j->run.relays[i]);
		take_remaining(w, i);
	}
	while (has_output_left(j) && !w->was_signalled && !w->is_idle)
		if (wait_once(w) < 0)
			return -w->err->code;
	forget_readers(w);
	return 0;
}

static bool is_cell_running(const struct supervision *w)
{
	return !has_left_cell(w->j) && !w->seen.has_ended && w->fds[SOURCE_LINK].fd >= 0;
}

static int await_cell(struct supervision *w, uint64_t until_ms)
{
	w->grace_at_ms = until_ms;
	while (is_cell_running(w) && clock_ms() < until_ms)
		if (wait_once(w) < 0)
			return -w->err->code;
	w->grace_at_ms = 0;
	return 0;
}

/*
 * A cell that does not end is killed afterwards.  An interpreter that had not begun the cell yet
 * has ignored the first signal: so there is a second one.
 */
static int interrupt_cell(struct supervision *w)
{
	if (!w->j->run.cell_ops || !w->j->run.cell_ops->interrupt(w->j, w->out))
		return 0;
	w->is_rushed = true; /* else a write may block the interpreter */
	const uint64_t begin_ms = clock_ms();
	if (await_cell(w, begin_ms + INTERRUPT_MS / 2) < 0)
		return -w->err->code;
	if (is_cell_running(w))
		(void)w->j->ops->interrupt(w->j);
	return await_cell(w, begin_ms + INTERRUPT_MS);
}

static int watch_until_decided(struct supervision *w)
{
	open_watch(w);
	jail_network_report(w->j); /* it may have started early */
	while (!w->out->has_status)
		if (wait_once(w) < 0)
			return -w->err->code;
	return interrupt_cell(w);
}

static int watch(struct jail *j, struct outcome *out, struct cj_error *err)
{
	struct supervision w = { .j = j, .out = out, .err = err };
	int rc = watch_until_decided(&w);
	w.seen.wall_ms = clock_ms() - j->run.started_ms;
	if (out->has_status && out->status == STATUS_OOM && !j->is_shared)
		process_usage_kill(j->handles.proc_fd); /* its memory may still grow: at once */
	else if (!w.seen.has_ended)
		usage_watch_last(&w.usage, j);
	w.seen.peak = w.usage.peak;
	calls_end(j->run.calls, has_left_cell(j), out);
	if (!end_everything(&w)) /* a living process may hold the pipes: read what is there */
		w.was_signalled = true;
	if (rc == 0)
		rc = drain(&w);
	if (rc == 0)
		rc = verdict_read(j, &w.seen, out, err);
	jail_network_report(j); /* the uplink may have been lost at the end */
	usage_watch_fini(&w.usage);
	return rc;
}

int jail_wait(struct jail *j, struct outcome *out, struct cj_error *err)
{
	int rc = 0;
	if (j->run.exec_errno != 0) {
		verdict_adopt(j, out);
		outcome_exec_failed(out, j->run.exec_errno);
	} else {
		rc = watch(j, out, err);
	}
	verdict_warn_of_binds(j);
	for (size_t i = 0; i < j->warnings.count; i++)
		outcome_warn(out, "%s", j->warnings.items[i]);
	if (rc < 0) {
		cj_stage(err, "supervisor");
		rc = cj_wrap(err, "supervisor");
		outcome_fail(out, err);
	}
	return rc;
}
