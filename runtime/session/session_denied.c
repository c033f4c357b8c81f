/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which exec a refused system call belongs to.  Acts.
 *
 * The keeper answers the notified calls of all execs.  It finds the exec of a caller by its parents
 * in /proc, up to a reaper, and counts the call in the exec's row before it answers.  So the exec's
 * worker, which waits for the program's end, finds it there.
 *
 * The caller stands still in its call, but its parents may end during the walk, and their numbers
 * may be used again.  So after each step up the last one is read again: a parent that is still the
 * parent was alive all the time.  A program can fork a chain that is longer than WALK_MAX; then its
 * call is missing in each exec that runs, and each says so.
 */
#include "runtime/session/session_state.h"

#include <assert.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/files/system_file.h"
#include "runtime/kernel/seccomp/filter.h"
#include "runtime/kernel/process/process_tree.h"
#include "runtime/kernel/process/process_usage_text.h"

#define WALK_MAX 128 /* parents above the caller; two files are read for each */

static_assert(FILTER_GROUPS_MAX == SESSION_EXECS_MAX, "a group for each slot");

/* --- the keeper --------------------------------------------------------------------------- */

/* -1: no exec has this reaper. */
static int slot_of_reaper(const struct session *s, pid_t host_pid)
{
	for (unsigned i = 0; i < SESSION_EXECS_MAX; i++)
		if (session_slot_has_exec(&s->slots[i]) &&
		    atomic_load(&s->shared->rows[i].reaper_host_pid) == host_pid)
			return (int)i;
	return -1;
}

static int find_exec(void *context, pid_t pid, unsigned *out_price)
{
	const struct session *s = context;
	pid_t child_pid = 0;
	for (unsigned steps = 0; pid > 1 && steps < WALK_MAX; steps++) {
		pid_t parent_pid = process_tree_parent(s->host_proc_fd, pid);
		if (child_pid > 0 && process_tree_parent(s->host_proc_fd, child_pid) != pid)
			return -1;
		*out_price += 2;
		int slot = slot_of_reaper(s, parent_pid);
		if (slot >= 0)
			return slot;
		child_pid = pid;
		pid = parent_pid;
	}
	return -1;
}

static void count_in(struct session_row *row, const char *name)
{
	unsigned count = atomic_load(&row->ndenied);
	for (unsigned i = 0; i < count; i++) {
		struct session_denied_row *d = &row->denied[i];
		if (strcmp(d->name, name) == 0) {
			unsigned times = atomic_load(&d->count);
			atomic_store(&d->count, times < UINT_MAX ? times + 1 : times);
			return;
		}
	}
	if (count == SESSION_DENIED_MAX) {
		atomic_store(&row->denied_is_incomplete, true);
		return;
	}
	(void)snprintf(row->denied[count].name, sizeof(row->denied[count].name), "%s", name);
	atomic_store(&row->denied[count].count, 1);
	atomic_store(&row->ndenied, count + 1); /* last: a reader sees whole rows */
}

static void count_call(void *context, int slot, const char *name)
{
	struct session *s = context;
	if (slot >= 0) {
		count_in(&s->shared->rows[slot], name);
		return;
	}
	for (unsigned i = 0; i < SESSION_EXECS_MAX; i++)
		if (session_slot_has_exec(&s->slots[i]))
			atomic_store(&s->shared->rows[i].denied_is_incomplete, true);
}

static bool is_itself(void *context, pid_t pid, pid_t named)
{
	const struct session *s = context;
	char name[32], text[SYSTEM_FILE_SMALL];
	(void)snprintf(name, sizeof(name), "%d/status", pid);
	return named > 0 && system_file_read(s->host_proc_fd, name, text, sizeof(text)) > 0 &&
	       process_usage_text_is(text, (uint64_t)named);
}

void session_denied_begin(struct session *s)
{
	if (s->jail->watch)
		filter_watch_split(s->jail->watch,
				   &(struct filter_groups){ find_exec, count_call, is_itself, s });
}

void session_denied_restart(struct session *s, unsigned slot)
{
	struct session_row *row = &s->shared->rows[slot];
	atomic_store(&row->ndenied, 0);
	atomic_store(&row->denied_is_incomplete, false);
	session_packets_clear(row);
}

void session_denied_clear(struct session *s, unsigned slot)
{
	session_denied_restart(s, slot);
	if (s->jail->watch)
		filter_watch_forget(s->jail->watch, (int)slot);
}

/* --- the exec's worker ------------------------------------------------------------------------ */

int session_denied_read(const struct session_row *row, struct outcome *out, struct cj_error *err)
{
	unsigned count = atomic_load(&row->ndenied);
	if (atomic_load(&row->denied_is_incomplete))
		outcome_warn(out,
			     "some denied system calls were not counted: there were more than %d "
			     "different ones, or the exec of a caller could not be found",
			     SESSION_DENIED_MAX);
	if (count == 0)
		return 0;
	out->denied = arena_array(&out->arena, count, sizeof(*out->denied));
	if (!out->denied)
		return cj_fail(err, ENOMEM, "keep the denied system calls");
	for (unsigned i = 0; i < count && i < SESSION_DENIED_MAX; i++) {
		char *name = arena_strdup(&out->arena, row->denied[i].name);
		if (!name)
			return cj_fail(err, ENOMEM, "keep the denied system calls");
		out->denied[out->ndenied++] =
		    (struct denied_syscall){ name, atomic_load(&row->denied[i].count) };
	}
	return 0;
}
