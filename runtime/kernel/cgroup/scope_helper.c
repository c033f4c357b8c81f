/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the helper that asks systemd.  Acts. */
#include "runtime/kernel/cgroup/scope_helper.h"

#include <stdio.h>
#include <unistd.h>

#include "runtime/base/files/libexec_run.h"
#include "runtime/kernel/cgroup/user_bus.h"

bool scope_helper_is_there(void)
{
	return user_bus_is_there();
}

/* The arguments are those of runtime/front/helpers/scope_main.c. */
static int run(const char *const *args, struct cj_error *err)
{
	const struct libexec_call call = {
		.name = "scope-helper",
		.what = "the helper that asks systemd",
		.args = args,
	};
	return libexec_run(&call, err) < 0 ? -err->code : 0;
}

static const char *put_pid(char out[static 16], pid_t pid)
{
	(void)snprintf(out, 16, "%d", (int)pid);
	return out;
}

static const char *manager_of(const struct container_scope *scope)
{
	return scope->is_system ? "system" : "user";
}

int scope_helper_enter(const char *id, struct cj_error *err)
{
	char pid[16], unit[64];
	(void)snprintf(unit, sizeof(unit), "cejail-%s.scope", id);
	return run((const char *const[]){ "enter", "user", unit, put_pid(pid, getpid()), NULL },
		   err);
}

int scope_helper_start(const struct container_scope *scope, struct cj_error *err)
{
	char pid[16];
	return run((const char *const[]){ "start", manager_of(scope), scope->unit,
					  put_pid(pid, getpid()), scope->slice, NULL },
		   err);
}

int scope_helper_attach(const struct container_scope *scope, const char *child, pid_t pid,
			struct cj_error *err)
{
	char text[16];
	return run((const char *const[]){ "attach", manager_of(scope), scope->unit,
					  put_pid(text, pid), child, NULL },
		   err);
}

int scope_helper_stop(const struct container_scope *scope, struct cj_error *err)
{
	return run((const char *const[]){ "stop", manager_of(scope), scope->unit, NULL }, err);
}
