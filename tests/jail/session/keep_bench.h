/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keep_bench - a session of a real jail, and its execs, each in a worker of its own as the
 * service has them.
 */
#pragma once

#include "tests/jail/whole_jail.h"

#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "runtime/base/clock.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"
#include "runtime/jail/jail_state.h"
#include "runtime/jail/session/session.h"
#include "runtime/jail/session/session_state.h"

#define PATIENCE_MS  60000 /* a loaded machine takes long; a hang ends */
#define KEPT_DENIALS 8

/* What the worker leaves for the test: an outcome's pointers are the worker's own. */
struct exec_result {
	bool is_there;
	struct cj_error err; /* why there is no outcome */
	enum status status;
	int exit_code, signal;
	enum limit_hit memory_hit, pids_hit;
	enum network_state network;
	struct usage usage;
	char output[2][1024];
	char warnings[2048];
	struct {
		char name[48];
		unsigned count;
	} denied[KEPT_DENIALS];
	size_t ndenied;
};

struct exec {
	unsigned slot;
	int pidfd; /* -1: the worker has ended, and session_exec_done() was called */
	struct exec_result *result;
};

struct whole_session {
	struct plan plan;
	struct jail *jail;
	struct session *session;
	enum session_end end;
	struct cj_error err;
};

static inline void keep_text(char *out, size_t room, const char *text, size_t size)
{
	size_t used = size < room - 1 ? size : room - 1;
	memcpy(out, text, used);
	out[used] = '\0';
}

static inline void keep_result(struct exec_result *r, const struct outcome *o)
{
	r->status = o->status;
	r->exit_code = o->exit_code;
	r->signal = o->signal;
	r->memory_hit = o->limits[LIMIT_MEMORY].hit;
	r->pids_hit = o->limits[LIMIT_PIDS].hit;
	r->network = o->network.state;
	r->usage = o->usage;
	for (size_t i = 0; i < 2; i++) {
		size_t size, kept;
		auto_free char *text = capture_text(&o->output[i], &size, &kept);
		keep_text(r->output[i], sizeof(r->output[i]), text ? text : "", text ? size : 0);
	}
	for (size_t i = 0, used = 0; i < o->warnings.count; i++) {
		int n = snprintf(r->warnings + used, sizeof(r->warnings) - used, "%s\n",
				 o->warnings.items[i]);
		used += n > 0 && used + (size_t)n < sizeof(r->warnings) ? (size_t)n : 0;
	}
	for (size_t i = 0; i < o->ndenied && i < KEPT_DENIALS; i++, r->ndenied++) {
		(void)snprintf(r->denied[i].name, sizeof(r->denied[i].name), "%s",
			       o->denied[i].name);
		r->denied[i].count = o->denied[i].count;
	}
	r->is_there = true;
}

static inline int work(struct session *s, unsigned slot, const struct program *program,
		       struct outcome *out, struct cj_error *err)
{
	const struct jail_io io = {
		.stdin_fd = -1, .stdout_fd = -1, .stderr_fd = -1, .tty_fd = -1, .hangup_fd = -1
	};
	struct jail *view = NULL;
	int rc = session_exec_open(s, slot, unique_id(), &view, err);
	if (rc == 0)
		rc = jail_start(view, program, &io, err);
	if (rc == 0)
		rc = jail_wait(view, out, err);
	jail_destroy(&view);
	return rc;
}

static _Noreturn inline void worker_main(struct session *s, const struct exec *e,
					 const struct program *program)
{
	struct outcome out;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	outcome_init(&out, unique_id(), 4096);
	if (work(s, e->slot, program, &out, &e->result->err) == 0)
		keep_result(e->result, &out);
	_exit(0);
}

static inline struct exec begin_exec(struct whole_session *w, const struct program *program)
{
	struct exec e = { .pidfd = -1 };
	e.result = mmap(NULL, sizeof(*e.result), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			-1, 0);
	assert_ptr_not_equal(e.result, MAP_FAILED);
	assert_int_equal(session_exec_reserve(w->session, &e.slot, &w->err), 0);
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		worker_main(w->session, &e, program);
	e.pidfd = sys_pidfd_open(pid);
	assert_true(e.pidfd >= 0);
	return e;
}

/* A shell's program: its text is the one argument. */
static inline struct exec begin_shell(struct whole_session *w, const char *script)
{
	const char *argv[] = { "/bin/sh", "-c", script, NULL };
	const struct program program = simple_program(argv);
	return begin_exec(w, &program);
}

/* One round; false: the session has ended, and w->end says why. */
static inline bool serve(struct whole_session *w, struct pollfd *fds, size_t nfds)
{
	w->err = (struct cj_error){ 0 };
	/* An event of the caller is awaited: the session must wake for its own reasons. */
	int timeout_ms = nfds > 0 ? PATIENCE_MS : 200;
	int rc = session_serve(w->session, fds, nfds, timeout_ms, &w->end, &w->err);
	assert_true(rc >= 0 || rc == -ECANCELED);
	assert_true((rc >= 0) == (w->end == SESSION_LIVES));
	return rc >= 0;
}

static inline void reap_worker(struct exec *e)
{
	siginfo_t info;
	assert_int_equal(waitid(P_PIDFD, (id_t)e->pidfd, &info, WEXITED), 0);
	cj_close(&e->pidfd);
}

static inline void end_worker(struct whole_session *w, struct exec *e)
{
	reap_worker(e);
	session_exec_done(w->session, e->slot);
}

/* Serves until the exec's worker has ended.  False: the session has ended before. */
static inline bool await_exec(struct whole_session *w, struct exec *e)
{
	uint64_t end_ms = clock_ms() + PATIENCE_MS;
	while (clock_ms() < end_ms) {
		struct pollfd p = { .fd = e->pidfd, .events = POLLIN };
		if (!serve(w, &p, 1))
			return false;
		if (p.revents != 0) {
			end_worker(w, e);
			return true;
		}
	}
	fail_msg("the exec does not end");
	return false;
}

/* Serves until the session has ended; its one exec may end before. */
static inline void await_end(struct whole_session *w, struct exec *e)
{
	uint64_t end_ms = clock_ms() + PATIENCE_MS;
	for (;;) {
		struct pollfd p = { .fd = e->pidfd, .events = POLLIN };
		assert_true(clock_ms() < end_ms);
		if (!serve(w, &p, 1))
			break;
		if (p.revents != 0)
			end_worker(w, e);
	}
	if (e->pidfd >= 0)
		reap_worker(e);
}

/* Serves until the slot is free. */
static inline bool await_free(struct whole_session *w, unsigned slot)
{
	uint64_t end_ms = clock_ms() + PATIENCE_MS;
	while (session_exec_lives(w->session, slot)) {
		assert_true(clock_ms() < end_ms);
		if (!serve(w, NULL, 0))
			return false;
	}
	return true;
}

/* Serves until a file is in /box. */
static inline bool await_file(struct whole_session *w, const char *name)
{
	uint64_t end_ms = clock_ms() + PATIENCE_MS;
	while (faccessat(w->jail->handles.box_fd, name, F_OK, 0) < 0) {
		assert_true(clock_ms() < end_ms);
		struct pollfd none = { .fd = -1 };
		int rc = session_serve(w->session, &none, 1, 10, &w->end, &w->err);
		if (rc < 0)
			return false;
	}
	return true;
}

/* A whole exec of a shell. */
static inline struct exec_result *run_shell(struct whole_session *w, const char *script)
{
	struct exec e = begin_shell(w, script);
	assert_true(await_exec(w, &e));
	if (!e.result->is_there)
		print_error("no outcome: %s\n", e.result->err.msg);
	assert_true(e.result->is_there);
	return e.result;
}

/* w->plan is set. */
static inline void begin_session(struct whole_session *w)
{
	if (jail_prepare(&w->plan, unique_id(), &w->jail, &w->err) < 0 ||
	    session_begin(w->jail, &w->session, &w->err) < 0)
		fail_msg("%s", w->err.msg);
}

static inline void end_session(struct whole_session *w)
{
	session_finish(&w->session);
	assert_null(w->session);
	jail_destroy(&w->jail);
}

static inline bool was_denied(const struct exec_result *r, const char *name, unsigned count)
{
	for (size_t i = 0; i < r->ndenied; i++)
		if (strcmp(r->denied[i].name, name) == 0)
			return r->denied[i].count == count;
	for (size_t i = 0; i < r->ndenied; i++)
		print_error("denied: %s %u\n", r->denied[i].name, r->denied[i].count);
	print_error("%s", r->warnings);
	return false;
}
