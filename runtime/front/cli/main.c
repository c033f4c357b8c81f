/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cejail: a table of verbs.
 *
 * setlocale(3) is never called: numbers, messages and JSON are the same everywhere.
 */
#include <signal.h>
#include <sys/resource.h>

#include "runtime/base/files/fd.h"
#include "runtime/base/log.h"
#include "runtime/base/text.h"
#include "runtime/front/cli/cli.h"
#include "runtime/run/options/habits.h"
#include "runtime/run/options/operands.h"

#define STACK_BYTES_MIN (512u << 10) /* 'doctor' needs 90 KiB, a run half of that */

static int version_verb(const struct cli *cli);
static int help_verb(const struct cli *cli);

/* clang-format off */
static const struct cli_verb {
	const char *name;
	int (*run)(const struct cli *cli);
	const char *help;
	const char *usage;   /* what may follow the verb; NULL: it answers --help itself */
	const char *details; /* paragraphs of --help */
} verbs[] = {
	{ "run", run_verb, "run a file, a string or a command in a jail", NULL, NULL },
	{ "shell", run_verb, "run an interactive command in a jail", NULL, NULL },
	{ "profile", profile_verb, "list, show or check profiles", NULL, NULL },
	{ "bwrap", program_verb, "run a command with the arguments of bubblewrap", NULL, NULL },
	{ "image", program_verb, "import, list or remove images, for --rootfs", NULL, NULL },
	{ "serve", program_verb, "run jails for other programs, over a socket", NULL, NULL },
	{ "mcp", mcp_verb, "MCP server that runs code in jails, for AI agents", NULL, NULL },
	{ "session", cli_session, "run several programs in one jail", NULL, NULL },
	{ "report", report_verb, "draw results of runs as an HTML page", "[-o FILE] RESULT...",
	  "Writes one HTML page that shows how runs went: a timeline, what they used of their limits,\n"
	  "what was denied, and their output. Each RESULT is a file of 'cejail run --json=FILE', or the\n"
	  "lines of --events-fd, whose times are then in the timeline. '-' is standard input.\n"
	  "The page needs no other file and loads nothing.\n"
	  "\n"
	  "  -o, --output FILE  write the page to FILE instead of standard output\n" },
	{ "ps", ps_verb, "list the jails of this user", "[--json]",
	  "Lists the jails of this user, one per line: id, profile, process id of cejail, age\n"
	  "and state. The states are:\n"
	  "  running            a program is running\n"
	  "  ready              the jail belongs to 'cejail serve' and waits for a program\n"
	  "  left behind        the cejail process was killed; 'cejail gc' cleans up\n"
	  "\n"
	  "  --json             print one JSON object: {\"runs\": [{\"id\": ..., \"state\": ...}, ...]}\n" },
	{ "kill", kill_verb, "cancel runs by their ids", "ID...",
	  "Cancels these runs, as SIGTERM to the cejail process of each run does. Each caller\n"
	  "receives the result with the status 'cancelled'. 'cejail ps' lists the ids.\n" },
	{ "gc", gc_verb, "clean up after killed cejail processes", "",
	  "Removes the records and the empty cgroups of runs whose cejail process was killed,\n"
	  "and prints their number. Each run also removes such records when it starts.\n" },
	{ "doctor", doctor_verb, "check what this host can enforce, and how to fix it", "[--json]",
	  "Tests each feature that a jail needs. Prints one line per check, and the command that\n"
	  "fixes a failed one.\n"
	  "\n"
	  "  --json             print one JSON object: {\"worst\": ..., \"checks\": [...]}\n"
	  "\n"
	  "Exit status:\n"
	  "  0                  every isolation layer and every limit is available\n"
	  "  1                  a jail is possible, but a layer, a limit or the\n"
	  "                     public network is missing\n"
	  "  125                no jail is possible\n" },
	{ "version", version_verb, "print the version", "", "Prints one line: cejail VERSION.\n" },
	{ "help", help_verb, "print this summary, or the help of a verb", "[VERB]",
	  "Prints a summary of all verbs, or the help of one verb.\n" },
};
/* clang-format on */

static void print_usage(FILE *to)
{
	(void)fprintf(to, "Usage: cejail VERB [OPTION...] [ARG...]\n\n");
	for (size_t i = 0; i < COUNT_OF(verbs); i++)
		(void)fprintf(to, "  %-9s %s\n", verbs[i].name, verbs[i].help);
	(void)fprintf(to, "\n'cejail VERB --help' prints the help of one verb. 'cejail run "
			  "--help' lists all options\nof a run. The manual is cejail(1).\n");
}

static int version_verb(const struct cli *cli)
{
	struct cj_error err = { 0 };

	if (cli_take_only(cli, NULL, NULL, &err) < 0)
		return cli_fail(&err);
	(void)printf("cejail %s\n", CJ_VERSION);
	return cli_finish(0);
}

bool cli_is_help(const char *arg)
{
	return strcmp(arg, "--help") == 0 || strcmp(arg, "-h") == 0;
}

static const struct cli_verb *find_verb(const char *name)
{
	if (cli_is_help(name))
		name = "help";
	else if (strcmp(name, "--version") == 0)
		name = "version";
	for (size_t i = 0; i < COUNT_OF(verbs); i++) {
		if (strcmp(name, verbs[i].name) == 0)
			return &verbs[i];
	}
	return NULL;
}

static int reject_verb(const char *name)
{
	const char *names[COUNT_OF(verbs) + 1] = { NULL };
	struct cj_error err = { 0 };

	for (size_t i = 0; i < COUNT_OF(verbs); i++)
		names[i] = verbs[i].name;
	const char *near = text_nearest(name, names), *habit = habit_for_verb(name);
	cj_refuse(&err, "unknown verb '%s'", name);
	if (name[0] == '-')
		cj_hint(&err, "options follow the verb: 'cejail run %s ...'", name);
	else if (operands_is_file(name))
		cj_hint(&err, "write 'cejail run %s'", name);
	else if (habit)
		cj_hint(&err, "%s", habit);
	else if (near)
		cj_hint(&err, "did you mean '%s'?", near);
	else
		cj_hint(&err, "see 'cejail help'");
	return cli_fail(&err);
}

static int run_found(const struct cli_verb *verb, struct cli *cli)
{
	bool wants_help = false;

	cli->verb = verb->name;
	for (const char *const *arg = cli->args; verb->usage && *arg; arg++)
		wants_help |= cli_is_help(*arg);
	if (!wants_help)
		return verb->run(cli);
	(void)printf("Usage: cejail %s%s%s\n\n%s", verb->name, *verb->usage ? " " : "", verb->usage,
		     verb->details);
	return cli_finish(0);
}

/* "cejail help run" is "cejail run --help". */
static int help_verb(const struct cli *cli)
{
	static const char *const args[] = { "--help", NULL };
	struct cli asked = *cli;

	if (!cli->args[0]) {
		print_usage(stdout);
		return cli_finish(0);
	}
	const struct cli_verb *verb = find_verb(cli->args[0]);
	if (!verb)
		return reject_verb(cli->args[0]);
	asked.args = args;
	return run_found(verb, &asked);
}

int cli_fail(const struct cj_error *err)
{
	log_error(err);
	return CLI_FAILED;
}

int cli_need_stdout(const struct cli *cli, struct cj_error *err)
{
	if (cli->open_streams & CLI_STDOUT_BIT)
		return 0;
	cj_refuse(err, "standard output is closed");
	return cj_hint(err, "to discard the output, redirect it to /dev/null");
}

int cli_finish(int status)
{
	struct cj_error err = { 0 };

	return fd_flush_stdout(&err) < 0 ? cli_fail(&err) : status;
}

int cli_take_only(const struct cli *cli, const char *flag, bool *out_given, struct cj_error *err)
{
	bool given = false;

	for (const char *const *arg = cli->args; *arg; arg++) {
		if (!flag || strcmp(*arg, flag) != 0) {
			cj_refuse(err, "unknown argument '%s'", *arg);
			return cj_hint(err, "see 'cejail %s --help'", cli->verb);
		}
		given = true;
	}
	if (out_given)
		*out_given = given;
	return 0;
}

int main(int argc, char **argv)
{
	struct cj_error err = { 0 };
	struct cli cli = { .environ = (const char *const *)environ };
	struct rlimit stack;

	if (fd_claim_stdio(&cli.open_streams, &err) < 0)
		return cli_fail(&err);
	/* A stack overflow would end cejail by SIGSEGV, without a message. */
	if (getrlimit(RLIMIT_STACK, &stack) == 0 && stack.rlim_cur < STACK_BYTES_MIN) {
		cj_refuse(&err, "the stack limit is %ju KiB, but cejail needs %u KiB",
			  (uintmax_t)stack.rlim_cur >> 10, STACK_BYTES_MIN >> 10);
		cj_hint(&err, "raise the limit: ulimit -s 8192");
		return cli_fail(&err);
	}
	/* A write to a closed pipe then fails with EPIPE, and one beyond RLIMIT_FSIZE with EFBIG:
	 * the error message names the cause.  Neither call can fail. */
	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGXFSZ, SIG_IGN);
	if (argc < 2) {
		print_usage(stderr);
		return CLI_FAILED;
	}
	const struct cli_verb *verb = find_verb(argv[1]);
	if (!verb)
		return reject_verb(argv[1]);
	cli.args = (const char *const *)argv + 2;
	return run_found(verb, &cli);
}
