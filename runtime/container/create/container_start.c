/* SPDX-License-Identifier: Apache-2.0 */
/* The verbs start and run. */
#include "runtime/container/create/creation.h"

#include "runtime/base/scope.h"
#include "runtime/container/call/caller.h"

/*
 * Lets init go on.  Returns when the program is executed, or with init's error.
 *
 * Fails: EINVAL when the container is not in the state "created"; ETIMEDOUT when init does nothing
 *        for container_hooks_wait_ms().  No program runs after a failure.
 */
static int start_init(const struct state *s, const struct oci_config *config, struct cj_error *err)
{
	enum state_status status = state_status_of(s);

	if (status != STATE_CREATED)
		return cj_reject(err, "cannot start container '%s' in the state '%s'", s->id,
				 state_status_name(status));
	auto_fd int fd = state_socket_connect(s, err);
	if (fd < 0)
		return fd;
	const struct step_link link = { fd, "the container's init", creation_step_names };
	step_limit_wait(fd, container_hooks_wait_ms(config, OCI_HOOK_START_CONTAINER));
	if (step_say(&link, CREATION_START, err) < 0)
		return -err->code;
	if (step_await(&link, CREATION_STARTING, NULL, err) < 0)
		return -err->code;
	int rc = process_await(&link, "start the container", err);
	if (rc == -ETIMEDOUT)
		state_kill_init(s); /* no program runs whose start has failed */
	return rc;
}

/*
 * The hooks poststart.  A failure is a warning for a configuration before version 1.3 of the
 * specification.  From 1.3 on it is an error, after which the caller kills the container.
 */
static int run_poststart(const struct oci_options *o, const struct oci_config *config,
			 const struct state *s, struct cj_error *err)
{
	if (oci_config_is_since_1_3(config))
		return container_hooks_run(o, config, OCI_HOOK_POSTSTART, s, STATE_RUNNING, err);
	container_hooks_run_each(o, config, OCI_HOOK_POSTSTART, s, STATE_RUNNING);
	return 0;
}

/* As the specification wants it from version 1.3 on.  A hook may have done so before. */
static void delete_started(struct oci_call *call, const struct state *started)
{
	auto_state struct state s = STATE_NULL;
	struct cj_error later = { 0 };

	state_kill_init(started);
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
	    start_init(&s, &config, err) < 0)
		return -err->code;
	state_unlock(&s); /* a hook may delete the container */
	if (run_poststart(call->options, &config, &s, err) < 0) {
		delete_started(call, &s);
		return -err->code;
	}
	return 0;
}

/* The process that writes the result reads the exit status from the zombie, on kernels before 6.15.
 */
static void await_result(void *context)
{
	const struct creation *c = context;
	struct cj_error late = { 0 };

	(void)!state_await_result(&c->state, &late); /* then it has no status */
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
	if (start_init(&c->state, &c->bundle.config, err) < 0 ||
	    run_poststart(call->options, &c->bundle.config, &c->state, err) < 0)
		return -err->code;
	if (call->options->is_detached)
		return 0;
	const struct caller_wait_calls calls = { relay, await_result, c };
	if (caller_wait(c->init_pid, &calls, &call->exit_status, err) < 0)
		return -err->code;
	c->init_pid = 0;
	return 0;
}

int container_run(struct oci_call *call, struct cj_error *err)
{
	struct creation c;

	if (!call->options->is_detached && caller_block_signals(err) < 0)
		return -err->code;
	if (creation_make(call, &c, err) < 0)
		return -err->code;
	int rc = start_and_wait(call, &c, err);
	bool stays = rc == 0;
	if (stays && !call->options->is_detached && !call->options->keep)
		rc = container_delete_all(call->options, &c.state, call->arena, err);
	creation_leave(&c, stays);
	return rc;
}
