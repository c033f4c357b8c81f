/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bounded calls in a plan.
 *
 * Each row of calls_bounded[] is a region of a call's arguments: one argument's low half has the
 * row's value, whatever its high half, which the kernel ignores; or the argument is not 0.  Inside
 * the region "allow" becomes "notify the supervisor", with a mark.  All other decisions stay as
 * they are.
 */
#include "runtime/kernel/seccomp/filter_plan.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <string.h>
#include <sys/syscall.h>

/* In the data of SECCOMP_RET_USER_NOTIF: the bound, from 1, and whether the kernel shall log. */
#define MARK_BOUND  0xffu
#define MARK_LOGGED 0x100u

/* A condition of the policy and a row's region. */
enum relation { OUTSIDE, OVERLAPS, INSIDE };

static enum relation relate_arg(const struct policy_arg *arg, const struct call_bounded *row)
{
	if (arg->index != row->index || row->is_nonzero)
		return OVERLAPS;
	if (arg->op == POLICY_EQ)
		return (uint32_t)arg->value == row->value ? INSIDE : OUTSIDE;
	if (arg->op != POLICY_MASKED_EQ)
		return OVERLAPS; /* for some high half it may hold */
	uint32_t mask = (uint32_t)arg->value;
	if ((row->value & mask) != (uint32_t)arg->value_two)
		return OUTSIDE;
	return mask == UINT32_MAX ? INSIDE : OVERLAPS;
}

static enum relation relate(const struct filter_branch *branch, const struct call_bounded *row)
{
	enum relation found = OVERLAPS;
	for (size_t i = 0; i < branch->nargs; i++) {
		enum relation one = relate_arg(&branch->args[i], row);
		if (one == OUTSIDE)
			return OUTSIDE;
		found = one == INSIDE ? INSIDE : found;
	}
	return found;
}

static bool lets_through(uint32_t ret)
{
	return ret == SECCOMP_RET_ALLOW || ret == SECCOMP_RET_LOG;
}

static uint32_t mark(uint32_t ret, const struct call_bounded *row)
{
	return SECCOMP_RET_USER_NOTIF | (row->bound + 1u) |
	       (ret == SECCOMP_RET_LOG ? MARK_LOGGED : 0);
}

enum call_bound filter_bound_of(uint32_t answer)
{
	uint32_t bound = answer & MARK_BOUND;
	bool is_marked = (answer & SECCOMP_RET_ACTION_FULL) == SECCOMP_RET_USER_NOTIF &&
			 bound >= 1 && bound <= CALL_BOUND_COUNT;
	return is_marked ? (enum call_bound)(bound - 1) : CALL_BOUND_COUNT;
}

bool filter_bound_is_bypassed(const struct filter_plan *plan)
{
	const struct filter_call *call = &plan->calls[SYS_io_uring_setup];
	bool is_allowed = lets_through(call->otherwise);
	for (size_t i = 0; i < call->nbranches; i++)
		is_allowed |= lets_through(call->branches[i].ret);
	return is_allowed;
}

void filter_bound_drop(struct sock_filter *insns, size_t ninsns, enum call_bound bound)
{
	for (size_t i = 0; i < ninsns; i++) {
		bool is_marked = insns[i].code == (BPF_RET | BPF_K) &&
				 filter_bound_of(insns[i].k) == bound;
		if (is_marked)
			insns[i].k = insns[i].k & MARK_LOGGED ? SECCOMP_RET_LOG : SECCOMP_RET_ALLOW;
	}
}

/* The part of `from` that is in the row's region, marked. */
static int restrict_branch(const struct filter_branch *from, const struct call_bounded *row,
			   struct arena *a, struct filter_branch *out)
{
	struct policy_arg *args = arena_array(a, from->nargs + 1, sizeof(*args));
	if (!args)
		return -ENOMEM;
	args[0] = (struct policy_arg){ row->index, POLICY_MASKED_EQ, UINT32_MAX, row->value };
	if (row->is_nonzero)
		args[0] = (struct policy_arg){ row->index, POLICY_NE, 0, 0 };
	for (size_t i = 0; i < from->nargs; i++)
		args[i + 1] = from->args[i];
	*out = (struct filter_branch){ args, from->nargs + 1, mark(from->ret, row) };
	return 0;
}

struct branches {
	struct filter_branch *items;
	size_t count;
	bool has_mark;
};

/* A branch that lies partly in the region is divided: first that part, then the rest. */
static int add_branch(const struct filter_branch *from, const struct call_bounded *row,
		      struct arena *a, struct branches *to)
{
	enum relation relation = lets_through(from->ret) ? relate(from, row) : OUTSIDE;
	to->has_mark |= relation != OUTSIDE;
	if (relation == OVERLAPS && restrict_branch(from, row, a, &to->items[to->count++]) < 0)
		return -ENOMEM;
	struct filter_branch *copy = &to->items[to->count++];
	*copy = *from;
	if (relation == INSIDE)
		copy->ret = mark(from->ret, row);
	return 0;
}

static int bound_call(struct filter_call *call, const struct call_bounded *row, struct arena *a,
		      bool *out_has_mark)
{
	const struct filter_branch last = { .ret = call->otherwise };
	struct branches all = { 0 };
	all.items = arena_array(a, 2 * (call->nbranches + 1), sizeof(*all.items));
	if (!all.items)
		return -ENOMEM;
	for (size_t i = 0; i <= call->nbranches; i++) {
		const struct filter_branch *from = i < call->nbranches ? &call->branches[i] : &last;
		if (add_branch(from, row, a, &all) < 0)
			return -ENOMEM;
	}
	call->branches = all.items;
	call->nbranches = all.count - 1; /* without `last`, which is call->otherwise */
	*out_has_mark = all.has_mark;
	return 0;
}

int filter_bound(struct filter_plan *plan, struct arena *a, unsigned *out_bounds)
{
	*out_bounds = 0;
	for (size_t i = 0; i < calls_bounded_count; i++) {
		const struct call_bounded *row = &calls_bounded[i];
		bool has_mark;
		if (bound_call(&plan->calls[row->nr], row, a, &has_mark) < 0)
			return -ENOMEM;
		*out_bounds |= has_mark ? 1u << row->bound : 0;
	}
	return 0;
}

/* --- running a program: jumps go only forward, so it always ends ------------------------- */

static uint32_t load(const struct seccomp_data *data, uint32_t offset)
{
	uint32_t word = 0;
	if (offset <= sizeof(*data) - sizeof(word))
		memcpy(&word, (const uint8_t *)data + offset, sizeof(word));
	return word;
}

/* How many instructions a jump skips. */
static size_t skipped(const struct sock_filter *insn, uint32_t word)
{
	switch (BPF_OP(insn->code)) {
	case BPF_JA:
		return insn->k;
	case BPF_JEQ:
		return word == insn->k ? insn->jt : insn->jf;
	case BPF_JGT:
		return word > insn->k ? insn->jt : insn->jf;
	case BPF_JGE:
		return word >= insn->k ? insn->jt : insn->jf;
	default: /* BPF_JSET */
		return (word & insn->k) != 0 ? insn->jt : insn->jf;
	}
}

uint32_t filter_run(const struct sock_filter *insns, size_t ninsns, const struct seccomp_data *data)
{
	uint32_t word = 0;
	for (size_t at = 0; at < ninsns; at++) {
		const struct sock_filter *insn = &insns[at];
		switch (BPF_CLASS(insn->code)) {
		case BPF_LD:
			word = load(data, insn->k);
			break;
		case BPF_ALU: /* BPF_AND */
			word &= insn->k;
			break;
		case BPF_JMP:
			at += skipped(insn, word);
			break;
		case BPF_RET:
			return insn->k;
		default:
			return SECCOMP_RET_KILL_PROCESS;
		}
	}
	return SECCOMP_RET_KILL_PROCESS;
}
