/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outcome - the names in a result, the first-event rule, and the exit status.
 */
#include "runtime/jail/outcome.h"

#include <assert.h>
#include <signal.h>
#include <stdarg.h>

#include "profiles/setting_types.h"
#include "runtime/base/clock.h"

#define EXIT_TIME_LIMIT   124
#define EXIT_OWN_FAILURE  125
#define EXIT_NOT_RUNNABLE 126
#define EXIT_NOT_FOUND    127
#define EXIT_SIGNAL_BASE  128

const char *const status_names[] = {
	[STATUS_EXITED] = "exited",
	[STATUS_SIGNALED] = "signaled",
	[STATUS_TIMEOUT] = "timeout",
	[STATUS_CPU_LIMIT] = "cpu_limit",
	[STATUS_OOM] = "oom",
	[STATUS_OUTPUT_LIMIT] = "output_limit",
	[STATUS_CANCELLED] = "cancelled",
	[STATUS_SETUP_ERROR] = "setup_error",
};
static_assert(COUNT_OF(status_names) == STATUS_COUNT, "every status has a name");

enum degraded degraded_of(const char *warning)
{
	size_t size = strcspn(warning, ":");
	enum degraded what = 0;

	while (what < DEGRADED_COUNT && (strlen(degraded_names[what]) != size ||
					 strncmp(degraded_names[what], warning, size) != 0))
		what++;
	return warning[size] == ':' ? what : DEGRADED_COUNT;
}

const char *const limit_names[] = {
	[LIMIT_MEMORY] = "memory", [LIMIT_CPUS] = "cpus",         [LIMIT_PIDS] = "pids",
	[LIMIT_WALL] = "wall",     [LIMIT_CPU_TIME] = "cpu_time", [LIMIT_DISK] = "disk",
	[LIMIT_NOFILE] = "nofile", [LIMIT_OUTPUT] = "output",
};
static_assert(COUNT_OF(limit_names) == LIMIT_COUNT, "every limit has a name");

const char *const limit_units[] = {
	[LIMIT_MEMORY] = "bytes",   [LIMIT_CPUS] = "cpus", /* the value has three decimals: 1500 is
							      written 1.5 */
	[LIMIT_PIDS] = "processes", [LIMIT_WALL] = "ms",      [LIMIT_CPU_TIME] = "ms",
	[LIMIT_DISK] = "bytes",     [LIMIT_NOFILE] = "files", [LIMIT_OUTPUT] = "bytes",
};
static_assert(COUNT_OF(limit_units) == LIMIT_COUNT, "every limit has a unit");

const char *const limit_enforcer_names[] = {
	[NOT_ENFORCED] = "none",         [ENFORCED_BY_CGROUP] = "cgroup",
	[ENFORCED_BY_RLIMIT] = "rlimit", [ENFORCED_BY_SUPERVISOR] = "supervisor",
	[ENFORCED_BY_TMPFS] = "tmpfs",
};
static_assert(COUNT_OF(limit_enforcer_names) == LIMIT_ENFORCER_COUNT,
	      "every enforcer of a limit has a name");

const char *const layer_names[] = {
	[LAYER_USER_NS] = "user_ns",
	[LAYER_PID_NS] = "pid_ns",
	[LAYER_MOUNT_NS] = "mount_ns",
	[LAYER_NETWORK_NS] = "network_ns",
	[LAYER_IPC_NS] = "ipc_ns",
	[LAYER_UTS_NS] = "uts_ns",
	[LAYER_CGROUP_NS] = "cgroup_ns",
	[LAYER_CGROUP] = "cgroup",
	[LAYER_ROOT] = "root",
	[LAYER_NO_NEW_PRIVS] = "no_new_privs",
	[LAYER_CAPABILITIES] = "capabilities",
	[LAYER_SECCOMP] = "seccomp",
	[LAYER_SYSCALL_REPORT] = "syscall_report",
	[LAYER_LANDLOCK] = "landlock",
	[LAYER_NETWORK_FILTER] = "network_filter",
};
static_assert(COUNT_OF(layer_names) == LAYER_COUNT, "every layer has a name");

const char *const layer_state_names[] = {
	[LAYER_ABSENT] = "absent",
	[LAYER_ON] = "on",
	[LAYER_OFF] = "off",
};
static_assert(COUNT_OF(layer_state_names) == LAYER_STATE_COUNT, "every state has a name");

void outcome_init(struct outcome *o, const char *id, size_t output_cap)
{
	*o = (struct outcome){ .exit_code = -1 };
	(void)snprintf(o->id, sizeof(o->id), "%s", id); /* ids are checked before: is_name() */
	capture_init(&o->output[0], output_cap);
	capture_init(&o->output[1], output_cap);
	o->started_epoch_ms = clock_epoch_ms();
}

void outcome_fini(struct outcome *o)
{
	capture_fini(&o->output[0]);
	capture_fini(&o->output[1]);
	arena_fini(&o->arena);
	*o = (struct outcome){ .exit_code = -1 };
}

void outcome_decide(struct outcome *o, enum status status)
{
	if (o->has_status)
		return;
	o->status = status;
	o->has_status = true;
}

void outcome_warn(struct outcome *o, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	/* without memory the sentence is lost, and the run ends all the same */
	(void)!strings_vprintf(&o->warnings, &o->arena, fmt, args);
	va_end(args);
}

void outcome_fail(struct outcome *o, const struct cj_error *err)
{
	o->error = *err;
	o->status = STATUS_SETUP_ERROR; /* not outcome_decide(): nothing before it counts */
	o->has_status = true;
}

/* As shells say it (POSIX, Shell Command Language, 2.8.2). */
static int exec_failure(int exec_errno)
{
	return exec_errno == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_RUNNABLE;
}

void outcome_exec_failed(struct outcome *o, int exec_errno)
{
	o->exec_errno = exec_errno;
	o->exit_code = exec_failure(exec_errno);
	outcome_decide(o, STATUS_EXITED);
}

int outcome_exit_status(const struct outcome *o)
{
	switch (o->has_status ? o->status : STATUS_SETUP_ERROR) {
	case STATUS_EXITED:
		return o->exec_errno ? exec_failure(o->exec_errno) : o->exit_code;
	case STATUS_SIGNALED:
		return EXIT_SIGNAL_BASE + o->signal;
	case STATUS_TIMEOUT:
	case STATUS_CPU_LIMIT:
		return EXIT_TIME_LIMIT;
	case STATUS_OOM:
	case STATUS_OUTPUT_LIMIT:
		return EXIT_SIGNAL_BASE + SIGKILL;
	case STATUS_CANCELLED: /* without a signal: the reader of the output closed it */
		return EXIT_SIGNAL_BASE + (o->cancel_signal ? o->cancel_signal : SIGPIPE);
	case STATUS_SETUP_ERROR:
	case STATUS_COUNT:
		break;
	}
	return EXIT_OWN_FAILURE;
}

struct outcome_totals outcome_totals(const struct outcome *o)
{
	struct outcome_totals t = {
		.status = o->status,
		.exit_code = o->status == STATUS_EXITED ? outcome_exit_status(o) : -1,
		.signal = o->signal,
		.usage = o->usage,
		.stdout_bytes = o->output[0].total,
		.stderr_bytes = o->output[1].total,
		.artifacts = o->artifacts.count,
	};

	for (size_t i = 0; i < o->network.ndenied; i++)
		t.denied_packets += o->network.denied[i].count;
	for (size_t i = 0; i < o->ndenied; i++)
		t.denied_syscalls += o->denied[i].count;
	for (enum limit i = 0; i < LIMIT_COUNT; i++)
		t.limits_hit |= (uint64_t)(o->limits[i].hit == HIT_YES) << i;
	return t;
}
