/* SPDX-License-Identifier: Apache-2.0 */
/* What is copied out of the jail besides /box/out.  Pure. */
#include <string.h>

#include "profiles/paths.h"
#include "profiles/plan/plan_parts.h"

static bool is_strictly_below(const char *path, const char *ancestor)
{
	return strcmp(path, ancestor) != 0 && paths_is_below(path, ancestor);
}

static bool is_in_overlay(const struct planner *p, const char *path)
{
	const struct rootfs_spec *root = &p->plan.root;
	for (size_t i = 0; i < root->nbinds; i++)
		if (root->binds[i].kind == BIND_OVERLAY &&
		    is_strictly_below(path, root->binds[i].target))
			return true;
	return false;
}

static int check_place(const struct planner *p, const char *path, struct cj_error *err)
{
	if (is_strictly_below(path, PLACE_BOX) || is_in_overlay(p, path))
		return 0;
	int rc = cj_reject(err, "'%s' is neither below " PLACE_BOX " nor below an --overlay", path);
	cj_hint(err, "name a file or a directory there, or let the program copy it to " PLACE_OUT);
	return rc;
}

static int check_copied(const struct planner *p, const char *path, struct cj_error *err)
{
	if (paths_is_below(path, PLACE_OUT))
		return cj_reject(err, "'%s' is copied without it: all of " PLACE_OUT " is", path);
	return check_place(p, path, err);
}

/* One inside another would be copied twice, to the same name. */
static int check_others(const struct strings *paths, const char *path, struct cj_error *err)
{
	for (size_t i = 0; i < paths->count; i++)
		if (paths_is_below(path, paths->items[i]) || paths_is_below(paths->items[i], path))
			return cj_reject(err, "'%s' and '%s' are the same or lie in one another",
					 paths->items[i], path);
	return 0;
}

int plan_artifacts(struct planner *p, struct cj_error *err)
{
	struct arena *a = &p->c->arena;
	struct strings *paths = &p->program.artifact_paths;
	for (size_t i = 0; i < p->c->artifact_paths.count; i++) {
		const char *path = NULL;
		if (paths_inside(p->c->artifact_paths.items[i], a, &path, err) < 0 ||
		    check_copied(p, path, err) < 0 || check_others(paths, path, err) < 0)
			return cj_wrap(err, "--artifact-path");
		if (strings_add(paths, a, path) < 0)
			return cj_fail(err, ENOMEM, "keep '%s'", path);
	}
	return 0;
}

int plan_value(struct planner *p, struct cj_error *err)
{
	const char *path = p->c->value_path;
	if (path && check_place(p, path, err) < 0)
		return cj_wrap(err, "--value-path");
	p->program.value_path = path;
	return 0;
}
