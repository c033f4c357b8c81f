/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `cejail run` and `cejail shell`: parse, plan, run, report; a translator on top of
 * the engine (runtime/jail/jail.h).  Runs in the supervisor's process.
 *
 * Whatever fails on the way becomes an outcome with STATUS_SETUP_ERROR, so that
 * every run has exactly one result, told in the same place.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "profiles/plan/plan.h"
#include "profiles/profile.h"
#include "runtime/base/files/fd.h"
#include "runtime/base/log.h"
#include "runtime/base/scope.h"
#include "runtime/front/cli/arguments/call_notes.h"
#include "runtime/front/cli/cli.h"
#include "runtime/front/cli/delivery.h"
#include "runtime/front/cli/arguments/habits.h"
#include "runtime/front/cli/notes.h"
#include "runtime/front/cli/arguments/operands.h"
#include "runtime/front/cli/arguments/options.h"
#include "runtime/front/cli/remote/remote.h"
#include "runtime/front/cli/terminal.h"
#include "runtime/front/drive/run_driver.h"
#include "runtime/front/report/explain.h"

#define REMOTE_TAIL     16      /* of output that comes from a service only its last byte matters */
#define COMMAND_PROFILE "base"  /* for `-- CMD` without --profile */
#define SHELL_PROFILE   "shell" /* for `cejail shell` without --profile */

struct run {
	const struct cli *cli;
	bool use_shell;
	struct options options;
	struct config config;
	struct invocation invocation;
	struct delivery delivery;
	struct plan plan;
	struct program program;
	struct run_driver driver; /* of a run that takes place here */
	int artifacts_fd;         /* -1: none asked for */
	const char *profile;
	struct json_writer *remote_result; /* as the service wrote it; NULL: the outcome is it */
	struct outcome outcome;
};

/* --- parse ------------------------------------------------------------------ */

/* Until the plan mints one, errors go out under the caller's id or one of their own. */
static int begin_outcome(struct run *r, struct cj_error *err)
{
	char minted[PLAN_ID_MAX] = "";
	const char *id = r->config.id;

	if (!id && plan_mint_id(minted, err) < 0)
		return -err->code;
	outcome_init(&r->outcome, id ? id : minted, REMOTE_TAIL);
	return 0;
}

static enum log_level level_of(const struct config *c)
{
	if (c->quiet)
		return LOG_QUIET;
	return c->verbose ? LOG_VERBOSE : LOG_NORMAL;
}

/* The operands, by what stands before them: see the synopsis in cejail(1). */
static int read_operands(struct run *r, struct cj_error *err)
{
	const char *const *operands = r->options.operands;
	struct invocation *inv = &r->invocation;

	*inv = (struct invocation){
		.args = operands,
		.is_command = r->options.has_separator && !r->config.has_code && !r->use_shell,
		.use_shell = r->use_shell,
		.environ = r->cli->environ,
	};
	if (r->use_shell && *operands)
		return cj_reject(err, "'cejail shell' takes no operand, not '%s'", *operands);
	if (r->use_shell || r->config.has_code)
		return 0;
	if (!*operands) {
		int rc =
		    cj_reject(err, "nothing to run: a FILE, -c CODE, or -- COMMAND is missing");
		cj_hint(err, "see 'cejail run --help'");
		return rc;
	}
	if (inv->is_command)
		return 0;
	inv->file = *inv->args++;
	return operands_is_file(inv->file) ? 0 : operands_explain(&r->options, err);
}

static int choose_profile(struct run *r, const char **out_name, struct cj_error *err)
{
	const char *file = r->invocation.file;
	const char *name = options_find(&r->options, "profile");

	if (!name && r->use_shell)
		name = SHELL_PROFILE;
	if (!name && r->invocation.is_command)
		name = COMMAND_PROFILE;
	if (!name && (!file || strcmp(file, "-") == 0)) {
		int rc =
		    cj_reject(err, "%s does not say which language it is", file ? "'-'" : "-c");
		cj_hint(err, "name a profile: --profile python; 'cejail profile list' shows them");
		return rc;
	}
	if (!name && profile_for_file(&r->config, file, &name, err) < 0)
		return -err->code;
	const char *habit = habit_for_value("profile", name);
	if (habit)
		return cj_reject(err, "--profile '%s': %s", name, habit);
	*out_name = name;
	return 0;
}

/*
 * What was wrong with the operands may come from the options: a value that swallowed FILE
 * ("-m job.py"), or another program's habit.  Their message is the better one.
 */
static int blame_options(struct run *r, struct cj_error *err)
{
	struct cj_error better = { 0 };

	if (options_apply_rest(&r->options, &r->config, &better) < 0 ||
	    operands_explain(&r->options, &better) < 0)
		*err = better;
	return -err->code;
}

/* A service reads its own profile. */
static int read_settings(struct run *r, struct cj_error *err)
{
	if (choose_profile(r, &r->profile, err) < 0) {
		(void)blame_options(r, err);
		cj_stage(err, "profile");
		return -err->code;
	}
	if (!r->config.remote && profile_load(&r->config, r->profile, err) < 0) {
		cj_stage(err, "profile");
		return -err->code;
	}
	if (r->use_shell)
		r->config.wall_ms = 0; /* a person's session ends when the person says so */
	if (options_apply_rest(&r->options, &r->config, err) < 0) {
		cj_stage(err, "options");
		return -err->code;
	}
	return 0;
}

/*
 * -c is looked for before it is applied, because what the operands are depends on it; the
 * options before an unknown one still say where the error goes.
 */
static int read_options(struct run *r, struct cj_error *err)
{
	struct cj_error scan_error = { 0 }, id_error = { 0 };
	int scanned = options_scan(r->cli->args, &r->config.arena, &r->options, &scan_error);
	int applied = options_apply_delivery(&r->options, &r->config, err);
	int begun = begin_outcome(r, &id_error);

	log_set_level(level_of(&r->config));
	if (r->config.no_report)
		log_hide_report();
	if (applied < 0)
		return applied;
	if (begun < 0) {
		*err = id_error;
		return begun;
	}
	if (delivery_open(&r->delivery, &r->config, err) < 0)
		return -err->code;
	if (scanned < 0) {
		*err = scan_error;
		return scanned;
	}
	return options_expand(&r->options, r->cli->environ, &r->config.arena, err);
}

static int parse(struct run *r, struct cj_error *err)
{
	if (read_options(r, err) < 0 ||
	    (!r->options.wants_help && cli_need_stdout(r->cli, err) < 0)) {
		cj_stage(err, "options");
		return -err->code;
	}
	if (r->options.wants_help)
		return 0;
	r->config.has_code = options_find(&r->options, "code") != NULL;
	if (read_operands(r, err) < 0) {
		(void)blame_options(r, err);
		cj_stage(err, "options");
		return -err->code;
	}
	return read_settings(r, err);
}

/* --- plan ------------------------------------------------------------------- */

/* What the program's streams are connected to. */
static struct jail_io make_io(struct run *r)
{
	bool passes = !r->delivery.to_stdout;
	bool has_tty = r->plan.tty;

	return (struct jail_io){
		.stdin_fd = r->program.interactive ? STDIN_FILENO : -1,
		.stdout_fd = passes ? STDOUT_FILENO : -1,
		.stderr_fd = passes ? STDERR_FILENO : -1,
		/* with --tty the program is meant to drive the terminal */
		.escape = { passes && !has_tty && isatty(STDOUT_FILENO),
			    passes && !has_tty && isatty(STDERR_FILENO) },
		.tty_fd = has_tty && isatty(STDIN_FILENO) ? STDIN_FILENO : -1,
		.hangup_fd = delivery_hangup_fd(&r->delivery),
	};
}

static int make_plan(struct run *r, struct cj_error *err)
{
	if (plan_make(&r->config, &r->invocation, &r->plan, &r->program, err) < 0) {
		cj_stage(err, "plan");
		return -err->code;
	}
	r->driver = (struct run_driver){
		.plan = &r->plan,
		.program = &r->program,
		.run_id = r->program.id,
		.jail_name = r->program.id,
		.io = make_io(r),
		.events = r->delivery.events.fd >= 0 ? &r->delivery.events : NULL,
		.artifacts_fd = -1,
	};
	run_driver_begin(&r->driver, &r->outcome);
	log_debug("run %s: profile '%s', %s", r->program.id, r->plan.profile_name,
		  r->program.argv.items[0]);
	return 0;
}

static int print_plan(const struct run *r, struct cj_error *err)
{
	auto_json_writer struct json_writer *w = json_writer_create(true);
	const char *text = NULL;
	size_t size = 0;

	if (!w)
		return cj_fail(err, ENOMEM, "write the plan");
	plan_write(w, &r->plan, &r->program);
	if (json_writer_take(w, &text, &size, err) < 0 ||
	    fd_write_all(STDOUT_FILENO, text, size, "the plan", err) < 0)
		return -err->code;
	return fd_write_all(STDOUT_FILENO, "\n", 1, "the plan", err);
}

/* --- run -------------------------------------------------------------------- */

/* Made if missing (one level), before anything is built. */
static int open_artifacts(struct run *r, struct cj_error *err)
{
	const char *path = r->config.artifacts;
	if (!path)
		return 0;

	if (mkdir(path, 0777) < 0 && errno != EEXIST)
		return cj_fail(err, errno, "--artifacts: make directory '%s'", path);
	r->artifacts_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (r->artifacts_fd < 0)
		return cj_fail(err, errno, "--artifacts: open directory '%s'", path);
	if (faccessat(r->artifacts_fd, ".", W_OK | X_OK, AT_EACCESS) < 0)
		return cj_fail(err, errno, "--artifacts: write to directory '%s'", path);
	return 0;
}

static int run_in_jail(struct run *r, bool *out_collected, struct cj_error *err)
{
	struct run_driver *d = &r->driver;
	auto_terminal struct terminal terminal = { .fd = -1 };

	if (run_driver_start(d, err) < 0)
		return -err->code;
	if (d->io.tty_fd >= 0 && d->io.stdin_fd >= 0)
		terminal_make_raw(&terminal, d->io.tty_fd);
	return run_driver_finish(d, &r->outcome, out_collected, err);
}

/*
 * The engine held signals back until here: they come too late to change how the run ended, and must
 * not take its result away.  Setting SIG_IGN forgets what is pending: sigaction(2).
 */
static void end_jail(struct jail **jail)
{
	static const int late[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGALRM, SIGXCPU };
	const struct sigaction ignore = { .sa_handler = SIG_IGN };
	struct sigaction old[sizeof(late) / sizeof(late[0])];

	for (size_t i = 0; i < sizeof(late) / sizeof(late[0]); i++)
		(void)sigaction(late[i], &ignore, &old[i]); /* cannot fail for these */
	jail_destroy(jail);
	for (size_t i = 0; i < sizeof(late) / sizeof(late[0]); i++)
		(void)sigaction(late[i], &old[i], NULL);
}

/* report() makes the exit code 125 where it would be 0 and artefacts are missing. */
static int carry_out(struct run *r, bool *out_collected, struct cj_error *err)
{
	if (open_artifacts(r, err) < 0) {
		cj_stage(err, "artifacts");
		return -err->code;
	}
	r->driver.artifacts_fd = r->artifacts_fd;
	int rc = run_in_jail(r, out_collected, err);
	end_jail(&r->driver.jail);
	return rc;
}

/* The same at a service; its profile and its plan are its own. */
static int carry_out_remotely(struct run *r, bool *out_complete, struct cj_error *err)
{
	struct remote_call call = {
		.config = &r->config,
		.options = &r->options,
		.invocation = &r->invocation,
		.profile = r->profile,
		.delivery = &r->delivery,
	};

	if (plan_check(&r->config, &r->invocation, err) < 0) {
		cj_stage(err, "plan");
		return -err->code;
	}
	if (r->config.remote[0] == '\0' &&
	    remote_find_socket(&r->config.arena, &r->config.remote, err) < 0) {
		cj_stage(err, "service");
		return -err->code;
	}
	if (open_artifacts(r, err) < 0) {
		cj_stage(err, "artifacts");
		return -err->code;
	}
	call.artifacts_fd = r->artifacts_fd;
	return remote_run(&call, &r->outcome, &r->remote_result, out_complete, err);
}

/* --- report ----------------------------------------------------------------- */

static int send_result(struct run *r, struct cj_error *err)
{
	const struct result_about about = {
		.profile_name = r->config.profile_name,
		.profile_sha256 = r->config.profile_sha256,
		.network = r->config.network,
	};
	const char *text = NULL;
	size_t size = 0;

	if (!r->remote_result)
		return delivery_send(&r->delivery, &r->outcome, &about, err);
	if (json_writer_take(r->remote_result, &text, &size, err) < 0)
		return -err->code;
	return delivery_send_text(&r->delivery, text, size, err);
}

/* After "--" stands a command of the jail, and FILE may be what was meant. */
static void explain_exec(struct run *r)
{
	const char *command = r->program.argv.items[0];

	explain_exec_failure(&r->outcome, command);
	if (r->outcome.exec_errno != ENOENT || !r->invocation.is_command ||
	    !operands_is_file(command))
		return;
	r->outcome.error.hint[0] = '\0';
	cj_hint(&r->outcome.error,
		"it is a file here: write 'cejail run %s', or copy it in with -f %s", command,
		command);
}

static void note_call(const struct run *r)
{
	const char *file = r->invocation.file;
	bool reads_input = r->config.interactive || (file && strcmp(file, "-") == 0);

	if (r->outcome.status != STATUS_SETUP_ERROR && r->outcome.exec_errno == 0)
		call_notes_print(r->options.has_separator ? NULL : r->invocation.args, reads_input);
}

static int report(struct run *r, bool is_complete)
{
	struct cj_error err = { 0 };
	int status = outcome_exit_status(&r->outcome);

	if (r->outcome.exec_errno != 0 && !r->remote_result) /* else it is explained already */
		explain_exec(r);
	/* First: who does not read standard error can't hold the result back. */
	int sent = send_result(r, &err);
	if (!r->delivery.to_stdout)
		notes_follow_output(&r->outcome);
	notes_print(&r->outcome);
	note_call(r);
	if (sent < 0) {
		is_complete = false;
		if (err.code != EPIPE) /* who is gone is not told */
			log_error(&err);
	}
	return status == 0 && !is_complete ? CLI_FAILED : status;
}

/* --- the verbs -------------------------------------------------------------- */

static int print_help(const struct run *r)
{
	(void)printf(r->use_shell
			 ? "Usage: cejail shell [OPTION...]\n\n"
			   "Runs the profile's setting \"shell\" in a jail, as 'cejail run --tty "
			   "-i' does.\nThere is no time limit unless --timeout is given.\n\n"
			 : "Usage: cejail run [OPTION...] FILE [ARG...]\n"
			   "       cejail run [OPTION...] -c CODE [ARG...]\n"
			   "       cejail run [OPTION...] - [ARG...]\n"
			   "       cejail run [OPTION...] -- COMMAND [ARG...]\n\n"
			   "Runs an untrusted program in a jail and reports how it ended.\n\n");
	options_print_help();
	(void)printf(
	    "\nExit status:\n"
	    "  124                         the run reached a time limit\n"
	    "  125                         cejail failed\n"
	    "  126, 127                    the command cannot be executed, does not exist\n"
	    "  128+N                       signal N ended the program\n"
	    "  other                       the exit status of the program\n\n"
	    "The manual is cejail(1).\n");
	return cli_finish(0);
}

static int run_and_report(struct run *r)
{
	struct cj_error err = { 0 };
	bool is_complete = true;

	int rc = parse(r, &err);
	if (rc == 0 && r->options.wants_help)
		return print_help(r);
	bool is_remote = r->config.remote;
	if (rc == 0 && !is_remote)
		rc = make_plan(r, &err);
	if (rc == 0 && r->config.dry_run && !is_remote)
		return print_plan(r, &err) < 0 ? cli_fail(&err) : 0;
	if (rc == 0)
		rc = is_remote ? carry_out_remotely(r, &is_complete, &err)
			       : carry_out(r, &is_complete, &err);
	if (rc < 0)
		outcome_fail(&r->outcome, &err);
	return report(r, is_complete);
}

static int run_main(const struct cli *cli, bool use_shell)
{
	struct run r = { .cli = cli, .use_shell = use_shell, .artifacts_fd = -1 };

	config_init(&r.config);
	delivery_init(&r.delivery);
	int status = run_and_report(&r);

	json_writer_destroy(&r.remote_result);
	cj_close(&r.artifacts_fd);
	delivery_fini(&r.delivery);
	outcome_fini(&r.outcome);
	config_fini(&r.config);
	return status;
}

int run_verb(const struct cli *cli)
{
	return run_main(cli, false);
}

int shell_verb(const struct cli *cli)
{
	return run_main(cli, true);
}
