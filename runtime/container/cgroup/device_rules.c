/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Emits the BPF program of device rules, and attaches it: bpf(2), BPF_PROG_TYPE_CGROUP_DEVICE.
 *
 * A section for each right.  It is skipped when the right is not asked for.  Else its rules follow
 * from the last to the first: one that matches and allows goes on with the next section, one that
 * denies ends the program with 0, and so does the section's end.  Behind the last section: 1.
 *
 * Each comparison loads its number anew.  Otherwise the kernel's verifier would follow every rule
 * with every number that a rule before it has left in a register, and refuse long lists.
 */
#include "runtime/container/cgroup/device_rules.h"

#include <assert.h>
#include <fcntl.h>
#include <sys/syscall.h>

#include "runtime/base/scope.h"
#include "runtime/kernel/ids/idmap.h"

#define RULE_INSNS_MAX  7 /* type 1, major 2, minor 2, the end 2 */
#define FRAME_INSNS_MAX 8 /* of a section: rights and type 6, its end 2 */
#define RIGHTS          3

#define REG_TYPE   BPF_REG_2
#define REG_NUMBER BPF_REG_3

#define ATTACHED_MAX 64 /* BPF_CGROUP_MAX_PROGS of the kernel */

/* clang-format off */
#define NODE(major_, minor_) \
	{ .allow = true, .type = 'c', .major = { true, (major_) }, .minor = { true, (minor_) }, \
	  .may_read = true, .may_write = true, .may_mknod = true }

/* The kernel's Documentation/admin-guide/devices.txt.  Each is made or bound by the runtime. */
static const struct oci_device_rule always[] = {
	{ .allow = true, .type = 'c', .may_mknod = true },
	{ .allow = true, .type = 'b', .may_mknod = true },
	NODE(1, 3), /* null */
	NODE(1, 5), /* zero */
	NODE(1, 7), /* full */
	NODE(1, 8), /* random */
	NODE(1, 9), /* urandom */
	NODE(5, 0), /* tty */
	NODE(5, 1), /* console */
	NODE(5, 2), /* ptmx */
	{ .allow = true, .type = 'c', .major = { true, 136 }, .may_read = true, .may_write = true,
	  .may_mknod = true }, /* the terminals of devpts */
};
/* clang-format on */

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

/* Jumps over `skipped` instructions. */
static void emit_jump(struct emitter *e, uint8_t condition, unsigned reg, uint32_t value,
		      size_t skipped)
{
	emit(e, (struct bpf_insn){ .code = BPF_JMP32 | condition | BPF_K,
				   .dst_reg = reg & 15u,
				   .off = (int16_t)skipped,
				   .imm = (int32_t)value });
}

static void emit_verdict(struct emitter *e, uint32_t verdict)
{
	emit_constant(e, BPF_MOV, BPF_REG_0, verdict);
	emit(e, (struct bpf_insn){ .code = BPF_JMP | BPF_EXIT });
}

static bool is_every(struct oci_i64 number)
{
	return !number.is_set || number.value == -1;
}

/* The kernel's numbers have 32 bits: others never match. */
static bool is_number(struct oci_i64 number)
{
	return is_every(number) || (number.value >= 0 && number.value <= UINT32_MAX);
}

/*
 * A rule that allows ends with a jump that emit_section() aims.  True: the rule matches every
 * device, so that nothing behind it can be reached.
 */
static bool emit_rule(struct emitter *e, const struct oci_device_rule *rule)
{
	const struct oci_i64 numbers[] = { rule->major, rule->minor };
	static const int16_t offsets[] = { offsetof(struct bpf_cgroup_dev_ctx, major),
					   offsetof(struct bpf_cgroup_dev_ctx, minor) };
	size_t rest = rule->allow ? 1 : 2; /* instructions that follow */

	if (!is_number(rule->major) || !is_number(rule->minor))
		return false;
	for (size_t i = 0; i < 2; i++)
		rest += is_every(numbers[i]) ? 0 : 2;
	bool is_for_all = rule->type == 'a' && is_every(rule->major) && is_every(rule->minor);
	if (rule->type != 'a')
		emit_jump(e, BPF_JNE, REG_TYPE,
			  rule->type == 'b' ? BPF_DEVCG_DEV_BLOCK : BPF_DEVCG_DEV_CHAR, rest);
	for (size_t i = 0; i < 2; i++) {
		if (is_every(numbers[i]))
			continue;
		rest -= 2;
		emit_load(e, REG_NUMBER, offsets[i]);
		emit_jump(e, BPF_JNE, REG_NUMBER, (uint32_t)numbers[i].value, rest);
	}
	if (rule->allow)
		emit(e, (struct bpf_insn){ .code = BPF_JMP | BPF_JA });
	else
		emit_verdict(e, 0);
	return is_for_all;
}

struct rule_list {
	const struct oci_device_rule *items;
	size_t count;
};

static void emit_section(struct emitter *e, const struct rule_list *lists, uint32_t right)
{
	const int16_t offset = offsetof(struct bpf_cgroup_dev_ctx, access_type);
	bool is_decided = false; /* by a rule that matches every device */

	emit_load(e, REG_NUMBER, offset);
	emit_constant(e, BPF_AND, REG_NUMBER, right << 16);
	const size_t begin = e->count; /* the jump of what is not asked for */
	emit_jump(e, BPF_JEQ, REG_NUMBER, 0, 0);
	emit_load(e, REG_TYPE, offset);
	emit_constant(e, BPF_AND, REG_TYPE, 0xffff);
	/* From the last to the first; ours are behind the caller's. */
	for (size_t k = 2; k-- > 0;)
		for (size_t i = lists[k].count; i-- > 0 && !is_decided;) {
			const struct oci_device_rule *rule = &lists[k].items[i];
			if (right == BPF_DEVCG_ACC_READ    ? rule->may_read
			    : right == BPF_DEVCG_ACC_WRITE ? rule->may_write
							   : rule->may_mknod)
				is_decided = emit_rule(e, rule);
		}
	if (!is_decided)
		emit_verdict(e, 0);
	static_assert((DEVICE_RULES_MAX + COUNT_OF(always)) * RULE_INSNS_MAX + FRAME_INSNS_MAX <
			  INT16_MAX,
		      "an offset holds the longest section");
	for (size_t i = begin; i < e->count; i++)
		if (i == begin || e->insns[i].code == (BPF_JMP | BPF_JA))
			e->insns[i].off = (int16_t)(e->count - i - 1);
}

int device_rules_compile(const struct oci_device_rule *rules, size_t count, struct arena *a,
			 struct device_program *out, struct cj_error *err)
{
	if (count > DEVICE_RULES_MAX)
		return cj_reject(err, "linux.resources.devices has %zu rules, more than %d", count,
				 DEVICE_RULES_MAX);
	const struct rule_list lists[] = { { rules, count }, { always, COUNT_OF(always) } };
	struct emitter e = {
		.max = RIGHTS * (FRAME_INSNS_MAX + (count + COUNT_OF(always)) * RULE_INSNS_MAX) + 2
	};
	e.insns = arena_array(a, e.max, sizeof(*e.insns));
	if (!e.insns)
		return cj_fail(err, ENOMEM, "compile the device rules");

	emit_section(&e, lists, BPF_DEVCG_ACC_READ);
	emit_section(&e, lists, BPF_DEVCG_ACC_WRITE);
	emit_section(&e, lists, BPF_DEVCG_ACC_MKNOD);
	emit_verdict(&e, 1); /* no right is denied; with none asked for, this is stat(2) */
	*out = (struct device_program){ .insns = e.insns, .count = e.count };
	return 0;
}

static int sys_bpf(enum bpf_cmd command, union bpf_attr *attr)
{
	return (int)syscall(SYS_bpf, command, attr, sizeof(*attr));
}

bool device_rules_can_attach(void)
{
	return geteuid() == 0 && idmap_is_initial();
}

static int load(const struct device_program *program)
{
	static const char license[] = "Apache-2.0";
	union bpf_attr attr = {
		.prog_type = BPF_PROG_TYPE_CGROUP_DEVICE,
		.insns = (uintptr_t)program->insns,
		.insn_cnt = (uint32_t)program->count,
		.license = (uintptr_t)license,
		.prog_name = "cejail_devices",
	};
	return sys_bpf(BPF_PROG_LOAD, &attr);
}

static int detach(int cgroup_fd, uint32_t id)
{
	union bpf_attr by_id = { .prog_id = id };
	auto_fd int program_fd = sys_bpf(BPF_PROG_GET_FD_BY_ID, &by_id);
	union bpf_attr attr = {
		.target_fd = (uint32_t)cgroup_fd,
		.attach_bpf_fd = (uint32_t)program_fd,
		.attach_type = BPF_CGROUP_DEVICE,
	};
	return program_fd < 0 || sys_bpf(BPF_PROG_DETACH, &attr) < 0 ? -errno : 0;
}

static int replace(int cgroup_fd, int program_fd, struct cj_error *err)
{
	uint32_t before[ATTACHED_MAX];
	union bpf_attr list = {
		.query = { .target_fd = (uint32_t)cgroup_fd,
			   .attach_type = BPF_CGROUP_DEVICE,
			   .prog_ids = (uintptr_t)before,
			   .prog_cnt = ATTACHED_MAX },
	};
	union bpf_attr attach = {
		.target_fd = (uint32_t)cgroup_fd,
		.attach_bpf_fd = (uint32_t)program_fd,
		.attach_type = BPF_CGROUP_DEVICE,
		.attach_flags = BPF_F_ALLOW_MULTI,
	};
	if (sys_bpf(BPF_PROG_QUERY, &list) < 0)
		return cj_fail(err, errno, "list the cgroup's device programs");
	if (sys_bpf(BPF_PROG_ATTACH, &attach) < 0)
		return cj_fail(err, errno, "attach the device program to the cgroup");
	for (size_t i = 0; i < list.query.prog_cnt; i++) {
		int rc = detach(cgroup_fd, before[i]);
		if (rc < 0)
			return cj_fail(err, -rc, "detach the cgroup's former device program");
	}
	return 0;
}

int device_rules_set(int cgroup_fd, const struct oci_device_rule *rules, size_t count,
		     struct cj_error *err)
{
	auto_arena struct arena a = { 0 };
	struct device_program program;
	if (device_rules_compile(rules, count, &a, &program, err) < 0)
		return -err->code;
	/* Attaching takes no O_PATH descriptor, and the caller's may be one. */
	auto_fd int dir_fd = openat(cgroup_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir_fd < 0)
		return cj_fail(err, errno, "open the cgroup");
	auto_fd int program_fd = load(&program);
	if (program_fd >= 0)
		return replace(dir_fd, program_fd, err);
	if (errno == EPERM && !device_rules_can_attach())
		return 0;
	(void)!cj_fail(err, errno, "load the device program");
	return cj_hint(err, "linux.resources.devices needs CAP_SYS_ADMIN and a kernel with "
			    "CONFIG_CGROUP_BPF; or use --cgroup-manager disabled");
}
