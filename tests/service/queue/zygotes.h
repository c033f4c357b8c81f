/* SPDX-License-Identifier: Apache-2.0 */
/* zygotes - a jail whose launcher is a fork of a zygote: of a shell, or of the test itself. */
#pragma once

#include "tests/jail/built_libexec.h"
#include "tests/jail/whole_jail.h"

#include <limits.h>
#include <sys/socket.h>

#include "runtime/base/child.h"
#include "runtime/base/scope.h"
#include "runtime/base/step.h"
#include "runtime/base/sys.h"
#include "runtime/jail/jail_state.h"
#include "runtime/jail/protocol.h"
#include "runtime/jail/zygote/zygote.h"
#include "runtime/jail/zygote/zygote_inside.h"
#include "tests/forked.h"
#include "tests/patience.h"

#define OUTPUT 65536

struct run {
	struct plan plan;
	struct zygote zygote;
	struct jail *jail;
	struct outcome out;
	struct jail_io io;
	const char *launcher_words[4];
	struct program launcher;
	const char *words[5];
	const char *env[4];
	struct program program;
	struct cj_error err;
	unsigned long descriptors;
};

/* A shell's zygote forks where its script has a subshell.  The program is the file /box/main.sh. */
static inline void run_init(struct run *r, const char *launcher, const char *code)
{
	*r = (struct run){
		.plan = simple_plan(),
		.zygote = ZYGOTE_NULL,
		.io = { .stdin_fd = -1,
			.stdout_fd = -1,
			.stderr_fd = -1,
			.tty_fd = -1,
			.hangup_fd = -1 },
		.launcher_words = { "/bin/sh", "-c", launcher ? launcher : "(" BECOME "); :" },
		.launcher = { .workdir = "/box", .argv = { r->launcher_words, 3 } },
		.words = { "/bin/sh", "/box/main.sh", "one", "t w o" },
		.env = { "PATH=/usr/bin", "COLOUR=red" },
		.program = shell_program(r->words, 4, code),
		.descriptors = open_descriptors(),
	};
	r->launcher.env = r->program.env = (struct strings){ .items = r->env, .count = 2 };
	r->program.limits.output_bytes = OUTPUT;
	r->plan.uses_zygote = true;
	outcome_init(&r->out, "zygote", OUTPUT);
}

static inline unsigned ready_ms(void)
{
	return (unsigned)patience_ms(60000);
}

static inline void spawn(struct run *r)
{
	if (zygote_spawn(&r->launcher, STDERR_FILENO, &r->zygote, &r->err) < 0 ||
	    zygote_await_ready(&r->zygote, ready_ms(), &r->err) < 0)
		fail_msg("%s (%s)", r->err.msg, r->err.hint);
}

/* From here: the launcher.  It takes its words, and is then what `act` is. */
static inline _Noreturn void become(void (*act)(void))
{
	char words[4096];
	if (write(ZYGOTE_SOCK_FD, ".", 1) != 1)
		_exit(101);
	while (read(ZYGOTE_SOCK_FD, words, sizeof(words)) > 0)
		;
	close(ZYGOTE_SOCK_FD);
	act();
	_exit(0);
}

/* A test that measures its coverage counts in a file that it shares with its forks. */
int __real_zygote_check_memory(struct cj_error *err);
int __wrap_zygote_check_memory(struct cj_error *err);
int __wrap_zygote_check_memory(struct cj_error *err)
{
#ifdef COVERAGE_DIR
	(void)err;
	return 0;
#else
	return __real_zygote_check_memory(err);
#endif
}

/* A fork of the test is the zygote, after `before`; its children do `act`. */
static inline void spawn_own(struct run *r, void (*before)(void), void (*act)(void))
{
	int ends[2];
	struct cj_error err = { 0 };
	assert_int_equal(step_pair(ends, STEP_TIMEOUT_MS, &err), 0);
	pid_t pid = test_fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		if (child_keep_only(&ends[1], 1, &err) < 0)
			_exit(102);
		if (before)
			before();
		(void)zygote_serve(fork);
		become(act);
	}
	close(ends[1]);
	r->zygote = ZYGOTE_NULL;
	r->zygote.sock_fd = ends[0];
	r->zygote.pidfd = sys_pidfd_open(pid);
	r->zygote.pid = pid;
	assert_true(r->zygote.pidfd >= 0);
}

/* A run without code, with such a zygote that is ready. */
static inline void run_own_init(struct run *r, void (*before)(void), void (*act)(void))
{
	run_init(r, NULL, "");
	spawn_own(r, before, act);
	assert_int_equal(zygote_await_ready(&r->zygote, ready_ms(), &r->err), 0);
}

static inline int prepare(struct run *r)
{
	int rc = jail_prepare(&r->plan, unique_id(), &r->jail, &r->err);
	if (rc < 0)
		fail_msg("%s (%s)", r->err.msg, r->err.hint);
	return rc;
}

static inline int warm(struct run *r)
{
	prepare(r);
	return jail_warm(r->jail, r->zygote.sock_fd, &r->launcher, &r->err);
}

static inline void finish(struct run *r, int rc)
{
	if (rc == 0)
		rc = jail_start(r->jail, &r->program, &r->io, &r->err);
	if (rc == 0)
		rc = jail_wait(r->jail, &r->out, &r->err);
	if (rc < 0)
		fail_msg("%s (%s)", r->err.msg, r->err.hint);
	jail_destroy(&r->jail);
}

static inline void run_jail(struct run *r)
{
	finish(r, warm(r));
}

static inline void run_fini(struct run *r)
{
	jail_destroy(&r->jail);
	zygote_end(&r->zygote);
	outcome_fini(&r->out);
	assert_nothing_held(r->descriptors);
}

static inline char *output(const struct run *r, size_t stream)
{
	size_t size, kept;
	char *text = capture_text(&r->out.output[stream], &size, &kept);
	assert_non_null(text);
	return text;
}

static inline void assert_output(const struct run *r, size_t stream, const char *expected)
{
	auto_free char *text = output(r, stream);
	assert_string_equal(text, expected);
}

static inline void assert_said(const struct run *r, const char *part)
{
	if (!strstr(r->err.msg, part))
		fail_msg("'%s' is not in '%s'", part, r->err.msg);
}
