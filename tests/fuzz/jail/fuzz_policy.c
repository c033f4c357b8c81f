/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a seccomp profile: read, compiled, and the program run over every
 * number.  Whatever was read, clone3 and a second listener must be refused.
 */
#include <sys/syscall.h>

#include "runtime/kernel/seccomp/filter_parts.h"
#include "tests/kernel/seccomp/bpf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void run(const struct filter *f)
{
	const uint64_t zero[6] = { 0 };
	const uint64_t listener[6] = { 1, SECCOMP_FILTER_FLAG_NEW_LISTENER };
	for (int nr = -1; nr <= CALLS_MAX; nr++) {
		uint32_t answer = bpf_answer(f, nr, zero);
		bool is_refusal = (answer & SECCOMP_RET_ACTION_FULL) == SECCOMP_RET_USER_NOTIF &&
				  filter_bound_of(answer) == CALL_BOUND_COUNT;
		if (is_refusal && !call_notified_name(nr))
			abort();
	}
	if (bpf_answer(f, SYS_clone3, zero) != (SECCOMP_RET_ERRNO | ENOSYS))
		abort();
	if (bpf_answer(f, SYS_seccomp, listener) == SECCOMP_RET_ALLOW)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_arena struct arena arena = { 0 };
	struct cj_error err = { 0 };
	const struct policy *policy;
	struct filter filter;

	if (policy_parse("fuzz", (const char *)data, size, &arena, &policy, &err) < 0)
		return 0;
	if (filter_compile(policy, &arena, &filter, &err) == 0)
		run(&filter);
	return 0;
}
