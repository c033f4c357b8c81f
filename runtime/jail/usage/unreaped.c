/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is gone against what was reaped.  Pure.
 *
 * The processes are read one after another, so a parent's sum may have grown one sample before its
 * child is seen to be gone, or one sample later: `credit_us` and `fresh` wait for the next one.
 */
#include "runtime/jail/usage/unreaped.h"

/* Takes what `paid_us` can pay off `debt`, the estimate in proportion. */
static void pay(struct unreaped_debt *debt, uint64_t *paid_us)
{
	uint64_t part_us = debt->us < *paid_us ? debt->us : *paid_us;
	if (part_us == 0)
		return;
	debt->estimate_us -=
	    (uint64_t)((double)debt->estimate_us * (double)part_us / (double)debt->us);
	debt->us -= part_us;
	*paid_us -= part_us;
}

uint64_t unreaped_settle(struct unreaped *u, const struct unreaped_change *change)
{
	uint64_t reaped_us = change->reaped_us, lost_us = 0;
	pay(&u->debt, &reaped_us);
	pay(&u->fresh, &reaped_us);
	u->debt.us += u->fresh.us;
	u->debt.estimate_us += u->fresh.estimate_us;
	if (u->debt.us > change->slack_us) {
		lost_us = u->debt.estimate_us;
		u->debt = (struct unreaped_debt){ 0 };
	}

	u->fresh.us = change->gone_us;
	u->fresh.estimate_us = change->estimate_us > change->gone_us ? change->estimate_us
								     : change->gone_us;
	pay(&u->fresh, &u->credit_us);
	pay(&u->fresh, &reaped_us);
	u->credit_us = reaped_us;
	return lost_us;
}
