/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a seccomp program: jumps go only forward, so it always ends.  Pure. */
#include "runtime/kernel/seccomp/filter_run.h"

#include <string.h>

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
