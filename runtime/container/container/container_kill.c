/* SPDX-License-Identifier: Apache-2.0 */
/* The verb kill.  Acts. */
#include "runtime/container/container/container.h"

#include <signal.h>

#include "runtime/base/scope.h"
#include "runtime/base/sys.h"
#include "runtime/container/container/container_signal.h"
#include "runtime/container/state/state.h"

/* Without the lock: a hook of create or start may call it. */
static int signal_init(const struct state *s, int number, struct cj_error *err)
{
	auto_fd int pidfd = state_open_init(s, err);

	if (pidfd < 0)
		return pidfd;
	if (sys_pidfd_send_signal(pidfd, number) == 0)
		return 0;
	if (errno == ESRCH)
		return state_reject_stopped(s, err);
	return cj_fail(err, errno, "send signal %d to the container '%s'", number, s->id);
}

/* By the cgroup, also when init has died and others live, in a shared pid namespace. */
static int signal_all(const struct state *s, int number, struct cj_error *err)
{
	auto_container_cgroup struct container_cgroup cgroup = CONTAINER_CGROUP_NULL;

	if (container_cgroup_open(&s->record.cgroup, &cgroup, err) < 0)
		return -err->code;
	if (cgroup.dir_fd < 0) /* no cgroup: what init is not the parent of can't be found */
		return signal_init(s, number, err);
	if (!container_cgroup_is_populated(&cgroup))
		return state_reject_stopped(s, err);
	return container_cgroup_kill(&cgroup, number, err);
}

int container_kill(struct oci_call *call, struct cj_error *err)
{
	const struct oci_options *o = call->options;
	auto_state struct state s = STATE_NULL;
	int number = SIGTERM;

	if (o->operands.count > 0 && container_signal_parse(o->operands.items[0], &number, err) < 0)
		return -err->code;
	if (state_open(o, false, call->arena, &s, err) < 0)
		return -err->code;
	return o->all ? signal_all(&s, number, err) : signal_init(&s, number, err);
}
