/* SPDX-License-Identifier: Apache-2.0 */
/* When samples are taken, and what they decide. */
/* WRAP: process_usage_take process_tree_list process_usage_shared clock_us clock_ms */
#include "runtime/jail/usage/usage_watch.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "runtime/jail/jail_state.h"
#include "runtime/kernel/process/process_tree.h"
#include "runtime/jail/usage/process_usage.h"

#define MIB (1ull << 20)

/* --- the samples of a jail that is made up ---------------------------------------------- */

static struct process_usage next;
static bool is_whole;
static uint64_t now_us;

bool __wrap_process_usage_take(int proc_fd, int box_fd, struct sampler *s,
			       struct process_usage *out);
bool __wrap_process_usage_take(int proc_fd, int box_fd, struct sampler *s,
			       struct process_usage *out)
{
	(void)proc_fd, (void)box_fd, (void)s;
	*out = next;
	return is_whole;
}

bool __wrap_process_tree_list(int proc_fd, pid_t root_pid, struct process_tree *out);
bool __wrap_process_tree_list(int proc_fd, pid_t root_pid, struct process_tree *out)
{
	(void)proc_fd, (void)root_pid;
	out->count = 0;
	return true;
}

static uint64_t shared_bytes, measure_us;
static unsigned measured;

uint64_t __wrap_process_usage_shared(int proc_fd, const pid_t *pids, size_t count,
				     uint64_t enough_bytes);
uint64_t __wrap_process_usage_shared(int proc_fd, const pid_t *pids, size_t count,
				     uint64_t enough_bytes)
{
	(void)proc_fd, (void)pids, (void)count, (void)enough_bytes;
	now_us += measure_us;
	measured++;
	return shared_bytes;
}

uint64_t __wrap_clock_us(void);
uint64_t __wrap_clock_us(void)
{
	return now_us;
}

uint64_t __wrap_clock_ms(void);
uint64_t __wrap_clock_ms(void)
{
	return now_us / 1000;
}

struct made_up {
	struct plan plan;
	struct jail jail;
	struct outcome out;
	struct usage_watch watch;
	struct cj_error err;
};

static int setup(void **state)
{
	static struct made_up m;
	memset(&m, 0, sizeof(m));
	m.plan.limits.memory_bytes = 64 * MIB;
	m.jail.plan = &m.plan;
	m.jail.cgroup = CGROUP_NULL;
	m.jail.limits[LIMIT_MEMORY] =
	    (struct limit_state){ 64 * MIB, ENFORCED_BY_SUPERVISOR, HIT_NO };
	next = (struct process_usage){ 0 };
	is_whole = true;
	now_us = 1000000;
	shared_bytes = measure_us = measured = 0;
	usage_watch_init(&m.watch, &m.jail);
	*state = &m;
	return 0;
}

static int teardown(void **state)
{
	struct made_up *m = *state;
	usage_watch_fini(&m->watch);
	outcome_fini(&m->out);
	return 0;
}

/* The pause until the next sample, in ms. */
static uint64_t sample_with(struct made_up *m, uint64_t memory_bytes)
{
	next.memory_bytes = memory_bytes;
	assert_int_equal(usage_watch_sample(&m->watch, &m->jail, &m->out, &m->err), 0);
	return m->watch.next_at_ms - now_us / 1000;
}

/* --- tests ------------------------------------------------------------------------------- */

static void samples_come_closer_as_memory_nears_its_limit(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		const unsigned max_ms = i == 0 ? 20 : 200;
		unsigned last_ms = 1;
		assert_int_equal(usage_watch_pause_ms(0, 0, i > 0), 1);
		assert_int_equal(usage_watch_pause_ms(UINT64_MAX, 0, i > 0), max_ms);
		for (uint64_t room = 0; room < 1024 * MIB; room += MIB) {
			unsigned ms = usage_watch_pause_ms(room, 0, i > 0);
			assert_true(ms >= last_ms && ms <= max_ms);
			assert_true(ms == 1 || ms * 4 * MIB <= room); /* at 4 GiB/s it is not
									 used up */
			last_ms = ms;
		}
	}
}

static void sampling_takes_a_quarter_of_a_cpu_at_most(void **state)
{
	(void)state;
	for (uint64_t cost_us = 0; cost_us < 6000; cost_us += 50)
		assert_true(usage_watch_pause_ms(0, cost_us, false) * 1000 >= 3 * cost_us);
	assert_int_equal(usage_watch_pause_ms(0, UINT32_MAX, false), 20);
	assert_int_equal(usage_watch_pause_ms(0, UINT32_MAX, true), 20);
}

static void memory_above_the_limit_is_oom(void **state)
{
	struct made_up *m = *state;
	assert_int_equal(m->watch.next_at_ms, 1000 + 16);
	assert_true(sample_with(m, 64 * MIB) <= 2);
	assert_false(m->out.has_status);
	(void)sample_with(m, 65 * MIB);
	assert_int_equal(m->out.status, STATUS_OOM);
	assert_int_equal(m->watch.peak.memory_bytes, 65 * MIB);
}

static void what_may_be_counted_twice_must_be_seen_twice(void **state)
{
	struct made_up *m = *state;
	next.doubtful_bytes = 2 * MIB;
	for (int i = 0; i < 10; i++) {
		assert_int_equal(sample_with(m, 65 * MIB), 1);
		(void)sample_with(m, 33 * MIB);
	}
	assert_false(m->out.has_status);
	(void)sample_with(m, 65 * MIB);
	(void)sample_with(m, 65 * MIB);
	assert_true(m->out.has_status);
	assert_int_equal(m->out.status, STATUS_OOM);
}

static void memory_above_the_limit_without_what_is_doubtful_is_oom(void **state)
{
	struct made_up *m = *state;
	next.doubtful_bytes = 2 * MIB;
	(void)sample_with(m, 67 * MIB);
	assert_true(m->out.has_status);
	assert_int_equal(m->out.status, STATUS_OOM);
}

static void what_idle_processes_share_is_taken_off_above_the_limit(void **state)
{
	struct made_up *m = *state;
	shared_bytes = 40 * MIB;
	(void)sample_with(m, 60 * MIB);
	assert_int_equal(measured, 0);
	(void)sample_with(m, 100 * MIB);
	assert_int_equal(m->watch.peak.memory_bytes, 60 * MIB);
	assert_false(m->out.has_status);
	(void)sample_with(m, 105 * MIB);
	assert_int_equal(m->out.status, STATUS_OOM);
}

static void shared_memory_is_measured_no_more_often_than_it_costs(void **state)
{
	struct made_up *m = *state;
	shared_bytes = 70 * MIB;
	measure_us = 20000;
	(void)sample_with(m, 100 * MIB);
	for (int i = 0; i < 5; i++) {
		now_us += 10000;
		(void)sample_with(m, 110 * MIB);
	}
	assert_int_equal(measured, 1);
	now_us += 10000;
	(void)sample_with(m, 110 * MIB);
	assert_int_equal(measured, 2);
}

/* 35 MiB were freed, and may have been those that were shared. */
static void memory_that_is_freed_is_not_taken_off_again(void **state)
{
	struct made_up *m = *state;
	shared_bytes = 70 * MIB;
	measure_us = 20000;
	(void)sample_with(m, 100 * MIB);
	(void)sample_with(m, 65 * MIB);
	assert_int_equal(measured, 1);
	shared_bytes = 35 * MIB;
	(void)sample_with(m, 100 * MIB);
	assert_int_equal(measured, 2); /* what is known would end the program */
	assert_int_equal(m->out.status, STATUS_OOM);
}

static void a_second_without_a_whole_sample_ends_the_run(void **state)
{
	struct made_up *m = *state;
	is_whole = false;
	(void)sample_with(m, MIB);
	now_us += 900000;
	is_whole = true;
	(void)sample_with(m, MIB);
	is_whole = false;
	(void)sample_with(m, MIB);
	now_us += 999000;
	(void)sample_with(m, MIB);
	now_us += 1000;
	assert_int_equal(usage_watch_sample(&m->watch, &m->jail, &m->out, &m->err), -EIO);
	assert_false(m->out.has_status);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(samples_come_closer_as_memory_nears_its_limit),
		TEST(sampling_takes_a_quarter_of_a_cpu_at_most),
		TEST(memory_above_the_limit_is_oom),
		TEST(what_may_be_counted_twice_must_be_seen_twice),
		TEST(memory_above_the_limit_without_what_is_doubtful_is_oom),
		TEST(what_idle_processes_share_is_taken_off_above_the_limit),
		TEST(shared_memory_is_measured_no_more_often_than_it_costs),
		TEST(memory_that_is_freed_is_not_taken_off_again),
		TEST(a_second_without_a_whole_sample_ends_the_run),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
