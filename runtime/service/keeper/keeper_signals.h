/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keeper_signals - signals to a program of a session, until they can be delivered.
 *
 * A program that has not been executed can't get any.  What an interpreter gets before it begins
 * the code of a cell, or after it, has no effect on the cell, or ends the interpreter.  So signals
 * are held meanwhile.  Only SIGKILL is not held for a cell.
 */
#pragma once

#include <signal.h>
#include <stdint.h>

#define KEEPER_SIGNALS_MS 20 /* between attempts */
/* When an interpreter begins is data from inside: a cell gets its signals after this time. */
#define KEEPER_SIGNALS_HOLD_MS 30000

struct session;
struct keeper_repl;

struct keeper_signals {
	uint64_t bits;     /* bit N-1: signal N */
	uint64_t until_ms; /* on clock_ms(): no longer held for a cell */
};

static inline uint64_t keeper_signal_bit(int signo)
{
	return UINT64_C(1) << (signo - 1);
}

/* Those that wait, and more.  As in signal(7), STOP and CONT take each other back. */
static inline uint64_t keeper_signals_join(uint64_t waiting, uint64_t more)
{
	const uint64_t stop = keeper_signal_bit(SIGSTOP), resume = keeper_signal_bit(SIGCONT);

	if (more & resume)
		waiting &= ~stop;
	if (more & stop)
		waiting &= ~resume;
	return waiting | more;
}

void keeper_signals_add(struct keeper_signals *to, uint64_t bits);

/* repl: of a cell, whose interpreter has this slot; NULL: of another program. */
void keeper_signals_deliver(struct keeper_signals *signals, struct session *s, unsigned slot,
			    const struct keeper_repl *repl);
