/* SPDX-License-Identifier: Apache-2.0 */
/* Copies a run's artefacts out when all of its processes are dead. */
#include "runtime/jail/jail.h"

#include <time.h>

#include "profiles/paths.h"
#include "rootfs/files/artifacts.h"
#include "rootfs/files/jail_file.h"
#include "rootfs/files/return_value.h"
#include "runtime/base/scope.h"
#include "runtime/jail/jail_state.h"

/* The innermost writable tree that contains the path: an overlay, or else /box. */
static struct artifact_place find_place(const struct jail *j, const char *path)
{
	const struct rootfs_spec *root = &j->root;
	struct artifact_place place = { .dir_fd = j->handles.box_fd, .path = path };
	const char *top = NULL;
	for (size_t i = 0, n = 0; i < root->nbinds && n < j->handles.noverlays; i++) {
		if (root->binds[i].kind != BIND_OVERLAY)
			continue;
		int fd = j->handles.overlay_fds[n++];
		const char *target = root->binds[i].target;
		if (!paths_is_below(path, target) || (top && strlen(target) < strlen(top)))
			continue;
		top = target;
		place.dir_fd = fd;
	}
	place.inside = path + strlen(top ? top : "/box") + 1;
	return place;
}

static int find_all(const struct jail *j, struct arena *a, struct artifacts_from *out,
		    struct cj_error *err)
{
	const struct strings *paths = &j->run.program->artifact_paths;
	struct artifact_place *places = arena_array(a, paths->count + 1, sizeof(*places));
	if (!places)
		return cj_fail(err, ENOMEM, "list the artefacts");
	for (size_t i = 0; i < paths->count; i++)
		places[i] = find_place(j, paths->items[i]);
	*out = (struct artifacts_from){ j->handles.box_fd, places, paths->count, { 0 } };
	/* st_ctime, which no program can set, is never before what that clock said at the start.  A
	 * virtual machine that waits for a processor stops it for many of its ticks. */
	if (j->run.program->collects_changed)
		out->since = j->run.started_tick;
	return 0;
}

int jail_collect(struct jail *j, int dest_fd, uint64_t max_bytes, struct outcome *out,
		 struct cj_error *err)
{
	struct artifacts_from from;
	if (find_all(j, &out->arena, &from, err) < 0)
		return -err->code;
	return dest_fd >= 0 ? artifacts_collect(&from, dest_fd, &out->arena, &out->artifacts, err)
			    : artifacts_keep(&from, max_bytes, &out->arena, &out->artifacts, err);
}

void jail_read_value(const struct jail *j, struct outcome *out)
{
	const char *path = j->run.program->value_path;
	struct cj_error err = { 0 };

	if (!path)
		return;
	const struct artifact_place place = find_place(j, path);
	if (return_value_read(&place, &out->arena, &out->value, &err) < 0)
		outcome_warn(out, "the return value in '%s' is not used: %s", path, err.msg);
}

void jail_forget_value(const struct jail *j, const char *path)
{
	auto_arena struct arena a = { 0 };
	const struct artifact_place place = find_place(j, path);
	const char *name = NULL;
	auto_fd int parent_fd = jail_file_parent(place.dir_fd, place.inside, &a, &name);
	auto_fd int fd = parent_fd < 0 ? -1 : jail_file_look(parent_fd, name);

	if (fd >= 0) /* and it is no mount of the jail, which this would remove */
		(void)unlinkat(parent_fd, name, 0);
}
