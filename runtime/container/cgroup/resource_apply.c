/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/container/cgroup/resource_limits.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/files/system_file.h"
#include "runtime/kernel/cgroup/cgroup.h"
#include "runtime/kernel/cgroup/cgroup_parent.h"
#include "runtime/kernel/cgroup/cgroup_tree.h"
#include "runtime/kernel/cgroup/cgroup_text.h"

const struct resource_write *resource_first_limit(const struct resource_writes *writes)
{
	for (size_t i = 0; i < writes->count; i++)
		if (!writes->items[i].is_optional &&
		    strcmp(writes->items[i].controller, "cgroup") != 0)
			return &writes->items[i];
	return NULL;
}

/* The write that needs the controller; NULL: none does. */
static const struct resource_write *needs(const struct resource_writes *writes, const char *name)
{
	for (size_t i = 0; i < writes->count; i++)
		if (!writes->items[i].is_optional && strcmp(writes->items[i].controller, name) == 0)
			return &writes->items[i];
	return NULL;
}

int resource_hint(const char *controller, struct cj_error *err)
{
	struct cgroup_self self;
	bool is_on_v1 = cgroup_self_read(0, &self) == 0 &&
			self.on_v1[CGROUP_MEMORY]; /* the others go with it */
	for (size_t i = 0; i < CGROUP_CONTROLLER_COUNT; i++)
		if (strcmp(cgroup_controller_names[i], controller) == 0)
			is_on_v1 = self.on_v1[i];
	if (is_on_v1)
		return cj_hint(err,
			       "this host mounts the cgroup v1 controllers: boot with "
			       "systemd.unified_cgroup_hierarchy=1, ask for no such limit, or use "
			       "--cgroup-manager disabled");
	return cj_hint(err,
		       "enable the controller '%s' above, or name it in the unit's Delegate=; else "
		       "ask for no such limit, or use --cgroup-manager disabled",
		       controller);
}

/* --- controllers ---------------------------------------------------------------------- */

static int reject_busy(const char *path, const struct resource_write *user, struct cj_error *err)
{
	cj_refuse_as(err, EBUSY,
		     "linux.resources.%s: '%.200s' contains processes, so that its "
		     "children get no controller '%s'",
		     user->field, path, user->controller);
	return cj_hint(err, "see cgroups(7), no internal processes; choose another cgroupsPath, or "
			    "start cejail-oci in a unit with Delegate=yes");
}

static int enable_one(int dir_fd, const char *path, const char *name,
		      const struct resource_write *user, struct cj_error *err)
{
	char word[64];
	(void)snprintf(word, sizeof(word), "+%.60s", name);
	int rc = system_file_write(dir_fd, "cgroup.subtree_control", word);
	if (rc == 0 || !user)
		return 0; /* nobody needs it; its counters will be missing */
	rc = cj_fail(err, -rc, "linux.resources.%s: enable the controller '%s' in '%.200s'",
		     user->field, name, path);
	(void)resource_hint(name, err);
	return rc;
}

int resource_enable(int dir_fd, const char *path, const struct resource_writes *writes,
		    struct cj_error *err)
{
	/* Engines read their counters and update their limits.  The others are for a limit only. */
	static const char for_counters[] = "cpuset cpu io memory pids";
	char available[SYSTEM_FILE_SMALL], enabled[SYSTEM_FILE_SMALL], *rest = available;
	if (!cgroup_tree_read(dir_fd, "cgroup.controllers", available) ||
	    !cgroup_tree_read(dir_fd, "cgroup.subtree_control", enabled))
		return 0; /* what is needed fails later, by its file */
	/*
	 * Only the root of all cgroups may contain processes beside children with controllers.  Any
	 * other would become a threaded domain by some controllers, and its children would take no
	 * process: cgroups(7), "Thread mode".
	 */
	pid_t pid;
	bool is_busy = faccessat(dir_fd, "cgroup.type", F_OK, 0) == 0 &&
		       cgroup_tree_own_pids(dir_fd, &pid, 1) > 0;
	for (const char *name; (name = strsep(&rest, " \n")) != NULL;) {
		const struct resource_write *user = needs(writes, name);
		if (*name == '\0' || cgroup_text_has_word(enabled, name) ||
		    (!user && (is_busy || !cgroup_text_has_word(for_counters, name))))
			continue;
		int rc = is_busy ? reject_busy(path, user, err)
				 : enable_one(dir_fd, path, name, user, err);
		if (rc < 0)
			return rc;
	}
	return 0;
}

/* --- limits ------------------------------------------------------------------------------ */

static int apply(int dir_fd, const struct resource_write *w, struct cj_error *err)
{
	const char *file = w->file, *value = w->value;
	int rc = system_file_write(dir_fd, file, value);
	if (rc == -ENOENT && w->other_file) {
		file = w->other_file;
		value = w->other_value;
		rc = system_file_write(dir_fd, file, value);
	}
	/* Without swap accounting there is no file.  On a host without swap nothing is lost by
	 * that. */
	bool is_swap = strcmp(w->file, "memory.swap.max") == 0;
	if (rc == 0 || (rc == -ENOENT && (w->is_optional || (is_swap && !cgroup_host_has_swap()))))
		return 0;
	if (rc != -ENOENT)
		return cj_fail(err, -rc, "linux.resources.%s: write '%.100s' to '%s'", w->field,
			       value, file);
	rc = cj_reject_as(err, ENOENT,
			  "linux.resources.%s can't be enforced: the cgroup has no '%s'", w->field,
			  file);
	return rc < 0 ? resource_hint(w->controller, err) : rc;
}

int resource_apply(int dir_fd, const struct resource_writes *writes, struct cj_error *err)
{
	for (size_t i = 0; i < writes->count; i++) {
		int rc = apply(dir_fd, &writes->items[i], err);
		if (rc < 0)
			return rc;
	}
	return 0;
}

int resource_check_usage(int dir_fd, const struct oci_resources *resources, struct cj_error *err)
{
	uint64_t used;
	const struct oci_memory *m = &resources->memory;
	if (!m->check_before_update || !m->limit.is_set || m->limit.value <= 0)
		return 0;
	if (!cgroup_read_number(dir_fd, "memory.current", &used) ||
	    used <= (uint64_t)m->limit.value)
		return 0;
	return cj_reject_as(err, EBUSY,
			    "linux.resources.memory.limit: %" PRId64 " is below the %" PRIu64
			    " bytes in use, and checkBeforeUpdate is set",
			    m->limit.value, used);
}
