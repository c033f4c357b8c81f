/* SPDX-License-Identifier: Apache-2.0 */
/* whole_jail - a small plan, one run of it, and the proof that nothing is left afterwards. */
#pragma once

#include "runtime/jail/jail.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#include "runtime/kernel/ids/idmap.h"
#include "tests/patience.h"
#include "tests/sanitizer.h"

/* RLIMIT_DATA counts the sanitizer's shadow: init would end. */
#define TEST_MEMORY_BYTES (HAS_SANITIZER ? 1ull << 47 : 64ull << 20)

static inline struct plan simple_plan(void)
{
	return (struct plan){
		.profile_name = "test",
		.profile_sha256 = "",
		.root = { .kind = ROOT_HOST,
			  .scratch_bytes = 1 << 20,
			  .scratch_inodes = 1024,
			  .hostname = "jail",
			  .uid = IDMAP_INSIDE_UID,
			  .gid = IDMAP_INSIDE_GID },
		.limits = { .memory_bytes = TEST_MEMORY_BYTES,
			    .millicpus = 1000,
			    .pids = 16,
			    .nofile = 64,
			    .disk_bytes = 1 << 20 },
	};
}

/* The time limit ends only a program that hangs. */
static inline struct run_limits simple_limits(void)
{
	return (struct run_limits){ .wall_ms = (uint64_t)patience_ms(120000),
				    .output_bytes = 4096 };
}

/* Tests of several builds run side by side. */
static inline const char *unique_id(void)
{
	static char id[PLAN_ID_MAX];
	static unsigned count;
	(void)snprintf(id, sizeof(id), "test-%d-%u", getpid(), count++);
	return id;
}

static inline unsigned long open_descriptors(void)
{
	unsigned long set = 0;
	for (int fd = 0; fd < 64; fd++)
		if (fcntl(fd, F_GETFD) >= 0)
			set |= 1ul << fd;
	return set;
}

static inline void assert_nothing_held(unsigned long descriptors_before)
{
	sigset_t blocked;
	assert_int_equal(open_descriptors(), descriptors_before);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no child, not even a zombie */
	assert_int_equal(sigprocmask(SIG_BLOCK, NULL, &blocked), 0);
	assert_int_equal(sigismember(&blocked, SIGINT), 0);
}

static inline struct program simple_program(const char *const *argv)
{
	struct program program = { .workdir = "/box", .limits = simple_limits() };
	while (argv[program.argv.count])
		program.argv.count++;
	program.argv.items = (const char **)argv;
	return program;
}

static inline int run_program(const struct plan *plan, const struct program *program,
			      struct outcome *out, struct cj_error *err)
{
	const struct jail_io io = {
		.stdin_fd = -1, .stdout_fd = -1, .stderr_fd = -1, .tty_fd = -1, .hangup_fd = -1
	};
	struct jail *jail = NULL;
	int rc = jail_prepare(plan, unique_id(), &jail, err);
	if (rc == 0)
		rc = jail_start(jail, program, &io, err);
	if (rc == 0)
		rc = jail_wait(jail, out, err);
	jail_destroy(&jail);
	assert_null(jail);
	return rc;
}

static inline int run(const struct plan *plan, const char *const *argv, struct outcome *out,
		      struct cj_error *err)
{
	const struct program program = simple_program(argv);
	return run_program(plan, &program, out, err);
}

/* A shell's launcher: it takes its words, and becomes the program, which is a shell's, too. */
#define BECOME "printf . >&3; cat <&3 >/tmp/words; exec 3>&-; . /box/main.sh"

/* A launcher as small as can be: its program is a shell script, "/bin/sh /box/main.sh". */
static inline const struct program *shell_launcher(void)
{
	static const char *words[] = { "/bin/sh", "-c", BECOME, NULL };
	static const struct program launcher = { .workdir = "/box", .argv = { words, 3 } };
	return &launcher;
}

/* The program of such a launcher: the code is /box/main.sh, which the first two words name. */
static inline struct program shell_program(const char **words, size_t count, const char *code)
{
	return (struct program){ .workdir = "/box",
				 .argv = { words, count },
				 .code_source = CODE_STRING,
				 .code_name = "-c",
				 .code_text = code,
				 .code_size = strlen(code),
				 .code_path = "/box/main.sh",
				 .limits = simple_limits() };
}

static inline bool jails_can_be_made(void)
{
	const struct plan plan = simple_plan();
	struct jail *jail = NULL;
	struct cj_error err = { 0 };
	if (jail_prepare(&plan, unique_id(), &jail, &err) < 0) {
		print_message("skipped: %s (%s)\n", err.msg, err.hint);
		return false;
	}
	jail_destroy(&jail);
	return true;
}

static void no_jail_can_be_made(void **state)
{
	(void)state;
	if (getenv("CEJAIL_TEST_STRICT"))
		fail_msg("no jail can be made here");
	skip();
}

/* Runs them, or skips each: a group's setup can only fail. */
static inline int run_tests_of_jails(const struct CMUnitTest *tests, size_t count)
{
	struct CMUnitTest skipped[64] = { 0 };
	bool can = jails_can_be_made();
	assert_true(count <= sizeof(skipped) / sizeof(skipped[0]));
	for (size_t i = 0; i < count; i++)
		skipped[i] =
		    (struct CMUnitTest){ .name = tests[i].name, .test_func = no_jail_can_be_made };
	return _cmocka_run_group_tests("jails", can ? tests : skipped, count, NULL, NULL);
}
#define RUN_TESTS_OF_JAILS(tests) run_tests_of_jails(tests, sizeof(tests) / sizeof((tests)[0]))
