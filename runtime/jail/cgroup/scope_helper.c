/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the helper that asks the user's systemd.  Acts. */
#include "runtime/jail/cgroup/scope_helper.h"

#include <stdio.h>
#include <unistd.h>

#include "runtime/base/files/libexec_run.h"
#include "runtime/jail/cgroup/user_bus.h"

bool scope_helper_is_there(void)
{
	return user_bus_is_there();
}

int scope_helper_enter(const char *id, struct cj_error *err)
{
	char pid_text[16];
	(void)snprintf(pid_text, sizeof(pid_text), "%d", getpid());
	const char *const args[] = { id, pid_text, NULL };
	const struct libexec_call call = {
		.name = "scope-helper",
		.what = "the user manager's helper",
		.args = args,
	};
	return libexec_run(&call, err) < 0 ? -err->code : 0;
}
