/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `cejail run` and `cejail shell`: parse, plan, run, report.  Runs in the supervisor's process.
 *
 * Each failure becomes an outcome with STATUS_SETUP_ERROR.  So every run has exactly one result,
 * and report() delivers all of them.
 */
#include <fcntl.h>
#include <sys/stat.h>

#include "profiles/plan/env_file.h"
#include "runtime/base/clock.h"
#include "runtime/base/files/fd.h"
#include "runtime/base/json/json.h"
#include "runtime/base/log.h"
#include "runtime/base/scope.h"
#include "runtime/front/cli/run_state.h"
#include "runtime/jail/record.h"
#include "runtime/run/options/operands.h"

#define WRAP_GRACE_MS 10000 /* cejail-mcp(1): a server ends by itself when its input has ended */

/* The socket on which the calls of tools are answered; -1: none. */
static int calls_fd_of(const struct cli_run *r)
{
	return r->servers.calls_fd >= 0 ? r->servers.calls_fd : r->config.calls_fd;
}

/* Where the streams of the program go. */
static struct jail_io make_io(struct cli_run *r)
{
	bool passes = !r->delivery.to_stdout;
	bool has_tty = r->plan.tty;
	bool escapes = passes && !has_tty && !r->wrap; /* a server's streams stay as they are */
	int calls_fd = calls_fd_of(r);

	return (struct jail_io){
		.stdin_fd = !r->program.interactive ? -1
			    : r->stdin_fd >= 0      ? r->stdin_fd
						    : STDIN_FILENO,
		.stdout_fd = passes ? STDOUT_FILENO : -1,
		.stderr_fd = passes ? STDERR_FILENO : -1,
		/* with --tty the program may control the terminal */
		.escape = { escapes && isatty(STDOUT_FILENO), escapes && isatty(STDERR_FILENO) },
		.tty_fd = has_tty && isatty(STDIN_FILENO) ? STDIN_FILENO : -1,
		.hangup_fd = delivery_hangup_fd(&r->delivery),
		.calls_fd = calls_fd > 0 ? calls_fd : 0,
		.input_grace_ms = r->wrap ? WRAP_GRACE_MS : 0,
	};
}

/* The tools may be those of a request. */
static int check_tools(bool has_tools, int calls_fd, struct cj_error *err)
{
	if (has_tools && calls_fd < 0) {
		cj_refuse(err, "nobody would answer the calls of the program's tools");
		return cj_hint(err, "add --calls-fd N, a socket whose other end answers: "
				    "cejail-tools(7)");
	}
	if (!has_tools && calls_fd >= 0) {
		cj_refuse(err, "--calls-fd %d: the program has no tools to call", calls_fd);
		return cj_hint(err, "add --tools FILE");
	}
	return 0;
}

static int plan_here(struct cli_run *r, struct cj_error *err)
{
	/* of artefacts in the result: what the request asks for, at most what the option says */
	uint64_t asked = r->request.artifacts_bytes, most = r->config.artifacts_inline_bytes;

	if (r->config.tools_from && run_tools_start(r, err) < 0)
		return cj_stage(err, "tools");
	if (!r->config.id)
		r->config.id = r->outcome.id; /* else the plan would have another one */
	if (plan_make(&r->config, &r->invocation, &r->plan, &r->program, err) < 0 ||
	    check_tools(r->program.tools, calls_fd_of(r), err) < 0)
		return cj_stage(err, "plan");
	r->config.network = r->plan.network.mode; /* --setup may have a network */
	r->driver = (struct run_driver){
		.plan = &r->plan,
		.program = &r->program,
		.run_id = r->program.id,
		.jail_name = r->program.id,
		.io = make_io(r),
		.events = r->delivery.events.fd >= 0 ? &r->delivery.events : NULL,
		.spans = r->config.trace_file ? &r->spans : NULL,
		.setup = &r->setup,
		.wants_value = delivery_is_wanted(&r->delivery),
		.artifacts_fd = -1,
		.artifacts_memory_bytes = r->config.artifacts                        ? 0
					  : most > 0 && (asked == 0 || most < asked) ? most
										     : asked,
	};
	run_driver_begin(&r->driver, &r->outcome);
	log_debug("run %s: profile '%s', %s", r->program.id, r->plan.profile_name,
		  r->program.argv.items[0]);
	return 0;
}

/* Before the jail is built.  Creates the last directory of the path if it is missing. */
static int open_artifacts(struct cli_run *r, struct cj_error *err)
{
	const char *path = r->config.artifacts;
	if (r->config.artifacts_inline_bytes > 0 && !delivery_is_wanted(&r->delivery)) {
		cj_refuse(err, "--artifacts inline: nothing delivers the result, which has "
			       "the files");
		return cj_hint(err, "add --json, --result-fd or --events-fd");
	}
	if (!path)
		return 0;

	if (mkdir(path, 0777) < 0 && errno != EEXIST)
		return cj_fail(err, errno, "--artifacts: create the directory '%s'", path);
	r->artifacts_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (r->artifacts_fd < 0)
		return cj_fail(err, errno, "--artifacts: open the directory '%s'", path);
	if (faccessat(r->artifacts_fd, ".", W_OK | X_OK, AT_EACCESS) < 0)
		return cj_fail(err, errno, "--artifacts: write to the directory '%s'", path);
	struct guard guard = { 0 };
	if (record_guard(&r->config.arena, &guard, err) < 0)
		return -err->code;
	if (guard_check(&guard, r->artifacts_fd, path, err) == 0)
		return 0;
	(void)!cj_wrap(err, "--artifacts '%s'", path);
	return cj_hint_for(err, EINVAL, "name another directory, for example one below it");
}

static int run_here(struct cli_run *r, bool *out_complete, struct cj_error *err)
{
	struct run_driver *d = &r->driver;
	auto_terminal struct terminal terminal = { .fd = -1 };

	d->artifacts_fd = r->artifacts_fd;
	int rc = run_driver_start(d, err);
	if (rc == 0) {
		if (d->io.tty_fd >= 0 && d->io.stdin_fd >= 0)
			terminal_make_raw(&terminal, d->io.tty_fd);
		rc = run_driver_finish(d, &r->outcome, out_complete, err);
	}
	if (r->setup.has_status)
		r->outcome.setup = &r->setup;
	if (rc < 0 && r->setup.status == STATUS_CANCELLED) {
		outcome_decide(&r->outcome, STATUS_CANCELLED);
		r->outcome.cancel_signal = r->setup.cancel_signal;
		rc = 0;
	}
	terminal_restore(&terminal);
	jail_discard_signals(d->jail); /* one that comes now must not prevent the result */
	jail_destroy(&d->jail);
	cj_close(&r->servers.calls_fd); /* the servers end while the result is delivered */
	return rc;
}

static int run_remotely(struct cli_run *r, bool *out_complete, struct cj_error *err)
{
	const struct remote_call call = {
		.exec = r->exec,
		.config = &r->config,
		.options = &r->options,
		.invocation = &r->invocation,
		.profile = r->profile,
		.delivery = &r->delivery,
		.artifacts_fd = r->artifacts_fd,
	};

	if (r->exec && r->exec->kind == REMOTE_EXEC_DETACHED) {
		/* Prints the exec's id, or with --json what the service says of it. */
		auto_json_writer struct json_writer *w = json_writer_create(false);
		const struct json_node *exec = NULL;
		if (!w)
			return cj_fail(err, ENOMEM, "write the answer");
		if (remote_start_detached(&call, r->outcome.id, &exec, err) < 0)
			return cj_stage(err, "service");
		r->is_answered = true;
		json_put_node(w, exec);
		if (r->delivery.to_stdout)
			return json_print(w, err);
		(void)printf("%s\n", r->outcome.id);
		return 0;
	}
	if (r->exec && r->exec->kind == REMOTE_EXEC_AWAITED)
		return remote_await(&call, &r->outcome, &r->remote_result, out_complete, err);
	return remote_run(&call, &r->outcome, &r->remote_result, out_complete, err);
}

/*
 * The run is a span, with the one of TRACEPARENT as its parent.  The variable is that of the
 * caller's environment, as OpenTelemetry passes a trace between processes.  A malformed one is
 * ignored, as the Trace Context specification demands.
 */
static int trace_begin(struct cli_run *r, struct cj_error *err)
{
	const char *path = r->config.trace_file;

	if (!path)
		return 0;
	if (trace_adopt(NULL, env_value(r->cli->environ, "TRACEPARENT"), &r->trace, err) < 0 ||
	    line_file_open(path, SPANS_FILE_MODE, &r->trace_file, err) < 0)
		return cj_wrap(err, "--trace-file");
	spans_begin(&r->spans, clock_us());
	return 0;
}

static void trace_end(struct cli_run *r)
{
	const struct outcome *o = &r->outcome;
	struct run_span span = {
		.kind = "run",
		.traceparent = r->trace.traceparent,
		.parent = r->trace.parent,
		.id = o->id,
		.profile = r->config.profile_name,
		.error_stage = o->exec_errno ? "exec" : o->error.stage,
		.totals = outcome_totals(o),
	};
	struct cj_error err = { 0 };

	if (r->trace_file.fd >= 0 && spans_write(&r->spans, &span, &r->trace_file, &err) < 0)
		log_warning("--trace-file: %s", err.msg);
}

static int send_result(struct cli_run *r, struct cj_error *err)
{
	const struct result_about about = {
		.profile_name = r->config.profile_name,
		.profile_sha256 = r->config.profile_sha256,
		.network = r->config.network,
		.traceparent = r->trace.traceparent[0] ? r->trace.traceparent : NULL,
	};
	struct blob text = { 0 };

	if (!r->remote_result)
		return delivery_send(&r->delivery, &r->outcome, &about, err);
	if (json_writer_take(r->remote_result, &text, err) < 0)
		return -err->code;
	return delivery_send_text(&r->delivery, text.bytes, text.size, err);
}

/* The name after "--" is looked up in the jail.  A file of the caller's may have been meant. */
static void explain_exec(struct cli_run *r)
{
	const char *command = r->program.argv.items[0];

	result_explain_exec(&r->outcome, command);
	if (r->wrap && r->outcome.exec_errno == ENOENT) {
		wrap_explain_missing(command, &r->config, r->cli->environ, &r->outcome.error);
		return;
	}
	/* a request shall not learn which files this host has */
	if (r->outcome.exec_errno != ENOENT || !r->invocation.is_command || r->request.root ||
	    !operands_is_file(command))
		return;
	r->outcome.error.hint[0] = '\0';
	cj_hint(
	    &r->outcome.error,
	    "it is a file on this host: write 'cejail run %s', or copy it into the jail with -f %s",
	    command, command);
}

/*
 * Delivers the result, prints the notes.  Returns the exit status.
 * `is_complete`: false when output or artifacts were lost.
 */
static int report(struct cli_run *r, bool is_complete)
{
	struct cj_error err = { 0 };
	int status = outcome_exit_status(&r->outcome);
	const char *file = r->invocation.file;
	bool reads_input = r->config.interactive || (file && strcmp(file, "-") == 0);

	if (r->outcome.exec_errno != 0 && !r->remote_result) /* a service has explained it */
		explain_exec(r);
	/* First: a full pipe at standard error must not hold the result back. */
	int sent = send_result(r, &err);
	if (!r->delivery.to_stdout)
		notes_follow_output(&r->outcome);
	notes_print(&r->outcome, &r->config.accept_weaker);
	if (r->outcome.status != STATUS_SETUP_ERROR && r->outcome.exec_errno == 0 &&
	    !r->request.root)
		operands_print_notes(r->options.has_separator ? NULL : r->invocation.args,
				     reads_input);
	if (sent < 0) {
		is_complete = false;
		if (err.code != EPIPE) /* the reader of the result has closed it */
			log_error(&err);
	}
	return status == 0 && !is_complete ? CLI_FAILED : status;
}

static void print_help(const struct cli_run *r)
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
	options_print_help(NULL);
	(void)printf(
	    "\nExit status:\n"
	    "  124                         the run reached a time limit\n"
	    "  125                         cejail failed\n"
	    "  126, 127                    the command cannot be executed, does not exist\n"
	    "  128+N                       signal N ended the program\n"
	    "  other                       the exit status of the program\n\n"
	    "The manual is cejail(1).\n");
}

/* What precedes the report.  Help and a plan are printed here: they are no run. */
static int carry_out(struct cli_run *r, bool *out_complete, struct cj_error *err)
{
	if (run_parse(r, err) < 0)
		return -err->code;
	if (r->options.wants_help) {
		r->is_answered = true;
		if (r->wrap)
			wrap_print_help();
		else
			print_help(r);
		return 0;
	}
	/* The service reads the profile and makes the plan.  A session has its jail already. */
	const bool is_remote = r->config.remote != NULL;
	if (!is_remote && !r->config.dry_run && trace_begin(r, err) < 0)
		return cj_stage(err, "options");
	if (!is_remote && plan_here(r, err) < 0)
		return -err->code;
	if (is_remote && ((!r->exec && plan_check(&r->config, &r->invocation, err) < 0) ||
			  check_tools(r->config.tools, calls_fd_of(r), err) < 0))
		return cj_stage(err, "plan");
	if (is_remote && r->config.remote[0] == '\0' &&
	    remote_find_socket(&r->config.arena, &r->config.remote, err) < 0)
		return cj_stage(err, "service");
	if (r->config.dry_run) {
		r->is_answered = true;
		auto_json_writer struct json_writer *w = json_writer_create(true);
		struct blob text = { 0 };
		plan_write(w, &r->plan, &r->program);
		if (json_writer_take(w, &text, err) < 0)
			return -err->code;
		return fd_write_line(STDOUT_FILENO, text.bytes, text.size, "the plan", err);
	}
	if (open_artifacts(r, err) < 0)
		return cj_stage(err, "artifacts");
	return is_remote ? run_remotely(r, out_complete, err) : run_here(r, out_complete, err);
}

int run_to_end(struct cli_run *r)
{
	struct cj_error err = { 0 };
	bool is_complete = true;
	int status;

	r->stdin_fd = r->artifacts_fd = r->trace_file.fd = -1;
	r->servers = (struct tool_servers){ .pidfd = -1, .calls_fd = -1 };
	config_init(&r->config);
	delivery_init(&r->delivery);
	int rc = carry_out(r, &is_complete, &err);
	if (r->is_answered) {
		status = rc < 0 ? cli_fail(&err) : cli_finish(0);
	} else {
		if (rc < 0)
			outcome_fail(&r->outcome, &err);
		trace_end(r);
		status = report(r, is_complete);
	}

	run_tools_end(&r->servers);
	json_writer_destroy(&r->remote_result);
	cj_close(&r->stdin_fd);
	cj_close(&r->artifacts_fd);
	line_file_close(&r->trace_file);
	spans_fini(&r->spans);
	delivery_fini(&r->delivery);
	outcome_fini(&r->outcome);
	outcome_fini(&r->setup);
	config_fini(&r->config);
	return status;
}

int run_in_session(const struct cli *cli, const struct remote_exec *exec)
{
	struct cli_run r = { .cli = cli,
			     .use_shell = strcmp(cli->verb, "shell") == 0,
			     .exec = exec };
	return run_to_end(&r);
}

int run_verb(const struct cli *cli)
{
	return run_in_session(cli, NULL);
}
