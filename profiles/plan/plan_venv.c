/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --venv and --project: packages that the caller has installed outside of /usr.
 *
 * Both become read-only binds.  Links below them resolve in the jail, so they show nothing else of
 * the host.  There is one exception: the interpreter that a virtual environment links to.  The
 * link may be the work of an attacker, so what it leads to must be an installation of Python, and
 * of that only the interpreter, its library and its modules are shown.
 */
#include <limits.h>
#include <sys/stat.h>

#include "profiles/paths.h"
#include "profiles/plan/env_file.h"
#include "profiles/plan/plan_parts.h"

#define PYTHON "python3"

static bool exists(const char *path)
{
	return path && access(path, F_OK) == 0;
}

static int check_name(const char *path, struct cj_error *err)
{
	return strpbrk(path, ":\\") ? cj_reject(err, "'%s' has a ':' or a '\\' in its name", path)
				    : 0;
}

/* As --ro-bind SOURCE:TARGET. */
static int add_bind(struct planner *p, const char *source, const char *target, struct cj_error *err)
{
	const char *text = source && target ? arena_printf(&p->c->arena, "%s:%s", source, target)
					    : NULL;
	return plan_add(p, &p->c->ro_binds, text, err);
}

static const char *resolve(struct planner *p, const char *path)
{
	char real[PATH_MAX];
	return path && realpath(path, real) ? arena_strdup(&p->c->arena, real) : NULL;
}

/* The directory above that of the file: /opt/python for /opt/python/bin/python3.11. */
static const char *prefix_of(struct planner *p, const char *file)
{
	char *prefix = arena_strdup(&p->c->arena, file);
	for (int i = 0; prefix && i < 2; i++) {
		char *slash = strrchr(prefix, '/');
		if (!slash)
			return NULL;
		*slash = '\0';
	}
	return prefix;
}

/* Follows links as long as they stay in the environment: the first path outside, or NULL. */
static const char *find_outside(struct planner *p, const char *dir)
{
	struct arena *a = &p->c->arena;
	const char *path = arena_printf(a, "%s/bin/" PYTHON, dir);
	for (int i = 0; path && paths_is_below(path, dir) && i < 8; i++) {
		char target[PATH_MAX];
		ssize_t size = readlink(path, target, sizeof(target) - 1);
		if (size < 0)
			return NULL;
		target[size] = '\0';
		if (target[0] != '/')
			path = arena_printf(a, "%s/bin/%s", dir, target);
		else
			path = arena_strdup(a, target);
	}
	const char *clean = NULL;
	struct cj_error ignored;
	return path && paths_absolute(path, a, &clean, &ignored) == 0 ? clean : NULL;
}

/* `link` is the place in the jail where the link of the environment leads. */
static int add_interpreter(struct planner *p, const char *dir, const char *link,
			   struct cj_error *err)
{
	struct arena *a = &p->c->arena;
	const char *real = resolve(p, link), *name = real ? paths_name(real) : "";
	const char *from = real ? prefix_of(p, real) : NULL, *to = prefix_of(p, link);
	if (!from || !to || strncmp(name, PYTHON ".", strlen(PYTHON ".")) != 0 ||
	    access(real, X_OK) < 0 || !exists(arena_printf(a, "%s/lib/%s/os.py", from, name))) {
		cj_refuse(err, "'%s' links to '%s', which is no installation of Python", dir, link);
		return cj_hint(err, "make it again: python3 -m venv %s", dir);
	}
	if (check_name(real, err) < 0 || check_name(link, err) < 0)
		return -err->code;

	const char *library = arena_printf(a, "lib/lib%s.so.1.0", name);
	const char *modules = arena_printf(a, "lib/%s", name);
	if (!library || !modules)
		return cj_fail(err, ENOMEM, "plan the packages");
	if (add_bind(p, real, link, err) < 0 ||
	    add_bind(p, arena_printf(a, "%s/%s", from, modules),
		     arena_printf(a, "%s/%s", to, modules), err) < 0)
		return -err->code;
	const char *shared = arena_printf(a, "%s/%s", from, library);
	return exists(shared) ? add_bind(p, shared, arena_printf(a, "%s/%s", to, library), err) : 0;
}

/* Another user could make any directory an environment: in /tmp, say. */
static int check_mark(struct planner *p, const char *dir, struct cj_error *err)
{
	static const char *const marks[] = { "pyvenv.cfg", "conda-meta" };
	struct stat st, root;
	for (size_t i = 0; i < COUNT_OF(marks); i++) {
		const char *path = arena_printf(&p->c->arena, "%s/%s", dir, marks[i]);
		if (!path || stat(path, &st) < 0)
			continue;
		/* In a user namespace, whoever owns / counts as root. */
		if (st.st_uid != geteuid() && st.st_uid != 0 &&
		    (stat("/", &root) < 0 || st.st_uid != root.st_uid))
			return cj_reject(err, "'%s' belongs to another user", path);
		return 0;
	}
	return cj_reject(err, "'%s' has no pyvenv.cfg, so it is no virtual environment", dir);
}

/* A directory that holds the home of the caller would show all of it. */
static int check_dir(struct planner *p, const char *dir, struct cj_error *err)
{
	const char *home = resolve(p, env_value(p->inv->environ, "HOME"));
	if (check_mark(p, dir, err) < 0)
		return -err->code;
	if (strcmp(dir, "/") == 0 || (home && paths_is_below(home, dir)))
		return cj_reject(err, "'%s' holds your home directory", dir);
	return check_name(dir, err);
}

static int set_variable(struct planner *p, const char *text, struct cj_error *err)
{
	const char **there = text ? strings_find_variable(&p->program.env, text) : NULL;
	if (!there)
		return plan_add(p, &p->program.env, text, err);
	*there = text;
	return 0;
}

static int set_variables(struct planner *p, const char *dir, struct cj_error *err)
{
	struct arena *a = &p->c->arena;
	const char *path = env_value(p->program.env.items, "PATH");
	if (set_variable(p, arena_printf(a, "VIRTUAL_ENV=%s", dir), err) < 0 ||
	    set_variable(p, "PIP_USER=0", err) < 0)
		return -err->code;
	return set_variable(
	    p, arena_printf(a, "PATH=%s/bin:%s", dir, path ? path : "/usr/bin:/bin"), err);
}

static int add_venv(struct planner *p, struct cj_error *err)
{
	const char *dir = resolve(p, p->c->venv);
	if (!dir)
		return cj_fail(err, errno, "find '%s'", p->c->venv);
	if (p->plan.root.kind != ROOT_HOST)
		return cj_reject(err, "'%s' needs the files of this host, but --rootfs has others",
				 dir);
	if (check_dir(p, dir, err) < 0)
		return -err->code;
	const char *link = find_outside(p, dir);
	if (!link && !exists(arena_printf(&p->c->arena, "%s/bin/" PYTHON, dir)))
		return cj_reject(err, "'%s' has no bin/" PYTHON, dir);
	const bool is_in_root = link &&
				(paths_is_below(link, "/usr") || paths_is_below(link, "/bin"));
	if (link && !is_in_root && add_interpreter(p, dir, link, err) < 0)
		return -err->code;
	bool is_shown = paths_is_below(dir, "/usr") || strings_has(&p->c->ro_binds, dir) ||
			strings_has(&p->c->binds, dir) || strings_has(&p->c->overlays, dir);
	if (!is_shown && add_bind(p, dir, dir, err) < 0)
		return -err->code;
	return set_variables(p, dir, err);
}

/* Node looks for packages in node_modules beside the program, which is in /box. */
static int add_project(struct planner *p, struct cj_error *err)
{
	const char *dir = resolve(p, p->c->project);
	if (!dir)
		return cj_fail(err, errno, "find '%s'", p->c->project);
	const char *modules = arena_printf(&p->c->arena, "%s/node_modules", dir);
	struct stat st;
	if (!modules)
		return cj_fail(err, ENOMEM, "plan the packages");
	if (lstat(modules, &st) < 0)
		return cj_fail(err, errno, "find '%s'", modules);
	if (!S_ISDIR(st.st_mode))
		return cj_reject(err, "'%s' is not a directory", modules);
	if (check_name(modules, err) < 0)
		return -err->code;
	return add_bind(p, modules, PLACE_BOX "/node_modules", err);
}

int plan_venv(struct planner *p, struct cj_error *err)
{
	if (p->c->venv && strcmp(p->c->venv, "none") != 0 && add_venv(p, err) < 0) {
		if (err->hint[0] == '\0')
			cj_hint(err, "--venv none runs without a virtual environment");
		return cj_wrap(err, "--venv");
	}
	if (p->c->project && add_project(p, err) < 0)
		return cj_wrap(err, "--project");
	return 0;
}
