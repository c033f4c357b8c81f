/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/jail/usage/usage_watch.h"

#include "runtime/base/clock.h"
#include "runtime/jail/jail_state.h"
#include "runtime/kernel/process/process_tree.h"

#define PAUSE_MAX_MS      20
#define REST_PAUSE_MAX_MS 200
#define BLIND_MAX_MS      1000

/*
 * A program can take 1 GiB/s of memory with pages of 4 KiB on two CPUs, 6 GiB/s with huge pages, as
 * measured.  A pause is at most as long as 4 GiB/s need to fill the room below the limit.
 */
#define GROWTH_BYTES_PER_MS (4u << 20)

/* Sampling takes at most a quarter of one CPU: a pause is three times as long as a sample. */
#define PAUSES_PER_COST 3

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

unsigned usage_watch_pause_ms(uint64_t room_bytes, uint64_t cost_us, bool is_resting)
{
	uint64_t max_ms = is_resting ? REST_PAUSE_MAX_MS : PAUSE_MAX_MS;
	uint64_t until_full_ms = smaller(room_bytes / GROWTH_BYTES_PER_MS, max_ms);
	uint64_t least_ms = smaller(1 + cost_us * PAUSES_PER_COST / 1000, PAUSE_MAX_MS);
	return (unsigned)(until_full_ms > least_ms ? until_full_ms : least_ms);
}

static bool samples_memory(const struct jail *j)
{
	return j->limits[LIMIT_MEMORY].enforced_by == ENFORCED_BY_SUPERVISOR &&
	       j->plan->limits.memory_bytes > 0;
}

static uint64_t room_below_limit(const struct jail *j, uint64_t used_bytes)
{
	uint64_t limit_bytes = j->plan->limits.memory_bytes;
	if (!samples_memory(j))
		return UINT64_MAX;
	return limit_bytes > used_bytes ? limit_bytes - used_bytes : 0;
}

void usage_watch_init(struct usage_watch *w, const struct jail *j)
{
	*w = (struct usage_watch){ 0 };
	bool has_cpu_limit = j->plan->limits.cpu_ms > 0;
	bool has_cgroup = j->cgroup.dir_fd >= 0;
	w->reads_proc = samples_memory(j) || !has_cgroup;
	if (samples_memory(j) || has_cpu_limit)
		w->next_at_ms = clock_ms() + usage_watch_pause_ms(room_below_limit(j, 0), 0, false);
}

void usage_watch_fini(struct usage_watch *w)
{
	free(w->sampler);
	*w = (struct usage_watch){ 0 };
}

/* The cgroup's count, or else the sample's. */
static uint64_t cpu_us_of(const struct jail *j, const struct process_usage *now)
{
	return j->cgroup.dir_fd >= 0 ? cgroup_cpu_us(&j->cgroup) : process_usage_cpu_us(now);
}

/*
 * A child of vfork(2) may be counted with its parent's memory until it calls execve(2).  If that
 * decides, the next sample, a millisecond later, must be above the limit, too.
 */
static bool is_out_of_memory(struct usage_watch *w, const struct jail *j,
			     const struct process_usage *now)
{
	uint64_t limit_bytes = j->plan->limits.memory_bytes;
	bool is_over = samples_memory(j) && now->memory_bytes > limit_bytes;
	bool is_proven = w->was_over || now->memory_bytes - now->doubtful_bytes > limit_bytes;
	w->was_over = is_over;
	return is_over && is_proven;
}

/* Also so much that the sum is well below the limit. */
static uint64_t measure_shared(const struct jail *j, uint64_t mapped_bytes)
{
	struct process_tree tree;
	int proc_fd = j->handles.proc_fd;
	if (!process_tree_list(proc_fd, j->parent_pid, &tree))
		return 0;
	return process_usage_shared(proc_fd, tree.pids, tree.count,
				    mapped_bytes - j->plan->limits.memory_bytes / 2);
}

/* Every process of the jail, or of the exec.  False: some could not be read. */
static bool sum_up(const struct jail *j, struct sampler *s, struct process_usage *out)
{
	const int proc_fd = j->handles.proc_fd;
	struct process_tree tree;
	*out = (struct process_usage){ 0 };
	if (!j->is_shared)
		return process_usage_take(proc_fd, j->handles.box_fd, s, out);
	if (!process_tree_list(proc_fd, j->parent_pid, &tree))
		return false;
	if (tree.is_cut && j->plan->reduced) /* the program's may be among those not looked at */
		return false;
	/* Its own processes; the scratch belongs to all of the session. */
	const struct process_group group = { j->parent_pid, tree.pids, tree.count, tree.is_whole };
	return process_usage_take_of(proc_fd, &group, s, out);
}

/*
 * Processes that ended while shared memory was measured are in the sum, and what they shared was
 * not found: the sum could be above the limit at the end of a run that forked.
 */
static void subtract_ended(struct usage_watch *w, const struct jail *j, struct process_usage *now)
{
	struct process_usage later;
	if (now->memory_bytes <= j->plan->limits.memory_bytes || !sum_up(j, NULL, &later) ||
	    later.processes >= now->processes)
		return;
	uint64_t fall_bytes = w->mapped_bytes - smaller(w->mapped_bytes, later.memory_bytes);
	now->memory_bytes -= smaller(now->memory_bytes, fall_bytes);
}

/*
 * Above the limit, memory that idle processes share by fork(2) is taken off.  To measure it takes
 * the kernel up to 0.2 s for each GiB.  So a result is used for three times as long as that took,
 * unless it would end the program.  What the sum falls meanwhile is no longer shared.
 */
static void subtract_shared(struct usage_watch *w, const struct jail *j, struct process_usage *now)
{
	uint64_t mapped_bytes = now->memory_bytes, limit_bytes = j->plan->limits.memory_bytes;
	uint64_t fall_bytes = w->mapped_bytes > mapped_bytes ? w->mapped_bytes - mapped_bytes : 0;
	uint64_t began_ms = clock_ms();
	w->shared_bytes -= smaller(w->shared_bytes, fall_bytes);
	w->mapped_bytes = mapped_bytes;
	if (!samples_memory(j) || mapped_bytes <= limit_bytes)
		return;
	if (began_ms >= w->shared_until_ms || mapped_bytes > limit_bytes + w->shared_bytes) {
		w->shared_bytes = measure_shared(j, mapped_bytes);
		uint64_t now_ms = clock_ms();
		w->shared_until_ms = now_ms + PAUSES_PER_COST * (now_ms - began_ms);
	}
	now->memory_bytes -= smaller(w->shared_bytes, mapped_bytes);
	subtract_ended(w, j, now);
	now->doubtful_bytes = smaller(now->doubtful_bytes, now->memory_bytes);
}

static void take(struct usage_watch *w, const struct jail *j, struct process_usage *now)
{
	*now = (struct process_usage){ 0 };
	if (!w->reads_proc)
		return;
	if (!w->sampler && j->cgroup.dir_fd < 0)
		w->sampler = sampler_create(); /* NULL: less CPU time is found */
	if (sum_up(j, w->sampler, now))
		w->blind_since_ms = 0;
	else if (w->blind_since_ms == 0)
		w->blind_since_ms = clock_ms();
	subtract_shared(w, j, now);
	process_usage_raise(&w->peak, now);
}

static uint64_t pause_after(const struct usage_watch *w, const struct jail *j,
			    const struct process_usage *now, uint64_t cost_us, bool is_resting)
{
	if (w->was_over)
		return 1;
	return usage_watch_pause_ms(room_below_limit(j, now->memory_bytes), cost_us, is_resting);
}

static int refuse_blindness(const struct usage_watch *w, struct cj_error *err)
{
	if (w->blind_since_ms == 0 || clock_ms() - w->blind_since_ms < BLIND_MAX_MS)
		return 0;
	return cj_reject_as(
	    err, EIO, "the jail's processes can't be sampled, so its limits are not enforced");
}

int usage_watch_sample_memory(struct usage_watch *w, const struct jail *j, bool may_rest,
			      bool *out_is_over, struct cj_error *err)
{
	uint64_t began_us = clock_us();
	struct process_usage now;
	take(w, j, &now);
	*out_is_over = is_out_of_memory(w, j, &now);
	/* 0: it could not be read.  No process has run since the last sample if it is the same. */
	uint64_t cpu_us = cpu_us_of(j, &now);
	bool has_data = w->blind_since_ms == 0;
	bool is_resting = cpu_us > 0 && cpu_us == w->cpu_us && may_rest && has_data;
	w->cpu_us = cpu_us;
	w->next_at_ms = clock_ms() + pause_after(w, j, &now, clock_us() - began_us, is_resting);
	return refuse_blindness(w, err);
}

int usage_watch_sample(struct usage_watch *w, const struct jail *j, struct outcome *out,
		       struct cj_error *err)
{
	const struct limits_spec *limits = &j->plan->limits;
	uint64_t began_us = clock_us();
	struct process_usage now;
	take(w, j, &now);
	if (is_out_of_memory(w, j, &now))
		outcome_decide(out, STATUS_OOM);
	/* Without the launcher's part. */
	if (limits->cpu_ms > 0 &&
	    jail_program_cpu_us(j, cpu_us_of(j, &now)) / 1000 >= limits->cpu_ms)
		outcome_decide(out, STATUS_CPU_LIMIT);

	w->next_at_ms = clock_ms() + pause_after(w, j, &now, clock_us() - began_us, false);
	return out->has_status ? 0 : refuse_blindness(w, err);
}

void usage_watch_last(struct usage_watch *w, const struct jail *j)
{
	struct process_usage now;
	take(w, j, &now);
}
