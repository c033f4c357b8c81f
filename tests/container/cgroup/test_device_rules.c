/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device rules as a program: its verdicts, by an interpreter of the few instructions it uses and
 * beside a plain reading of the rules; and the kernel's verifier takes it.
 */
#include "runtime/container/cgroup/device_rules.h"

#include <setjmp.h>
#include <stdarg.h>
#include <sys/syscall.h>

#include <cmocka.h>

#include "runtime/base/scope.h"

#define READ  BPF_DEVCG_ACC_READ
#define WRITE BPF_DEVCG_ACC_WRITE
#define MKNOD BPF_DEVCG_ACC_MKNOD
#define ANY                                                                                        \
	{                                                                                          \
		false, 0                                                                           \
	}
#define NR(n)                                                                                      \
	{                                                                                          \
		true, n                                                                            \
	}

static const struct oci_device_rule deny_all = {
	.type = 'a', .may_read = true, .may_write = true, .may_mknod = true
};

/* What the kernel would do with the program; fails the test at anything it would refuse. */
static uint32_t interpret(const struct device_program *p, const struct bpf_cgroup_dev_ctx *ctx)
{
	uint32_t r[11] = { 0 };
	for (size_t at = 0, steps = 0; steps < p->count; steps++) {
		assert_true(at < p->count);
		const struct bpf_insn *i = &p->insns[at++];
		uint32_t imm = (uint32_t)i->imm;
		bool jumps = false;
		switch (i->code) {
		case BPF_LDX | BPF_W | BPF_MEM:
			assert_int_equal(i->src_reg, BPF_REG_1);
			memcpy(&r[i->dst_reg], (const char *)ctx + i->off, sizeof(r[0]));
			break;
		case BPF_ALU | BPF_MOV | BPF_K:
			r[i->dst_reg] = imm;
			break;
		case BPF_ALU | BPF_MOV | BPF_X:
			r[i->dst_reg] = r[i->src_reg];
			break;
		case BPF_ALU | BPF_AND | BPF_K:
			r[i->dst_reg] &= imm;
			break;
		case BPF_ALU | BPF_RSH | BPF_K:
			r[i->dst_reg] >>= imm;
			break;
		case BPF_JMP32 | BPF_JNE | BPF_K:
			jumps = r[i->dst_reg] != imm;
			break;
		case BPF_JMP32 | BPF_JEQ | BPF_K:
			jumps = r[i->dst_reg] == imm;
			break;
		case BPF_JMP | BPF_JA:
			jumps = true;
			break;
		case BPF_JMP | BPF_EXIT:
			return r[0];
		default:
			fail_msg("instruction %#x", i->code);
		}
		if (jumps)
			at += (size_t)i->off;
	}
	fail_msg("the program has no end");
	return 0;
}

static uint32_t ask(const struct device_program *p, char type, uint32_t major, uint32_t minor,
		    uint32_t rights)
{
	uint32_t kind = type == 'b' ? BPF_DEVCG_DEV_BLOCK : BPF_DEVCG_DEV_CHAR;
	const struct bpf_cgroup_dev_ctx ctx = { rights << 16 | kind, major, minor };
	return interpret(p, &ctx);
}

static struct device_program compile(const struct oci_device_rule *rules, size_t count,
				     struct arena *a)
{
	struct device_program p;
	struct cj_error err = { 0 };
	assert_int_equal(device_rules_compile(rules, count, a, &p, &err), 0);
	return p;
}

static void without_rules_only_the_usual_devices_open(void **state)
{
	(void)state;
	auto_arena struct arena a = { 0 };
	struct device_program p = compile(NULL, 0, &a), q = compile(&deny_all, 1, &a);
	static const struct {
		char type;
		uint32_t major, minor, rights, expected;
	} rows[] = {
		{ 'c', 1, 3, READ | WRITE, 1 },
		{ 'c', 1, 9, READ, 1 },
		{ 'c', 5, 2, READ | WRITE, 1 },
		{ 'c', 136, 7, READ | WRITE, 1 },
		{ 'c', 1, 1, READ, 0 },
		{ 'b', 8, 0, READ, 0 },
		{ 'b', 1, 3, READ, 0 },
		{ 'b', 8, 0, MKNOD, 1 },
		{ 'c', 1, 1, MKNOD, 1 },
		{ 'c', 1, 1, MKNOD | READ, 0 },
		{ 'b', 8, 0, 0, 1 },
		{ 'c', 10, 229, READ, 0 },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(
		    ask(&p, rows[i].type, rows[i].major, rows[i].minor, rows[i].rights),
		    rows[i].expected);
		assert_int_equal(
		    ask(&q, rows[i].type, rows[i].major, rows[i].minor, rows[i].rights),
		    rows[i].expected);
	}
}

static void the_last_rule_that_covers_a_right_decides(void **state)
{
	(void)state;
	auto_arena struct arena a = { 0 };
	const struct oci_device_rule rules[] = {
		deny_all,
		{ .allow = true, .type = 'c', .major = NR(10), .minor = ANY, .may_read = true },
		{ .allow = true,
		  .type = 'c',
		  .major = NR(10),
		  .minor = NR(229),
		  .may_write = true },
		{ .type = 'c', .major = NR(10), .minor = NR(200), .may_read = true },
	};
	struct device_program p = compile(rules, 4, &a);
	assert_int_equal(ask(&p, 'c', 10, 1, READ), 1);
	assert_int_equal(ask(&p, 'c', 10, 1, READ | WRITE), 0);
	/* Two rules together give both rights. */
	assert_int_equal(ask(&p, 'c', 10, 229, READ | WRITE), 1);
	assert_int_equal(ask(&p, 'c', 10, 200, READ), 0);
	assert_int_equal(ask(&p, 'b', 10, 229, READ), 0);
	/* Denied behind what was allowed: the order counts. */
	const struct oci_device_rule turned[] = { rules[1], deny_all };
	p = compile(turned, 2, &a);
	assert_int_equal(ask(&p, 'c', 10, 1, READ), 0);
}

static void a_privileged_container_opens_all(void **state)
{
	(void)state;
	auto_arena struct arena a = { 0 };
	struct oci_device_rule all = deny_all;
	all.allow = true;
	const struct oci_device_rule rules[] = { deny_all, all };
	struct device_program p = compile(rules, 2, &a);
	assert_int_equal(ask(&p, 'b', 8, 0, READ | WRITE | MKNOD), 1);
	assert_int_equal(ask(&p, 'c', UINT32_MAX, UINT32_MAX, READ), 1);
}

/* --- beside a plain reading ------------------------------------------------------------ */

static bool covers(const struct oci_device_rule *rule, char type, uint32_t major, uint32_t minor,
		   uint32_t right)
{
	bool has = right == READ    ? rule->may_read
		   : right == WRITE ? rule->may_write
				    : rule->may_mknod;
	return has && (rule->type == 'a' || rule->type == type) &&
	       (!rule->major.is_set || rule->major.value == -1 || rule->major.value == major) &&
	       (!rule->minor.is_set || rule->minor.value == -1 || rule->minor.value == minor);
}

/* Of one right, in the caller's rules only. */
static bool reads_as(const struct oci_device_rule *rules, size_t count, char type, uint32_t major,
		     uint32_t minor, uint32_t right)
{
	bool allowed = right ==
		       MKNOD; /* what every container may, and none of its devices is asked */
	for (size_t i = 0; i < count && right != MKNOD; i++)
		if (covers(&rules[i], type, major, minor, right))
			allowed = rules[i].allow;
	return allowed;
}

static struct oci_device_rule random_rule(void)
{
	return (struct oci_device_rule){
		.allow = rand() % 2,
		.type = "abc"[rand() % 3],
		.major = { rand() % 2, 20 + rand() % 3 - (rand() % 4 == 0 ? 21 : 0) },
		.minor = { rand() % 2, rand() % 4 - 1 },
		.may_read = rand() % 2,
		.may_write = rand() % 2,
		.may_mknod = rand() % 2,
	};
}

static void random_rules_read_the_same_in_both_ways(void **state)
{
	(void)state;
	unsigned allowed = 0, denied = 0;
	srand(1);
	for (unsigned round = 0; round < 300; round++) {
		auto_arena struct arena a = { 0 };
		struct oci_device_rule rules[8];
		size_t count = (size_t)rand() % 9;
		for (size_t i = 0; i < count; i++)
			rules[i] = random_rule();
		struct device_program p = compile(rules, count, &a);
		for (unsigned i = 0; i < 3 * 4 * 2 * 8; i++) {
			uint32_t major = 20 + i % 3, minor = i / 3 % 4, rights = i / 24;
			char type = i / 12 % 2 ? 'b' : 'c';
			bool expected = true;
			for (uint32_t right = 1; right <= WRITE; right <<= 1)
				if (rights & right)
					expected = expected && reads_as(rules, count, type, major,
									minor, right);
			assert_int_equal(ask(&p, type, major, minor, rights), expected);
			*(expected ? &allowed : &denied) += 1;
		}
	}
	assert_true(allowed > 1000 && denied > 1000);
}

/* --- the kernel ------------------------------------------------------------------------- */

static int load(const struct device_program *p)
{
	union bpf_attr attr = { .prog_type = BPF_PROG_TYPE_CGROUP_DEVICE,
				.insns = (uintptr_t)p->insns,
				.insn_cnt = (uint32_t)p->count,
				.license = (uintptr_t) "Apache-2.0" };
	return (int)syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof(attr));
}

static void the_kernel_takes_the_smallest_and_the_largest(void **state)
{
	(void)state;
	auto_arena struct arena a = { 0 };
	static struct oci_device_rule rules[DEVICE_RULES_MAX + 1];
	struct device_program small = compile(NULL, 0, &a);
	auto_fd int first = load(&small);
	if (first < 0 && errno == EPERM)
		skip(); /* an ordinary user */
	assert_true(first >= 0);
	for (size_t i = 0; i <= DEVICE_RULES_MAX; i++) {
		rules[i] = random_rule();
		rules[i].may_read = true;
		rules[i].major = rules[i].minor = (struct oci_i64){ true, (int64_t)i };
	}
	struct device_program large = compile(rules, DEVICE_RULES_MAX, &a);
	auto_fd int second = load(&large);
	assert_true(second >= 0);

	struct cj_error err = { 0 };
	assert_int_equal(device_rules_compile(rules, DEVICE_RULES_MAX + 1, &a, &large, &err),
			 -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_rules_only_the_usual_devices_open),
		cmocka_unit_test(the_last_rule_that_covers_a_right_decides),
		cmocka_unit_test(a_privileged_container_opens_all),
		cmocka_unit_test(random_rules_read_the_same_in_both_ways),
		cmocka_unit_test(the_kernel_takes_the_smallest_and_the_largest),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
