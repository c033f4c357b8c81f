/* SPDX-License-Identifier: Apache-2.0 */
/* The verb delete.  Acts. */
#include "runtime/container/container/container_delete.h"

#include <poll.h>
#include <signal.h>

#include "runtime/base/scope.h"
#include "runtime/base/sys.h"
#include "runtime/container/container/container.h"
#include "runtime/container/container/container_config.h"
#include "runtime/container/container/container_hooks.h"
#include "runtime/container/oci_log.h"

#define END_WAIT_MS 10000 /* a process that can't be killed sits in the kernel */

/* Zombies count as ended: their parent is the engine. */
static int end_init(const struct state *s, struct cj_error *err)
{
	struct cj_error ended = { 0 };
	auto_fd int pidfd = state_open_init(s, &ended);

	if (pidfd < 0) {
		if (ended.code == ESRCH)
			return 0;
		*err = ended;
		return -err->code;
	}
	if (sys_pidfd_send_signal(pidfd, SIGKILL) < 0 && errno != ESRCH)
		return cj_fail(err, errno, "kill the container '%s'", s->id);
	struct pollfd end = { .fd = pidfd, .events = POLLIN };
	if (poll(&end, 1, END_WAIT_MS) != 1)
		return cj_fail(err, ETIMEDOUT, "wait for the end of the container '%s'", s->id);
	return 0;
}

static int remove_cgroup(const struct state *s, struct cj_error *err)
{
	auto_container_cgroup struct container_cgroup cgroup = CONTAINER_CGROUP_NULL;

	if (container_cgroup_open(&s->record.cgroup, &cgroup, err) < 0)
		return -err->code;
	return container_cgroup_remove(&cgroup, err);
}

/* The container is gone: a failure is a warning, as the specification says. */
static void run_poststop(const struct oci_options *o, const struct state *s, struct arena *a)
{
	struct cj_error failed = { 0 };
	struct oci_config config;

	if (container_config_stored(s, a, &config, &failed) < 0)
		oci_log_warning(o, &failed);
	else
		container_hooks_run_each(o, &config, OCI_HOOK_POSTSTOP, s, STATE_STOPPED);
}

/* Who writes it reads the cgroup.  The result must not keep a container from being removed. */
static void await_result(const struct oci_options *o, const struct state *s)
{
	struct cj_error late = { 0 };

	if (state_await_file(s, STATE_RESULT, &late) < 0)
		oci_log_warning(o, &late);
}

int container_delete_all(const struct oci_options *o, struct state *s, struct arena *a,
			 struct cj_error *err)
{
	if (!s->is_lost) {
		if (end_init(s, err) < 0)
			return -err->code;
		await_result(o, s);
		if (remove_cgroup(s, err) < 0 || rdt_remove_recorded(&s->record.rdt, err) < 0)
			return -err->code;
		if (s->record.pid > 0) /* hooks of create may have run, also if it was killed */
			run_poststop(o, s, a);
	}
	return state_remove(s, err);
}

/*
 * Before the lock: a command that waits for init, or init itself, may be stopped while it has it.
 * What can't be read or killed here is reported under the lock.
 */
static void kill_unlocked(const struct oci_options *o, struct arena *a)
{
	struct cj_error later = { 0 };
	auto_state struct state s = STATE_NULL;
	auto_container_cgroup struct container_cgroup cgroup = CONTAINER_CGROUP_NULL;

	if (state_open(o, false, a, &s, &later) < 0)
		return;
	auto_fd int pidfd = state_open_init(&s, &later);
	if (pidfd >= 0)
		(void)sys_pidfd_send_signal(pidfd, SIGKILL); /* it may have ended */
	if (container_cgroup_open(&s.record.cgroup, &cgroup, &later) == 0 && cgroup.dir_fd >= 0)
		(void)!container_cgroup_kill(&cgroup, SIGKILL, &later);
}

/* Without --force only what does not run. */
static int check_status(const struct state *s, struct cj_error *err)
{
	enum state_status status = state_status_of(s);

	if (status == STATE_STOPPED || status == STATE_CREATED)
		return 0;
	int rc = cj_reject(err, "cannot delete container '%s' that is not stopped: %s", s->id,
			   state_status_name(status));
	cj_hint(err, "delete --force kills it");
	return rc;
}

int container_delete(struct oci_call *call, struct cj_error *err)
{
	const struct oci_options *o = call->options;
	auto_state struct state s = STATE_NULL;

	if (o->force)
		kill_unlocked(o, call->arena);
	int rc = o->force ? state_open_any(o, call->arena, &s, err)
			  : state_open(o, true, call->arena, &s, err);

	if (rc == -ENOENT && o->force) {
		*err = (struct cj_error){ 0 };
		return 0;
	}
	if (rc < 0 || (!o->force && check_status(&s, err) < 0))
		return -err->code;
	return container_delete_all(o, &s, call->arena, err);
}
