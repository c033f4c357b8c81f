/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gateway_here - the gateway's program as a fork of the test, whose functions a test can wrap.
 *
 * A test program includes this once, and wraps libexec_become.
 */
#pragma once

#include <string.h>
#include <unistd.h>

#include "netns/gateway.h"
#include "runtime/base/child.h"
#include "runtime/base/files/libexec.h"

static bool has_program; /* the program that was built instead; then libexec_find is wrapped, too */

int __real_libexec_become(const struct libexec_program *program, struct cj_error *err);
int __wrap_libexec_become(const struct libexec_program *program, struct cj_error *err);
int __wrap_libexec_become(const struct libexec_program *program, struct cj_error *err)
{
	if (has_program)
		return __real_libexec_become(program, err);
	if (child_start_session(err) < 0 || child_reset(program->fds, program->count, err) < 0)
		return -err->code;
	if (strcmp(program->argv[2], "loader") == 0)
		gateway_run_loader(CHILD_FIRST_FD);
	if (strcmp(program->argv[2], "log") == 0)
		_exit(gateway_run_log());
	const struct gateway_wants wants = { .has_dns = strcmp(program->argv[3], "dns") == 0,
					     .has_proxy = strcmp(program->argv[4], "proxy") == 0 };
	_exit(gateway_run(&wants));
}
