/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reservation - the memory that each session reserves of what all sessions may have.
 *
 * A session reserves its memory limit while it is created and while one of its runs (execs) is in
 * progress.  Between them it reserves what it uses, as its jail was measured last, and at least
 * RESERVATION_MIN.  With is_strict it always reserves its limit.
 *
 * A session that was not measured since its last run still reserves its limit.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define RESERVATION_MIN (8u << 20) /* a jail in which nothing runs uses less */

/* What all sessions reserve together. */
struct reservations {
	uint64_t most_bytes; /* for reservation_fits() */
	uint64_t bytes;
	uint64_t limits_bytes; /* the sum of their limits */
	bool is_strict;
};

/* Of one session; all of it 0: it reserves nothing. */
struct reservation {
	struct reservations *all; /* borrowed; NULL: not begun, or ended */
	uint64_t limit_bytes;
	uint64_t bytes; /* reserved now */
	uint64_t used_bytes;
	bool is_measured; /* since the last run ended */
	unsigned runs;    /* in progress */
};

void reservation_begin(struct reservation *r, struct reservations *all, uint64_t limit_bytes);
void reservation_end(struct reservation *r);

/* May `bytes` more be reserved? */
bool reservations_have_room(const struct reservations *all, uint64_t bytes);
/* May a run begin: is the limit reserved, or is there room for it? */
bool reservation_fits(const struct reservation *r);

/* A run begins, or has ended. */
void reservation_enter(struct reservation *r);
void reservation_leave(struct reservation *r);
/* UINT64_MAX: not known.  A measurement during a run changes nothing. */
void reservation_measure(struct reservation *r, uint64_t used_bytes);
/* After all->is_strict has changed. */
void reservation_renew(struct reservation *r);
