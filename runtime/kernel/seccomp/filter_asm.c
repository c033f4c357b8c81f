/* SPDX-License-Identifier: Apache-2.0 */
/* Instructions of seccomp programs, written backwards.  Pure. */
#include "runtime/kernel/seccomp/filter_asm.h"

#include <assert.h>
#include <linux/seccomp.h>
#include <stddef.h>

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the low half of an argument comes first");

#define JUMP_MAX 250 /* of 255: a far jump inserted in between may increase the distance */

unsigned filter_asm_put(struct filter_asm *e, unsigned code, uint32_t k, unsigned yes, unsigned no)
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
unsigned filter_asm_ret(struct filter_asm *e, uint32_t ret)
{
	for (size_t i = 0; i < FILTER_ASM_RETS_MAX; i++) {
		if (e->rets[i].is_set && e->rets[i].ret == ret &&
		    e->count - e->rets[i].position < JUMP_MAX / 2)
			return e->rets[i].position;
	}
	unsigned position = filter_asm_put(e, BPF_RET | BPF_K, ret, 0, 0);
	e->rets[e->next_ret++ % FILTER_ASM_RETS_MAX] =
	    (struct filter_asm_answer){ ret, position, true };
	return position;
}

unsigned filter_asm_load(struct filter_asm *e, size_t offset)
{
	return filter_asm_put(e, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0);
}

/* `target`, or a far jump to it where a conditional one can't reach. */
static unsigned reach(struct filter_asm *e, unsigned target)
{
	unsigned distance = e->count - target - 1;
	return distance < JUMP_MAX ? target : filter_asm_put(e, BPF_JMP | BPF_JA, distance, 0, 0);
}

unsigned filter_asm_jump(struct filter_asm *e, unsigned op, uint32_t k, unsigned yes, unsigned no)
{
	yes = reach(e, yes);
	no = reach(e, no);
	return filter_asm_put(e, BPF_JMP | op | BPF_K, k, e->count - yes - 1, e->count - no - 1);
}

/* --- conditions: where to go when it holds, and when not ----------------------- */

size_t filter_asm_low_half(unsigned index)
{
	return offsetof(struct seccomp_data, args) + index * sizeof(uint64_t);
}

static size_t high_half(unsigned index)
{
	return filter_asm_low_half(index) + sizeof(uint32_t);
}

bool filter_asm_is_one_bit(uint32_t mask)
{
	return mask != 0 && (mask & (mask - 1)) == 0;
}

/* Only the comparison, with the word loaded; it keeps the word in the register if it can. */
unsigned filter_asm_compare(struct filter_asm *e, uint32_t mask, uint32_t want, unsigned yes,
			    unsigned no)
{
	if (filter_asm_is_one_bit(mask))
		return filter_asm_jump(e, BPF_JSET, mask, want ? yes : no, want ? no : yes);
	unsigned here = filter_asm_jump(e, BPF_JEQ, want, yes, no);
	return mask == UINT32_MAX ? here : filter_asm_put(e, BPF_ALU | BPF_AND | BPF_K, mask, 0, 0);
}

/* A comparison of one half of an argument. */
struct half {
	size_t offset; /* in struct seccomp_data */
	uint32_t mask, want;
};

static unsigned put_half(struct filter_asm *e, const struct half *h, unsigned yes, unsigned no)
{
	if (h->mask == 0)
		return yes; /* no bit of this half is compared; policy.c ensured that want is 0 */
	filter_asm_compare(e, h->mask, h->want, yes, no);
	return filter_asm_load(e, h->offset);
}

static unsigned put_equal(struct filter_asm *e, const struct policy_arg *arg, unsigned yes,
			  unsigned no)
{
	bool is_masked = arg->op == POLICY_MASKED_EQ;
	uint64_t mask = is_masked ? arg->value : UINT64_MAX;
	uint64_t want = is_masked ? arg->value_two : arg->value;
	const struct half low = { filter_asm_low_half(arg->index), (uint32_t)mask, (uint32_t)want };
	const struct half high = { high_half(arg->index), (uint32_t)(mask >> 32),
				   (uint32_t)(want >> 32) };
	return put_half(e, &high, put_half(e, &low, yes, no), no);
}

/* `op` is BPF_JGE or BPF_JGT: how the low halves compare when the high ones are the same. */
static unsigned put_above(struct filter_asm *e, const struct policy_arg *arg, unsigned op,
			  unsigned yes, unsigned no)
{
	uint32_t high = (uint32_t)(arg->value >> 32);
	filter_asm_jump(e, op, (uint32_t)arg->value, yes, no);
	unsigned low = filter_asm_load(e, filter_asm_low_half(arg->index));
	unsigned same = filter_asm_jump(e, BPF_JEQ, high, low, no);
	filter_asm_jump(e, BPF_JGT, high, yes, same);
	return filter_asm_load(e, high_half(arg->index));
}

unsigned filter_asm_arg(struct filter_asm *e, const struct policy_arg *arg, unsigned yes,
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
	}
	assert(!"an operator of enum policy_op");
	return no;
}
