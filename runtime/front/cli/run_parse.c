/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of `cejail run` and `cejail shell`.  Acts: reads profiles and --env-file. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "profiles/paths.h"
#include "profiles/plan/env_file.h"
#include "profiles/profile.h"
#include "runtime/base/log.h"
#include "runtime/run/options/habits.h"
#include "runtime/run/options/operands.h"
#include "runtime/front/cli/run_state.h"
#include "runtime/front/cli/session_options.h"

#define REMOTE_TAIL   16      /* bytes kept of a service's output: only the last one matters */
#define SHELL_PROFILE "shell" /* for `cejail shell` without --profile */

/* An error before the plan has an id too: that of --id, or a new one. */
int run_begin_outcome(struct run *r, struct cj_error *err)
{
	char minted[PLAN_ID_MAX] = "";
	const char *id = r->config.id;

	if (!id && plan_mint_id(minted, err) < 0)
		return -err->code;
	outcome_fini(&r->outcome);
	outcome_init(&r->outcome, id ? id : minted, REMOTE_TAIL);
	return 0;
}

static enum log_level level_of(const struct config *c)
{
	if (c->quiet)
		return LOG_QUIET;
	return c->verbose ? LOG_VERBOSE : LOG_NORMAL;
}

static int reject_shell_operand(const char *operand, struct cj_error *err)
{
	cj_refuse(err, "'cejail shell' takes no arguments, but got '%s'", operand);
	return cj_hint(err, "to run a file or a command, see 'cejail run --help'");
}

static int reject_exec_operand(const char *operand, struct cj_error *err)
{
	cj_refuse(err, "there is no file '%s' here", operand);
	return cj_hint(err, "for a command of the jail, write 'cejail session exec ID -- %s'",
		       operand);
}

/* A service's images are its own. */
static bool has_image(const struct run *r)
{
	const char *rootfs = options_find(&r->options, "rootfs");
	return rootfs && plan_names_image(rootfs) && !r->config.remote;
}

/* What precedes the operands decides what they are: see SYNOPSIS in cejail(1). */
static int read_operands(struct run *r, struct cj_error *err)
{
	const char *const *operands = r->options.operands;
	struct invocation *inv = &r->invocation;

	if (r->exec && r->exec->kind == REMOTE_EXEC_AWAITED)
		return 0; /* the program is known to the service */
	*inv = (struct invocation){
		.args = operands,
		.is_command = r->options.has_separator && !r->config.has_code && !r->use_shell,
		.use_shell = r->use_shell,
		.environ = r->cli->environ,
		.has_stdin = true,
	};
	if (r->use_shell && *operands)
		return reject_shell_operand(*operands, err);
	if (r->use_shell || r->config.has_code)
		return 0;
	if (!*operands && has_image(r)) {
		inv->is_image_command = inv->is_command = true;
		return 0;
	}
	if (!*operands) {
		cj_refuse(err, "nothing to run: a FILE, -c CODE, or -- COMMAND is missing");
		return cj_hint(err, "see 'cejail %s --help'", r->exec ? "session exec" : "run");
	}
	if (inv->is_command)
		return 0;
	inv->file = *inv->args++;
	if (operands_is_file(inv->file))
		return 0;
	if (r->exec && strcmp(inv->file, "-") != 0)
		return reject_exec_operand(inv->file, err);
	return operands_explain(&r->options, err);
}

static int choose_profile(struct run *r, const char **out_name, struct cj_error *err)
{
	const char *file = r->invocation.file;
	const char *name = options_find(&r->options, "profile");

	if (!name && r->use_shell)
		name = SHELL_PROFILE;
	if (!name && r->invocation.is_command)
		name = PROFILE_BASE;
	if (!name && (!file || strcmp(file, "-") == 0)) {
		cj_refuse(err, "%s needs a profile, which chooses the interpreter",
			  file ? "'-'" : "-c");
		return cj_hint(err,
			       "add --profile python, or another one of 'cejail profile list'");
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
 * The cause of an error in the operands may be an option: one that took FILE as its value
 * ("-m job.py"), or one of another program.  The message about the option is then the better one.
 */
static int blame_options(struct run *r, struct cj_error *err)
{
	struct cj_error better = { 0 };

	if (r->use_shell)
		return -err->code;

	if (options_apply_rest(&r->options, &r->config, &better) < 0 ||
	    operands_explain(&r->options, &better) < 0)
		*err = better;
	return -err->code;
}

/* --- an active virtual environment ------------------------------------------- */

static bool is_venv(const char *dir)
{
	char path[PATH_MAX];
	int size = snprintf(path, sizeof(path), "%s/pyvenv.cfg", dir);
	return dir[0] == '/' && (size_t)size < sizeof(path) && access(path, F_OK) == 0;
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

/* The settings of a service's profile are unknown here; its name says enough for a note. */
static void note_unused_venv(const struct run *r)
{
	const char *pair = env_find(r->cli->environ, "VIRTUAL_ENV");
	const char *dir = pair ? pair + strlen("VIRTUAL_ENV=") : "";
	if (r->profile && strncmp(r->profile, "python", strlen("python")) == 0 && is_venv(dir))
		log_note("the program does not use the virtual environment '%s': the interpreters "
			 "of a service start before it is known",
			 dir);
}

static bool has_interpreter(const struct config *c, const char *name)
{
	return c->command.count > 0 &&
	       strncmp(paths_name(c->command.items[0]), name, strlen(name)) == 0;
}

/*
 * Only VIRTUAL_ENV, which the caller has activated.  What is above the file may be the work of
 * whoever wrote the file, and would show everything there to the program: a note names it.
 */
static int use_active_venv(struct run *r, struct cj_error *err)
{
	struct config *c = &r->config;
	const char *pair = env_find(r->cli->environ, "VIRTUAL_ENV");
	const char *dir = pair ? pair + strlen("VIRTUAL_ENV=") : "";
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

static void note_node_modules(const char *file, struct arena *a)
{
	int size = (int)(paths_name(file) - file);
	const char *path = arena_printf(a, "%.*snode_modules", size, file);
	if (path && access(path, F_OK) == 0)
		log_note("the program does not see '%s': add --project %.*s", path,
			 size > 0 ? size : 1, size > 0 ? file : ".");
}

/* What pip or npm has installed for this program outside of /usr. */
static int look_for_packages(struct run *r, struct cj_error *err)
{
	struct config *c = &r->config;
	if (r->invocation.is_command || r->use_shell || strcmp(c->rootfs, "host") != 0)
		return 0;
	if (has_interpreter(c, "python") && !c->venv)
		return use_active_venv(r, err);
	if (has_interpreter(c, "node") && !c->project && r->invocation.file)
		note_node_modules(r->invocation.file, &c->arena);
	return 0;
}

/* With --remote the service reads the profile, which is its own. */
static int read_settings(struct run *r, struct cj_error *err)
{
	if (!r->exec && choose_profile(r, &r->profile, err) < 0) {
		(void)blame_options(r, err);
		return cj_stage(err, "profile");
	}
	if (!r->config.remote && profile_load(&r->config, r->profile, err) < 0)
		return cj_stage(err, "profile");
	if (r->use_shell)
		r->config.wall_ms = 0; /* a person ends an interactive session */
	if (options_apply_rest(&r->options, &r->config, err) < 0)
		return cj_stage(err, "options");
	if (!r->config.remote)
		return look_for_packages(r, err);
	note_unused_venv(r);
	return 0;
}

static const char *verb_of(const struct run *r)
{
	if (!r->exec)
		return "run";
	return r->exec->kind == REMOTE_EXEC_AWAITED ? "session wait" : "session exec";
}

/*
 * The options of delivery are applied first, even when a later option is unknown: they decide
 * where the error is reported.
 */
static int read_options(struct run *r, struct cj_error *err)
{
	struct cj_error scan_error = { 0 }, id_error = { 0 };
	int scanned =
	    options_scan(verb_of(r), r->cli->args, &r->config.arena, &r->options, &scan_error);
	int applied = options_apply_delivery(&r->options, &r->config, err);
	if (r->exec && r->exec->id)
		r->config.id = r->exec->id;
	int begun = run_begin_outcome(r, &id_error);

	log_set_level(level_of(&r->config));
	if (r->config.no_report)
		log_hide_report();
	if (applied < 0)
		return applied;
	if (begun < 0) {
		*err = id_error;
		return begun;
	}
	if (run_request_check(&r->config, err) < 0 ||
	    delivery_open(&r->delivery, &r->config, err) < 0)
		return -err->code;
	if (scanned < 0) {
		*err = scan_error;
		return scanned;
	}
	return options_expand(&r->options, r->cli->environ, &r->config.arena, err);
}

/* The session has a profile, and a jail. */
static int begin_exec(struct run *r, struct cj_error *err)
{
	if (session_options_check(&r->options, r->exec, err) < 0)
		return -err->code;
	if (!r->config.remote)
		r->config.remote = ""; /* the service of this user */
	return 0;
}

int run_parse(struct run *r, struct cj_error *err)
{
	if (read_options(r, err) < 0 ||
	    (!r->options.wants_help && cli_need_stdout(r->cli, err) < 0))
		return cj_stage(err, "options");
	if (r->options.wants_help)
		return 0;
	if (r->exec && begin_exec(r, err) < 0)
		return cj_stage(err, "options");
	if (r->config.request_fd >= 0)
		return run_request_read(r, err);
	/* it decides what the operands are, and so comes before the other options */
	r->config.has_code = options_find(&r->options, "code") != NULL;
	if (read_operands(r, err) < 0) {
		(void)blame_options(r, err);
		return cj_stage(err, "options");
	}
	return read_settings(r, err);
}
