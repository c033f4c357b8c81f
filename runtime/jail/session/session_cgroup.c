/* SPDX-License-Identifier: Apache-2.0 */
/* The cgroups of a session below its jail's.  Acts. */
#include "runtime/jail/session/session_state.h"

void session_cgroup_begin(struct session *s)
{
	(void)s;
}

void session_cgroup_add(struct session *s, struct cgroup *out)
{
	(void)s;
	*out = CGROUP_NULL;
}

int session_cgroup_join(const struct cgroup *leaf, pid_t pid)
{
	(void)leaf, (void)pid;
	return -ENOSYS;
}

void session_cgroup_end(struct session *s)
{
	(void)s;
}
