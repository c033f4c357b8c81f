/* SPDX-License-Identifier: Apache-2.0 */
/* whole_session - a session on a small plan, and execs in it, each with a worker of its own. */
#pragma once

#include "runtime/session/session.h"

#include <poll.h>
#include <sys/prctl.h>

#include "runtime/base/clock.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"
#include "runtime/jail/jail_state.h"
#include "runtime/session/session_state.h"
#include "tests/forked.h"
#include "tests/jail/whole_jail.h"

#define TEST_PATIENCE_MS ((unsigned)patience_ms(60000)) /* only what hangs takes so long */

struct whole_session {
	struct plan plan;
	struct jail *jail;
	struct session *session;
	enum session_end end;
	struct cj_error err;
	unsigned long descriptors_before;
};

#define KEPT_DENIALS 8

/* What an exec worker sends back: of one writer, in one write(2). */
struct exec_result {
	bool is_there;
	int rc; /* of open, start and wait */
	enum status status;
	int exit_code, signal, exec_errno;
	enum limit_hit memory_hit;
	char out[8192], message[CJ_ERROR_MSG_MAX], warnings[2048];
	struct {
		char name[48];
		unsigned count;
	} denied[KEPT_DENIALS];
	size_t ndenied;
};

struct exec_handle {
	unsigned slot;
	pid_t pid;
	int pidfd, result_fd;
};

static inline struct plan session_plan(void)
{
	struct plan plan = simple_plan();
	plan.limits.pids = 64;
	plan.is_divided = true;
	return plan;
}

static inline int try_session(struct whole_session *w, const struct plan *plan)
{
	*w = (struct whole_session){ .plan = *plan, .descriptors_before = open_descriptors() };
	int rc = session_prepare(&w->plan, unique_id(), &w->jail, &w->err);
	if (rc == 0)
		rc = session_begin(w->jail, &w->session, &w->err);
	return rc;
}

static inline void begin_session(struct whole_session *w, const struct plan *plan)
{
	if (try_session(w, plan) < 0)
		fail_msg("no session: %s", w->err.msg);
}

static inline void end_session(struct whole_session *w)
{
	if (w->session)
		session_finish(&w->session);
	jail_destroy(&w->jail);
	assert_nothing_held(w->descriptors_before);
}

static inline bool has_cgroup(const struct whole_session *w)
{
	return w->jail->cgroup.dir_fd >= 0;
}

/* --- the worker of one exec ------------------------------------------------------------ */

static inline void note_outcome(const struct outcome *out, struct exec_result *r)
{
	r->status = out->status;
	r->exit_code = out->exit_code;
	r->signal = out->signal;
	r->exec_errno = out->exec_errno;
	r->memory_hit = out->limits[LIMIT_MEMORY].hit;
	for (size_t i = 0; i < out->ndenied && i < KEPT_DENIALS; i++, r->ndenied++) {
		(void)snprintf(r->denied[i].name, sizeof(r->denied[i].name), "%s",
			       out->denied[i].name);
		r->denied[i].count = out->denied[i].count;
	}
	size_t size, kept;
	auto_free char *text = capture_text(&out->output[0], &size, &kept);
	(void)snprintf(r->out, sizeof(r->out), "%s", text ? text : "");
	for (size_t i = 0, at = 0; i < out->warnings.count && at < sizeof(r->warnings); i++)
		at += (size_t)snprintf(r->warnings + at, sizeof(r->warnings) - at, "%s\n",
				       out->warnings.items[i]);
}

static inline int work(struct whole_session *w, unsigned slot, const struct program *program,
		       struct exec_result *r)
{
	const struct jail_io io = {
		.stdin_fd = -1, .stdout_fd = -1, .stderr_fd = -1, .tty_fd = -1, .hangup_fd = -1
	};
	struct cj_error err = { 0 };
	struct jail *view = NULL;
	struct outcome out;
	outcome_init(&out, "exec", sizeof(r->out) - 1);
	int rc = session_exec_open(w->session, slot, "exec", &view, &err);
	if (rc == 0)
		rc = jail_start(view, program, &io, &err);
	if (rc == 0)
		rc = jail_wait(view, &out, &err);
	(void)snprintf(r->message, sizeof(r->message), "%s", err.msg);
	note_outcome(&out, r);
	if (view)
		jail_destroy(&view);
	outcome_fini(&out);
	return rc;
}

/* Reserves, forks a worker, and returns at once. */
static inline struct exec_handle start_program(struct whole_session *w,
					       const struct program *program)
{
	struct exec_handle h = { 0 };
	int ends[2];
	if (session_exec_reserve(w->session, "", &h.slot, &w->err) < 0)
		fail_msg("no slot: %s", w->err.msg);
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	h.pid = test_fork();
	assert_true(h.pid >= 0);
	if (h.pid == 0) {
		struct exec_result r = { .is_there = true };
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
		if (session_fork_keep(w->session, h.slot, &ends[1], 1, &w->err) < 0)
			_exit(1);
		r.rc = work(w, h.slot, program, &r);
		_exit(write(ends[1], &r, sizeof(r)) == (ssize_t)sizeof(r) ? 0 : 1);
	}
	(void)close(ends[1]);
	h.result_fd = ends[0];
	h.pidfd = sys_pidfd_open(h.pid);
	return h;
}

/* A shell's script; its words must stay until the exec has ended. */
static inline struct exec_handle start_shell(struct whole_session *w, const char *script,
					     const struct run_limits *limits)
{
	const char *argv[] = { "/bin/sh", "-c", script, NULL };
	struct program program = simple_program(argv);
	if (limits)
		program.limits = *limits;
	return start_program(w, &program);
}

/* Serves until fd is ready.  False: the session has ended. */
static inline bool serve_until(struct whole_session *w, int fd)
{
	const uint64_t deadline = clock_ms() + TEST_PATIENCE_MS;
	while (w->end == SESSION_LIVES && clock_ms() < deadline) {
		struct pollfd p = { .fd = fd, .events = POLLIN };
		/* The session has to wake for its own reasons. */
		if (session_serve(w->session, &p, 1, TEST_PATIENCE_MS, &w->end, &w->err) > 0)
			return true;
	}
	if (w->end == SESSION_LIVES)
		fail_msg("nothing came");
	return false;
}

/* Serves until a file is in /box. */
static inline void serve_until_file(struct whole_session *w, const char *name)
{
	const uint64_t deadline = clock_ms() + TEST_PATIENCE_MS;
	while (faccessat(w->jail->handles.box_fd, name, F_OK, 0) < 0) {
		struct pollfd none = { .fd = -1 };
		if (session_serve(w->session, &none, 1, 10, &w->end, &w->err) < 0)
			fail_msg("the session ended: %s", w->err.msg);
		assert_true(clock_ms() < deadline);
	}
}

/* Serves until the session has ended: w->end and w->err say why. */
static inline void serve_until_end(struct whole_session *w)
{
	const uint64_t deadline = clock_ms() + TEST_PATIENCE_MS;
	int rc = 0;
	while (w->end == SESSION_LIVES && clock_ms() < deadline) {
		rc = session_serve(w->session, NULL, 0, 100, &w->end, &w->err);
		assert_true((rc >= 0) == (w->end == SESSION_LIVES));
	}
	assert_int_equal(rc, -ECANCELED);
}

/* Its result, without one (is_there is false) if the worker died. */
static inline struct exec_result finish_exec(struct whole_session *w, struct exec_handle *h)
{
	struct exec_result r = { 0 };
	(void)serve_until(w, h->pidfd);
	if (read(h->result_fd, &r, sizeof(r)) != (ssize_t)sizeof(r))
		r.is_there = false;
	assert_int_equal(waitpid(h->pid, NULL, 0), h->pid);
	if (w->session)
		session_exec_done(w->session, h->slot);
	cj_close(&h->result_fd);
	cj_close(&h->pidfd);
	return r;
}

static inline struct exec_result run_shell(struct whole_session *w, const char *script,
					   const struct run_limits *limits)
{
	struct exec_handle h = start_shell(w, script, limits);
	return finish_exec(w, &h);
}

/* After a kill: what is dead counts as a process until init has reaped it. */
static inline struct exec_result run_shell_after_kill(struct whole_session *w, const char *script)
{
	const uint64_t deadline = clock_ms() + TEST_PATIENCE_MS;
	struct exec_result r;
	do
		r = run_shell(w, script, NULL);
	while (r.is_there && r.rc == -EAGAIN && clock_ms() < deadline);
	return r;
}

/* Serves until the slot is free: nothing of the exec lives.  False: the session has ended, and
 * what the test prints says why. */
static inline bool serve_until_gone(struct whole_session *w, unsigned slot)
{
	const uint64_t deadline = clock_ms() + TEST_PATIENCE_MS;
	while (w->end == SESSION_LIVES && session_slot_has_exec(&w->session->slots[slot])) {
		(void)session_serve(w->session, NULL, 0, 100, &w->end, &w->err);
		assert_true(clock_ms() < deadline);
	}
	if (w->end != SESSION_LIVES)
		print_message("the session has ended: %s: %s\n", session_ends[w->end].name,
			      w->err.msg);
	return w->end == SESSION_LIVES;
}

static inline void assert_exited(const struct exec_result *r, int exit_code)
{
	if (!r->is_there || r->rc != 0 || r->status != STATUS_EXITED || r->exit_code != exit_code)
		fail_msg("is_there %d rc %d status %s exit code %d signal %d: %s %s%s", r->is_there,
			 r->rc, status_names[r->status], r->exit_code, r->signal, r->message,
			 r->out, r->warnings);
}
