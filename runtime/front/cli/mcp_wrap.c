/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `cejail mcp wrap`: the MCP server of somebody else in a jail, with its three streams untouched.
 *
 * It is a run whose defaults are those of a server.  The packages that npx or uvx downloads are
 * kept in a directory of the caller's cache, which the jail may write: nothing here reads or
 * executes what is in it.
 */
#include "runtime/front/cli/run_state.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

#include "profiles/paths.h"
#include "profiles/plan/env_file.h"
#include "profiles/profile.h"
#include "runtime/base/files/sha256.h"
#include "runtime/base/log.h"
#include "runtime/base/scope.h"
#include "runtime/base/text.h"
#include "runtime/run/options/option_syntax.h"

#define CACHE_PLACE "/cache" /* in the jail */
#define CACHE_NONE  "none"
#define BASE_MAX    15 /* of a made name: a hyphen and 16 digits follow, see is_name() */
#define DIGITS      16

static const struct own_option own_rows[] = {
	{ "cache", 0, "NAME|none", "keep downloaded packages under this name; none: keep nothing",
	  offsetof(struct wrap, cache) },
};

/* Options of `run` that describe no jail, and are useful here. */
static const char *const more_options[] = { "profile",   "env-file",  "file-text",   "args-json",
					    "venv",      "project",   "json",        "result-fd",
					    "events-fd", "id",        "verbose",     "quiet",
					    "dry-run",   "no-report", "interactive", "trace-file",
					    NULL };
/* Options that describe a jail, or its program, and are of no use to a server. */
static const char *const other_options[] = { "on-output-limit",   "artifact-path",
					     "value-path",        "calls-max",
					     "calls-outstanding", "calls-rate",
					     "calls-timeout",     NULL };

static bool is_usable(const struct setting *s)
{
	return text_is_one_of(s->option, more_options) ||
	       (s->scope != SCOPE_NO_REQUEST && !text_is_one_of(s->option, other_options));
}

int wrap_take(struct wrap *w, const char *const *args, struct arena *a, struct cj_error *err)
{
	const struct own_options own = {
		.verb = "mcp wrap", .rows = own_rows, .count = COUNT_OF(own_rows), .out = w
	};
	struct own_rest rest = { 0 };

	if (own_rest_init(&rest, args, a, err) < 0 || own_options_take(&own, &args, &rest, err) < 0)
		return -err->code;
	while (*args)
		rest.args[rest.count++] = *args++;
	w->args = rest.args;
	if (!w->cache || strcmp(w->cache, CACHE_NONE) == 0 || is_name(w->cache))
		return 0;
	cj_refuse(err, "--cache: '%s' is not a name", w->cache);
	return cj_hint(err, "at most 32 of a-z 0-9 - _, or 'none'");
}

int wrap_check(const struct options *o, struct cj_error *err)
{
	if (options_check(o, is_usable, "mcp wrap", err) < 0)
		return -err->code;
	for (size_t i = 0; i < o->count; i++) {
		const struct given *g = &o->items[i];
		const char *option = g->setting->option, *value = g->value;
		if (strcmp(option, "json") == 0 && !value) {
			cj_refuse(err, "'%s': standard output is the server's", g->named);
			return cj_hint(err, "write the result to a file: --json=FILE");
		}
		if (strcmp(option, "file") == 0 && value[0] == '-' &&
		    (value[1] == '\0' || value[1] == ':'))
			return cj_reject(err, "'%s %s': standard input is the server's", g->named,
					 value);
	}
	return 0;
}

void wrap_print_help(void)
{
	(void)printf("Usage: cejail mcp wrap [OPTION...] -- COMMAND [ARG...]\n\n"
		     "Runs an MCP server of somebody else in a jail.  Its three streams are those "
		     "of\n'cejail mcp wrap', and it ends with its client.\n\n");
	own_options_print_help(own_rows, COUNT_OF(own_rows));
	(void)printf("\nOptions of 'cejail run':\n");
	options_print_help(is_usable);
	(void)printf("\nThe manual is cejail-mcp(1).\n");
}

const char *wrap_profile(const char *command)
{
	static const struct {
		const char *name, *profile;
	} known[] = {
		{ "npx", "node" },      { "node", "node" }, { "npm", "node" },
		{ "uvx", "python" },    { "uv", "python" }, { "pipx", "python" },
		{ "python", "python" }, { "deno", "deno" },
	};

	if (!command)
		return PROFILE_BASE; /* an image's own */
	const char *name = paths_name(command);
	size_t size = strcspn(name, "0123456789."); /* python3.11 */
	for (size_t i = 0; i < COUNT_OF(known); i++)
		if (strlen(known[i].name) == size && strncmp(known[i].name, name, size) == 0)
			return known[i].profile;
	return "shell";
}

static int hint_cache(struct cj_error *err)
{
	return cj_hint(err, "set XDG_CACHE_HOME to a directory of yours, or add --cache none");
}

/*
 * Two servers must not share a cache by accident: each could change the packages that the other
 * executes.  So the name depends on the whole command.  It depends on the root file system, too:
 * npx keeps modules that were compiled for the libraries and the Node.js there.
 */
static const char *make_name(const struct wrap *w, const struct invocation *inv, struct config *c)
{
	const char *rootfs = w->rootfs ? w->rootfs : c->rootfs;
	const char *base = inv->args[0] ? paths_name(inv->args[0]) : rootfs;
	char hex[SHA256_HEX_MAX];
	struct sha256 h;

	sha256_init(&h);
	for (const char *const *arg = inv->args; *arg; arg++)
		sha256_update(&h, *arg, strlen(*arg) + 1);
	sha256_update(&h, rootfs, strlen(rootfs));
	sha256_final(&h, hex);
	const char *name = arena_printf(&c->arena, "%.*s-%.*s", BASE_MAX, base, DIGITS, hex);
	return name && !is_name(name) ? arena_printf(&c->arena, "server-%.*s", DIGITS, hex) : name;
}

/* A relative path means nothing here: the XDG base directory specification. */
static int find_cache_home(const char *const *caller_env, struct arena *a,
			   char out[static PATH_MAX], struct cj_error *err)
{
	const char *dir = env_value(caller_env, "XDG_CACHE_HOME"),
		   *home = env_value(caller_env, "HOME");

	if (!dir || dir[0] != '/') {
		if (!home || home[0] != '/') {
			cj_refuse(err, "--cache: neither XDG_CACHE_HOME nor HOME is a directory");
			return hint_cache(err);
		}
		dir = arena_printf(a, "%s/.cache", home);
	}
	if (!dir)
		return cj_fail(err, ENOMEM, "find the cache");
	if (mkdir(dir, 0700) < 0 && errno != EEXIST) {
		(void)!cj_fail(err, errno, "--cache: create '%s'", dir);
		return hint_cache(err);
	}
	if (realpath(dir, out))
		return 0;
	(void)!cj_fail(err, errno, "--cache: find '%s'", dir);
	return hint_cache(err);
}

/*
 * Opens dir_fd/name, which `path` names in messages; creates it if it is missing.  Only its owner
 * may enter: a server can create setuid files, and change the mode of the last directory.
 */
static int open_private(int dir_fd, const char *name, const char *path, struct cj_error *err)
{
	char self[32];
	struct stat st;

	if (mkdirat(dir_fd, name, 0700) < 0 && errno != EEXIST)
		return cj_fail(err, errno, "create '%s'", path);
	auto_fd int fd = openat(dir_fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return cj_fail(err, errno, "open the directory '%s'", path);
	if (st.st_uid != geteuid())
		return cj_reject(err, "'%s' belongs to another user", path);
	(void)snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	if ((st.st_mode & 07777) != 0700 && chmod(self, 0700) < 0)
		return cj_fail(err, errno, "set the mode of '%s'", path);
	return take_fd(&fd);
}

/* The path of the directory; no part of it below the caller's cache is a symbolic link. */
static int make_cache(const char *home, const char *name, struct arena *a, const char **out,
		      struct cj_error *err)
{
	const char *const parts[] = { "cejail", "mcp", name };
	const char *path = home;
	auto_fd int fd = open(home, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return cj_fail(err, errno, "open '%s'", home);
	for (size_t i = 0; i < COUNT_OF(parts); i++) {
		path = arena_printf(a, "%s/%s", path, parts[i]);
		if (!path)
			return cj_fail(err, ENOMEM, "find the cache");
		int next_fd = open_private(fd, parts[i], path, err);
		if (next_fd < 0)
			return next_fd;
		cj_close(&fd);
		fd = next_fd;
	}
	if (faccessat(fd, ".", W_OK | X_OK, AT_EACCESS) < 0)
		return cj_fail(err, errno, "write to '%s'", path);
	*out = path;
	return 0;
}

int wrap_apply(const struct wrap *w, const struct invocation *inv, struct config *c,
	       struct cj_error *err)
{
	c->run_limits.wall_ms = 0;
	c->run_limits.on_output_limit = OUTPUT_TRUNCATE;
	c->tty = false;
	if (w->cache && strcmp(w->cache, CACHE_NONE) == 0)
		return 0;
	static const char *const variables[] = {
		"XDG_CACHE_HOME=" CACHE_PLACE,
		"npm_config_cache=" CACHE_PLACE "/npm",
		"UV_CACHE_DIR=" CACHE_PLACE "/uv",
		"UV_PYTHON_INSTALL_DIR=" CACHE_PLACE "/uv-python",
	};
	const char *name = w->cache ? w->cache : make_name(w, inv, c), *path = NULL;
	char home[PATH_MAX];
	if (!name)
		return cj_fail(err, ENOMEM, "find the cache");
	if (find_cache_home(inv->environ, &c->arena, home, err) < 0)
		return -err->code;
	if (make_cache(home, name, &c->arena, &path, err) < 0) {
		(void)!cj_wrap(err, "--cache");
		return hint_cache(err);
	}
	log_debug("the server's packages are kept in '%s'", path);
	for (size_t i = 0; i < COUNT_OF(variables); i++)
		if (strings_add(&c->env, &c->arena, variables[i]) < 0)
			return cj_fail(err, ENOMEM, "read the options");
	/* "SRC:DST" of `path`: see paths_split(). */
	char *text = arena_alloc(&c->arena, 2 * strlen(path) + sizeof(":" CACHE_PLACE));
	if (!text)
		return cj_fail(err, ENOMEM, "read the options");
	memcpy(text + paths_escape(path, text), ":" CACHE_PLACE, sizeof(":" CACHE_PLACE));
	return strings_add(&c->kept, &c->arena, text) < 0 ? cj_fail(err, ENOMEM, "read the options")
							  : 0;
}

/* As a shell would find it, without links. */
static bool find_on_host(const char *command, const char *search, char out[static PATH_MAX])
{
	char path[PATH_MAX];

	if (strchr(command, '/'))
		return realpath(command, out) && access(out, X_OK) == 0;
	while (search && *search) {
		size_t size = strcspn(search, ":");
		int n = snprintf(path, sizeof(path), "%.*s/%s", (int)size, search, command);
		if (n > 0 && (size_t)n < sizeof(path) && realpath(path, out) &&
		    access(out, X_OK) == 0)
			return true;
		search += size + (search[size] == ':');
	}
	return false;
}

void wrap_explain_missing(const char *command, const struct config *c,
			  const char *const *caller_env, struct cj_error *err)
{
	char path[PATH_MAX];
	bool is_found = find_on_host(command, env_value(caller_env, "PATH"), path);

	if (strcmp(c->rootfs, "host") != 0 || (is_found && paths_is_below(path, "/usr")))
		return; /* the general hint: its interpreter may be missing */
	err->hint[0] = '\0';
	if (!is_found) {
		cj_hint(err, "it is not on this host either: install it, or name an image that has "
			     "it: --rootfs NAME");
		return;
	}
	const char *slash = strrchr(path, '/');
	int size = slash > path ? (int)(slash - path) : 1;
	cj_hint(err,
		"it is in '%.*s' of this host: add --ro-bind %.*s -e PATH=%.*s:/usr/local/bin:"
		"/usr/bin:/bin",
		size, path, size, path, size, path);
}

int mcp_verb(const struct cli *cli)
{
	struct wrap wrap = { 0 };
	struct cli rest = *cli;
	struct cli_run r = { .cli = &rest, .wrap = &wrap };

	if (!cli->args[0] || strcmp(cli->args[0], "wrap") != 0)
		return program_verb(cli);
	rest.verb = "mcp wrap";
	rest.args++;
	return run_to_end(&r);
}
