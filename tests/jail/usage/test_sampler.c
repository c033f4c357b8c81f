/* SPDX-License-Identifier: Apache-2.0 */
/* Which ends of processes cost CPU time that is in no sum, sample by sample. */
#include "runtime/jail/usage/sampler.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define MS     1000u
#define PERIOD (20 * MS)

/* A parent, pid 2, and one child at a time that computes. */
struct family {
	struct sampler *sampler;
	uint64_t now_us, parent_children_us, next_pid;
};

static int setup(void **state)
{
	static struct family f;
	f = (struct family){ .sampler = sampler_create(), .next_pid = 3 };
	*state = &f;
	return f.sampler ? 0 : -1;
}

static int teardown(void **state)
{
	free(((struct family *)*state)->sampler);
	return 0;
}

static void add(struct family *f, uint64_t pid, uint64_t own_us, uint64_t children_us)
{
	const struct sampled_process p = { pid, 1, own_us, children_us, true };
	sampler_add(f->sampler, &p);
}

/* One sample: init, the parent, and a child that has used `used_us` so far; 0: no child. */
static void sample(struct family *f, uint64_t used_us)
{
	add(f, 1, 0, 0);
	add(f, 2, 0, f->parent_children_us);
	if (used_us > 0)
		add(f, f->next_pid++, used_us, 0);
	f->now_us += PERIOD;
	sampler_turn(f->sampler, true, f->now_us);
}

static void a_child_that_is_waited_for_costs_nothing_more(void **state)
{
	struct family *f = *state;
	for (unsigned i = 0; i < 1000; i++) {
		sample(f, 6 * MS);
		f->parent_children_us += 12 * MS / (10 * MS) * 10 * MS; /* in whole ticks */
	}
	assert_int_equal(sampler_unreaped_us(f->sampler), 0);
}

static void sums_may_grow_a_sample_late_or_early(void **state)
{
	struct family *f = *state;
	sample(f, 9000 * MS); /* gone at the next one, in the sum at the one after it */
	sample(f, 0);
	f->parent_children_us += 9500 * MS;
	sample(f, 0);
	sample(f, 0);
	assert_int_equal(sampler_unreaped_us(f->sampler), 0);

	add(f, 2, 0, f->parent_children_us); /* read after its child, which it has reaped since */
	add(f, 100, 9000 * MS, 0);
	sampler_turn(f->sampler, true, f->now_us);
	f->parent_children_us += 9500 * MS;
	add(f, 2, 0, f->parent_children_us);
	add(f, 100, 9000 * MS, 0);
	sampler_turn(f->sampler, true, f->now_us);
	sample(f, 0);
	sample(f, 0);
	assert_int_equal(sampler_unreaped_us(f->sampler), 0);
}

static void what_a_whole_family_used_moves_up_with_its_end(void **state)
{
	struct family *f = *state;
	for (unsigned i = 0; i < 100; i++) { /* a shell below the parent, that reaps and ends */
		add(f, 1, 0, 0);
		add(f, 2, 0, f->parent_children_us);
		add(f, f->next_pid, 3 * MS, 20 * MS);
		sampler_turn(f->sampler, true, f->now_us += PERIOD);
		f->next_pid++;
		f->parent_children_us += 30 * MS;
	}
	assert_int_equal(sampler_unreaped_us(f->sampler), 0);
}

/* Whatever part of its time a sample sees: a CPU was busy all the time. */
static void children_that_are_not_waited_for_count_as_a_busy_cpu(void **state)
{
	static const uint64_t seen_us[] = { 300, 2 * MS, 6 * MS, 11 * MS };
	for (size_t i = 0; i < sizeof(seen_us) / sizeof(seen_us[0]); i++) {
		void *fresh;
		assert_int_equal(setup(&fresh), 0);
		for (unsigned n = 0; n < 1000; n++)
			sample(fresh, seen_us[i]);
		uint64_t counted_us = sampler_unreaped_us(((struct family *)fresh)->sampler);
		assert_true(counted_us <= 1000 * PERIOD);
		assert_true(counted_us >= 1000 * PERIOD * 2 / 3);
		(void)teardown(&fresh);
	}
	(void)state;
}

static void one_cpu_is_not_counted_for_two_processes(void **state)
{
	struct family *f = *state;
	for (unsigned n = 0; n < 1000; n++) {
		add(f, 1, 0, 0);
		for (unsigned i = 0; i < 1000; i++)
			add(f, f->next_pid++, MS / 100, 0);
		sampler_turn(f->sampler, true, f->now_us += PERIOD);
	}
	uint64_t cpus = (uint64_t)sysconf(_SC_NPROCESSORS_ONLN);
	assert_true(sampler_unreaped_us(f->sampler) <= cpus * 1000 * PERIOD);
}

static void an_incomplete_sample_takes_no_process_for_ended(void **state)
{
	struct family *f = *state;
	for (unsigned i = 0; i < 100; i++) {
		add(f, 1, 0, 0);
		add(f, 100 + i, 1000 * MS, 0);
		sampler_turn(f->sampler, false, f->now_us += PERIOD);
	}
	assert_int_equal(sampler_unreaped_us(f->sampler), 0);
}

static void reaped_time_is_subtracted_once(void **state)
{
	(void)state;
	struct unreaped u = { 0 };
	const struct unreaped_change gone = { .gone_us = 300, .estimate_us = 900 };
	const struct unreaped_change reaped = { .reaped_us = 100 };
	const struct unreaped_change nothing = { 0 };
	assert_int_equal(unreaped_settle(&u, &gone), 0);
	assert_int_equal(unreaped_settle(&u, &reaped), 600); /* a third is paid, of both */
	assert_int_equal(unreaped_settle(&u, &nothing), 0);

	(void)unreaped_settle(&u, &reaped); /* kept for one sample, not for two */
	(void)unreaped_settle(&u, &gone);
	assert_int_equal(unreaped_settle(&u, &nothing), 600);
	(void)unreaped_settle(&u, &reaped);
	(void)unreaped_settle(&u, &nothing);
	(void)unreaped_settle(&u, &gone);
	assert_int_equal(unreaped_settle(&u, &nothing), 900);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_child_that_is_waited_for_costs_nothing_more),
		TEST(sums_may_grow_a_sample_late_or_early),
		TEST(what_a_whole_family_used_moves_up_with_its_end),
		cmocka_unit_test(children_that_are_not_waited_for_count_as_a_busy_cpu),
		TEST(one_cpu_is_not_counted_for_two_processes),
		TEST(an_incomplete_sample_takes_no_process_for_ended),
		cmocka_unit_test(reaped_time_is_subtracted_once),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
