/* SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>

#include "profiles/paths.h"
#include "profiles/plan/env_file.h"
#include "profiles/profile.h"
#include "runtime/base/log.h"
#include "runtime/run/options/habits.h"
#include "runtime/run/options/operands.h"
#include "runtime/front/cli/run_state.h"

#define REMOTE_TAIL   16      /* bytes kept of a service's output: only the last one matters */
#define SHELL_PROFILE "shell" /* for `cejail shell` without --profile */

/* An error before the plan has an id too: that of --id, or a new one. */
int run_begin_outcome(struct cli_run *r, struct cj_error *err)
{
	char minted[PLAN_ID_MAX] = "";
	const char *id = r->config.id;

	if (!id && plan_mint_id(minted, err) < 0)
		return -err->code;
	outcome_fini(&r->outcome);
	outcome_init(&r->outcome, id ? id : minted, REMOTE_TAIL);
	return 0;
}

/* What precedes the operands decides what they are: see SYNOPSIS in cejail(1). */
static int read_operands(struct cli_run *r, struct cj_error *err)
{
	const char *const *operands = r->options.operands;
	struct invocation *inv = &r->invocation;

	if (r->exec && r->exec->kind == REMOTE_EXEC_AWAITED)
		return 0; /* the program is known to the service */
	*inv = (struct invocation){
		.args = operands,
		.is_command = (r->options.has_separator && !r->config.has_code && !r->use_shell) ||
			      r->wrap,
		.use_shell = r->use_shell,
		.environ = r->cli->environ,
		.has_stdin = true,
	};
	if (r->use_shell && *operands) {
		cj_refuse(err, "'cejail shell' takes no arguments, but got '%s'", *operands);
		return cj_hint(err, "to run a file or a command, see 'cejail run --help'");
	}
	if (r->use_shell || r->config.has_code)
		return 0;
	const char *rootfs = options_find(&r->options, "rootfs");
	if (!*operands && rootfs && plan_names_image(rootfs) && !r->config.remote) {
		/* a service's images are its own */
		inv->is_image_command = inv->is_command = true;
		return 0;
	}
	if (!*operands && r->wrap) {
		cj_refuse(err, "nothing to run: the server's COMMAND is missing");
		return cj_hint(err, "as in: cejail mcp wrap -- npx -y PACKAGE");
	}
	if (!*operands) {
		if (operands_explain(&r->options, err) < 0)
			return -err->code;
		cj_refuse(err, "nothing to run: a FILE, -c CODE, or -- COMMAND is missing");
		return cj_hint(err, "see 'cejail %s --help'", r->exec ? "session exec" : "run");
	}
	if (inv->is_command)
		return 0;
	inv->file = *inv->args++;
	if (operands_is_file(inv->file))
		return 0;
	if (r->exec && strcmp(inv->file, "-") != 0) {
		cj_refuse(err, "there is no file '%s' here", inv->file);
		return cj_hint(err,
			       "for a command of the jail, write 'cejail session exec ID -- %s'",
			       inv->file);
	}
	return operands_explain(&r->options, err);
}

static int choose_profile(struct cli_run *r, const char **out_name, struct cj_error *err)
{
	const char *file = r->invocation.file;
	const char *name = options_find(&r->options, "profile");

	if (!name && r->use_shell)
		name = SHELL_PROFILE;
	if (!name && r->wrap)
		name = wrap_profile(r->invocation.args[0]);
	if (!name && r->invocation.is_command)
		name = PROFILE_BASE;
	if (!name && (!file || strcmp(file, "-") == 0)) {
		cj_refuse(err, "%s needs a profile, which chooses the interpreter",
			  file ? "'-'" : "-c");
		return cj_hint(err,
			       "add --profile python, or another one of 'cejail profile list'");
	}
	if (!name && profile_for_file(&r->config, file, &name, err) < 0) {
		(void)!operands_explain(&r->options, err); /* FILE may be an option's value */
		return -err->code;
	}
	const char *habit = habit_for_value("profile", name);
	if (habit)
		return cj_reject(err, "--profile '%s': %s", name, habit);
	*out_name = name;
	return 0;
}

static bool is_venv(const char *dir)
{
	char path[PATH_MAX];
	int size = snprintf(path, sizeof(path), "%s/pyvenv.cfg", dir ? dir : "");
	return dir && dir[0] == '/' && (size_t)size < sizeof(path) && access(path, F_OK) == 0;
}

/* The directory above `file` that is one; "" in `out`: none. */
static void find_venv_above(const char *file, char out[static PATH_MAX])
{
	if (!realpath(file, out))
		out[0] = '\0';
	for (char *slash = strrchr(out, '/'); slash; slash = strrchr(out, '/')) {
		*slash = '\0';
		if (is_venv(out))
			return;
	}
	out[0] = '\0';
}

/*
 * Only VIRTUAL_ENV, which the caller has activated.  What is above the file may be the work of
 * whoever wrote the file, and would show everything there to the program: a note names it.
 */
static int use_active_venv(struct cli_run *r, struct cj_error *err)
{
	struct config *c = &r->config;
	const char *dir = env_value(r->cli->environ, "VIRTUAL_ENV");
	char above[PATH_MAX] = "";
	if (!is_venv(dir)) {
		if (r->invocation.file)
			find_venv_above(r->invocation.file, above);
		if (above[0] != '\0')
			log_note("the program does not see the virtual environment '%s': add "
				 "--venv %s",
				 above, above);
		return 0;
	}
	c->venv = arena_strdup(&c->arena, dir);
	if (!c->venv)
		return cj_fail(err, ENOMEM, "read the options");
	log_note("the program uses the virtual environment '%s', read-only (--venv none: without)",
		 dir);
	return 0;
}

/* What pip or npm has installed for this program outside of /usr. */
static int look_for_packages(struct cli_run *r, struct cj_error *err)
{
	struct config *c = &r->config;
	const char *file = r->invocation.file;
	if (r->invocation.is_command || r->use_shell || strcmp(c->rootfs, "host") != 0)
		return 0;
	if (profile_runs(c, "python") && !c->venv)
		return use_active_venv(r, err);
	if (!profile_runs(c, "node") || c->project || !file)
		return 0;
	int size = (int)(paths_name(file) - file);
	const char *path = arena_printf(&c->arena, "%.*snode_modules", size, file);
	if (path && access(path, F_OK) == 0)
		log_note("the program does not see '%s': add --project %.*s", path,
			 size > 0 ? size : 1, size > 0 ? file : ".");
	return 0;
}

/* With --remote the service reads the profile, which is its own. */
static int read_settings(struct cli_run *r, struct cj_error *err)
{
	const char *venv = env_value(r->cli->environ, "VIRTUAL_ENV");

	if (!r->exec && choose_profile(r, &r->profile, err) < 0)
		return cj_stage(err, "profile");
	if (!r->config.remote && profile_load(&r->config, r->profile, err) < 0)
		return cj_stage(err, "profile");
	if (r->use_shell)
		r->config.run_limits.wall_ms = 0; /* a person ends an interactive session */
	if (r->wrap)
		r->wrap->rootfs = options_find(&r->options, "rootfs");
	if (r->wrap && wrap_apply(r->wrap, &r->invocation, &r->config, err) < 0)
		return cj_stage(err, "options");
	if (options_apply_rest(&r->options, &r->config, err) < 0)
		return cj_stage(err, "options");
	if (!r->config.remote)
		return look_for_packages(r, err);
	/* the settings of a service's profile are unknown here; its name says enough for a note */
	if (r->profile && strncmp(r->profile, "python", strlen("python")) == 0 && is_venv(venv))
		log_note("the program does not use the virtual environment '%s': the interpreters "
			 "of a service start before it is known",
			 venv);
	return 0;
}

/*
 * The options of delivery are applied first, even when a later option is unknown: they decide
 * where the error is reported.
 */
static int read_options(struct cli_run *r, struct cj_error *err)
{
	const char *verb = r->wrap                                ? "mcp wrap"
			   : !r->exec                             ? "run"
			   : r->exec->kind == REMOTE_EXEC_AWAITED ? "session wait"
								  : "session exec";
	struct config *c = &r->config;
	struct cj_error scan_error = { 0 }, ignored = { 0 };

	const char *const *args = r->cli->args;
	int taken = r->wrap ? wrap_take(r->wrap, args, &c->arena, &scan_error) : 0;
	if (taken == 0)
		taken = options_scan(verb, r->wrap ? r->wrap->args : args, &c->arena, &r->options,
				     &scan_error);
	if (taken == 0 && r->wrap && !r->options.wants_help)
		(void)wrap_check(&r->options, &scan_error);
	int applied = options_apply_delivery(&r->options, c, err);
	if (r->wrap) {
		/* The streams are the server's: nothing of ours is written there unless it fails
		 * to start. */
		c->interactive = true;
		c->quiet = c->no_report = !c->verbose;
		c->json = c->json && c->json_file;
	}
	if (r->exec && r->exec->id)
		c->id = r->exec->id;
	log_set_level(c->quiet ? LOG_QUIET : c->verbose ? LOG_VERBOSE : LOG_NORMAL);
	if (c->no_report)
		log_hide_report();
	if (run_begin_outcome(r, applied < 0 ? &ignored : err) < 0 || applied < 0 ||
	    run_request_check(c, err) < 0 || delivery_open(&r->delivery, c, err) < 0)
		return -err->code;
	if (scan_error.code != 0) {
		*err = scan_error;
		return -err->code;
	}
	return options_expand(&r->options, r->cli->environ, &c->arena, err);
}

/*
 * Values are checked before the operands: what looks wrong with an operand is often the fault of an
 * option that took FILE as its value ("-m job.py").  The options are applied after the profile.
 */
static int check_values(const struct cli_run *r, struct cj_error *err)
{
	struct config scratch;

	config_init(&scratch);
	int rc = options_apply_rest(&r->options, &scratch, err);
	config_fini(&scratch);
	return rc;
}

int run_parse(struct cli_run *r, struct cj_error *err)
{
	if (read_options(r, err) < 0 ||
	    (!r->options.wants_help && cli_need_stdout(r->cli, err) < 0))
		return cj_stage(err, "options");
	if (r->options.wants_help)
		return 0;
	if (r->exec && session_options_check(&r->options, r->exec, err) < 0)
		return cj_stage(err, "options");
	if (r->exec && !r->config.remote)
		r->config.remote = ""; /* the service of this user, which has profile and jail */
	if (r->config.request_fd >= 0)
		return run_request_read(r, err);
	/* it decides what the operands are, and so comes before the other options */
	r->config.has_code = options_find(&r->options, "code") != NULL;
	if (check_values(r, err) < 0 || read_operands(r, err) < 0)
		return cj_stage(err, "options");
	return read_settings(r, err);
}
