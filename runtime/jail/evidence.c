/* SPDX-License-Identifier: Apache-2.0 */
/* The evidence of a run.  Reads the cgroup and the scratch; decides nothing. */
#include "runtime/jail/evidence.h"

#include <string.h>
#include <sys/vfs.h>

#include "runtime/jail/state.h"

static uint64_t without_init(uint64_t pids)
{
	return pids > 0 ? pids - 1 : 0;
}

/* Of what init has reaped, the launcher's part is known as one sum: it goes off in proportion. */
static uint64_t share_us(const struct jail *j, uint64_t part_us, uint64_t all_us)
{
	uint64_t before_us = all_us - jail_program_cpu_us(j, all_us);
	return all_us > 0 ? part_us - part_us * before_us / all_us : 0;
}

static void read_cpu(const struct jail *j, const struct watched *seen,
		     const struct cgroup_usage *cg, struct usage *out)
{
	const struct ended *ended = &seen->ended;
	uint64_t all_us = ended->cpu_user_us + ended->cpu_system_us;
	uint64_t user_us = share_us(j, ended->cpu_user_us, all_us);
	uint64_t system_us = share_us(j, ended->cpu_system_us, all_us);
	if (cg->has_cpu) { /* of one leaf the kernel's numbers only grow */
		user_us = cg->cpu_user_us - j->before.cpu_user_us;
		system_us = cg->cpu_system_us - j->before.cpu_system_us;
	}
	out->cpu_user_ms = user_us / 1000;
	out->cpu_system_ms = system_us / 1000;
}

static void read_usage(const struct watched *seen, const struct cgroup_usage *cg, struct usage *out)
{
	bool was_sampled = seen->peak.processes > 0;
	*out = (struct usage){
		.wall_ms = seen->wall_ms,
		.memory_peak_bytes = cg->has_memory_peak ? cg->memory_peak_bytes
							 : seen->peak.memory_bytes,
		.pids_peak = cg->has_pids_peak ? without_init(cg->pids_peak) : seen->peak.processes,
		.has_memory_peak = cg->has_memory_peak || was_sampled,
		.has_pids_peak = cg->has_pids_peak || was_sampled,
	};
}

static bool is_disk_full(int box_fd)
{
	struct statfs fs;
	return box_fd >= 0 && fstatfs(box_fd, &fs) == 0 && (fs.f_bavail == 0 || fs.f_ffree == 0);
}

/* The kernel counts a kill here, too, when it was a cgroup above, or the host, that had no more. */
static bool is_at_its_memory_limit(struct jail *j, const struct cgroup_usage *cg)
{
	if (j->limits[LIMIT_MEMORY].by != BY_CGROUP || cg->own_ooms > 0)
		return true;
	jail_warn(j, "memory ran out above this jail, not at its own limit: more for the cgroup "
		     "that cejail runs in, or for the host, is what helps");
	return false;
}

static void read_hits(struct jail *j, const struct cgroup_usage *cg, struct outcome *out)
{
	struct limit_state *limits = out->limits;
	limits[LIMIT_MEMORY].hit = out->status == STATUS_OOM && is_at_its_memory_limit(j, cg);
	limits[LIMIT_CPUS].hit = cg->throttled_us > j->before.throttled_us;
	limits[LIMIT_PIDS].hit = cg->pids_max_hits > j->before.pids_max_hits;
	limits[LIMIT_WALL].hit = out->status == STATUS_TIMEOUT;
	limits[LIMIT_CPU_TIME].hit = out->status == STATUS_CPU_LIMIT;
	limits[LIMIT_DISK].hit = is_disk_full(j->box_fd);
	limits[LIMIT_OUTPUT].hit = capture_is_truncated(&out->output[0]) ||
				   capture_is_truncated(&out->output[1]);
}

static int keep_denied(const struct denied_syscall *denied, size_t count, struct outcome *out,
		       struct cj_error *err)
{
	out->denied = arena_array(&out->arena, count, sizeof(*denied));
	if (!out->denied)
		return cj_fail(err, ENOMEM, "keep the refused system calls");
	for (; out->ndenied < count; out->ndenied++) {
		struct denied_syscall *copy = &out->denied[out->ndenied];
		*copy = denied[out->ndenied];
		copy->name = arena_strdup(&out->arena, copy->name);
		if (!copy->name)
			return cj_fail(err, ENOMEM, "keep the refused system calls");
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
			  "some refused system calls were not counted: they were more than %d, "
			  "or could not be heard",
			  FILTER_ANSWERS_MAX);
	return keep_denied(denied, count, out, err);
}

static int read_network(const struct jail *j, struct outcome *out, struct cj_error *err)
{
	if (!j->network)
		return 0;
	const struct denials *denials = network_report(j->network);
	struct denial *copy = arena_array(&out->arena, denials->count + 1, sizeof(*copy));
	if (!copy)
		return cj_fail(err, ENOMEM, "keep the refused packets");
	memcpy(copy, denials->items, denials->count * sizeof(*copy));
	out->network.denied = copy;
	out->network.ndenied = denials->count;
	return 0;
}

void evidence_adopt(const struct jail *j, struct outcome *out)
{
	memcpy(out->limits, j->limits, sizeof(out->limits));
	memcpy(out->layers, j->layers, sizeof(out->layers));
	memcpy(out->code_sha256, j->code_sha256, sizeof(out->code_sha256));
	out->started_at = j->started_at;
	if (j->network)
		out->network.uplink = network_uplink(j->network);
}

int evidence_read(struct jail *j, const struct watched *seen, struct outcome *out,
		  struct cj_error *err)
{
	struct cgroup_usage cg = { 0 };
	cgroup_read_usage(&j->cgroup, &cg);
	evidence_adopt(j, out);
	read_usage(seen, &cg, &out->usage);
	read_cpu(j, seen, &cg, &out->usage);
	read_hits(j, &cg, out);
	if (read_network(j, out, err) < 0)
		return -err->code;
	return read_denied(j, out, err);
}
