/* SPDX-License-Identifier: Apache-2.0 */
/* WRAP: step_tell */
/*
 * Supervisor and init against one that does not keep to what they agreed on: each message once
 * too short, once without its descriptors, once another one.  The run fails, and says where.
 */
#include "tests/jail/whole_jail.h"

#include "runtime/base/step.h"
#include "runtime/jail/protocol.h"

/* HEADLESS: less than the data of any step; ALONE: without the bytes behind it. */
enum how { SHORT, HEADLESS, ALONE, BARE, ONE_DESCRIPTOR, OTHER, MORE_WORDS, FEWER_WORDS, NO_WORDS };

static struct {
	enum step step;
	enum how how;
} broken; /* init inherits it */

static bool is_broken;

int __real_step_tell(const struct step_link *link, unsigned step, const void *data, size_t size,
		     const int *fds, size_t nfds, struct cj_error *err);
int __wrap_step_tell(const struct step_link *link, unsigned step, const void *data, size_t size,
		     const int *fds, size_t nfds, struct cj_error *err);

static int tell_words(const struct step_link *link, unsigned step, const struct start *start,
		      const int *fds, size_t nfds, struct cj_error *err)
{
	struct start lie = *start;
	if (broken.how == MORE_WORDS)
		lie.envc += 5;
	if (broken.how == FEWER_WORDS)
		lie.argc--;
	if (broken.how == NO_WORDS)
		lie.argc = 0;
	return __real_step_tell(link, step, &lie, sizeof(lie), fds, nfds, err);
}

int __wrap_step_tell(const struct step_link *link, unsigned step, const void *data, size_t size,
		     const int *fds, size_t nfds, struct cj_error *err)
{
	if (!is_broken || step != broken.step || link->names != step_names)
		return __real_step_tell(link, step, data, size, fds, nfds, err);
	is_broken = false;
	switch (broken.how) {
	case SHORT:
		return __real_step_tell(link, step, data, size - 1, fds, nfds, err);
	case HEADLESS:
		return __real_step_tell(link, step, data, 3, fds, nfds, err);
	case ALONE:
		return __real_step_tell(link, step, data,
					step == STEP_FILES ? sizeof(struct files_head) : 0, NULL, 0,
					err);
	case BARE:
		return __real_step_tell(link, step, data, size, NULL, 0, err);
	case ONE_DESCRIPTOR:
		return __real_step_tell(link, step, data, size, fds, 1, err);
	case OTHER:
		return __real_step_tell(link, STEP_COUNT - 1, data, size, fds, nfds, err);
	default:
		return tell_words(link, step, data, fds, nfds, err);
	}
}

enum with { PLAIN, TTY, LAUNCHER, SETUP, LARGE, COPY };

static const struct {
	enum step step;
	enum how how;
	enum with with;
	const char *said;
} cases[] = {
	{ STEP_NETWORK, SHORT, PLAIN, "receive the network" },
	{ STEP_NETWORK, OTHER, PLAIN, "it sent step 19" },
	{ STEP_IDS_MAPPED, SHORT, PLAIN, "read which ids are ours" },
	{ STEP_IDS_MAPPED, OTHER, PLAIN, "it sent step 19" },
	{ STEP_SEALED, SHORT, PLAIN, "receive the sealed jail" },
	{ STEP_SEALED, BARE, PLAIN, "receive the sealed jail" },
	{ STEP_SEALED, OTHER, PLAIN, "it sent step 19" },
	{ STEP_INPUT, SHORT, COPY, "read an input" },
	{ STEP_INPUT, OTHER, COPY, "take in the program: step 19" },
	{ STEP_FILES, SHORT, PLAIN, "read the files" },
	{ STEP_FILES, HEADLESS, PLAIN, "read the files" },
	{ STEP_FILES, ALONE, PLAIN, "read 'the files'" },
	{ STEP_FILES, BARE, LARGE, "read 'the files'" },
	{ STEP_FILES, OTHER, PLAIN, "take in the program: step 19" },
	{ STEP_START, SHORT, PLAIN, "read the program's arguments and environment" },
	{ STEP_START, HEADLESS, PLAIN, "read the program" },
	{ STEP_START, BARE, PLAIN, "take the program's standard streams" },
	{ STEP_START, ONE_DESCRIPTOR, PLAIN, "take the program's standard streams" },
	{ STEP_START, MORE_WORDS, PLAIN, "read the program's arguments and environment" },
	{ STEP_START, FEWER_WORDS, PLAIN, "read the program's arguments and environment" },
	{ STEP_START, NO_WORDS, PLAIN, "read the program's arguments and environment" },
	{ STEP_STARTED, OTHER, PLAIN, "start the program: init sent step 19" },
	{ STEP_STARTED, SHORT, PLAIN, "start the program: init sent step" },
	{ STEP_STARTED, BARE, TTY, "receive the program's terminal" },
	{ STEP_ENDED, SHORT, PLAIN, "wait for the program's end: init sent step 14" },
	{ STEP_SETUP, SHORT, SETUP, "read the program's arguments and environment" },
	{ STEP_SETUP, OTHER, SETUP, "take in the program: step 19" },
	{ STEP_SETUP, NO_WORDS, SETUP, "read the program's arguments and environment" },
	{ STEP_STARTED, OTHER, SETUP, "start the program: init sent step 19" },
	{ STEP_ENDED, SHORT, SETUP, "wait for the program's end: init sent step 14" },
	{ STEP_WARM, SHORT, LAUNCHER, "read the program's arguments and environment" },
	{ STEP_WARM, OTHER, LAUNCHER, "take in the program: step 19" },
	{ STEP_WARMED, SHORT, LAUNCHER, "wait for the interpreter to be ready" },
	{ STEP_WARMED, OTHER, LAUNCHER, "it sent step 19" },
	{ STEP_GO, ALONE, LAUNCHER, "read 'the program's arguments and environment'" },
	{ STEP_GO, OTHER, LAUNCHER, "take in the program: step 19" },
	{ STEP_STARTED, OTHER, LAUNCHER, "start the program: init sent step 19" },
};

static int set_up(struct jail *jail, const struct program *program, const struct jail_io *io,
		  struct cj_error *err)
{
	static const char *words[] = { "/bin/true", NULL };
	struct program command = *program;
	struct outcome out = { 0 };

	command.argv = (struct strings){ words, 1 };
	command.code_source = CODE_NONE;
	outcome_init(&out, "setup", 1);
	int rc = jail_set_up(jail, &command, io, &out, err);
	outcome_fini(&out);
	return rc;
}

static int run_broken(enum with with, struct outcome *out, struct cj_error *err)
{
	static const char *words[] = { "/bin/sh", "/box/main.sh", NULL };
	const struct jail_io io = {
		.stdin_fd = -1, .stdout_fd = -1, .stderr_fd = -1, .tty_fd = -1, .hangup_fd = -1
	};
	static char large[STEP_DATA_MAX + 1] = "exit 0\n";
	static const struct copy_spec copy = { .source = "/etc/passwd", .target = "/box/copy" };
	memset(large + 7, '#', sizeof(large) - 7);
	const struct program program = { .workdir = "/box",
					 .argv = { words, 2 },
					 .code_source = CODE_STRING,
					 .code_name = "-c",
					 .code_text = large,
					 .code_size = with == LARGE ? sizeof(large) : 6,
					 .code_path = "/box/main.sh",
					 .files = &copy,
					 .nfiles = with == COPY };
	struct plan plan = simple_plan();
	plan.network.mode = NETWORK_PUBLIC;
	plan.network.uplink = UPLINK_NONE;
	plan.tty = plan.root.tty = with == TTY;
	plan.setup.command = with == SETUP ? "true" : NULL;

	struct jail *jail = NULL;
	int rc = jail_prepare(&plan, unique_id(), &jail, err);
	if (rc == 0 && with == LAUNCHER)
		rc = jail_warm(jail, JAIL_NO_ZYGOTE, shell_launcher(), err);
	if (rc == 0 && with == SETUP)
		rc = set_up(jail, &program, &io, err);
	if (rc == 0)
		rc = jail_start(jail, &program, &io, err);
	if (rc == 0)
		rc = jail_wait(jail, out, err);
	jail_destroy(&jail);
	return rc;
}

static void a_message_that_breaks_the_protocol_ends_the_run(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		unsigned long before = open_descriptors();
		struct cj_error err = { 0 };
		struct outcome out;
		outcome_init(&out, "protocol", 4096);
		broken.step = cases[i].step;
		broken.how = cases[i].how;
		is_broken = true;
		int rc = run_broken(cases[i].with, &out, &err);
		is_broken = false;
		if (!strstr(err.msg, cases[i].said))
			print_error("case %zu: '%s' is not '%s'\n", i, err.msg, cases[i].said);
		assert_int_equal(rc, -EPROTO);
		assert_non_null(strstr(err.msg, cases[i].said));
		outcome_fini(&out);
		assert_nothing_held(before);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_message_that_breaks_the_protocol_ends_the_run),
	};
	return RUN_TESTS_OF_JAILS(tests);
}
