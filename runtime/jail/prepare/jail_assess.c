/* SPDX-License-Identifier: Apache-2.0 */
/* What is in force in this jail, and what this host lacks.  Decides, from what is held by now. */
#include "runtime/jail/prepare/jail_assess.h"

#include <string.h>

#include "runtime/jail/jail_state.h"

/* What always holds once init is sealed: a stage that could not do it has failed the jail. */
static const enum layer sealed_layers[] = {
	LAYER_USER_NS, LAYER_PID_NS,    LAYER_MOUNT_NS,     LAYER_NETWORK_NS,   LAYER_IPC_NS,
	LAYER_UTS_NS,  LAYER_CGROUP_NS, LAYER_NO_NEW_PRIVS, LAYER_CAPABILITIES, LAYER_SECCOMP,
};

static void note_limits(struct jail *j)
{
	const struct limits_spec *l = &j->plan->limits;
	const bool *held = j->cgroup.held;
	const struct limit_state states[LIMIT_COUNT] = {
		[LIMIT_MEMORY] = { l->memory_bytes, held[CGROUP_MEMORY] ? BY_CGROUP : BY_SUPERVISOR,
				   HIT_NO },
		[LIMIT_CPUS] = { l->millicpus, held[CGROUP_CPU] ? BY_CGROUP : BY_NONE, HIT_NO },
		[LIMIT_PIDS] = { l->pids, held[CGROUP_PIDS] ? BY_CGROUP : BY_RLIMIT, HIT_NO },
		[LIMIT_CPU_TIME] = { l->cpu_ms, BY_SUPERVISOR, HIT_NO },
		[LIMIT_DISK] = { j->plan->root.scratch_bytes, BY_TMPFS, HIT_NO },
		[LIMIT_NOFILE] = { l->nofile, BY_RLIMIT, HIT_NO },
	};
	memcpy(j->limits, states, sizeof(states));
}

/* Whatever is not at its best is one sentence in the result and on the terminal. */
static void note_weaknesses(struct jail *j)
{
	if (!j->cgroup.held[CGROUP_MEMORY] || !j->cgroup.held[CGROUP_PIDS] ||
	    !j->cgroup.held[CGROUP_CPU])
		jail_degrade(j, DEGRADED_LIMITS,
			     "memory is held by %s, processes by %s, cpus by %s: %s",
			     limit_by_names[j->limits[LIMIT_MEMORY].by],
			     limit_by_names[j->limits[LIMIT_PIDS].by],
			     limit_by_names[j->limits[LIMIT_CPUS].by], j->cgroup.why_not);
	if (j->layers[LAYER_LANDLOCK] == LAYER_ABSENT)
		jail_degrade(j, DEGRADED_LANDLOCK,
			     "no Landlock in this kernel: the mounts are the only fence");
	if (j->layers[LAYER_NETWORK_FILTER] == LAYER_ABSENT)
		jail_degrade(j, DEGRADED_NETWORK_FILTER,
			     "no network filter in this kernel: there is nothing but loopback");
	if (j->layers[LAYER_SYSCALL_REPORT] == LAYER_ABSENT)
		jail_degrade(
		    j, DEGRADED_SYSCALL_REPORT,
		    "denied system calls can't be named: an outer sandbox listens already");
}

int jail_assess_enter(struct jail *j, struct cj_error *err)
{
	for (size_t i = 0; i < sizeof(sealed_layers) / sizeof(sealed_layers[0]); i++)
		j->layers[sealed_layers[i]] = LAYER_ON;
	j->layers[LAYER_CGROUP] = j->cgroup.dir_fd >= 0 ? LAYER_ON : LAYER_ABSENT;
	j->layers[LAYER_ROOT] = j->plan->root.writable ? LAYER_OFF : LAYER_ON;
	/* A network of lo alone has nothing to filter. */
	if (j->plan->network.mode == NETWORK_NONE)
		j->layers[LAYER_NETWORK_FILTER] = LAYER_OFF;
	else
		j->layers[LAYER_NETWORK_FILTER] = network_is_filtered(j->network) ? LAYER_ON
										  : LAYER_ABSENT;
	note_limits(j);
	size_t before = j->warnings.count;
	note_weaknesses(j);
	if (j->plan->strict && j->warnings.count > before) {
		int rc = cj_reject(err, "--strict: %s", j->warnings.items[before]);
		cj_hint(err, "'cejail doctor' says what this host lacks");
		return rc;
	}
	return 0;
}
