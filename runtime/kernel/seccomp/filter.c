/* SPDX-License-Identifier: Apache-2.0 */
/* Loads a filter into the calling process, init; and what the loaded program answers. */
#include "runtime/kernel/seccomp/filter.h"

#include <linux/seccomp.h>
#include <sys/syscall.h>

#include "runtime/base/scope.h"
#include "runtime/base/sys.h"
#include "runtime/kernel/seccomp/filter_parts.h"

/*
 * Since Linux 5.19: a signal does not restart a call that waits for the supervisor's answer.  So
 * the call is counted once, and Go's preemption signals can't restart it for ever.
 */
#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5)
#endif

static bool is_notified(uint32_t answer)
{
	return (answer & SECCOMP_RET_ACTION_FULL) == SECCOMP_RET_USER_NOTIF;
}

enum call_bound filter_bound_of(uint32_t answer)
{
	uint32_t bound = answer & FILTER_MARK_BOUND;
	bool is_marked = is_notified(answer) && answer & FILTER_MARK && bound < CALL_BOUND_COUNT;
	return is_marked ? (enum call_bound)bound : CALL_BOUND_COUNT;
}

int filter_errno_of(uint32_t answer)
{
	bool is_refused = is_notified(answer) && !(answer & FILTER_MARK);
	int errno_value = is_refused ? (int)(answer & SECCOMP_RET_DATA) : 0;
	return errno_value != 0 ? errno_value : ENOSYS;
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

/* Jumps go only forward, so it always ends. */
uint32_t filter_run(const struct sock_filter *insns, size_t ninsns, const struct seccomp_data *data)
{
	uint32_t word = 0;
	for (size_t at = 0; at < ninsns; at++) {
		const struct sock_filter *insn = &insns[at];
		switch (BPF_CLASS(insn->code)) {
		case BPF_LD:
			word = 0;
			if (insn->k <= sizeof(*data) - sizeof(word))
				memcpy(&word, (const uint8_t *)data + insn->k, sizeof(word));
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

/* What an instruction answers; SECCOMP_RET_KILL_PROCESS for one that goes on. */
static uint32_t answer_of(const struct sock_filter *insn)
{
	return insn->code == (BPF_RET | BPF_K) ? insn->k : SECCOMP_RET_KILL_PROCESS;
}

bool filter_reports(const struct filter *f)
{
	bool reports = false;
	for (size_t i = 0; i < f->ninsns; i++) {
		uint32_t answer = answer_of(&f->insns[i]);
		reports |= is_notified(answer) && !(answer & FILTER_MARK);
	}
	return reports;
}

/* The calls of these bounds are not notified: the kernel does what the policy says, or closes. */
static void settle(struct sock_filter *insns, size_t ninsns, unsigned bounds, bool closes_uncounted)
{
	for (size_t i = 0; i < ninsns; i++) {
		uint32_t answer = answer_of(&insns[i]);
		enum call_bound bound = filter_bound_of(answer);
		if (!(bounds >> bound & 1))
			continue;
		insns[i].k = answer & FILTER_MARK_LOG ? SECCOMP_RET_LOG : SECCOMP_RET_ALLOW;
		if (bound == CALL_BOUND_UNCOUNTED && closes_uncounted)
			insns[i].k = SECCOMP_RET_ERRNO | (uint32_t)ENOSYS;
	}
}

void filter_settle(const struct filter *f, struct sock_filter *insns)
{
	unsigned bounds = 1u << CALL_BOUND_UNCOUNTED;
	if (!f->asks_network)
		bounds |= 1u << CALL_BOUND_NETWORK;
	if (!f->is_divided)
		bounds |= 1u << CALL_BOUND_OTHERS;
	memcpy(insns, f->insns, f->ninsns * sizeof(*insns));
	settle(insns, f->ninsns, bounds, f->closes_uncounted);
}

static bool load(struct sock_fprog *program, unsigned flags, int *out_fd)
{
	*out_fd = sys_seccomp(SECCOMP_SET_MODE_FILTER, flags, program);
	return *out_fd >= 0;
}

/* Flags from best to worst; only an errno that means "unknown flags" tries the next. */
static int load_best(struct sock_fprog *program, int *out_listener_fd, struct cj_error *err)
{
	const unsigned listen = SECCOMP_FILTER_FLAG_NEW_LISTENER;
	const unsigned killable = SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
	bool needs_listener = false;
	int unused;

	*out_listener_fd = -1;
	for (size_t i = 0; i < program->len; i++)
		needs_listener |= is_notified(answer_of(&program->filter[i]));
	if (needs_listener) {
		if (load(program, listen | killable, out_listener_fd))
			return 0;
		if (errno == EINVAL && load(program, listen, out_listener_fd))
			return 0;
		if (errno != EBUSY)
			return cj_fail(err, errno, "seccomp(2): load a filter with a listener");
	}
	/* EBUSY: an outer sandbox has a listener; the kernel then answers ENOSYS instead of us.
	 * Inet sockets must not be refused: the network is built before the program starts. */
	settle(program->filter, program->len, 1u << CALL_BOUND_NETWORK, false);
	if (!load(program, 0, &unused))
		return cj_fail(err, errno, "seccomp(2): load a filter");
	return 0;
}

int filter_plan_load(const struct filter_plan *plan, const char *whose, struct cj_error *err)
{
	auto_arena struct arena scratch = { 0 };
	const struct sock_filter *insns;
	struct sock_fprog program;
	int unused;
	if (filter_emit(plan, &scratch, &insns, &program.len, err) < 0)
		return cj_wrap(err, "the seccomp filter of %s", whose);
	program.filter = (struct sock_filter *)insns;
	if (!load(&program, 0, &unused))
		return cj_fail(err, errno, "load the seccomp filter of %s", whose);
	return 0;
}

int filter_load(const struct filter *f, int *out_listener_fd, struct cj_error *err)
{
	auto_fd int listener_fd = -1;
	auto_free struct sock_filter *insns = calloc(f->ninsns, sizeof(*insns));
	if (!insns)
		return cj_fail(err, ENOMEM, "load a filter");
	filter_settle(f, insns);

	struct sock_fprog program = { .len = f->ninsns, .filter = insns };
	if (load_best(&program, &listener_fd, err) < 0)
		return -err->code;
	/* clone3(2) with a size of 0 is EINVAL without our filter and ENOSYS with it. */
	if (syscall(SYS_clone3, NULL, 0) != -1 || errno != ENOSYS)
		return cj_reject(err,
				 "the system call filter is loaded but does not refuse clone3");
	*out_listener_fd = take_fd(&listener_fd);
	return 0;
}
