/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A seccomp program run in user space, as seccomp(2) and <linux/filter.h> define it, for
 * tests: what would the kernel answer?  Aborts on anything a seccomp program may not hold.
 */
#pragma once

#include <assert.h>
#include <linux/audit.h>
#include <linux/seccomp.h>

#include "runtime/kernel/seccomp/filter.h"

#if defined(__x86_64__)
#define BPF_NATIVE AUDIT_ARCH_X86_64
#else
#define BPF_NATIVE AUDIT_ARCH_AARCH64
#endif

static inline uint32_t bpf_load(const struct seccomp_data *data, uint32_t offset)
{
	uint32_t word;
	assert(offset % 4 == 0 && offset + 4 <= sizeof(*data));
	memcpy(&word, (const char *)data + offset, sizeof(word));
	return word;
}

static inline bool bpf_compare(uint16_t code, uint32_t a, uint32_t k)
{
	switch (BPF_OP(code)) {
	case BPF_JEQ:
		return a == k;
	case BPF_JGE:
		return a >= k;
	case BPF_JGT:
		return a > k;
	case BPF_JSET:
		return (a & k) != 0;
	}
	abort();
}

static inline uint32_t bpf_run(const struct sock_filter *insns, size_t count,
			       const struct seccomp_data *data)
{
	uint32_t a = 0;
	for (size_t at = 0; at < count; at++) {
		const struct sock_filter *insn = &insns[at];
		switch (BPF_CLASS(insn->code)) {
		case BPF_LD:
			a = bpf_load(data, insn->k);
			break;
		case BPF_ALU:
			assert(insn->code == (BPF_ALU | BPF_AND | BPF_K));
			a &= insn->k;
			break;
		case BPF_JMP:
			if (BPF_OP(insn->code) == BPF_JA)
				at += insn->k;
			else
				at += bpf_compare(insn->code, a, insn->k) ? insn->jt : insn->jf;
			break;
		case BPF_RET:
			return insn->k;
		default:
			abort();
		}
	}
	abort(); /* past the end */
}

static inline uint32_t bpf_answer(const struct filter *f, int nr, const uint64_t args[6])
{
	struct seccomp_data data = { .nr = nr, .arch = BPF_NATIVE };
	for (size_t i = 0; i < 6; i++)
		data.args[i] = args[i];
	return bpf_run(f->insns, f->ninsns, &data);
}
