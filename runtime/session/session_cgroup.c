/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cgroups of a session below its jail's.
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
#include <stdio.h>
#include <string.h>

#include "runtime/base/files/system_file.h"
#include "runtime/base/scope.h"
#include "runtime/kernel/cgroup/cgroup_tree.h"

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
void session_cgroup_count_pids(struct session *s, uint64_t peak, bool had_spare)
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
		session_cgroup_count_pids(s, peak, !has_spare);
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

/* A leaf in which the kernel has killed. */
static bool is_victim(const struct cgroup *leaf, uint64_t *out_peak_bytes)
{
	struct cgroup_usage usage;
	cgroup_read_usage(leaf, &usage);
	*out_peak_bytes = usage.has_memory_peak ? usage.memory_peak_bytes : UINT64_MAX;
	return usage.oom_kills > 0;
}

bool session_cgroup_is_out_of_memory(struct session *s)
{
	uint64_t largest_bytes = 0, others_bytes = 0;
	bool is_new = false;
	for (size_t i = 0; i < SESSION_EXECS_MAX; i++) {
		struct session_slot *slot = &s->slots[i];
		uint64_t peak_bytes = 0;
		if (!session_slot_has_exec(slot) || slot->leaf.dir_fd < 0)
			continue;
		if (!is_victim(&slot->leaf, &peak_bytes)) {
			uint64_t current_bytes = 0;
			(void)cgroup_read_number(slot->leaf.dir_fd, "memory.current",
						 &current_bytes);
			others_bytes += current_bytes;
			continue;
		}
		is_new |= !slot->was_oom_killed;
		slot->was_oom_killed = true;
		largest_bytes = peak_bytes > largest_bytes ? peak_bytes : largest_bytes;
	}
	return is_new && others_bytes > largest_bytes;
}
