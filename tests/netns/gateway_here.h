/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gateway_here - the gateway's program as a fork of the test, whose functions a test can wrap.
 *
 * A test program includes this once, and wraps libexec_start.
 */
#pragma once

#include "netns/gateway.h"
#include "runtime/base/child.h"
#include "runtime/base/files/libexec.h"

static bool has_program; /* the program that was built instead; then libexec_find is wrapped, too */

static int become_gateway(const struct libexec_program *program, pid_t parent)
{
	struct cj_error err = { 0 };
	int fds[CHILD_FDS_MAX];
	memcpy(fds, program->fds, program->count * sizeof(fds[0]));
	if (child_die_with_parent(-1, &err) < 0 || getppid() != parent ||
	    child_start_session(&err) < 0 || child_reset(fds, program->count, &err) < 0)
		return 1;
	if (strcmp(program->args[1], "loader") == 0)
		gateway_run_loader(CHILD_FIRST_FD);
	if (strcmp(program->args[1], "log") == 0)
		return gateway_run_log();
	const struct gateway_wants wants = { .has_dns = strcmp(program->args[2], "dns") == 0,
					     .has_proxy = strcmp(program->args[3], "proxy") == 0 };
	return gateway_run(&wants);
}

pid_t __real_libexec_start(const struct libexec_program *program, int *out_pidfd,
			   struct cj_error *err);
pid_t __wrap_libexec_start(const struct libexec_program *program, int *out_pidfd,
			   struct cj_error *err);
pid_t __wrap_libexec_start(const struct libexec_program *program, int *out_pidfd,
			   struct cj_error *err)
{
	const pid_t self = getpid();
	if (has_program)
		return __real_libexec_start(program, out_pidfd, err);
	pid_t pid = child_fork(out_pidfd);
	if (pid == 0)
		_exit(become_gateway(program, self));
	return pid < 0 ? cj_fail(err, errno, "start the gateway") : pid;
}
