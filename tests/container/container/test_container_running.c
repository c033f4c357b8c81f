/* SPDX-License-Identifier: Apache-2.0 */
/* The options of `update`. */
#include "runtime/container/container/container.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static int read_flags(const struct oci_options *o, struct oci_resources *out, struct cj_error *err)
{
	bool any = false;
	*out = (struct oci_resources){ 0 };
	*err = (struct cj_error){ 0 };
	int rc = container_update_read(o, out, &any, err);
	assert_true(rc < 0 || any);
	return rc;
}

static void each_option_sets_its_limit(void **state)
{
	(void)state;
	struct oci_resources r;
	struct cj_error err;
	const struct oci_options o = {
		.memory = "64M",
		.memory_reservation = "1024",
		.memory_swap = "-1",
		.pids_limit = "32",
		.cpu_quota = "-1",
		.cpu_period = "20000",
		.cpu_share = "512",
		.cpu_burst = "10",
		.cpu_idle = "1",
		.cpuset_cpus = "0-1",
		.cpuset_mems = "0",
		.blkio_weight = "500",
	};
	assert_int_equal(read_flags(&o, &r, &err), 0);
	assert_true(r.memory.limit.is_set && r.memory.limit.value == 64 << 20);
	assert_true(r.memory.reservation.is_set && r.memory.reservation.value == 1024);
	assert_true(r.memory.swap.is_set && r.memory.swap.value == -1);
	assert_true(r.pids_limit.is_set && r.pids_limit.value == 32);
	assert_true(r.cpu.quota.is_set && r.cpu.quota.value == -1);
	assert_true(r.cpu.period.is_set && r.cpu.period.value == 20000);
	assert_true(r.cpu.shares.is_set && r.cpu.shares.value == 512);
	assert_true(r.cpu.burst.is_set && r.cpu.burst.value == 10);
	assert_true(r.cpu.idle.is_set && r.cpu.idle.value == 1);
	assert_string_equal(r.cpu.cpus, "0-1");
	assert_string_equal(r.cpu.mems, "0");
	assert_true(r.block_io.weight.is_set && r.block_io.weight.value == 500);
}

static void without_an_option_nothing_is_set(void **state)
{
	(void)state;
	static const struct oci_resources none;
	struct oci_resources r = { 0 };
	struct cj_error err = { 0 };
	bool any = true;
	const struct oci_options o = { 0 };
	assert_int_equal(container_update_read(&o, &r, &any, &err), 0);
	assert_false(any);
	assert_memory_equal(&r, &none, sizeof(r));
}

static void a_malformed_value_is_refused_with_its_option(void **state)
{
	(void)state;
	const struct {
		struct oci_options o;
		const char *name;
	} rows[] = {
		{ { .memory = "-2" }, "--memory" },
		{ { .memory = "much" }, "--memory" },
		{ { .memory_swap = "" }, "--memory-swap" },
		{ { .pids_limit = "1x" }, "--pids-limit" },
		{ { .cpu_quota = "99999999999999999999" }, "--cpu-quota" },
		{ { .cpu_share = "-1" }, "--cpu-share" },
		{ { .cpu_rt_runtime = "1" }, "--cpu-rt-runtime" },
		{ { .cpuset_cpus = "" }, "--cpuset-cpus" },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct oci_resources r;
		struct cj_error err;
		assert_int_equal(read_flags(&rows[i].o, &r, &err), -EINVAL);
		assert_non_null(strstr(err.msg, rows[i].name));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_option_sets_its_limit),
		cmocka_unit_test(without_an_option_nothing_is_set),
		cmocka_unit_test(a_malformed_value_is_refused_with_its_option),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
