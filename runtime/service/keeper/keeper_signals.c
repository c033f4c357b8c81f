/* SPDX-License-Identifier: Apache-2.0 */
/* Signals to a program of a session. */
#include "runtime/service/keeper/keeper_signals.h"

#include <errno.h>
#include <signal.h>

#include "runtime/base/clock.h"
#include "runtime/service/keeper/keeper_repl.h"
#include "runtime/session/session.h"

void keeper_signals_add(struct keeper_signals *to, uint64_t bits)
{
	if (to->bits == 0)
		to->until_ms = clock_ms() + KEEPER_SIGNALS_HOLD_MS;
	to->bits = keeper_signals_join(to->bits, bits);
}

/* ESRCH: its program does not run yet, or has ended, and then its worker ends soon, too. */
void keeper_signals_deliver(struct keeper_signals *signals, struct session *s, unsigned slot,
			    const struct keeper_repl *repl)
{
	const bool is_held = repl && !keeper_repl_runs_code(repl) && clock_ms() < signals->until_ms;

	for (int signo = 1; signals->bits != 0 && signo < NSIG; signo++) {
		struct cj_error err = { 0 };
		const uint64_t bit = keeper_signal_bit(signo);
		if ((signals->bits & bit) == 0 || (is_held && signo != SIGKILL))
			continue;
		if (session_exec_signal(s, slot, signo, &err) == 0 || err.code != ESRCH)
			signals->bits &= ~bit;
	}
}
