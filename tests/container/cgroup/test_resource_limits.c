/* SPDX-License-Identifier: Apache-2.0 */
/* linux.resources as writes: each row is a JSON text and what is written. */
#include "runtime/container/cgroup/resource_limits.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* WRAP: arena_alloc arena_array arena_strdup arena_strndup arena_printf strings_add arena_grow */
#include "tests/no_memory.h"

NO_MEMORY(void *, arena_grow, (struct arena * a, const void *items, size_t count, size_t size),
	  (a, items, count, size), NULL)

static int plan(const char *json, const struct resource_current *current, struct arena *a,
		struct resource_writes *out, struct cj_error *err)
{
	struct oci_resources resources = { 0 };
	int rc = oci_resources_read("r.json", json, strlen(json), a, &resources, err);
	return rc < 0 ? rc : resource_writes_plan(&resources, current, a, out, err);
}

/* "FILE=VALUE;..." with a '?' behind what is optional. */
static void put(const struct resource_writes *writes, char *out, size_t size)
{
	size_t used = 0;
	out[0] = '\0';
	for (size_t i = 0; i < writes->count && used < size; i++)
		used += (size_t)snprintf(out + used, size - used, "%s=%s%s;", writes->items[i].file,
					 writes->items[i].value,
					 writes->items[i].is_optional ? "?" : "");
}

static void each_field_becomes_its_file(void **state)
{
	(void)state;
	static const char *const rows[][2] = {
		{ "{}", "" },
		{ "{\"memory\":{\"limit\":67108864}}", "memory.max=67108864;" },
		{ "{\"memory\":{\"limit\":0,\"swap\":0,\"reservation\":0}}", "" },
		{ "{\"memory\":{\"limit\":-1}}", "memory.swap.max=max?;memory.max=max?;" },
		{ "{\"memory\":{\"limit\":100,\"swap\":300}}",
		  "memory.swap.max=200;memory.max=100;" },
		{ "{\"memory\":{\"limit\":100,\"swap\":100}}",
		  "memory.swap.max=0;memory.max=100;" },
		{ "{\"memory\":{\"limit\":100,\"swap\":-1}}",
		  "memory.swap.max=max?;memory.max=100;" },
		{ "{\"memory\":{\"reservation\":50}}", "memory.low=50;" },
		{ "{\"cpu\":{\"shares\":1024}}", "cpu.weight=39?;" },
		{ "{\"cpu\":{\"shares\":1025}}", "cpu.weight=40;" },
		{ "{\"cpu\":{\"shares\":0,\"quota\":0,\"period\":0}}", "" },
		{ "{\"cpu\":{\"quota\":50000}}", "cpu.max=50000 100000;" },
		{ "{\"cpu\":{\"quota\":20000,\"period\":10000}}", "cpu.max=20000 10000;" },
		{ "{\"cpu\":{\"quota\":-1}}", "cpu.max=max 100000?;" },
		{ "{\"cpu\":{\"period\":20000}}", "cpu.max=max 20000?;" },
		{ "{\"cpu\":{\"quota\":9000,\"burst\":4000}}",
		  "cpu.max.burst=0;cpu.max=9000 100000;cpu.max.burst=4000;" },
		{ "{\"cpu\":{\"idle\":1,\"shares\":512}}", "cpu.idle=1;" },
		{ "{\"cpu\":{\"idle\":0,\"shares\":2}}", "cpu.idle=0?;cpu.weight=1;" },
		{ "{\"cpu\":{\"cpus\":\"0-1,3\",\"mems\":\"0\"}}",
		  "cpuset.cpus=0-1,3;cpuset.mems=0;" },
		{ "{\"pids\":{\"limit\":32}}", "pids.max=32;" },
		{ "{\"pids\":{\"limit\":0}}", "pids.max=1;" },
		{ "{\"pids\":{\"limit\":-1}}", "pids.max=max?;" },
		{ "{\"hugepageLimits\":[{\"pageSize\":\"2MB\",\"limit\":4194304}]}",
		  "hugetlb.2MB.rsvd.max=4194304?;hugetlb.2MB.max=4194304;" },
		{ "{\"blockIO\":{\"weight\":10}}", "io.bfq.weight=10;" },
		{ "{\"blockIO\":{\"throttleReadBpsDevice\":[{\"major\":8,\"minor\":0,\"rate\":99}],"
		  "\"throttleWriteIOPSDevice\":[{\"major\":8,\"minor\":16,\"rate\":0}]}}",
		  "io.max=8:0 rbps=99;io.max=8:16 wiops=max?;" },
		{ "{\"unified\":{\"memory.high\":\"5\",\"io.max\":\"8:0 rbps=1\\n8:16 rbps=2\\n\"}}",
		  "memory.high=5;io.max=8:0 rbps=1;io.max=8:16 rbps=2;" },
		{ "{\"memory\":{\"limit\":7},\"unified\":{\"memory.max\":\"9\"}}",
		  "memory.max=7;memory.max=9;" },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		auto_arena struct arena a = { 0 };
		struct cj_error err = { 0 };
		struct resource_writes writes;
		char text[512];
		if (plan(rows[i][0], NULL, &a, &writes, &err) < 0)
			fail_msg("%s: %s", rows[i][0], err.msg);
		put(&writes, text, sizeof(text));
		assert_string_equal(text, rows[i][1]);
	}
}

static void values_that_cgroup_v2_cannot_have_are_refused_by_name(void **state)
{
	(void)state;
	static const char *const rows[][2] = {
		{ "{\"memory\":{\"limit\":-2}}", "memory.limit" },
		{ "{\"memory\":{\"swap\":100}}", "memory.swap includes memory" },
		{ "{\"memory\":{\"limit\":-1,\"swap\":100}}", "memory.swap includes memory" },
		{ "{\"memory\":{\"limit\":200,\"swap\":100}}", "below the memory limit" },
		{ "{\"memory\":{\"swappiness\":60}}", "memory.swappiness" },
		{ "{\"memory\":{\"disableOOMKiller\":true}}", "memory.disableOOMKiller" },
		{ "{\"cpu\":{\"idle\":2}}", "cpu.idle" },
		{ "{\"cpu\":{\"cpus\":\"0-1;3\"}}", "cpu.cpus" },
		{ "{\"cpu\":{\"mems\":\"all\"}}", "cpu.mems" },
		{ "{\"pids\":{\"limit\":-2}}", "pids.limit" },
		{ "{\"hugepageLimits\":[{\"pageSize\":\"../2MB\",\"limit\":1}]}",
		  "hugepageLimits" },
		{ "{\"hugepageLimits\":[{\"pageSize\":\"0MB\",\"limit\":1}]}", "hugepageLimits" },
		{ "{\"blockIO\":{\"weight\":9}}", "blockIO.weight" },
		{ "{\"blockIO\":{\"weight\":1001}}", "blockIO.weight" },
		{ "{\"unified\":{\"../memory.max\":\"1\"}}", "unified" },
		{ "{\"unified\":{\"memory/x.y\":\"1\"}}", "unified" },
		{ "{\"unified\":{\"memory\":\"1\"}}", "unified" },
		{ "{\"unified\":{\".x\":\"1\"}}", "unified" },
		{ "{\"unified\":{\"cgroup.procs\":\"1\"}}", "unified" },
		{ "{\"unified\":{\"cgroup.freeze\":\"1\"}}", "unified" },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		auto_arena struct arena a = { 0 };
		struct cj_error err = { 0 };
		struct resource_writes writes;
		assert_int_equal(plan(rows[i][0], NULL, &a, &writes, &err), -EINVAL);
		if (!strstr(err.msg, rows[i][1]))
			fail_msg("%s: %s", rows[i][0], err.msg);
	}
}

static void an_update_keeps_what_the_other_value_of_a_file_is(void **state)
{
	(void)state;
	static const struct {
		const char *json, *memory_max, *cpu_max, *expected;
	} rows[] = {
		{ "{\"memory\":{\"swap\":300}}", "100\n", NULL, "memory.swap.max=200;" },
		{ "{\"cpu\":{\"quota\":7000}}", NULL, "max 50000\n", "cpu.max=7000 50000;" },
		{ "{\"cpu\":{\"period\":7000}}", NULL, "3000 50000\n", "cpu.max=3000 7000;" },
		{ "{\"cpu\":{\"period\":7000}}", NULL, "garbage", "cpu.max=max 7000?;" },
		{ "{\"cpu\":{\"quota\":-1}}", NULL, "3000 50000\n", "cpu.max=max 50000?;" },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		auto_arena struct arena a = { 0 };
		struct cj_error err = { 0 };
		struct resource_writes writes;
		const struct resource_current current = { rows[i].memory_max, rows[i].cpu_max };
		char text[256];
		assert_int_equal(plan(rows[i].json, &current, &a, &writes, &err), 0);
		put(&writes, text, sizeof(text));
		assert_string_equal(text, rows[i].expected);
	}
	auto_arena struct arena a = { 0 };
	struct cj_error err = { 0 };
	struct resource_writes writes;
	const struct resource_current no_limit = { "max\n", NULL };
	assert_int_equal(plan("{\"memory\":{\"swap\":300}}", &no_limit, &a, &writes, &err),
			 -EINVAL);
}

static void weights_keep_their_ends_and_their_order(void **state)
{
	(void)state;
	assert_int_equal(resource_cpu_weight(0), 1);
	assert_int_equal(resource_cpu_weight(2), 1);
	assert_int_equal(resource_cpu_weight(262144), 10000);
	assert_int_equal(resource_cpu_weight(UINT64_MAX), 10000);
	assert_int_equal(resource_io_weight(10), 1);
	assert_int_equal(resource_io_weight(1000), 10000);
	for (uint64_t shares = 3; shares <= 262144; shares++)
		assert_true(resource_cpu_weight(shares) >= resource_cpu_weight(shares - 1));
}

static void every_write_names_its_field_and_controller(void **state)
{
	(void)state;
	auto_arena struct arena a = { 0 };
	struct cj_error err = { 0 };
	struct resource_writes writes;
	assert_int_equal(plan("{\"memory\":{\"limit\":7},\"blockIO\":{\"weight\":500},"
			      "\"unified\":{\"misc.max\":\"x 1\"}}",
			      NULL, &a, &writes, &err),
			 0);
	assert_int_equal(writes.count, 3);
	assert_string_equal(writes.items[0].field, "memory.limit");
	assert_string_equal(writes.items[0].controller, "memory");
	assert_string_equal(writes.items[1].other_file, "io.weight");
	assert_string_equal(writes.items[1].other_value, "4950");
	assert_string_equal(writes.items[2].controller, "misc");
}

static int plan_much(void *unused, struct cj_error *err)
{
	(void)unused;
	auto_arena struct arena a = { 0 };
	struct resource_writes writes;
	return plan("{\"memory\":{\"limit\":100,\"swap\":300},\"cpu\":{\"quota\":5000},"
		    "\"unified\":{\"memory.high\":\"5\"}}",
		    NULL, &a, &writes, err);
}

static void no_memory_is_an_error(void **state)
{
	(void)state;
	fail_each_allocation(plan_much, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_field_becomes_its_file),
		cmocka_unit_test(values_that_cgroup_v2_cannot_have_are_refused_by_name),
		cmocka_unit_test(an_update_keeps_what_the_other_value_of_a_file_is),
		cmocka_unit_test(weights_keep_their_ends_and_their_order),
		cmocka_unit_test(every_write_names_its_field_and_controller),
		cmocka_unit_test(no_memory_is_an_error),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
