/* SPDX-License-Identifier: Apache-2.0 */
/* The verb start.  Acts. */
#include "runtime/container/container/container_start.h"

#include <string.h>

#include "runtime/base/scope.h"
#include "runtime/base/step.h"
#include "runtime/base/sys.h"
#include "runtime/container/container/container.h"
#include "runtime/container/container/container_config.h"
#include "runtime/container/container/container_delete.h"
#include "runtime/container/container/container_hooks.h"
#include "runtime/container/create/creation.h"
#include "runtime/container/oci_log.h"
#include "runtime/container/state/state_socket.h"

static int check_created(const struct state *s, struct cj_error *err)
{
	enum state_status status = state_status_of(s);

	if (status == STATE_CREATED)
		return 0;
	return cj_reject(err, "cannot start container '%s' in the state '%s'", s->id,
			 state_status_name(status));
}

/* No program runs whose start has failed. */
static void kill_late(const struct state *s)
{
	struct cj_error ended = { 0 };
	auto_fd int pidfd = state_open_init(s, &ended);

	if (pidfd >= 0)
		(void)sys_pidfd_send_signal(pidfd, SIGKILL); /* it may have ended */
}

int container_start_init(const struct state *s, const struct oci_config *config,
			 struct cj_error *err)
{
	auto_step_msg struct step_msg msg = { 0 };

	if (check_created(s, err) < 0)
		return -err->code;
	auto_fd int fd = state_socket_connect(s, err);
	if (fd < 0)
		return fd;
	const struct step_link link = { fd, "the container's init", creation_step_names };
	step_limit_wait(fd, container_hooks_wait_ms(config, OCI_HOOK_START_CONTAINER));
	if (step_tell(&link, CREATION_START, NULL, 0, NULL, 0, err) < 0)
		return -err->code;
	if (step_await(&link, CREATION_STARTING, &msg, err) < 0)
		return -err->code;
	int rc = process_await(&link, "start the container", err);
	if (rc == -ETIMEDOUT)
		kill_late(s);
	return rc;
}

int container_start_hooks(const struct oci_options *o, const struct oci_config *config,
			  const struct state *s, struct cj_error *err)
{
	if (oci_config_is_since(config, 3))
		return container_hooks_run(o, config, OCI_HOOK_POSTSTART, s, STATE_RUNNING, err);
	container_hooks_run_each(o, config, OCI_HOOK_POSTSTART, s, STATE_RUNNING);
	return 0;
}

/* As the specification wants it from version 1.3 on.  A hook may have done so before. */
static void delete_started(struct oci_call *call, const struct state *started)
{
	auto_state struct state s = STATE_NULL;
	struct cj_error later = { 0 };

	kill_late(started);
	if (state_open(call->options, true, call->arena, &s, &later) == 0) {
		if (s.record.pid != started->record.pid ||
		    s.record.pid_start != started->record.pid_start)
			return; /* a new container with the same id */
		(void)!container_delete_all(call->options, &s, call->arena, &later);
	}
	if (later.code != 0 && later.code != ENOENT)
		oci_log_warning(call->options, &later);
}

int container_start(struct oci_call *call, struct cj_error *err)
{
	auto_state struct state s = STATE_NULL;
	struct oci_config config;

	if (state_open(call->options, true, call->arena, &s, err) < 0 ||
	    container_config_stored(&s, call->arena, &config, err) < 0 ||
	    container_start_init(&s, &config, err) < 0)
		return -err->code;
	state_unlock(&s); /* a hook may delete the container */
	if (container_start_hooks(call->options, &config, &s, err) < 0) {
		delete_started(call, &s);
		return -err->code;
	}
	return 0;
}
