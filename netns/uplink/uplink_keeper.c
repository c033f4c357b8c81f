/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keeper of a helper.
 *
 * Theory of operation
 *
 *	supervisor              intermediate process          keeper                helper
 *
 *	clone3 ---------------> dies with the supervisor
 *	                        joins the gateway's user
 *	                        namespace, becomes its user
 *	                        clone3 (CLONE_PARENT) ------> pid 1 of a new pid
 *	                        joins the gateway's network   namespace, own root
 *	                        namespace, makes the tap                 
 *	                        device                      clone3 -------------> waits
 *	<--- started, pidfd --- "the device is there" ----------------------------> waits
 *	reaps the intermediate  ends                          drops all
 *	process                                               capabilities -------> execve with the
 *	                                                                            capabilities it
 *	                                                                            needs; attaches
 *	pidfd is readable <------- exit, last output -------- reads stderr <------- ends
 *
 * A process that has joined a user namespace can't leave it, so an intermediate process joins.  By
 * CLONE_PARENT the keeper is still the supervisor's child.  The keeper is created before the
 * intermediate process leaves the caller's network namespace, and before the device is made: both
 * work at the same time.  The supervisor learns of the keeper when the device is there.  From then
 * on only the helper can give it a carrier.
 *
 * When the supervisor has killed and reaped the keeper, the kernel has ended all processes of its
 * pid namespace: pid_namespaces(7).  The device stays, without carrier, until the gateway's network
 * namespace ends.
 *
 * The keeper ends with the supervisor in two ways: PR_SET_PDEATHSIG, and the end of the link.
 * Keeper and helper stay in the caller's network namespace: there the helper makes its sockets.
 */
#include "netns/uplink/uplink_parts.h"

#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>

#include "runtime/base/child.h"
#include "runtime/base/files/fd.h"
#include "runtime/base/scope.h"
#include "runtime/base/step.h"
#include "runtime/base/sys.h"
#include "runtime/base/text.h"
#include "runtime/kernel/process/privileges.h"

#define START_TIMEOUT_MS 15000
#define EXIT_NO_HELPER   127 /* as a shell reports a missing command */

enum keeper_step {
	KEEPER_STARTED, /* intermediate -> supervisor: a pidfd of the keeper */
	KEEPER_ENDED,   /* keeper -> supervisor: struct uplink_exit */
	KEEPER_STEPS
};
static const char *const keeper_steps[KEEPER_STEPS] = {
	[KEEPER_STARTED] = "keeper has started",
	[KEEPER_ENDED] = "helper has ended",
};

struct keeper_order {
	const struct uplink_keeper_spec *spec;
	struct step_link link;
	int hold[2]; /* a pipe; the helper waits for HOLD_BYTES in it; made when it is needed */
};

/* One of the intermediate process: the tap device is there.  One of the keeper: it has dropped its
 * capabilities. */
#define HOLD_BYTES 2

void uplink_exit_add_output(struct uplink_exit *w, const char *bytes, size_t size)
{
	if (size > sizeof(w->tail)) {
		bytes += size - sizeof(w->tail);
		size = sizeof(w->tail);
	}
	size_t keep = w->size;
	if (keep > sizeof(w->tail) - size)
		keep = sizeof(w->tail) - size;
	memmove(w->tail, w->tail + (w->size - keep), keep);
	memcpy(w->tail + keep, bytes, size);
	w->size = keep + size;
}

/* No use in a message: pasta without a syslog writes the first, slirp4netns always the second. */
static bool is_noise(const char *line, size_t length)
{
	static const char *const noise[] = { "Failed to send ", "WARNING: Support for seccomp" };
	for (size_t i = 0; i < COUNT_OF(noise); i++) {
		size_t size = strlen(noise[i]);
		if (length >= size && memcmp(line, noise[i], size) == 0)
			return true;
	}
	return length == 0;
}

/* The last line that is no noise.  Returns its length; 0: there is none. */
static size_t last_line(const char *text, size_t size, const char **out)
{
	for (size_t end = size; end > 0;) {
		size_t start = end;
		while (start > 0 && text[start - 1] != '\n')
			start--;
		if (!is_noise(text + start, end - start)) {
			*out = text + start;
			return end - start;
		}
		end = start > 0 ? start - 1 : 0;
	}
	return 0;
}

void uplink_exit_format(const struct uplink_exit *w, char *out, size_t size)
{
	const char *line = NULL;
	char shown[256] = "";
	size_t kept = w->size < sizeof(w->tail) ? w->size : sizeof(w->tail);
	size_t length = last_line(w->tail, kept, &line);
	if (length > 0)
		(void)text_escape(line, length, false, shown, sizeof(shown));

	const char *how = w->code == CLD_EXITED ? "exit status" : "signal";
	(void)snprintf(out, size, "%s %d%s%s%s", how, w->status, length > 0 ? ": '" : "", shown,
		       length > 0 ? "'" : "");
}

/* From here: the helper, until it is executed. */

/* All other descriptors are O_CLOEXEC. */
static void helper_exec(struct keeper_order *o, int netns_fd, int stderr_fd)
{
	char *const no_environment[] = { NULL };
	struct cj_error err;

	if (dup2(stderr_fd, STDERR_FILENO) < 0 || dup2(netns_fd, STDIN_FILENO) < 0)
		_exit(EXIT_NO_HELPER);
	char byte;
	cj_close(&o->hold[1]); /* otherwise the end of the two others would not be seen */
	for (int i = 0; i < HOLD_BYTES; i++)
		if (sys_read(o->hold[0], &byte, 1) != 1)
			_exit(EXIT_NO_HELPER);
	if (uplink_keep_capabilities(o->spec->is_net_admin, &err) == 0) {
		(void)execve(o->spec->path, (char *const *)o->spec->argv, no_environment);
		(void)!cj_fail(&err, errno, "execute '%s'", o->spec->path);
	}
	(void)dprintf(STDERR_FILENO, "%s\n", err.msg); /* the keeper reports it */
	_exit(EXIT_NO_HELPER);
}

/* From here: the keeper. */

/* Reads what is there.  -1: end of file. */
static int read_stderr(int stderr_fd, struct uplink_exit *e)
{
	char bytes[4096];
	ssize_t got = sys_read(stderr_fd, bytes, sizeof(bytes));
	if (got > 0)
		uplink_exit_add_output(e, bytes, (size_t)got);
	return got > 0 || (got < 0 && errno == EAGAIN) ? 0 : -1;
}

static void reap_helper(int helper_fd, int stderr_fd, const struct step_link *link,
			struct uplink_exit *e)
{
	siginfo_t info = { 0 };
	(void)TEMP_FAILURE_RETRY(waitid(P_PIDFD, (id_t)helper_fd, &info, WEXITED));
	e->code = info.si_code;
	e->status = info.si_status;
	while (fd_await(stderr_fd, POLLIN, 0) && read_stderr(stderr_fd, e) == 0)
		;
	struct cj_error ignored; /* fails if the supervisor has ended: then no report is needed */
	(void)!step_tell(link, KEEPER_ENDED, e, sizeof(*e), NULL, 0, &ignored);
}

/* Returns when the helper or the supervisor has ended.  The pid namespace ends with this
 * process. */
static void watch(int helper_fd, int stderr_fd, const struct step_link *link)
{
	struct uplink_exit e = { 0 };
	struct pollfd fds[] = {
		{ .fd = link->sock_fd, .events = 0 }, /* POLLHUP */
		{ .fd = helper_fd, .events = POLLIN },
		{ .fd = stderr_fd, .events = POLLIN },
	};
	for (;;) {
		if (poll(fds, 3, -1) < 0 && errno != EINTR)
			return;
		if (fds[0].revents != 0)
			return;
		if (fds[1].revents != 0) {
			reap_helper(helper_fd, stderr_fd, link, &e);
			return;
		}
		if (fds[2].revents != 0 && read_stderr(stderr_fd, &e) < 0)
			fds[2].fd = -1; /* it closed its standard error: poll(2) skips it */
	}
}

static int spawn_helper(struct keeper_order *o, int netns_fd, int *out_stderr_fd,
			struct cj_error *err)
{
	int ends[2], helper_fd = -1;
	if (pipe2(ends, O_CLOEXEC) < 0)
		return cj_fail(err, errno, "create a pipe");

	pid_t pid = child_fork(&helper_fd);
	if (pid == 0)
		helper_exec(o, netns_fd, ends[1]);
	int code = errno;
	cj_close(&ends[1]);
	if (pid < 0) {
		cj_close(&ends[0]);
		return cj_fail(err, code, "create the helper's process");
	}
	fd_set_nonblocking(ends[0]);
	*out_stderr_fd = ends[0];
	return helper_fd;
}

static int keeper_run(struct keeper_order *o, int *netns_fd, struct cj_error *err)
{
	/* This process is pid 1 of its namespace, so killing it kills all processes in it.  The
	 * helper has our uid: a compromised helper must not ptrace(2) this process. */
	if (child_die_with_parent(o->link.sock_fd, err) < 0 || child_become_undumpable(err) < 0 ||
	    child_start_session(err) < 0)
		return -err->code;
	if (uplink_enter_root(o->spec->path, err) < 0)
		return -err->code;

	int stderr_fd = -1;
	int helper_fd = spawn_helper(o, *netns_fd, &stderr_fd, err);
	if (helper_fd < 0)
		return helper_fd;
	cj_close(netns_fd);
	cj_close(&o->hold[0]);
	/* The helper starts only then: no program runs while the keeper has a capability. */
	if (privileges_keep_only(0, err) < 0)
		return -err->code;
	if (write(o->hold[1], "", 1) < 0 && errno != EPIPE) /* it has ended: watch() reports that */
		return cj_fail(err, errno, "start the helper");
	cj_close(&o->hold[1]);
	watch(helper_fd, stderr_fd, &o->link);
	return 0;
}

/* From here: the intermediate process. */

/* Returns the gateway's network namespace. */
static int join_gateway(int gateway_fd, struct cj_error *err)
{
	/* Before setns(2), while setgroups(2) is still allowed.  EPERM: an ordinary caller keeps
	 * its groups, as in every other program that it runs. */
	if (setgroups(0, NULL) < 0 && errno != EPERM)
		return cj_fail(err, errno, "empty the list of groups");
	auto_fd int netns_fd = uplink_join_owner(gateway_fd, err);
	if (netns_fd < 0 || uplink_become_mapped(err) < 0)
		return -err->code;
	return take_fd(&netns_fd);
}

/*
 * Runs after the keeper was created: the keeper must stay in the caller's network namespace, which
 * this process leaves here.  "Started" is sent after the device was made, so a carrier that the
 * supervisor sees from then on is the helper's.
 */
static int make_tap(const struct keeper_order *o, int netns_fd, int keeper_fd, struct cj_error *err)
{
	int rc = uplink_make_tap(netns_fd, err);
	if (rc < 0) /* before "started", so the supervisor ends the keeper */
		step_abort(&o->link, err);
	if (step_tell(&o->link, KEEPER_STARTED, NULL, 0, &keeper_fd, 1, err) < 0)
		return -err->code;
	if (rc == 0 && write(o->hold[1], "", 1) < 0)
		return cj_fail(err, errno, "start the helper");
	return 0; /* step_abort() has sent a failure */
}

static int intermediate_run(struct keeper_order *o, struct cj_error *err)
{
	int kept[] = { o->spec->gateway_fd, o->link.sock_fd };
	int rc = child_reset(kept, 2, err);
	o->link.sock_fd = kept[1]; /* it has moved even after a failure, which is to be told */
	if (rc < 0 || child_die_with_parent(o->link.sock_fd, err) < 0)
		return -err->code;
	auto_fd int netns_fd = join_gateway(kept[0], err);
	if (netns_fd < 0)
		return netns_fd;
	cj_close(&kept[0]);
	if (pipe2(o->hold, O_CLOEXEC) < 0)
		return cj_fail(err, errno, "create a pipe");

	auto_fd int keeper_fd = -1;
	const struct clone_args args = {
		.flags = CLONE_PARENT | CLONE_PIDFD | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC,
		.pidfd = (uintptr_t)&keeper_fd,
	};
	pid_t pid = sys_clone3(&args);
	if (pid < 0)
		return cj_fail(err, errno, "create the keeper's namespaces");
	if (pid == 0) {
		if (keeper_run(o, &netns_fd, err) < 0)
			step_abort(&o->link, err);
		_exit(0);
	}
	return make_tap(o, netns_fd, keeper_fd, err);
}

static int await_keeper(struct uplink_keeper *k, struct cj_error *err)
{
	const struct step_link link = { k->link_fd, "the keeper", keeper_steps };
	auto_step_msg struct step_msg msg = { 0 };
	if (step_await(&link, KEEPER_STARTED, &msg, err) < 0)
		return -err->code;
	if (msg.nfds != 1)
		return cj_fail(err, EPROTO, "take over the keeper");
	k->pidfd = take_fd(&msg.fds[0]);
	return 0;
}

int uplink_keeper_start(const struct uplink_keeper_spec *spec, struct uplink_keeper *out,
			struct cj_error *err)
{
	int ends[2];
	auto_child int intermediate_fd = -1;
	if (step_pair(ends, START_TIMEOUT_MS, err) < 0)
		return -err->code;

	pid_t pid = child_fork(&intermediate_fd);
	if (pid == 0) {
		struct keeper_order o = {
			.spec = spec,
			.link = { ends[1], "the supervisor", keeper_steps },
		};
		if (intermediate_run(&o, err) < 0)
			step_abort(&o.link, err);
		_exit(0);
	}
	int code = errno;
	struct uplink_keeper k = { .pidfd = -1, .link_fd = ends[0] };
	cj_close(&ends[1]);
	int rc = pid < 0 ? cj_fail(err, code, "create the keeper") : await_keeper(&k, err);
	if (rc < 0) {
		struct cj_error ignored; /* *err has the reason */
		/* Both may fail before the intermediate process has reported the keeper's start.
		 * The keeper is still our child and must be reaped. */
		for (int more = rc; pid > 0 && more < 0 && more != -ETIMEDOUT && more != -EPIPE;)
			more = await_keeper(&k, &ignored);
		uplink_keeper_stop(&k);
		return rc;
	}
	/* It ends by itself: killed at once, it could not let the helper go on. */
	(void)fd_await(intermediate_fd, POLLIN, START_TIMEOUT_MS);
	*out = k;
	return 0;
}

void uplink_keeper_describe_exit(struct uplink_keeper *k, char *out, size_t size)
{
	const struct step_link link = { k->link_fd, "the keeper", keeper_steps };
	auto_step_msg struct step_msg msg = { 0 };
	struct cj_error err;
	struct uplink_exit e;

	if (step_await(&link, KEEPER_ENDED, &msg, &err) < 0) {
		(void)snprintf(out, size, "%s", err.msg);
		return;
	}
	memcpy(&e, msg.data, sizeof(e)); /* `data` is larger than that, whatever its size */
	if (msg.size == sizeof(e))
		uplink_exit_format(&e, out, size);
	else
		(void)snprintf(out, size, "its keeper sent an invalid report");
}

void uplink_keeper_stop(struct uplink_keeper *k)
{
	cj_close(&k->link_fd);
	cj_end_child(&k->pidfd);
}
