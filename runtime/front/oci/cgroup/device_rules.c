/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Emits the BPF program of device rules.  Pure.
 *
 * Registers: r2 the device's type, r3 the rights that no rule has decided yet, r4 major, r5 minor.
 * The rules follow from the last to the first.  Each of them skips itself unless it matches; then
 * one that allows takes its rights out of r3, and the program ends with 1 when none is left; one
 * that denies ends it with 0 when r3 contains one of its rights.  Behind the first rule: 0.
 */
#include "runtime/front/oci/cgroup/device_rules.h"

#include <assert.h>

#define RULE_INSNS_MAX 9 /* type, major, minor, three for the rights, two for the end, one spare */
#define FRAME_INSNS    12
#define ALL_RIGHTS     (BPF_DEVCG_ACC_MKNOD | BPF_DEVCG_ACC_READ | BPF_DEVCG_ACC_WRITE)

/* clang-format off */
#define EVERY { false, 0 }
#define NUMBER(n) { true, n }
#define NODE(major_, minor_) \
	{ .allow = true, .type = 'c', .major = major_, .minor = minor_, \
	  .may_read = true, .may_write = true, .may_mknod = true }

/* The kernel's Documentation/admin-guide/devices.txt.  Each is made or bound by the runtime. */
static const struct oci_device_rule always[] = {
	{ .allow = true, .type = 'c', .may_mknod = true },
	{ .allow = true, .type = 'b', .may_mknod = true },
	NODE(NUMBER(1), NUMBER(3)), /* null */
	NODE(NUMBER(1), NUMBER(5)), /* zero */
	NODE(NUMBER(1), NUMBER(7)), /* full */
	NODE(NUMBER(1), NUMBER(8)), /* random */
	NODE(NUMBER(1), NUMBER(9)), /* urandom */
	NODE(NUMBER(5), NUMBER(0)), /* tty */
	NODE(NUMBER(5), NUMBER(1)), /* console */
	NODE(NUMBER(5), NUMBER(2)), /* ptmx */
	NODE(NUMBER(136), EVERY),   /* the terminals of devpts */
};
/* clang-format on */
#define ALWAYS (sizeof(always) / sizeof(always[0]))

struct emitter {
	struct bpf_insn *insns;
	size_t count, max;
};

static void emit(struct emitter *e, struct bpf_insn insn)
{
	assert(e->count < e->max);
	e->insns[e->count++] = insn;
}

static void emit_load(struct emitter *e, unsigned reg, int16_t offset)
{
	emit(e, (struct bpf_insn){ .code = BPF_LDX | BPF_W | BPF_MEM,
				   .dst_reg = reg & 15u,
				   .src_reg = BPF_REG_1,
				   .off = offset });
}

static void emit_constant(struct emitter *e, uint8_t operation, unsigned reg, uint32_t value)
{
	emit(e, (struct bpf_insn){ .code = BPF_ALU | operation | BPF_K,
				   .dst_reg = reg & 15u,
				   .imm = (int32_t)value });
}

static void emit_copy(struct emitter *e, unsigned to, unsigned from)
{
	emit(e, (struct bpf_insn){ .code = BPF_ALU | BPF_MOV | BPF_X,
				   .dst_reg = to & 15u,
				   .src_reg = from & 15u });
}

/* The target follows: land_here() knows it. */
static size_t emit_jump(struct emitter *e, uint8_t condition, unsigned reg, uint32_t value)
{
	emit(e, (struct bpf_insn){ .code = BPF_JMP32 | condition | BPF_K,
				   .dst_reg = reg & 15u,
				   .imm = (int32_t)value });
	return e->count - 1;
}

static void land_here(struct emitter *e, size_t jump)
{
	e->insns[jump].off = (int16_t)(e->count - jump - 1);
}

static void emit_verdict(struct emitter *e, uint32_t verdict)
{
	emit_constant(e, BPF_MOV, BPF_REG_0, verdict);
	emit(e, (struct bpf_insn){ .code = BPF_JMP | BPF_EXIT });
}

static uint32_t rights_of(const struct oci_device_rule *rule)
{
	return (rule->may_read ? BPF_DEVCG_ACC_READ : 0u) |
	       (rule->may_write ? BPF_DEVCG_ACC_WRITE : 0u) |
	       (rule->may_mknod ? BPF_DEVCG_ACC_MKNOD : 0u);
}

static bool is_every(struct oci_i64 number)
{
	return !number.is_set || number.value == -1;
}

/* A number that no device has never matches: the kernel's have 32 bits. */
static bool is_number(struct oci_i64 number)
{
	return is_every(number) || (number.value >= 0 && number.value <= UINT32_MAX);
}

static void emit_rule(struct emitter *e, const struct oci_device_rule *rule)
{
	uint32_t rights = rights_of(rule);
	size_t skips[3], nskips = 0;
	if (rights == 0 || !is_number(rule->major) || !is_number(rule->minor))
		return;
	if (rule->type != 'a')
		skips[nskips++] =
		    emit_jump(e, BPF_JNE, BPF_REG_2,
			      rule->type == 'b' ? BPF_DEVCG_DEV_BLOCK : BPF_DEVCG_DEV_CHAR);
	if (!is_every(rule->major))
		skips[nskips++] = emit_jump(e, BPF_JNE, BPF_REG_4, (uint32_t)rule->major.value);
	if (!is_every(rule->minor))
		skips[nskips++] = emit_jump(e, BPF_JNE, BPF_REG_5, (uint32_t)rule->minor.value);

	size_t goes_on;
	if (rule->allow) {
		emit_constant(e, BPF_AND, BPF_REG_3, ~rights & ALL_RIGHTS);
		goes_on = emit_jump(e, BPF_JNE, BPF_REG_3, 0);
	} else {
		emit_copy(e, BPF_REG_1, BPF_REG_3);
		emit_constant(e, BPF_AND, BPF_REG_1, rights);
		goes_on = emit_jump(e, BPF_JEQ, BPF_REG_1, 0);
	}
	emit_verdict(e, rule->allow);
	land_here(e, goes_on);
	for (size_t i = 0; i < nskips; i++)
		land_here(e, skips[i]);
}

static void emit_begin(struct emitter *e)
{
	emit_load(e, BPF_REG_2, offsetof(struct bpf_cgroup_dev_ctx, access_type));
	emit_load(e, BPF_REG_4, offsetof(struct bpf_cgroup_dev_ctx, major));
	emit_load(e, BPF_REG_5, offsetof(struct bpf_cgroup_dev_ctx, minor));
	emit_copy(e, BPF_REG_3, BPF_REG_2);
	emit_constant(e, BPF_RSH, BPF_REG_3, 16);
	emit_constant(e, BPF_AND, BPF_REG_2, 0xffff);
	size_t asks = emit_jump(e, BPF_JNE, BPF_REG_3, 0);
	emit_verdict(e, 1); /* no right is asked for: stat(2), a search */
	land_here(e, asks);
}

int device_rules_compile(const struct oci_device_rule *rules, size_t count, struct arena *a,
			 struct device_program *out, struct cj_error *err)
{
	if (count > DEVICE_RULES_MAX)
		return cj_reject(err, "linux.resources.devices has %zu rules, more than %d", count,
				 DEVICE_RULES_MAX);
	struct emitter e = { .max = FRAME_INSNS + (count + ALWAYS) * RULE_INSNS_MAX };
	e.insns = arena_array(a, e.max, sizeof(*e.insns));
	if (!e.insns)
		return cj_fail(err, ENOMEM, "compile the device rules");

	emit_begin(&e);
	for (size_t i = ALWAYS; i-- > 0;)
		emit_rule(&e, &always[i]);
	for (size_t i = count; i-- > 0;)
		emit_rule(&e, &rules[i]);
	emit_verdict(&e, 0);
	*out = (struct device_program){ .insns = e.insns, .count = e.count };
	return 0;
}
