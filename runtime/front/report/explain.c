/* SPDX-License-Identifier: Apache-2.0 */
/* Words for what ended a run before it began.  Pure. */
#include "runtime/front/report/explain.h"

static const char *exec_hint(int code)
{
	switch (code) {
	case ENOENT:
		return "the jail sees this host's /usr and what --rootfs and --ro-bind show; a "
		       "script's interpreter may be what is missing";
	case EACCES:
		return "it is not executable, or lies where the jail lets nothing be executed";
	case ENOEXEC:
		return "it is neither a program for this machine nor a script that begins with #!";
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
