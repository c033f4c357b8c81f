/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a plan to a seccomp program.
 *
 * BPF jumps only forward, and a conditional jump at most 255 instructions.  So a program is written
 * backwards: the target of a jump exists already, and its distance is known.  A position is a count
 * of instructions from the end; each function returns that of its first instruction.
 *
 * Neighbouring calls with the same answer are one span.  A binary tree of "number >= K?" finds the
 * span in about seven steps.  A call with conditions has them at its leaf.
 */
#include "runtime/kernel/seccomp/filter_parts.h"

#include <assert.h>

#include "runtime/kernel/seccomp/call_list.h"

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the low half of an argument comes first");

#define JUMP_MAX 250 /* of 255: a far jump inserted in between may increase the distance */

#define RETS_MAX 8

struct near_answer {
	uint32_t ret;
	unsigned position;
	bool is_set;
};

struct assembler {
	struct sock_filter *insns; /* BPF_MAXINSNS, filled from the end */
	unsigned count;
	bool is_full;
	bool has_no_memory;
	struct arena *scratch;
	struct near_answer rets[RETS_MAX]; /* the last ones, in a ring */
	unsigned next_ret;
};

static unsigned put(struct assembler *e, unsigned code, uint32_t k, unsigned yes, unsigned no)
{
	if (e->count == BPF_MAXINSNS) {
		e->is_full = true;
		return 0;
	}
	e->insns[BPF_MAXINSNS - 1 - e->count] = (struct sock_filter){
		.code = (uint16_t)code,
		.jt = (uint8_t)yes,
		.jf = (uint8_t)no,
		.k = k,
	};
	return e->count++;
}

/* Reuses a near answer: else half of all instructions would be copies of a few. */
static unsigned put_ret(struct assembler *e, uint32_t ret)
{
	for (size_t i = 0; i < RETS_MAX; i++) {
		if (e->rets[i].is_set && e->rets[i].ret == ret &&
		    e->count - e->rets[i].position < JUMP_MAX / 2)
			return e->rets[i].position;
	}
	unsigned position = put(e, BPF_RET | BPF_K, ret, 0, 0);
	e->rets[e->next_ret++ % RETS_MAX] = (struct near_answer){ ret, position, true };
	return position;
}

/* Loads a word of struct seccomp_data. */
static unsigned put_load(struct assembler *e, size_t offset)
{
	return put(e, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0);
}

/* `target`, or a far jump to it where a conditional one can't reach. */
static unsigned reach(struct assembler *e, unsigned target)
{
	unsigned distance = e->count - target - 1;
	return distance < JUMP_MAX ? target : put(e, BPF_JMP | BPF_JA, distance, 0, 0);
}

/* Compares the loaded word by `op` with k: then goes to `yes`, else to `no`. */
static unsigned put_jump(struct assembler *e, unsigned op, uint32_t k, unsigned yes, unsigned no)
{
	yes = reach(e, yes);
	no = reach(e, no);
	return put(e, BPF_JMP | op | BPF_K, k, e->count - yes - 1, e->count - no - 1);
}

static bool is_one_bit(uint32_t mask)
{
	return mask != 0 && (mask & (mask - 1)) == 0;
}

/* Does the loaded word have the value `want` in the bits of `mask`?  Keeps the word if it can. */
static unsigned put_compare(struct assembler *e, uint32_t mask, uint32_t want, unsigned yes,
			    unsigned no)
{
	if (is_one_bit(mask))
		return put_jump(e, BPF_JSET, mask, want ? yes : no, want ? no : yes);
	unsigned here = put_jump(e, BPF_JEQ, want, yes, no);
	return mask == UINT32_MAX ? here : put(e, BPF_ALU | BPF_AND | BPF_K, mask, 0, 0);
}

/* A comparison of one half of an argument. */
struct half {
	size_t offset; /* in struct seccomp_data */
	uint32_t mask, want;
};

static unsigned put_half(struct assembler *e, const struct half *h, unsigned yes, unsigned no)
{
	if (h->mask == 0)
		return yes; /* no bit of this half is compared; policy.c ensured that want is 0 */
	put_compare(e, h->mask, h->want, yes, no);
	return put_load(e, h->offset);
}

static unsigned put_equal(struct assembler *e, const struct policy_arg *arg, unsigned yes,
			  unsigned no)
{
	bool is_masked = arg->op == POLICY_MASKED_EQ;
	uint64_t mask = is_masked ? arg->value : UINT64_MAX;
	uint64_t want = is_masked ? arg->value_two : arg->value;
	const struct half low = { CALL_LOW(arg->index), (uint32_t)mask, (uint32_t)want };
	const struct half high = { CALL_HIGH(arg->index), (uint32_t)(mask >> 32),
				   (uint32_t)(want >> 32) };
	return put_half(e, &high, put_half(e, &low, yes, no), no);
}

/* `op` is BPF_JGE or BPF_JGT: how the low halves compare when the high ones are the same. */
static unsigned put_above(struct assembler *e, const struct policy_arg *arg, unsigned op,
			  unsigned yes, unsigned no)
{
	uint32_t high = (uint32_t)(arg->value >> 32);
	put_jump(e, op, (uint32_t)arg->value, yes, no);
	unsigned low = put_load(e, CALL_LOW(arg->index));
	unsigned same = put_jump(e, BPF_JEQ, high, low, no);
	put_jump(e, BPF_JGT, high, yes, same);
	return put_load(e, CALL_HIGH(arg->index));
}

static unsigned put_low_above(struct assembler *e, const struct policy_arg *arg, unsigned yes,
			      unsigned no)
{
	put_jump(e, BPF_JGT, (uint32_t)arg->value, yes, no);
	return put_load(e, CALL_LOW(arg->index));
}

/* Does the condition hold?  Loads what it needs. */
static unsigned put_arg(struct assembler *e, const struct policy_arg *arg, unsigned yes,
			unsigned no)
{
	switch (arg->op) {
	case POLICY_NE:
		return put_equal(e, arg, no, yes);
	case POLICY_LT:
		return put_above(e, arg, BPF_JGE, no, yes);
	case POLICY_LE:
		return put_above(e, arg, BPF_JGT, no, yes);
	case POLICY_EQ:
		return put_equal(e, arg, yes, no);
	case POLICY_GE:
		return put_above(e, arg, BPF_JGE, yes, no);
	case POLICY_GT:
		return put_above(e, arg, BPF_JGT, yes, no);
	case POLICY_MASKED_EQ:
		return put_equal(e, arg, yes, no);
	case POLICY_LOW_GT:
		return put_low_above(e, arg, yes, no);
	}
	assert(!"an operator of enum policy_op");
	return no;
}

/* The argument, if the branch compares only its low half and keeps it loaded; else -1. */
static int only_word(const struct filter_branch *branch)
{
	const struct policy_arg *arg = branch->args;
	if (branch->nargs != 1 || arg->op != POLICY_MASKED_EQ)
		return -1;
	if (arg->value == UINT32_MAX || (arg->value >> 32 == 0 && is_one_bit((uint32_t)arg->value)))
		return (int)arg->index;
	return -1;
}

/* One branch; without its load if the branch before it leaves the word loaded. */
static unsigned put_branch(struct assembler *e, const struct filter_branch *branch,
			   const struct filter_branch *before, unsigned next)
{
	unsigned here = put_ret(e, branch->ret);
	int word = only_word(branch);
	if (before && word >= 0 && only_word(before) == word)
		return put_compare(e, (uint32_t)branch->args->value,
				   (uint32_t)branch->args->value_two, here, next);
	for (size_t k = branch->nargs; k-- > 0;)
		here = put_arg(e, &branch->args[k], here, next);
	return here;
}

/*
 * Consecutive branches that differ only in the value of their last argument: one load, then a
 * search among ranges of values.  A list of options costs one or two instructions for each.
 */
struct number_run {
	const struct filter_branch *branches;
	size_t n;
};

static const struct policy_arg *last_arg(const struct filter_branch *branch)
{
	return &branch->args[branch->nargs - 1];
}

/* Is the last condition an equality with a 32-bit value?  Only such branches can be in a run. */
static bool has_value(const struct filter_branch *branch)
{
	return branch->nargs > 0 && last_arg(branch)->op == POLICY_MASKED_EQ &&
	       last_arg(branch)->value == UINT32_MAX;
}

static bool is_same_arg(const struct policy_arg *one, const struct policy_arg *other)
{
	return one->index == other->index && one->op == other->op && one->value == other->value &&
	       one->value_two == other->value_two;
}

static bool is_of_run(const struct filter_branch *one, const struct filter_branch *other)
{
	if (!has_value(one) || !has_value(other) || one->nargs != other->nargs ||
	    one->ret != other->ret || last_arg(one)->index != last_arg(other)->index)
		return false;
	for (size_t i = 0; i + 1 < one->nargs; i++) {
		if (!is_same_arg(&one->args[i], &other->args[i]))
			return false;
	}
	return true;
}

/* The longest run that ends with branch `last`; of one branch where no other fits. */
static struct number_run run_up_to(const struct filter_call *call, size_t last)
{
	size_t first = last;
	while (first > 0 && is_of_run(&call->branches[first - 1], &call->branches[last]))
		first--;
	return (struct number_run){ call->branches + first, last - first + 1 };
}

struct number_range {
	uint32_t first, last;
};

static int compare_ranges(const void *left, const void *right)
{
	const struct number_range *l = left, *r = right;
	return l->first < r->first ? -1 : l->first > r->first;
}

static size_t make_ranges(const struct number_run *run, struct number_range *out)
{
	size_t n = 0;
	for (size_t i = 0; i < run->n; i++) {
		uint32_t value = (uint32_t)last_arg(&run->branches[i])->value_two;
		out[i] = (struct number_range){ value, value };
	}
	qsort(out, run->n, sizeof(*out), compare_ranges);
	for (size_t i = 0; i < run->n; i++) {
		if (n > 0 && out[i].first - out[n - 1].last <= 1)
			out[n - 1].last = out[i].first;
		else
			out[n++] = out[i];
	}
	return n;
}

static unsigned put_range(struct assembler *e, const struct number_range *range, unsigned yes,
			  unsigned no)
{
	if (range->first == range->last)
		return put_jump(e, BPF_JEQ, range->first, yes, no);
	unsigned above = put_jump(e, BPF_JGT, range->last, no, yes);
	return put_jump(e, BPF_JGE, range->first, above, no);
}

#define RANGES_IN_A_ROW 4 /* a tree above that */

/* The depth is the logarithm of the number of rules; NOLINTNEXTLINE(misc-no-recursion) */
static unsigned put_ranges(struct assembler *e, const struct number_range *ranges, size_t n,
			   unsigned yes, unsigned no)
{
	if (n > RANGES_IN_A_ROW) {
		unsigned above = put_ranges(e, ranges + n / 2, n - n / 2, yes, no);
		unsigned below = put_ranges(e, ranges, n / 2, yes, no);
		return put_jump(e, BPF_JGE, ranges[n / 2].first, above, below);
	}
	for (size_t i = n; i-- > 0;)
		no = put_range(e, &ranges[i], yes, no);
	return no;
}

static unsigned put_run(struct assembler *e, const struct number_run *run,
			const struct filter_branch *before, unsigned next)
{
	const struct filter_branch *head = run->branches;
	struct number_range *ranges = arena_array(e->scratch, run->n, sizeof(*ranges));
	if (!ranges) {
		e->has_no_memory = true;
		return next;
	}
	size_t n = make_ranges(run, ranges);
	unsigned here = put_ranges(e, ranges, n, put_ret(e, head->ret), next);
	int word = only_word(head);
	if (!before || word < 0 || only_word(before) != word)
		here = put_load(e, CALL_LOW(last_arg(head)->index));
	for (size_t k = head->nargs - 1; k-- > 0;)
		here = put_arg(e, &head->args[k], here, next);
	return here;
}

static unsigned put_call(struct assembler *e, const struct filter_call *call)
{
	unsigned next = put_ret(e, call->otherwise);
	for (size_t i = call->nbranches; i > 0;) {
		struct number_run run = run_up_to(call, i - 1);
		i -= run.n;
		const struct filter_branch *before = i > 0 ? &call->branches[i - 1] : NULL;
		next = run.n > 1 ? put_run(e, &run, before, next)
				 : put_branch(e, run.branches, before, next);
	}
	return next;
}

struct span {
	unsigned first; /* number; the next span's is where it ends */
	const struct filter_call *call;
};

static bool is_same(const struct filter_call *one, const struct filter_call *other)
{
	return one->nbranches == 0 && other->nbranches == 0 && one->otherwise == other->otherwise;
}

static size_t make_spans(const struct filter_plan *plan, const struct filter_call *beyond,
			 struct span *out)
{
	size_t n = 0;
	for (unsigned nr = 0; nr < CALLS_MAX; nr++) {
		if (n == 0 || !is_same(out[n - 1].call, &plan->calls[nr]))
			out[n++] = (struct span){ nr, &plan->calls[nr] };
	}
	if (!is_same(out[n - 1].call, beyond))
		out[n++] = (struct span){ CALLS_MAX, beyond };
	return n;
}

/* The depth is the logarithm of CALLS_MAX; NOLINTNEXTLINE(misc-no-recursion) */
static unsigned put_tree(struct assembler *e, const struct span *spans, size_t n)
{
	if (n == 1)
		return put_call(e, spans[0].call);
	size_t middle = n / 2;
	unsigned above = put_tree(e, spans + middle, n - middle);
	unsigned below = put_tree(e, spans, middle);
	return put_jump(e, BPF_JGE, spans[middle].first, above, below);
}

/* The last of the spans has the numbers above every call. */
static void put_program(struct assembler *e, const struct span *spans, size_t n)
{
	unsigned killed = put_ret(e, SECCOMP_RET_KILL_PROCESS);
	unsigned native = put_tree(e, spans, n);
#ifdef X32_BIT
	/* -1 has the bit, too: a tracer sets it to skip a call, so it is no call */
	unsigned minus_one = put_ret(e, spans[n - 1].call->otherwise);
	unsigned x32 = put_jump(e, BPF_JEQ, UINT32_MAX, minus_one, killed);
	put_jump(e, BPF_JGE, X32_BIT, x32, native);
#else
	put(e, BPF_JMP | BPF_JA, e->count - native - 1, 0, 0);
#endif
	unsigned start = put_load(e, offsetof(struct seccomp_data, nr));
	put_jump(e, BPF_JEQ, ARCH_NATIVE, start, killed);
	put_load(e, offsetof(struct seccomp_data, arch));
}

struct filter_plan *filter_plan_new(struct arena *a, uint32_t ret)
{
	struct filter_plan *plan = arena_alloc(a, sizeof(*plan));
	if (!plan)
		return NULL;
	plan->otherwise = ret;
	for (size_t nr = 0; nr < CALLS_MAX; nr++)
		plan->calls[nr].otherwise = ret;
	return plan;
}

int filter_plan_add(struct filter_plan *plan, struct arena *a, unsigned nr,
		    const struct filter_branch *branch)
{
	assert(nr < CALLS_MAX);
	struct filter_call *call = &plan->calls[nr];
	struct policy_arg *args = arena_array(a, branch->nargs, sizeof(*args));
	const struct filter_branch copy = { args, branch->nargs, branch->ret };
	if (!args || !arena_append(a, call->branches, call->nbranches, copy))
		return -ENOMEM;
	memcpy(args, branch->args, branch->nargs * sizeof(*args));
	return 0;
}

int filter_emit(const struct filter_plan *plan, struct arena *a, const struct sock_filter **out,
		unsigned short *out_count, struct cj_error *err)
{
	auto_arena struct arena scratch = { 0 };
	const struct filter_call beyond = { .otherwise = plan->otherwise };
	struct span *spans = arena_array(&scratch, CALLS_MAX + 1, sizeof(*spans));
	struct assembler e = { .insns = arena_array(&scratch, BPF_MAXINSNS, sizeof(*e.insns)),
			       .scratch = &scratch };
	if (!spans || !e.insns)
		return cj_fail(err, ENOMEM, "write a seccomp filter");

	put_program(&e, spans, make_spans(plan, &beyond, spans));
	if (e.has_no_memory)
		return cj_fail(err, ENOMEM, "write a seccomp filter");
	if (e.is_full)
		return cj_fail(err, E2BIG, "write a seccomp filter of more than %d instructions",
			       BPF_MAXINSNS);

	struct sock_filter *insns = arena_array(a, e.count, sizeof(*insns));
	if (!insns)
		return cj_fail(err, ENOMEM, "write a seccomp filter");
	memcpy(insns, e.insns + BPF_MAXINSNS - e.count, e.count * sizeof(*insns));
	*out = insns;
	*out_count = (unsigned short)e.count;
	return 0;
}
