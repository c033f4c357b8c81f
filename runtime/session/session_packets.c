/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which execs a denied packet belongs to.  Acts.
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
#include "runtime/session/session_state.h"

#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "netns/network.h"
#include "runtime/base/clock.h"
#include "runtime/base/sys.h"

#define ANSWER_MS 2000 /* for the keeper; it makes cgroups meanwhile, or builds the network */
#define LOOK_MS   1

/* --- the keeper --------------------------------------------------------------------------- */

static bool may_send(const struct session *s, unsigned slot)
{
	return session_slot_has_exec(&s->slots[slot]) &&
	       atomic_load(&s->shared->rows[slot].state) != EXEC_EMPTY;
}

static unsigned count_senders(const struct session *s)
{
	unsigned count = 0;
	for (unsigned i = 0; i < SESSION_EXECS_MAX; i++)
		count += may_send(s, i);
	return count;
}

void session_packets_sync(struct session *s)
{
	struct cj_error ignored = { 0 };
	struct denials taken;
	struct network *network = s->jail->network;
	if (!network || !network_is_filtered(network))
		return;
	bool is_complete = network_take_denials(network, &taken, &ignored) == 0;
	bool is_shared = count_senders(s) > 1;
	for (unsigned i = 0; i < SESSION_EXECS_MAX; i++) {
		struct session_row *row = &s->shared->rows[i];
		if (!may_send(s, i) || atomic_load(&row->packets_state) >= PACKETS_SETTLED)
			continue;
		denials_merge(&row->packets, &taken, is_shared);
		row->packets_are_incomplete |= !is_complete;
	}
}

void session_packets_clear(struct session_row *row)
{
	row->packets.count = 0;
	memset(row->packets.counted, 0, sizeof(row->packets.counted));
	row->packets_are_incomplete = false;
	atomic_store(&row->packets_state, PACKETS_COUNTED);
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

/* --- the exec's worker ---------------------------------------------------------------------- */

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
