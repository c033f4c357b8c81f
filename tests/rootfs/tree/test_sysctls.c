/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel parameters reach the namespaces of the container, and never the host's. */
#include "rootfs/tree/sysctls.h"

#include <linux/magic.h>

#include "tests/rootfs/tree/inside_tree.h"

static const struct tree_op proc_op[] = { FS("/proc", "proc", ) };

#define FORWARD "/proc/sys/net/ipv4/ip_forward"

static void look_at_forwarding(void *arg)
{
	(void)arg;
	check(reads_as(FORWARD, "1\n"));
}

static void a_parameter_is_written_in_the_container_s_namespace(void **state)
{
	(void)state;
	char *place = make_place(), before[8] = "", after[8] = "";
	int fd = open(FORWARD, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0 && read(fd, before, sizeof(before) - 1) > 0);
	static const struct sysctl items[] = {
		{ "net.ipv4.ip_forward", "net/ipv4/ip_forward", "0", SYSCTL_NET },
		{ "net.ipv4.ip_forward", "net/ipv4/ip_forward", "1", SYSCTL_NET },
	};
	const struct tree_case c = { .spec = { .root = place, OPS(proc_op) },
				     .sysctls = items,
				     .nsysctls = 2,
				     .body = look_at_forwarding };
	run_tree(&c);
	assert_true(pread(fd, after, sizeof(after) - 1, 0) > 0);
	assert_string_equal(after, before);
	close(fd);
	end_place(place);
}

/* The procfs that is written to is none of the container's. */
static void a_mount_over_the_container_s_proc_redirects_nothing(void **state)
{
	(void)state;
	char *place = make_place();
	static const struct tree_op ops[] = { FS("/etc", "tmpfs", ) };
	static const struct sysctl items[] = {
		{ "net.ipv4.ip_forward", "net/ipv4/ip_forward", "1", SYSCTL_NET },
	};
	assert_int_equal(symlink("/etc", at(place, "proc")), 0);
	const struct tree_case c = {
		.spec = { .root = place, OPS(ops) },
		.sysctls = items,
		.nsysctls = 1,
	};
	run_tree(&c);
	end_place(place);
}

static void the_host_s_namespace_is_refused_before_anything_is_written(void **state)
{
	(void)state;
	char *place = make_place();
	static const struct sysctl items[] = {
		{ "kernel.hostname", "kernel/hostname", "never", SYSCTL_UTS },
		{ "net.ipv4.ip_forward", "net/ipv4/ip_forward", "1", SYSCTL_NET },
	};
	const struct tree_case c = { .spec = { .root = place, OPS(proc_op) },
				     .sysctls = items,
				     .nsysctls = 2,
				     .kept_namespaces = CLONE_NEWUTS };
	char before[65], after[65];
	assert_int_equal(gethostname(before, sizeof(before)), 0);
	expect_tree_failure(
	    &c, "sysctls",
	    "sysctl 'kernel.hostname': the container is in the host's uts namespace");
	assert_int_equal(gethostname(after, sizeof(after)), 0);
	assert_string_equal(before, after);
	end_place(place);
}

static void what_the_kernel_does_not_have_or_take_is_an_error(void **state)
{
	(void)state;
	char *place = make_place();
	static const struct {
		struct sysctl item;
		const char *part;
	} rows[] = {
		{ { "net.none", "net/none", "1", SYSCTL_NET }, "sysctl 'net.none': No such file" },
		{ { "net.ipv4", "net/ipv4", "1", SYSCTL_NET }, "sysctl 'net.ipv4': " },
		{ { "net.x", "net/../kernel/core_pattern/../../net/ipv4/ip_forward", "1",
		    SYSCTL_NET },
		  "sysctl 'net.x': " },
		{ { "net.ipv4.ip_forward", "net/ipv4/ip_forward", "no number", SYSCTL_NET },
		  "write 'no number': Invalid argument" },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct tree_case c = { .spec = { .root = place, OPS(proc_op) },
					     .sysctls = &rows[i].item,
					     .nsysctls = 1 };
		expect_tree_failure(&c, "sysctls", rows[i].part);
	}
	end_place(place);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_parameter_is_written_in_the_container_s_namespace),
		cmocka_unit_test(a_mount_over_the_container_s_proc_redirects_nothing),
		cmocka_unit_test(the_host_s_namespace_is_refused_before_anything_is_written),
		cmocka_unit_test(what_the_kernel_does_not_have_or_take_is_an_error),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
