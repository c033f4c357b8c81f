/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The launcher of a profile: its own interpreter with a script of ours, which gets ready and waits
 * for the program.  Reads that script.
 *
 * Its command is the profile's, with a line in the place of {file} that reads the script from
 * descriptor 3: the same options are in force, nothing of ours lies in the jail, and no list of
 * processes shows the script.
 */

#include "profiles/plan/plan_parts.h"
#include "profiles/profile.h"

static const struct {
	const char *interpreter; /* how the name of the command's program begins */
	const char *option;      /* runs a text */
	const char *line;        /* that text; START_SCRIPT_MAX bytes at most */
	const char *file;        /* below the shipped profiles */
	const char *repl_file;   /* the same for a REPL: plan_repl() */
	bool is_zygote;          /* with "--zygote" it forks one of itself for each jail */
} launchers[LAUNCHER_COUNT] = {
	[LAUNCHER_PYTHON] = { "python", "-c", "exec(__import__('os').read(3, 65536))",
			      "launchers/python.py", "launchers/python-repl.py",
			      .is_zygote = true },
	[LAUNCHER_NODE] = { "node", "-e",
			    "{ const b = Buffer.alloc(65536); require('vm').runInThisContext("
			    "b.toString('utf8', 0, require('fs').readSync(3, b))) }",
			    "launchers/node.js", "launchers/node-repl.js" },
};

/*
 * How many arguments stand before {file}; 0: this command can't wait for a file.  A profile may
 * keep its parent's launcher and run something else.
 */
static size_t arguments_before_file(const struct config *c)
{
	const char *const *argv = (const char *const *)c->command.items;
	if (c->reduced || !profile_runs(c, launchers[c->launcher].interpreter))
		return 0;

	size_t at = 0;
	while (at < c->command.count && strcmp(argv[at], "{file}") != 0 &&
	       strcmp(argv[at], "{args}") != 0)
		at++;
	bool is_file = at < c->command.count && strcmp(argv[at], "{file}") == 0;
	bool is_last = at + 1 == c->command.count ||
		       (at + 2 == c->command.count && strcmp(argv[at + 1], "{args}") == 0);
	return is_file && is_last ? at : 0;
}

static int read_script(struct config *c, const char *file, const char **out_text,
		       struct cj_error *err)
{
	struct profile_source source = { 0 };
	const char *path = arena_printf(&c->arena, "%s/%s", profile_shipped_dir(), file);
	if (!path)
		return cj_fail(err, ENOMEM, "plan the launcher");
	if (profile_source_read(path, 0, &c->arena, &source, err) < 0)
		return cj_wrap(err, "the profile's launcher");
	*out_text = source.text;
	return 0;
}

/* file NULL: without its script. */
static int plan_interpreter(struct config *c, const struct plan *plan, const char *file,
			    bool is_zygote, struct program *out, struct cj_error *err)
{
	struct planner p = {
		.c = c,
		.inv = &(struct invocation){ 0 },
		.plan.image = plan->image,
	};
	struct strings *argv = &p.program.argv;
	size_t before = c->launcher == LAUNCHER_NONE || plan->tty ? 0 : arguments_before_file(c);
	if (plan_image_workdir(&p, err) < 0)
		return -err->code;
	if (before == 0) {
		*out = p.program;
		return 0;
	}

	const char *const own[] = { launchers[c->launcher].option, launchers[c->launcher].line,
				    "--zygote" };
	if (file && read_script(c, file, &p.program.script, err) < 0)
		return -err->code;
	for (size_t i = 0; i < before; i++)
		if (plan_add(&p, argv, plan_put_limits(c, c->command.items[i]), err) < 0)
			return -err->code;
	for (size_t i = 0; i < (is_zygote ? 3 : 2); i++)
		if (plan_add(&p, argv, own[i], err) < 0)
			return -err->code;
	for (size_t i = 0; i < c->preload.count; i++)
		if (plan_add(&p, argv, c->preload.items[i], err) < 0)
			return -err->code;
	if (plan_env(&p, err) < 0)
		return -err->code;
	*out = p.program;
	return 0;
}

int plan_launcher(struct config *c, const struct plan *plan, struct program *out,
		  struct cj_error *err)
{
	return plan_interpreter(c, plan, launchers[c->launcher].file, false, out, err);
}

bool plan_has_repl(const struct config *c)
{
	return c->launcher != LAUNCHER_NONE && launchers[c->launcher].repl_file &&
	       arguments_before_file(c) > 0;
}

int plan_repl(struct config *c, const struct plan *plan, struct program *out, struct cj_error *err)
{
	if (plan->tty || !plan_has_repl(c)) {
		cj_refuse(err, "profile '%s' has no interpreter that keeps variables",
			  plan->profile_name);
		return cj_hint(
		    err, "leave out \"context\": \"repl\", or use a profile such as python or "
			 "node: cejail-serve(8), Sessions");
	}
	return plan_interpreter(c, plan, launchers[c->launcher].repl_file, false, out, err);
}

/*
 * A zygote runs outside of the jail, where these would make it load code from paths that are
 * others' there.
 */
static const char *const dangerous[] = {
	"LD_*",           "PYTHONPATH",       "PYTHONHOME",
	"PYTHONUSERBASE", "PYTHONPLATLIBDIR", "PYTHONPYCACHEPREFIX",
	"OPENSSL_CONF",   "OPENSSL_MODULES",  "OPENSSL_ENGINES",
	"GCONV_PATH",
};

static const char *find_dangerous(const struct strings *env)
{
	for (size_t i = 0; i < env->count; i++) {
		const char *name = env->items[i];
		for (size_t k = 0; k < COUNT_OF(dangerous); k++) {
			size_t size = strcspn(dangerous[k], "*");
			bool is_same = strncmp(name, dangerous[k], size) == 0;
			if (is_same && (dangerous[k][size] == '*' || name[size] == '='))
				return name;
		}
	}
	return NULL;
}

static int refuse_zygote(const struct plan *plan, const char *entry, const char *setting,
			 struct cj_error *err)
{
	cj_refuse(err, "profile '%s' can't use a zygote: its %s sets %.*s", plan->profile_name,
		  setting, (int)strcspn(entry, "="), entry);
	return cj_hint(err, "change the profile, or set \"warm\": {\"zygote\": false} in it: "
			    "cejail-serve(8)");
}

bool plan_wants_zygote(const struct config *c)
{
	return c->zygote && launchers[c->launcher].is_zygote && arguments_before_file(c) > 0;
}

int plan_zygote(struct config *c, const struct plan *plan, struct program *out,
		struct cj_error *err)
{
	if (plan_interpreter(c, plan, NULL, true, out, err) < 0)
		return -err->code;
	if (out->argv.count == 0 || !plan_wants_zygote(c))
		return cj_reject(err, "profile '%s' has no launcher that forks",
				 plan->profile_name);
	const size_t before = arguments_before_file(c);
	for (size_t i = 1; i < before; i++)
		if (strstr(c->command.items[i], "pycache_prefix"))
			return refuse_zygote(plan, c->command.items[i], "command", err);
	const char *entry = find_dangerous(&out->env);
	return entry ? refuse_zygote(plan, entry, "env", err) : 0;
}

/*
 * Python loads what it finds in the home directory.  In the jail this directory is new; outside it
 * may be anyone's, such as /tmp.  Below a file there is none.
 */
int plan_zygote_outside(struct config *c, struct program *zygote, struct cj_error *err)
{
	if (read_script(c, launchers[c->launcher].file, &zygote->script, err) < 0)
		return -err->code;
	if (strings_add(&zygote->env, &c->arena, "PYTHONUSERBASE=/dev/null") < 0)
		return cj_fail(err, ENOMEM, "plan the zygote");
	return 0;
}
