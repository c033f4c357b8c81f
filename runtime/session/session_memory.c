/* SPDX-License-Identifier: Apache-2.0 */
/* The memory limit and the usage of a whole session. */
#include "runtime/session/session_state.h"

#include <fcntl.h>

#include "runtime/base/clock.h"
#include "runtime/base/files/system_file.h"
#include "runtime/base/scope.h"
#include "runtime/kernel/process/process_tree.h"

/* kernfs reports a change once the file was read: cgroup-v2.rst, "memory.events". */
static void arm(const struct session_memory *m)
{
	char text[SYSTEM_FILE_SMALL];
	if (m->events_fd >= 0)
		(void)!system_file_reread(m->events_fd, text, sizeof(text));
}

void session_memory_init(struct session_memory *m, const struct session *s)
{
	const struct jail *j = s->jail;
	*m = (struct session_memory){ .events_fd = -1 };
	usage_watch_init(&m->usage, j);
	m->usage.next_at_ms = 0;
	m->is_sampled = j->limits[LIMIT_MEMORY].enforced_by == ENFORCED_BY_SUPERVISOR &&
			j->plan->limits.memory_bytes > 0;
	if (j->cgroup.enforced[CGROUP_MEMORY])
		m->events_fd = openat(j->cgroup.dir_fd, "memory.events", O_RDONLY | O_CLOEXEC);
	arm(m);
}

void session_memory_fini(struct session_memory *m)
{
	cj_close(&m->events_fd);
	usage_watch_fini(&m->usage);
}

static bool has_execs(const struct session *s)
{
	for (unsigned i = 0; i < SESSION_EXECS_MAX; i++)
		if (session_slot_has_exec(&s->slots[i]))
			return true;
	return false;
}

/* What ended execs have left behind, and an interpreter between two cells, may still use CPU time:
 * then it is sampled as often as what runs. */
static bool is_idle(const struct session *s)
{
	for (unsigned i = 0; i < SESSION_EXECS_MAX; i++)
		if (session_exec_runs(s, i) && s->slots[i].state != SLOT_BETWEEN_CELLS)
			return false;
	return true;
}

/* At once: the first one, and when an exec or a cell begins. */
static uint64_t due_ms(const struct session *s, const struct session_memory *m)
{
	bool has_begun = m->was_idle && !is_idle(s);
	return m->usage.next_at_ms > 0 && !has_begun ? m->usage.next_at_ms : 1;
}

uint64_t session_memory_next_ms(const struct session *s, const struct session_memory *m)
{
	return m->is_sampled && has_execs(s) ? due_ms(s, m) : 0;
}

enum session_end session_memory_fail(struct cj_error *err)
{
	cj_refuse_as(err, ENOMEM,
		     "the programs of the session together needed more memory "
		     "than it may have");
	cj_hint(err, "raise --memory, or run fewer programs at once");
	return SESSION_OOM;
}

bool session_memory_killed_init(const struct session *s)
{
	struct cgroup_usage usage;
	struct cgroup init = s->jail->cgroup;
	if (s->init_cgroup_fd >= 0) { /* the jail's own counters include those of all execs */
		init.dir_fd = s->init_cgroup_fd;
		init.cpu_fd = -1;
	}
	cgroup_read_usage(&init, &usage);
	return usage.oom_kills > 0;
}

/* --- the keeper enforces the limit -------------------------------------------------------- */

/* By the parents in /proc: an exec's cgroup, if it has one, does not count memory here. */
static uint64_t bytes_of(const struct session *s, unsigned slot)
{
	pid_t reaper_pid = atomic_load(&s->shared->rows[slot].reaper_pid);
	auto_free struct process_tree *tree = malloc(sizeof(*tree));
	int proc_fd = s->jail->handles.proc_fd;
	struct process_usage now;
	if (!tree || reaper_pid <= 0 || !process_tree_list(proc_fd, reaper_pid, tree))
		return 0;
	const struct process_group group = { reaper_pid, tree->pids, tree->count, true };
	(void)process_usage_take_of(proc_fd, &group, NULL, &now); /* what can be read */
	return now.memory_bytes;
}

static void kill_exec(struct session *s, unsigned slot)
{
	struct session_row *row = &s->shared->rows[slot];
	atomic_store(&row->is_oom_killed, true); /* before its worker sees the end */
	if (s->slots[slot].leaf.dir_fd >= 0)
		cgroup_kill(&s->slots[slot].leaf);
	else
		(void)process_tree_kill(s->jail->handles.proc_fd, atomic_load(&row->reaper_pid));
}

/* What was seen above the limit may have ended since; what is left is not the cause. */
static bool is_still_over(const struct jail *j)
{
	struct process_usage now;
	(void)process_usage_take(j->handles.proc_fd, j->handles.box_fd, NULL, &now);
	return now.memory_bytes > j->plan->limits.memory_bytes;
}

/*
 * An exec that was killed still has memory until its last process has ended.  If its reaper was
 * killed with it, its part is not known; the others are not the cause.
 */
static bool is_dying(const struct session *s, unsigned slot)
{
	const struct cgroup *leaf = &s->slots[slot].leaf;
	pid_t reaper_pid = atomic_load(&s->shared->rows[slot].reaper_pid);
	return s->slots[slot].state != SLOT_FREE && leaf->dir_fd >= 0 && reaper_pid > 0 &&
	       process_tree_parent(s->jail->handles.proc_fd, reaper_pid) == 0 &&
	       !cgroup_wait_empty(leaf, 0);
}

/* No longer than for any other exec that is killed. */
static bool may_wait(const struct session *s, struct session_memory *m)
{
	for (unsigned i = 0; i < SESSION_EXECS_MAX; i++) {
		if (!is_dying(s, i))
			continue;
		m->dying_ms = m->dying_ms > 0 ? m->dying_ms : clock_ms();
		return clock_ms() < m->dying_ms + SESSION_KILL_MS;
	}
	m->dying_ms = 0;
	return false;
}

static enum session_end end_largest(struct session *s, struct session_memory *m,
				    struct cj_error *err)
{
	uint64_t largest_bytes = 0, all_bytes = 0;
	unsigned largest = 0;
	for (unsigned i = 0; i < SESSION_EXECS_MAX; i++) {
		uint64_t bytes = session_slot_has_exec(&s->slots[i]) ? bytes_of(s, i) : 0;
		all_bytes += bytes;
		if (bytes > largest_bytes) {
			largest = i;
			largest_bytes = bytes;
		}
	}
	/* In this order: an exec whose reaper ended before it was counted is dying, or gone.
	 * What the others use has its limit meanwhile. */
	bool waits = may_wait(s, m) && all_bytes <= s->jail->plan->limits.memory_bytes;
	if (waits || !is_still_over(s->jail))
		return SESSION_LIVES;
	if (largest_bytes == 0 || largest_bytes < all_bytes - largest_bytes)
		return session_memory_fail(err);
	kill_exec(s, largest);
	return SESSION_LIVES;
}

/* Each sample by itself: there was a spare reaper, or none. */
static void count_sample(struct session *s, struct session_memory *m)
{
	uint64_t processes = m->usage.peak.processes;
	m->usage.peak.processes = 0;
	if (processes > 0 && session_has_spare(s))
		processes--;
	if (processes > s->pids_peak)
		s->pids_peak = processes;
}

/* Files of /box count as memory, but without an exec they do not grow. */
static enum session_end sample(struct session *s, struct session_memory *m, struct cj_error *err)
{
	bool is_over = false;
	if (!m->is_sampled)
		return SESSION_LIVES;
	if (!has_execs(s)) {
		m->usage.next_at_ms = 0;
		return SESSION_LIVES;
	}
	if (clock_ms() < due_ms(s, m))
		return SESSION_LIVES;
	m->was_idle = is_idle(s);
	int rc = usage_watch_sample_memory(&m->usage, s->jail, m->was_idle, &is_over, err);
	count_sample(s, m);
	if (rc < 0)
		return SESSION_FAILED;
	return is_over ? end_largest(s, m, err) : SESSION_LIVES;
}

enum session_end session_memory_turn(struct session *s, struct session_memory *m, bool is_event,
				     struct cj_error *err)
{
	if (!is_event)
		return sample(s, m, err);
	arm(m);
	return session_cgroup_is_out_of_memory(s) ? session_memory_fail(err) : SESSION_LIVES;
}

/* --- usage ------------------------------------------------------------------------------------ */

static void use_sample(struct session *s, struct session_memory *m, struct usage *out)
{
	usage_watch_last(&m->usage, s->jail); /* reads nothing where a cgroup counts */
	count_sample(s, m);
	out->cpu_user_ms = m->usage.peak.cpu_user_us / 1000;
	out->cpu_system_ms = m->usage.peak.cpu_system_us / 1000;
	out->memory_peak_bytes = m->usage.peak.memory_bytes;
	out->has_memory_peak = out->has_pids_peak = m->usage.reads_proc;
}

void session_memory_usage(struct session *s, struct session_memory *m, struct usage *out)
{
	struct cgroup_usage cg = { 0 };
	cgroup_read_usage(&s->jail->cgroup, &cg);
	use_sample(s, m, out);
	if (cg.has_cpu) {
		out->cpu_user_ms = cg.cpu_user_us / 1000;
		out->cpu_system_ms = cg.cpu_system_us / 1000;
	}
	if (cg.has_memory_peak) {
		out->memory_peak_bytes = cg.memory_peak_bytes;
		out->has_memory_peak = true;
	}
	if (cg.has_pids_peak) {
		session_cgroup_count_pids(s, cg.pids_peak, session_has_spare(s));
		out->has_pids_peak = true;
	}
	out->pids_peak = s->pids_peak;
}

/* The last sample counts shared memory for each process: more than is used, never less. */
uint64_t session_memory_now(const struct session *s, const struct session_memory *m)
{
	if (s->jail->cgroup.enforced[CGROUP_MEMORY])
		return cgroup_memory_bytes(&s->jail->cgroup);
	return m->usage.reads_proc && m->usage.blind_since_ms == 0 ? m->usage.mapped_bytes
								   : UINT64_MAX;
}
