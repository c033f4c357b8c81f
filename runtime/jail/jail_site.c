/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/jail/jail_site.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "runtime/base/child.h"
#include "runtime/base/scope.h"
#include "runtime/kernel/cgroup/cgroup_parent.h"

#define WAYS_MAX 8

/* It makes a parent for each jail, and may answer late, so it is not asked here. */
static bool is_of_user_manager(void)
{
	struct cgroup_parent_report ways[WAYS_MAX];
	size_t count = cgroup_parent_reports(ways, WAYS_MAX), i = 0;
	while (i < count && !ways[i].serves)
		i++;
	return i < count && strcmp(ways[i].name, "user manager") == 0;
}

void jail_site_find(struct jail_site *out, const char *id)
{
	struct cj_error ignored = { 0 }; /* each jail tries again, and says why it has none */
	struct cgroup found;
	struct stat st;

	*out = JAIL_SITE_NULL;
	if (is_of_user_manager() || cgroup_find(NULL, id, &found, &ignored) < 0)
		return;
	char *slash = strrchr(found.path, '/');
	if (found.parent_fd < 0 || !slash || fstat(found.parent_fd, &st) < 0) {
		cgroup_close(&found);
		return;
	}
	*slash = '\0';
	out->cgroup = found;
	out->dev = st.st_dev;
	out->ino = st.st_ino;
}

void jail_site_close(struct jail_site *s)
{
	cgroup_close(&s->cgroup);
}

/* The kernel uses no inode number of a cgroup twice. */
static bool is_still_there(const struct jail_site *s)
{
	struct stat st;
	return lstat(s->cgroup.path, &st) == 0 && st.st_dev == s->dev && st.st_ino == s->ino;
}

bool jail_site_cgroup(const struct jail_site *s, const char *id, struct cgroup *out)
{
	if (!s || s->cgroup.parent_fd < 0 || !cgroup_text_is_leaf_id(id) || !is_still_there(s))
		return false;
	struct cgroup found = s->cgroup;
	int size = snprintf(found.path, sizeof(found.path), "%s/" CGROUP_LEAF_PREFIX "%s",
			    s->cgroup.path, id);
	if (size < 0 || (size_t)size >= sizeof(found.path))
		return false;
	found.parent_fd = fcntl(s->cgroup.parent_fd, F_DUPFD_CLOEXEC, 0);
	if (found.parent_fd < 0)
		return false;
	*out = found;
	return true;
}

uint64_t jail_site_signals(const struct jail_site *s)
{
	return s && s->changed_signals != UINT64_MAX ? s->changed_signals : child_changed_signals();
}
