/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scope-helper: asks systemd for what runtime/kernel/cgroup/scope_helper.c wants.  It has the
 * caller's rights.  MANAGER is "user" or "system".
 *
 *	enter MANAGER UNIT PID          a scope around PID, unless its unit is delegated already
 *	start MANAGER UNIT PID SLICE    a scope for a container around PID
 *	attach MANAGER UNIT PID CHILD   PID into a cgroup of the scope
 *	stop MANAGER UNIT               the scope's end
 */

#include "runtime/base/files/libexec.h"
#include "runtime/base/text.h"
#include "runtime/kernel/cgroup/scope_request.h"

#define LIFE_SECONDS 20 /* a bus that never answers must not delay a run for ever */
#define PID_LIMIT    (1u << 22)

static int enter(struct scope_request *request, char **rest, struct cj_error *err)
{
	(void)rest;
	request->keeps_delegated = true;
	return scope_request_start(request, err);
}

static int start(struct scope_request *request, char **rest, struct cj_error *err)
{
	request->has_slice = true;
	request->slice = rest[0];
	return scope_request_start(request, err);
}

static int attach(struct scope_request *request, char **rest, struct cj_error *err)
{
	request->child = rest[0];
	return scope_request_attach(request, err);
}

static int stop(struct scope_request *request, char **rest, struct cj_error *err)
{
	(void)rest;
	return scope_request_stop(request, err);
}

static const struct scope_verb {
	const char *name;
	int arguments;      /* behind the verb */
	bool is_for_parent; /* PID must be the process that asks */
	int (*perform)(struct scope_request *request, char **rest, struct cj_error *err);
} verbs[] = {
	{ "enter", 3, true, enter },
	{ "start", 4, true, start },
	{ "attach", 4, false, attach },
	{ "stop", 2, false, stop },
};

static int perform(const struct scope_verb *verb, char **args, struct cj_error *err)
{
	struct scope_request request = { .is_system = strcmp(args[0], "system") == 0,
					 .unit = args[1] };
	uint64_t pid = 0;
	if (verb->arguments > 2 && parse_u64(args[2], 1, PID_LIMIT, &pid, err) < 0)
		return -err->code;
	if (verb->is_for_parent && getppid() != (pid_t)pid) /* it ended before libexec_begin() */
		return cj_reject_as(err, ESRCH,
				    "scope-helper: the process that asked for the scope has ended");
	request.pid = (pid_t)pid;
	return verb->perform(&request, args + 3, err);
}

static int choose(int argc, char **argv, struct cj_error *err)
{
	for (size_t i = 0; argc > 1 && i < COUNT_OF(verbs); i++)
		if (strcmp(argv[1], verbs[i].name) == 0 && argc == verbs[i].arguments + 2)
			return perform(&verbs[i], argv + 2, err);
	return cj_reject(err, "usage: scope-helper enter|start|attach|stop MANAGER UNIT ...");
}

int main(int argc, char **argv)
{
	struct cj_error err = { 0 };
	libexec_begin(LIFE_SECONDS);
	return choose(argc, argv, &err) < 0 ? libexec_fail(&err) : EXIT_SUCCESS;
}
