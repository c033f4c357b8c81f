/* SPDX-License-Identifier: Apache-2.0 */
/* The verb run: create, start, wait, delete.  Acts. */
#include "runtime/container/container/container.h"

#include "runtime/container/container/container_delete.h"
#include "runtime/container/container/container_start.h"
#include "runtime/container/create/creation.h"
#include "runtime/container/foreground.h"

/* The process that writes the result reads the exit status from the zombie, on kernels before 6.15.
 */
static void await_result(void *context)
{
	const struct creation *c = context;
	struct cj_error late = { 0 };

	(void)!state_await_file(&c->state, STATE_RESULT, &late); /* then it has no status */
}

/* A service manager believes its main process only, which is this one: systemd.exec(5),
 * NotifyAccess=. */
static void relay(void *context, int fd)
{
	struct creation *c = context;

	notify_relay_wait(&c->notify, fd);
}

static int start_and_wait(struct oci_call *call, struct creation *c, struct cj_error *err)
{
	if (container_start_init(&c->state, &c->bundle.config, err) < 0 ||
	    container_start_hooks(call->options, &c->bundle.config, &c->state, err) < 0)
		return -err->code;
	if (call->options->is_detached)
		return 0;
	const struct foreground_calls calls = { relay, await_result, c };
	if (foreground_wait(c->init_pid, &calls, &call->exit_status, err) < 0)
		return -err->code;
	c->init_pid = 0;
	return 0;
}

int container_run(struct oci_call *call, struct cj_error *err)
{
	struct creation c;

	if (!call->options->is_detached && foreground_prepare(err) < 0)
		return -err->code;
	if (creation_make(call, &c, err) < 0)
		return -err->code;
	int rc = start_and_wait(call, &c, err);
	if (rc < 0)
		creation_undo(&c);
	else if (!call->options->is_detached && !call->options->keep)
		rc = container_delete_all(call->options, &c.state, call->arena, err);
	creation_close(&c);
	return rc;
}
