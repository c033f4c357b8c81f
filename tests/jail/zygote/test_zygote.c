/* SPDX-License-Identifier: Apache-2.0 */
/* WRAP: libexec_path_find */
/*
 * A jail whose launcher is a fork of a zygote: it is what a launcher is that init has executed.
 * The zygote is a shell.
 */
#include "tests/jail/whole_jail.h"

#include "runtime/jail/zygote/zygote.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <string.h>

#include "runtime/base/scope.h"
#include "runtime/jail/jail_state.h"

int __wrap_libexec_path_find(const char *name, char out[static PATH_MAX], struct cj_error *err);
int __wrap_libexec_path_find(const char *name, char out[static PATH_MAX], struct cj_error *err)
{
	(void)err;
	char self[PATH_MAX];
	ssize_t size = readlink("/proc/self/exe", self, sizeof(self) - 1);
	assert_true(size > 0);
	self[size] = '\0';
	*strstr(self, "/tests/") = '\0';
	assert_true(snprintf(out, PATH_MAX, "%s/libexec/cejail/%s", self, name) < PATH_MAX);
	return 0;
}

#define BECOME "printf . >&3; cat <&3 >/tmp/words; exec 3>&-; . /box/main.sh"

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

static void run_init(struct run *r, const char *launcher, const char *code)
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
		.program = { .workdir = "/box",
			     .argv = { r->words, 4 },
			     .code_source = CODE_STRING,
			     .code_name = "-c",
			     .code_text = code,
			     .code_size = strlen(code),
			     .code_path = "/box/main.sh",
			     .limits = { .wall_ms = 20000, .output_bytes = 65536 } },
		.descriptors = open_descriptors(),
	};
	r->launcher.env = r->program.env = (struct strings){ .items = r->env, .count = 2 };
	r->plan.uses_zygote = true;
	outcome_init(&r->out, "zygote", 65536);
}

static void spawn(struct run *r)
{
	if (zygote_spawn(&r->launcher, STDERR_FILENO, &r->zygote, &r->err) < 0 ||
	    zygote_await_ready(&r->zygote, 10000, &r->err) < 0)
		fail_msg("%s (%s)", r->err.msg, r->err.hint);
}

static int warm(struct run *r)
{
	int rc = jail_prepare(&r->plan, unique_id(), &r->jail, &r->err);
	if (rc < 0)
		fail_msg("%s (%s)", r->err.msg, r->err.hint);
	return jail_warm_from(r->jail, r->zygote.sock_fd, &r->launcher, &r->err);
}

/* In a fork of the zygote, or in an executed launcher. */
static void run_jail(struct run *r, bool is_fork)
{
	r->plan.uses_zygote = is_fork;
	int rc = is_fork ? warm(r) : jail_prepare(&r->plan, unique_id(), &r->jail, &r->err);
	if (rc == 0 && !is_fork)
		rc = jail_warm(r->jail, &r->launcher, &r->err);
	if (rc == 0)
		rc = jail_start(r->jail, &r->program, &r->io, &r->err);
	if (rc == 0)
		rc = jail_wait(r->jail, &r->out, &r->err);
	if (rc < 0)
		fail_msg("%s (%s)", r->err.msg, r->err.hint);
	jail_destroy(&r->jail);
}

static void run_fini(struct run *r)
{
	jail_destroy(&r->jail);
	zygote_end(&r->zygote);
	outcome_fini(&r->out);
	assert_nothing_held(r->descriptors);
}

static char *output(const struct run *r, size_t stream)
{
	size_t size, kept;
	char *text = capture_text(&r->out.output[stream], &size, &kept);
	assert_non_null(text);
	return text;
}

static void assert_output(const struct run *r, size_t stream, const char *expected)
{
	auto_free char *text = output(r, stream);
	assert_string_equal(text, expected);
}

/* --- it is a launcher ----------------------------------------------------------------------- */

static void a_fork_of_the_zygote_becomes_the_program(void **state)
{
	(void)state;
	struct run r;
	run_init(
	    &r, NULL,
	    "tr '\\0' '|' </tmp/words; echo; readlink /proc/self/cwd; echo $COLOUR; echo err >&2; exit 7");
	spawn(&r);
	run_jail(&r, true);
	assert_output(&r, 1, "err\n");
	assert_output(&r, 0, "0|/box/main.sh|one|t w o|\n/box\nred\n");
	assert_int_equal(r.out.status, STATUS_EXITED);
	assert_int_equal(r.out.exit_code, 7);
	run_fini(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_fork_of_the_zygote_becomes_the_program),
	};
	return RUN_TESTS_OF_JAILS(tests);
}
