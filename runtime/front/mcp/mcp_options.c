/* SPDX-License-Identifier: Apache-2.0 */
/* Options of the server, and those of `run` that describe a jail. */
#include "runtime/front/mcp/mcp_options.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "profiles/setting_types.h"
#include "runtime/base/text.h"
#include "runtime/run/options/option_syntax.h"
#include "runtime/front/client/remote_request.h"

#define PREFIX_MAX 64

static const struct own_option own_rows[] = {
	{ "tool-prefix", 0, "TEXT", "begin the names of the tools with this",
	  offsetof(struct mcp_options, prefix) },
	{ "files", 0, "DIR", "store the files of each run in this directory, and link them",
	  offsetof(struct mcp_options, files) },
	{ "text-max", 0, "SIZE", "maximum of stdout and of stderr in an answer; the default is 64K",
	  offsetof(struct mcp_options, text_size) },
	{ "print-config", 0, "HOST",
	  "print the configuration for this program, and exit: claude, claude-code, vscode, "
	  "cursor, ...",
	  offsetof(struct mcp_options, host) },
	{ "url", 0, "URL", "with --print-config: of a service's /mcp, in place of this program",
	  offsetof(struct mcp_options, url) },
	{ "help", 0, NULL, "this text", offsetof(struct mcp_options, wants_help) },
};

#define OWN_COUNT (sizeof(own_rows) / sizeof(own_rows[0]))

/* Options of `run` that describe no jail, and are useful here. */
static const char *const run_options[] = { "profile", "remote", "env-file", NULL };

static int no_memory(struct cj_error *err)
{
	return cj_fail(err, ENOMEM, "read the options");
}

static bool is_usable(const struct setting *s)
{
	for (size_t i = 0; run_options[i]; i++)
		if (strcmp(run_options[i], s->option) == 0)
			return true;
	return s->scope != SCOPE_NO_REQUEST;
}

/* --- our own options ---------------------------------------------------------------- */

/* Operands stay in *out_rest, where they are refused later. */
static int split(const char *const *args, struct mcp_options *o, const char ***out_rest,
		 struct cj_error *err)
{
	const struct own_options own = {
		.verb = "mcp", .rows = own_rows, .count = OWN_COUNT, .out = o
	};
	struct own_rest rest = { 0 }, others = { 0 };

	if (own_rest_init(&others, args, &o->config.arena, err) < 0 ||
	    own_rest_init(&rest, args, &o->config.arena, err) < 0)
		return -err->code;
	rest.all = o->others = others.args;
	rest.left_out = "print-config";
	if (own_options_take(&own, &args, &rest, err) < 0)
		return -err->code;
	while (*args)
		rest.args[rest.count++] = *args++;
	*out_rest = rest.args;
	return 0;
}

/* --- the options of `run` ------------------------------------------------------------- */

static int take_profiles(struct mcp_options *o, struct cj_error *err)
{
	size_t count = 0;

	for (size_t i = 0; i < o->run.count; i++) {
		const char *name = o->run.items[i].value;
		if (strcmp(o->run.items[i].setting->option, "profile") != 0)
			continue;
		if (!is_name(name)) {
			int rc = cj_reject(err, "--profile: '%s' is not a name", name);
			cj_hint(err, "save the profile in ~/.config/cejail/profiles, and give its "
				     "name");
			return rc;
		}
		if (count == MCP_PROFILES_MAX)
			return cj_reject(err, "more than %d profiles", MCP_PROFILES_MAX);
		for (size_t k = 0; k < count; k++)
			if (strcmp(o->profiles[k], name) == 0)
				return cj_reject(err, "--profile: '%s' is given twice", name);
		o->profiles[count++] = name;
	}
	return 0;
}

static int check_usable(const struct mcp_options *o, struct cj_error *err)
{
	const struct options *run = &o->run;

	if (*run->operands || run->has_separator) {
		int rc = cj_reject(err, "'cejail mcp' takes no program: its client sends it");
		cj_hint(err, "see 'cejail mcp --help'");
		return rc;
	}
	for (size_t i = 0; i < run->count; i++)
		if (!is_usable(run->items[i].setting)) {
			int rc = cj_reject(err, "option '%s' is not for 'cejail mcp'",
					   run->items[i].named);
			cj_hint(err, "see 'cejail mcp --help'");
			return rc;
		}
	return 0;
}

/* [A-Za-z0-9_.-] is what MCP allows in names of tools. */
static int check_prefix(const char *prefix, struct cj_error *err)
{
	static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				      "0123456789_.-";

	if (strlen(prefix) <= PREFIX_MAX && strspn(prefix, allowed) == strlen(prefix))
		return 0;
	return cj_reject(err, "--tool-prefix: '%s' is not at most %d of A-Z a-z 0-9 _ . -", prefix,
			 PREFIX_MAX);
}

/* Files are read anew for each call, by the process that runs it. */
static int want_files(struct mcp_options *o, struct cj_error *err)
{
	struct config *c = &o->config;
	bool *wanted = arena_array(&c->arena, settings_count, sizeof(*wanted));
	char dir[PATH_MAX];

	if (!wanted)
		return no_memory(err);
	if (!getcwd(dir, sizeof(dir)))
		return cj_fail(err, errno, "find the current directory");
	memcpy(wanted, o->given.wanted, settings_count * sizeof(*wanted));
	wanted[setting_by_option("file") - settings] = c->files.count > 0;
	o->given.wanted = wanted;
	for (size_t i = 0; i < c->files.count; i++) {
		c->files.items[i] = remote_request_absolute(
		    c->files.items[i], 0, false, strcmp(dir, "/") == 0 ? "" : dir, &c->arena);
		if (!c->files.items[i])
			return no_memory(err);
	}
	return 0;
}

static int read_run_options(struct mcp_options *o, const char *const *rest,
			    const char *const *caller_env, struct cj_error *err)
{
	struct config *c = &o->config;

	if (options_scan("mcp", rest, &c->arena, &o->run, err) < 0)
		return -err->code;
	o->wants_help = o->run.wants_help;
	if (check_usable(o, err) < 0 || options_expand(&o->run, caller_env, &c->arena, err) < 0 ||
	    take_profiles(o, err) < 0)
		return -err->code;
	if (options_apply_delivery(&o->run, c, err) < 0 || options_apply_rest(&o->run, c, err) < 0)
		return -err->code;
	if (remote_request_gather_settings(c, &o->run, &o->given.wanted, err) < 0)
		return -err->code;
	o->given.config = c;
	return want_files(o, err);
}

int mcp_options_parse(const char *const *args, const char *const *caller_env, struct mcp_options *o,
		      struct cj_error *err)
{
	const char **rest = NULL;

	*o = (struct mcp_options){ .prefix = "" };
	config_init(&o->config);
	if (split(args, o, &rest, err) < 0 || o->wants_help)
		return -err->code;
	if (check_prefix(o->prefix, err) < 0)
		return -err->code;
	if (o->text_size &&
	    parse_size_within(o->text_size, MCP_TEXT_LEAST, MCP_TEXT_MOST, &o->text_max, err) < 0)
		return cj_wrap(err, "--text-max");
	if (o->url && !o->host)
		return cj_reject(err, "--url: it needs --print-config HOST");
	return read_run_options(o, rest, caller_env, err);
}

void mcp_options_fini(struct mcp_options *o)
{
	config_fini(&o->config);
}

/* --- the help text ---------------------------------------------------------------------- */

void mcp_options_print_help(void)
{
	(void)printf("Usage: cejail mcp [OPTION...]\n\n"
		     "Gives AI agents tools that run code in jails. An MCP client starts it, and\n"
		     "speaks the Model Context Protocol with it on standard input and output.\n\n");
	own_options_print_help(own_rows, OWN_COUNT);
	(void)printf("\nOptions of 'cejail run' that apply to every call. A call can only lower\n"
		     "limits:\n");
	options_print_help(is_usable);
	(void)printf("\nThe manual is cejail-mcp(1).\n");
}
