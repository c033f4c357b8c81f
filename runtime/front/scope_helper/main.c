/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scope-helper ID PID: asks the user's systemd for a scope around PID.  Started by
 * runtime/jail/cgroup/scope_helper.c.  Acts with the caller's rights.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "runtime/base/files/libexec_program.h"
#include "runtime/base/text.h"
#include "runtime/jail/cgroup/scope_request.h"

#define LIFE_SECONDS 20 /* a bus that never answers must not delay a run for ever */

static int enter(int argc, char **argv, struct cj_error *err)
{
	uint64_t pid;
	if (argc != 3)
		return cj_reject(err, "usage: scope-helper ID PID");
	if (parse_u64(argv[2], 1, 1u << 22, &pid, err) < 0)
		return -err->code;
	if (getppid() != (pid_t)pid) /* it ended before libexec_begin() */
		return cj_reject_as(err, ESRCH,
				    "scope-helper: the process that asked for the scope has ended");
	return scope_request_enter(argv[1], (pid_t)pid, err);
}

int main(int argc, char **argv)
{
	struct cj_error err = { 0 };
	libexec_begin(LIFE_SECONDS);
	return enter(argc, argv, &err) < 0 ? libexec_fail(&err) : EXIT_SUCCESS;
}
