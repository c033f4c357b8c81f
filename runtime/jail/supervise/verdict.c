/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/jail/supervise/verdict.h"

#include <signal.h>
#include <sys/vfs.h>
#include <sys/wait.h>

#include "runtime/jail/jail_state.h"
#include "runtime/jail/supervise/jail_network.h"
#include "runtime/jail/supervise/bind_watch.h"

bool verdict_was_oom_killed(const struct jail *j)
{
	struct cgroup_usage usage = { 0 };
	cgroup_read_usage(&j->cgroup, &usage);
	return usage.oom_kills > j->warm.before.oom_kills;
}

/*
 * Any process inside can send a signal; no process can forge the CPU time used.  RLIMIT_CPU counts
 * from the start of an interpreter, not of its cell.
 */
static bool is_cpu_time_used_up(const struct jail *j, const struct ended *ended)
{
	uint64_t limit_us = j->plan->limits.cpu_ms * 1000;
	uint64_t reaped_us = ended->cpu_user_us + ended->cpu_system_us;
	if (j->run.cell_ops)
		return limit_us > 0 && reaped_us >= limit_us;
	return limit_us > 0 && (jail_program_cpu_us(j, cgroup_cpu_us(&j->cgroup)) >= limit_us ||
				jail_program_cpu_us(j, reaped_us) >= limit_us);
}

void verdict_decide(const struct jail *j, const struct ended *ended, int wait_status,
		    struct outcome *out)
{
	if (out->has_status)
		return;
	if (WIFEXITED(wait_status)) {
		out->exit_code = WEXITSTATUS(wait_status);
		outcome_decide(out, STATUS_EXITED);
		return;
	}
	out->signal = WTERMSIG(wait_status);
	if (out->signal == SIGKILL && j->ops->was_oom_killed(j))
		outcome_decide(out, STATUS_OOM);
	else if ((out->signal == SIGKILL || out->signal == SIGXCPU) &&
		 is_cpu_time_used_up(j, ended))
		outcome_decide(out, STATUS_CPU_LIMIT);
	else
		outcome_decide(out, STATUS_SIGNALED);
}

void verdict_without_init(struct jail *j, const struct ended *ended, struct outcome *out)
{
	if (!verdict_was_oom_killed(j))
		jail_warn(j, "init was killed from outside; the program's own end is not known");
	verdict_decide(j, ended, SIGKILL, out);
}

/* The launcher's part of what init reaped is known as one sum: it is subtracted in proportion. */
static uint64_t share_us(const struct jail *j, uint64_t part_us, uint64_t all_us)
{
	uint64_t before_us = all_us - jail_program_cpu_us(j, all_us);
	return all_us > 0 ? part_us - part_us * before_us / all_us : 0;
}

/* What init reaped; or what was sampled, if that is more: some processes were not reaped. */
static void read_cpu(const struct jail *j, const struct watched *seen,
		     const struct cgroup_usage *cg, struct usage *out)
{
	uint64_t user_us = seen->ended.cpu_user_us, system_us = seen->ended.cpu_system_us;
	if (process_usage_cpu_us(&seen->peak) > user_us + system_us) {
		user_us = seen->peak.cpu_user_us;
		system_us = seen->peak.cpu_system_us;
	}
	const uint64_t all_us = user_us + system_us;
	user_us = share_us(j, user_us, all_us);
	system_us = share_us(j, system_us, all_us);
	if (cg->has_cpu) { /* the numbers of one cgroup only grow */
		user_us = cg->cpu_user_us - j->warm.before.cpu_user_us;
		system_us = cg->cpu_system_us - j->warm.before.cpu_system_us;
	}
	out->cpu_user_ms = user_us / 1000;
	out->cpu_system_ms = system_us / 1000;
}

static void read_usage(const struct watched *seen, const struct cgroup_usage *cg, struct usage *out)
{
	uint64_t pids_peak = cg->pids_peak > 0 ? cg->pids_peak - 1 : 0; /* without init */
	/*
	 * Without a cgroup and a sample: the largest process, which is a lower bound.  A sample
	 * that found only processes that were ending is none: they have released their memory.
	 */
	uint64_t own_bytes = seen->peak.memory_bytes;
	if (!seen->peak.has_memory && seen->ended.max_rss_bytes > own_bytes)
		own_bytes = seen->ended.max_rss_bytes;
	*out = (struct usage){
		.wall_ms = seen->wall_ms,
		.memory_peak_bytes = cg->has_memory_peak ? cg->memory_peak_bytes : own_bytes,
		.has_memory_peak = cg->has_memory_peak || own_bytes > 0,
		.pids_peak = cg->has_pids_peak ? pids_peak : seen->peak.processes,
		.has_pids_peak = cg->has_pids_peak || seen->peak.processes > 0,
	};
}

static bool is_disk_full(int box_fd)
{
	struct statfs fs;
	return box_fd >= 0 && fstatfs(box_fd, &fs) == 0 && (fs.f_bavail == 0 || fs.f_ffree == 0);
}

static enum limit_hit hit_if(bool is_hit)
{
	return is_hit ? HIT_YES : HIT_NO;
}

/* The kernel also counts a kill here when a cgroup above, or the host, ran out of memory. */
static enum limit_hit memory_hit_of_cgroup(struct jail *j, const struct cgroup_usage *cg,
					   const struct outcome *out)
{
	if (out->status != STATUS_OOM || cg->own_ooms > j->warm.before.own_ooms)
		return hit_if(out->status == STATUS_OOM);
	jail_warn(j,
		  "memory ran out above this jail, not at its own limit: give more memory to the "
		  "cgroup that cejail runs in, or to the host");
	return HIT_NO;
}

/*
 * Unknown: one sample was above the limit but not two in a row, or the largest process was, whose
 * number includes the files that it maps.  The limit may have been exceeded between two samples.
 */
static enum limit_hit memory_hit_of_samples(const struct jail *j, const struct watched *seen,
					    const struct outcome *out)
{
	uint64_t limit_bytes = j->limits[LIMIT_MEMORY].value;
	if (out->status == STATUS_OOM)
		return HIT_YES;
	if (limit_bytes > 0 &&
	    (seen->peak.memory_bytes > limit_bytes || seen->ended.max_rss_bytes > limit_bytes))
		return HIT_UNKNOWN;
	return HIT_NO;
}

/*
 * Before Linux 6.11 the kernel also counts a refusal here when a cgroup above was full.  The peak
 * shows which one it was; without a peak, the room in the cgroups above does.
 */
static enum limit_hit pids_hit_of_cgroup(struct jail *j, const struct cgroup_usage *cg)
{
	uint64_t limit = j->limits[LIMIT_PIDS].value + 1; /* init counts, too */
	if (cg->pids_max_hits <= j->warm.before.pids_max_hits)
		return HIT_NO;
	if (j->is_shared) /* its cgroup has the same limit; else it may be another exec that was refused */
		return cg->has_pids_peak && cg->pids_peak + 1 >= limit ? HIT_YES : HIT_UNKNOWN;
	if (cg->has_pids_peak ? cg->pids_peak >= limit : cgroup_has_room_above(&j->cgroup, limit))
		return HIT_YES;
	jail_warn(j,
		  "processes were refused by a cgroup above this jail%s: raise TasksMax= or "
		  "pids.max where cejail runs",
		  cg->has_pids_peak ? ", not by its own limit" : " or by its own limit");
	return cg->has_pids_peak ? HIT_NO : HIT_UNKNOWN;
}

/* Enforced by setrlimit(2), which counts no refusals, or not enforced. */
static enum limit_hit hit_uncounted(const struct limit_state *limit)
{
	return limit->value > 0 ? HIT_UNKNOWN : HIT_NO;
}

static void read_hits(struct jail *j, const struct watched *seen, const struct cgroup_usage *cg,
		      struct outcome *out)
{
	struct limit_state *limits = out->limits;
	limits[LIMIT_MEMORY].hit = limits[LIMIT_MEMORY].enforced_by == ENFORCED_BY_CGROUP
				       ? memory_hit_of_cgroup(j, cg, out)
				       : memory_hit_of_samples(j, seen, out);
	limits[LIMIT_CPUS].hit = limits[LIMIT_CPUS].enforced_by == ENFORCED_BY_CGROUP
				     ? hit_if(cg->throttled_us > j->warm.before.throttled_us)
				     : hit_uncounted(&limits[LIMIT_CPUS]);
	limits[LIMIT_PIDS].hit = limits[LIMIT_PIDS].enforced_by == ENFORCED_BY_CGROUP
				     ? pids_hit_of_cgroup(j, cg)
				     : hit_uncounted(&limits[LIMIT_PIDS]);
	limits[LIMIT_NOFILE].hit = hit_uncounted(&limits[LIMIT_NOFILE]);
	limits[LIMIT_WALL].hit = hit_if(out->status == STATUS_TIMEOUT);
	limits[LIMIT_CPU_TIME].hit = hit_if(out->status == STATUS_CPU_LIMIT);
	limits[LIMIT_DISK].hit = limits[LIMIT_DISK].enforced_by == ENFORCED_BY_RLIMIT
				     ? hit_uncounted(&limits[LIMIT_DISK])
				     : hit_if(is_disk_full(j->handles.box_fd));
	limits[LIMIT_OUTPUT].hit =
	    hit_if(capture_is_truncated(&out->output[0]) || capture_is_truncated(&out->output[1]));
}

static int keep_denied(const struct denied_syscall *denied, size_t count, struct outcome *out,
		       struct cj_error *err)
{
	out->denied = arena_array(&out->arena, count, sizeof(*denied));
	if (!out->denied)
		return cj_fail(err, ENOMEM, "keep the denied system calls");
	for (; out->ndenied < count; out->ndenied++) {
		struct denied_syscall *copy = &out->denied[out->ndenied];
		*copy = denied[out->ndenied];
		copy->name = arena_strdup(&out->arena, copy->name);
		if (!copy->name)
			return cj_fail(err, ENOMEM, "keep the denied system calls");
	}
	return 0;
}

static int read_denied(struct jail *j, struct outcome *out, struct cj_error *err)
{
	if (!j->watch)
		return 0;
	size_t count;
	bool is_complete = true;
	const struct denied_syscall *denied = filter_watch_denied(j->watch, &count, &is_complete);
	if (!is_complete)
		jail_warn(j,
			  "some denied system calls were not counted: there were more than %d "
			  "different ones, or they could not be read",
			  FILTER_NAMES_MAX);
	return keep_denied(denied, count, out, err);
}

static void adopt_network(const struct jail *j, struct outcome *out)
{
	const char *why;
	if (!j->network)
		return;
	out->network.state = network_state(j->network, &why);
	out->network.why = why ? arena_strdup(&out->arena, why) : NULL;
	if (out->network.state != NETWORK_UNUSED)
		out->network.uplink = network_uplink(j->network);
}

static int read_network(const struct jail *j, struct outcome *out, struct cj_error *err)
{
	if (!j->network)
		return 0;
	const struct denials *denials = network_report(j->network);
	adopt_network(j, out); /* again: the uplink may have been lost at the end */
	struct denial *copy = arena_array(&out->arena, denials->count + 1, sizeof(*copy));
	if (!copy)
		return cj_fail(err, ENOMEM, "keep the denied packets");
	memcpy(copy, denials->items, denials->count * sizeof(*copy));
	out->network.denied = copy;
	out->network.ndenied = denials->count;
	return jail_network_read_upstreams(network_upstream(j->network), NULL, out, err);
}

int verdict_report_run(struct jail *j, struct outcome *out, struct cj_error *err)
{
	return read_network(j, out, err) < 0 ? -err->code : read_denied(j, out, err);
}

void verdict_adopt(const struct jail *j, struct outcome *out)
{
	memcpy(out->limits, j->limits, sizeof(out->limits));
	memcpy(out->layers, j->layers, sizeof(out->layers));
	memcpy(out->code_sha256, j->run.code_sha256, sizeof(out->code_sha256));
	out->code_real = j->run.code_real ? arena_strdup(&out->arena, j->run.code_real) : NULL;
	out->started_epoch_ms = j->run.started_epoch_ms;
	adopt_network(j, out);
}

int verdict_read(struct jail *j, const struct watched *seen, struct outcome *out,
		 struct cj_error *err)
{
	struct cgroup_usage cg = { 0 };
	j->ops->count(j, &cg);
	verdict_adopt(j, out);
	read_usage(seen, &cg, &out->usage);
	read_cpu(j, seen, &cg, &out->usage);
	read_hits(j, seen, &cg, out);
	return j->ops->report(j, out, err);
}

void verdict_warn_of_binds(struct jail *j)
{
	char names[400];
	if (bind_watch_compare(j->run.binds, names, sizeof(names)) > 0)
		jail_warn(j,
			  "created or changed during the run: %s; other programs execute or obey "
			  "such files: look at them first",
			  names);
}
