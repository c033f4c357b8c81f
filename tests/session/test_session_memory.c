/* SPDX-License-Identifier: Apache-2.0 */
/* How often the keeper samples the memory of a session where no cgroup limits it. */
/* WRAP: process_usage_take clock_us clock_ms */
#include "runtime/session/session_state.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define MIB (1ull << 20)

/* --- a session with a clock and processes that are made up --------------------------------- */

static struct process_usage usage;
static uint64_t now_ms, burns_us; /* CPU time used between two samples */
static unsigned samples;

bool __wrap_process_usage_take(int proc_fd, int box_fd, struct sampler *s,
			       struct process_usage *out);
bool __wrap_process_usage_take(int proc_fd, int box_fd, struct sampler *s,
			       struct process_usage *out)
{
	(void)proc_fd, (void)box_fd, (void)s;
	samples++;
	usage.cpu_user_us += burns_us;
	*out = usage;
	return true;
}

uint64_t __wrap_clock_us(void);
uint64_t __wrap_clock_us(void)
{
	return now_ms * 1000;
}

uint64_t __wrap_clock_ms(void);
uint64_t __wrap_clock_ms(void)
{
	return now_ms;
}

struct made_up {
	struct plan plan;
	struct jail jail;
	struct session_shared shared;
	struct session session;
};

/* An interpreter that waits for its next cell. */
static int setup(void **state)
{
	static struct made_up m;
	memset(&m, 0, sizeof(m));
	m.plan.limits.memory_bytes = 1024 * MIB;
	m.jail.plan = &m.plan;
	m.jail.cgroup = CGROUP_NULL;
	m.jail.limits[LIMIT_MEMORY] =
	    (struct limit_state){ 1024 * MIB, ENFORCED_BY_SUPERVISOR, HIT_NO };
	m.session = (struct session){ .jail = &m.jail, .shared = &m.shared, .init_cgroup_fd = -1 };
	m.session.slots[0] = (struct session_slot){ .state = SLOT_BETWEEN_CELLS };
	usage = (struct process_usage){ .memory_bytes = 16 * MIB, .cpu_user_us = 20000 };
	now_ms = 1000;
	burns_us = 0;
	session_memory_init(&m.session);
	*state = &m;
	return 0;
}

static int teardown(void **state)
{
	struct made_up *m = *state;
	session_memory_fini(&m->session);
	return 0;
}

/* How many samples the next second has. */
static unsigned samples_of_a_second(struct made_up *m)
{
	const uint64_t end_ms = now_ms + 1000;
	struct cj_error err = { 0 };
	samples = 0;
	for (uint64_t at_ms = 1; at_ms > 0 && at_ms < end_ms;) {
		now_ms = at_ms > now_ms ? at_ms : now_ms;
		assert_int_equal(session_memory_turn(&m->session, false, &err), SESSION_LIVES);
		at_ms = session_memory_next_ms(&m->session);
	}
	now_ms = end_ms;
	return samples;
}

/* --- tests --------------------------------------------------------------------------------- */

static void a_session_without_processes_is_not_sampled(void **state)
{
	struct made_up *m = *state;
	m->session.slots[0].state = SLOT_FREE;
	assert_int_equal(samples_of_a_second(m), 0);
	m->session.slots[0] = (struct session_slot){ .state = SLOT_SPARE };
	assert_int_equal(samples_of_a_second(m), 0);
}

static uint64_t pids_with(struct made_up *m, uint64_t processes, bool has_spare)
{
	struct usage used = { 0 };
	usage.processes = processes;
	m->session.slots[2] = (struct session_slot){ .state = has_spare ? SLOT_SPARE : SLOT_FREE };
	session_memory_usage(&m->session, &used);
	assert_true(used.has_pids_peak);
	return used.pids_peak;
}

static void the_spare_reaper_is_not_in_the_usage(void **state)
{
	struct made_up *m = *state;
	assert_int_equal(pids_with(m, 1, true), 0);
	assert_int_equal(pids_with(m, 3, true), 2);
	assert_int_equal(pids_with(m, 3, false), 3);
	assert_int_equal(pids_with(m, 4, true), 3);
	assert_int_equal(pids_with(m, 1, true), 3);
}

static void an_idle_session_is_sampled_every_200_ms(void **state)
{
	struct made_up *m = *state;
	(void)samples_of_a_second(m);
	assert_int_equal(samples_of_a_second(m), 5);
}

static void what_an_exec_left_behind_is_idle_too(void **state)
{
	struct made_up *m = *state;
	m->session.slots[0].state = SLOT_LEFT;
	(void)samples_of_a_second(m);
	assert_int_equal(samples_of_a_second(m), 5);
}

static void a_session_that_uses_cpu_time_is_sampled_every_20_ms(void **state)
{
	struct made_up *m = *state;
	burns_us = 1;
	(void)samples_of_a_second(m);
	assert_int_equal(samples_of_a_second(m), 50);
}

static void a_session_whose_program_runs_is_sampled_every_20_ms(void **state)
{
	struct made_up *m = *state;
	m->session.slots[1].state = SLOT_RUNNING;
	(void)samples_of_a_second(m);
	assert_int_equal(samples_of_a_second(m), 50);
}

static void an_idle_session_near_its_limit_is_sampled_more_often(void **state)
{
	struct made_up *m = *state;
	usage.memory_bytes = 984 * MIB; /* 40 MiB are full after 10 ms of 4 GiB/s */
	(void)samples_of_a_second(m);
	assert_int_equal(samples_of_a_second(m), 100);
}

static void a_cell_that_begins_is_sampled_at_once(void **state)
{
	struct made_up *m = *state;
	(void)samples_of_a_second(m);
	assert_true(session_memory_next_ms(&m->session) > now_ms);
	m->session.slots[0].state = SLOT_RUNNING;
	assert_true(session_memory_next_ms(&m->session) <= now_ms);
	assert_int_equal(samples_of_a_second(m), 50);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_session_without_processes_is_not_sampled),
		TEST(the_spare_reaper_is_not_in_the_usage),
		TEST(an_idle_session_is_sampled_every_200_ms),
		TEST(what_an_exec_left_behind_is_idle_too),
		TEST(a_session_that_uses_cpu_time_is_sampled_every_20_ms),
		TEST(a_session_whose_program_runs_is_sampled_every_20_ms),
		TEST(an_idle_session_near_its_limit_is_sampled_more_often),
		TEST(a_cell_that_begins_is_sampled_at_once),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
