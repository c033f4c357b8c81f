/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cgroups of a session below its jail's, its memory limit and its usage.
 *
 *	cejail-ID            the limits of the session; no process
 *	cejail-ID/init       init
 *	cejail-ID/e1, e2...  one for each exec: its reaper and all of its processes
 *
 * A cgroup that enables controllers for its children contains no process: cgroups(7).  So init is
 * born in a child (cgroup_divide()).  Each exec's leaf repeats the session's limits: then a limit
 * that one exec reaches alone is counted there.
 *
 * Init forks the reapers and may not write to a cgroup.  So a reaper gets the file "cgroup.procs"
 * of its leaf from the keeper, open for writing, and moves itself before it announces itself.  Such
 * a move waits 8 to 17 ms for an RCU grace period; session_slots.c has one reaper do that ahead.
 *
 * memory.oom.group of the session's own cgroup is cleared: the kernel kills the highest group that
 * has it, and that shall be one exec.
 *
 * Without controllers the leaves still serve to kill the processes of one exec and to count their
 * CPU time.
 */
#include "runtime/session/session_state.h"

#include <fcntl.h>
#include <inttypes.h>

#include "runtime/base/clock.h"
#include "runtime/base/files/system_file.h"
#include "runtime/base/scope.h"
#include "runtime/kernel/cgroup/cgroup_tree.h"
#include "runtime/kernel/process/process_tree.h"

#define SPARE_PIDS 16 /* of so many processes, a spare reaper may be one */

static bool has_controller(int dir_fd, enum cgroup_controller which)
{
	char list[SYSTEM_FILE_SMALL];
	return cgroup_tree_read(dir_fd, "cgroup.subtree_control", list) &&
	       cgroup_text_has_word(list, cgroup_controller_names[which]);
}

void session_cgroup_begin(struct session *s)
{
	struct cgroup *c = &s->jail->cgroup;
	s->init_cgroup_fd = take_fd(&c->init_fd);
	if (s->init_cgroup_fd >= 0 && has_controller(c->dir_fd, CGROUP_MEMORY))
		(void)system_file_write(c->dir_fd, "memory.oom.group",
					"0"); /* was written before */
}

/* The new leaf, not made yet. */
static bool place_leaf(const struct session *s, uint64_t number, struct cgroup *out)
{
	const struct cgroup *above = &s->jail->cgroup;
	int size = snprintf(out->path, sizeof(out->path), "%s/" CGROUP_EXEC_PREFIX "%" PRIu64,
			    above->path, number);
	if (size < 0 || (size_t)size >= sizeof(out->path))
		return false;
	for (size_t i = 0; i < CGROUP_CONTROLLER_COUNT; i++)
		out->offered[i] = above->enforced[i] &&
				  has_controller(above->dir_fd, (enum cgroup_controller)i);
	out->parent_fd = openat(above->dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	out->origin = above->origin;
	return out->parent_fd >= 0;
}

void session_cgroup_add(struct session *s, struct cgroup *out)
{
	const struct limits_spec *plan = &s->jail->plan->limits;
	const struct cgroup_limits limits = {
		.memory_bytes = plan->memory_bytes,
		.millicpus = plan->millicpus,
		.pids = plan->pids, /* its reaper counts as one of the session's processes */
	};
	struct cgroup leaf = CGROUP_NULL;
	struct cj_error ignored; /* an exec without a leaf is killed by its descendants */
	*out = CGROUP_NULL;
	if (s->init_cgroup_fd < 0 || !place_leaf(s, s->execs_begun, &leaf))
		return;
	if (cgroup_make(&leaf, &limits, &ignored) < 0) {
		(void)cgroup_destroy(&leaf);
		return;
	}
	*out = leaf;
}

/* A limit by setrlimit(2) counts the spare: no process of a jail may raise its own. */
bool session_cgroup_has_room(const struct session *s)
{
	uint64_t pids = s->jail->plan->limits.pids;
	return pids == 0 || pids >= SPARE_PIDS || s->jail->cgroup.enforced[CGROUP_PIDS];
}

/*
 * The kernel counts the spare, too.  A peak that has grown is from the time since the last call.
 * If it has not grown, the session may have had as many processes without a spare as before with
 * one, which is one more than is counted: pids.peak can't show that.
 */
static void count_pids(struct session *s, uint64_t peak, bool had_spare)
{
	const uint64_t ours = 1 + had_spare; /* and init */
	if (peak <= s->pids_counted)
		return;
	s->pids_counted = peak;
	if (peak > ours && peak - ours > s->pids_peak)
		s->pids_peak = peak - ours;
}

void session_cgroup_make_room(struct session *s, bool has_spare)
{
	const struct cgroup *c = &s->jail->cgroup;
	uint64_t peak = 0;
	char text[24];
	if (cgroup_read_number(c->dir_fd, "pids.peak", &peak))
		count_pids(s, peak, !has_spare);
	if (s->jail->plan->limits.pids == 0 || !c->enforced[CGROUP_PIDS])
		return;
	(void)snprintf(text, sizeof(text), "%" PRIu64,
		       s->jail->plan->limits.pids + 1 + has_spare); /* and init */
	(void)system_file_write(c->dir_fd, "pids.max", text); /* else the limit is lower by one */
}

int session_cgroup_door(const struct cgroup *leaf)
{
	return leaf->dir_fd < 0 ? -1 : openat(leaf->dir_fd, "cgroup.procs", O_WRONLY | O_CLOEXEC);
}

int session_cgroup_join(const struct cgroup *leaf, pid_t pid)
{
	pid_t alone;
	if (cgroup_tree_own_pids(leaf->dir_fd, &alone, 1) == 1 && alone == pid)
		return 0;
	return cgroup_move(leaf->dir_fd, pid);
}

/* kernfs reports a change once the file was read: cgroup-v2.rst, "memory.events". */
static void arm(const struct session *s)
{
	char text[SYSTEM_FILE_SMALL];
	if (s->memory.events_fd >= 0)
		(void)!system_file_reread(s->memory.events_fd, text, sizeof(text));
}

void session_memory_init(struct session *s)
{
	const struct jail *j = s->jail;
	s->memory = (struct session_memory){ .events_fd = -1 };
	usage_watch_init(&s->memory.usage, j);
	s->memory.usage.next_at_ms = 0;
	s->memory.is_sampled = j->limits[LIMIT_MEMORY].enforced_by == ENFORCED_BY_SUPERVISOR &&
			       j->plan->limits.memory_bytes > 0;
	if (j->cgroup.enforced[CGROUP_MEMORY])
		s->memory.events_fd =
		    openat(j->cgroup.dir_fd, "memory.events", O_RDONLY | O_CLOEXEC);
	arm(s);
}

void session_memory_fini(struct session *s)
{
	cj_close(&s->memory.events_fd);
	usage_watch_fini(&s->memory.usage);
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
static uint64_t due_ms(const struct session *s)
{
	bool has_begun = s->memory.was_idle && !is_idle(s);
	return s->memory.usage.next_at_ms > 0 && !has_begun ? s->memory.usage.next_at_ms : 1;
}

uint64_t session_memory_next_ms(const struct session *s)
{
	return s->memory.is_sampled && has_execs(s) ? due_ms(s) : 0;
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
static bool may_wait(struct session *s)
{
	for (unsigned i = 0; i < SESSION_EXECS_MAX; i++) {
		if (!is_dying(s, i))
			continue;
		s->memory.dying_ms = s->memory.dying_ms > 0 ? s->memory.dying_ms : clock_ms();
		return clock_ms() < s->memory.dying_ms + SESSION_KILL_MS;
	}
	s->memory.dying_ms = 0;
	return false;
}

static enum session_end end_largest(struct session *s, struct cj_error *err)
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
	const struct jail *j = s->jail;
	if (may_wait(s) && all_bytes <= j->plan->limits.memory_bytes)
		return SESSION_LIVES;
	/* What was seen above the limit may have ended since; what is left is not the cause. */
	struct process_usage now;
	(void)process_usage_take(j->handles.proc_fd, j->handles.box_fd, NULL, &now);
	if (now.memory_bytes <= j->plan->limits.memory_bytes)
		return SESSION_LIVES;
	if (largest_bytes == 0 || largest_bytes < all_bytes - largest_bytes)
		return session_memory_fail(err);
	struct session_row *row = &s->shared->rows[largest];
	atomic_store(&row->is_oom_killed, true); /* before its worker sees the end */
	if (s->slots[largest].leaf.dir_fd >= 0)
		cgroup_kill(&s->slots[largest].leaf);
	else
		(void)process_tree_kill(j->handles.proc_fd, atomic_load(&row->reaper_pid));
	return SESSION_LIVES;
}

/* Each sample by itself: there was a spare reaper, or none. */
static void count_sample(struct session *s)
{
	uint64_t processes = s->memory.usage.peak.processes;
	s->memory.usage.peak.processes = 0;
	if (processes > 0 && session_has_spare(s))
		processes--;
	if (processes > s->pids_peak)
		s->pids_peak = processes;
}

/* Files of /box count as memory, but without an exec they do not grow. */
static enum session_end sample(struct session *s, struct cj_error *err)
{
	bool is_over = false;
	if (!s->memory.is_sampled)
		return SESSION_LIVES;
	if (!has_execs(s)) {
		s->memory.usage.next_at_ms = 0;
		return SESSION_LIVES;
	}
	if (clock_ms() < due_ms(s))
		return SESSION_LIVES;
	s->memory.was_idle = is_idle(s);
	int rc =
	    usage_watch_sample_memory(&s->memory.usage, s->jail, s->memory.was_idle, &is_over, err);
	count_sample(s);
	if (rc < 0)
		return SESSION_FAILED;
	return is_over ? end_largest(s, err) : SESSION_LIVES;
}

/*
 * The kernel's OOM killer was active: must the session end?  The kernel kills one exec.  If that
 * used at least as much memory as all other execs together, it is the cause, and the others live
 * on.  Else all of them are: true.
 */
static bool is_out_of_memory(struct session *s)
{
	uint64_t largest_bytes = 0, others_bytes = 0;
	bool is_new = false;
	for (size_t i = 0; i < SESSION_EXECS_MAX; i++) {
		struct session_slot *slot = &s->slots[i];
		struct cgroup_usage usage;
		uint64_t current_bytes = 0;
		if (!session_slot_has_exec(slot) || slot->leaf.dir_fd < 0)
			continue;
		cgroup_read_usage(&slot->leaf, &usage);
		if (usage.oom_kills == 0) {
			(void)cgroup_read_number(slot->leaf.dir_fd, "memory.current",
						 &current_bytes);
			others_bytes += current_bytes;
			continue;
		}
		is_new |= !slot->was_oom_killed;
		slot->was_oom_killed = true;
		if (!usage.has_memory_peak)
			largest_bytes = UINT64_MAX;
		else if (usage.memory_peak_bytes > largest_bytes)
			largest_bytes = usage.memory_peak_bytes;
	}
	return is_new && others_bytes > largest_bytes;
}

enum session_end session_memory_turn(struct session *s, bool is_event, struct cj_error *err)
{
	if (!is_event)
		return sample(s, err);
	arm(s);
	return is_out_of_memory(s) ? session_memory_fail(err) : SESSION_LIVES;
}

void session_memory_usage(struct session *s, struct usage *out)
{
	const struct usage_watch *sampled = &s->memory.usage;
	struct cgroup_usage cg = { 0 };
	cgroup_read_usage(&s->jail->cgroup, &cg);
	usage_watch_last(&s->memory.usage, s->jail); /* reads nothing where a cgroup counts */
	count_sample(s);
	out->cpu_user_ms = sampled->peak.cpu_user_us / 1000;
	out->cpu_system_ms = sampled->peak.cpu_system_us / 1000;
	out->memory_peak_bytes = sampled->peak.memory_bytes;
	out->has_memory_peak = out->has_pids_peak = sampled->reads_proc;
	if (cg.has_cpu) {
		out->cpu_user_ms = cg.cpu_user_us / 1000;
		out->cpu_system_ms = cg.cpu_system_us / 1000;
	}
	if (cg.has_memory_peak) {
		out->memory_peak_bytes = cg.memory_peak_bytes;
		out->has_memory_peak = true;
	}
	if (cg.has_pids_peak) {
		count_pids(s, cg.pids_peak, session_has_spare(s));
		out->has_pids_peak = true;
	}
	out->pids_peak = s->pids_peak;
}

/* The last sample counts shared memory for each process: more than is used, never less. */
uint64_t session_memory_now(const struct session *s)
{
	if (s->jail->cgroup.enforced[CGROUP_MEMORY])
		return cgroup_memory_bytes(&s->jail->cgroup);
	return s->memory.usage.reads_proc && s->memory.usage.blind_since_ms == 0
		   ? s->memory.usage.mapped_bytes
		   : UINT64_MAX;
}
