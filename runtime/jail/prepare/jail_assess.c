/* SPDX-License-Identifier: Apache-2.0 */
/* Which layers and limits are in force.  Decides from the results of the stages; no system
 * calls. */
#include "runtime/jail/prepare/jail_assess.h"

#include <string.h>

#include "runtime/jail/jail_state.h"

/* Always on once init is sealed: a stage that failed to do it has failed the jail. */
static const enum layer sealed_layers[] = {
	LAYER_USER_NS, LAYER_PID_NS,    LAYER_MOUNT_NS,     LAYER_NETWORK_NS,   LAYER_IPC_NS,
	LAYER_UTS_NS,  LAYER_CGROUP_NS, LAYER_NO_NEW_PRIVS, LAYER_CAPABILITIES, LAYER_SECCOMP,
};

static void note_limits(struct jail *j)
{
	const struct limits_spec *l = &j->plan->limits;
	const bool *enforced = j->cgroup.enforced;
	const struct limit_state states[LIMIT_COUNT] = {
		[LIMIT_MEMORY] = { l->memory_bytes,
				   enforced[CGROUP_MEMORY] ? ENFORCED_BY_CGROUP
							   : ENFORCED_BY_SUPERVISOR,
				   HIT_NO },
		[LIMIT_CPUS] = { l->millicpus,
				 enforced[CGROUP_CPU] ? ENFORCED_BY_CGROUP : NOT_ENFORCED, HIT_NO },
		[LIMIT_PIDS] = { l->pids,
				 enforced[CGROUP_PIDS] ? ENFORCED_BY_CGROUP : ENFORCED_BY_RLIMIT,
				 HIT_NO },
		[LIMIT_CPU_TIME] = { l->cpu_ms, ENFORCED_BY_SUPERVISOR, HIT_NO },
		[LIMIT_DISK] = { j->plan->root.scratch_bytes, ENFORCED_BY_TMPFS, HIT_NO },
		[LIMIT_NOFILE] = { l->nofile, ENFORCED_BY_RLIMIT, HIT_NO },
	};
	memcpy(j->limits, states, sizeof(states));
}

/* Each degraded layer or limit is one warning in the result and on the terminal. */
static void warn_of_degraded(struct jail *j)
{
	if (!j->cgroup.enforced[CGROUP_MEMORY] || !j->cgroup.enforced[CGROUP_PIDS] ||
	    !j->cgroup.enforced[CGROUP_CPU])
		jail_degrade(
		    j, DEGRADED_LIMITS, "memory is enforced by %s, processes by %s, cpus by %s: %s",
		    limit_enforcer_names[j->limits[LIMIT_MEMORY].enforced_by],
		    limit_enforcer_names[j->limits[LIMIT_PIDS].enforced_by],
		    limit_enforcer_names[j->limits[LIMIT_CPUS].enforced_by], j->cgroup.why_not);
	if (j->layers[LAYER_LANDLOCK] == LAYER_ABSENT)
		jail_degrade(
		    j, DEGRADED_LANDLOCK,
		    "this kernel has no Landlock: only the mounts restrict access to files");
	if (j->layers[LAYER_NETWORK_FILTER] == LAYER_ABSENT)
		jail_degrade(j, DEGRADED_NETWORK_FILTER,
			     "this kernel has no network filter: the jail has only its loopback");
	if (j->layers[LAYER_SYSCALL_REPORT] == LAYER_ABSENT)
		jail_degrade(
		    j, DEGRADED_SYSCALL_REPORT,
		    "denied system calls can't be named: an outer sandbox already receives them");
	if (j->hostname_errno != 0)
		jail_degrade(j, DEGRADED_HOSTNAME,
			     "the jail has the caller's host name: set '%s': %s",
			     j->plan->root.hostname, strerror(j->hostname_errno));
}

/* A network of lo alone has nothing to filter. */
void jail_assess_network(struct jail *j)
{
	const char *why;
	enum layer_state state = LAYER_OFF;
	if (j->network && network_state(j->network, &why) != NETWORK_UNUSED)
		state = network_is_filtered(j->network) ? LAYER_ON : LAYER_ABSENT;
	j->layers[LAYER_NETWORK_FILTER] = state;
}

int jail_assess_enter(struct jail *j, struct cj_error *err)
{
	for (size_t i = 0; i < sizeof(sealed_layers) / sizeof(sealed_layers[0]); i++)
		j->layers[sealed_layers[i]] = LAYER_ON;
	j->layers[LAYER_CGROUP] = j->cgroup.dir_fd >= 0 ? LAYER_ON : LAYER_ABSENT;
	j->layers[LAYER_ROOT] = j->plan->root.writable ? LAYER_OFF : LAYER_ON;
	jail_assess_network(j);
	note_limits(j);
	size_t before = j->warnings.count;
	warn_of_degraded(j);
	if (j->plan->strict && j->warnings.count > before) {
		cj_refuse(err, "--strict: %s", j->warnings.items[before]);
		return cj_hint(err, "'cejail doctor' says what this host lacks");
	}
	return 0;
}
