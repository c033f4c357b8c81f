/* SPDX-License-Identifier: Apache-2.0 */
/* Error messages for a program that could not be executed.  Pure. */
#include "runtime/run/report/explain.h"

static const char *exec_hint(int code)
{
	switch (code) {
	case ENOENT:
		return "the jail has the /usr of this host, or the files of --rootfs and --ro-bind; "
		       "for a script, its interpreter may be missing";
	case EACCES:
		return "it is not executable, or its directory is mounted noexec in the jail";
	case ENOEXEC:
		return "it is neither a program for this machine nor a script with a #! line";
	default:
		return NULL;
	}
}

void explain_exec_failure(struct outcome *o, const char *command)
{
	const char *hint = exec_hint(o->exec_errno);
	(void)!cj_fail(&o->error, o->exec_errno, "execute '%s'", command);
	cj_stage(&o->error, "exec");
	if (hint)
		cj_hint(&o->error, "%s", hint);
}
