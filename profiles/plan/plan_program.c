/* SPDX-License-Identifier: Apache-2.0 */
/* The program of a plan: its code, arguments, environment and data.  Reads --args-json's file. */
#include "profiles/plan/env_file.h"

#include "profiles/paths.h"
#include "profiles/plan/plan_parts.h"
#include "profiles/profile.h"
#include "rootfs/files/inputs.h"
#include "runtime/base/files/fd.h"
#include "runtime/base/scope.h"

#define ARGUMENT_BYTES_MAX  (128u << 10) /* MAX_ARG_STRLEN: execve(2), NOTES */
#define ARGUMENTS_BYTES_MAX (1u << 20) /* argv or env together; the kernel's own limit is higher */

#define DEFAULT_STEM      "main"
#define PLACE_INTERPRETER "{interpreter}"

/* Node.js 22.6 and later know it; an older one names it and ends before it reads the code. */
#define NODE_STRIP_TYPES "--experimental-strip-types"

static bool is_typescript(const char *name)
{
	const char *extension = name ? strrchr(name, '.') : NULL;
	return extension && (strcmp(extension, ".ts") == 0 || strcmp(extension, ".mts") == 0 ||
			     strcmp(extension, ".cts") == 0);
}

/*
 * A file keeps its extension where the profile knows it (node takes .mjs and .js for two
 * languages), and nothing else of its name: the caller's names do not reach the program.
 * TypeScript selects deno if no profile is named, but node may run it.
 */
const char *plan_code_name(const struct config *c, const char *file, struct arena *a)
{
	const char *name = c->file_name ? c->file_name : DEFAULT_STEM;
	const char *extension = file ? strrchr(paths_name(file), '.') : NULL;
	bool is_known = extension && (strings_has(&c->extensions, extension) ||
				      (profile_runs(c, "node") && is_typescript(extension)));
	if (!is_known)
		return name;

	const char *dot = strrchr(name, '.');
	size_t stem = dot ? (size_t)(dot - name) : strlen(name);
	return arena_printf(a, "%.*s%s", (int)stem, name, extension);
}

int plan_code(struct planner *p, struct cj_error *err)
{
	struct program *program = &p->program;
	const char *file = p->inv->file;

	program->code_source = p->c->has_code           ? CODE_STRING
			       : !file                  ? CODE_NONE
			       : strcmp(file, "-") == 0 ? CODE_STDIN
							: CODE_FILE;
	if (program->code_source == CODE_NONE)
		return 0;
	if (program->code_source == CODE_STRING) {
		if (p->c->code_size > CODE_BYTES_MAX)
			return cj_reject(err, "-c: the code is longer than %u MiB",
					 CODE_BYTES_MAX >> 20);
		program->code_text = p->c->code;
		program->code_size = p->c->code_size;
	}
	program->code_name = file ? file : "-c";

	const char *name = plan_code_name(p->c, file, &p->c->arena);
	program->code_path = name ? arena_printf(&p->c->arena, PLACE_BOX "/%s", name) : NULL;
	return program->code_path ? 0 : cj_fail(err, ENOMEM, "plan the program");
}

/* Refuses here what execve(2) would refuse later, because here the message can name the option. */
static int check_argument_sizes(const char *what, const struct strings *argv, struct cj_error *err)
{
	size_t total = 0;
	for (size_t i = 0; i < argv->count; i++) {
		size_t size = strlen(argv->items[i]) + 1;
		total += size + sizeof(char *);
		if (size <= ARGUMENT_BYTES_MAX && total <= ARGUMENTS_BYTES_MAX)
			continue;
		if (size > ARGUMENT_BYTES_MAX)
			cj_refuse(err, "%s: '%.32s...' is longer than %u KiB", what, argv->items[i],
				  ARGUMENT_BYTES_MAX >> 10);
		else
			cj_refuse(err, "%s: more than %u KiB together", what,
				  ARGUMENTS_BYTES_MAX >> 10);
		return cj_hint(err, "hand large data in with --file or --args-json @FILE");
	}
	return 0;
}

static int add_arguments(struct planner *p, struct cj_error *err)
{
	for (const char *const *arg = p->inv->args; arg && *arg; arg++)
		if (plan_add(p, &p->program.argv, *arg, err) < 0)
			return -err->code;
	return 0;
}

static int ask_for_typescript(struct planner *p, struct cj_error *err)
{
	struct program *program = &p->program;
	program->strips_types = profile_runs(p->c, "node") && is_typescript(program->code_path);
	return program->strips_types ? plan_add(p, &program->argv, NODE_STRIP_TYPES, err) : 0;
}

static int expand_argument(struct planner *p, const char *argument, struct cj_error *err)
{
	if (strcmp(argument, PLACE_INTERPRETER) == 0)
		return 0; /* found when the file has been read */
	if (strcmp(argument, "{args}") == 0)
		return add_arguments(p, err);
	if (strcmp(argument, "{file}") == 0) {
		if (p->program.code_source == CODE_NONE) {
			cj_refuse(err, "there is nothing to run");
			return cj_hint(err,
				       "give FILE, '-c CODE', '-' for standard input, or '-- CMD'");
		}
		if (ask_for_typescript(p, err) < 0)
			return -err->code;
		argument = p->program.code_path;
	} else {
		argument = plan_put_limits(p->c, argument);
	}
	return plan_add(p, &p->program.argv, argument, err);
}

/* {interpreter} stands before the arguments that run a file without a "#!" line. */
static int check_interpreter(struct planner *p, const struct strings *argv, struct cj_error *err)
{
	if (strcmp(argv->items[0], PLACE_INTERPRETER) != 0)
		return 0;
	p->program.own_interpreter = p->program.code_source != CODE_NONE;
	if (argv->count > 1 && strcmp(argv->items[1], "{file}") != 0)
		return 0;
	cj_refuse(
	    err, "the command of profile '%s' has nothing between " PLACE_INTERPRETER " and {file}",
	    p->c->profile_name);
	return cj_hint(err, "name what runs a file without a '#!' line: [\"" PLACE_INTERPRETER
			    "\", \"sh\", \"{file}\", \"{args}\"]");
}

static int expand_template(struct planner *p, const struct strings *argv, struct cj_error *err)
{
	bool has_arguments = p->inv->args && p->inv->args[0];
	if (argv->count == 0) {
		cj_refuse(err, "profile '%s' has no '%s", p->c->profile_name,
			  p->inv->use_shell ? "shell' to start" : "command' to run a file with");
		return cj_hint(err, "choose another with --profile, or run a command of the jail's "
				    "own: -- CMD");
	}
	if (check_interpreter(p, argv, err) < 0)
		return -err->code;
	if (p->program.code_source != CODE_NONE && !strings_has(argv, "{file}"))
		return cj_reject(err, "the command of profile '%s' has no place for {file}",
				 p->c->profile_name);
	if (has_arguments && !strings_has(argv, "{args}"))
		return cj_reject(err, "the command of profile '%s' has no place for {args}",
				 p->c->profile_name);

	for (size_t i = 0; i < argv->count; i++)
		if (expand_argument(p, argv->items[i], err) < 0)
			return -err->code;
	return 0;
}

int plan_argv(struct planner *p, struct cj_error *err)
{
	int rc;
	if (p->inv->use_shell)
		rc = expand_template(p, &p->c->shell, err);
	else if (p->inv->is_image_command)
		rc = plan_image_command(p, err);
	else if (!p->inv->is_command)
		rc = expand_template(p, &p->c->command, err);
	else if (!p->inv->args || !p->inv->args[0] || p->inv->args[0][0] == '\0')
		rc = cj_reject(err, "'--' is followed by no command");
	else
		rc = add_arguments(p, err);
	return rc < 0 ? rc : check_argument_sizes("arguments", &p->program.argv, err);
}

static int add_variable(struct planner *p, const char *text, struct cj_error *err)
{
	const char *pair = strchr(text, '=') ? text : env_find(p->inv->environ, text);
	if (!pair) {
		cj_refuse(err, "--env '%s' is not set here", text);
		return cj_hint(err, "give it a value: --env %s=VALUE", text);
	}
	if (pair != text && plan_add(p, &p->program.env_copied, text, err) < 0)
		return -err->code;
	return plan_add(p, &p->program.env, pair, err);
}

int plan_env(struct planner *p, struct cj_error *err)
{
	struct strings *env = &p->program.env;

	for (size_t i = 0; i < p->c->env.count; i++)
		if (add_variable(p, p->c->env.items[i], err) < 0)
			return -err->code;
	if (plan_image_env(p, err) < 0 || plan_interpreter_env(p, err) < 0)
		return -err->code;
	/* A terminal needs a type; the caller's own is not the jail's to know. */
	if (p->c->tty && !env_find(env->items, "TERM") && plan_add(p, env, "TERM=xterm", err) < 0)
		return -err->code;
	return check_argument_sizes("environment", env, err);
}

int plan_read_args(struct config *c, const char **out_text, const struct json_node **out_root,
		   struct cj_error *err)
{
	const char *text = c->args_json, *name = "JSON";
	size_t size = text ? strlen(text) : 0;

	if (text && text[0] == '@') {
		char *bytes;
		name = text + 1;
		auto_fd int fd = fd_open_regular(name, err);
		if (fd < 0 ||
		    fd_read_all(fd, ARGS_JSON_MAX, &c->arena, &bytes, &size, name, err) < 0)
			return cj_wrap(err, "--args-json");
		text = bytes;
	}
	if (text && json_parse(name, text, size, &c->arena, out_root, err) < 0)
		return cj_wrap(err, "--args-json");
	*out_text = text;
	return 0;
}

/* What was checked is what lands, so a file's text is kept from here on. */
int plan_args_json(struct planner *p, struct cj_error *err)
{
	const struct json_node *root;

	return plan_read_args(p->c, &p->program.args_json, &root, err);
}

/* Copies: --file -:DST and --file-text DST=TEXT. */

static bool ends_in_slash(const char *path)
{
	return path[0] != '\0' && path[strlen(path) - 1] == '/';
}

bool plan_is_stdin(const char *file)
{
	return file[0] == '-' && (file[1] == '\0' || file[1] == ':');
}

int plan_stdin_target(const char *text, struct arena *a, const char **out, struct cj_error *err)
{
	const char *source, *target;
	if (paths_split(text, a, &source, &target, err) < 0)
		return -err->code;
	if (target && !ends_in_slash(target))
		return paths_target(target, a, out, err);
	cj_refuse(err, "'%s' has no name for the file in the jail", text);
	return cj_hint(err, "write -:NAME for standard input, or ./- for a file of this name");
}

int plan_file_text(const char *text, struct arena *a, struct copy_spec *out, struct cj_error *err)
{
	size_t size = strcspn(text, "=");
	const char *target = arena_strndup(a, text, size);
	if (!target)
		return cj_fail(err, ENOMEM, "plan the program");
	if (text[size] == '\0' || size == 0 || ends_in_slash(target))
		return cj_reject(err, "'%.64s' is not DST=TEXT", text);
	*out = (struct copy_spec){ .bytes = text + size + 1, .size = strlen(text) - size - 1 };
	return paths_target(target, a, &out->target, err);
}
