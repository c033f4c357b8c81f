/* SPDX-License-Identifier: Apache-2.0 */
/*
 * filter_asm - the assembler of seccomp programs.  Pure.
 *
 * BPF jumps only forward, and a conditional jump at most 255 instructions.  So a program is written
 * backwards: the target of a jump exists already, and its distance is known.  A position is a count
 * of instructions from the end; each function returns that of its first instruction.
 */
#pragma once

#include <linux/filter.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/kernel/seccomp/policy.h"
#include "runtime/base/arena.h"

#define FILTER_ASM_RETS_MAX 8

struct filter_asm_answer {
	uint32_t ret;
	unsigned position;
	bool is_set;
};

struct filter_asm {
	struct sock_filter *insns; /* BPF_MAXINSNS, filled from the end */
	unsigned count;
	bool is_full;
	bool has_no_memory;
	struct arena *scratch;
	struct filter_asm_answer rets[FILTER_ASM_RETS_MAX]; /* the last ones, in a ring */
	unsigned next_ret;
};

unsigned filter_asm_put(struct filter_asm *e, unsigned code, uint32_t k, unsigned yes, unsigned no);

/* An answer, SECCOMP_RET_*. */
unsigned filter_asm_ret(struct filter_asm *e, uint32_t ret);

/* Loads a word of struct seccomp_data. */
unsigned filter_asm_load(struct filter_asm *e, size_t offset);

/* Compares the loaded word by `op` with k: then goes to `yes`, else to `no`. */
unsigned filter_asm_jump(struct filter_asm *e, unsigned op, uint32_t k, unsigned yes, unsigned no);

/* Does the loaded word have the value `want` in the bits of `mask`? */
unsigned filter_asm_compare(struct filter_asm *e, uint32_t mask, uint32_t want, unsigned yes,
			    unsigned no);

/* Does the condition hold?  Loads what it needs. */
unsigned filter_asm_arg(struct filter_asm *e, const struct policy_arg *arg, unsigned yes,
			unsigned no);

/* The offset of an argument's low half in struct seccomp_data. */
size_t filter_asm_low_half(unsigned index);

bool filter_asm_is_one_bit(uint32_t mask);
