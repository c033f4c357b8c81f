/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/jail/usage/sampler.h"

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

/* Of user and of system time each, what /proc/PID/stat leaves off a sum. */
#define TICKS_LEFT_OFF 2
#define SLACK_SUMS_MAX 16 /* of so many sums: else idle processes would hide much */

struct sampler {
	struct unreaped unreaped;
	uint64_t grown_us, unreaped_us;
	uint64_t last_us;   /* when the last sample ended */
	uint64_t reaped_us; /* since then, as far as the sample that is going on has come */
	uint64_t tick_us;
	size_t nbefore, nnow, at;
	struct entry {
		struct sampled_process process;
		bool is_there; /* in the sample that is going on, too */
	} pages[2][SAMPLER_PIDS_MAX], *before, *now;
};

struct sampler *sampler_create(void)
{
	struct sampler *s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	s->tick_us = 1000000 / (uint64_t)sysconf(_SC_CLK_TCK);
	s->before = s->pages[0];
	s->now = s->pages[1];
	return s;
}

/* /proc lists processes in one order, so the search goes on where the last one ended. */
static struct entry *find_before(struct sampler *s, const struct sampled_process *p)
{
	for (size_t n = 0; n < s->nbefore; n++) {
		size_t i = (s->at + n) % s->nbefore;
		const struct sampled_process *old = &s->before[i].process;
		if (old->pid == p->pid && old->start_ticks == p->start_ticks) {
			s->at = i + 1;
			return &s->before[i];
		}
	}
	return NULL;
}

static uint64_t growth(uint64_t before, uint64_t now)
{
	return now > before ? now - before : 0;
}

void sampler_add(struct sampler *s, const struct sampled_process *p)
{
	struct entry *old = find_before(s, p);
	s->grown_us += growth(old ? old->process.own_us : 0, p->own_us);
	s->reaped_us += growth(old ? old->process.children_us : 0, p->children_us);
	if (old)
		old->is_there = true;
	if (s->nnow < SAMPLER_PIDS_MAX)
		s->now[s->nnow++] = (struct entry){ *p, false };
}

/* Of each that was running and is gone, one CPU since the last sample, as far as there are CPUs. */
static void count_gone(const struct sampler *s, uint64_t since_us, struct unreaped_change *change)
{
	uint64_t running = 0;
	for (size_t i = 0; i < s->nbefore; i++) {
		const struct sampled_process *p = &s->before[i].process;
		if (s->before[i].is_there)
			continue;
		change->gone_us += p->own_us + p->children_us;
		running += p->is_running;
	}
	if (running > 1) {
		long ncpus = sysconf(_SC_NPROCESSORS_ONLN); /* reads a file */
		uint64_t most = ncpus > 0 ? (uint64_t)ncpus : 1;
		running = running < most ? running : most;
	}
	change->estimate_us = running * since_us;
}

void sampler_turn(struct sampler *s, bool is_whole, uint64_t now_us)
{
	size_t sums = s->nnow < SLACK_SUMS_MAX ? s->nnow : SLACK_SUMS_MAX;
	struct unreaped_change change = {
		.reaped_us = s->reaped_us,
		.slack_us = sums * TICKS_LEFT_OFF * s->tick_us,
	};
	if (is_whole)
		count_gone(s, growth(s->last_us, now_us), &change);
	s->unreaped_us += unreaped_settle(&s->unreaped, &change);

	struct entry *free_page = s->before;
	s->before = s->now;
	s->nbefore = s->nnow;
	s->now = free_page;
	s->nnow = s->at = 0;
	s->reaped_us = 0;
	s->last_us = now_us;
}

uint64_t sampler_grown_us(const struct sampler *s)
{
	return s->grown_us;
}

uint64_t sampler_unreaped_us(const struct sampler *s)
{
	return s->unreaped_us;
}
