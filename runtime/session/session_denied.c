/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which exec a refused system call or a denied packet belongs to.
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
#include <poll.h>

#include "netns/network.h"
#include "runtime/base/clock.h"
#include "runtime/base/files/system_file.h"
#include "runtime/base/sys.h"
#include "runtime/kernel/process/process_tree.h"
#include "runtime/kernel/process/process_usage_text.h"

#define WALK_MAX 128 /* parents above the caller; two files are read for each */

static_assert(FILTER_GROUPS_MAX == SESSION_EXECS_MAX, "a group for each slot");

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
	row->packets.count = 0;
	memset(row->packets.counted, 0, sizeof(row->packets.counted));
	row->packets_are_incomplete = false;
	atomic_store(&row->packets_state, PACKETS_COUNTED); /* after session_packets_sync() */
}

void session_denied_clear(struct session *s, unsigned slot)
{
	session_denied_restart(s, slot);
	if (s->jail->watch)
		filter_watch_forget(s->jail->watch, (int)slot);
}

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

/*
 * --- denied packets ---
 *
 * The kernel's log of a denied packet does not have the process that sent it.  So a packet belongs
 * to each exec that lived when it was denied.  If only one lived, that one has sent it: while a
 * process of an exec lives, the exec is one that could have sent it.  Else the packet is in the row
 * of each exec, marked as shared.
 *
 * The keeper takes the denied packets before the set of these execs changes: before an exec begins,
 * and after the processes of one have ended.  The worker of an exec asks for that, because it knows
 * the end first, and waits for the answer.  Afterwards the keeper adds nothing to the row.
 */

#define ANSWER_MS 2000 /* for the keeper; it makes cgroups meanwhile, or builds the network */
#define LOOK_MS   1

static bool may_send(const struct session *s, unsigned slot)
{
	return session_slot_has_exec(&s->slots[slot]) &&
	       atomic_load(&s->shared->rows[slot].state) != EXEC_EMPTY;
}

void session_packets_sync(struct session *s)
{
	struct cj_error ignored = { 0 };
	struct denials taken;
	struct network *network = s->jail->network;
	if (!network || !network_is_filtered(network))
		return;
	bool is_complete = network_take_denials(network, &taken, &ignored) == 0;
	unsigned senders = 0;
	for (unsigned i = 0; i < SESSION_EXECS_MAX; i++)
		senders += may_send(s, i);
	for (unsigned i = 0; i < SESSION_EXECS_MAX; i++) {
		struct session_row *row = &s->shared->rows[i];
		if (!may_send(s, i) || atomic_load(&row->packets_state) >= PACKETS_SETTLED)
			continue;
		denials_merge(&row->packets, &taken, senders > 1);
		row->packets_are_incomplete |= !is_complete;
	}
}

/* Not if its worker has given up meanwhile. */
static void settle_from(struct session_row *row, unsigned state)
{
	(void)atomic_compare_exchange_strong(&row->packets_state, &state, PACKETS_SETTLED);
}

/* A worker that asks after the look has written a byte that is still in the pipe. */
void session_packets_answer(struct session *s)
{
	struct session_row *rows = s->shared->rows;
	char bytes[SESSION_EXECS_MAX];
	bool has_asked[SESSION_EXECS_MAX];
	(void)sys_read(s->packets_fds[0], bytes, sizeof(bytes));
	for (unsigned i = 0; i < SESSION_EXECS_MAX; i++)
		has_asked[i] = atomic_load(&rows[i].packets_state) == PACKETS_ASKED;
	session_packets_sync(s);
	for (unsigned i = 0; i < SESSION_EXECS_MAX; i++)
		if (has_asked[i])
			settle_from(&rows[i], PACKETS_ASKED);
}

void session_packets_end(struct session *s)
{
	session_packets_sync(s);
	for (unsigned i = 0; i < SESSION_EXECS_MAX; i++) {
		settle_from(&s->shared->rows[i], PACKETS_COUNTED);
		settle_from(&s->shared->rows[i], PACKETS_ASKED);
	}
}

static void ask_keeper(const struct session *s, struct session_row *row)
{
	const uint64_t until_ms = clock_ms() + ANSWER_MS;
	unsigned counted = PACKETS_COUNTED, asked = PACKETS_ASKED;
	/* It fails after session_packets_end(), and the second time in one exec. */
	if (!atomic_compare_exchange_strong(&row->packets_state, &counted, PACKETS_ASKED))
		return;
	(void)sys_write(s->packets_fds[1], "", 1); /* EAGAIN: the keeper has more to read */
	while (atomic_load(&row->packets_state) == PACKETS_ASKED && clock_ms() < until_ms)
		(void)poll(NULL, 0, LOOK_MS);
	(void)atomic_compare_exchange_strong(&row->packets_state, &asked, PACKETS_GIVEN_UP);
}

void session_packets_settle(struct session *s, unsigned slot)
{
	struct session_row *row = &s->shared->rows[slot];
	if (atomic_load(&s->shared->network) == NETWORK_UNUSED)
		return;
	if (getpid() != s->keeper_pid) {
		ask_keeper(s, row);
		return;
	}
	session_packets_sync(s);
	atomic_store(&row->packets_state, PACKETS_SETTLED);
}

int session_packets_read(const struct session_row *row, struct outcome *out, struct cj_error *err)
{
	const unsigned state = atomic_load(&row->packets_state);
	if (state == PACKETS_COUNTED)
		return 0; /* the session has no network */
	if (state != PACKETS_SETTLED || row->packets_are_incomplete)
		outcome_warn(out, "the count of denied packets may be too low");
	if (state != PACKETS_SETTLED || row->packets.count == 0)
		return 0;
	struct denial *copy = arena_array(&out->arena, row->packets.count, sizeof(*copy));
	if (!copy)
		return cj_fail(err, ENOMEM, "keep the denied packets");
	memcpy(copy, row->packets.items, row->packets.count * sizeof(*copy));
	out->network.denied = copy;
	out->network.ndenied = row->packets.count;
	return 0;
}
