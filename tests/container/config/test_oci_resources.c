/* SPDX-License-Identifier: Apache-2.0 */
/* oci_resources: every limit is read as written; what cgroup v2 does not have is refused. */
#include "runtime/container/config/oci_resources.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "runtime/base/scope.h"
#include "tests/container/config/oci_sample.h"

static struct arena arena;
static struct cj_error err;

static int read_resources(const char *text, struct oci_resources *out)
{
	err = (struct cj_error){ 0 };
	return oci_resources_read("r.json", text, strlen(text), &arena, out, &err);
}

static void take(const char *text, struct oci_resources *out)
{
	*out = (struct oci_resources){ 0 };
	if (read_resources(text, out) < 0)
		fail_msg("%s", err.msg);
}

static int empty_arena(void **state)
{
	(void)state;
	arena_fini(&arena);
	return 0;
}

static void an_empty_object_sets_nothing(void **state)
{
	struct oci_resources r;
	const struct oci_resources none = { 0 };
	(void)state;

	take("{}", &r);
	assert_memory_equal(&r, &none, sizeof(r));
	take("{\"memory\": {}, \"cpu\": null, \"devices\": [], \"pids\": {}}", &r);
	assert_memory_equal(&r, &none, sizeof(r));
}

static void memory_cpu_and_pids_are_read(void **state)
{
	struct oci_resources r;
	(void)state;

	take("{\"memory\": {\"limit\": 104857600, \"reservation\": 0, \"swap\": -1,"
	     " \"swappiness\": 100, \"disableOOMKiller\": true, \"useHierarchy\": true,"
	     " \"checkBeforeUpdate\": true, \"kernel\": -1, \"kernelTCP\": 0},"
	     " \"cpu\": {\"shares\": 1024, \"quota\": 50000, \"burst\": 5, \"period\": 100000,"
	     " \"idle\": 1, \"cpus\": \"0-3,7\", \"mems\": \"\", \"realtimeRuntime\": 0},"
	     " \"pids\": {\"limit\": -1}}",
	     &r);
	assert_true(r.memory.limit.is_set && r.memory.limit.value == 104857600);
	assert_true(r.memory.reservation.is_set && r.memory.reservation.value == 0);
	assert_true(r.memory.swap.is_set && r.memory.swap.value == -1);
	assert_true(r.memory.swappiness.value == 100 && r.memory.disable_oom_killer &&
		    r.memory.check_before_update);
	assert_true(r.cpu.shares.value == 1024 && r.cpu.quota.value == 50000 &&
		    r.cpu.burst.value == 5 && r.cpu.period.value == 100000 &&
		    r.cpu.idle.value == 1);
	assert_string_equal(r.cpu.cpus, "0-3,7");
	assert_null(r.cpu.mems);
	assert_true(r.pids_limit.is_set && r.pids_limit.value == -1);
}

static void device_rules_are_read_in_their_order(void **state)
{
	struct oci_resources r;
	(void)state;

	take(
	    "{\"devices\": [{\"allow\": false, \"access\": \"rwm\"},"
	    " {\"allow\": true, \"type\": \"c\", \"major\": 10, \"minor\": 229, \"access\": \"rw\"},"
	    " {\"allow\": true, \"type\": \"b\", \"major\": 8, \"minor\": -1, \"access\": \"m\"}]}",
	    &r);
	assert_int_equal(r.ndevices, 3);
	assert_true(!r.devices[0].allow && r.devices[0].type == 'a' && r.devices[0].may_mknod);
	assert_true(r.devices[1].allow && r.devices[1].type == 'c' &&
		    r.devices[1].minor.value == 229 && !r.devices[1].may_mknod);
	assert_true(r.devices[2].minor.value == -1 && !r.devices[2].may_read);
}

static void block_devices_huge_pages_rdma_and_unified_are_read(void **state)
{
	struct oci_resources r;
	(void)state;

	take("{\"blockIO\": {\"weight\": 500, \"weightDevice\": [{\"major\": 8, \"minor\": 1,"
	     " \"weight\": 10}], \"throttleReadBpsDevice\": [{\"major\": 8, \"minor\": 0,"
	     " \"rate\": 600}], \"throttleWriteIOPSDevice\": [{\"major\": 8, \"minor\": 16,"
	     " \"rate\": 1}, {\"major\": 8, \"minor\": 17, \"rate\": 2}]},"
	     " \"hugepageLimits\": [{\"pageSize\": \"2MB\", \"limit\": 9223372036854771712}],"
	     " \"rdma\": {\"mlx5_1\": {\"hcaHandles\": 3}, \"mlx4_0\": {\"hcaObjects\": 9}},"
	     " \"unified\": {\"memory.high\": \"1\", \"cpu.weight\": \"max\"}}",
	     &r);
	assert_int_equal(r.block_io.weight.value, 500);
	assert_true(r.block_io.nweights == 1 && r.block_io.weights[0].weight.value == 10);
	assert_int_equal(r.block_io.rates[OCI_THROTTLE_READ_BPS].items[0].rate, 600);
	assert_int_equal(r.block_io.rates[OCI_THROTTLE_WRITE_BPS].count, 0);
	assert_int_equal(r.block_io.rates[OCI_THROTTLE_WRITE_IOPS].items[1].minor, 17);
	assert_true(r.nhuge_pages == 1 && r.huge_pages[0].limit == 9223372036854771712u);
	assert_int_equal(r.nrdma, 2);
	assert_string_equal(r.rdma[1].device, "mlx4_0");
	assert_true(r.rdma[1].objects.value == 9 && !r.rdma[1].handles.is_set);
	assert_string_equal(oci_pairs_get(&r.unified, "memory.high"), "1");
}

static void mistakes_and_what_cgroup_v2_lacks_are_refused(void **state)
{
	static const struct {
		const char *text, *end;
	} rows[] = {
		{ "[]", "must be an object" },
		{ "{\"memory\": {\"limit\": \"1G\"}}", "memory.limit must be a number" },
		{ "{\"memory\": {\"limit\": 1.5}}", "memory.limit: '1.5'" },
		{ "{\"memory\": {\"limit\": 9223372036854775808}}", "is too large" },
		{ "{\"memory\": {\"limit\": --1}}", "r.json:1:" },
		{ "{\"memory\": {\"swappiness\": 101}}", "is too large" },
		{ "{\"memory\": {\"kernel\": 1048576}}", "memory.kernel: cgroup v2 has no such" },
		{ "{\"cpu\": {\"realtimeRuntime\": 950000}}", "cpu.realtimeRuntime: cgroup v2" },
		{ "{\"cpu\": {\"shares\": -1}}", "cpu.shares: '-1'" },
		{ "{\"network\": {\"classID\": 1048577}}", "network: net_cls" },
		{ "{\"blockIO\": {\"leafWeight\": 10}}", "blockIO.leafWeight: cgroup v2" },
		{ "{\"blockIO\": {\"weightDevice\": [{\"major\": 8}]}}", "minor is missing" },
		{ "{\"blockIO\": {\"throttleReadBpsDevice\": [{\"major\": 8, \"minor\": 0}]}}",
		  "rate is missing" },
		{ "{\"hugepageLimits\": [{\"pageSize\": \"../x\", \"limit\": 1}]}", "pageSize" },
		{ "{\"hugepageLimits\": [{\"pageSize\": \"MB\", \"limit\": 1}]}", "pageSize" },
		{ "{\"hugepageLimits\": [{\"pageSize\": \"2MB/\", \"limit\": 1}]}", "pageSize" },
		{ "{\"rdma\": {\"mlx5_1\": 1}}", "rdma.mlx5_1 must be an object" },
		{ "{\"unified\": {\"../x.y\": \"1\"}}", "is not the name of a cgroup file" },
		{ "{\"unified\": {\".memory\": \"1\"}}", "is not the name of a cgroup file" },
		{ "{\"unified\": {\"memory\": \"1\"}}", "is not the name of a cgroup file" },
		{ "{\"devices\": [{\"access\": \"r\"}]}", "devices.allow is missing" },
		{ "{\"devices\": [{\"allow\": true, \"type\": \"c\"}]}", "access is missing" },
		{ "{\"devices\": [{\"allow\": true, \"access\": \"rx\"}]}", "r, w and m" },
		{ "{\"devices\": [{\"allow\": true, \"type\": \"p\", \"access\": \"r\"}]}",
		  "must be a, b or c" },
		{ "{\"devices\": [{\"allow\": true, \"major\": -2, \"access\": \"r\"}]}",
		  "major and minor must be" },
	};
	struct oci_resources r = { .ndevices = 5 };
	(void)state;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (read_resources(rows[i].text, &r) != -EINVAL || !strstr(err.msg, rows[i].end))
			fail_msg("%s: '%s'", rows[i].text, err.msg);
		assert_int_equal(r.ndevices, 5);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_object_sets_nothing),
		cmocka_unit_test(memory_cpu_and_pids_are_read),
		cmocka_unit_test(device_rules_are_read_in_their_order),
		cmocka_unit_test(block_devices_huge_pages_rdma_and_unified_are_read),
		cmocka_unit_test(mistakes_and_what_cgroup_v2_lacks_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, empty_arena);
}
