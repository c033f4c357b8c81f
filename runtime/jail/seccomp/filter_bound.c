/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bounded calls in a plan.  Pure.
 *
 * Each row of calls_bounded[] is a region of a call's arguments.  The decisions inside that region
 * are repeated before all others, with "allow" changed to "notify the supervisor".  The high half
 * of an argument, which the kernel ignores, counts as zero.
 */
#include "runtime/jail/seccomp/filter_bound.h"

#include <errno.h>
#include <linux/seccomp.h>

/* What a row's condition says about a condition of the policy. */
enum relation { NEVER_HOLDS, MAY_HOLD, ALWAYS_HOLDS };

static bool is_equal_to(const struct policy_arg *arg, uint32_t value)
{
	if (arg->op == POLICY_EQ)
		return arg->value == value;
	return arg->op == POLICY_MASKED_EQ && (uint32_t)arg->value == UINT32_MAX &&
	       arg->value_two == value;
}

static enum relation relate_one(const struct policy_arg *arg, const struct call_condition *c)
{
	if (arg->index != c->index)
		return MAY_HOLD;
	if (!c->is_unequal)
		return filter_arg_holds(arg, c->value) ? ALWAYS_HOLDS : NEVER_HOLDS;
	if (is_equal_to(arg, c->value))
		return NEVER_HOLDS;
	return arg->op == POLICY_NE && arg->value == c->value ? ALWAYS_HOLDS : MAY_HOLD;
}

static enum relation relate(const struct policy_arg *arg, const struct call_bounded *row)
{
	enum relation found = MAY_HOLD;
	for (size_t i = 0; found == MAY_HOLD && i < row->nconditions; i++)
		found = relate_one(arg, &row->conditions[i]);
	return found;
}

static bool lets_through(uint32_t ret)
{
	return ret == SECCOMP_RET_ALLOW || ret == SECCOMP_RET_LOG;
}

/* The answer inside the region: a notified refusal becomes an errno without notification. */
static uint32_t answer_in_region(uint32_t ret)
{
	if (lets_through(ret))
		return SECCOMP_RET_USER_NOTIF;
	return ret == SECCOMP_RET_USER_NOTIF ? SECCOMP_RET_ERRNO | (uint32_t)EPERM : ret;
}

static struct policy_arg condition_arg(const struct call_condition *c)
{
	if (c->is_unequal)
		return (struct policy_arg){ c->index, POLICY_NE, c->value, 0 };
	return (struct policy_arg){ c->index, POLICY_MASKED_EQ, UINT32_MAX, c->value };
}

/* Adds `from` limited to the region of `row`: the conditions that the row leaves open come last. */
static int add_region_branch(const struct call_bounded *row, const struct filter_branch *from,
			     struct arena *a, struct filter_branch *out)
{
	struct policy_arg *args = arena_array(a, row->nconditions + from->nargs, sizeof(*args));
	size_t n = 0;
	if (!args)
		return -ENOMEM;
	for (size_t i = 0; i < row->nconditions; i++)
		args[n++] = condition_arg(&row->conditions[i]);
	for (size_t i = 0; i < from->nargs; i++) {
		if (relate(&from->args[i], row) == MAY_HOLD)
			args[n++] = from->args[i];
	}
	*out = (struct filter_branch){ args, n, answer_in_region(from->ret) };
	return 0;
}

static bool can_hold(const struct call_bounded *row, const struct filter_branch *branch)
{
	for (size_t i = 0; i < branch->nargs; i++) {
		if (relate(&branch->args[i], row) == NEVER_HOLDS)
			return false;
	}
	return true;
}

struct region {
	struct filter_branch *branches;
	size_t n;
	bool is_open; /* part of it is allowed */
};

/* Collects the decisions of `call` within the row, up to one without further conditions. */
static int make_region(const struct call_bounded *row, const struct filter_call *call,
		       struct arena *a, struct region *out)
{
	const struct filter_branch last = { .ret = call->otherwise };
	bool is_decided = false;
	for (size_t i = 0; i <= call->nbranches && !is_decided; i++) {
		const struct filter_branch *from = i < call->nbranches ? &call->branches[i] : &last;
		if (!can_hold(row, from))
			continue;
		struct filter_branch *to = &out->branches[out->n];
		if (add_region_branch(row, from, a, to) < 0)
			return -ENOMEM;
		out->n++;
		out->is_open |= lets_through(from->ret);
		is_decided = to->nargs == row->nconditions;
	}
	return 0;
}

static int bound_call(struct filter_call *call, const struct call_bounded *row, struct arena *a,
		      bool *out_is_open)
{
	struct region region = { 0 };
	region.branches =
	    arena_array(a, 2 * call->nbranches + 1, sizeof(*region.branches)); /* and the rest */
	if (!region.branches || make_region(row, call, a, &region) < 0)
		return -ENOMEM;
	*out_is_open = region.is_open;
	if (!region.is_open)
		return 0;
	for (size_t i = 0; i < call->nbranches; i++)
		region.branches[region.n++] = call->branches[i];
	call->branches = region.branches;
	call->nbranches = region.n;
	return 0;
}

int filter_bound(struct filter_plan *plan, struct arena *a, unsigned *out_rows)
{
	*out_rows = 0;
	for (size_t i = 0; i < calls_bounded_count; i++) {
		const struct call_bounded *row = &calls_bounded[i];
		bool is_open;
		if (bound_call(&plan->calls[row->nr], row, a, &is_open) < 0)
			return -ENOMEM;
		*out_rows |= is_open ? 1u << i : 0;
	}
	return 0;
}

static bool matches(const struct call_bounded *row, const uint64_t args[6])
{
	for (size_t i = 0; i < row->nconditions; i++) {
		const struct call_condition *c = &row->conditions[i];
		if (((uint32_t)args[c->index] == c->value) == c->is_unequal)
			return false;
	}
	return true;
}

const struct call_bounded *filter_bound_row(unsigned rows, int nr, const uint64_t args[6])
{
	for (size_t i = 0; i < calls_bounded_count; i++) {
		const struct call_bounded *row = &calls_bounded[i];
		if ((rows & 1u << i) && row->nr == nr && matches(row, args))
			return row;
	}
	return NULL;
}
