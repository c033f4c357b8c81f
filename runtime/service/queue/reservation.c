/* SPDX-License-Identifier: Apache-2.0 */
/* The sum of what sessions reserve. */
#include "runtime/service/queue/reservation.h"

#include <assert.h>

static uint64_t wanted(const struct reservation *r)
{
	uint64_t used_bytes = r->used_bytes > RESERVATION_MIN ? r->used_bytes : RESERVATION_MIN;

	if (r->all->is_strict || r->runs > 0 || !r->is_measured || used_bytes > r->limit_bytes)
		return r->limit_bytes;
	return used_bytes;
}

void reservation_renew(struct reservation *r)
{
	r->all->bytes -= r->bytes;
	r->bytes = wanted(r);
	r->all->bytes += r->bytes;
}

void reservation_begin(struct reservation *r, struct reservations *all, uint64_t limit_bytes)
{
	*r = (struct reservation){ .all = all, .limit_bytes = limit_bytes };
	all->limits_bytes += limit_bytes;
	reservation_renew(r);
}

void reservation_end(struct reservation *r)
{
	r->all->bytes -= r->bytes;
	r->all->limits_bytes -= r->limit_bytes;
	*r = (struct reservation){ 0 };
}

bool reservations_have_room(const struct reservations *all, uint64_t bytes)
{
	return all->bytes <= all->most_bytes && bytes <= all->most_bytes - all->bytes;
}

bool reservation_fits(const struct reservation *r)
{
	return r->bytes == r->limit_bytes ||
	       reservations_have_room(r->all, r->limit_bytes - r->bytes);
}

void reservation_enter(struct reservation *r)
{
	r->runs++;
	r->is_measured = false;
	reservation_renew(r);
}

void reservation_leave(struct reservation *r)
{
	assert(r->runs > 0);
	r->runs--;
}

void reservation_measure(struct reservation *r, uint64_t used_bytes)
{
	r->used_bytes = used_bytes;
	r->is_measured = r->runs == 0;
	reservation_renew(r);
}
